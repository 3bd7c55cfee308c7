//! The two tools: the weather now, without an output schema, and the forecast, with one.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::cities::{self, City, DATES};

/// The tools as listed.
pub(crate) fn all() -> Vec<Tool> {
    vec![get_weather(), get_forecast()]
}

/// Calls the tool `name`.
///
/// # Errors
///
/// An unknown tool, and arguments of the wrong type, are invalid parameters. An unknown city is not
/// a protocol error: the result reports it and lists the known cities.
pub(crate) fn call(name: &str, arguments: &JsonObject) -> Result<CallToolResult, ErrorData> {
    let answer: fn(&City, &JsonObject) -> Result<Value, ErrorData> = match name {
        "get_weather" => weather,
        "get_forecast" => forecast,
        _ => {
            return Err(ErrorData::invalid_params(
                format!("unknown tool: {name}"),
                None,
            ));
        }
    };
    let Some(location) = arguments.get("location").and_then(Value::as_str) else {
        return Err(ErrorData::invalid_params(
            "`location` is missing or no string; give the name of a city",
            None,
        ));
    };
    match cities::find(location) {
        Some(city) => answer(city, arguments).map(CallToolResult::structured),
        None => Ok(unknown_city(location)),
    }
}

fn weather(city: &City, _arguments: &JsonObject) -> Result<Value, ErrorData> {
    let now = &city.now;
    Ok(json!({
        "location": city.name,
        "temperature_c": now.temperature_c,
        "humidity_percent": now.humidity_percent,
        "precipitation_probability": now.precipitation_probability,
        "wind_speed_kmh": now.wind_speed_kmh,
        "uv_index": now.uv_index,
        "forecast_summary": now.forecast_summary,
    }))
}

fn forecast(city: &City, arguments: &JsonObject) -> Result<Value, ErrorData> {
    let wanted = days(arguments)?;
    let days: Vec<Value> = DATES
        .iter()
        .zip(&city.days)
        .take(wanted)
        .map(|(date, day)| {
            json!({
                "date": date,
                "low_c": day.low_c,
                "high_c": day.high_c,
                "condition": day.condition,
                "precipitation_probability": day.precipitation_probability,
            })
        })
        .collect();
    Ok(json!({ "location": city.name, "days": days }))
}

/// The requested number of days; all days by default.
fn days(arguments: &JsonObject) -> Result<usize, ErrorData> {
    let Some(given) = arguments.get("days") else {
        return Ok(DATES.len());
    };
    given
        .as_u64()
        .and_then(|days| usize::try_from(days).ok())
        .filter(|days| (1..=DATES.len()).contains(days))
        .ok_or_else(|| {
            ErrorData::invalid_params(
                format!(
                    "`days` is {given}; give a whole number from 1 to {}",
                    DATES.len()
                ),
                None,
            )
        })
}

fn unknown_city(location: &str) -> CallToolResult {
    let known = cities::names().collect::<Vec<_>>().join(", ");
    CallToolResult::error(vec![ContentBlock::text(format!(
        "unknown city {location:?}; known cities are {known}"
    ))])
}

fn get_weather() -> Tool {
    let input = json!({
        "type": "object",
        "properties": { "location": location() },
        "required": ["location"],
        "additionalProperties": false
    });
    Tool::new("get_weather", GET_WEATHER, object(input))
        .with_title("Current weather")
        .with_annotations(read_only("Current weather"))
}

fn get_forecast() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "location": location(),
            "days": {
                "type": "integer",
                "description": "How many days to return, counted from today. Today is day 1, so 1 returns \
                    only today's extremes and 5 the whole forecast. Ask for as few as you need.",
                "minimum": 1,
                "maximum": DATES.len(),
                "default": DATES.len()
            }
        },
        "required": ["location"],
        "additionalProperties": false
    });
    Tool::new("get_forecast", GET_FORECAST, object(input))
        .with_title("Five-day forecast")
        .with_raw_output_schema(object(forecast_schema()).into())
        .with_annotations(read_only("Five-day forecast"))
}

fn location() -> Value {
    json!({
        "type": "string",
        "description": "The city to look up, by its English, German, French or Italian name, for example \
            \"Bern\", \"Zürich\" or \"Genève\". Upper and lower case do not matter. Do not add the canton \
            or the country.",
        "minLength": 1,
        "examples": ["Bern", "Geneva", "Zermatt"]
    })
}

fn forecast_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "location": {
                "type": "string",
                "description": "The city's English name, whichever name was asked for."
            },
            "days": {
                "type": "array",
                "description": "One entry per day, today first, without gaps.",
                "items": {
                    "type": "object",
                    "properties": {
                        "date": {
                            "type": "string",
                            "format": "date",
                            "description": "The calendar day in the city's own time zone."
                        },
                        "low_c": {
                            "type": "integer",
                            "description": "The lowest temperature, in degrees Celsius."
                        },
                        "high_c": {
                            "type": "integer",
                            "description": "The highest temperature, in degrees Celsius."
                        },
                        "condition": {
                            "type": "string",
                            "description": "The prevailing weather in a few words."
                        },
                        "precipitation_probability": {
                            "type": "number",
                            "description": "The chance of rain or snow, from 0 to 1.",
                            "minimum": 0,
                            "maximum": 1
                        }
                    },
                    "required": [
                        "date", "low_c", "high_c", "condition", "precipitation_probability"
                    ]
                }
            }
        },
        "required": ["location", "days"]
    })
}

/// Read-only lookups in a fixed table.
fn read_only(title: &str) -> ToolAnnotations {
    ToolAnnotations::with_title(title)
        .read_only(true)
        .destructive(false)
        .idempotent(true)
        .open_world(false)
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}

const GET_WEATHER: &str = "\
Get the current weather conditions for a city in Switzerland: temperature in degrees Celsius, relative \
humidity in percent, the probability of precipitation in the next two hours (0 to 1), wind speed in \
kilometres per hour, the UV index, and one sentence on how the weather will develop.

Use this tool when the user asks what the weather is like now, whether to take an umbrella, how cold it is \
or what to wear. Do not use it for planning more than a few hours ahead; use get_forecast for that. If you \
need several cities, call it once for each.

The server is a demonstration: its values are plausible, but fixed, so asking again gives the same answer. If \
the city is not known, the result is an error that lists the cities that are; pick the nearest of them and \
say so.";

const GET_FORECAST: &str = "\
Get the weather forecast for a city in Switzerland, day by day, for up to five days including today. Every \
day has its date, the lowest and highest temperature in degrees Celsius, the prevailing condition in a few \
words and the probability of precipitation (0 to 1).

Use this tool when the user plans ahead: a hike, a journey, an event outdoors, the best day of the week for \
something. For the conditions at this moment use get_weather, which is more precise. Compare days by their \
probability of precipitation first and by temperature second, unless the user says otherwise.

The days are those of a week in February 2026, whatever today is, since the server is a demonstration. If the \
city is not known, the result is an error that lists the cities that are.";
