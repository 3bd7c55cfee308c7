//! Assertions that a client signs with its private key (`private_key_jwt`, RFC 7523).

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;

/// A private key for assertions: P-256 (`ES256`) or RSA of 2048 bits and more (`RS256`).
#[derive(Clone)]
pub struct SigningKey {
    pair: Arc<KeyPair>,
    /// The `kid` of the header.
    id: Option<String>,
}

/// What an assertion of a client is about.
pub(crate) struct AssertionContext<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) now: u64,
    /// The unique id of an assertion.
    pub(crate) id: String,
}

enum KeyPair {
    Es256(EcdsaKeyPair),
    Rs256(RsaKeyPair),
}

/// Why a text is not a key that can sign. It never contains a part of the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "it is not a private key in PEM: P-256 in PKCS#8, or RSA of 2048 bits or more in PKCS#8 or PKCS#1"
)]
#[non_exhaustive]
pub struct SigningKeyError;

impl SigningKey {
    /// Reads a key in PEM, which the authorization server knows by `id`, if it has one.
    ///
    /// # Errors
    ///
    /// [`SigningKeyError`].
    pub fn from_pem(pem: &str, id: Option<String>) -> Result<Self, SigningKeyError> {
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| SigningKeyError)?;
        let pair = match &der {
            PrivateKeyDer::Pkcs8(der) => {
                let key = der.secret_pkcs8_der();
                let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let pair = EcdsaKeyPair::from_pkcs8(algorithm, key, &SystemRandom::new());
                let rsa = || RsaKeyPair::from_pkcs8(key).map(KeyPair::Rs256);
                pair.map(KeyPair::Es256).or_else(|_| rsa())
            }
            PrivateKeyDer::Pkcs1(der) => {
                RsaKeyPair::from_der(der.secret_pkcs1_der()).map(KeyPair::Rs256)
            }
            _ => return Err(SigningKeyError),
        };
        let pair = Arc::new(pair.map_err(|_| SigningKeyError)?);
        Ok(Self { pair, id })
    }

    /// An assertion of the client `client_id`; `None` if the key cannot sign.
    ///
    /// The audience is the issuer and nothing else, so that no other authorization server can use the assertion.
    pub(crate) fn assertion(
        &self,
        client_id: &str,
        context: &AssertionContext<'_>,
    ) -> Option<String> {
        let algorithm = match &*self.pair {
            KeyPair::Es256(_) => "ES256",
            KeyPair::Rs256(_) => "RS256",
        };
        let mut header = json!({"typ": "JWT", "alg": algorithm});
        if let Some(id) = &self.id {
            header["kid"] = id.as_str().into();
        }
        let claims = json!({
            "iss": client_id,
            "sub": client_id,
            "aud": context.issuer,
            "jti": context.id,
            "iat": context.now,
            "exp": context.now.saturating_add(LIFETIME_SECONDS),
        });
        let parts = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let message = parts.join(".");
        let signature = self.pair.sign(message.as_bytes())?;
        Some(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

impl KeyPair {
    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::Es256(pair) => Some(pair.sign(&random, message).ok()?.as_ref().to_vec()),
            Self::Rs256(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .ok()?;
                Some(signature)
            }
        }
    }
}

// Nothing of the key.
mcp_vary_base::debug_by_name!(SigningKey);

const LIFETIME_SECONDS: u64 = 60;

#[cfg(test)]
mod tests {
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED, KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
        VerificationAlgorithm,
    };
    use serde_json::Value;

    use super::*;

    /// Keys that `openssl genpkey` made for these tests.
    const EC: &str = include_str!("../tests/keys/p256.pem");
    const RSA: &str = include_str!("../tests/keys/rsa2048.pem");

    #[track_caller]
    fn signs(pem: &str, name: &str, algorithm: &'static dyn VerificationAlgorithm) {
        let key = SigningKey::from_pem(pem, Some("k1".to_owned())).unwrap();
        let context = AssertionContext {
            issuer: "https://idp.example/",
            now: 1000,
            id: "unique".to_owned(),
        };
        let assertion = key.assertion("robot", &context).unwrap();
        let (message, signature) = assertion.rsplit_once('.').unwrap();
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
        let public = match &*key.pair {
            KeyPair::Es256(pair) => pair.public_key().as_ref().to_vec(),
            KeyPair::Rs256(pair) => pair.public_key().as_ref().to_vec(),
        };
        let public = UnparsedPublicKey::new(algorithm, public);
        public
            .verify(message.as_bytes(), &decode(signature))
            .unwrap();
        let (header, claims) = message.split_once('.').unwrap();
        let parse = |text: &str| serde_json::from_slice::<Value>(&decode(text)).unwrap();
        assert_eq!(
            parse(header),
            json!({"typ": "JWT", "alg": name, "kid": "k1"})
        );
        assert_eq!(
            parse(claims),
            json!({"iss": "robot", "sub": "robot", "aud": "https://idp.example/", "jti": "unique", "iat": 1000, "exp": 1060})
        );
        assert_eq!(format!("{key:?}"), "SigningKey");
    }

    #[test]
    fn assertions_are_signed_for_the_issuer_alone() {
        signs(EC, "ES256", &ECDSA_P256_SHA256_FIXED);
        signs(RSA, "RS256", &RSA_PKCS1_2048_8192_SHA256);
    }

    #[test]
    fn what_is_not_a_private_key_is_refused() {
        let cut = &RSA[..RSA.len() / 2];
        for pem in [
            "",
            "secret",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            cut,
        ] {
            assert_eq!(SigningKey::from_pem(pem, None).err(), Some(SigningKeyError));
        }
    }
}
