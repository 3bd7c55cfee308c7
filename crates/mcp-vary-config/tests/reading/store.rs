//! `store` and `store-failure`.

use mcp_vary_settings::store::StoreFailure;

use super::*;

const BEGIN: &str = "servers: {a: {command: x}}\nkeys: [a-key-of-thirty-two-characters-and-more]\n";

#[test]
fn a_store_is_read_without_showing_its_password() {
    let text = format!("{BEGIN}store: redis://ann:hunter2@cache:7000/3\nstore-failure: closed\n");
    let file = read("vary.yaml", &text);
    let config = config(&file);
    assert_eq!(config.store_failure, StoreFailure::Closed);
    let store = config.store.as_ref().unwrap();
    assert_eq!(store.to_string(), "redis://cache:7000/3");
    for shown in [format!("{file:?}"), format!("{config:?}")] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn without_a_store_limits_are_open() {
    let config = config(&read("vary.yaml", BEGIN));
    assert!(config.store.is_none());
    assert_eq!(config.store_failure, StoreFailure::Open);
}

#[test]
fn what_is_not_an_address_is_refused_and_not_repeated() {
    for address in [
        "http://ann:hunter2@cache",
        "hunter2",
        "'rediss://cache#insecure'",
    ] {
        refuses(
            "vary.yaml",
            &format!("{BEGIN}store: {address}\n"),
            "3:8: `store` is not the address of a store; write `redis://USER:PASSWORD@HOST:PORT/DATABASE`, or `redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DATABASE`; with `rediss` for TLS",
        );
    }
}

#[test]
fn a_store_needs_keys() {
    refuses_lines(
        "store: redis://cache\n",
        "2:8: `store` needs `keys`; add `keys: [\"${VARY_KEY}\"]`, with the same secret at each replica",
    );
}
