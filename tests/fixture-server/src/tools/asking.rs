//! Tools that send the client a request of their own while it waits for them, as sessions allow; without a session
//! they ask by their result.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, CreateMessageResult,
    ElicitRequest, ElicitRequestParams, ElicitResult, InputRequest,
};
use serde_json::{Value, json};

use crate::ask;
use crate::tools::Call;

pub(crate) async fn call(call: &Call<'_>) -> Option<Result<CallToolResponse, ErrorData>> {
    let answer = match call.name() {
        "test_sampling" => sample(call).await,
        "test_elicitation" => match call.text("message") {
            Ok(message) => elicit(call, ask::form(message, schema("user and email"))).await,
            Err(error) => Err(error),
        },
        "test_elicitation_sep1034_defaults" => {
            elicit(
                call,
                ask::form("Everything has a default", schema("defaults")),
            )
            .await
        }
        "test_elicitation_sep1330_enums" => {
            elicit(call, ask::form("Choose in five ways", schema("choices"))).await
        }
        "test_missing_capability" => needs_sampling(call).map(Into::into),
        _ => return None,
    };
    Some(answer)
}

async fn sample(call: &Call<'_>) -> Result<CallToolResponse, ErrorData> {
    let prompt = call.text("prompt")?;
    if !ask::has_session(&call.context) {
        let answer = answered(call).map(serde_json::from_value::<CreateMessageResult>);
        return Ok(match answer.and_then(Result::ok) {
            Some(message) => says(format!("LLM response: {}", first_text(&message))).into(),
            None => ask::required([(KEY, ask::sample(prompt))], None).into(),
        });
    }
    let request = ask::sampling(prompt);
    let result = match call.context.peer.create_message(request).await {
        Ok(message) => says(format!("LLM response: {}", first_text(&message))),
        Err(error) => fails(format!("the client did not sample: {error}")),
    };
    Ok(result.into())
}

/// What a client without a session says to the one thing that it was asked.
fn answered(call: &Call<'_>) -> Option<Value> {
    call.request.input_responses.as_ref()?.get(KEY).cloned()
}

const KEY: &str = "asked";

async fn elicit(call: &Call<'_>, form: ElicitRequestParams) -> Result<CallToolResponse, ErrorData> {
    if !ask::has_session(&call.context) {
        let answer = answered(call).map(serde_json::from_value::<ElicitResult>);
        return Ok(match answer.and_then(Result::ok) {
            Some(answer) => user_said(answer).into(),
            None => {
                let question = InputRequest::Elicitation(ElicitRequest::new(form));
                ask::required([(KEY, question)], None).into()
            }
        });
    }
    let result = match call.context.peer.create_elicitation(form).await {
        Ok(answer) => user_said(answer),
        Err(error) => fails(format!("the client did not ask its user: {error}")),
    };
    Ok(result.into())
}

fn user_said(answer: ElicitResult) -> CallToolResult {
    says(format!(
        "User response: action={}, content={}",
        json!(answer.action).as_str().unwrap_or_default(),
        answer.content.unwrap_or_default()
    ))
}

fn needs_sampling(call: &Call<'_>) -> Result<CallToolResult, ErrorData> {
    let capabilities = call.context.client_capabilities().unwrap_or_default();
    if capabilities.sampling.is_none() {
        return Err(ErrorData::missing_required_client_capability(
            ClientCapabilities::builder().enable_sampling().build(),
        ));
    }
    Ok(says("the client can sample".to_owned()))
}

fn first_text(result: &CreateMessageResult) -> String {
    let content = result.message.content.first();
    let text = content.and_then(|content| content.as_text());
    text.map_or_else(|| "no text".to_owned(), |text| text.text.clone())
}

fn says(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn fails(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// The schema of the form `name`. "defaults" has a field of each primitive type with a default (SEP-1034), "choices" the
/// five forms of a choice (SEP-1330).
fn schema(name: &str) -> Value {
    let mut forms: Value = serde_json::from_str(include_str!("forms.json")).expect("JSON");
    forms[name].take()
}
