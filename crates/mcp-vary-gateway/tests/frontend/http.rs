//! The rules of HTTP, and of MCP's headers.

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::*;

fn list() -> Value {
    modern(json!(1), "tools/list", json!({}), &json!({}))
}

async fn status(http: &mut RawHttp, post: HttpRequest) -> u16 {
    http.ask(&post).await.status
}

#[tokio::test]
async fn a_message_comes_as_json_and_its_answer_may_be_a_stream() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let post = HttpRequest::modern(&list());
    for (name, value, expected) in [
        ("Content-Type", "application/json", 200),
        ("Content-Type", "Application/JSON; charset=utf-8", 200),
        ("Content-Type", "text/plain", 415),
        ("Content-Type", "application/jsonp", 415),
        ("Content-Type", "application/x-www-form-urlencoded", 415),
        ("Content-Type", "", 415),
        ("Accept", "*/*", 200),
        ("Accept", "text/event-stream;q=0.9, application/json", 200),
        ("Accept", "application/json", 406),
        ("Accept", "text/event-stream", 406),
        ("Accept", "text/html", 406),
    ] {
        let sent = post.clone().with(name, value);
        assert_eq!(status(&mut http, sent).await, expected, "{name}: {value}");
    }
    let found = status(&mut http, post.clone().without("Content-Type")).await;
    assert_eq!(found, 415);
    harness
        .is_unharmed(&mut http, "wrong types of content")
        .await;
}

/// A client that would rather have a stream gets one; what has a status of its own cannot be one.
#[tokio::test]
async fn an_answer_is_a_stream_for_whom_prefers_one() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let streamed = "text/event-stream, application/json";
    let answer = http.ask(&HttpRequest::modern(&list())).await.json();
    let call = modern(json!(1), "tools/call", tool("add"), &json!({}));
    for message in [list(), call] {
        let post = HttpRequest::modern(&message).with("Accept", streamed);
        http.send(&post.bytes()).await;
        let head = http.head().await;
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        let events = http.events().await;
        assert_eq!(events.len(), 1, "{events:?}");
        events[0].has("/id", 1);
        if message["method"] == "tools/list" {
            assert_eq!(events[0], answer);
        }
    }
    let listed = request(json!(2), "tools/list", json!({}));
    let post = client.post(&listed).with("Accept", streamed);
    client.http.send(&post.bytes()).await;
    let head = client.http.head().await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    client.http.events().await[0].has("/result", {
        let plain = client.post(&listed);
        client.http.ask(&plain).await.json()["result"].clone()
    });
    let unknown = modern(json!(3), "no/such", json!({}), &json!({}));
    let post = HttpRequest::modern(&unknown).with("Accept", streamed);
    assert_eq!(http.ask(&post).await.refusal(), (404, -32601, json!(3)));
}

/// After DNS rebinding `Host` is the attacker's; a page elsewhere says so in `Origin`.
#[tokio::test]
async fn foreign_hosts_and_origins_are_forbidden() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let post = HttpRequest::modern(&list());
    for (name, value, expected) in [
        ("Host", "localhost:1", 200),
        ("Host", "127.0.0.1", 200),
        ("Host", "[::1]:80", 200),
        ("Host", "evil.example", 403),
        ("Host", "localhost.evil.example", 403),
        ("Host", "evil.example:80@", 403),
        ("Host", "evil@localhost", 403),
        ("Host", "localhost:evil", 403),
        ("Host", "LOCALHOST:evil", 403),
        ("Host", "localhost:123456", 403),
        ("Host", "localhost:65536", 403),
        ("Host", "127.0.0.1:0x1", 403),
        ("Host", "[::1]:x", 403),
        ("Origin", "http://localhost:evil", 403),
        ("Origin", "http://localhost:3000", 200),
        ("Origin", "https://evil.example", 403),
        ("Origin", "http://127.0.0.1.evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", "\u{fc}", 403),
    ] {
        let sent = post.clone().with(name, value);
        assert_eq!(status(&mut http, sent).await, expected, "{name}: {value}");
    }
    for verb in ["GET", "DELETE", "OPTIONS"] {
        let sent = post.clone().line(&format!("{verb} /mcp HTTP/1.1"));
        let sent = sent.with("Host", "evil.example");
        assert_eq!(status(&mut http, sent).await, 403, "{verb}");
    }
    harness.is_unharmed(&mut http, "foreign hosts").await;
}

