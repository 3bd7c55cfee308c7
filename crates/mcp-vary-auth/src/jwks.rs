//! JSON Web Key sets (RFC 7517), read with bounds.

use std::fmt;

use jsonwebtoken::{Algorithm, DecodingKey};
use sha2::{Digest as _, Sha256};

use crate::algorithm::KeyType;
use crate::strict::{Object, decode, parse_object};

/// The largest key set, in bytes.
pub const MAX_KEY_SET: usize = 256 << 10;

/// The most keys of a set.
pub const MAX_KEYS: usize = 64;

/// The longest `kid`, in bytes.
pub const MAX_KEY_ID: usize = 512;

/// A set of public keys that verify signatures.
///
/// # Properties
///
/// It has at least one key and at most [`MAX_KEYS`]. Keys that cannot verify a token are skipped and counted: other
/// types and curves, symmetric and private keys, keys for encryption, keys for another algorithm, RSA keys of fewer
/// than 2048 or more than 8192 bits, and malformed ones. So an issuer can publish a new kind of key without breaking
/// the others (RFC 7517, section 5).
///
/// # Examples
///
/// ```
/// use mcp_vary_auth::jwks::KeySet;
///
/// let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
/// let key = format!(r#"{{"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": "{x}"}}"#);
/// let set = format!(r#"{{"keys": [{key}, {{"kty": "oct", "k": "AA"}}]}}"#);
/// let set = KeySet::parse(set.as_bytes())?;
/// assert_eq!((set.len(), set.skipped()), (1, 1));
///
/// // A set without a usable key is an error, so that it never replaces a good one.
/// assert!(KeySet::parse(br#"{"keys": [{"kty": "oct", "k": "AA"}]}"#).is_err());
/// # Ok::<(), mcp_vary_auth::jwks::KeySetError>(())
/// ```
#[derive(Clone, Debug)]
pub struct KeySet {
    keys: Vec<VerificationKey>,
    skipped: usize,
    digest: [u8; 32],
}

/// A public key, and what it may verify.
#[derive(Clone)]
pub struct VerificationKey {
    id: Option<Box<str>>,
    key_type: KeyType,
    /// The only algorithm, if the set names one.
    algorithm: Option<Algorithm>,
    pub(crate) key: DecodingKey,
}

/// Why a key set cannot be used. It never contains a part of the set.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum KeySetError {
    /// It is longer than [`MAX_KEY_SET`].
    #[error("the key set has more than 262144 bytes")]
    TooLarge,
    /// It is not a JSON object with an array `keys`, repeats a name, or nests too deep.
    #[error(
        "the key set is not a JSON object with an array `keys` (RFC 7517), or it repeats a name"
    )]
    NotASet,
    /// It has more than [`MAX_KEYS`] keys.
    #[error("the key set has more than 64 keys")]
    TooMany,
    /// None of its keys can verify a token.
    #[error(
        "none of the {0} keys of the set can verify a token; RSA, P-256, P-384 and Ed25519 keys for signatures can"
    )]
    NoneUsable(usize),
}

impl KeySet {
    /// Parses a JWK set.
    ///
    /// # Errors
    ///
    /// See [`KeySetError`].
    pub fn parse(text: &[u8]) -> Result<Self, KeySetError> {
        if text.len() > MAX_KEY_SET {
            return Err(KeySetError::TooLarge);
        }
        let set = parse_object(text, MAX_DEPTH).ok_or(KeySetError::NotASet)?;
        let member = set.get("keys").and_then(|keys| keys.as_array());
        let listed = member.ok_or(KeySetError::NotASet)?;
        if listed.len() > MAX_KEYS {
            return Err(KeySetError::TooMany);
        }
        let all = listed.len();
        let usable = listed
            .iter()
            .filter_map(|key| VerificationKey::read(&key.clone().try_into().ok()?));
        let keys: Vec<_> = usable.collect();
        if keys.is_empty() {
            return Err(KeySetError::NoneUsable(all));
        }
        let skipped = all - keys.len();
        Ok(Self {
            keys,
            skipped,
            digest: Sha256::digest(text).into(),
        })
    }

    /// The key that verifies a token with this `kid` and algorithm.
    ///
    /// A token without `kid` is verified only if the set has exactly one key for the algorithm (OpenID Connect Core
    /// 1.0, section 10.1). A key without an id verifies no token that names one.
    pub fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&VerificationKey> {
        let mut fitting = self.keys.iter().filter(|key| key.verifies(algorithm));
        let Some(id) = id else {
            let only = fitting.next();
            return if fitting.next().is_none() { only } else { None };
        };
        fitting.find(|key| key.id.as_deref() == Some(id))
    }

