//! What the mock server answers to each request.

use serde_json::{Value, json};

use crate::era::Era;
use crate::extension::SELECTOR;
use crate::json::{at, text_at};
use crate::observation::Scenario;

use super::MockServer;
use super::declarations::{capabilities, offered};

/// An error: code, message, data.
#[derive(Debug)]
struct Refusal(i64, &'static str, Value);

/// The text in the `content` of each result of a tool.
pub(crate) const CONTENT_MARK: &str = "content-9d2f";

/// The text in the `structuredContent` of each result of a tool.
pub(crate) const STRUCTURE_MARK: &str = "structure-4b7e";

impl MockServer {
    /// The response to `message`, if it is a request.
    pub(super) fn answer(&self, message: &Value) -> Option<Value> {
        let id = message.get("id")?;
        let method = text_at(message, &["method"])?;
        // The end of its stream answers it.
        if method == "subscriptions/listen" && self.era == Era::Modern {
            return None;
        }
        let params = message.get("params").unwrap_or(&Value::Null);
        Some(match self.result(method, params) {
            Ok(mut result) => {
                if self.era == Era::Modern {
                    complete(&mut result);
                }
                json!({"jsonrpc": "2.0", "id": id, "result": result})
            }
            Err(Refusal(code, message, data)) => {
                let error = json!({"code": code, "message": message, "data": data});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        })
    }

    fn result(&self, method: &str, params: &Value) -> Result<Value, Refusal> {
        match (method, self.era) {
            ("initialize", Era::Legacy) => {
                return Ok(json!({
                    "protocolVersion": Era::Legacy.revision(),
                    "capabilities": capabilities(self.scenario),
                    "serverInfo": server_info(),
                }));
            }
            ("initialize", Era::Modern) => {
                let data = json!({"supported": [Era::Modern.revision()], "requested": params.get("protocolVersion")});
                return Err(Refusal(-32022, "Unsupported protocol version", data));
            }
            ("server/discover", Era::Modern) => {
                return Ok(json!({
                    "supportedVersions": [Era::Modern.revision()],
                    "capabilities": capabilities(self.scenario),
                    "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
                }));
            }
            ("ping", Era::Legacy) => return Ok(json!({})),
            _ => {}
        }
        let variant = self.select(params)?;
        let mut result = item(method, params, &variant)?;
        if let (Scenario::NoExtensions, Some(result)) = (self.scenario, result.as_object_mut()) {
            // What a server says that knows nothing of negotiation.
            result.remove("structuredContent");
        }
        Ok(result)
    }

    /// The variant of a request.
    fn select(&self, params: &Value) -> Result<String, Refusal> {
        let selector = at(params, &["_meta", SELECTOR]);
        let ids = offered(self.scenario);
        let refused = |selector: Option<&Value>| {
            let data = json!({"requestedVariant": selector, "availableVariants": ids, "activeVariant": ids.first()});
            Refusal(-32602, "Invalid server variant", data)
        };
        match (self.scenario, selector) {
            (Scenario::RefusedRequests, _) | (Scenario::RefusedSelectors, Some(_)) => {
                Err(refused(selector))
            }
            (_, Some(_)) if ids.is_empty() => {
                let message = "Server variants not supported";
                Err(Refusal(-32602, message, json!({})))
            }
            (_, Some(selector)) => {
                let known = selector.as_str().filter(|id| ids.contains(id));
                known
                    .map(str::to_owned)
                    .ok_or_else(|| refused(Some(selector)))
            }
            (_, None) => Ok(ids.first().copied().unwrap_or_default().to_owned()),
        }
    }
}

/// The result of a request that runs under `variant`.
fn item(method: &str, params: &Value, variant: &str) -> Result<Value, Refusal> {
    Ok(match method {
        "tools/list" => return tools(params, variant),
        "resources/list" => {
            let resource =
                json!({"uri": "file:///notes", "name": "notes", "mimeType": "text/plain"});
            json!({"resources": [resource]})
        }
        "resources/templates/list" => json!({"resourceTemplates": []}),
        "prompts/list" => json!({"prompts": [{"name": "greet", "description": "Greets."}]}),
        "resources/read" => {
            let uri = params.get("uri");
            json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": "A note."}]})
        }
        "prompts/get" => {
            let content = json!({"type": "text", "text": "Say hello."});
            json!({"messages": [{"role": "user", "content": content}]})
        }
        "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" => json!({}),
        "completion/complete" => json!({"completion": {"values": []}}),
        "tools/call" => return call(params, variant),
        _ => return Err(Refusal(-32601, "Method not found", json!({}))),
    })
}

/// One page of the tools: there are two.
fn tools(params: &Value, variant: &str) -> Result<Value, Refusal> {
    let first_cursor = cursor(variant);
    let names = match params.get("cursor") {
        None | Some(Value::Null) => {
            let tools = [tool("add_numbers", variant), tool("get_weather", variant)];
            return Ok(json!({"tools": tools, "nextCursor": first_cursor}));
        }
        Some(cursor) if cursor.as_str() == Some(&first_cursor) => ["read_log"],
        Some(cursor) => {
            let data =
                json!({"cursor": cursor, "requestedVariant": variant, "activeVariant": variant});
            return Err(Refusal(
                -32602,
                "Cursor invalid for requested variant",
                data,
            ));
        }
    };
    Ok(json!({"tools": names.map(|name| tool(name, variant))}))
}

/// The cursor of the second page, which belongs to its variant.
fn cursor(variant: &str) -> String {
    format!("mock:{variant}:AQ==")
}

/// The variant in which `cursor` was made.
pub(crate) fn variant_of_cursor(cursor: &str) -> Option<&str> {
    cursor.strip_prefix("mock:")?.strip_suffix(":AQ==")
}

fn tool(name: &str, variant: &str) -> Value {
    let (description, properties) = match name {
        "add_numbers" => (
            "Adds two numbers.",
            json!({"a": {"type": "number"}, "b": {"type": "number"}}),
        ),
        "get_weather" => (
            "The weather at a place.",
            json!({"location": {"type": "string"}}),
        ),
        _ => ("The last lines of the log.", json!({})),
    };
    let required: Vec<&String> = properties
        .as_object()
        .map(|members| members.keys().collect())
        .unwrap_or_default();
    let description = match variant {
        "compact" => description.to_owned(),
        _ => format!("{description} The result has a text and a structure."),
    };
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": required},
        "annotations": {"readOnlyHint": true},
    })
}

