//! Rate limits of calls, and of changes of the variant.

use crate::prelude::*;
use crate::variants::shops;
use mcp_vary_rmcp::rates::{
    Counted, DEFAULT_CAPACITY, FakeRelativeClock, Limit, Per, RateLimiter, SharedClock,
};

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

fn limit(name: &str, per: Per, counted: Counted, rate: &str) -> Limit {
    Limit::new(name, per, counted, rate.parse().unwrap()).unwrap()
}

/// A switch in each minute.
fn switches() -> Limit {
    limit("switches", Per::Principal, Counted::Switches, "1/min")
}

/// The server, and the clock of its limits.
fn limited(builder: Builder, limits: Vec<Limit>) -> (VaryServer, FakeRelativeClock) {
    let clock = FakeRelativeClock::default();
    let shared = SharedClock::of(clock.clone());
    let limiter = RateLimiter::new(limits, DEFAULT_CAPACITY, shared).unwrap();
    (builder.with_rate_limits(limiter).build().unwrap(), clock)
}

/// SV-21: each principal has its own rate of calls, in every variant together.
#[tokio::test]
async fn a_principal_may_call_so_often() {
    for era in each(ERAS) {
        let limits = vec![limit("calls", Per::Principal, Counted::Calls, "2/min")];
        let (server, clock) = limited(shops().with_principal(principal), limits);
        let http = serve_http(server).await;
        let ada = join(&http.url, era, json!({}), &[("x-role", "ada")]).await;
        let bob = join(&http.url, era, json!({}), &[("x-role", "bob")]).await;

        ada.call("plain", "get_who", json!({})).await;
        let uri = json!({"uri": "shop:///all"});
        ada.result("rich", "resources/read", uri).await;
        let call = json!({"name": "who", "arguments": {}});
        let error = ada.error("small", "tools/call", call.clone()).await;
        let message = "the limit `calls` is reached; retry after 30 s";
        let data = data_of(error, -32005, message);
        let expected = json!({"limit": "calls", "retryAfter": 30, "activeVariant": "small"});
        assert_eq!(data, expected);

        // Lists are free, and what does not exist is answered as such.
        ada.names("small", "tools").await;
        let unknown = json!({"name": "nothing"});
        let error = ada.error("small", "tools/call", unknown).await;
        data_of(error, -32602, "Unknown tool: nothing");
        bob.call("small", "who", json!({})).await;

        clock.advance(Duration::from_secs(30));
        ada.result("small", "tools/call", call).await;
    }
}

/// SV-21: a tool has one rate under all of its names.
#[tokio::test]
async fn a_tool_is_counted_by_the_handlers_name() {
    for era in each(ERAS) {
        let who = limit("who", Per::Tool, Counted::Calls, "1/h").for_tools("get_who");
        let (server, _clock) = limited(shops(), vec![who.unwrap()]);
        let client = connect(&server, (era, Wire::Pipe)).await;
        client.call("small", "who", json!({})).await;
        let call = json!({"name": "get_who", "arguments": {}});
        let error = client.error("plain", "tools/call", call).await;
        let message = "the limit `who` is reached; retry after 3600 s";
        let data = data_of(error, -32005, message);
        assert_eq!(data["activeVariant"], "plain");
        client.call("plain", "get_arguments", json!({})).await;
    }
}

/// SV-21: changes of the variant have a rate of their own, and the active variant stays usable.
#[tokio::test]
async fn changes_of_the_variant_have_a_rate() {
    for era in each(ERAS) {
        let builder = shops().with_principal(|_| Some(member("ada")));
        let (server, clock) = limited(builder, vec![switches()]);
        let client = connect(&server, (era, Wire::Pipe)).await;
        let list = async |id: &str| client.under(id, "tools/list", json!({})).await;
        list("plain").await.unwrap();
        list("rich").await.unwrap();
        let error = list("plain").await.unwrap_err();
        let data = data_of(error, -32000, "Too many switches of the server variant");
        let expected = json!({"limit": "switches", "retryAfter": 60, "activeVariant": "rich"});
        assert_eq!(data, expected);
        list("rich").await.unwrap();
        clock.advance(Duration::from_secs(60));
        list("plain").await.unwrap();
    }
}

/// SV-21: anonymous clients without a session are counted by address, and not without one.
#[tokio::test]
async fn anonymous_clients_are_counted_by_address() {
    let refused = async |builder: Builder| {
        let (server, _clock) = limited(builder, vec![switches()]);
        let client = connect(&server, (Era::Modern, Wire::Http)).await;
        let mut codes: Vec<Value> = Vec::new();
        for id in ["plain", "rich", "plain"] {
            let answer = client.under(id, "tools/list", json!({})).await;
            codes.push(answer.map_or_else(|error| json!(error.code.0), |_| Value::Null));
        }
        codes
    };
    let nulls = vec![Value::Null; 3];
    assert_eq!(refused(shops()).await, nulls);
    let with_address = shops().with_client_address(|_| "192.0.2.1".parse().ok());
    let limited = [Value::Null, Value::Null, json!(-32000)];
    assert_eq!(refused(with_address).await, limited);
}

/// A limit applies to servers without variants; then no variant is named.
#[tokio::test]
async fn a_server_without_variants_has_limits() {
    let limits = vec![limit("calls", Per::Server, Counted::Calls, "1/h")];
    let handler = crate::shop::Shop::new("plain");
    let (server, _clock) = limited(VaryServer::builder().with_handler(handler), limits);
    let client = connect(&server, (Era::Modern, Wire::Pipe)).await;
    client.call("", "get_who", json!({})).await;
    let call = json!({"name": "get_who", "arguments": {}});
    let error = client.error("", "tools/call", call).await;
    let message = "the limit `calls` is reached; retry after 3600 s";
    let data = data_of(error, -32005, message);
    assert_eq!(data, json!({"limit": "calls", "retryAfter": 3600}));
}
