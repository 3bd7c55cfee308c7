//! Bounds on what clients and servers can make the gateway store, and the errors beyond them.

use crate::support::*;

/// The error of an answer: its code and message.
fn error(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    let code = error["code"].as_i64();
    let code = code.unwrap_or_else(|| panic!("no error: {answer}"));
    (code, error["message"].as_str().unwrap_or_default())
}

/// Capabilities of about so many bytes that take many times as much when they are read into a tree.
fn capabilities(bytes: usize) -> Value {
    json!({"x": vec![json!([]); bytes / 3]})
}

#[tokio::test]
async fn capabilities_are_bounded_before_they_are_read() {
    let harness = Harness::start().await;
    let fits = capabilities(60 << 10);
    for way in ClientKind::ALL {
        let answer = way.ask(&harness, &fits, "ping", json!({})).await;
        assert!(
            answer.get("error").is_none() || way.is_modern(),
            "{way:?}: {answer}"
        );
        let answer = way.ask(&harness, &fits, "tools/list", json!({})).await;
        assert!(answer["result"].is_object(), "{way:?}: {answer}");
    }
    let large = capabilities(70 << 10);
    let message = initialize("2025-11-25", &large);
    let mut http = harness.connect().await;
    let over_http = http.ask(&HttpRequest::new(message.to_string())).await;
    assert_eq!(over_http.status, 200);
    let mut pipe = open_pipe(&harness.gateway);
    let list = modern(json!(0), "tools/list", json!({}), &large);
    let answers = [
        over_http.json(),
        pipe.ask(&message).await,
        RawHttp::connect(harness.address)
            .await
            .ask(&HttpRequest::modern(&list))
            .await
            .json(),
        pipe.ask(&list).await,
    ];
    for answer in answers {
        let (code, message) = error(&answer);
        assert_eq!((code, &answer["id"]), (-32602, &json!(0)));
        let expected = "bytes long; 65536 are allowed";
        assert!(message.ends_with(expected), "{message}");
    }
    harness.is_unharmed(&mut http, "large capabilities").await;
}

