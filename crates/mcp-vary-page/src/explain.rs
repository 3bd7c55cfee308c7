//! Which client gets what, and which step or rule decides.

pub(crate) mod callers;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use mcp_vary_gateway::{ClientDescription, ClientExplanation, ExplainedTool, Gateway};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::response::{PageAnswer, failure, json as json_answer};

/// The response to `POST /api/explain`.
pub(crate) fn respond(gateway: &Gateway, body: &Bytes) -> PageAnswer {
    match read(body).and_then(|question| explain(gateway, &question)) {
        Ok(answer) => json_answer(&answer),
        Err(why) => failure(StatusCode::BAD_REQUEST, &why),
    }
}

/// What the page sends of a client. Each part is optional.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Question<'a> {
    /// What the page calls it.
    pub(crate) name: Option<String>,
    /// The params of `initialize`, or the whole request.
    #[serde(borrow)]
    initialize: Option<&'a RawValue>,
    /// `_meta` of a request, or the whole request.
    #[serde(borrow)]
    meta: Option<&'a RawValue>,
    headers: Map<String, Value>,
    path: Option<String>,
    #[serde(borrow)]
    claims: Option<&'a RawValue>,
    key: Option<String>,
    /// The name of the tool that is asked about, at its server.
    tool: Option<String>,
    /// Whether the number of its tools is enough.
    brief: bool,
}

fn read(body: &Bytes) -> Result<Question<'_>, String> {
    if body.is_empty() {
        return Ok(Question::default());
    }
    serde_json::from_slice(body).map_err(|error| format!("the request: {error}"))
}

fn explain(gateway: &Gateway, question: &Question<'_>) -> Result<Value, String> {
    let client = question.description()?;
    let explanation = gateway.explain_client(&client)?;
    let mut answer = to_json(&explanation);
    let has_credential = client.key.is_some() || client.claims.is_some();
    answer["lacksCredential"] = (gateway.requires_credential() && !has_credential).into();
    if !question.brief {
        answer["tools"] = explanation.tools.iter().map(tool_json).collect();
    }
    Ok(answer)
}

impl Question<'_> {
    /// The client.
    ///
    /// # Errors
    ///
    /// When a part cannot be read. The error names it.
    pub(crate) fn description(&self) -> Result<ClientDescription, String> {
        let initialize = self
            .initialize
            .map(|text| inner("initialize", text, &["params"]));
        let meta = self
            .meta
            .map(|text| inner("meta", text, &["params", "_meta"]));
        Ok(ClientDescription {
            initialize: initialize.transpose()?,
            meta: meta.transpose()?,
            headers: headers(&self.headers)?,
            path: self.path.clone(),
            claims: self.claims.map(|claims| claims.get().to_owned()),
            key: self.key.clone(),
            tool: self.tool.clone(),
        })
    }
}

/// The object that `text` is, or that it has at `path` if it is a whole request or its params.
fn inner(name: &str, text: &RawValue, path: &[&str]) -> Result<String, String> {
    let object = |text: &str| serde_json::from_str::<Map<String, Value>>(text);
    let read = object(text.get()).map_err(|_| format!("`{name}` must be an object"))?;
    let mut found = read;
    for key in path {
        if let Some(Value::Object(inner)) = found.get(*key) {
            found = inner.clone();
        }
    }
    Ok(Value::Object(found).to_string())
}

/// The headers of the client. More than [`MAX_HEADERS`] are refused: a [`HeaderMap`] has a bound of its own, at which it panics.
fn headers(texts: &Map<String, Value>) -> Result<HeaderMap, String> {
    if texts.len() > MAX_HEADERS {
        let number = texts.len();
        return Err(format!(
            "`headers` has {number} names; write at most {MAX_HEADERS}"
        ));
    }
    let pairs = texts.iter().map(|(name, value)| {
        let is_no_header = || format!("`headers`: `{name}` is not a header with a text");
        let sent = value
            .as_str()
            .and_then(|text| HeaderValue::from_str(text).ok());
        let known = HeaderName::from_bytes(name.as_bytes()).ok();
        known.zip(sent).ok_or_else(is_no_header)
    });
    pairs.collect()
}

fn to_json(explanation: &ClientExplanation) -> Value {
    let steps = explanation.steps.iter();
    let steps = steps
        .map(|step| json!({"step": step.step, "decided": step.decided, "detail": step.detail}));
    let ranking = explanation.ranking.ranking.entries().iter().map(|ranked| {
        let reasons = ranked.reasons.iter();
        let why = reasons.map(|reason| format!("{}: {:+}", reason.label, reason.points));
        json!({"id": ranked.id, "points": ranked.score, "why": why.collect::<Vec<_>>()})
    });
    let rules = explanation.rules.iter().map(|rule| json!({"rule": rule}));
    let listed = explanation.tools.iter().filter(|tool| tool.shown.is_ok());
    json!({
        "variant": explanation.variant,
        "reason": explanation.reason,
        "steps": steps.collect::<Value>(),
        "client": explanation.client,
        "features": explanation.features,
        "ranking": ranking.collect::<Value>(),
        "rules": rules.collect::<Value>(),
        "listed": listed.count(),
    })
}

fn tool_json(tool: &ExplainedTool) -> Value {
    let reasons = tool.shown.as_ref().err().into_iter().flatten();
    let hidden = reasons.map(|reason| {
        json!({"by": reason.by, "rule": reason.rule, "detail": reason.detail, "isLocked": reason.is_locked})
    });
    json!({
        "server": tool.server,
        "name": tool.name,
        "shown": tool.shown.as_ref().ok(),
        "hidden": hidden.collect::<Value>(),
        "rules": tool.rules,
        "isAllowed": tool.is_allowed,
    })
}

/// More than clients and what stands before a gateway send.
const MAX_HEADERS: usize = 100;
