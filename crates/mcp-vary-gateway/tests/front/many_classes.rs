//! More kinds of clients than have connections and lists of their own.

use std::path::Path;

use mcp_vary_gateway::{Config, Gateway, Target};
use serde_json::{Value, json};

use crate::support::{Http, Legacy, Post, config, modern, names, request, serve, soon, tool};

const UI: &str = "io.modelcontextprotocol/ui";

/// The configuration before the process that asks.
fn asking() -> Config {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/front/asks.py");
    let script = script.to_str().unwrap().to_owned();
    config(Target::command("python3", [script]))
}

/// Capabilities that no two clients have alike, with which each can be asked for a form.
fn capabilities(count: usize) -> impl Iterator<Item = Value> {
    (0..count).map(|at| {
        let mut capabilities = json!({"elicitation": {}});
        if at > 0 {
            capabilities["extensions"] = json!({UI: {"mimeTypes": [format!("text/x-{at}")]}});
        }
        capabilities
    })
}

fn asks() -> Value {
    let params = json!({"message": "who?", "requestedSchema": {"type": "object"}});
    let mut ask = tool("ask");
    ask["arguments"] = json!({"method": "elicitation/create", "params": params});
    ask
}

/// Makes the client of a session be asked, and answers; what its server got.
async fn is_asked(address: std::net::SocketAddr, client: &mut Legacy) -> Value {
    let mut http = Http::connect(address).await;
    let post = client.post(&request(json!(7), "tools/call", asks()));
    http.send(&post.bytes()).await;
    http.head().await;
    let question = soon(http.event()).await.expect("it is asked");
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
    let post = client.post(&answer);
    assert_eq!(client.http.ask(&post).await.status, 202);
    let answer = soon(http.event()).await.expect("it is answered");
    answer["result"]["reply"]["result"].clone()
}

/// All nine are there at once, so that none of their classes is idle.
#[tokio::test]
async fn nine_clients_that_can_do_different_things_are_all_asked() {
    let gateway = Gateway::start(asking()).await.unwrap();
    let (address, _) = serve(&gateway).await;
    let mut clients = Vec::new();
    for capabilities in capabilities(9) {
        let mut client = Legacy::at(address, "2025-11-25", &capabilities).await;
        let list = client.ask("tools/list", json!({})).await.json();
        assert!(names(&list).contains(&"ask"), "{list}");
        clients.push(client);
    }
    for client in clients.iter_mut().rev() {
        assert_eq!(
            is_asked(address, client).await,
            json!({"action": "decline"})
        );
    }
}

/// Its requests end with what the server asks.
#[tokio::test]
async fn so_are_clients_without_a_session() {
    let gateway = Gateway::start(asking()).await.unwrap();
    let (address, _) = serve(&gateway).await;
    for capabilities in capabilities(9) {
        let call = modern(json!(1), "tools/call", asks(), &capabilities);
        let answer = Http::connect(address).await.ask(&Post::modern(&call)).await;
        let answer = answer.json();
        assert_eq!(
            answer["result"]["resultType"], "input_required",
            "{capabilities}: {answer}"
        );
    }
}

/// A class that can do a part of what the client can is nearer than that of clients that can do nothing.
#[tokio::test]
async fn how_many_classes_there_are_is_a_setting() {
    let mut config = asking();
    let mut limits = config.limits;
    limits.classes = 1;
    config = config.with_limits(limits);
    let gateway = Gateway::start(config).await.unwrap();
    let (address, _) = serve(&gateway).await;
    let mut lists = 0;
    for capabilities in capabilities(3) {
        let mut client = Legacy::at(address, "2025-11-25", &capabilities).await;
        assert_eq!(
            is_asked(address, &mut client).await,
            json!({"action": "decline"})
        );
        let state = client.ask("tools/call", tool("state")).await.json();
        // It is told what the client can do, on the connection that the client has alone.
        assert_eq!(state["result"]["client"], capabilities, "{state}");
        lists += state["result"]["lists"].as_u64().unwrap();
    }
    assert_eq!(lists, 0, "all see the lists of the only class");
}