    /// The number of usable keys.
    #[expect(clippy::len_without_is_empty, reason = "a set has at least one key")]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// The number of keys that were skipped.
    pub const fn skipped(&self) -> usize {
        self.skipped
    }

    /// The ids of the keys, for reports. Ids are public.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().filter_map(|key| key.id.as_deref())
    }

    /// Whether both sets were written with the same bytes: then no key was withdrawn or replaced.
    pub fn is_same_text(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl VerificationKey {
    /// Reads a key; `None` if it cannot verify a token.
    fn read(jwk: &Object<'_>) -> Option<Self> {
        // A set that publishes a private key has given it away. `d` is of RSA, EC and OKP alike.
        let is_private = jwk.contains("d") || jwk.contains("k");
        let is_for_signatures = jwk
            .optional_text("use")
            .ok()?
            .is_none_or(|usage| usage == "sig");
        let operations = match jwk.get("key_ops") {
            None => None,
            Some(_) => Some(jwk.texts("key_ops", 16)?),
        };
        let verifies = operations.is_none_or(|all| all.contains(&"verify"));
        let id = jwk.optional_text("kid").ok()?;
        if is_private
            || !is_for_signatures
            || !verifies
            || id.is_some_and(|id| id.len() > MAX_KEY_ID)
        {
            return None;
        }
        let (key_type, key) = public_key(jwk)?;
        let algorithm = match jwk.optional_text("alg").ok()? {
            None => None,
            Some(name) => Some(key_type.algorithm(name)?),
        };
        Some(Self {
            id: id.map(Into::into),
            key_type,
            algorithm,
            key,
        })
    }

    fn verifies(&self, algorithm: Algorithm) -> bool {
        let is_allowed = self.algorithm.is_none_or(|only| only == algorithm);
        is_allowed && self.key_type.allows(algorithm)
    }
}

/// Shows the id and the type. Both are public.
impl fmt::Debug for VerificationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id.as_deref().unwrap_or("no id");
        write!(f, "VerificationKey({id:?}, {:?})", self.key_type)
    }
}

/// The public key of a JWK (RFC 7518, section 6, and RFC 8037, section 2).
fn public_key(jwk: &Object<'_>) -> Option<(KeyType, DecodingKey)> {
    let part = |name: &str, most: usize| decode(jwk.text(name)?, most);
    let exact = |name: &str, size: usize| part(name, size).filter(|bytes| bytes.len() == size);
    let point = |size: usize| {
        let x = exact("x", size)?;
        let y = exact("y", size)?;
        // The uncompressed form of SEC 1, section 2.3.3.
        Some(DecodingKey::from_ec_der(&[&[4][..], &x, &y].concat()))
    };
    match (jwk.text("kty")?, jwk.text("crv")) {
        ("RSA", _) => {
            // Some issuers write the sign byte of ASN.1, which `ring` does not take.
            let modulus = part("n", MAX_MODULUS + 1)?;
            let exponent = part("e", MAX_EXPONENT)?;
            let n = without_leading_zeros(&modulus);
            let e = without_leading_zeros(&exponent);
            let is_long_enough = (MIN_MODULUS..=MAX_MODULUS).contains(&n.len())
                && (n.len() > MIN_MODULUS || n.first().is_some_and(|first| *first >= 0x80));
            let is_odd = n.last()? & e.last()? & 1 == 1;
            let key = DecodingKey::from_rsa_raw_components(n, e);
            (is_long_enough && is_odd).then_some((KeyType::Rsa, key))
        }
        ("EC", Some("P-256")) => Some((KeyType::P256, point(32)?)),
        ("EC", Some("P-384")) => Some((KeyType::P384, point(48)?)),
        ("OKP", Some("Ed25519")) => {
            let key = DecodingKey::from_ed_der(&exact("x", 32)?);
            Some((KeyType::Ed25519, key))
        }
        _ => None,
    }
}

fn without_leading_zeros(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| *byte != 0);
    start.and_then(|start| bytes.get(start..)).unwrap_or(&[])
}

/// A set has an object with an array of objects, some of which have an array.
const MAX_DEPTH: usize = 8;

/// 2048 bits, in bytes: RFC 7518, section 3.3.
const MIN_MODULUS: usize = 256;

/// 8192 bits, in bytes: what `ring` verifies.
const MAX_MODULUS: usize = 1024;

/// `ring` verifies with exponents of up to 33 bits.
const MAX_EXPONENT: usize = 5;

#[cfg(test)]
mod tests;
