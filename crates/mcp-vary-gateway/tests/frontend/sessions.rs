//! Sessions: what `initialize` negotiates, what a session id contains, and when a session ends.

use std::sync::atomic::AtomicU64;

use crate::support::*;

#[tokio::test]
async fn initialize_agrees_on_a_revision() {
    let harness = Harness::start().await;
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let client = LegacyClient::open(&harness, asked, &json!({})).await;
        assert_eq!(client.initialized["protocolVersion"], agreed, "{asked}");
        client.initialized.has("/serverInfo/version", "1.10");
        let mut pipe = open_pipe(&harness.gateway);
        let answer = pipe.ask(&initialize(asked, &json!({}))).await;
        assert_eq!(answer["result"]["protocolVersion"], agreed, "{asked}");
    }
}

/// What a session may not do here is not offered (subscriptions, changes of lists).
#[tokio::test]
async fn what_is_offered_can_be_had() {
    let harness = Harness::start().await;
    let client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let mut offered = client.initialized["capabilities"].clone();
    offered.as_object_mut().unwrap().remove("extensions");
    let lists = json!({"listChanged": true});
    let all = json!({"tools": lists, "resources": lists, "prompts": lists, "completions": {}, "logging": {}});
    assert_eq!(offered, all);
}

#[tokio::test]
async fn a_request_without_a_session_is_told_to_open_one() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    for method in ["ping", "tools/list", "tools/call", "no/such"] {
        let post = HttpRequest::new(request(json!("é"), method, tool("odd")).to_string());
        let expected = (400, -32600, json!("é"));
        assert_eq!(http.ask(&post).await.refusal(), expected, "{method}");
    }
    harness.is_unharmed(&mut http, "no session").await;
}

#[tokio::test]
async fn only_what_the_gateway_sealed_is_a_session() {
    let harness = Harness::start().await;
    let elsewhere = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let foreign = LegacyClient::open(&elsewhere, "2025-11-25", &json!({})).await;
    let id = client.session.clone();
    let (first, rest) = id.split_at(1);
    let exchanged = [if first == "A" { "B" } else { "A" }, rest].concat();
    let middle = id.len() / 2;
    let gap = [&id[..middle], &id[middle + 1..]].concat();
    for (what, forged) in [
        ("empty", String::new()),
        ("made up", "nobody".to_owned()),
        ("the first character exchanged", exchanged),
        ("a character in the middle gone", gap),
        ("truncated", id[..id.len() - 4].to_owned()),
        ("extended", format!("{id}AAAA")),
        ("padded", format!("{id}=")),
        ("in other letters", id.to_uppercase()),
        ("twice", format!("{id}{id}")),
        ("only the seal", id[..43].to_owned()),
        ("huge", "A".repeat(20_000)),
        ("outside ASCII", "é".to_owned()),
        ("of another gateway", foreign.session.clone()),
    ] {
        let post = HttpRequest::of(&forged, request(json!(7), "ping", json!({})).to_string());
        let answer = client.http.ask(&post).await;
        assert_eq!(answer.refusal(), (404, -32001, json!(7)), "{what}");
    }
    assert_eq!(client.ask("ping", json!({})).await.status, 200);
    harness
        .is_unharmed(&mut client.http, "forged sessions")
        .await;
}

#[tokio::test]
async fn a_deleted_session_stays_deleted() {
    let one = limits().with_sessions(1);
    let harness = Harness::with(|config| config.with_limits(one)).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let delete = HttpRequest::delete(&client.session);
    let without = delete.clone().without("Mcp-Session-Id");
    let expected = (400, -32600, Value::Null);
    assert_eq!(client.http.ask(&without).await.refusal(), expected);
    assert_eq!(client.http.ask(&delete).await.status, 200);
    let expected = (404, -32001, json!(1));
    assert_eq!(client.ask("ping", json!({})).await.refusal(), expected);
    assert_eq!(client.http.ask(&delete).await.status, 404, "again");
    // Others take the one place of the table; what was deleted is known all the same.
    for _ in 0..3 {
        let mut other = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        assert_eq!(other.ask("ping", json!({})).await.status, 200);
    }
    let expected = (404, -32001, json!(1));
    assert_eq!(client.ask("ping", json!({})).await.refusal(), expected);
    harness
        .is_unharmed(&mut client.http, "a deleted session")
        .await;
}

