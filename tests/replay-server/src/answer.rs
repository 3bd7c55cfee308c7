//! The answer to a message, on either transport.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::recording::Recording;

/// The member of a result's `_meta` with the name and the arguments that arrived.
pub const ARRIVED: &str = "replay-server/arrived";

/// A recording that is served in an era, or in both.
#[derive(Clone, Debug)]
pub struct Replay {
    recording: Recording,
    era: Era,
}

/// Which protocol revisions are spoken.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Era {
    /// Those with `initialize`: 2025-11-25 and earlier.
    Legacy,
    /// Those without: 2026-07-28.
    Modern,
    /// All of them.
    #[default]
    Both,
}

impl FromStr for Era {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "legacy" => Ok(Self::Legacy),
            "modern" => Ok(Self::Modern),
            "both" => Ok(Self::Both),
            _ => Err(format!("`{text}` is no era; write legacy, modern or both")),
        }
    }
}

const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
const MODERN: &str = "2026-07-28";

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const UNSUPPORTED_PROTOCOL_VERSION: i32 = -32022;

/// The members of an object, as they are written.
type Members = BTreeMap<String, Box<RawValue>>;

/// What goes wrong with a request: code, message and data of the error.
struct Refusal(i32, String, Option<Value>);

impl Refusal {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self(code, message.into(), None)
    }
}

impl Replay {
    /// Serves `recording` to clients of `era`.
    #[must_use]
    pub const fn new(recording: Recording, era: Era) -> Self {
        Self { recording, era }
    }

    /// The answer to one message, on one line; none to a notification.
    #[must_use]
    pub fn answer(&self, message: &[u8]) -> Option<String> {
        let Ok(members) = serde_json::from_slice::<Members>(message) else {
            let refusal = Refusal::new(PARSE_ERROR, "not a JSON object");
            return Some(answered("null", Err(refusal)));
        };
        let id = members.get("id")?.get();
        let answer = match members.get("method").and_then(|method| text(method)) {
            Some(method) => {
                let params = members.get("params").and_then(|params| object(params));
                self.result(&method, &params.unwrap_or_default())
            }
            None => Err(Refusal::new(INVALID_REQUEST, "no method")),
        };
        Some(answered(id, answer))
    }

    fn result(&self, method: &str, params: &Members) -> Result<Value, Refusal> {
        let version = version(params);
        match (&version, self.era) {
            (Some(version), era) if version != MODERN || era == Era::Legacy => {
                return Err(self.unsupported(version));
            }
            (None, Era::Modern) => {
                let requested = params
                    .get("protocolVersion")
                    .and_then(|version| text(version));
                return Err(self.unsupported(&requested.unwrap_or_default()));
            }
            _ => {}
        }
        let result = match (method, version.is_some()) {
            ("initialize", false) => self.initialized(params),
            ("ping", false) => json!({}),
            ("server/discover", true) => self.discovered(),
            ("tools/list", _) => json!({"tools": self.recording.list("tools")}),
            ("prompts/list", _) => json!({"prompts": self.recording.list("prompts")}),
            ("resources/list", _) => json!({"resources": self.recording.list("resources")}),
            ("resources/templates/list", _) => {
                json!({"resourceTemplates": self.recording.list("templates")})
            }
            ("tools/call", _) => self.called(params)?,
            ("prompts/get", _) => self.got(params)?,
            ("resources/read", _) => self.read(params)?,
            _ => return Err(Refusal::new(METHOD_NOT_FOUND, "Method not found")),
        };
        let mut result = result;
        if version.is_some() {
            result["resultType"] = json!("complete");
            if method.ends_with("/list")
                || method == "resources/read"
                || method == "server/discover"
            {
                result["ttlMs"] = json!(0);
                result["cacheScope"] = json!("private");
            }
        }
        Ok(result)
    }

    fn unsupported(&self, requested: &str) -> Refusal {
        let supported: Vec<&str> = match self.era {
            Era::Legacy => LEGACY.to_vec(),
            Era::Modern => vec![MODERN],
            Era::Both => [&[MODERN], &LEGACY[..]].concat(),
        };
        let data = json!({"supported": supported, "requested": requested});
        let terms = "Unsupported protocol version".to_owned();
        Refusal(UNSUPPORTED_PROTOCOL_VERSION, terms, Some(data))
    }

    fn initialized(&self, params: &Members) -> Value {
        let requested = params
            .get("protocolVersion")
            .and_then(|version| text(version));
        let known = LEGACY
            .into_iter()
            .find(|known| requested.as_deref() == Some(known));
        let mut result = json!({
            "protocolVersion": known.unwrap_or(LEGACY[0]),
            "capabilities": self.capabilities(),
            "serverInfo": self.info(),
        });
        self.instruct(&mut result);
        result
    }

