//! The prompts that the suite gets, and the completion of their arguments.

use rmcp::model::{
    ArgumentInfo, CompleteResult, CompletionInfo, ContentBlock, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, JsonObject, Prompt, PromptMessage, Reference,
    ResourceContents, Role,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use crate::ask;
use crate::resources::PIXEL_PNG;

/// The prompts as listed.
pub(crate) fn all() -> Vec<Prompt> {
    serde_json::from_str(include_str!("prompts.json")).expect("the file is a list of prompts")
}

/// The messages of a prompt, or what it needs to know first.
///
/// # Errors
///
/// An unknown prompt and a missing argument are invalid parameters.
pub(crate) async fn get(
    mut request: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let mut answer = expand(request.clone())?;
    for _ in 0..ask::ROUNDS {
        let GetPromptResponse::InputRequired(required) = &answer else {
            break;
        };
        if !ask::has_session(context) {
            break;
        }
        request.input_responses = Some(ask::in_session(context, required).await?);
        request.request_state.clone_from(&required.request_state);
        answer = expand(request.clone())?;
    }
    Ok(answer)
}

fn expand(request: GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![says("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => vec![says(&format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            argument(&arguments, "arg1")?,
            argument(&arguments, "arg2")?
        ))],
        "test_prompt_with_embedded_resource" => embedded(argument(&arguments, "resourceUri")?),
        "test_prompt_with_image" => vec![
            shows(ContentBlock::image(PIXEL_PNG, "image/png")),
            says("Please analyze the image above."),
        ],
        "test_input_required_result_prompt" => {
            let Some(context) = ask::response(request.input_responses.as_ref(), "user_context")
            else {
                let question =
                    ask::field("What context should the prompt use?", "context", "string");
                return Ok(ask::required([("user_context", question)], None).into());
            };
            vec![says(&format!(
                "The context is {}.",
                ask::filled(context, "context")
            ))]
        }
        name => {
            return Err(ErrorData::invalid_params(
                format!("unknown prompt: {name}"),
                None,
            ));
        }
    };
    Ok(GetPromptResult::new(messages)
        .with_description(format!("The prompt {}.", request.name))
        .into())
}

/// Values for `argument` that begin as it does, of any of our prompts and templates.
///
/// # Errors
///
/// None in practice: there are far fewer values than a completion may hold.
pub(crate) fn complete(
    reference: &Reference,
    argument: &ArgumentInfo,
) -> Result<CompleteResult, ErrorData> {
    let known: &[&str] = match reference {
        Reference::Prompt(prompt) if prompt.name == "test_prompt_with_arguments" => {
            &["test", "testing", "paris", "party"]
        }
        Reference::Resource(_) if argument.name == "id" => &["1", "12", "123"],
        _ => &[],
    };
    let values = known
        .iter()
        .filter(|value| value.starts_with(&argument.value))
        .map(ToString::to_string)
        .collect();
    CompletionInfo::with_all_values(values)
        .map(CompleteResult::new)
        .map_err(|error| ErrorData::internal_error(error, None))
}

fn embedded(uri: &str) -> Vec<PromptMessage> {
    let contents = ResourceContents::text("Embedded resource content for testing.", uri);
    vec![
        shows(ContentBlock::resource(
            contents.with_mime_type("text/plain"),
        )),
        says("Please process the embedded resource above."),
    ]
}

fn says(text: &str) -> PromptMessage {
    PromptMessage::new_text(Role::User, text)
}

fn shows(content: ContentBlock) -> PromptMessage {
    PromptMessage::new(Role::User, content)
}

fn argument<'a>(arguments: &'a JsonObject, name: &str) -> Result<&'a str, ErrorData> {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| ErrorData::invalid_params(format!("`{name}` is missing or no string"), None))
}