/// A deleted session that had already left the table is found by its id, and deleted.
#[tokio::test]
async fn a_session_outside_the_table_can_be_deleted() {
    let one = limits().with_sessions(1);
    let harness = Harness::with(|config| config.with_limits(one)).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let _other = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    client.delete().await;
    assert_eq!(client.ask("ping", json!({})).await.status, 404);
}

/// The head of a request names its session, which may end before the body is there.
#[tokio::test]
async fn a_session_that_ends_before_the_body_arrives_is_unknown() {
    let one = limits().with_sessions(1);
    let harness = Harness::with(|config| config.with_limits(one)).await;
    for is_in_table in [true, false] {
        let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        let body = request(json!(7), "ping", json!({})).to_string();
        let post = HttpRequest::of(&client.session, body.as_str()).with("Expect", "100-continue");
        let bytes = post.bytes();
        let mut http = harness.connect().await;
        http.send(&bytes[..bytes.len() - body.len()]).await;
        assert_eq!(http.head().await.status, 100);
        if !is_in_table {
            let _other = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        }
        client.delete().await;
        http.send(body.as_bytes()).await;
        let refusal = http.response().await.refusal();
        assert_eq!(refusal, (404, -32001, json!(7)), "{is_in_table}");
    }
}

#[tokio::test]
async fn a_session_expires() {
    static NOW: AtomicU64 = AtomicU64::new(1_000_000);
    let harness = Harness::of(|config| {
        let random = |bytes: &mut [u8]| getrandom::fill(bytes).unwrap();
        config.environment = Environment::new(|| NOW.load(Ordering::SeqCst), random);
        config.session_lifetime = Duration::from_secs(60);
    })
    .await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    NOW.store(1_000_059, Ordering::SeqCst);
    assert_eq!(client.ask("ping", json!({})).await.status, 200);
    NOW.store(1_000_060, Ordering::SeqCst);
    let expected = (404, -32001, json!(1));
    assert_eq!(client.ask("ping", json!({})).await.refusal(), expected);
    let delete = HttpRequest::delete(&client.session);
    assert_eq!(client.http.ask(&delete).await.status, 404);
    harness
        .is_unharmed(&mut client.http, "an expired session")
        .await;
}

/// CN-2: however much a client declares, its session id fits into any header.
#[tokio::test]
async fn a_session_id_has_at_most_two_kibibytes() {
    let harness = Harness::start().await;
    let mut tags: Vec<String> = (0..62)
        .map(|n| format!("x-{n:02}-{}", "y".repeat(123)))
        .collect();
    tags.extend(["agent".to_owned(), "format=json".to_owned()]);
    assert!(tags.iter().all(|tag| tag.len() <= 128) && tags.len() == 64);
    let tags: Vec<_> = tags.iter().map(String::as_str).collect();
    let mut client = LegacyClient::open(&harness, "2025-11-25", &features(&tags)).await;
    assert!(client.session.len() <= 2048, "{}", client.session.len());
    let answer = client.answer("tools/call", tool("odd")).await;
    answer.has("/result/content", json!([]));
}

