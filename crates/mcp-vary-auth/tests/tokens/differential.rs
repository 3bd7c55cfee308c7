//! A second verifier, which shares no code with the first: it must accept the same tokens.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};

use mcp_vary_auth::address::Target;
use mcp_vary_auth::token::UnverifiedToken;

use mcp_vary_testkit::credentials::{Draft, ISSUER, NOW, OTHER_ISSUER, PUBLIC, good, keys};

use crate::clients::{all_keys, verifier};

/// Enough that each change meets each other one some times.
const CASES: u32 = 2_500;

const ALGORITHMS: &[&str] = &[
    "ES256", "ES256", "EdDSA", "EdDSA", "EdDSA", "ES384", "RS256", "RS384", "RS512", "PS256",
    "PS384", "PS512",
];

#[test]
fn a_second_verifier_accepts_the_same_tokens() {
    let verifier = verifier();
    let published = all_keys();
    let mut accepted = 0;
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    });
    let strategy = (tokens(), select(vec!["/mcp", "/mcp/v/a", "/mcp/v/b"]));
    let outcome = runner.run(&strategy, |(token, path)| {
        let target = Target::parse(path).unwrap();
        let ours = UnverifiedToken::parse(&token)
            .and_then(|token| verifier.verify(&token, &published, NOW))
            .is_ok_and(|verified| verified.admit(&target, NOW).is_ok());
        prop_assert_eq!(ours, accepts(&token, path), "{}", token);
        Ok(())
    });
    outcome.unwrap();
    let mut runner = TestRunner::deterministic();
    for _ in 0..300 {
        let token = tokens().new_tree(&mut runner).unwrap().current();
        accepted += u32::from(accepts(&token, "/mcp"));
    }
    assert!(
        (60..240).contains(&accepted),
        "{accepted} of 300 are accepted"
    );
}

