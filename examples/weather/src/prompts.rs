//! The one prompt, and the completion of its argument.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::cities;
use crate::refusal::{JsonObject, Refusal};

/// The prompts as listed.
pub(crate) fn all() -> &'static Value {
    &PROMPTS
}

/// The messages of the prompt `name`.
///
/// # Errors
///
/// An unknown prompt, and a location that is not a string, are invalid parameters.
pub(crate) fn expand(name: &str, arguments: &JsonObject) -> Result<Value, Refusal> {
    if name != WEATHER_CHECK {
        return Err(Refusal::invalid_params(format!("unknown prompt: {name}")));
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
            return Err(Refusal::invalid_params(
                "`location` is not a string; give the name of a city",
            ));
        }
    };
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    Ok(json!({ "description": "Check the weather", "messages": [message] }))
}

/// The names of cities that begin with the value; none for another prompt or argument.
pub(crate) fn complete(params: &JsonObject) -> Value {
    let member = |object: &str, key: &str| {
        let value = params.get(object).and_then(|object| object.get(key));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    let is_location =
        member("ref", "name") == WEATHER_CHECK && member("argument", "name") == LOCATION;
    let beginning = member("argument", "value").to_lowercase();
    let values: Vec<&str> = if is_location {
        cities::names()
            .filter(|name| name.to_lowercase().starts_with(&beginning))
            .collect()
    } else {
        Vec::new()
    };
    json!({ "completion": { "total": values.len(), "hasMore": false, "values": values } })
}

static PROMPTS: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("prompts.json")).expect("the file is a list of prompts")
});

const WEATHER_CHECK: &str = "weather_check";
const LOCATION: &str = "location";
