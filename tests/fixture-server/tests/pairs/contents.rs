//! Resources, prompts and completions.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::pair::Pair;

pub(crate) async fn text(pair: Arc<Pair>) -> String {
    read(&pair, "test://static-text").await
}

pub(crate) async fn binary(pair: Arc<Pair>) -> String {
    read(&pair, "test://static-binary").await
}

pub(crate) async fn template(pair: Arc<Pair>) -> String {
    read(&pair, "test://note/a%20b").await
}

pub(crate) async fn no_resource(pair: Arc<Pair>) -> String {
    read(&pair, "test://nowhere").await
}

async fn read(pair: &Pair, uri: &str) -> String {
    let answer = pair
        .client()
        .await
        .ask("resources/read", json!({"uri": uri}))
        .await
        .answer;
    if let Some(error) = answer.get("error") {
        return crate::errors::shown(error);
    }
    let contents = &answer["result"]["contents"][0];
    assert_eq!(contents["uri"], uri);
    let (kind, text, blob) = (&contents["mimeType"], &contents["text"], &contents["blob"]);
    let size = blob.as_str().map(str::len);
    size.map_or_else(
        || format!("{kind} {text}"),
        |size| format!("{kind} {size} characters"),
    )
}

pub(crate) async fn prompt(pair: Arc<Pair>) -> String {
    let arguments = json!({"arg1": "one", "arg2": "\u{fc}"});
    get(&pair, "test_prompt_with_arguments", arguments).await
}

pub(crate) async fn prompt_with_resource(pair: Arc<Pair>) -> String {
    let arguments = json!({"resourceUri": "test://static-text"});
    get(&pair, "test_prompt_with_embedded_resource", arguments).await
}

pub(crate) async fn no_prompt(pair: Arc<Pair>) -> String {
    get(&pair, "nobody", json!({})).await
}

async fn get(pair: &Pair, name: &str, arguments: Value) -> String {
    let params = json!({"name": name, "arguments": arguments});
    let answer = pair.client().await.ask("prompts/get", params).await.answer;
    if let Some(error) = answer.get("error") {
        return crate::errors::shown(error);
    }
    let messages = answer["result"]["messages"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let reported = messages.iter().map(|message| {
        let content = &message["content"];
        match content["type"].as_str() {
            Some("text") => format!("{}: {}", message["role"], content["text"]),
            _ => format!(
                "{}: {} {}",
                message["role"], content["type"], content["resource"]["uri"]
            ),
        }
    });
    reported.collect::<Vec<_>>().join(", ")
}

pub(crate) async fn completion(pair: Arc<Pair>) -> String {
    let reference = json!({"type": "ref/prompt", "name": "test_prompt_with_arguments"});
    complete(&pair, reference, json!({"name": "arg1", "value": "par"})).await
}

pub(crate) async fn completion_of_template(pair: Arc<Pair>) -> String {
    let reference = json!({"type": "ref/resource", "uri": "test://template/{id}/data"});
    complete(&pair, reference, json!({"name": "id", "value": "12"})).await
}

async fn complete(pair: &Pair, reference: Value, argument: Value) -> String {
    let params = json!({"ref": reference, "argument": argument});
    let answer = pair
        .client()
        .await
        .ask("completion/complete", params)
        .await
        .answer;
    answer["result"]["completion"]["values"].to_string()
}
