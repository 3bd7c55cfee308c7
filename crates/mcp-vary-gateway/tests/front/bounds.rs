//! What clients and servers can make the gateway hold, and what they are answered beyond that.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::http_peer::{Peer, Reply, Seen};
use crate::support::{
    House, Http, Legacy, Pipe, Post, Way, initialize, introduced, modern, names, soon, tool,
};

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
    let house = House::start().await;
    let fits = capabilities(60 << 10);
    for way in Way::ALL {
        let answer = way.ask(&house, &fits, "ping", json!({})).await;
        assert!(
            answer.get("error").is_none() || way.is_modern(),
            "{way:?}: {answer}"
        );
        let answer = way.ask(&house, &fits, "tools/list", json!({})).await;
        assert!(answer["result"].is_object(), "{way:?}: {answer}");
    }
    let large = capabilities(70 << 10);
    let message = initialize("2025-11-25", &large);
    let mut http = house.connect().await;
    let over_http = http.ask(&Post::new(message.to_string())).await;
    assert_eq!(over_http.status, 200);
    let mut pipe = Pipe::open(&house.gateway);
    let list = modern(json!(0), "tools/list", json!({}), &large);
    let answers = [
        over_http.json(),
        pipe.ask(&message).await,
        Http::connect(house.address)
            .await
            .ask(&Post::modern(&list))
            .await
            .json(),
        pipe.ask(&list).await,
    ];
    for answer in answers {
        let (code, message) = error(&answer);
        assert_eq!((code, &answer["id"]), (-32602, &json!(0)));
        assert!(
            message.ends_with("bytes long; 65536 are allowed"),
            "{message}"
        );
    }
    house.is_unharmed(&mut http, "large capabilities").await;
}

/// A server whose tool answers with so many arrays in each other.
fn nesting(seen: &Seen) -> Option<Reply> {
    let result = match seen.method() {
        "initialize" => introduced("deep", json!({"tools": {}})).to_string(),
        "tools/list" => {
            let tools = ["shallow", "deep", "streamed"];
            let tools = tools.map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
            json!({"tools": tools}).to_string()
        }
        "tools/call" => {
            let name = seen.body["params"]["name"].as_str()?;
            let levels = if name == "shallow" { 100 } else { 100_000 };
            let nested = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            format!(r#"{{"content":[],"x":{nested}}}"#)
        }
        _ => return None,
    };
    let is_streamed = seen.body["params"]["name"] == "streamed";
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#,
        seen.id()
    );
    Some(match is_streamed {
        true => Reply::events(format!("data: {body}\n\n")),
        false => Reply::new(200, "application/json", body),
    })
}

#[tokio::test]
async fn a_result_that_nests_too_deep_is_an_error_that_names_the_server() {
    let house = House::behind_one(Peer::start(nesting).await, |config| config).await;
    for way in Way::ALL {
        let shallow = way
            .ask(&house, &json!({}), "tools/call", tool("shallow"))
            .await;
        assert!(shallow["result"]["x"].is_array(), "{way:?}");
        for name in ["deep", "streamed"] {
            let answer = way.ask(&house, &json!({}), "tools/call", tool(name)).await;
            assert_eq!(
                error(&answer),
                (
                    -32603,
                    "the answer of server `peer` nests deeper than 128 levels, so it is not passed on"
                ),
                "{way:?}"
            );
        }
    }
    let mut client = Legacy::open(&house, "2025-11-25", &json!({})).await;
    let answer = client.ask("tools/call", tool("shallow")).await;
    assert_eq!(answer.status, 200);
}

/// A server that lists so many tools on one page, and one resource.
fn listing(seen: &Seen, tools: usize) -> Option<Reply> {
    let result = match seen.method() {
        "initialize" => introduced("long", json!({"tools": {}, "resources": {}})),
        "tools/list" => {
            let tools = (0..tools)
                .map(|at| json!({"name": format!("t{at}"), "inputSchema": {"type": "object"}}));
            json!({"tools": tools.collect::<Vec<_>>()})
        }
        "resources/list" => json!({"resources": [{"uri": "a:1", "name": "a"}]}),
        "tools/call" => json!({"content": []}),
        _ => return None,
    };
    Some(seen.answer(&result))
}

async fn house_listing(tools: &Arc<AtomicUsize>) -> House {
    let tools = Arc::clone(tools);
    let peer = Peer::start(move |seen| listing(seen, tools.load(Ordering::Relaxed))).await;
    House::behind_one(peer, |config| config).await
}

const TOO_MANY: &str = "tools/list of the server: `tools`: it holds more than 100000 elements";

#[tokio::test]
async fn a_first_page_of_too_many_items_is_an_error_and_other_lists_are_shown() {
    let house = house_listing(&Arc::new(AtomicUsize::new(100_001))).await;
    for way in Way::ALL {
        let tools = way.ask(&house, &json!({}), "tools/list", json!({})).await;
        assert_eq!(error(&tools), (-32603, TOO_MANY), "{way:?}");
        let resources = way
            .ask(&house, &json!({}), "resources/list", json!({}))
            .await;
        assert_eq!(resources["result"]["resources"][0]["uri"], "a:1", "{way:?}");
    }
    let server = &house.gateway.status().servers[0];
    assert_eq!(
        server.unread.get("tools/list").map(String::as_str),
        Some(TOO_MANY)
    );
}

#[tokio::test]
async fn a_list_whose_views_would_take_too_much_is_an_error() {
    let house = house_listing(&Arc::new(AtomicUsize::new(90_000))).await;
    let tools = Way::HttpModern
        .ask(&house, &json!({}), "tools/list", json!({}))
        .await;
    let (code, why) = error(&tools);
    assert_eq!(code, -32603);
    assert!(
        why.starts_with("tools/list of the server would take more than 128 MiB: "),
        "{why}"
    );
}

#[tokio::test]
async fn the_last_good_list_stays_when_the_next_one_is_too_long() {
    let count = Arc::new(AtomicUsize::new(2));
    let house = house_listing(&count).await;
    let way = Way::HttpLegacy;
    let list = way.ask(&house, &json!({}), "tools/list", json!({})).await;
    assert_eq!(names(&list), ["t0", "t1"]);
    count.store(100_001, Ordering::Relaxed);
    // A tool that is not listed has the list read again, at most once a second.
    let is_unread = || {
        house.gateway.status().servers[0]
            .unread
            .contains_key("tools/list")
    };
    soon(async {
        while !is_unread() {
            let answer = way
                .ask(&house, &json!({}), "tools/call", tool("other"))
                .await;
            assert_eq!(answer["error"]["code"], -32602);
        }
    })
    .await;
    let list = way.ask(&house, &json!({}), "tools/list", json!({})).await;
    assert_eq!(names(&list), ["t0", "t1"]);
    let call = way.ask(&house, &json!({}), "tools/call", tool("t1")).await;
    assert!(call["result"].is_object(), "{call}");
    assert!(
        house.gateway.status().servers[0]
            .unread
            .contains_key("tools/list")
    );
}
