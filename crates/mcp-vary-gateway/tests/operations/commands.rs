//! The operator's commands: `POST /reload` and `POST /drain`.

use std::net::SocketAddr;

use mcp_vary_gateway::settings::authentication::Authentication;
use mcp_vary_operator::{Requests, channel};

use crate::support::people::{ask_modern, key, keys_with_groups};
use crate::support::*;

const TOKEN: &str = "Bearer correct-horse-battery";

/// A gateway with commands, the address of its operator's listener, and the program's end of the commands.
async fn commanded() -> (Harness, SocketAddr, Requests) {
    commanded_with(|_| {}).await
}

/// What [`commanded`] returns, with these changes of the configuration.
async fn commanded_with(edit: impl FnOnce(&mut Config)) -> (Harness, SocketAddr, Requests) {
    let token = "correct-horse-battery".parse().unwrap();
    let (operator, requests) = channel(Some(&token));
    let harness = Harness::of(|config| {
        config.operator = Some(operator);
        edit(config);
    })
    .await;
    let address = harness.operators().await;
    (harness, address, requests)
}

fn post(path: &str) -> HttpRequest {
    HttpRequest::new("")
        .line(&format!("POST {path} HTTP/1.1"))
        .with("Authorization", TOKEN)
}

#[tokio::test]
async fn a_reload_answers_what_came_of_it() {
    let (_harness, address, mut requests) = commanded().await;
    let program = async {
        let changes = "vary.yaml reloaded: servers: 1 as before".to_owned();
        requests.reload().await.answer(Ok(changes));
        let mistake = "vary.yaml was not reloaded: line 3".to_owned();
        requests.reload().await.answer(Err(mistake));
    };
    let client = async {
        let done = post("/reload").send_to(address).await;
        let expected = json!({"message": "vary.yaml reloaded: servers: 1 as before"});
        assert_eq!((done.status, done.json()), (200, expected));
        let failed = post("/reload").send_to(address).await;
        let expected = json!({"error": "vary.yaml was not reloaded: line 3"});
        assert_eq!((failed.status, failed.json()), (422, expected));
    };
    tokio::join!(program, client);
}

#[tokio::test]
async fn a_drain_is_told_to_the_program_and_ends_reloads() {
    let (_harness, address, requests) = commanded().await;
    assert!(!requests.drain().is_cancelled());
    for _ in 0..2 {
        let answer = post("/drain").send_to(address).await;
        let expected = json!({"message": "shutting down; requests in flight may finish"});
        assert_eq!((answer.status, answer.json()), (200, expected));
        assert!(requests.drain().is_cancelled());
    }
    let late = post("/reload").send_to(address).await;
    let expected = json!({"error": "the gateway is shutting down, and reloads nothing more"});
    assert_eq!((late.status, late.json()), (409, expected));
}

#[tokio::test]
async fn commands_need_the_token_and_this_machines_name() {
    let (_harness, address, requests) = commanded().await;
    let drain = || post("/drain");
    let with_token = |token: &str| post("/reload").with("Authorization", token);
    for (request, status, part) in [
        (
            drain().without("Authorization"),
            401,
            "the token is missing or wrong",
        ),
        (
            with_token("Bearer wrong-horse-battery"),
            401,
            "Authorization: Bearer TOKEN",
        ),
        (
            with_token("Basic correct-horse-battery"),
            401,
            "`admin-token`",
        ),
        (drain().with("Host", "evil.example"), 403, ""),
        (drain().with("Origin", "http://evil.example"), 403, ""),
        (drain().line("GET /drain HTTP/1.1"), 405, ""),
        (drain().line("POST /status HTTP/1.1"), 405, ""),
        (
            drain().line("POST /drain/ HTTP/1.1"),
            404,
            "the status is at /status",
        ),
    ] {
        let answer = request.send_to(address).await;
        let text = answer.text();
        assert_eq!(answer.status, status, "{request:?}: {text}");
        assert!(text.contains(part), "{request:?}: {text}");
        assert!(!text.contains("horse"), "{text}");
        let challenge = (status == 401).then_some("Bearer");
        assert_eq!(answer.header("www-authenticate"), challenge);
        let allowed = match (status, request.bytes().starts_with(b"GET")) {
            (405, true) => Some("POST"),
            (405, false) => Some("GET"),
            _ => None,
        };
        assert_eq!(answer.header("allow"), allowed);
        assert!(!requests.drain().is_cancelled(), "{request:?}");
    }
    let status = post("/status")
        .without("Authorization")
        .line("GET /status HTTP/1.1");
    assert_eq!(
        status.send_to(address).await.status,
        200,
        "without a page, it needs no token"
    );
}

#[tokio::test]
async fn without_a_page_the_status_shows_people_and_standard_error_only_with_the_token() {
    let keys = Authentication::new(keys_with_groups(&["ann"]), None, false);
    let ends = ["-c", "echo no licence >&2; exit 3"].map(str::to_owned);
    let (harness, address, _requests) = commanded_with(|config| {
        config.authentication = Some(keys.unwrap());
        let broken = UpstreamConfig::new("broken", Target::command("sh", ends));
        config.servers.push(broken);
    })
    .await;
    ask_modern(&harness, &key("ann"), "tools/list", json!({})).await;
    let get = || post("/status").line("GET /status HTTP/1.1");
    until(async || get().send_to(address).await.text().contains("no licence")).await;
    let shown = get().send_to(address).await.json();
    shown.has("/servers/1/stderr", json!(["no licence"]));
    shown.has("/people/0/person", "ann");
    shown.has("/savings/clients/0/person", "ann");
    assert_eq!(shown.get("peopleNeedToken"), None);
    for hidden in [
        get().without("Authorization"),
        get().with("Authorization", "Bearer wrong-horse-battery"),
    ] {
        let answer = hidden.send_to(address).await;
        assert_eq!(answer.status, 200, "{hidden:?}");
        let text = answer.text();
        assert!(!text.contains(r#""ann""#), "{text}");
        assert!(!text.contains("no licence"), "{text}");
        let status = answer.json();
        assert_eq!(status.get("people"), None);
        status.has("/savings/clients", json!([]));
        status.has("/peopleNeedToken", true);
    }
}

#[tokio::test]
async fn a_gateway_without_commands_has_none() {
    let harness = Harness::start().await;
    let address = harness.operators().await;
    assert_eq!(post("/drain").send_to(address).await.status, 404);
}