    fn discovered(&self) -> Value {
        let mut result = json!({
            "supportedVersions": [MODERN],
            "capabilities": self.capabilities(),
            "_meta": {"io.modelcontextprotocol/serverInfo": self.info()},
        });
        self.instruct(&mut result);
        result
    }

    fn instruct(&self, result: &mut Value) {
        if let Some(instructions) = self.recording.init("instructions") {
            result["instructions"] = instructions.clone();
        }
    }

    fn info(&self) -> Value {
        let recorded = self.recording.init("serverInfo").cloned();
        recorded.unwrap_or_else(|| json!({"name": "replay", "version": env!("CARGO_PKG_VERSION")}))
    }

    /// What there is something of.
    fn capabilities(&self) -> Value {
        let has = |key| !self.recording.list(key).is_empty();
        let mut capabilities = Map::new();
        for (name, there) in [
            ("tools", has("tools")),
            ("prompts", has("prompts")),
            ("resources", has("resources") || has("templates")),
        ] {
            if there {
                capabilities.insert(name.to_owned(), json!({}));
            }
        }
        capabilities.into()
    }

    fn called(&self, params: &Members) -> Result<Value, Refusal> {
        let name = named(params, "name")?;
        let tool = self.recording.item("tools", &name);
        let tool =
            tool.ok_or_else(|| Refusal::new(INVALID_PARAMS, format!("Unknown tool: {name}")))?;
        let arrived = arrived(&name, params);
        let mut result = match self.recording.result("tools", &name) {
            Some(recorded) => Value::Object(recorded.clone()),
            None if tool.get("outputSchema").is_some() => json!({
                "content": [{"type": "text", "text": format!("no result of `{name}` is recorded, and it has an output schema")}],
                "isError": true,
            }),
            None => json!({"content": [{"type": "text", "text": arrived}]}),
        };
        result["_meta"][ARRIVED] = arrived.into();
        Ok(result)
    }

    fn got(&self, params: &Members) -> Result<Value, Refusal> {
        let name = named(params, "name")?;
        if self.recording.item("prompts", &name).is_none() {
            let terms = format!("Unknown prompt: {name}");
            return Err(Refusal::new(INVALID_PARAMS, terms));
        }
        let arrived = arrived(&name, params);
        let mut result = match self.recording.result("prompts", &name) {
            Some(recorded) => Value::Object(recorded.clone()),
            None => json!({"messages": [
                {"role": "user", "content": {"type": "text", "text": arrived}},
            ]}),
        };
        result["_meta"][ARRIVED] = arrived.into();
        Ok(result)
    }

    fn read(&self, params: &Members) -> Result<Value, Refusal> {
        let uri = named(params, "uri")?;
        if let Some(recorded) = self.recording.result("resources", &uri) {
            return Ok(Value::Object(recorded.clone()));
        }
        let may_be = !self.recording.list("templates").is_empty();
        if may_be || self.recording.item("resources", &uri).is_some() {
            return Ok(json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": uri}]}));
        }
        let data = json!({"uri": uri});
        Err(Refusal(
            INVALID_PARAMS,
            "Resource not found".to_owned(),
            Some(data),
        ))
    }
}

/// The revision that a request of the modern era names.
fn version(params: &Members) -> Option<String> {
    let meta = object(params.get("_meta")?)?;
    text(meta.get("io.modelcontextprotocol/protocolVersion")?)
}

fn named(params: &Members, key: &str) -> Result<String, Refusal> {
    let found = params.get(key).and_then(|name| text(name));
    found.ok_or_else(|| Refusal::new(INVALID_PARAMS, format!("`{key}` is missing")))
}

/// What a call asked for, with the arguments as they were written.
fn arrived(name: &str, params: &Members) -> String {
    let arguments = params.get("arguments").map_or("{}", |raw| raw.get());
    format!("{{\"name\":{},\"arguments\":{arguments}}}", json!(name))
}

fn answered(id: &str, answer: Result<Value, Refusal>) -> String {
    let (key, value) = match answer {
        Ok(result) => ("result", result),
        Err(Refusal(code, message, data)) => {
            let mut error = json!({"code": code, "message": message});
            if let Some(data) = data {
                error["data"] = data;
            }
            ("error", error)
        }
    };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{key}\":{value}}}")
}

fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

fn object(raw: &RawValue) -> Option<Members> {
    serde_json::from_str(raw.get()).ok()
}