/// CN-2, CN-18: tags that do not fit into the id are those without an effect, and they are gone at once: a
/// session is the same before and after its place in the table was given away.
#[tokio::test]
async fn what_does_not_fit_into_an_id_was_never_there() {
    let one = limits().with_sessions(1);
    let harness = Harness::with(|config| config.with_limits(one)).await;
    let filler = "y".repeat(110);
    for last in ["format=json", "format=markdown"] {
        let mut tags: Vec<String> = (0..62).map(|n| format!("format={n:02}-{filler}")).collect();
        tags.extend(["agent".to_owned(), last.to_owned()]);
        let tags: Vec<_> = tags.iter().map(String::as_str).collect();
        let mut client = LegacyClient::open(&harness, "2025-11-25", &features(&tags)).await;
        let before = client.ask("tools/call", tool("odd")).await.text();
        let _other = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        assert_eq!(client.ask("tools/call", tool("odd")).await.text(), before);
        let format = last.trim_start_matches("format=");
        let expected = format!(r#""format":"{format}""#);
        assert!(before.contains(&expected), "{before}");
    }
}

/// CN-18: features belong to the session, wherever it is served and whatever was forgotten of it.
#[tokio::test]
async fn features_and_variants_outlive_the_table() {
    let one = limits().with_sessions(1);
    let harness = Harness::with(|config| config.with_limits(one)).await;
    let mut capabilities = features(&["agent", "format=json"]);
    capabilities["extensions"]["io.modelcontextprotocol/server-variants"] =
        json!({"variantHints": {"hints": {"contextSize": "compact"}}});
    let mut client = LegacyClient::open(&harness, "2025-11-25", &capabilities).await;
    let before = client.ask("tools/call", tool("odd")).await.text();
    let list = client.ask("tools/list", json!({})).await.text();
    assert!(before.contains(r#""content":[]"#), "{before}");
    assert!(!list.contains("And more."), "{list}");
    let mut plain = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    for _ in 0..3 {
        let other = plain.ask("tools/call", tool("odd")).await.text();
        assert!(other.contains("x-unknown") && !other.contains(r#""content":[]"#));
        assert_eq!(client.ask("tools/call", tool("odd")).await.text(), before);
        assert_eq!(client.ask("tools/list", json!({})).await.text(), list);
    }
}

/// The key is settable, so that replicas serve each other's sessions and a restart keeps them.
#[tokio::test]
async fn replicas_with_one_key_share_sessions() {
    let harness = Harness::with(|config| config.with_key([7; 32])).await;
    let replica = Harness::with(|config| config.with_key([7; 32])).await;
    let client =
        LegacyClient::open(&harness, "2025-11-25", &features(&["agent", "format=json"])).await;
    let call = client.post(&request(json!(1), "tools/call", tool("odd")));
    let answer = replica.connect().await.ask(&call).await;
    let expected = r#""content":[]"#;
    assert!(answer.text().contains(expected), "{}", answer.text());
}

#[tokio::test]
async fn a_call_in_flight_ends_with_its_session() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    harness.wait_in(&mut client, 7).await;
    let delete = HttpRequest::delete(&client.session);
    let mut other = harness.connect().await;
    assert_eq!(other.ask(&delete).await.status, 200);
    soon(harness.peer.wait_for("notifications/cancelled", 1)).await;
    let expected = (404, -32001, json!(7));
    assert_eq!(client.http.response().await.refusal(), expected);
    harness.is_unharmed(&mut other, "a deleted session").await;
}

/// However full the table is, a call that runs can be cancelled: its session keeps its place while
/// another can give way, and is known by those who use it when none can.
#[tokio::test]
async fn a_call_can_be_cancelled_however_many_sessions_there_are() {
    for sessions in [1, 2] {
        let few = limits().with_sessions(sessions);
        let harness = Harness::with(|config| config.with_limits(few)).await;
        let mut busy = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        harness.wait_in(&mut busy, 7).await;
        for _ in 0..5 {
            let mut other = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
            assert_eq!(other.ask("ping", json!({})).await.status, 200);
        }
        let again = busy.post(&request(json!(7), "ping", json!({})));
        let answer = harness.connect().await.ask(&again).await;
        assert_eq!(answer.refusal(), (400, -32600, json!(7)), "it is in flight");
        let cancel = notification("notifications/cancelled", json!({"requestId": 7}));
        let answer = harness.connect().await.ask(&busy.post(&cancel)).await;
        assert_eq!(answer.status, 202);
        soon(harness.peer.wait_for("notifications/cancelled", 1)).await;
        assert_eq!(busy.http.response().await.status, 202);
    }
}

/// The answers of both fronts are the same bytes.
#[tokio::test]
async fn the_fronts_agree() {
    let harness = Harness::start().await;
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", tool("odd")),
        ("tools/call", tool("refuse")),
        ("tools/call", tool("no such")),
        ("resources/read", json!({"uri": "place:bern"})),
        ("resources/read", json!({"uri": "place:basel"})),
        ("no/such", json!({})),
    ] {
        let ask =
            async |way: ClientKind| way.text(&harness, &json!({}), method, params.clone()).await;
        let expected = ask(ClientKind::StdioLegacy).await;
        assert_eq!(ask(ClientKind::HttpLegacy).await, expected, "{method}");
        let expected = ask(ClientKind::StdioModern).await;
        assert_eq!(ask(ClientKind::HttpModern).await, expected, "{method}");
    }
}
