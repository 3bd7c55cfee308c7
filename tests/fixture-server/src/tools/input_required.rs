//! Tools that ask for input by their result (SEP-2322), until the client calls again with the answers.

use std::sync::LazyLock;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, InputRequest, InputRequests,
    InputRequiredResult, JsonObject, RequestStateCodec,
};
use serde_json::{Value, json};

use crate::ask;
use crate::tools::Call;

pub(crate) fn call(call: &Call<'_>) -> Option<Result<CallToolResponse, ErrorData>> {
    let answer = match call.name() {
        "test_input_required_result_elicitation" => Ok(ask_name(call)),
        "test_input_required_result_sampling" => Ok(ask_capital(call)),
        "test_input_required_result_sampling_tools" => Ok(ask_for_a_tool(call)),
        "test_input_required_result_url" => Ok(ask_for_a_visit(call)),
        "test_input_required_result_list_roots" => Ok(ask_roots(call)),
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => ask_sealed(call),
        "test_input_required_result_multiple_inputs" => ask_everything(call),
        "test_input_required_result_multi_round" => ask_in_rounds(call),
        "test_input_required_result_capabilities" => Ok(ask_what_is_declared(call)),
        "test_streaming_elicitation" => Ok(ask::required(
            [("value", ask::field("Which value?", "value", "string"))],
            None,
        )
        .into()),
        _ => return None,
    };
    Some(answer)
}

fn ask_name(call: &Call<'_>) -> CallToolResponse {
    match response(call, "user_name") {
        Some(name) => says(format!("Hello, {}!", ask::filled(name, "name"))),
        None => ask::required([("user_name", name())], None).into(),
    }
}

fn ask_capital(call: &Call<'_>) -> CallToolResponse {
    match response(call, "capital_question") {
        Some(message) => says(format!(
            "the model says {}",
            message.get("content").unwrap_or(&Value::Null)
        )),
        None => {
            let question = ask::sample("What is the capital of France?");
            ask::required([("capital_question", question)], None).into()
        }
    }
}

fn ask_for_a_tool(call: &Call<'_>) -> CallToolResponse {
    match response(call, "weather") {
        // One block may stand alone or in a list.
        Some(message) => says(format!(
            "the model calls {}",
            message.get("content").unwrap_or(&Value::Null)
        )),
        None => ask::required([("weather", ask::sample_with_a_tool())], None).into(),
    }
}

fn ask_for_a_visit(call: &Call<'_>) -> CallToolResponse {
    match response(call, "visit") {
        Some(answer) => says(format!(
            "the visit: {}",
            answer.get("action").unwrap_or(&Value::Null)
        )),
        None => ask::required([("visit", ask::visit("https://example.org/visit"))], None).into(),
    }
}

fn ask_roots(call: &Call<'_>) -> CallToolResponse {
    match response(call, "client_roots") {
        Some(roots) => says(format!(
            "the roots are {}",
            roots.get("roots").unwrap_or(&Value::Null)
        )),
        None => ask::required([("client_roots", ask::roots())], None).into(),
    }
}

fn ask_sealed(call: &Call<'_>) -> Result<CallToolResponse, ErrorData> {
    if round(call)? > 0 {
        return Ok(says("state-ok".to_owned()));
    }
    let question = ask::field("Please confirm", "ok", "boolean");
    Ok(ask::required([("confirm", question)], Some(seal(1)?)).into())
}

fn ask_everything(call: &Call<'_>) -> Result<CallToolResponse, ErrorData> {
    let round = round(call)?;
    let keys = ["user_name", "greeting", "client_roots"];
    if round > 0 && keys.iter().all(|key| response(call, key).is_some()) {
        return Ok(says("got all three".to_owned()));
    }
    let [user_name, greeting, client_roots] = keys;
    let questions = [
        (user_name, name()),
        (greeting, ask::sample("Generate a greeting")),
        (client_roots, ask::roots()),
    ];
    Ok(ask::required(questions, Some(seal(1)?)).into())
}

fn ask_in_rounds(call: &Call<'_>) -> Result<CallToolResponse, ErrorData> {
    let (key, question) = match round(call)? {
        0 => (
            "step1",
            ask::field("Step 1: What is your name?", "name", "string"),
        ),
        1 => (
            "step2",
            ask::field("Step 2: What is your favorite color?", "color", "string"),
        ),
        _ => return Ok(says("all rounds are done".to_owned())),
    };
    let state = seal(round(call)? + 1)?;
    Ok(ask::required([(key, question)], Some(state)).into())
}

/// Asks only for what the client said it can do.
fn ask_what_is_declared(call: &Call<'_>) -> CallToolResponse {
    let can = call.context.client_capabilities().unwrap_or_default();
    let questions: InputRequests = [
        ("user_name", can.elicitation.is_some(), name()),
        (
            "greeting",
            can.sampling.is_some(),
            ask::sample("Generate a greeting"),
        ),
        ("client_roots", can.roots.is_some(), ask::roots()),
    ]
    .into_iter()
    .filter(|(_, declared, _)| *declared)
    .map(|(key, _, question)| (key.to_owned(), question))
    .collect();
    if questions.is_empty() || call.request.input_responses.is_some() {
        return says("nothing more to ask".to_owned());
    }
    InputRequiredResult::from_input_requests(questions).into()
}

fn name() -> InputRequest {
    ask::field("What is your name?", "name", "string")
}

fn response<'a>(call: &'a Call<'_>, key: &str) -> Option<&'a JsonObject> {
    ask::response(call.request.input_responses.as_ref(), key)
}

/// How often the client was asked before this call, by the state that it carried back.
///
/// # Errors
///
/// A state that is not exactly as it was given out.
fn round(call: &Call<'_>) -> Result<u64, ErrorData> {
    let Some(sealed) = call.request.request_state.as_deref() else {
        return Ok(0);
    };
    let state: Value = CODEC
        .open_json(sealed)
        .map_err(|_| ErrorData::invalid_params("`requestState` is not as it was sent", None))?;
    Ok(state["round"].as_u64().unwrap_or(0))
}

fn seal(round: u64) -> Result<String, ErrorData> {
    CODEC
        .seal_json(&json!({ "round": round }))
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn says(text: String) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

/// The key is no secret: this server guards nothing.
static CODEC: LazyLock<RequestStateCodec> = LazyLock::new(|| {
    RequestStateCodec::new(b"a fixture has no secrets to keep, but seals them".to_vec())
});
