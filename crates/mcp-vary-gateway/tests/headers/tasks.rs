//! Tasks on servers that get exchanged tokens: each request about a task has the token of the client that makes it.

use std::collections::BTreeSet;

use super::exchanged::{Provider, user};
use crate::support::people::PersonClient;
use crate::support::*;

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A server of `era` whose tool `job` becomes a task that ends when it is cancelled.
async fn server(era: Era) -> ScriptedServer {
    let status = Mutex::new("working");
    ScriptedServer::start(move |seen| {
        let capabilities = match era {
            Era::Legacy => {
                let requests = json!({"tools": {"call": {}}});
                json!({"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": requests}})
            }
            Era::Modern => json!({"tools": {}, "extensions": {TASKS: {}}}),
        };
        let mut status = status.lock().unwrap();
        if seen.method() == "tasks/cancel" {
            *status = "cancelled";
        }
        let mut task = json!({"taskId": "t-1", "status": *status, "ttl": 60_000, "ttlMs": 60_000});
        let result = match (seen.method(), era) {
            ("initialize", Era::Legacy) => {
                let reply = seen.answer(&introduced("jobs", capabilities));
                return Some(reply.with_header("mcp-session-id", "s-1"));
            }
            ("server/discover", Era::Modern) => discovered(capabilities),
            ("tools/list", _) => json!({"tools": [
                {"name": "job", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
            ]}),
            ("tools/call", Era::Legacy) => json!({"task": task}),
            ("tools/call", Era::Modern) => {
                task["resultType"] = json!("task");
                task
            }
            ("tasks/cancel" | "tasks/update", Era::Modern) => json!({"resultType": "complete"}),
            ("tasks/get" | "tasks/cancel", _) => task,
            ("tasks/list", Era::Legacy) => json!({"tasks": [task]}),
            ("tasks/result", _) => return Some(Reply::silence()),
            _ => return None,
        };
        Some(seen.answer(&result))
    })
    .await
}

/// The token that ends last is the one of requests without a client, and would be that of all.
#[tokio::test]
async fn each_request_about_a_task_has_the_token_of_its_own_client() {
    for (client, era) in [
        (Era::Legacy, Era::Legacy),
        (Era::Modern, Era::Legacy),
        (Era::Modern, Era::Modern),
    ] {
        let provider = Provider::start().await;
        let adapt = |config| provider.in_front_of(config);
        let harness = Harness::behind_one(server(era).await, adapt).await;
        let laptop = provider.token_on("ann", "laptop", 1_000_600);
        let phone = provider.token_on("ann", "phone", 1_000_500);
        let mut call = tool("job");
        let capabilities = match client {
            Era::Legacy => {
                call["task"] = json!({"ttl": 60_000});
                json!({})
            }
            Era::Modern => json!({"extensions": {TASKS: {}}}),
        };
        let ann = PersonClient::open(harness.address, client, &laptop, capabilities).await;
        let ask = async |token: &str, method: &str, params: Value| {
            let answer = ann.ask(token, method, params).await;
            assert!(answer["result"].is_object(), "{method}: {answer}");
            answer
        };
        let created = ask(&laptop, "tools/call", call).await;
        let id = created["result"]["task"]["taskId"].as_str();
        let id = id.or(created["result"]["taskId"].as_str()).unwrap();
        let about = || json!({"taskId": id, "inputResponses": {}});
        ask(&phone, "tasks/get", about()).await;
        match client {
            Era::Legacy => ask(&phone, "tasks/list", json!({})).await,
            Era::Modern => ask(&phone, "tasks/update", about()).await,
        };
        ask(&phone, "tasks/cancel", about()).await;
        for seen in harness.peer.received() {
            // The gateway itself waits for the result.
            let is_of_client =
                seen.method().starts_with("tasks/") && seen.method() != "tasks/result";
            if is_of_client {
                assert_eq!(
                    user(&seen),
                    "ann-phone",
                    "{client:?} {era:?}: {}",
                    seen.method()
                );
            }
        }
        let calls = harness.peer.of("tools/call");
        let callers: BTreeSet<_> = calls.iter().map(user).collect();
        assert_eq!(callers, BTreeSet::from(["ann-laptop"]));
    }
}
