//! What is sent, and what is answered: the table that the gateway's tests have as well.

use std::collections::BTreeSet;

use crate::clients::outcome;
use crate::prelude::*;
use mcp_vary_testkit::credentials::{DIGEST_OF_CI, KEY_OF_NOBODY, KEY_OF_OLD, Row, TABLES};

/// SV-9: and a token for the address of a variant is pinned to it.
#[test]
fn every_credential_is_answered_as_the_table_says() {
    let gateway = gateway();
    let mut wrong = Vec::new();
    for (name, request, expected) in TABLES.iter().copied().flatten() {
        let request = request();
        // The second answer comes from the cache, if the token was verified.
        let answers = [outcome(&gateway, &request), outcome(&gateway, &request)];
        if answers.iter().any(|answer| answer != expected) {
            wrong.push(format!("{name}: expected {expected}\n    {answers:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_has_each_case_once_and_every_answer() {
    let cases: Vec<&Row> = TABLES.iter().copied().flatten().collect();
    let names: BTreeSet<&str> = cases.iter().map(|case| case.0).collect();
    assert_eq!(names.len(), cases.len());
    assert!(cases.len() >= 150, "{}", cases.len());
    let answers: BTreeSet<&str> = cases.iter().map(|case| case.2).collect();
    assert_eq!(answers.len(), 19);
}

/// OpenSSL signs what we verify.
#[test]
fn tokens_that_openssl_signed_are_accepted() {
    let tokens: Value = serde_json::from_str(include_str!("openssl.json")).unwrap();
    let tokens = tokens.as_object().unwrap();
    assert_eq!(tokens.len(), 9);
    for (algorithm, token) in tokens {
        let request = bearer(token.as_str().unwrap());
        assert_eq!(outcome(&gateway(), &request), "200 token", "{algorithm}");
    }
}

#[test]
fn the_keys_of_the_table_are_those_that_we_would_make() {
    for (random, text) in [(1, KEY_OF_CI), (2, KEY_OF_OLD), (9, KEY_OF_NOBODY)] {
        assert_eq!(ApiKey::from_random([random; 32]).expose(), text);
    }
    let key = ApiKey::parse(KEY_OF_CI).unwrap();
    assert_eq!(key.digest().to_string(), DIGEST_OF_CI);
}