/// A second `Host` or `Origin` must not hide behind a first that is in order.
#[tokio::test]
async fn every_host_and_origin_is_checked() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    for header in [
        "Host: evil.example",
        "Origin: http://localhost\r\nOrigin: http://evil.example",
    ] {
        let line = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{header}");
        let post = HttpRequest::modern(&list()).without("Host").line(&line);
        assert_eq!(status(&mut http, post).await, 403, "{header}");
    }
    harness.is_unharmed(&mut http, "two hosts").await;
}

#[tokio::test]
async fn only_the_endpoint_answers_and_only_its_verbs() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let post = HttpRequest::modern(&list());
    for (line, expected) in [
        ("POST /mcp?x=1 HTTP/1.1", 200),
        ("POST / HTTP/1.1", 404),
        ("POST /mcp/x HTTP/1.1", 404),
        ("POST /MCP HTTP/1.1", 404),
        ("GET /favicon.ico HTTP/1.1", 404),
        ("PUT /mcp HTTP/1.1", 405),
        ("PATCH /mcp HTTP/1.1", 405),
        ("OPTIONS /mcp HTTP/1.1", 405),
        ("BREW /mcp HTTP/1.1", 405),
        ("GET /mcp HTTP/1.1", 405),
        ("DELETE /mcp HTTP/1.1", 405),
    ] {
        let answer = http.ask(&post.clone().line(line)).await;
        assert_eq!(answer.status, expected, "{line}");
        let allowed = (expected == 405).then_some("POST");
        assert_eq!(answer.header("allow"), allowed, "{line}");
    }
    let put = HttpRequest::new("").line("PUT /mcp HTTP/1.1");
    let answer = http.ask(&put).await;
    assert_eq!(
        (answer.status, answer.header("allow")),
        (405, Some("POST, GET, DELETE"))
    );
    harness.is_unharmed(&mut http, "other verbs").await;
}

#[tokio::test]
async fn a_listening_stream_belongs_to_a_session() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let get = HttpRequest::get(&client.session);
    let without = get.clone().without("Mcp-Session-Id");
    let expected = (400, -32600, Value::Null);
    assert_eq!(client.http.ask(&without).await.refusal(), expected);
    let unknown = get.clone().with("Mcp-Session-Id", "nobody");
    assert_eq!(status(&mut client.http, unknown).await, 404);
    let wrong = get.clone().with("Accept", "application/json");
    assert_eq!(status(&mut client.http, wrong).await, 406);

    let mut streams = Vec::new();
    for _ in 0..4 {
        let mut stream = harness.connect().await;
        let head = stream.open_stream(&get).await;
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        streams.push(stream);
    }
    assert_eq!(client.http.ask(&get).await.status, 429, "the fifth");
    let mut other = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let of_another = HttpRequest::get(&other.session);
    other.http.open_stream(&of_another).await;

    client.delete().await;
    for stream in &mut streams {
        assert!(stream.events().await.is_empty(), "ends with its session");
    }
    harness.is_unharmed(&mut client.http, "streams").await;
}

/// The place of a stream whose client has left is free again.
#[tokio::test]
async fn a_stream_that_was_left_makes_room() {
    let mut few = limits();
    few.streams = 1;
    // With one connection at a time the next is served once the one before has ended.
    few.connections = 1;
    let harness = Harness::with(|config| config.with_limits(few)).await;
    let client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let get = HttpRequest::get(&client.session);
    drop(client);
    for _ in 0..3 {
        let mut stream = harness.connect().await;
        stream.open_stream(&get).await;
    }
}

