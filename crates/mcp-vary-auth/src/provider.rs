//! The cryptography of `jsonwebtoken`, over `ring`.
//!
//! `jsonwebtoken` takes its cryptography from one provider per process. rustls brings `ring` along, and its other two
//! providers would add a second library of cryptography. This one only verifies: Vary issues no tokens.

use std::sync::OnceLock;

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind, Result};
use jsonwebtoken::signature::{Error as SignatureError, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

/// The proof that this process verifies with `ring`. A [`TokenVerifier`](crate::token::TokenVerifier) cannot be built
/// without it, since `jsonwebtoken` panics without a provider.
#[derive(Clone, Copy, Debug)]
pub struct Provider(());

/// Another part of the process has installed another provider for `jsonwebtoken`, or used it without one.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "this process has another provider of cryptography for `jsonwebtoken`; install Vary's before it is used"
)]
pub struct ProviderConflict;

impl Provider {
    /// Installs the provider for this process. Only binaries and tests should call it, before anything else does;
    /// calling it again is fine.
    ///
    /// # Errors
    ///
    /// When the process already uses another provider.
    pub fn install() -> std::result::Result<Self, ProviderConflict> {
        // `jsonwebtoken` does not say which provider it has, so the outcome of the one attempt is remembered.
        let is_installed = *INSTALLED.get_or_init(|| RING.install_default().is_ok());
        is_installed.then_some(Self(())).ok_or(ProviderConflict)
    }
}

static INSTALLED: OnceLock<bool> = OnceLock::new();

static RING: CryptoProvider = CryptoProvider {
    signer_factory: refuse_to_sign,
    verifier_factory: verifier,
    // The functions of `KeyUtils::new_unimplemented` panic.
    key_utils: KeyUtils {
        rsa_pub_components_from_private_key: |_| Err(unsupported()),
        rsa_pub_components_from_public_key: |_| Err(unsupported()),
        ec_pub_components_from_private_key: |_, _| Err(unsupported()),
        ed_pub_components_from_private_key: |_, _| Err(unsupported()),
        compute_digest: |_, _| Err(unsupported()),
    },
};

fn unsupported() -> Error {
    ErrorKind::Provider("this provider only verifies signatures".to_owned()).into()
}

fn refuse_to_sign(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(unsupported())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let supported = scheme(*algorithm).ok_or(ErrorKind::UnsupportedAlgorithm)?;
    if algorithm.family() != key.family() {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(RingVerifier {
        algorithm: *algorithm,
        scheme: supported,
        key: key.clone(),
    }))
}

/// How `ring` verifies an algorithm.
#[derive(Clone, Copy)]
enum Scheme {
    Rsa(&'static RsaParameters),
    Curve(&'static dyn VerificationAlgorithm),
}

/// The algorithms of RFC 7518, section 3.1, and RFC 8037; never `none` or an HMAC.
///
/// RSA keys have 2048 to 8192 bits.
fn scheme(algorithm: Algorithm) -> Option<Scheme> {
    Some(match algorithm {
        Algorithm::RS256 => Scheme::Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Scheme::Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Scheme::Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Scheme::Rsa(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Scheme::Rsa(&signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Scheme::Rsa(&signature::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Scheme::Curve(&signature::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Scheme::Curve(&signature::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Scheme::Curve(&signature::ED25519),
        _ => return None,
    })
}

/// One key with one algorithm.
struct RingVerifier {
    algorithm: Algorithm,
    scheme: Scheme,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(
        &self,
        message: &[u8],
        signature: &Vec<u8>,
    ) -> std::result::Result<(), SignatureError> {
        let outcome = match (self.scheme, self.key.kind()) {
            (Scheme::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Scheme::Curve(algorithm), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(algorithm, point).verify(message, signature)
            }
            // Keys come from `jwks`, which builds no others.
            _ => return Err(SignatureError::new()),
        };
        outcome.map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
