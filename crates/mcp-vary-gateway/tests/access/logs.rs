//! What a server logs is for those who may use something of it.

use mcp_vary_upstream::Isolation;

use super::groups::{claims, for_group, named, tokens, with_rules};
use crate::support::*;

/// What is logged on a stream of events, up to the message `last`.
async fn logged_until(stream: &mut RawHttp, last: &str) -> Vec<Value> {
    let mut logged = Vec::new();
    while logged.last().is_none_or(|data| data != last) {
        let message = soon(stream.event()).await.unwrap();
        if message["method"] == "notifications/message" {
            logged.push(message["params"]["data"].clone());
        }
    }
    logged
}

/// Logs `data` on all streams of the server.
fn log(streams: &Streams, data: &str) {
    let params = json!({"level": "error", "data": data});
    let count = streams.notify("notifications/message", &params);
    assert!(count > 0, "the gateway reads the server's stream");
}

async fn reach_who_may_use_the_server(isolation: Isolation) {
    let streams = Streams::default();
    let script = Script::legacy("logs")
        .declares(json!({"logging": {}}))
        .tools(&["work"])
        .in_sessions(|_| "s-1".to_owned())
        .notifies(&streams)
        .results(json!({
            "logging/setLevel": {},
            "tools/call": {"content": []},
        }));
    let server = script.start().await;
    let issuer = AuthorizationServer::start().await;
    let rules = [for_group("sre").with_allow([named("*")])];
    let mut config = with_rules(config(Target::http(server.url.clone())), rules);
    config.authentication = Some(tokens(&issuer));
    config.servers[0].isolation = isolation;
    let harness = Harness::behind(server, config).await;
    let bearer_of = |group: &str| format!("Bearer {}", issuer.sign(claims(group)));

    let mut http = harness.connect().await;
    let open = HttpRequest::initialize(&json!({}));
    let open = open.with("Authorization", bearer_of("sre"));
    let id = http.open_session(&open).await;
    let get = HttpRequest::get(&id).with("Authorization", bearer_of("sre"));
    let mut stream = harness.connect().await;
    stream.open_stream(&get).await;
    let mut ask = async |group: &str, method: &str, params: Value| {
        let message = request(json!(1), method, params).to_string();
        let post = HttpRequest::of(&id, message).with("Authorization", bearer_of(group));
        http.ask(&post).await.json()
    };
    let log = |data: &str| log(&streams, data);

    let called = ask("sre", "tools/call", tool("work")).await;
    assert!(called["result"].is_object(), "{called}");
    log("one, for sre");
    let logged = logged_until(&mut stream, "one, for sre").await;
    assert_eq!(logged, ["one, for sre"]);

    let listed = ask("dev", "tools/list", json!({})).await;
    listed.has("/result/tools", json!([]));
    log("two, for dev");
    // Nothing shows that the gateway has read it and told nobody.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let listed = ask("sre", "tools/list", json!({})).await;
    listed.has("/result/tools/0/name", "work");
    log("three, for sre");
    let logged = logged_until(&mut stream, "three, for sre").await;
    assert_eq!(logged, ["three, for sre"]);
}

#[tokio::test]
async fn logs_on_a_shared_connection_reach_who_may_use_the_server() {
    reach_who_may_use_the_server(Isolation::Shared).await;
}

#[tokio::test]
async fn logs_on_a_connection_per_principal_reach_who_may_use_the_server() {
    reach_who_may_use_the_server(Isolation::Principal).await;
}
