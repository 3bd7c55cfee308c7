//! A second verifier, which shares no code with the first: it must accept the same tokens.

use crate::prelude::*;
use mcp_vary_testkit::credentials::tokens;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::json;

/// Enough that each change meets each other one some times.
const CASES: u32 = 2_500;

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
        let target = EndpointPath::parse(path).unwrap();
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
    let time = |name: &str| match payload.get(name) {
        None => Some(None),
        Some(Value::Number(number)) => number.as_f64().filter(|time| *time >= 0.0).map(Some),
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