/// Tokens with up to three changes, most of which still leave a good one.
fn tokens() -> impl Strategy<Value = String> {
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

fn change() -> impl Strategy<Value = Change> {
    let times = || (-130_i64..130).prop_map(|offset| json!(NOW as i64 + offset));
    let values = || {
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
    };
    let audiences = select(vec![
        json!(format!("{PUBLIC}/mcp")),
        json!(format!("{PUBLIC}/mcp/v/a")),
        json!("api://vary"),
        json!(PUBLIC),
        json!([format!("{PUBLIC}/mcp/v/b"), "x"]),
        json!(["x", "client-of-vary"]),
        json!(format!("{PUBLIC}/mcp/")),
        json!([format!("{PUBLIC}/mcp/v/a"), format!("{PUBLIC}/mcp/v/b")]),
        json!([format!("{PUBLIC}/mcp"), 1]),
    ]);
    let kinds = select(vec![
        json!("JWT"),
        json!("AT+jwt"),
        json!("application/at+jwt"),
        json!("id"),
        json!("jwt "),
    ]);
    let ids = select(vec![
        json!("rsa"),
        json!("p256"),
        json!("p384"),
        json!("ed25519"),
        json!("nobody"),
    ]);
    let names = select(vec![
        json!("RS256"),
        json!("PS256"),
        json!("ES256"),
        json!("ES384"),
        json!("EdDSA"),
        json!("none"),
        json!("HS256"),
    ]);
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
        audiences.prop_map(|value| Change::Claim("aud", value)),
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

// From here on: the second verifier. It knows `ring`, `serde_json`, and the rules.

fn accepts(token: &str, path: &str) -> bool {
    verdict(token, path).is_some()
}

fn verdict(token: &str, path: &str) -> Option<()> {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, payload, signed] = parts[..] else {
        return None;
    };
    let (header, payload) = (
        object(&base64url(header)?, 1024)?,
        object(&base64url(payload)?, 6144)?,
    );
    let algorithm = header["alg"].as_str()?;
    verifies(
        &header,
        algorithm,
        format!("{}.{}", parts[0], parts[1]).as_bytes(),
        &base64url(signed)?,
    )?;
    let typ = match &header["typ"] {
        Value::Null => "jwt".to_owned(),
        value => value.as_str()?.to_lowercase(),
    };
    let is_kind = ["jwt", "at+jwt", "application/at+jwt"].contains(&typ.as_str());
    let has_any = |of: &Value, names: &[&str]| names.iter().any(|name| of.get(name).is_some());
    if !is_kind || has_any(&header, &["crit"]) || has_any(&payload, &["cnf", "at_hash", "c_hash"]) {
        return None;
    }
    let time = |name: &str| match &payload[name] {
        Value::Null => Some(None),
        Value::Number(number) => number.as_f64().filter(|time| *time >= 0.0).map(Some),
        _ => None,
    };
    let now = NOW as f64;
    let is_early = |time: Option<f64>| time.is_some_and(|time| time.floor() > now + 60.0);
    if time("exp")??.floor() + 60.0 <= now || is_early(time("nbf")?) || is_early(time("iat")?) {
        return None;
    }
    payload["sub"].as_str().filter(|sub| !sub.is_empty())?;
    issued_for(&payload, path)
}

/// Issuer, audience and scope.
fn issued_for(payload: &Value, path: &str) -> Option<()> {
    let (extra, needs_scope): (&[&str], bool) = match payload["iss"].as_str()? {
        ISSUER => (&["api://vary", "client-of-vary"], true),
        OTHER_ISSUER => (&[], false),
        _ => return None,
    };
    let audiences = match &payload["aud"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(all) => all.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    let (whole, here) = (format!("{PUBLIC}/mcp"), format!("{PUBLIC}{path}"));
    let is_for_us = audiences
        .iter()
        .any(|audience| *audience == whole || *audience == here || extra.contains(audience));
    // `scope` is a list separated by spaces, or an array.
    let scope = &payload["scope"];
    let has_scope = match scope {
        Value::String(all) => all.split(' ').any(|scope| scope == "mcp:read"),
        Value::Array(all) => all.contains(&json!("mcp:read")),
        _ => false,
    };
    (is_for_us && (has_scope || !needs_scope)).then_some(())
}

fn verifies(header: &Value, algorithm: &str, message: &[u8], signed: &[u8]) -> Option<()> {
    let kid = match &header["kid"] {
        Value::Null => keys::for_algorithm(algorithm),
        kid => kid.as_str()?,
    };
    let (key, scheme): (&str, &dyn VerificationAlgorithm) = match algorithm {
        "RS256" => ("rsa", &signature::RSA_PKCS1_2048_8192_SHA256),
        "RS384" => ("rsa", &signature::RSA_PKCS1_2048_8192_SHA384),
        "RS512" => ("rsa", &signature::RSA_PKCS1_2048_8192_SHA512),
        "PS256" => ("rsa", &signature::RSA_PSS_2048_8192_SHA256),
        "PS384" => ("rsa", &signature::RSA_PSS_2048_8192_SHA384),
        "PS512" => ("rsa", &signature::RSA_PSS_2048_8192_SHA512),
        "ES256" => ("p256", &signature::ECDSA_P256_SHA256_FIXED),
        "ES384" => ("p384", &signature::ECDSA_P384_SHA384_FIXED),
        "EdDSA" => ("ed25519", &signature::ED25519),
        _ => return None,
    };
    let jwk = keys::jwk(key);
    let member = |name: &str| keys::decode(jwk[name].as_str().unwrap());
    let public = match key {
        "rsa" => pkcs1(&member("n"), &member("e")),
        "ed25519" => member("x"),
        _ => [vec![4], member("x"), member("y")].concat(),
    };
    let verified = UnparsedPublicKey::new(scheme, public).verify(message, signed);
    (kid == key && verified.is_ok()).then_some(())
}

/// `RSAPublicKey` of RFC 8017, appendix A.1.1, in DER.
fn pkcs1(n: &[u8], e: &[u8]) -> Vec<u8> {
    let tagged = |tag: u8, content: &[u8]| {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[tag, 0x82], &length[..], content].concat()
    };
    let short = |content: &[u8]| [&[2, u8::try_from(content.len()).unwrap()], content].concat();
    let n = tagged(2, &[&[0], n].concat());
    tagged(0x30, &[n, short(e)].concat())
}

/// Base64url without padding, one bit after the other; unused bits are zero.
fn base64url(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut buffer, mut bits) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        buffer = buffer << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(buffer >> bits & 0xff).unwrap());
            buffer &= (1 << bits) - 1;
        }
    }
    (bits < 6 && buffer == 0).then_some(bytes)
}

/// An object of at most `size` bytes and 8 levels, without a repeated name.
fn object(bytes: &[u8], size: usize) -> Option<Value> {
    let Strict(value, depth) = serde_json::from_slice(bytes).ok()?;
    (bytes.len() <= size && depth <= 8 && value.is_object()).then_some(value)
}

/// A value and its depth.
struct Strict(Value, usize);

impl<'de> serde::Deserialize<'de> for Strict {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Strict;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Strict, E> {
        Ok(Strict(json!(value), 0))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Strict, E> {
        Ok(Strict(json!(value), 0))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Strict, E> {
        Ok(Strict(json!(value), 0))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Strict, E> {
        Ok(Strict(json!(value), 0))
    }

    fn visit_str<E>(self, value: &str) -> Result<Strict, E> {
        Ok(Strict(json!(value), 0))
    }

    fn visit_unit<E>(self) -> Result<Strict, E> {
        Ok(Strict(Value::Null, 0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Strict, A::Error> {
        let (mut all, mut depth) = (Vec::new(), 0);
        while let Some(Strict(value, below)) = seq.next_element()? {
            all.push(value);
            depth = depth.max(below);
        }
        Ok(Strict(Value::Array(all), depth + 1))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Strict, A::Error> {
        let (mut all, mut depth) = (serde_json::Map::new(), 0);
        while let Some((name, Strict(value, below))) = map.next_entry::<String, Strict>()? {
            if all.insert(name, value).is_some() {
                return Err(serde::de::Error::custom("a name is repeated"));
            }
            depth = depth.max(below);
        }
        Ok(Strict(Value::Object(all), depth + 1))
    }
}
