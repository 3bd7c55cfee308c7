//! Tokens, made of a good one by changing one thing.

use serde_json::{Value, json};

use super::{ISSUER, NOW, PUBLIC, keys};

/// A token before it is signed.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The header.
    pub header: Value,
    /// The payload.
    pub claims: Value,
    /// The private key that signs.
    pub key: &'static str,
    /// The texts that take the place of the header and of the payload.
    written: (Option<String>, Option<String>),
}

/// A token that is good for every address of the server.
pub fn good() -> Draft {
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
    pub fn alg(mut self, algorithm: &str) -> Self {
        self.key = keys::for_algorithm(algorithm);
        self.header("alg", algorithm)
            .header("kid", keys::for_algorithm(algorithm))
    }

    /// With this member of the header.
    pub fn header(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.header[name] = value.into();
        self
    }

    /// Without this member of the header.
    pub fn without_header(mut self, name: &str) -> Self {
        self.header.as_object_mut().unwrap().shift_remove(name);
        self
    }

    /// With this claim.
    pub fn claim(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.claims[name] = value.into();
        self
    }

    /// Without this claim.
    pub fn without(mut self, name: &str) -> Self {
        self.claims.as_object_mut().unwrap().shift_remove(name);
        self
    }

    /// Signed by this key.
    pub fn key(mut self, name: &'static str) -> Self {
        self.key = name;
        self
    }

    /// Writes the claims with `from` replaced by `to`, which JSON values cannot express.
    pub fn payload_text(mut self, from: &str, to: &str) -> Self {
        let text = self.claims.to_string();
        assert!(text.contains(from), "{text}");
        self.written.1 = Some(text.replacen(from, to, 1));
        self
    }

    /// The same for the header.
    pub fn header_text(mut self, from: &str, to: &str) -> Self {
        let text = self.header.to_string();
        assert!(text.contains(from), "{text}");
        self.written.0 = Some(text.replacen(from, to, 1));
        self
    }

    /// What is signed.
    pub fn message(&self) -> String {
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
    pub fn sign(&self) -> String {
        self.sign_as(self.header["alg"].as_str().unwrap_or_default())
    }

    /// The token, signed by `algorithm` whatever it says.
    pub fn sign_as(&self, algorithm: &str) -> String {
        let message = self.message();
        let signature = keys::sign(self.key, algorithm, message.as_bytes());
        format!("{message}.{}", keys::encode(signature))
    }

    /// The token with this in place of its signature.
    pub fn with_signature(&self, signature: &[u8]) -> String {
        format!("{}.{}", self.message(), keys::encode(signature))
    }
}
