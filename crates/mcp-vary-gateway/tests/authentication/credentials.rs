//! What a request needs to pass, and what it gets that does not.

use super::clients::{NOW, PUBLIC, Session, ask_modern, claims, for_ann_and_eve, key, tokens};
use crate::support::*;

fn list() -> HttpRequest {
    HttpRequest::modern_request("tools/list", json!({}))
}

/// A gateway that wants tokens, and who issues them.
async fn with_tokens() -> (Harness, AuthorizationServer) {
    let server = AuthorizationServer::start().await;
    let authentication = tokens(&server);
    let harness = Harness::of(|config| config.authentication = Some(authentication));
    (harness.await, server)
}

#[tokio::test]
async fn without_a_credential_nothing_is_answered_but_a_challenge() {
    let (harness, _server) = with_tokens().await;
    let url = format!("{PUBLIC}/.well-known/oauth-protected-resource/mcp");
    let challenge = format!(r#"Bearer resource_metadata="{url}", scope="mcp""#);
    let body = r#"{"error":"unauthorized","error_description":"this server needs a bearer token"}"#;
    for post in [
        list(),
        HttpRequest::initialize(&json!({})),
        HttpRequest::new("no JSON"),
        HttpRequest::new("").line("GET /mcp HTTP/1.1"),
        HttpRequest::new("").line("DELETE /mcp HTTP/1.1"),
    ] {
        let mut http = harness.connect().await;
        let answer = http.ask(&post).await;
        let text = answer.text();
        assert_eq!((answer.status, text.as_str()), (401, body));
        assert_eq!(answer.header("www-authenticate"), Some(challenge.as_str()));
    }
}

/// The client gets one of six texts; the log has the reason, and nothing of the token.
#[tokio::test]
async fn the_log_says_why_a_credential_is_refused() {
    let (harness, server) = with_tokens().await;
    let signed = |name: &str, value: Value| {
        let mut claims = claims("ann");
        claims[name] = value;
        server.sign(claims)
    };
    let good = server.sign(claims("ann"));
    let (log, _listening) = CapturedLog::listen("mcp_vary", Level::WARN);
    let scopes = "it needs the scopes `mcp`, and has `read write`";
    let signature = "its signature does not verify: the token was cut short or changed";
    for (token, reason) in [
        (signed("scope", json!("read write")), scopes),
        (good[..good.len() - 8].to_owned(), signature),
        (key("eve"), "the token is unknown or malformed"),
    ] {
        ask_modern(&harness, &token, "tools/list", json!({})).await;
        let lines = log.take();
        let [line] = &lines[..] else {
            panic!("{lines:?}");
        };
        assert!(line.starts_with("WARN credential refused; "), "{line}");
        assert!(line.contains(reason) && !line.contains(&token), "{line}");
    }
    // Tokens expire every day, and requests without one ask where to get it.
    let old = signed("exp", json!(NOW - 600));
    ask_modern(&harness, &old, "tools/list", json!({})).await;
    harness.connect().await.ask(&list()).await;
    assert_eq!(log.take(), Vec::<String>::new());
}

/// AU-4: authorization is part of every request, also within a session.
#[tokio::test]
async fn a_session_is_no_credential() {
    let harness = Harness::with(for_ann_and_eve).await;
    let mut session = Session::open(&harness, &key("ann"), &json!({})).await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let post = HttpRequest::of(&session.id, message.to_string());
    assert_eq!(session.http.ask(&post).await.status, 401);
}

#[tokio::test]
async fn metadata_lead_to_the_issuer_whether_or_not_a_variant_exists() {
    let (harness, server) = with_tokens().await;
    let mut http = harness.connect().await;
    let mut at = async |method: &str, path: &str| {
        let line = format!("{method} /.well-known/oauth-protected-resource{path} HTTP/1.1");
        let request = HttpRequest::new("").line(&line);
        let request = request.with("Origin", "https://inspector.example");
        let answer = http.ask(&request.with("Host", "mcp.example")).await;
        let origin = answer
            .header("access-control-allow-origin")
            .map(str::to_owned);
        (answer.status, origin, answer.text())
    };
    let document = |resource: &str| {
        let issuer = server.issuer();
        format!(
            r#"{{"resource":"{PUBLIC}{resource}","authorization_servers":["{issuer}"],"scopes_supported":["mcp"],"bearer_methods_supported":["header"],"resource_name":"Vary"}}"#
        )
    };
    for (path, resource) in [
        ("", "/mcp"),
        ("/mcp", "/mcp"),
        ("/mcp/v/compact", "/mcp/v/compact"),
        ("/mcp/v/nobody", "/mcp/v/nobody"),
    ] {
        let (status, origin, text) = at("GET", path).await;
        assert_eq!((status, origin.as_deref()), (200, Some("*")), "{path}");
        assert_eq!(text, document(resource));
    }
    assert_eq!(at("POST", "/mcp").await.0, 405);
    assert_eq!(at("OPTIONS", "/mcp").await.0, 204);
    // Other paths are guarded as ever.
    assert_eq!(at("GET", "/other").await.0, 403);
}

#[tokio::test]
async fn an_unknown_variant_is_challenged_as_a_known_one_is() {
    let (harness, _server) = with_tokens().await;
    let mut answers = Vec::new();
    for name in ["compact", "nobody"] {
        let line = format!("POST /mcp/v/{name} HTTP/1.1");
        let answer = harness.connect().await.ask(&list().line(&line)).await;
        let challenge = answer.header("www-authenticate").unwrap();
        answers.push((
            answer.status,
            challenge.replace(name, "NAME"),
            answer.text(),
        ));
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].0, 401);
}

/// AU-6, and no secret in a log.
#[tokio::test]
async fn a_credential_reaches_neither_a_server_nor_the_log() {
    let (log, _listening) = CapturedLog::listen("", Level::TRACE);
    let (harness, server) = with_tokens().await;
    let good = server.sign(claims("ann"));
    let mut expired = claims("ann");
    expired["exp"] = json!(NOW - 600);
    let expired = server.sign(expired);
    for token in [&good, &expired, &key("ann")] {
        ask_modern(&harness, token, "tools/call", tool("odd")).await;
    }
    let mut session = Session::open(&harness, &good, &json!({})).await;
    session.ask(&good, "tools/call", tool("odd")).await;
    let received = harness.peer.received();
    assert!(received.len() > 3);
    for request in &received {
        assert_eq!(request.header("authorization"), None);
    }
    let log = log.take().join("\n");
    assert!(log.contains("credential refused"), "{log}");
    for token in [&good, &expired, &key("ann")] {
        let secret = token.rsplit('.').next().unwrap();
        assert!(!log.contains(secret), "{log}");
    }
    assert!(!log.contains("\"ann\"") && !log.contains("=ann"), "{log}");
}

#[tokio::test]
async fn a_refused_body_is_not_awaited() {
    let harness = Harness::with(for_ann_and_eve).await;
    let mut http = RawHttp::connect(harness.address()).await;
    let head = list().with("Content-Length", "1000000").head();
    http.send(&head).await;
    assert_eq!(http.head().await.status, 401);
}