#[tokio::test]
async fn headers_are_bounded() {
    let harness = Harness::start().await;
    let large = HttpRequest::new("{}").with("X-Large", "x".repeat(100_000));
    let many = (0..1000).fold(HttpRequest::new("{}"), |post, n| {
        post.with(&format!("X-{n}"), "y")
    });
    let no_colon = b"POST /mcp HTTP/1.1\r\nHost localhost\r\n\r\n".to_vec();
    let tls = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec();
    for (what, bytes, status) in [
        ("one large header", large.bytes(), 431),
        ("many headers", many.bytes(), 431),
        ("a header without a colon", no_colon, 400),
        ("a client that speaks TLS", tls, 400),
    ] {
        let mut http = harness.connect().await;
        http.send(&bytes).await;
        assert_eq!(http.head().await.status, status, "{what}");
    }
    harness.still_serves("bad heads").await;
}

#[tokio::test]
async fn requests_in_a_row_are_answered_in_their_order() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let posts: Vec<u8> = (0..20)
        .flat_map(|id| client.post(&request(json!(id), "ping", json!({}))).bytes())
        .collect();
    client.http.send(&posts).await;
    for id in 0..20 {
        client.http.response().await.json().has("/id", id);
    }
}

#[tokio::test]
async fn a_client_may_ask_before_it_sends_its_body() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let post = HttpRequest::modern(&list()).with("Expect", "100-continue");
    let bytes = post.bytes();
    let body = list().to_string();
    http.send(&bytes[..bytes.len() - body.len()]).await;
    assert_eq!(http.head().await.status, 100);
    http.send(body.as_bytes()).await;
    assert_eq!(http.response().await.status, 200);
}

#[tokio::test]
async fn a_body_may_come_in_pieces() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let chunked = HttpRequest::modern(&list()).with("Transfer-Encoding", "chunked");
    http.send(&chunked.head()).await;
    for byte in list().to_string().bytes() {
        http.send(&[b"1\r\n".as_slice(), &[byte], b"\r\n"].concat())
            .await;
    }
    http.send(b"0\r\n\r\n").await;
    assert_eq!(http.response().await.status, 200);
    harness.is_unharmed(&mut http, "pieces").await;
    http.send(&chunked.head()).await;
    http.send(b"not a length\r\n").await;
    assert_eq!(http.response().await.status, 400);
    harness.still_serves("broken pieces").await;
}

/// What comes in chunks is compressed, so that it is not the message.
#[tokio::test]
async fn a_body_in_another_coding_is_not_read() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let post = HttpRequest::modern(&list()).with("Transfer-Encoding", "gzip, chunked");
    http.send(&post.head()).await;
    let body = list().to_string();
    let chunks = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    http.send(chunks.as_bytes()).await;
    let refused = http.response().await;
    assert_eq!(refused.status, 501, "{}", refused.text());
    harness.still_serves("a body in another coding").await;
}

/// What two readers could take for different requests is no request.
#[tokio::test]
async fn requests_that_can_be_read_in_two_ways_are_refused() {
    let harness = Harness::start().await;
    let body = list().to_string();
    let head = String::from_utf8(HttpRequest::modern(&list()).head()).unwrap();
    let head = head.trim_end();
    for (what, headers) in [
        ("two lengths", "Content-Length: LENGTH\r\nContent-Length: 3"),
        ("a length with a sign", "Content-Length: +LENGTH"),
        ("a space before the colon", "Content-Length : LENGTH"),
        ("an unknown encoding", "Transfer-Encoding: gzip"),
        ("a NUL in a header", "X: \0"),
    ] {
        let headers = headers.replace("LENGTH", &body.len().to_string());
        let mut http = harness.connect().await;
        let sent = format!("{head}\r\n{headers}\r\n\r\n{body}");
        http.send(sent.as_bytes()).await;
        assert_eq!(http.head().await.status, 400, "{what}");
    }
    harness.still_serves("ambiguous requests").await;
}

