//! A program of which only one process can run.

use std::net::TcpListener;

use mcp_vary_upstream::Processes;

use super::{Client, asks, before, next};
use crate::support::*;

/// The configuration before a program that takes a port.
fn exclusive(processes: Processes) -> (Config, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = port.local_addr().unwrap().port();
    let mut target = of_script("exclusive.py");
    if let Target::Command { args, .. } = &mut target {
        args.push(port.to_string());
    }
    let mut config = config(target);
    config.servers[0].processes = processes;
    (config, port)
}

/// What clients declare that can be asked.
fn kinds() -> [Value; 4] {
    [
        json!({"roots": {"listChanged": true}}),
        json!({"sampling": {}}),
        json!({"elicitation": {}}),
        super::all(),
    ]
}

/// A question of the kind that a client can be asked.
fn question_for(capabilities: &Value) -> Option<&'static str> {
    let questions = [
        ("elicitation", "elicitation/create"),
        ("sampling", "sampling/createMessage"),
    ];
    let found = questions
        .iter()
        .find(|(key, _)| capabilities.get(key).is_some());
    found.map(|(_, method)| *method)
}

#[tokio::test]
async fn the_error_of_a_second_process_says_what_it_wrote_and_what_to_set() {
    let (config, port) = exclusive(Processes::Several);
    let (_gateway, address) = before(config).await;
    for capabilities in kinds() {
        let mut client = Client::open(address, &capabilities).await;
        let answer = client.call(tool("state")).await.response().await.json();
        let message = answer["error"]["message"].as_str().unwrap();
        let expected = format!(
            "it ended (exit status: 1); it was a process beside the first one, for a client with other capabilities and \
             wrote `Port {port} is already in use`; if only one can run at a time, set `processes: one` for the server"
        );
        assert!(message.contains(&expected), "{capabilities}: {message}");
    }
}

#[tokio::test]
async fn every_client_can_use_and_answer_the_one_process() {
    let (config, _) = exclusive(Processes::One);
    let (_gateway, address) = before(config).await;
    for capabilities in kinds() {
        let mut client = Client::open(address, &capabilities).await;
        let state = client.state().await;
        // It would use the roots of one client for all.
        state.has("/client", json!({"sampling": {}, "elicitation": {}}));
        state.has("/roots", Value::Null);
        let state = modern(json!(1), "tools/call", tool("state"), &capabilities);
        let answer = RawHttp::connect(address)
            .await
            .ask(&HttpRequest::modern(&state))
            .await;
        assert!(
            answer.json()["result"]["pid"].is_number(),
            "{}",
            answer.text()
        );
        let Some(method) = question_for(&capabilities) else {
            continue;
        };
        let mut call = client
            .call(asks("ask", method, json!({"message": "m"})))
            .await;
        call.head().await;
        let question = next(&mut call).await;
        question.has("/method", method);
        client
            .send(&response(&question, json!({"said": method})))
            .await;
        next(&mut call)
            .await
            .has("/result/reply/result/said", method);
    }
}

#[tokio::test]
async fn a_question_of_the_one_process_reaches_no_other_client() {
    let (config, _) = exclusive(Processes::One);
    let (_gateway, address) = before(config).await;
    let can_be_asked = json!({"elicitation": {}});
    let mut ann = Client::open(address, &can_be_asked).await;
    let mut eve = Client::open(address, &can_be_asked).await;
    let (mut call, question) = ann.asked().await;
    // Two clients call: neither is asked.
    let refused = eve
        .called(asks("ask", "elicitation/create", json!({})))
        .await;
    let message = refused["reply"]["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("it is not certain which client this is for"),
        "{refused}"
    );
    ann.send(&response(&question, json!({"action": "accept"})))
        .await;
    // The next message on her stream is her answer.
    next(&mut call)
        .await
        .has("/result/reply/result/action", "accept");
    // She is gone: the next one is asked.
    let (mut call, question) = eve.asked().await;
    eve.send(&response(&question, json!({"action": "decline"})))
        .await;
    next(&mut call)
        .await
        .has("/result/reply/result/action", "decline");
    // Nobody calls.
    ann.called(asks("later", "elicitation/create", json!({})))
        .await;
    let is_refused = async || eve.state().await["replies"][0]["error"].is_object();
    let mut is_refused = is_refused;
    until(async || is_refused().await).await;
}

