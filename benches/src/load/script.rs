//! The requests: complete except for a number, which makes each one unique.

use serde_json::{Value, json};

use crate::configurations::variant_id;
use crate::endpoint::Endpoint;
use crate::upstream::tools;

/// The revision that a client speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Era {
    /// 2025-11-25: a session, then bare requests.
    Legacy,
    /// 2026-07-28: every request contains the data of its client.
    Modern,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Method {
    Call,
    List,
}

/// The kind of arguments of a call.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Arguments {
    /// Bytes of structured arguments beside the text.
    pub(crate) padding: usize,
    /// Bytes of the result beside the text.
    pub(crate) size: usize,
    /// Bytes of a structured value in the result, and of the text that repeats it.
    pub(crate) data: usize,
    /// Milliseconds that the tool takes.
    pub(crate) delay: u64,
    /// Notifications before the answer.
    pub(crate) steps: usize,
    /// Whether the client gets a server request before the answer.
    pub(crate) ask: bool,
}

/// Modern clients, all different.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crowd {
    pub(crate) clients: usize,
    pub(crate) selects: Selects,
    /// The tags that all of them declare; without it, each declares others.
    pub(crate) declare: Option<&'static [&'static str]>,
}

/// The variants that clients select.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Selects {
    Nothing,
    /// Some clients select a built-in variant.
    BuiltIn,
    /// All clients select one of this number of equal variants.
    Alike(usize),
}

/// Templates of requests, each with placeholders for the number.
#[derive(Debug)]
pub(crate) struct Script {
    era: Era,
    /// Whether its calls cause a server request.
    pub(crate) asks: bool,
    templates: Vec<Template>,
}

#[derive(Debug)]
struct Template {
    /// The head up to the place of the session header, and the rest with the body.
    start: Vec<u8>,
    remaining: Vec<u8>,
    /// The places of the number in `remaining`.
    slots: Vec<usize>,
}

/// The placeholder for the request's number in a template: as long as a number, and found nowhere else.
const SLOT: &str = "98765432";

/// The number of modern clients, which differ in what they declare.
pub(crate) const CLIENTS: usize = 1200;

impl Script {
    /// Requests of one legacy client, or of a crowd of modern ones.
    pub(crate) fn new(
        era: Era,
        method: Method,
        place: &Endpoint,
        tool: &str,
        arguments: Arguments,
        crowd: Crowd,
    ) -> Self {
        let name = match method {
            Method::Call => Some(tool),
            Method::List => None,
        };
        let template = |meta: Option<Value>| {
            let body = body(method, tool, arguments, meta).to_string();
            Template::new(place, &headers(era, method, name), &body)
        };
        let templates = match era {
            Era::Legacy => vec![template(token(arguments))],
            Era::Modern => (0..crowd.clients)
                .map(|client| template(Some(meta(client, arguments, crowd))))
                .collect(),
        };
        let asks = arguments.ask;
        Self {
            era,
            asks,
            templates,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.templates.len()
    }

    pub(crate) fn needs_session(&self) -> bool {
        self.era == Era::Legacy
    }

    /// Writes the request `template` with `number` and the header line of a session into `out`.
    pub(crate) fn write(&self, template: usize, number: u64, session: &str, out: &mut Vec<u8>) {
        let template = &self.templates[template];
        out.clear();
        out.extend_from_slice(&template.start);
        out.extend_from_slice(session.as_bytes());
        let from = out.len();
        out.extend_from_slice(&template.remaining);
        let mut digits = [0; SLOT.len()];
        let mut left = number;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + u8::try_from(left % 10).unwrap_or_default();
            left /= 10;
        }
        for slot in &template.slots {
            let at = from + slot;
            out[at..at + SLOT.len()].copy_from_slice(&digits);
        }
    }
}

/// The same call with the input responses and the request state, for an answer that requires input.
pub(crate) fn retry(request: &[u8], answer: &[u8]) -> Result<Vec<u8>, String> {
    let sent = || String::from_utf8_lossy(answer).into_owned();
    let requested: Value =
        serde_json::from_slice(answer).map_err(|why| format!("{why}: {}", sent()))?;
    let state = requested["result"]["requestState"].as_str();
    let requests = requested["result"]["inputRequests"].as_object();
    let (Some(state), Some(requests)) = (state, requests) else {
        return Err(format!("no input is required: {}", sent()));
    };
    let reported = |key: &String| {
        (
            key.clone(),
            json!({"action": "accept", "content": {"name": "Ada"}}),
        )
    };
    let reported: serde_json::Map<_, _> = requests.keys().map(reported).collect();
    let more = format!(
        r#""params":{{"inputResponses":{},"requestState":"{state}","#,
        Value::Object(reported)
    );
    let request = std::str::from_utf8(request).map_err(|why| why.to_string())?;
    let split = request.split_once("Content-Length: ");
    let (head, remaining) = split.ok_or("a request without a length")?;
    let (_, body) = remaining
        .split_once("\r\n\r\n")
        .ok_or("a request without a body")?;
    let body = body.replacen(r#""params":{"#, &more, 1);
    let length = body.len();
    Ok(format!("{head}Content-Length: {length}\r\n\r\n{body}").into_bytes())
}

impl Template {
    fn new(place: &Endpoint, headers: &str, body: &str) -> Self {
        let Endpoint {
            address,
            path,
            headers: more,
        } = place;
        let start = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: \
             application/json, text/event-stream\r\n{headers}{more}"
        );
        let remaining = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let slots = remaining.match_indices(SLOT).map(|(at, _)| at).collect();
        Self {
            start: start.into_bytes(),
            remaining: remaining.into_bytes(),
            slots,
        }
    }
}

