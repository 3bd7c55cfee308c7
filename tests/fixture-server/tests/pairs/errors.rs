//! What goes wrong, and who says so.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::pair::Pair;

/// An error of the protocol that is the server's own.
pub(crate) async fn of_protocol(pair: Arc<Pair>) -> String {
    let arguments = json!({"code": -32_050, "message": "as asked", "data": {"a": [1.0]}});
    call(&pair, "rpc_error", arguments).await
}

/// An error of the tool, as a result.
pub(crate) async fn of_tool(pair: Arc<Pair>) -> String {
    call(&pair, "fail", json!({"message": "as asked"})).await
}

/// Arguments that the tool refuses.
pub(crate) async fn of_arguments(pair: Arc<Pair>) -> String {
    call(&pair, "add", json!({"a": "one"})).await
}

pub(crate) async fn unknown_tool(pair: Arc<Pair>) -> String {
    call(&pair, "nobody", json!({})).await
}

pub(crate) async fn unknown_method(pair: Arc<Pair>) -> String {
    let answer = pair.client().await.ask("no/such", json!({})).await.answer;
    shown(&answer["error"])
}

async fn call(pair: &Pair, tool: &str, arguments: Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    let answer = pair.client().await.ask("tools/call", params).await.answer;
    if let Some(error) = answer.get("error") {
        return shown(error);
    }
    let result = &answer["result"];
    format!(
        "isError {}: {}",
        result["isError"], result["content"][0]["text"]
    )
}

/// An error on one line.
pub(crate) fn shown(error: &Value) -> String {
    let (code, message) = (&error["code"], &error["message"]);
    match error.get("data") {
        Some(data) => format!("{code} {message} {data}"),
        None => format!("{code} {message}"),
    }
}
