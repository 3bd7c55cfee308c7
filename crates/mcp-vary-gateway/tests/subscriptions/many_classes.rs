//! More kinds of clients than there are connections and lists for.

use std::path::Path;

use crate::support::*;

const UI: &str = "io.modelcontextprotocol/ui";

/// The configuration before the process that asks.
fn asking() -> Config {
    config(of_script("asks.py"))
}

/// A gateway, and where it serves.
async fn before(config: Config) -> (Arc<Gateway>, std::net::SocketAddr) {
    let gateway = Gateway::start(config).await.unwrap();
    let (address, _) = serve(&gateway).await;
    (gateway, address)
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
async fn is_asked(address: std::net::SocketAddr, client: &mut LegacyClient) -> Value {
    let mut http = RawHttp::connect(address).await;
    let post = client.post(&request(json!(7), "tools/call", asks()));
    http.send(&post.bytes()).await;
    http.head().await;
    let question = soon(http.event()).await.expect("it is asked");
    question.has("/method", "elicitation/create");
    let post = client.post(&response(&question, json!({"action": "decline"})));
    // The client's own connection may have been idle for too long.
    let mut other = RawHttp::connect(address).await;
    assert_eq!(other.ask(&post).await.status, 202);
    let answer = soon(http.event()).await.expect("it is answered");
    answer["result"]["reply"]["result"].clone()
}

/// All nine are there at once, so that none of their classes is idle.
#[tokio::test]
async fn nine_clients_that_can_do_different_things_are_all_asked() {
    let (_gateway, address) = before(asking()).await;
    let mut clients = Vec::new();
    for capabilities in capabilities(9) {
        let mut client = LegacyClient::at(address, "2025-11-25", &capabilities).await;
        let list = client.answer("tools/list", json!({})).await;
        assert!(names(&list).contains(&"ask"), "{list}");
        clients.push(client);
    }
    for client in clients.iter_mut().rev() {
        let expected = json!({"action": "decline"});
        assert_eq!(is_asked(address, client).await, expected);
    }
}

/// Its requests end with what the server asks.
#[tokio::test]
async fn so_are_clients_without_a_session() {
    let (_gateway, address) = before(asking()).await;
    for capabilities in capabilities(9) {
        let mut http = RawHttp::connect(address).await;
        let answer = http
            .ask_modern_as("tools/call", asks(), &capabilities)
            .await;
        let answer = answer.json();
        let found = &answer["result"]["resultType"];
        assert_eq!(*found, "input_required", "{capabilities}: {answer}");
    }
}

/// A class that can do a part of what the client can is nearer than that of clients that can do nothing.
#[tokio::test]
async fn how_many_classes_there_are_is_a_setting() {
    let mut config = asking();
    config.limits.classes = 1;
    let (_gateway, address) = before(config).await;
    let mut lists = 0;
    for capabilities in capabilities(3) {
        let mut client = LegacyClient::at(address, "2025-11-25", &capabilities).await;
        let expected = json!({"action": "decline"});
        assert_eq!(is_asked(address, &mut client).await, expected);
        let state = client.answer("tools/call", tool("state")).await;
        // It receives the client's capabilities, on the connection that the client has alone.
        state.has("/result/client", capabilities);
        lists += state["result"]["lists"].as_u64().unwrap();
    }
    assert_eq!(lists, 0, "all see the lists of the only class");
}

/// The configuration before a server of both eras, each process of which speaks the era of its first request.
fn of_both_eras() -> Config {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/eras.py");
    let args = [script.to_str().unwrap(), "both", "/dev/null"];
    let mut config = config(Target::command("python3", args.map(str::to_owned)));
    config.servers[0].limits.initialize = Duration::from_millis(300);
    config
}

/// A client for which there is no class left shares the lists and connections of clients of its own era.
#[tokio::test]
async fn a_class_beyond_the_limit_has_the_era_of_its_client() {
    for (first, second) in [(Era::Modern, Era::Legacy), (Era::Legacy, Era::Modern)] {
        let mut config = of_both_eras();
        config.limits.classes = 1;
        let gateway = Gateway::start(config).await.unwrap();
        let interface = |kind: &str| json!({"extensions": {UI: {"mimeTypes": [kind]}}});
        for (era, capabilities) in [
            (first, json!({})),
            (second, interface("text/x-1")),
            (first, interface("text/x-2")),
            (second, interface("text/x-3")),
        ] {
            let said = era_of_connection(&gateway, era, &capabilities).await;
            assert_eq!(said, era, "{capabilities} after {first:?}");
        }
        gateway.close().await;
    }
}

/// The era of the connection on which the gateway calls a tool for a client of `era`.
async fn era_of_connection(gateway: &Arc<Gateway>, era: Era, capabilities: &Value) -> Era {
    let answer = match era {
        Era::Legacy => {
            let mut pipe = legacy_pipe(gateway, "2025-11-25", capabilities).await;
            let call = request(json!(1), "tools/call", tool("era"));
            pipe.ask(&call).await
        }
        Era::Modern => {
            let call = modern(json!(1), "tools/call", tool("era"), capabilities);
            open_pipe(gateway).ask(&call).await
        }
    };
    match texts(&answer["result"])[0].split_once(' ').unwrap().0 {
        "legacy" => Era::Legacy,
        "modern" => Era::Modern,
        other => panic!("{other}"),
    }
}
