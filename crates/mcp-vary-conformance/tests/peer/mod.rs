//! A server of both eras that does what the documents say, but for one fault.
//!
//! A fault is called like the check that must find it. `peer.has("SV-1/unique-ids")` stands where the right server and the
//! broken one part.

mod answers;
mod content;
mod http;
mod offers;

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::{Value, json};

pub(crate) use http::{silent, start};

pub(crate) const NEGOTIATION: &str = "io.modelcontextprotocol/content-negotiation";
pub(crate) const VARIANTS: &str = "io.modelcontextprotocol/server-variants";
pub(crate) const SELECTOR: &str = "io.modelcontextprotocol/server-variant";

/// The fault of a right server.
pub(crate) const NO_FAULT: &str = "";

/// A server that is right, and declares no variants.
pub(crate) const NO_VARIANTS: &str = "no variants";

/// A server that declares no extension, and lacks a list that its capabilities name.
pub(crate) const NO_EXTENSIONS: &str = "no extensions";

/// A server that is right, and offers sessions without hints one of two variants first.
pub(crate) const COHORTS: &str = "cohorts";

/// A server that is right, and limits how often clients select another variant.
pub(crate) const LIMITED: &str = "limited";

/// A server that is right, and says of no tool that it changes nothing.
pub(crate) const UNANNOTATED: &str = "unannotated";

/// It answers nothing.
pub(crate) const SILENT: &str = "silent";

/// It writes lines that are no messages.
pub(crate) const NOISY: &str = "noisy";

/// It writes a line that does not end.
pub(crate) const ENDLESS: &str = "endless";

/// It ends when it is asked for its tools.
pub(crate) const DYING: &str = "dying";

/// It starts a process, and stays when its input is closed.
pub(crate) const STUBBORN: &str = "stubborn";

#[derive(Debug)]
pub(crate) struct Peer {
    fault: &'static str,
    sessions: Mutex<BTreeMap<String, Value>>,
    connections: History,
    calls: History,
    /// The session of the last call as an agent.
    agent: Mutex<Option<String>>,
    /// The selector of the last request, if it listed tools.
    selector: Mutex<Option<String>>,
    /// The last selector, and how many were another one than that before.
    switches: Mutex<(Option<String>, u32)>,
}

/// What happened, in order. Some faults show only after something else.
#[derive(Debug, Default)]
struct History(Mutex<Vec<&'static str>>);

impl History {
    /// Notes an event, and returns whether the events before it end with `before`.
    fn follows(&self, event: &'static str, before: &[&str]) -> bool {
        let mut events = self.0.lock().unwrap();
        let follows = events.ends_with(before);
        events.push(event);
        follows
    }
}

/// An error: code, message, data.
#[derive(Debug)]
pub(crate) struct Refusal(i64, String, Value);

/// A request of a client whose capabilities are known.
#[derive(Debug)]
struct IncomingRequest<'a> {
    method: &'a str,
    params: &'a Value,
    capabilities: Value,
    session: Option<&'a str>,
    /// The number of the session.
    number: Option<usize>,
    /// Whether the client is a guest, who may see less.
    is_guest: bool,
}

impl IncomingRequest<'_> {
    fn settings(&self, extension: &str) -> Option<&Value> {
        self.capabilities.get("extensions")?.get(extension)
    }

    fn selector(&self) -> Option<&Value> {
        self.params.get("_meta")?.get(SELECTOR)
    }

    /// The tags that count.
    fn tags(&self, peer: &Peer) -> Option<Vec<String>> {
        if peer.has("EXT-2/extensions-are-a-map") || peer.has(NO_EXTENSIONS) {
            return None;
        }
        let settings = self.settings(NEGOTIATION)?;
        let version = settings.get("version").and_then(Value::as_str);
        let is_known = version.is_none_or(|version| version.starts_with("1."));
        if !is_known && !peer.has("EXT-7/unknown-versions-are-the-default") {
            return None;
        }
        let tags = settings.get("features")?.as_array()?.iter();
        Some(tags.filter_map(Value::as_str).map(str::to_owned).collect())
    }
}

impl Peer {
    pub(crate) fn new(fault: &'static str) -> Self {
        Self {
            fault,
            sessions: Mutex::default(),
            connections: History::default(),
            calls: History::default(),
            agent: Mutex::default(),
            selector: Mutex::default(),
            switches: Mutex::default(),
        }
    }

    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }

    fn offers_variants(&self) -> bool {
        !self.has(NO_VARIANTS)
            && !self.has(NO_EXTENSIONS)
            && !self.has("SV-10/unsupported-selector")
            && !self.has("EXT-2/extensions-are-a-map")
    }

    /// Answers a request, or opens a session with it. None is no answer at all.
    pub(crate) fn answer(
        &self,
        message: &Value,
        session: Option<&str>,
        is_guest: bool,
    ) -> Option<(Value, Option<String>)> {
        let params = message.get("params").unwrap_or(&Value::Null);
        let method = message["method"].as_str().unwrap();
        let mut opened = None;
        let mut number = session.map(|session| session["session-".len()..].parse().unwrap());
        let capabilities = if method == "initialize" {
            let mut sessions = self.sessions.lock().unwrap();
            let id = format!("session-{}", sessions.len());
            number = Some(sessions.len());
            sessions.insert(id.clone(), params["capabilities"].clone());
            opened = Some(id);
            params["capabilities"].clone()
        } else if let Some(session) = session {
            self.sessions.lock().unwrap()[session].clone()
        } else {
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone()
        };
        let request = IncomingRequest {
            method,
            params,
            capabilities,
            session,
            number,
            is_guest,
        };
        if self.has("EXT-5/bad-settings-are-survived")
            && request.settings(VARIANTS) == Some(&json!("yes"))
        {
            return None;
        }
        let answer = match self.handle(&request) {
            Ok(result) => json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
            Err(Refusal(code, text, data)) => {
                opened = None;
                json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": text, "data": data}})
            }
        };
        Some((answer, opened))
    }
}
