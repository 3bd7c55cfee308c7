//! The keys that sign tokens, and the public halves as an issuer publishes them.
//!
//! `keys.json` was made by OpenSSL, for these tests only.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, Ed25519KeyPair, RsaEncoding, RsaKeyPair};
use serde_json::{Value, json};

/// All keys, by their name, which is also their `kid`.
pub fn all() -> &'static Value {
    static KEYS: OnceLock<Value> = OnceLock::new();
    KEYS.get_or_init(|| serde_json::from_str(include_str!("keys.json")).unwrap())
}

/// The public key `name` as a JWK.
pub fn jwk(name: &str) -> Value {
    all()[name]["jwk"].clone()
}

/// The keys that both issuers publish: one of each type.
pub const PUBLISHED: [&str; 4] = ["rsa", "p256", "p384", "ed25519"];

/// The key set (RFC 7517, section 5) of these keys.
pub fn set(names: &[&str]) -> Value {
    let keys: Vec<Value> = names.iter().map(|name| jwk(name)).collect();
    json!({"keys": keys})
}

/// The key that signs by `algorithm`.
pub fn for_algorithm(algorithm: &str) -> &'static str {
    match algorithm {
        "ES256" => "p256",
        "ES384" => "p384",
        "EdDSA" => "ed25519",
        _ => "rsa",
    }
}

/// The signature of `message` by the private key `name`, with the algorithm that its type and `algorithm` allow.
pub fn sign(name: &str, algorithm: &str, message: &[u8]) -> Vec<u8> {
    let der = decode(all()[name]["pkcs8"].as_str().unwrap());
    let random = SystemRandom::new();
    match name {
        "ed25519" => {
            let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).unwrap();
            pair.sign(message).as_ref().to_vec()
        }
        "p256" | "p256-other" | "p384" => {
            let scheme = match name {
                "p384" => &signature::ECDSA_P384_SHA384_FIXED_SIGNING,
                _ => &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
            };
            let pair = EcdsaKeyPair::from_pkcs8(scheme, &der, &random).unwrap();
            pair.sign(&random, message).unwrap().as_ref().to_vec()
        }
        _ => {
            let encoding: &dyn RsaEncoding = match algorithm {
                "RS384" => &signature::RSA_PKCS1_SHA384,
                "RS512" => &signature::RSA_PKCS1_SHA512,
                "PS256" => &signature::RSA_PSS_SHA256,
                "PS384" => &signature::RSA_PSS_SHA384,
                "PS512" => &signature::RSA_PSS_SHA512,
                _ => &signature::RSA_PKCS1_SHA256,
            };
            let pair = RsaKeyPair::from_pkcs8(&der).unwrap();
            let mut signed = vec![0; pair.public().modulus_len()];
            pair.sign(encoding, &random, message, &mut signed).unwrap();
            signed
        }
    }
}

/// Base64url without padding (RFC 7515, section 2).
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The bytes of base64url without padding.
pub fn decode(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}