/// A server whose tool answers with so many arrays in each other.
fn nesting() -> Script {
    Script::legacy("deep")
        .tools(&["shallow", "deep", "streamed"])
        .reply("tools/call", |seen| {
            let name = &seen.body["params"]["name"];
            let levels = if name == "shallow" { 100 } else { 100_000 };
            let nested = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            let result = format!(r#"{{"content":[],"x":{nested}}}"#);
            if name != "streamed" {
                return seen.answer_text(&result);
            }
            let id = seen.id();
            Reply::events(format!(
                "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n\n"
            ))
        })
}

#[tokio::test]
async fn a_result_that_nests_too_deep_is_an_error_that_names_the_server() {
    let harness = Harness::of_server(nesting()).await;
    for way in ClientKind::ALL {
        let shallow = harness.ask(way, "tools/call", tool("shallow")).await;
        assert!(shallow["result"]["x"].is_array(), "{way:?}");
        for name in ["deep", "streamed"] {
            let answer = harness.ask(way, "tools/call", tool(name)).await;
            let expected = (
                -32603,
                "the answer of server `peer` nests deeper than 128 levels and is not forwarded",
            );
            assert_eq!(error(&answer), expected, "{way:?}");
        }
    }
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let answer = client.ask("tools/call", tool("shallow")).await;
    assert_eq!(answer.status, 200);
}

/// A gateway before a server that lists so many tools on one page, and one resource.
async fn house_listing(tools: &Arc<AtomicUsize>) -> Harness {
    let tools = Arc::clone(tools);
    let script = Script::legacy("long")
        .declares(json!({"tools": {}}))
        .on("tools/list", move |_| {
            let tools = (0..tools.load(Ordering::Relaxed))
                .map(|at| json!({"name": format!("t{at}"), "inputSchema": {"type": "object"}}));
            json!({"tools": tools.collect::<Vec<_>>()})
        })
        .lists(json!({"resources": [{"uri": "a:1", "name": "a"}]}))
        .result("tools/call", json!({"content": []}));
    Harness::of_server(script).await
}

const TOO_MANY: &str = "tools/list of the server: `tools`: it has more than 100000 elements";

#[tokio::test]
async fn a_first_page_of_too_many_items_is_an_error_and_other_lists_are_shown() {
    let harness = house_listing(&Arc::new(AtomicUsize::new(100_001))).await;
    for way in ClientKind::ALL {
        let tools = harness.ask(way, "tools/list", json!({})).await;
        assert_eq!(error(&tools), (-32603, TOO_MANY), "{way:?}");
        let resources = harness.ask(way, "resources/list", json!({})).await;
        assert_eq!(resources["result"]["resources"][0]["uri"], "a:1", "{way:?}");
    }
    let server = &harness.gateway.status().servers[0];
    assert_eq!(
        server.failed_lists.get("tools/list").map(String::as_str),
        Some(TOO_MANY)
    );
}

#[tokio::test]
async fn a_list_whose_views_would_take_too_much_is_an_error() {
    let harness = house_listing(&Arc::new(AtomicUsize::new(90_000))).await;
    let tools = harness.ask_modern("tools/list", json!({})).await;
    let (code, why) = error(&tools);
    assert_eq!(code, -32603);
    let expected = "tools/list of the server would take more than 128 MiB: ";
    assert!(why.starts_with(expected), "{why}");
}

#[tokio::test]
async fn the_last_good_list_stays_when_the_next_one_is_too_long() {
    let count = Arc::new(AtomicUsize::new(2));
    let harness = house_listing(&count).await;
    let way = ClientKind::HttpLegacy;
    let list = harness.ask(way, "tools/list", json!({})).await;
    assert_eq!(names(&list), ["t0", "t1"]);
    count.store(100_001, Ordering::Relaxed);
    // A tool that is not listed has the list read again, at most once a second.
    let is_unread = || {
        harness.gateway.status().servers[0]
            .failed_lists
            .contains_key("tools/list")
    };
    soon(async {
        while !is_unread() {
            let answer = harness.ask(way, "tools/call", tool("other")).await;
            answer.has("/error/code", -32602);
            // Leaves the processor to the reading.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    let list = harness.ask(way, "tools/list", json!({})).await;
    assert_eq!(names(&list), ["t0", "t1"]);
    let call = harness.ask(way, "tools/call", tool("t1")).await;
    assert!(call["result"].is_object(), "{call}");
    assert!(
        harness.gateway.status().servers[0]
            .failed_lists
            .contains_key("tools/list")
    );
}

/// A call of 100 KiB.
fn large_call(id: usize) -> Value {
    let arguments = json!({"text": "x".repeat(100 << 10)});
    let params = json!({"name": "wait", "arguments": arguments});
    request(json!(id), "tools/call", params)
}

const NO_MEMORY: &str =
    "the gateway holds as much for its clients as `limits.memory` allows; try again later";

/// Memory for two calls of 100 KiB, each with what is sent on of it.
async fn house_with_little_memory() -> Harness {
    Harness::with(|config| {
        let mut limits = limits();
        limits.memory = 500 << 10;
        config.with_limits(limits)
    })
    .await
}

#[tokio::test]
async fn bodies_over_the_memory_for_clients_are_refused_and_small_ones_pass() {
    let harness = house_with_little_memory().await;
    let mut waiting = Vec::new();
    for id in 0..2 {
        let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        client
            .http
            .send(&client.post(&large_call(id)).bytes())
            .await;
        waiting.push(client);
    }
    harness.peer.wait_for("tools/call", 2).await;
    // With a length, and without one.
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let refused = client.send(&large_call(2)).await;
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.refusal(), (503, -32603, json!(null)));
    assert_eq!(error(&refused.json()).1, NO_MEMORY);
    let mut http = harness.connect().await;
    let body = large_call(2).to_string();
    let chunked = client
        .post(&json!(0))
        .with("Transfer-Encoding", "chunked")
        .head();
    http.send(&chunked).await;
    http.send(format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).as_bytes())
        .await;
    assert_eq!(http.response().await.refusal(), (503, -32603, json!(null)));
    let mut other = harness.connect().await;
    harness.is_unharmed(&mut other, "large bodies").await;
    assert_eq!(harness.gateway.status().counters["refused-for-memory"], 2);
    // Who goes gives back what it took.
    for mut client in waiting {
        let cancel = notification("notifications/cancelled", json!({"requestId": 0}));
        let mut http = harness.connect().await;
        http.ask(&client.post(&cancel)).await;
        let cancel = notification("notifications/cancelled", json!({"requestId": 1}));
        http.ask(&client.post(&cancel)).await;
        client.http.response().await;
    }
    let mut again = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let mut call = large_call(3);
    call["params"]["name"] = json!("odd");
    let answer = again.send(&call).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[tokio::test]
async fn lines_over_the_memory_for_clients_are_refused_by_their_ids() {
    let harness = house_with_little_memory().await;
    let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
    for id in 1..3 {
        pipe.send(large_call(id).to_string()).await;
    }
    harness.peer.wait_for("tools/call", 2).await;
    let refused = pipe.ask(&large_call(3)).await;
    let expected = ((-32603, NO_MEMORY), &json!(3));
    assert_eq!((error(&refused), &refused["id"]), expected);
    let ping = pipe.ask(&request(json!(4), "ping", json!({}))).await;
    ping.has("/result", json!({}));
}

#[tokio::test]
async fn a_large_body_of_an_unknown_session_is_not_read() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let post = HttpRequest::of("unknown", "").with("Content-Length", (1 << 20).to_string());
    http.send(&post.head()).await;
    let refused = http.response().await;
    assert_eq!(refused.refusal(), (404, -32001, json!(null)));
}

/// What subscribes to a URI, of a session or of a stream.
async fn subscribe(harness: &Harness, client: &mut LegacyClient, uri: &str) -> [Value; 2] {
    let legacy = client.ask("resources/subscribe", json!({"uri": uri})).await;
    let filter = json!({"notifications": {"resourceSubscriptions": [uri]}});
    let mut http = harness.connect().await;
    http.send(&HttpRequest::modern_request("subscriptions/listen", filter).bytes())
        .await;
    let head = http.head().await;
    let modern = match head.header("content-type") {
        Some("text/event-stream") => http.event().await.unwrap(),
        _ => {
            let length = head.header("content-length").unwrap().parse().unwrap();
            serde_json::from_slice(&http.exactly(length).await).unwrap()
        }
    };
    [legacy.json(), modern]
}

#[tokio::test]
async fn a_subscription_to_a_long_uri_is_refused() {
    let stage = ChangingServer::new(Era::Legacy);
    let harness = Harness::changing(&stage).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let long = format!("note:{}", "x".repeat(8 << 10));
    for (answer, name) in subscribe(&harness, &mut client, &long).await.iter().zip([
        "`uri`",
        "an element of `notifications.resourceSubscriptions`",
    ]) {
        let why = format!("{name} is 8197 bytes long; 8192 are allowed");
        assert_eq!(error(answer), (-32602, &*why));
    }
}

#[tokio::test]
async fn subscriptions_of_all_clients_are_bounded_and_given_back() {
    let stage = ChangingServer::new(Era::Legacy);
    let harness = Harness::changing_with(&stage, |config| {
        let mut limits = limits();
        limits.memory = 4 * 3_500;
        config.with_limits(limits)
    })
    .await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        let params = json!({"uri": "note:a"});
        let answer = client.ask("resources/subscribe", params).await;
        answer.json().has("/result", json!({}));
        clients.push(client);
    }
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    for answer in subscribe(&harness, &mut client, "note:a").await {
        assert_eq!(
            error(&answer),
            (
                -32603,
                "subscriptions take a quarter of `limits.memory`, which is all they may; unsubscribe from some, or try \
                 again later"
            )
        );
    }
    // By unsubscribing, and by the end of a session.
    let answer = clients[0]
        .ask("resources/unsubscribe", json!({"uri": "note:a"}))
        .await;
    answer.json().has("/result", json!({}));
    let params = json!({"uri": "note:a"});
    let answer = client.ask("resources/subscribe", params).await;
    answer.json().has("/result", json!({}));
    let end = HttpRequest::delete(&clients[1].session);
    assert_eq!(clients[1].http.ask(&end).await.status, 200);
    let mut last = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let params = json!({"uri": "note:a"});
    let answer = last.ask("resources/subscribe", params).await;
    answer.json().has("/result", json!({}));
}