#[tokio::test]
async fn older_and_longer_forms_of_a_request_are_served() {
    let harness = Harness::start().await;
    for line in ["POST /mcp HTTP/1.0", "POST http://localhost/mcp HTTP/1.1"] {
        let post = HttpRequest::modern(&list()).line(line);
        let found = harness.connect().await.ask(&post).await.status;
        assert_eq!(found, 200, "{line}");
    }
    let elsewhere = HttpRequest::modern(&list()).line("POST http://evil.example/mcp HTTP/1.1");
    let found = harness.connect().await.ask(&elsewhere).await.status;
    assert_eq!(found, 403, "whatever `Host` says");
}

/// A client that has closed its side cannot be told from one that is gone.
#[tokio::test]
async fn a_client_that_closes_its_side_is_gone() {
    let harness = Harness::start().await;
    let mut http = harness.unanswered(1).await;
    http.close_sending().await;
    assert!(http.is_closed().await);
    soon(harness.peer.wait_for("notifications/cancelled", 1)).await;
    harness.still_serves("a half-closed socket").await;
}

#[tokio::test]
async fn headers_must_say_what_the_body_says() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let call = modern(json!("é"), "tools/call", tool("odd"), &json!({}));
    let bern = json!({"uri": "place:bern"});
    let read = modern(json!("é"), "resources/read", bern, &json!({}));
    let without = |name: &str| HttpRequest::modern(&call).without(name);
    let method = |value: &str| HttpRequest::modern(&call).with("Mcp-Method", value);
    let name = |value: &str| HttpRequest::modern(&call).with("Mcp-Name", value);
    let version = |value: &str| HttpRequest::modern(&call).with("MCP-Protocol-Version", value);
    let other_uri = HttpRequest::modern(&read).with("Mcp-Name", "place:basel");
    for (what, sent) in [
        ("no method", without("Mcp-Method")),
        ("another method", method("tools/list")),
        ("a method in capitals", method("TOOLS/CALL")),
        ("no name", without("Mcp-Name")),
        ("another name", name("say")),
        ("a name in bad base64", name("=?base64?%%?=")),
        ("a name that is no UTF-8", name("=?base64?/w==?=")),
        ("another name in base64", name("=?base64?c2F5?=")),
        ("no version", without("MCP-Protocol-Version")),
        ("another version", version("2025-11-25")),
        ("an unknown version", version("2099-01-01")),
        ("no uri", HttpRequest::modern(&read).without("Mcp-Name")),
        ("another uri", other_uri),
    ] {
        let answer = http.ask(&sent).await;
        let expected = (400, -32020, json!("é"));
        assert_eq!(answer.refusal(), expected, "{what}: {}", answer.text());
    }
    assert!(harness.peer.of("tools/call").is_empty());
    harness.is_unharmed(&mut http, "mismatches").await;
}

#[tokio::test]
async fn a_name_that_no_header_can_carry_comes_in_base64() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    for (name, header) in [
        ("odd", "=?base64?b2Rk?="),
        ("Zürich", "=?base64?WsO8cmljaA==?="),
    ] {
        let call = HttpRequest::modern_request("tools/call", tool(name));
        assert_eq!(status(&mut http, call.with("Mcp-Name", header)).await, 200);
    }
}

#[tokio::test]
async fn versions_that_are_not_spoken_are_refused_with_those_that_are() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let with_version = |version: &str| {
        let mut message = list();
        message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(version);
        HttpRequest::modern(&message).with("MCP-Protocol-Version", version)
    };
    let supported = "2026-07-28 2025-11-25 2025-06-18 2025-03-26 2024-11-05";
    for version in ["2099-01-01", "2026-07-29", "latest", "2025-11-25"] {
        let answer = http.ask(&with_version(version)).await;
        assert_eq!(answer.refusal(), (400, -32022, json!(1)), "{version}");
        let data = &answer.json()["error"]["data"];
        let told = data["supported"].as_array().unwrap().iter();
        let mut told: Vec<_> = told.filter_map(Value::as_str).collect();
        told.sort_by(|a, b| b.cmp(a));
        assert_eq!(told.join(" "), supported);
        data.has("/requested", version);
    }
    harness.is_unharmed(&mut http, "unknown versions").await;
}

