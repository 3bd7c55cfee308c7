//! Failures over HTTP, and how they are reported.

use tokio::io::AsyncReadExt as _;

use super::*;

/// A reply of a server, and what is said of it.
type Case<'a> = (fn(&ReceivedRequest) -> Reply, &'a [&'a str]);

/// Checks that each reply is an error that says each of its parts.
async fn fail(cases: &[Case<'_>]) {
    for (reply, parts) in cases {
        let error = result_of(*reply).await.unwrap_err();
        says(&error, &["`remote`"]);
        says(&error, parts);
    }
}

/// What a call of a legacy server with such a reply gets.
async fn result_of(
    reply: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
) -> Result<Value, String> {
    result(&connect(&legacy(reply).await).await, "x").await
}

#[tokio::test]
async fn what_is_no_answer_is_an_error_that_says_what_came() {
    let challenge = "Bearer error=\"invalid_token\", error_description=\"ended on Monday\"";
    let refused = move || Reply::new(401, "application/json", "{}");
    let error = result_of(move |_| refused().with_header("www-authenticate", challenge)).await;
    says(
        &error.unwrap_err(),
        &["401 Unauthorized", ": ended on Monday; "],
    );
    let credentials = "it wants a token: add --header 'Authorization: Bearer TOKEN'";
    let page = "` answered with a web page (HTTP 200 OK); check ";
    fail(&[
        (
            |_| Reply::new(401, "text/plain", "log in\u{1b}[2J"),
            &["401 Unauthorized", r"log in\u{1b}[2J"],
        ),
        (
            |_| Reply::new(403, "application/json", r#"{"detail":"no"}"#),
            &["403 Forbidden", credentials],
        ),
        (
            |_| Reply::new(500, "text/plain", "x".repeat(999)),
            &["500 Internal", "xxx…"],
        ),
        (
            |_| Reply::new(202, "text/plain", ""),
            &["202 Accepted", "nothing else"],
        ),
        (
            |_| Reply::new(200, "text/html", "<h1>Hi</h1>"),
            &["not an answer", "<h1>Hi</h1>"],
        ),
        (
            |_| Reply::new(200, "text/html", "\n<!DOCTYPE html><title>Hi"),
            &[page],
        ),
        (
            |_| Reply::new(200, "application/json", "{\"id\":"),
            &["not an answer", "not JSON"],
        ),
        (
            |_| Reply::new(200, "application/json", &b"\xff{}"[..]),
            &["not an answer", "not UTF-8"],
        ),
        (
            |_| Reply::new(200, "application/json", ""),
            &["not an answer"],
        ),
        (
            |_| Reply::json(200, &json!({"jsonrpc": "2.0", "id": 99, "result": {}})),
            &["not an answer"],
        ),
        (
            |_| Reply::json(200, &json!({"x": "y".repeat(2_000_000)})),
            &["a reply of more than 1 MiB"],
        ),
        (
            |_| Reply::events(format!("data: {}", "y".repeat(2_000_000))),
            &["an event of more than 1 MiB"],
        ),
    ])
    .await;
}

/// What a client is told when the server replies like this.
async fn tells(reply: fn(&ReceivedRequest) -> Reply, expected: &str) {
    let peer = legacy(reply).await;
    let upstream = connect(&peer).await;
    let exchange = upstream.request(call("x")).await.unwrap();
    let error = exchange.answer().await.unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn clients_are_told_what_happened_and_no_more() {
    tells(
        |_| Reply::new(503, "text/plain", "no route to db.internal"),
        "server `remote` answered HTTP 503 Service Unavailable",
    )
    .await;
    tells(
        |_| Reply::new(307, "text/plain", "").with_header("location", "https://example.org/key"),
        "server `remote` answered HTTP 307 Temporary Redirect",
    )
    .await;
    tells(
        |_| Reply::new(200, "text/plain", "panicked at /srv/app"),
        "server `remote` broke the protocol",
    )
    .await;
    tells(
        |_| Reply::events(": nothing\n\n"),
        "server `remote` broke off its reply",
    )
    .await;
}

#[tokio::test]
async fn a_plain_connection_that_is_closed_at_once_may_need_tls() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            // What does not speak HTTP reads the request, and closes.
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = socket.read(&mut [0; 4096]).await;
        }
    });
    let config = UpstreamConfig::new("remote", Target::http(url.parse().unwrap()));
    let error = UpstreamConnection::connect(config).await.unwrap_err();
    let advice = "if it expects TLS, its address begins with https://";
    says(
        &error,
        &["closed the connection without an answer", &url, advice],
    );
}

