//! Tokens, made of a good one by changing one thing.

use serde_json::{Value, json};

use crate::keys;

/// The time of all tests, in seconds since 1970-01-01 UTC.
pub(crate) const NOW: u64 = 1_800_000_000;

pub(crate) const ISSUER: &str = "https://idp.example/realms/a";
pub(crate) const PUBLIC: &str = "https://mcp.example";

/// A token before it is signed.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) header: Value,
    pub(crate) claims: Value,
    /// The private key that signs.
    pub(crate) key: &'static str,
    /// The texts that take the place of the header and of the payload.
    written: (Option<String>, Option<String>),
}

/// A token that is good for every address of the server.
pub(crate) fn good() -> Draft {
    Draft {
        header: json!({"typ": "at+jwt", "alg": "ES256", "kid": "p256"}),
        claims: json!({
            "iss": ISSUER, "sub": "ann", "aud": format!("{PUBLIC}/mcp"), "exp": NOW + 600, "iat": NOW,
            "scope": "mcp:read profile", "client_id": "cli", "groups": ["dev"],
        }),
        key: "p256",
        written: (None, None),
    }
}

impl Draft {
    /// Signs by `algorithm` with its key, and says so.
    pub(crate) fn alg(mut self, algorithm: &str) -> Self {
        self.key = keys::for_algorithm(algorithm);
        self.header("alg", algorithm)
            .header("kid", keys::for_algorithm(algorithm))
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.header[name] = value.into();
        self
    }

    pub(crate) fn without_header(mut self, name: &str) -> Self {
        self.header.as_object_mut().unwrap().shift_remove(name);
        self
    }

    pub(crate) fn claim(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.claims[name] = value.into();
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.claims.as_object_mut().unwrap().shift_remove(name);
        self
    }

    pub(crate) fn key(mut self, name: &'static str) -> Self {
        self.key = name;
        self
    }

    /// Writes the claims with `from` replaced by `to`, which JSON values cannot express.
    pub(crate) fn payload_text(mut self, from: &str, to: &str) -> Self {
        let text = self.claims.to_string();
        assert!(text.contains(from), "{text}");
        self.written.1 = Some(text.replacen(from, to, 1));
        self
    }

    /// The same for the header.
    pub(crate) fn header_text(mut self, from: &str, to: &str) -> Self {
        let text = self.header.to_string();
        assert!(text.contains(from), "{text}");
        self.written.0 = Some(text.replacen(from, to, 1));
        self
    }

    /// What is signed.
    pub(crate) fn message(&self) -> String {
        let header = self
            .written
            .0
            .clone()
            .unwrap_or_else(|| self.header.to_string());
        let payload = self
            .written
            .1
            .clone()
            .unwrap_or_else(|| self.claims.to_string());
        format!("{}.{}", keys::encode(header), keys::encode(payload))
    }

    /// The signed token.
    pub(crate) fn sign(&self) -> String {
        self.sign_as(self.header["alg"].as_str().unwrap_or_default())
    }

    /// The token, signed by `algorithm` whatever it says.
    pub(crate) fn sign_as(&self, algorithm: &str) -> String {
        let message = self.message();
        let signature = keys::sign(self.key, algorithm, message.as_bytes());
        format!("{message}.{}", keys::encode(signature))
    }

    /// The token with this in place of its signature.
    pub(crate) fn with_signature(&self, signature: &[u8]) -> String {
        format!("{}.{}", self.message(), keys::encode(signature))
    }
}
