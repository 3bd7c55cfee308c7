//! The two tools: the weather now, without an output schema, and the forecast, with one.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::cities::{self, City, DAYS};
use crate::refusal::{JsonObject, Refusal};

/// The tools as listed.
pub(crate) fn all() -> &'static Value {
    &TOOLS
}

/// Calls the tool `name`.
///
/// # Errors
///
/// An unknown tool, and arguments of the wrong type, are invalid parameters. An unknown city is not
/// a protocol error: the result reports it and lists the known cities.
pub(crate) fn call(name: &str, arguments: &JsonObject) -> Result<Value, Refusal> {
    let answer: fn(&City, &JsonObject) -> Result<Value, Refusal> = match name {
        "get_weather" => weather,
        "get_forecast" => forecast,
        _ => {
            return Err(Refusal::invalid_params(format!("unknown tool: {name}")));
        }
    };
    let Some(location) = arguments.get("location").and_then(Value::as_str) else {
        return Err(Refusal::invalid_params(
            "`location` is missing or no string; give the name of a city",
        ));
    };
    match cities::find(location) {
        Some(city) => answer(city, arguments).map(|structured| {
            json!({
                "content": [{ "type": "text", "text": structured.to_string() }],
                "structuredContent": structured,
                "isError": false,
            })
        }),
        None => Ok(unknown_city(location)),
    }
}

fn weather(city: &City, _arguments: &JsonObject) -> Result<Value, Refusal> {
    let mut weather = json!({ "location": city.name });
    for (key, value) in &city.now {
        weather[key] = value.clone();
    }
    Ok(weather)
}

fn forecast(city: &City, arguments: &JsonObject) -> Result<Value, Refusal> {
    let days = &city.days[..days(arguments)?];
    Ok(json!({ "location": city.name, "days": days }))
}

/// The requested number of days; all days by default.
fn days(arguments: &JsonObject) -> Result<usize, Refusal> {
    let Some(given) = arguments.get("days") else {
        return Ok(DAYS);
    };
    given
        .as_u64()
        .and_then(|days| usize::try_from(days).ok())
        .filter(|days| (1..=DAYS).contains(days))
        .ok_or_else(|| {
            Refusal::invalid_params(format!(
                "`days` is {given}; give a whole number from 1 to {DAYS}"
            ))
        })
}

fn unknown_city(location: &str) -> Value {
    let known = cities::names().collect::<Vec<_>>().join(", ");
    let text = format!("unknown city {location:?}; known cities are {known}");
    json!({ "content": [{ "type": "text", "text": text }], "isError": true })
}

static TOOLS: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("tools.json")).expect("the file is a list of tools")
});
