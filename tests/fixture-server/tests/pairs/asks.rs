//! What the server asks of the client in the middle of a call: by a request, or by a result.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::Client;
use crate::pair::{Era, Pair};

pub(crate) async fn form(pair: Arc<Pair>) -> String {
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    let can = json!({"elicitation": {}});
    asked(&pair, "elicitation", can, &[("elicitation/create", answer)]).await
}

pub(crate) async fn sampling(pair: Arc<Pair>) -> String {
    let content = json!({"type": "text", "text": "Paris"});
    let answer = json!({"role": "assistant", "content": content, "model": "m"});
    let can = json!({"sampling": {}});
    asked(
        &pair,
        "sampling",
        can,
        &[("sampling/createMessage", answer)],
    )
    .await
}

pub(crate) async fn roots(pair: Arc<Pair>) -> String {
    let answer = json!({"roots": [{"uri": "file:///a"}]});
    let can = json!({"roots": {}});
    asked(&pair, "list_roots", can, &[("roots/list", answer)]).await
}

/// Two questions, one after the other.
pub(crate) async fn twice(pair: Arc<Pair>) -> String {
    let name = json!({"action": "accept", "content": {"name": "Ada"}});
    let color = json!({"action": "accept", "content": {"color": "red"}});
    let answers = [("elicitation/create", name), ("elicitation/create", color)];
    asked(&pair, "multi_round", json!({"elicitation": {}}), &answers).await
}

/// A client that can be asked nothing.
pub(crate) async fn nothing(pair: Arc<Pair>) -> String {
    let mut client = pair.client().await;
    let params = json!({"name": "test_input_required_result_elicitation", "arguments": {}});
    let received = client.ask("tools/call", params).await;
    assert!(received.before.is_empty(), "{:?}", received.before);
    crate::errors::shown(&received.answer["error"])
}

/// What a tool says at last whose questions get these answers.
async fn asked(pair: &Pair, tool: &str, can: Value, answers: &[(&str, Value)]) -> String {
    let mut client = pair.client_that_can(can).await;
    let tool = format!("test_input_required_result_{tool}");
    let answer = match client.era {
        Era::Legacy => by_requests(&mut client, &tool, answers).await,
        Era::Modern => by_results(&mut client, &tool, answers).await,
    };
    match answer.get("error") {
        Some(error) => crate::errors::shown(error),
        None => answer["result"]["content"][0]["text"].to_string(),
    }
}

async fn by_requests(client: &mut Client, tool: &str, answers: &[(&str, Value)]) -> Value {
    let params = json!({"name": tool, "arguments": {}});
    let mut call = client.send("tools/call", params).await;
    for (method, answer) in answers {
        let requested = client.hear(&mut call).await.expect("it is asked");
        if requested["method"] != *method {
            return requested;
        }
        client.reply(&requested, answer.clone()).await;
    }
    client.finish(&mut call).await.answer
}

async fn by_results(client: &mut Client, tool: &str, answers: &[(&str, Value)]) -> Value {
    let mut params = json!({"name": tool, "arguments": {}});
    for (method, answer) in answers {
        let requested = client.ask("tools/call", params.clone()).await.answer;
        let result = &requested["result"];
        let questions = result["inputRequests"].as_object();
        let Some((key, question)) = questions.and_then(|all| all.iter().next()) else {
            return requested;
        };
        assert_eq!(question["method"], *method, "{requested}");
        params["inputResponses"] = json!({key: answer});
        params["requestState"] = result["requestState"].clone();
        if params["requestState"].is_null() {
            params
                .as_object_mut()
                .expect("params")
                .remove("requestState");
        }
    }
    client.ask("tools/call", params).await.answer
}
