//! The one prompt, and the completion of its argument.

use rmcp::ErrorData;
use rmcp::model::{
    ArgumentInfo, CompleteResult, CompletionInfo, GetPromptResult, JsonObject, Prompt,
    PromptMessage, Reference, Role,
};
use serde_json::Value;

use crate::cities;

/// The prompts as listed.
pub(crate) fn all() -> Vec<Prompt> {
    serde_json::from_str(include_str!("prompts.json")).expect("the file is a list of prompts")
}

/// The messages of the prompt `name`.
///
/// # Errors
///
/// An unknown prompt, and a location that is not a string, are invalid parameters.
pub(crate) fn expand(name: &str, arguments: &JsonObject) -> Result<GetPromptResult, ErrorData> {
    if name != WEATHER_CHECK {
        return Err(ErrorData::invalid_params(
            format!("unknown prompt: {name}"),
            None,
        ));
    }
    let text = match arguments.get(LOCATION) {
        None => {
            "Ask me for a city in Switzerland, then call get_weather with it and tell me what the \
             weather there means for my plans today."
                .to_owned()
        }
        Some(Value::String(location)) => format!(
            "Call get_weather for {location}. Tell me the temperature, the chance of rain and the wind, \
             what to wear, and whether get_forecast shows a better day this week."
        ),
        Some(_) => {
            return Err(ErrorData::invalid_params(
                "`location` is no string; give the name of a city",
                None,
            ));
        }
    };
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description("Check the weather"))
}

/// The names of cities that begin with `argument`; empty for any other argument.
///
/// # Errors
///
/// None in practice: there are far fewer cities than a completion may contain.
pub(crate) fn complete(
    reference: &Reference,
    argument: &ArgumentInfo,
) -> Result<CompleteResult, ErrorData> {
    let ours = matches!(reference, Reference::Prompt(prompt) if prompt.name == WEATHER_CHECK)
        && argument.name == LOCATION;
    let beginning = argument.value.to_lowercase();
    let values = cities::names()
        .filter(|name| ours && name.to_lowercase().starts_with(&beginning))
        .map(str::to_owned)
        .collect();
    CompletionInfo::with_all_values(values)
        .map(CompleteResult::new)
        .map_err(|error| ErrorData::internal_error(error, None))
}

const WEATHER_CHECK: &str = "weather_check";
const LOCATION: &str = "location";