/// A gateway for the one client that begins so.
async fn on_pipes(first: &Value) -> (Arc<Gateway>, StdioPipe) {
    let (mut config, _) = exclusive(Processes::Several);
    config.only_client = Gateway::only_client(format!("{first}\n").as_bytes());
    assert!(config.only_client.is_some(), "{first}");
    let gateway = Gateway::start(config).await.unwrap();
    let pipe = open_pipe(&gateway);
    (gateway, pipe)
}

fn is_request(method: &str) -> impl Fn(&Value) -> bool {
    move |message| message["method"] == method
}

/// The answer to the request with this id.
fn is_answer(id: u64) -> impl Fn(&Value) -> bool {
    move |message| message["id"] == id && message.get("method").is_none()
}

#[tokio::test]
async fn the_process_of_the_only_client_has_its_capabilities_and_asks_it() {
    for capabilities in kinds() {
        let first = initialize("2025-11-25", &capabilities);
        let (_gateway, pipe) = on_pipes(&first).await;
        let mut pipe = pipe.initialize("2025-11-25", &capabilities).await;
        pipe.send(request(json!(1), "tools/list", json!({})).to_string())
            .await;
        if capabilities.get("roots").is_some() {
            let question = pipe.receive_until(is_request("roots/list")).await;
            let roots = json!({"roots": [{"uri": "file:///srv/ann"}]});
            pipe.send(response(&question, roots).to_string()).await;
        }
        if let Some(method) = question_for(&capabilities) {
            let call = request(json!(2), "tools/call", asks("ask", method, json!({})));
            pipe.send(call.to_string()).await;
            let question = pipe.receive_until(is_request(method)).await;
            pipe.send(response(&question, json!({"said": method})).to_string())
                .await;
            let answer = pipe.receive_until(is_answer(2)).await;
            answer.has("/result/reply/result/said", method);
        }
        pipe.send(request(json!(3), "tools/call", tool("state")).to_string())
            .await;
        let state = pipe.receive_until(is_answer(3)).await;
        state.has("/result/client", capabilities.clone());
        if capabilities.get("roots").is_some() {
            state.has("/result/roots/roots/0/uri", "file:///srv/ann");
        }
    }
}

#[tokio::test]
async fn the_process_of_an_only_client_without_a_session_is_the_one_of_its_calls() {
    for capabilities in kinds() {
        let first = modern(json!(1), "server/discover", json!({}), &capabilities);
        let (_gateway, mut pipe) = on_pipes(&first).await;
        let state = modern(json!(2), "tools/call", tool("state"), &capabilities);
        pipe.send(state.to_string()).await;
        let state = pipe.receive_until(is_answer(2)).await;
        assert!(
            state["result"]["pid"].is_number(),
            "{capabilities}: {state}"
        );
        // Later requests may declare something else.
        let state = modern(json!(3), "tools/call", tool("state"), &json!({}));
        pipe.send(state.to_string()).await;
        let state = pipe.receive_until(is_answer(3)).await;
        assert!(
            state["result"]["pid"].is_number(),
            "{capabilities}: {state}"
        );
    }
}

#[test]
fn the_only_client_is_known_by_its_first_message() {
    let capabilities = json!({"roots": {}});
    let told = |message: &Value| Gateway::only_client(message.to_string().as_bytes());
    let legacy = told(&initialize("2025-06-18", &capabilities)).unwrap();
    assert_eq!(
        (legacy.capabilities, legacy.has_session),
        (capabilities.to_string(), true)
    );
    let modern = told(&modern(json!(1), "tools/list", json!({}), &capabilities)).unwrap();
    assert_eq!(
        (modern.capabilities, modern.has_session),
        (capabilities.to_string(), false)
    );
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        json!([]),
        json!("x"),
    ] {
        assert_eq!(told(&message), None, "{message}");
    }
}
