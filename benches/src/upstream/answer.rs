//! The answers of the upstream server.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Kind;
use super::tools;

/// The answer to one message.
#[derive(Debug)]
pub(crate) enum Answer {
    /// None: the message was a notification.
    Nothing,
    /// An answer after a delay.
    One(Bytes, Duration),
    /// Notifications, then an answer.
    Several(Vec<Bytes>),
    /// A server request with this id, and the answer after the client's response.
    Asks {
        id: String,
        question: Bytes,
        answer: Bytes,
    },
    /// None: the message was the client's response to the server request with this id.
    Answered(String),
}

/// Creates the server's answers.
#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) kind: Kind,
    tools: String,
    /// The number of changes of the list.
    changes: AtomicUsize,
    /// The number of input requests so far.
    input_requests: AtomicUsize,
    /// Rows of a given size, stored after the first request.
    rows: RefCell<BTreeMap<usize, Rc<Rows>>>,
}

/// Rows as JSON, and as the content of a JSON string.
#[derive(Debug)]
struct Rows {
    json: String,
    quoted: String,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<&'a str>,
    #[serde(borrow, default)]
    params: Params<'a>,
}

#[derive(Default, Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Arguments<'a>,
    #[serde(borrow, default)]
    _meta: Meta<'a>,
    #[serde(borrow, rename = "inputResponses")]
    input_responses: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(default)]
    size: usize,
    #[serde(default)]
    data: usize,
    #[serde(default)]
    delay: u64,
    #[serde(default)]
    steps: usize,
    #[serde(default)]
    change: bool,
    #[serde(default)]
    ask: bool,
}

#[derive(Default, Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
}

impl Answers {
    pub(crate) fn new(kind: Kind, tools: usize) -> Self {
        Self {
            kind,
            tools: tools::list(tools),
            changes: AtomicUsize::new(0),
            input_requests: AtomicUsize::new(0),
            rows: RefCell::default(),
        }
    }

    /// Whether `message` opens a session.
    pub(crate) fn is_initialize(message: &[u8]) -> bool {
        read(message).is_some_and(|request| request.method == Some("initialize"))
    }

    pub(crate) fn answer(&self, message: &[u8]) -> Answer {
        let Some(request) = read(message) else {
            let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no message that this server can read"}}"#;
            return Answer::One(Bytes::from_static(text.as_bytes()), Duration::ZERO);
        };
        let Some(id) = request.id.map(RawValue::get) else {
            return Answer::Nothing;
        };
        if request.method.is_none() {
            return Answer::Answered(id.to_owned());
        }
        let now = |result: String| Answer::One(whole(id, &result), Duration::ZERO);
        match request.method.unwrap_or_default() {
            "tools/call" => self.call(id, &request.params),
            "tools/list" => now(self.list()),
            "initialize" if self.kind != Kind::Modern => now(INITIALIZED.to_owned()),
            "server/discover" if self.kind == Kind::Modern => now(DISCOVERED.to_owned()),
            "ping" => now("{}".to_owned()),
            _ => Answer::One(refusal(id, -32601, "Method not found"), Duration::ZERO),
        }
    }

    fn list(&self) -> String {
        let tools = self.tools();
        match self.kind {
            Kind::Modern => format!(
                r#"{{"resultType":"complete","tools":{tools},"ttlMs":0,"cacheScope":"private"}}"#
            ),
            Kind::Sessions | Kind::Legacy => format!(r#"{{"tools":{tools}}}"#),
        }
    }

    /// The list of tools. The description of the first tool changes each time.
    fn tools(&self) -> Cow<'_, str> {
        match self.changes.load(Ordering::Relaxed) {
            0 => Cow::Borrowed(&self.tools),
            times => {
                let sent = format!("Says again, after {times} changes, what");
                Cow::Owned(self.tools.replacen("Says again what", &sent, 1))
            }
        }
    }

