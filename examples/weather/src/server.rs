//! The answers to a client's messages, in both eras.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::refusal::{INVALID_PARAMS, JsonObject, RESOURCE_NOT_FOUND, Refusal};
use crate::{prompts, resources, tools};

/// The response to one line of the client; none to a notification or a response.
pub(crate) fn respond(line: &[u8]) -> Option<Value> {
    let Ok(message) = serde_json::from_slice::<Message>(line) else {
        return Some(error(
            &Value::Null,
            Refusal::new(PARSE_ERROR, "the line is not a JSON-RPC message"),
        ));
    };
    let (method, id) = (message.method?, message.id?);
    let none = JsonObject::new();
    let params = message.params.as_object().unwrap_or(&none);
    Some(match result(&method, params) {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(refusal) => error(&id, refusal),
    })
}

#[derive(Debug, Deserialize)]
struct Message {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
}

fn error(id: &Value, refusal: Refusal) -> Value {
    let mut error = json!({ "code": refusal.code, "message": refusal.message });
    if let Some(data) = refusal.data {
        error["data"] = data;
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

/// The result of a request. Clients of 2026-07-28 name their version in each one.
fn result(method: &str, params: &JsonObject) -> Result<Value, Refusal> {
    let meta = params.get("_meta");
    match meta.and_then(|meta| meta.get("io.modelcontextprotocol/protocolVersion")) {
        None => legacy_result(method, params),
        Some(version) if version == MODERN_VERSION => modern_result(method, params),
        Some(version) => Err(
            Refusal::new(UNSUPPORTED_VERSION, "Unsupported protocol version")
                .with_data(json!({ "requested": version, "supported": [MODERN_VERSION] })),
        ),
    }
}

fn legacy_result(method: &str, params: &JsonObject) -> Result<Value, Refusal> {
    match method {
        "initialize" => {
            let requested = params.get("protocolVersion").and_then(Value::as_str);
            let known = LEGACY_VERSIONS
                .iter()
                .find(|known| Some(**known) == requested);
            Ok(json!({
                "protocolVersion": known.unwrap_or(&LEGACY_VERSIONS[0]),
                "capabilities": capabilities(),
                "serverInfo": server_info(),
                "instructions": INSTRUCTIONS,
            }))
        }
        "ping" => Ok(json!({})),
        _ => shared_result(method, params),
    }
}

fn modern_result(method: &str, params: &JsonObject) -> Result<Value, Refusal> {
    let result = match method {
        "server/discover" => json!({
            "supportedVersions": [MODERN_VERSION],
            "capabilities": capabilities(),
            "instructions": INSTRUCTIONS,
            "_meta": { "io.modelcontextprotocol/serverInfo": server_info() },
        }),
        _ => shared_result(method, params).map_err(|refusal| match refusal.code {
            RESOURCE_NOT_FOUND => Refusal {
                code: INVALID_PARAMS,
                ..refusal
            },
            _ => refusal,
        })?,
    };
    let mut complete = json!({ "resultType": "complete" });
    if matches!(method, "server/discover" | "resources/read") || method.ends_with("/list") {
        complete["ttlMs"] = json!(0);
        complete["cacheScope"] = json!("private");
    }
    if let (Value::Object(complete), Value::Object(result)) = (&mut complete, result) {
        complete.extend(result);
    }
    Ok(complete)
}

/// The results that both eras have.
fn shared_result(method: &str, params: &JsonObject) -> Result<Value, Refusal> {
    let text = |key| match params.get(key) {
        Some(Value::String(text)) => Ok(text.as_str()),
        _ => Err(Refusal::invalid_params(format!("`{key}` is not a string"))),
    };
    let none = JsonObject::new();
    let arguments = || {
        params
            .get("arguments")
            .and_then(Value::as_object)
            .unwrap_or(&none)
    };
    match method {
        "tools/list" => Ok(json!({ "tools": tools::all() })),
        "tools/call" => tools::call(text("name")?, arguments()),
        "resources/list" => Ok(json!({ "resources": resources::all() })),
        "resources/templates/list" => Ok(json!({ "resourceTemplates": [] })),
        "resources/read" => resources::read(text("uri")?),
        "prompts/list" => Ok(json!({ "prompts": prompts::all() })),
        "prompts/get" => prompts::expand(text("name")?, arguments()),
        "completion/complete" => Ok(prompts::complete(params)),
        _ => Err(Refusal::new(METHOD_NOT_FOUND, method)),
    }
}

fn capabilities() -> Value {
    json!({ "completions": {}, "prompts": {}, "resources": {}, "tools": {} })
}

fn server_info() -> Value {
    json!({ "name": "weather", "title": "Weather Service", "version": "2.0.0" })
}

const MODERN_VERSION: &str = "2026-07-28";
/// The versions with `initialize`, the newest first.
const LEGACY_VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const PARSE_ERROR: i64 = -32700;
const METHOD_NOT_FOUND: i64 = -32601;
const UNSUPPORTED_VERSION: i64 = -32022;

const INSTRUCTIONS: &str = "\
Current conditions and five-day forecasts for cities in Switzerland. Use get_weather for what it is like \
now and get_forecast for planning ahead. Both take the name of a city; an unknown city is answered with \
the list of known ones. The map resources describe the surrounding landscape as GeoJSON.";
