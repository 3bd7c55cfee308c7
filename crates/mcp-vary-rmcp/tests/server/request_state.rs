//! The state of a request that takes several round trips.

use std::sync::atomic::AtomicU64;

use crate::prelude::*;
use crate::variants::{said, server, shops};
use mcp_vary::cursor::CursorKeys;

const INVALID_STATE: &str = "Invalid request state";

/// SV-26: the state of a request is valid only in the same variant and for the same request.
#[tokio::test]
async fn a_request_state_is_good_where_it_was_made() {
    let requests = [
        ("tools/call", json!({"name": "put_state"})),
        ("tools/call", json!({"name": "put_other"})),
        ("prompts/get", json!({"name": "long"})),
        ("resources/read", json!({"uri": "shop:///long"})),
    ];
    for wire in each([Wire::Pipe, Wire::Http]) {
        let client = connect(&server(), (Era::Modern, wire)).await;
        for (made, (method, params)) in requests.iter().enumerate() {
            let first = client.result("rich", method, params.clone()).await;
            assert_eq!(first["resultType"], "input_required");
            assert_ne!(first["requestState"], "our own");
            for (at, (method, params)) in requests.iter().enumerate() {
                for (variant, is_same) in [("rich", made == at), ("plain", false)] {
                    let mut params = params.clone();
                    params["requestState"] = first["requestState"].clone();
                    let again = client.under(variant, method, params).await;
                    assert_eq!(again.is_ok(), is_same, "{method} {again:?}");
                    if let Err(error) = again {
                        let expected = json!({"activeVariant": variant});
                        assert_eq!(data_of(error, -32602, INVALID_STATE), expected);
                    }
                }
            }
        }
        let mut params = requests[0].1.clone();
        let first = client.result("rich", "tools/call", params.clone()).await;
        params["requestState"] = first["requestState"].clone();
        let second = client.result("rich", "tools/call", params).await;
        assert_eq!(said(&second), "our own");
    }
}

fn again(state: &Value, arguments: &Value) -> Value {
    json!({"name": "put_state", "arguments": arguments, "requestState": state["requestState"]})
}

/// SV-26: a state is valid only with the same arguments, in any order.
#[tokio::test]
async fn a_request_state_belongs_to_its_arguments() {
    for wire in each([Wire::Pipe, Wire::Http]) {
        let client = connect(&server(), (Era::Modern, wire)).await;
        let made = json!({"name": "put_state", "arguments": {"a": 1, "b": [2]}});
        let state = client.result("rich", "tools/call", made).await;
        for (arguments, is_same) in [
            (json!({"b": [2], "a": 1}), true),
            (json!({"a": 1, "b": [3]}), false),
            (json!({"a": 1}), false),
            (json!({}), false),
        ] {
            let params = again(&state, &arguments);
            let answer = client.under("rich", "tools/call", params).await;
            assert_eq!(answer.is_ok(), is_same, "{arguments}");
            if let Err(error) = answer {
                let expected = json!({"activeVariant": "rich"});
                assert_eq!(data_of(error, -32602, INVALID_STATE), expected);
            }
        }
    }
}

/// SV-26: a state expires, and the error says so.
#[tokio::test]
async fn a_request_state_expires() {
    let now = Arc::new(AtomicU64::new(1_000));
    let clock = Arc::clone(&now);
    let server = shops()
        .with_clock(move || clock.load(Ordering::Relaxed))
        .with_state_lifetime(Duration::from_secs(60));
    let client = connect(&server.build().unwrap(), (Era::Modern, Wire::Pipe)).await;
    let made = json!({"name": "put_state", "arguments": {}});
    let state = client.result("rich", "tools/call", made).await;
    let retry = || client.under("rich", "tools/call", again(&state, &json!({})));
    now.store(1_059, Ordering::Relaxed);
    assert_eq!(said(&retry().await.unwrap()), "our own");
    now.store(1_060, Ordering::Relaxed);
    let error = retry().await.unwrap_err();
    let data = data_of(error, -32602, "Request state has expired");
    assert_eq!(data, json!({"activeVariant": "rich"}));
}

/// SV-26: by default a state is valid for an hour by the system's clock.
#[tokio::test]
async fn a_request_state_lives_for_an_hour() {
    let made = json!({"name": "put_state", "arguments": {}});
    let keys = CursorKeys::new([1; 32]);
    let old = |age: u64| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let server = shops().with_cursor_keys(keys.clone());
        server.with_clock(move || now - age).build().unwrap()
    };
    let fresh = shops().with_cursor_keys(keys.clone()).build().unwrap();
    let fresh = connect(&fresh, (Era::Modern, Wire::Pipe)).await;
    for (age, is_good) in [(3_000, true), (3_700, false)] {
        let maker = connect(&old(age), (Era::Modern, Wire::Pipe)).await;
        let state = maker.result("rich", "tools/call", made.clone()).await;
        let retry = again(&state, &json!({}));
        let answer = fresh.under("rich", "tools/call", retry).await;
        assert_eq!(answer.is_ok(), is_good, "{age}");
        if let Err(error) = answer {
            data_of(error, -32602, "Request state has expired");
        }
    }
}

/// SV-26: a state of one principal is not valid for another.
#[tokio::test]
async fn a_request_state_belongs_to_its_principal() {
    let server = shops().with_principal(principal);
    let server = serve_http(server.build().unwrap()).await;
    let as_role = async |role| {
        let headers = [("x-role", role)];
        join(&server.url, Era::Modern, json!({}), &headers).await
    };
    let (one, other) = (as_role("one").await, as_role("other").await);
    let made = json!({"name": "put_state", "arguments": {}});
    let state = one.result("rich", "tools/call", made).await;
    let retry = again(&state, &json!({}));
    let error = other.error("rich", "tools/call", retry.clone()).await;
    let expected = json!({"activeVariant": "rich"});
    assert_eq!(data_of(error, -32602, INVALID_STATE), expected);
    one.result("rich", "tools/call", retry).await;
}

/// SV-26: an unsealed state reaches no handler, not even from a client whose era has no state.
#[tokio::test]
async fn a_state_without_a_seal_reaches_no_handler() {
    let client = connect(&server(), (Era::Modern, Wire::Pipe)).await;
    let forged = again(&json!({"requestState": "our own"}), &json!({}));
    let error = client.error("rich", "tools/call", forged.clone()).await;
    let expected = json!({"activeVariant": "rich"});
    assert_eq!(data_of(error, -32602, INVALID_STATE), expected);
    let client = connect(&server(), (Era::Legacy, Wire::Pipe)).await;
    let answer = client.result("rich", "tools/call", forged).await;
    assert_eq!(said(&answer), "no state");
}