    fn call(&self, id: &str, params: &Params<'_>) -> Answer {
        let name = params.name.map(RawValue::get).unwrap_or_default();
        let text = params.arguments.text.map(RawValue::get);
        let Some(text) = text.and_then(|text| text.strip_prefix('"')?.strip_suffix('"')) else {
            return Answer::One(refusal(id, -32602, "`text` is missing"), Duration::ZERO);
        };
        if name.trim_matches('"') != tools::ECHO {
            return Answer::One(refusal(id, -32602, "Unknown tool"), Duration::ZERO);
        }
        let arguments = &params.arguments;
        let answer = whole(
            id,
            &match arguments.data {
                0 => self.echo(text, arguments.size),
                bytes => self.data(text, bytes),
            },
        );
        if arguments.change {
            self.changes.fetch_add(1, Ordering::Relaxed);
            return Answer::Several(vec![Bytes::from_static(CHANGED.as_bytes()), answer]);
        }
        if arguments.ask && params.input_responses.is_none() {
            return self.asks(id, answer);
        }
        let token = params._meta.progress_token.map(RawValue::get);
        match (arguments.steps, token) {
            (0, _) | (_, None) => Answer::One(answer, Duration::from_millis(arguments.delay)),
            (steps, Some(token)) => {
                let sent = (1..=steps).map(|step| progress(token, step, steps));
                Answer::Several(sent.chain([answer]).collect())
            }
        }
    }

    /// Requests input before the answer, in the way of the server's revision.
    fn asks(&self, id: &str, answer: Bytes) -> Answer {
        if self.kind == Kind::Modern {
            let required = format!(
                r#"{{"resultType":"input_required","inputRequests":{{"name":{{"method":"elicitation/create","params":{FORM}}}}},"requestState":"{STATE}"}}"#
            );
            return Answer::One(whole(id, &required), Duration::ZERO);
        }
        let number = self.input_requests.fetch_add(1, Ordering::Relaxed);
        let question = format!(
            r#"{{"jsonrpc":"2.0","id":{number},"method":"elicitation/create","params":{FORM}}}"#
        );
        Answer::Asks {
            id: number.to_string(),
            question: question.into(),
            answer,
        }
    }

    /// The text and `bytes` bytes of rows, as a value and as the text that repeats it.
    fn data(&self, text: &str, bytes: usize) -> String {
        let mut known = self.rows.borrow_mut();
        let rows = known
            .entry(bytes)
            .or_insert_with(|| Rc::new(Rows::new(bytes)));
        let Rows { json, quoted } = &**rows;
        let kind = self.result_type();
        format!(
            r#"{{{kind}"content":[{{"type":"text","text":"{{\"text\":\"{text}\",\"rows\":{quoted}}}"}}],"structuredContent":{{"text":"{text}","rows":{json}}}}}"#
        )
    }

    fn result_type(&self) -> &'static str {
        match self.kind {
            Kind::Modern => r#""resultType":"complete","#,
            Kind::Sessions | Kind::Legacy => "",
        }
    }

    fn echo(&self, text: &str, size: usize) -> String {
        let kind = self.result_type();
        let mut result = String::with_capacity(text.len() + size + 80);
        result.push('{');
        result.push_str(kind);
        result.push_str(r#""content":[{"type":"text","text":""#);
        result.push_str(text);
        for start in (0..size).step_by(FILLER.len()) {
            result.push_str(&FILLER[..FILLER.len().min(size - start)]);
        }
        result.push_str(r#""}]}"#);
        result
    }
}

impl Rows {
    fn new(bytes: usize) -> Self {
        let rows: Value = (0..bytes / tools::ROW).map(tools::row).collect();
        let json = rows.to_string();
        let quoted = json.replace('"', "\\\"");
        Self { json, quoted }
    }
}

fn read(message: &[u8]) -> Option<Request<'_>> {
    serde_json::from_slice(message).ok()
}

fn whole(id: &str, result: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into()
}

fn refusal(id: &str, code: i32, message: &str) -> Bytes {
    let error = format!(r#"{{"code":{code},"message":"{message}"}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into()
}

fn progress(token: &str, step: usize, steps: usize) -> Bytes {
    let params = format!(r#"{{"progressToken":{token},"progress":{step},"total":{steps}}}"#);
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#).into()
}

const INITIALIZED: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"behind","version":"1.0.0"}}"#;
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"behind","version":"1.0.0"},"ttlMs":0,"cacheScope":"private"}"#;
const FORM: &str = r#"{"mode":"form","message":"Who asks?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","description":"A name"}},"required":["name"]}}"#;
/// The request state that a client returns in the next round trip.
const STATE: &str = "eyJyb3VuZCI6MX0.c2VhbGVkIGJ5IHRoZSBzZXJ2ZXIgYmVoaW5kLCBmb3IgaXRzZWxm";
/// The text of large answers: words, as on a web page.
const FILLER: &str =
    " The quick brown fox jumps over the lazy dog, and says so to whoever listens.";