fn headers(era: Era, method: Method, name: Option<&str>) -> String {
    match era {
        Era::Legacy => "MCP-Protocol-Version: 2025-11-25\r\n".to_owned(),
        Era::Modern => {
            let method = method.name();
            let name = name.map_or_else(String::new, |name| format!("Mcp-Name: {name}\r\n"));
            format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}")
        }
    }
}

impl Method {
    /// Its name in the report.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::List => "list",
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Call => "tools/call",
            Self::List => "tools/list",
        }
    }
}

fn body(method: Method, tool: &str, arguments: Arguments, meta: Option<Value>) -> Value {
    let mut params = match method {
        Method::Call => json!({"name": tool, "arguments": tool_arguments(arguments)}),
        Method::List => json!({}),
    };
    if let Some(meta) = meta {
        params["_meta"] = meta;
    }
    let id: u64 = SLOT.parse().unwrap_or_default();
    json!({"jsonrpc": "2.0", "id": id, "method": method.name(), "params": params})
}

/// The arguments; the text is the number and a few words, as a short argument has.
fn tool_arguments(arguments: Arguments) -> Value {
    let mut sent = json!({"text": format!("{SLOT} {TEXT}")});
    for (key, value) in [
        ("size", arguments.size as u64),
        ("data", arguments.data as u64),
        ("delay", arguments.delay),
        ("steps", arguments.steps as u64),
    ] {
        if value > 0 {
            sent[key] = value.into();
        }
    }
    if arguments.ask {
        sent["ask"] = true.into();
    }
    if arguments.padding > 0 {
        let rows = (0..arguments.padding / tools::ROW).map(tools::row);
        sent["rows"] = rows.collect();
    }
    sent
}

/// The text of a call after its number.
pub(crate) const TEXT: &str = "is what the tool was asked to say again";

fn token(arguments: Arguments) -> Option<Value> {
    let token: u64 = SLOT.parse().unwrap_or_default();
    (arguments.steps > 0).then(|| json!({"progressToken": token}))
}

/// The `_meta` of one of many modern clients: all differ in their features and hints, and some name a variant.
fn meta(client: usize, arguments: Arguments, crowd: Crowd) -> Value {
    let pick = |options: &[&'static str], by: usize| options[client / by % options.len()];
    let form = pick(
        &["format=json", "format=text", "format=markdown", "x-plain"],
        1,
    );
    let features = [
        pick(&["agent", "human"], 4),
        form,
        // None requests compact results: these have their own rows, and would shorten a long text.
        pick(
            &["verbosity=standard", "interactive", "verbosity=verbose"],
            8,
        ),
    ];
    let hints = json!({
        "modelFamily": pick(&["anthropic", "openai", "google", "local"], 3),
        "useCase": [pick(&["planning", "execution", "ide"], 5)],
    });
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": format!("client {client:04}"), "version": "1.0.0"},
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {},
            "extensions": {
                "io.modelcontextprotocol/content-negotiation": {
                    "version": "1.0",
                    "features": [features[0], features[1], features[2], format!("x-client={client:04}")],
                },
                "io.modelcontextprotocol/server-variants": {
                    "variantHints": {"description": format!("client {client:04}"), "hints": hints},
                },
            },
        },
    });
    if let Some(declared) = crowd.declare {
        meta["io.modelcontextprotocol/clientCapabilities"] = capabilities(declared);
    }
    let variant = match crowd.selects {
        Selects::BuiltIn if !client.is_multiple_of(4) => {
            Some(pick(&["standard", "compact", "read-only"], 4).to_owned())
        }
        Selects::Nothing | Selects::BuiltIn => None,
        Selects::Alike(count) => Some(variant_id(client % count)),
    };
    if let Some(variant) = variant {
        meta["io.modelcontextprotocol/server-variant"] = variant.into();
    }
    if let Some(token) = token(arguments) {
        meta["progressToken"] = token["progressToken"].clone();
    }
    meta
}

/// The capabilities of a client that declares these tags, or nothing.
pub(crate) fn capabilities(tags: &[&str]) -> Value {
    match tags {
        [] => json!({}),
        tags => json!({"extensions": {
            "io.modelcontextprotocol/content-negotiation": {"features": tags},
        }}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_comes_back_with_what_it_was_asked_and_is_otherwise_the_same() {
        let body = r#"{"jsonrpc":"2.0","id":7,"params":{"name":"echo"}}"#;
        let request = format!("POST /mcp HTTP/1.1\r\nContent-Length: 49\r\n\r\n{body}");
        let asked = r#"{"id":7,"result":{"inputRequests":{"a":{}},"requestState":"s"}}"#;
        let again = retry(request.as_bytes(), asked.as_bytes()).unwrap();
        let again = String::from_utf8(again).unwrap();
        let (head, body) = again.split_once("\r\n\r\n").unwrap();
        assert_eq!(
            body,
            r#"{"jsonrpc":"2.0","id":7,"params":{"inputResponses":{"a":{"action":"accept","content":{"name":"Ada"}}},"requestState":"s","name":"echo"}}"#
        );
        let length = format!("POST /mcp HTTP/1.1\r\nContent-Length: {}", body.len());
        assert_eq!(head, length);
        let answered = br#"{"id":7,"result":{"content":[]}}"#;
        assert!(retry(request.as_bytes(), answered).is_err());
    }
}
