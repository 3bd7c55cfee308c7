//! Tasks on servers that get exchanged tokens: each request about a task has the token of the client that makes it.

use std::collections::BTreeSet;

use super::exchanged::{Provider, user};
use crate::support::people::bearer;
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

/// A user on two devices, whose clients are of `era`.
struct User<'a> {
    harness: &'a Harness,
    era: Era,
    session: String,
}

impl<'a> User<'a> {
    async fn new(harness: &'a Harness, era: Era, token: &str) -> Self {
        let open = HttpRequest::initialize(&json!({}));
        let opened = harness.connect().await.ask(&bearer(open, token)).await;
        Self {
            harness,
            era,
            session: opened.header("mcp-session-id").unwrap().to_owned(),
        }
    }

    async fn ask(&self, token: &str, method: &str, params: Value) -> Value {
        let post = match self.era {
            Era::Legacy => {
                let message = request(json!(1), method, params).to_string();
                HttpRequest::of(&self.session, message)
            }
            Era::Modern => {
                let capabilities = json!({"extensions": {TASKS: {}}});
                HttpRequest::modern_request_as(method, params, &capabilities)
            }
        };
        let answer = self.harness.connect().await.ask(&bearer(post, token)).await;
        let answer = answer.json();
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer
    }
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
        let ann = User::new(&harness, client, &laptop).await;
        let mut call = json!({"name": "job", "arguments": {}});
        if client == Era::Legacy {
            call["task"] = json!({"ttl": 60_000});
        }
        let created = ann.ask(&laptop, "tools/call", call).await;
        let id = created["result"]["task"]["taskId"].as_str();
        let id = id.or(created["result"]["taskId"].as_str()).unwrap();
        let about = || json!({"taskId": id, "inputResponses": {}});
        ann.ask(&phone, "tasks/get", about()).await;
        match client {
            Era::Legacy => ann.ask(&phone, "tasks/list", json!({})).await,
            Era::Modern => ann.ask(&phone, "tasks/update", about()).await,
        };
        ann.ask(&phone, "tasks/cancel", about()).await;
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
