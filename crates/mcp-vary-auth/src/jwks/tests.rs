use serde_json::{Value, json};

use super::*;

const X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

fn parse(keys: &[Value]) -> Result<KeySet, KeySetError> {
    KeySet::parse(json!({"keys": keys, "issuer": "x"}).to_string().as_bytes())
}

fn good() -> Value {
    json!({"kty": "OKP", "crv": "Ed25519", "kid": "good", "x": X})
}

fn number(size: usize, first: u8) -> String {
    let mut bytes = vec![0xff; size];
    bytes[0] = first;
    crate::strict::encode(&bytes)
}

fn rsa(n: &str, e: &str) -> Value {
    json!({"kty": "RSA", "n": n, "e": e})
}

/// `key` with `members` in addition.
fn with(mut key: Value, members: &Value) -> Value {
    for (name, value) in members.as_object().unwrap() {
        key[name] = value.clone();
    }
    key
}

#[track_caller]
fn is_usable(key: Value, expected: bool) {
    let shown = key.to_string();
    let set = parse(&[good(), key]).unwrap();
    let found = (set.len() == 2, set.skipped() == 0);
    assert_eq!(found, (expected, expected), "{shown}");
}

#[test]
fn keys_for_signatures_are_used() {
    let (p256, p384) = (number(32, 1), number(48, 1));
    let key = json!({"kty": "EC", "crv": "P-256", "x": p256, "y": p256});
    is_usable(key, true);
    let key = json!({"kty": "EC", "crv": "P-384", "x": p384, "y": p384});
    is_usable(key, true);
    for extra in [
        json!({"use": "sig"}),
        json!({"alg": "EdDSA"}),
        json!({"key_ops": ["verify"]}),
        json!({"x5c": ["MIIB"], "x5t": "AA", "unknown": {"a": [1]}}),
    ] {
        is_usable(with(good(), &extra), true);
    }
}

#[test]
fn keys_that_cannot_verify_a_token_are_skipped() {
    for extra in [
        json!({"use": "enc"}),
        json!({"use": "tls"}),
        json!({"use": 1}),
        json!({"key_ops": ["encrypt"]}),
        json!({"key_ops": "verify it"}),
        json!({"alg": "ES256"}),
        json!({"alg": "HS256"}),
        json!({"alg": "none"}),
        json!({"alg": 7}),
        json!({"kid": 7}),
        json!({"kid": "k".repeat(MAX_KEY_ID + 1)}),
        json!({"kty": "oct", "k": "AA"}),
        json!({"kty": "AKP"}),
        json!({"crv": "Ed448"}),
        json!({"crv": "X25519"}),
        json!({"x": "AA"}),
        json!({"x": format!("{X}A")}),
        json!({"x": null}),
    ] {
        is_usable(with(good(), &extra), false);
    }
    let key = json!({"kty": "EC", "crv": "P-521", "x": number(66, 1), "y": number(66, 1)});
    is_usable(key, false);
    let key = json!({"kty": "EC", "crv": "P-256", "x": number(31, 1), "y": number(32, 1)});
    is_usable(key, false);
    is_usable(json!("a string"), false);
    is_usable(json!([]), false);
    is_usable(json!({}), false);
}

/// A set that publishes a private key has given it away.
#[test]
fn private_keys_are_not_used() {
    is_usable(with(good(), &json!({"d": "AA"})), false);
    is_usable(with(good(), &json!({"d": null})), false);
}

#[test]
fn rsa_keys_have_2048_to_8192_bits() {
    for (n, e, expected) in [
        (number(256, 0x80), "AQAB", true),
        (number(256, 0x7f), "AQAB", false),
        (number(255, 0xff), "AQAB", false),
        (number(257, 0), "AQAB", true),
        (number(1024, 0xff), "AQAB", true),
        (number(1025, 0xff), "AQAB", false),
        (number(256, 0x80), "Aw", true),
        (number(256, 0x80), "Ag", false),
        (number(256, 0x80), "", false),
        (number(256, 0x80), "AAAAAAAAAAEAAQ", false),
        (String::new(), "AQAB", false),
    ] {
        is_usable(rsa(&n, e), expected);
    }
}

#[track_caller]
fn refuses(text: &[u8], error: KeySetError) {
    assert_eq!(KeySet::parse(text).unwrap_err(), error);
}

#[test]
fn sets_are_bounded_and_well_formed() {
    assert_eq!(parse(&vec![good(); MAX_KEYS]).unwrap().len(), MAX_KEYS);
    let found = parse(&vec![good(); MAX_KEYS + 1]).unwrap_err();
    assert_eq!(found, KeySetError::TooMany);
    assert_eq!(parse(&[]).unwrap_err(), KeySetError::NoneUsable(0));
    let found = parse(&[json!({}), json!({})]).unwrap_err();
    assert_eq!(found, KeySetError::NoneUsable(2));
    refuses(&vec![b' '; MAX_KEY_SET + 1], KeySetError::TooLarge);
    let deep = format!("{{\"keys\":{}{}}}", "[".repeat(9), "]".repeat(9));
    for text in [
        "",
        "[]",
        "{}",
        "{\"keys\":{}}",
        "{\"keys\":[]}x",
        "{\"keys\":[],\"keys\":[]}",
        &deep,
        "<html>",
    ] {
        refuses(text.as_bytes(), KeySetError::NotASet);
    }
}

#[test]
fn a_key_is_found_by_its_id_and_its_type() {
    let set = parse(&[good(), rsa(&number(256, 0xff), "AQAB")]).unwrap();
    let found = |id: Option<&str>, algorithm| set.find(id, algorithm).map(|key| key.id.as_deref());
    assert_eq!(found(Some("good"), Algorithm::EdDSA), Some(Some("good")));
    assert_eq!(found(Some("good"), Algorithm::RS256), None);
    assert_eq!(found(Some("other"), Algorithm::EdDSA), None);
    assert_eq!(found(None, Algorithm::EdDSA), Some(Some("good")));
    assert_eq!(found(None, Algorithm::PS512), Some(None));
    assert_eq!(found(None, Algorithm::HS256), None);
    assert_eq!(
        found(Some(""), Algorithm::RS256),
        None,
        "a key without an id has none"
    );
    assert_eq!(set.ids().collect::<Vec<_>>(), ["good"]);
}

#[test]
fn without_an_id_there_is_no_choice_between_two_keys() {
    let second = with(good(), &json!({"kid": "second"}));
    let set = parse(&[good(), second]).unwrap();
    assert!(set.find(None, Algorithm::EdDSA).is_none());
    assert!(set.find(Some("second"), Algorithm::EdDSA).is_some());
}

#[test]
fn a_key_for_one_algorithm_verifies_no_other() {
    let key = with(rsa(&number(256, 0xff), "AQAB"), &json!({"alg": "PS256"}));
    let set = parse(&[key]).unwrap();
    assert!(set.find(None, Algorithm::PS256).is_some());
    assert!(set.find(None, Algorithm::RS256).is_none());
}