fn call(params: &Value, variant: &str) -> Result<Value, Refusal> {
    let number = |name| {
        at(params, &["arguments", name])
            .and_then(Value::as_f64)
            .unwrap_or_default()
    };
    let (text, mut structure) = match text_at(params, &["name"]) {
        Some("add_numbers") => {
            let sum = number("a") + number("b");
            (format!("The sum is {sum}."), json!({"sum": sum}))
        }
        Some("get_weather") => {
            let location = at(params, &["arguments", "location"]);
            let weather = json!({"location": location, "temperature_c": 8});
            ("It is 8 °C.".to_owned(), weather)
        }
        Some("read_log") => ("Nothing happened.".to_owned(), json!({"lines": []})),
        name => {
            let data = json!({"requestedTool": name, "activeVariant": variant});
            return Err(Refusal(-32602, "Unknown tool", data));
        }
    };
    structure["mark"] = STRUCTURE_MARK.into();
    let content = json!([{"type": "text", "text": format!("{text} ({CONTENT_MARK})")}]);
    Ok(json!({"content": content, "structuredContent": structure, "isError": false}))
}

/// Adds what every result of a modern server has.
fn complete(result: &mut Value) {
    result["resultType"] = "complete".into();
    result["ttlMs"] = 0.into();
    result["cacheScope"] = "private".into();
}

fn server_info() -> Value {
    json!({"name": "mcp-vary-conformance", "version": env!("CARGO_PKG_VERSION")})
}
