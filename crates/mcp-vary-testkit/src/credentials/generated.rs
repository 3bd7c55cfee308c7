//! Generated tokens: good ones, and such as are good but for a few changes.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::{Draft, ISSUER, NOW, OTHER_ISSUER, PUBLIC, good};

/// Those that sign fast come up more often.
const ALGORITHMS: &[&str] = &[
    "ES256", "ES256", "EdDSA", "EdDSA", "EdDSA", "ES384", "RS256", "RS384", "RS512", "PS256",
    "PS384", "PS512",
];

/// Tokens with up to three changes, most of which still leave a good one.
pub fn tokens() -> impl Strategy<Value = String> {
    let changes = prop::collection::vec(change(), 0..4);
    (select(ALGORITHMS), changes, damage()).prop_map(|(algorithm, changes, damage)| {
        let draft = changes
            .into_iter()
            .fold(good().alg(algorithm), |draft, change| change.apply(draft));
        damage.apply(&draft, algorithm)
    })
}

#[derive(Clone, Debug)]
enum Change {
    Header(&'static str, Value),
    Claim(&'static str, Value),
    WithoutHeader(&'static str),
    Without(&'static str),
}

impl Change {
    fn apply(self, draft: Draft) -> Draft {
        match self {
            Self::Header(name, value) => draft.header(name, value),
            Self::Claim(name, value) => draft.claim(name, value),
            Self::WithoutHeader(name) => draft.without_header(name),
            Self::Without(name) => draft.without(name),
        }
    }
}

/// Values that a claim may have, most of the wrong type.
fn values() -> impl Strategy<Value = Value> {
    select(vec![
        json!(null),
        json!(""),
        json!("x"),
        json!(0),
        json!([]),
        json!({}),
        json!(1.5),
        json!(true),
    ])
}

/// Audiences, right and wrong.
fn audiences() -> impl Strategy<Value = Value> {
    select(vec![
        json!(format!("{PUBLIC}/mcp")),
        json!(format!("{PUBLIC}/mcp/v/a")),
        json!("api://vary"),
        json!(PUBLIC),
        json!([format!("{PUBLIC}/mcp/v/b"), "x"]),
        json!(["x", "client-of-vary"]),
        json!(format!("{PUBLIC}/mcp/")),
        json!([format!("{PUBLIC}/mcp/v/a"), format!("{PUBLIC}/mcp/v/b")]),
        json!([format!("{PUBLIC}/mcp"), 1]),
    ])
}

fn change() -> impl Strategy<Value = Change> {
    let times = || (-130_i64..130).prop_map(|offset| json!(NOW as i64 + offset));
    let texts = |texts: &[&str]| select(texts.iter().map(|text| json!(text)).collect::<Vec<_>>());
    let kinds = texts(&["JWT", "AT+jwt", "application/at+jwt", "id", "jwt "]);
    let ids = texts(&["rsa", "p256", "p384", "ed25519", "nobody"]);
    let names = texts(&["RS256", "PS256", "ES256", "ES384", "EdDSA", "none", "HS256"]);
    let scopes = select(vec![
        json!("mcp:read"),
        json!("a mcp:read"),
        json!("mcp:reads"),
        json!(["mcp:read"]),
        json!(""),
    ]);
    prop_oneof![
        select(vec!["exp", "nbf", "iat"])
            .prop_flat_map(move |name| times().prop_map(move |at| Change::Claim(name, at))),
        select(vec!["exp", "nbf", "iat", "aud", "iss", "sub"])
            .prop_flat_map(move |name| values().prop_map(move |value| Change::Claim(name, value))),
        audiences().prop_map(|value| Change::Claim("aud", value)),
        select(vec![
            json!(ISSUER),
            json!(OTHER_ISSUER),
            json!(format!("{ISSUER}/"))
        ])
        .prop_map(|value| Change::Claim("iss", value)),
        scopes.prop_map(|value| Change::Claim("scope", value)),
        kinds.prop_map(|value| Change::Header("typ", value)),
        ids.prop_map(|value| Change::Header("kid", value)),
        names.prop_map(|value| Change::Header("alg", value)),
        select(vec!["crit", "jku", "x", "b64"]).prop_map(|name| Change::Header(name, json!("x"))),
        select(vec!["cnf", "at_hash", "nonce", "y"])
            .prop_map(|name| Change::Claim(name, json!("x"))),
        select(vec!["typ", "kid"]).prop_map(Change::WithoutHeader),
        select(vec!["iat", "client_id", "scope", "exp", "groups"]).prop_map(Change::Without),
        Just(Change::Claim("z", json!({"a": [1, {"b": 2.5}]}))),
    ]
}

/// What happens to the text.
#[derive(Clone, Debug)]
enum Damage {
    None,
    OtherKey,
    Flip(usize, u8),
    Cut(usize),
    Append(&'static str),
    Twice,
    Deep(usize),
}

impl Damage {
    fn apply(self, draft: &Draft, algorithm: &str) -> String {
        let token = draft.sign_as(algorithm);
        match self {
            Self::None => token,
            Self::OtherKey => {
                let other = if draft.key == "rsa" {
                    "rsa-other"
                } else {
                    "p256-other"
                };
                draft.clone().key(other).sign_as(algorithm)
            }
            Self::Flip(at, bit) => {
                let mut bytes = token.into_bytes();
                let at = at % bytes.len();
                bytes[at] ^= 1 << (bit % 6);
                String::from_utf8(bytes).unwrap()
            }
            Self::Cut(length) => token[..token.len().saturating_sub(length)].to_owned(),
            Self::Append(text) => token + text,
            Self::Twice => repeated(draft, "{", "{\"sub\":\"bob\",", algorithm),
            Self::Deep(depth) => {
                let nested = format!("{{\"deep\":{}{},", "[".repeat(depth), "]".repeat(depth));
                repeated(draft, "{", &nested, algorithm)
            }
        }
    }
}

fn repeated(draft: &Draft, from: &str, to: &str, algorithm: &str) -> String {
    draft.clone().payload_text(from, to).sign_as(algorithm)
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        12 => Just(Damage::None),
        1 => Just(Damage::OtherKey),
        3 => (any::<usize>(), any::<u8>()).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        1 => (1_usize..90).prop_map(Damage::Cut),
        1 => select(vec!["A", "=", ".", ".AA", "AA"]).prop_map(Damage::Append),
        1 => Just(Damage::Twice),
        1 => (5_usize..10).prop_map(Damage::Deep),
    ]
}