#[tokio::test]
async fn other_redirects_are_named_and_not_followed() {
    let elsewhere = |_: &ReceivedRequest| {
        let place = "https://u:p@example.org/mcp?key=secret";
        Reply::new(307, "text/plain", "").with_header("location", place)
    };
    let with_slash = |_: &ReceivedRequest| {
        Reply::new(301, "text/plain", "").with_header("location", "/mcp/?key=secret")
    };
    let another = |_: &ReceivedRequest| {
        Reply::new(302, "text/plain", "").with_header("location", "/api/secret/mcp")
    };
    fail(&[
        (
            elsewhere,
            &["307", "`https://example.org/mcp`;", "not followed"],
        ),
        (with_slash, &["301", "its own path with a `/` at the end;"]),
        (
            another,
            &["302", "`/api/.../mcp`, another path of its own;"],
        ),
        (
            |_| Reply::new(302, "text/plain", ""),
            &["302", "points to nowhere;"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn an_error_of_the_server_is_an_answer_whatever_its_status() {
    let peer = modern(|seen| seen.refuse(404, -32601, "Method not found")).await;
    let error = result(&connect(&peer).await, "x").await.unwrap_err();
    says(&error, &["-32601"]);
    let error = result_of(|seen| seen.refuse(500, -32603, "Internal")).await;
    says(&error.unwrap_err(), &["-32603"]);
    let error = result_of(|_| {
        let error = json!({"code": -32700, "message": "Parse error"});
        Reply::json(200, &json!({"jsonrpc": "2.0", "id": null, "error": error}))
    });
    says(&error.await.unwrap_err(), &["-32700"]);
}

#[tokio::test]
async fn garbage_in_a_stream_is_skipped() {
    let peer = legacy(|seen| {
        let answer = event(&seen.message(&json!({"ok": true})));
        let other = event(&json!({"jsonrpc": "2.0", "id": 12345, "result": {}}));
        let ping = "event: ping\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n";
        Reply::events(format!(
            "data: what?\n\n{other}{ping}data: [1]\n\n{answer}{answer}"
        ))
    })
    .await;
    let upstream = connect(&peer).await;
    let (notifications, answer) = all(upstream.request(call("x")).await.unwrap()).await;
    assert_eq!(
        (notifications, answer),
        (Vec::new(), Ok(json!({"ok": true})))
    );
}

#[tokio::test]
async fn a_batch_is_taken_apart() {
    let peer = legacy(|seen| {
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
        Reply::json(200, &json!([progress, seen.message(&json!({"n": 1}))]))
    })
    .await;
    let upstream = connect(&peer).await;
    let (notifications, answer) = all(upstream.request(call("x")).await.unwrap()).await;
    assert_eq!((notifications.len(), answer), (1, Ok(json!({"n": 1}))));
}

#[tokio::test]
async fn a_silent_call_ends_at_its_limit_and_is_cancelled() {
    let peer = legacy(|_| Reply::silence()).await;
    let mut config = config(&peer);
    config.limits.idle = Duration::from_millis(300);
    let upstream = UpstreamConnection::connect(config).await.unwrap();
    let error = result(&upstream, "x").await.unwrap_err();
    says(&error, &["`remote`", "sent nothing for 300ms"]);
    let cancelled = peer.wait_for("notifications/cancelled", 1).await;
    assert_eq!(
        &cancelled[0].body["params"]["requestId"],
        peer.of("tools/call")[0].id()
    );
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_named_without_its_secrets() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url: http::Uri = format!("http://me:secret@{address}/mcp?key=secret")
        .parse()
        .unwrap();
    let error = UpstreamConnection::connect(UpstreamConfig::new("remote", Target::http(url))).await;
    let error = error.unwrap_err();
    says(&error, &["`remote` cannot be reached", "refused"]);
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[tokio::test]
async fn a_bad_handshake_says_what_came_and_what_to_do() {
    let closed = ScriptedServer::start(|_| Some(Reply::new(401, "text/plain", "token?"))).await;
    let error = fails(config(&closed)).await;
    says(&error, &["`remote`", "401 Unauthorized", "token?"]);
    assert_eq!(closed.of("server/discover").len(), 1);
    assert_eq!(closed.of("initialize").len(), 1);
    let other_path = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"the path is /mcp\u001b[2J\u202e"},"id":null}"#;
    let found = "` answered `initialize` with HTTP 404 Not Found: the path is /mcp\\u{1b}[2J\\u{202e}; check host and path";
    let advice = "check host and path of its address";
    let cases: [(_, _, _, &[&str]); 4] = [
        (
            404,
            "text/html",
            "<h1>Nothing here",
            &["`remote`", "` answered `initialize` with HTTP 404", advice],
        ),
        (
            404,
            "text/html",
            "<!DOCTYPE html><h1>No",
            &["` answered with a web page (HTTP 404 Not Found); check "],
        ),
        (
            501,
            "text/html",
            "<!DOCTYPE html><h1>No",
            &["` answered with a web page (HTTP 501 Not Implemented); check "],
        ),
        (404, "application/json", other_path, &[found]),
    ];
    for (status, media_type, body, parts) in cases {
        let peer = ScriptedServer::start(move |_| Some(Reply::new(status, media_type, body))).await;
        says(&fails(config(&peer)).await, parts);
    }
    let elsewhere = "ftp://example.org/".parse().unwrap();
    let error = fails(UpstreamConfig::new("remote", Target::http(elsewhere))).await;
    let neither = "neither http:// nor https://";
    says(&error, &["`remote`", "`ftp://example.org`", neither]);
    let mute = ScriptedServer::start(|_| Some(Reply::silence())).await;
    let mut config = config(&mute);
    config.limits.handshake = Duration::from_millis(300);
    let error = fails(config).await;
    says(&error, &["`remote`", "not ready within 300ms"]);
}

#[tokio::test]
async fn a_server_that_answers_a_part_of_the_handshake_is_said_to_have_come_that_far() {
    let half = ScriptedServer::start(|seen| match seen.method() {
        "server/discover" => Some(seen.refuse(200, -32601, "no")),
        _ => Some(Reply::silence()),
    })
    .await;
    let mut config = config(&half);
    config.limits.handshake = Duration::from_millis(300);
    let error = fails(config).await;
    let expected = "` answered `server/discover`, but not `initialize`; look at the log of the server; if it needs longer";
    says(&error, &["not ready within 300ms: `http://", expected]);
}

#[tokio::test]
async fn a_server_that_leaves_only_the_first_ping_unanswered_is_connected_to_whatever_the_limit() {
    let deaf = ScriptedServer::start(|seen| match seen.method() {
        "server/discover" => Some(seen.refuse(200, -32601, "no")),
        "initialize" => Some(initialize(seen, "s-1")),
        "ping" => Some(Reply::silence()),
        _ => Some(seen.answer(&json!({"x": 1}))),
    })
    .await;
    let mut config = config(&deaf);
    config.limits.handshake = Duration::from_secs(1);
    let upstream = UpstreamConnection::connect(config).await.unwrap();
    assert_eq!(result(&upstream, "x").await.unwrap()["x"], 1);
}
