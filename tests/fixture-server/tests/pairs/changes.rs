//! What a client hears beside its requests.

use std::sync::Arc;

use serde_json::json;

use crate::client::Client;
use crate::pair::{Era, Pair};

/// A tool comes and goes.
pub(crate) async fn of_tools(pair: Arc<Pair>) -> String {
    let mut client = pair.client().await;
    client.listen(json!({"toolsListChanged": true})).await;
    let mut reported = Vec::new();
    for tool in ["add_tool", "remove_tool"] {
        client.call(tool, json!({"name": "newcomer"})).await;
        let sent = told_of(&mut client, "notifications/tools/list_changed").await;
        let params = json!({"name": "newcomer", "arguments": {}});
        let answer = client.ask("tools/call", params).await.answer;
        let is_there = answer.get("result").is_some();
        reported.push(format!(
            "{sent} {}",
            if is_there {
                "and it is there"
            } else {
                "and it is gone"
            }
        ));
    }
    reported.join(", ")
}

/// A resource has other contents.
pub(crate) async fn of_a_resource(pair: Arc<Pair>) -> String {
    const WATCHED: &str = "test://watched-resource";
    let mut client = pair.client().await;
    client
        .listen(json!({"resourceSubscriptions": [WATCHED]}))
        .await;
    if client.era == Era::Legacy {
        let answer = client
            .ask("resources/subscribe", json!({"uri": WATCHED}))
            .await
            .answer;
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
    client
        .call("update_resource", json!({"uri": "test://static-text"}))
        .await;
    client
        .call("update_resource", json!({"uri": WATCHED}))
        .await;
    told_of(&mut client, "notifications/resources/updated").await
}

/// The next message beside the requests about the first variant, which should be of this method.
async fn told_of(client: &mut Client, method: &str) -> String {
    loop {
        let sent = client.received().await;
        let params = &sent["params"];
        let variant = &params["_meta"]["io.modelcontextprotocol/server-variant"];
        if variant != "standard" {
            continue;
        }
        if sent["method"] != *method {
            return sent.to_string();
        }
        let uri = params["uri"].as_str();
        return uri.map_or_else(|| "told".to_owned(), |uri| format!("told of {uri}"));
    }
}