/// > If the server receives a request with an invalid or unsupported `MCP-Protocol-Version`, it MUST
/// > respond with `400 Bad Request`. (MCP 2025-11-25, basic/transports, "Protocol Version Header")
#[tokio::test]
async fn a_header_with_an_unknown_version_is_refused_whatever_the_verb() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    for version in ["1999-01-01", "banana", "2025-11-25, 2025-11-25"] {
        let ping = client.post(&request(json!("p"), "ping", json!({})));
        let ping = ping.with("MCP-Protocol-Version", version);
        let answer = client.http.ask(&ping).await;
        assert_eq!(answer.refusal(), (400, -32022, json!("p")), "{version}");
        answer.json().has("/error/data/requested", version);
        for verb in ["GET", "DELETE"] {
            let sent = HttpRequest::of(&client.session, "").line(&format!("{verb} /mcp HTTP/1.1"));
            let sent = sent.with("MCP-Protocol-Version", version);
            let answer = client.http.ask(&sent).await;
            let expected = (400, -32022, Value::Null);
            assert_eq!(answer.refusal(), expected, "{verb} {version}");
        }
    }
    let answer = client.ask("ping", json!({})).await;
    assert_eq!(answer.status, 200, "the session is still there");
}

#[tokio::test]
async fn a_modern_request_says_who_asks() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let of_capabilities = |value: Value| json!({version: "2026-07-28", capabilities: value});
    for (what, meta) in [
        ("nothing", json!({})),
        ("no capabilities", json!({version: "2026-07-28"})),
        ("no version", json!({capabilities: {}})),
        (
            "a version that is no string",
            json!({version: 2026, capabilities: {}}),
        ),
        ("capabilities that are a list", of_capabilities(json!([]))),
        ("capabilities that are null", of_capabilities(Value::Null)),
        (
            "capabilities that are a string",
            of_capabilities(json!("all")),
        ),
    ] {
        let post = HttpRequest::modern(&request(json!(1), "tools/list", json!({"_meta": meta})));
        let answer = http.ask(&post).await;
        let expected = (400, -32602, json!(1));
        assert_eq!(answer.refusal(), expected, "{what}: {}", answer.text());
    }
    harness.is_unharmed(&mut http, "half a `_meta`").await;
}

#[tokio::test]
async fn off_loopback_is_refused_with_the_reason() {
    let harness = Harness::start().await;
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let served = Arc::clone(&harness.gateway)
        .serve_http(listener, std::future::pending())
        .await;
    let expected = "no authentication";
    assert!(served.unwrap_err().to_string().contains(expected));
}

/// A client of a listener of its own that waits for an answer there, and what stops that listener.
async fn waiting_elsewhere(harness: &Harness) -> (LegacyClient, CancellationToken) {
    let (address, stop) = serve(&harness.gateway).await;
    let mut client = LegacyClient::open(harness, "2025-11-25", &json!({})).await;
    client.http = RawHttp::connect(address).await;
    harness.wait_in(&mut client, 7).await;
    (client, stop)
}

/// A request in flight has its answer; only then does the connection close.
#[tokio::test]
async fn a_gateway_that_stops_answers_what_it_took() {
    let patient = limits().with_drain(Duration::from_secs(20));
    let harness = Harness::with(|config| config.with_limits(patient)).await;
    let (mut client, stop) = waiting_elsewhere(&harness).await;
    stop.cancel();
    let cancelled = notification("notifications/cancelled", json!({"requestId": 7}));
    let cancel = client.post(&cancelled);
    assert_eq!(harness.connect().await.ask(&cancel).await.status, 202);
    assert_eq!(client.http.response().await.status, 202);
    assert!(client.http.is_closed().await);
}

