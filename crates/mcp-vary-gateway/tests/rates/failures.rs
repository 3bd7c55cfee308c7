//! Wrong credentials, which are counted by address.

use mcp_vary_rates::{Counted, FakeRelativeClock, Limit, Per};

use super::clients::{calls, key, limited_with, with_keys};
use super::who::behind_proxy;
use crate::support::*;

fn failures(rate: &str) -> Limit {
    let rate = rate.parse().unwrap();
    Limit::new("wrong", Per::Address, Counted::AuthFailures, rate).unwrap()
}

async fn start() -> (Harness, FakeRelativeClock) {
    let adapt = |config| behind_proxy(with_keys(config));
    limited_with(vec![failures("2/min")], adapt).await
}

/// The answer to a request from `address` with this `Authorization`.
async fn response_from(
    harness: &Harness,
    address: &str,
    authorization: Option<&str>,
) -> HttpResponse {
    let mut post =
        HttpRequest::modern_request("tools/list", json!({})).with("X-Forwarded-For", address);
    if let Some(authorization) = authorization {
        post = post.with("Authorization", authorization);
    }
    RawHttp::connect(harness.address()).await.ask(&post).await
}

async fn status(harness: &Harness, address: &str, authorization: Option<&str>) -> u16 {
    response_from(harness, address, authorization).await.status
}

#[tokio::test]
async fn after_too_many_wrong_keys_no_key_is_verified() {
    let (harness, clock) = start().await;
    let (right, wrong) = (bearer("ann"), bearer("eve"));
    assert_eq!(status(&harness, "192.0.2.1", Some(&wrong)).await, 401);
    assert_eq!(status(&harness, "192.0.2.1", Some(&right)).await, 200);
    assert_eq!(status(&harness, "192.0.2.1", Some(&wrong)).await, 401);
    for authorization in [&wrong, &right] {
        let refused = response_from(&harness, "192.0.2.1", Some(authorization)).await;
        let body = json!({
            "error": "too_many_requests",
            "error_description": "too many bad credentials came from this address; try again later",
        });
        assert_eq!((refused.status, refused.json()), (429, body));
        assert_eq!(refused.header("retry-after"), Some("30"));
        // 429 is no reason to log in again.
        assert_eq!(refused.header("www-authenticate"), None);
    }
    // Half a second is rounded up, so that the retry is not too early.
    clock.advance(Duration::from_millis(29_500));
    let refused = response_from(&harness, "192.0.2.1", Some(&right)).await;
    assert_eq!(refused.header("retry-after"), Some("1"));
    clock.advance(Duration::from_millis(500));
    assert_eq!(status(&harness, "192.0.2.1", Some(&right)).await, 200);
    assert_eq!(status(&harness, "192.0.2.1", Some(&wrong)).await, 401);
    assert_eq!(status(&harness, "192.0.2.1", Some(&right)).await, 429);
}

#[tokio::test]
async fn another_address_goes_on() {
    let (harness, _clock) = start().await;
    let (right, wrong) = (bearer("ann"), bearer("eve"));
    for address in ["2001:db8::1", "2001:db8::2"] {
        assert_eq!(status(&harness, address, Some(&wrong)).await, 401);
    }
    // An address of the same /64 is the same client.
    assert_eq!(status(&harness, "2001:db8::3", Some(&right)).await, 429);
    for address in ["2001:db8:0:1::1", "192.0.2.1"] {
        assert_eq!(status(&harness, address, Some(&right)).await, 200);
        assert_eq!(status(&harness, address, Some(&wrong)).await, 401);
    }
}

#[tokio::test]
async fn a_request_without_a_credential_is_neither_counted_nor_refused() {
    let (harness, _clock) = start().await;
    let wrong = bearer("eve");
    for _ in 0..3 {
        assert_eq!(status(&harness, "192.0.2.1", None).await, 200, "anonymous");
        // What is no bearer token is 400, and costs no verification.
        let basic = status(&harness, "192.0.2.1", Some("Basic YTpi")).await;
        assert_eq!(basic, 400);
    }
    assert_eq!(status(&harness, "192.0.2.1", Some(&wrong)).await, 401);
    assert_eq!(status(&harness, "192.0.2.1", Some(&wrong)).await, 401);
    assert_eq!(status(&harness, "192.0.2.1", Some(&wrong)).await, 429);
    assert_eq!(status(&harness, "192.0.2.1", None).await, 200);
}

/// A library that sets no limit has none; the one of a file with `auth` is the file's.
#[tokio::test]
async fn limits_of_calls_count_no_wrong_credentials() {
    let limit = calls("calls", Per::Principal, "1/day");
    let (harness, _clock) = limited_with(vec![limit], with_keys).await;
    for _ in 0..5 {
        let wrong = status(&harness, "192.0.2.1", Some(&bearer("eve"))).await;
        assert_eq!(wrong, 401);
    }
}

fn bearer(name: &str) -> String {
    format!("Bearer {}", key(name))
}
