//! Which locks a request takes: none that requests of other clients take, too.

use std::panic::Location;

use mcp_vary_base::lock::trace;

use crate::support::*;

const METHODS: [&str; 2] = ["tools/call", "tools/list"];

fn params(method: &str) -> Value {
    match method {
        "tools/call" => tool("odd"),
        _ => json!({}),
    }
}

/// The global locks that one request takes, after one like it. Everything runs on the thread of the test.
async fn acquired(http: &mut RawHttp, request: &HttpRequest) -> Vec<String> {
    let first = http.ask(request).await;
    assert!(first.json()["result"].is_object(), "{}", first.text());
    trace::start();
    let answer = http.ask(request).await;
    let acquired = trace::stop();
    assert!(answer.json()["result"].is_object(), "{}", answer.text());
    acquired.into_iter().map(Location::to_string).collect()
}

#[tokio::test]
async fn a_request_takes_no_lock_that_is_global_to_the_gateway() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::before(era, |config| config).await;
        harness.gateway.record_calls();
        // The end of a connection, which takes a lock, must not fall into the next request.
        let mut open = Vec::new();
        for declared in [json!({}), features(&["agent", "format=json"])] {
            let mut client = LegacyClient::open(&harness, "2025-11-25", &declared).await;
            let mut http = harness.connect().await;
            for method in METHODS {
                let ask = modern(json!(1), method, params(method), &declared);
                let locks = acquired(&mut http, &HttpRequest::modern(&ask)).await;
                assert_eq!(locks, [""; 0], "{era:?} {method} {declared}, modern client");
                let ask =
                    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params(method)});
                let ask = client.post(&ask);
                let locks = acquired(&mut client.http, &ask).await;
                assert_eq!(locks, [""; 0], "{era:?} {method} {declared}, legacy client");
            }
            open.push((client, http));
        }
    }
}

/// What is recorded at all: a subscription is entered in the hub, which all clients share.
#[tokio::test]
async fn a_subscription_takes_a_global_lock() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    trace::start();
    let params = json!({"uri": "place:spot"});
    client.ask("resources/subscribe", params).await;
    assert_ne!(trace::stop(), Vec::<&Location<'_>>::new());
}