/// Whoever still waits when the time for that is over hears that nothing comes any more, and why.
#[tokio::test]
async fn a_gateway_that_stops_answers_what_did_not_end() {
    let harness = Harness::start().await;
    let legacy = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let wait = legacy.post(&request(json!(7), "tools/call", tool("wait")));
    let also = HttpRequest::modern(&modern(json!(7), "tools/call", tool("wait"), &json!({})));
    let mut waiting = [legacy.http, harness.connect().await];
    for (http, post) in waiting.iter_mut().zip([wait, also]) {
        http.send(&post.bytes()).await;
    }
    soon(harness.peer.wait_for("tools/call", 2)).await;
    harness.stop();
    for http in &mut waiting {
        let answer = soon(http.response()).await.json();
        let error = json!({"code": -32603, "message": "server `peer` was closed by the gateway"});
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 7, "error": error}));
        assert!(http.is_closed().await);
    }
}

#[tokio::test]
async fn a_gateway_that_stops_answers_on_streams_too() {
    let soon_a_stream = limits().with_stream_after(Duration::from_millis(1));
    let harness = Harness::with(|config| config.with_limits(soon_a_stream)).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let wait = client.post(&request(json!(7), "tools/call", tool("wait")));
    client.http.send(&wait.bytes()).await;
    let head = client.http.head().await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    soon(harness.peer.wait_for("tools/call", 1)).await;
    harness.stop();
    let events = soon(client.http.events()).await;
    let last = events.last().unwrap();
    last.has("/id", 7);
    last.has("/error/message", "server `peer` was closed by the gateway");
}

#[tokio::test]
async fn a_gateway_that_stops_ends_what_only_listens() {
    let patient = limits().with_drain(Duration::from_secs(10));
    let harness = Harness::with(|config| config.with_limits(patient)).await;
    let (address, stop) = serve(&harness.gateway).await;
    let client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let mut listening = RawHttp::connect(address).await;
    listening
        .open_stream(&HttpRequest::get(&client.session))
        .await;
    stop.cancel();
    assert!(listening.events().await.is_empty());
    assert!(listening.is_closed().await);
}

/// A gateway may have several doors; closing one disturbs nobody who came by another.
#[tokio::test]
async fn a_listener_that_stops_ends_only_its_own_streams() {
    let harness = Harness::of(|config| config.limits.streams = 1).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let get = HttpRequest::get(&client.session);
    let mut listening = harness.connect().await;
    listening.open_stream(&get).await;

    let (address, stop) = serve(&harness.gateway).await;
    let mut elsewhere = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    elsewhere.http = RawHttp::connect(address).await;
    let its_own = HttpRequest::get(&elsewhere.session);
    elsewhere.http.open_stream(&its_own).await;
    stop.cancel();
    assert!(elsewhere.http.events().await.is_empty());
    assert!(elsewhere.http.is_closed().await);

    let another = client.http.ask(&get).await;
    assert_eq!(another.status, 429, "the one stream is still open");
    harness
        .is_unharmed(&mut client.http, "another listener")
        .await;
}

/// Nor are the servers ended that others use: the call has its connection closed.
#[tokio::test]
async fn a_listener_that_stops_leaves_the_servers_to_the_others() {
    let harness = Harness::start().await;
    let (mut client, stop) = waiting_elsewhere(&harness).await;
    stop.cancel();
    assert!(client.http.is_closed().await);
    let mut other = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let called = other.answer("tools/call", tool("odd")).await;
    called.has("/error", Value::Null);
}

/// Whoever stops reading gives up its connection; here it is the only one, so that others wait for it.
#[tokio::test]
async fn a_client_that_stops_reading_loses_its_connection() {
    let harness = Harness::of(|config| {
        config.limits.write_timeout = Duration::from_millis(50);
        config.limits.connections = 1;
    })
    .await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let heavy = json!({"name": "steps", "arguments": {"heavy": true}});
    let steps = client.post(&request(json!(7), "tools/call", heavy));
    client.http.send(&steps.bytes()).await;
    assert_eq!(client.http.head().await.status, 200);
    let mut other = harness.connect().await;
    let ping = client.post(&request(json!(8), "ping", json!({})));
    assert_eq!(other.ask(&ping).await.status, 200);
    drop(other);
    drop(client);
}
