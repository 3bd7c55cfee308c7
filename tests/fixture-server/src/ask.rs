//! What the server asks clients for: a form, a sampled message, the roots.

use rmcp::model::{
    CreateMessageRequest, CreateMessageRequestParams, ElicitRequest, ElicitRequestParams,
    InputRequest, InputRequiredResult, InputResponses, JsonObject, ListRootsRequest,
    SamplingMessage, Tool, ToolChoice,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

/// How often a client with a session is asked for one request.
pub(crate) const ROUNDS: usize = 8;

/// Whether the client is asked by requests, as sessions allow, and not by results.
pub(crate) fn has_session(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_none_or(|version| version.has_initialize())
}

/// Asks a client with a session, one request after the other, what others are asked by a result.
///
/// # Errors
///
/// When the client does not answer one of them.
pub(crate) async fn in_session(
    context: &RequestContext<RoleServer>,
    required: &InputRequiredResult,
) -> Result<InputResponses, ErrorData> {
    let mut responses = InputResponses::new();
    for (key, request) in required.input_requests.iter().flatten() {
        let answer = match request.clone() {
            InputRequest::CreateMessage(request) => {
                let answer = context.peer.create_message(request.params).await;
                answer.map(|answer| json!(answer))
            }
            InputRequest::Elicitation(request) => {
                let answer = context.peer.create_elicitation(request.params).await;
                answer.map(|answer| json!(answer))
            }
            InputRequest::ListRoots(_) => {
                let answer = context.peer.list_roots().await;
                answer.map(|answer| json!(answer))
            }
            _ => return Err(ErrorData::internal_error("not asked in sessions", None)),
        };
        let answer = answer.map_err(|error| {
            ErrorData::internal_error(format!("the client did not answer: {error}"), None)
        })?;
        responses.insert(key.clone(), answer);
    }
    Ok(responses)
}

/// A form with the JSON Schema `schema`, which must be one that forms may have.
pub(crate) fn form(message: &str, schema: Value) -> ElicitRequestParams {
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: serde_json::from_value(schema).expect("our own forms are valid"),
    }
}

/// A form with one required field.
pub(crate) fn field(message: &str, name: &str, kind: &str) -> InputRequest {
    let schema = json!({
        "type": "object",
        "properties": { name: { "type": kind } },
        "required": [name]
    });
    InputRequest::Elicitation(ElicitRequest::new(form(message, schema)))
}

/// The parameters of a request to sample an answer to `prompt`.
pub(crate) fn sampling(prompt: &str) -> CreateMessageRequestParams {
    CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100)
}

/// A request to sample an answer to `prompt`.
pub(crate) fn sample(prompt: &str) -> InputRequest {
    InputRequest::CreateMessage(CreateMessageRequest::new(sampling(prompt)))
}

/// A request to sample a call of a tool.
pub(crate) fn sample_with_a_tool() -> InputRequest {
    let schema = JsonObject::from_iter([("type".to_owned(), "object".into())]);
    let tool = Tool::new("look-out", "Looks out of the window.", schema);
    let params = sampling("Is it raining?")
        .with_tools(vec![tool])
        .with_tool_choice(ToolChoice::required());
    InputRequest::CreateMessage(CreateMessageRequest::new(params))
}

/// A request to visit an address.
pub(crate) fn visit(url: &str) -> InputRequest {
    InputRequest::Elicitation(ElicitRequest::new(
        ElicitRequestParams::UrlElicitationParams {
            meta: None,
            message: "Visit us.".to_owned(),
            url: url.to_owned(),
            elicitation_id: "visit-1".to_owned(),
        },
    ))
}

/// A request for the client's roots.
pub(crate) fn roots() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

/// The result that asks for all of `requests`, each under its key.
pub(crate) fn required<const N: usize>(
    requests: [(&str, InputRequest); N],
    state: Option<String>,
) -> InputRequiredResult {
    let requests = requests.map(|(key, request)| (key.to_owned(), request));
    InputRequiredResult::new(Some(requests.into()), state)
}

/// The client's response under `key`; one that is no object is as good as none, so it is asked for again.
pub(crate) fn response<'a>(
    responses: Option<&'a InputResponses>,
    key: &str,
) -> Option<&'a JsonObject> {
    responses?.get(key)?.as_object()
}

/// A field of a filled form, as text.
pub(crate) fn filled(response: &JsonObject, name: &str) -> String {
    match response.get("content").and_then(|form| form.get(name)) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "nothing".to_owned(),
    }
}
