//! API keys: random texts, of which the configuration has the digests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use mcp_vary_access::{Claims, Principal, PrincipalError};
use sha2::{Digest as _, Sha256};

use crate::strict;

/// The start of every API key, by which secret scanners find one.
pub const PREFIX: &str = "vary_";

/// The most keys of a configuration.
pub const MAX_API_KEYS: usize = 10_000;

/// The longest name of a key, in bytes.
pub const MAX_KEY_NAME: usize = 64;

/// An API key: `vary_` and 256 random bits in 43 characters of base64url. `Debug` does not show it.
///
/// # Examples
///
/// ```
/// use mcp_vary_auth::key::ApiKey;
///
/// let key = ApiKey::from_random([7; 32]);
/// assert_eq!(key.expose(), "vary_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc");
/// assert_eq!(format!("{key:?}"), "ApiKey");
///
/// // The last character has two unused bits. A key has one spelling.
/// assert!(ApiKey::parse("vary_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwd").is_none());
/// ```
#[derive(Clone)]
pub struct ApiKey(Box<str>);

/// The SHA-256 digest of an API key. It is not a secret: nobody finds 256 random bits by their digest.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct KeyDigest([u8; 32]);

/// The text is not the digest of a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("it is not a SHA-256 digest of 64 hexadecimal digits; write what `vary key new` prints")]
pub struct DigestError;

/// A key of the configuration.
#[derive(Clone, Debug)]
pub struct KeyEntry {
    /// The name of the principal.
    pub name: String,
    /// The digest of the key.
    pub digest: KeyDigest,
    /// What rules know of the principal.
    pub claims: Claims,
    /// When the key expires, in seconds since 1970-01-01 UTC; it is refused from this second on.
    pub expires_at: Option<u64>,
}

/// The keys of a configuration, by their digest.
#[derive(Clone, Debug, Default)]
pub struct KeyTable {
    keys: BTreeMap<KeyDigest, KnownKey>,
}

/// A key that was found.
#[derive(Clone, Debug)]
pub struct KnownKey {
    /// Its digest, by which it is known.
    pub digest: KeyDigest,
    /// Whose key it is.
    pub principal: Arc<Principal>,
    /// As [`KeyEntry::expires_at`].
    pub expires_at: Option<u64>,
}

/// Why the keys of a configuration cannot be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("key {} ({name:?}): {fault}", index + 1)]
pub struct KeyTableError {
    /// The position of the key in the list, from 0.
    pub index: usize,
    /// The name of the key, its first 64 characters.
    pub name: String,
    /// What is wrong.
    pub fault: KeyFault,
}

/// What is wrong with a key of the configuration.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum KeyFault {
    /// The name cannot identify a principal.
    #[error("{0}")]
    Name(#[from] PrincipalError),
    /// The name is longer than [`MAX_KEY_NAME`].
    #[error("the name has more than 64 bytes")]
    LongName,
    /// Another key has the name.
    #[error(
        "another key has the same name; audit and limits go by the name, so give each key its own"
    )]
    RepeatedName,
    /// Another key has the digest.
    #[error("another key has the same digest; a key belongs to one name")]
    RepeatedDigest,
    /// There are more than [`MAX_API_KEYS`].
    #[error("there are more than 10000 keys; use an identity provider")]
    TooMany,
}

impl ApiKey {
    /// The key of 256 random bits. They must come from a cryptographic source.
    pub fn from_random(random: [u8; 32]) -> Self {
        Self(format!("{PREFIX}{}", strict::encode(&random)).into())
    }

    /// Parses a key; `None` if it does not have the form of one.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = strict::decode(text.strip_prefix(PREFIX)?, 32)?;
        (bytes.len() == 32).then(|| Self(text.into()))
    }

    /// The key. It is a secret: show it once to its owner, and nowhere else.
    pub const fn expose(&self) -> &str {
        &self.0
    }

    /// The digest for the configuration.
    pub fn digest(&self) -> KeyDigest {
        KeyDigest::of(&self.0)
    }
}

mcp_vary_base::debug_by_name!(ApiKey);

impl KeyDigest {
    fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

impl FromStr for KeyDigest {
    type Err = DigestError;

    /// Parses 64 hexadecimal digits, of either case.
    fn from_str(text: &str) -> Result<Self, DigestError> {
        let read: Option<Vec<u8>> = text
            .chars()
            .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
            .collect();
        let digits = read
            .filter(|digits| digits.len() == 64)
            .ok_or(DigestError)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair.iter().fold(0, |byte, digit| byte << 4 | digit);
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyDigest({self})")
    }
}

impl KeyTable {
    /// Builds the table.
    ///
    /// # Errors
    ///
    /// At the first key whose name cannot be used, or whose name or digest an earlier one has.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_access::Claims;
    /// use mcp_vary_auth::key::{ApiKey, KeyEntry, KeyTable};
    ///
    /// let key = ApiKey::from_random([7; 32]);
    /// let entry = |name: &str| KeyEntry {
    ///     name: name.to_owned(), digest: key.digest(), claims: Claims::default(), expires_at: Some(2_000_000_000),
    /// };
    /// let table = KeyTable::new(vec![entry("ci")])?;
    /// assert_eq!(table.find(key.expose()).and_then(|found| found.principal.key_name()), Some("ci"));
    ///
    /// let error = KeyTable::new(vec![entry("ci"), entry("cd")]).unwrap_err();
    /// assert_eq!(error.to_string(), r#"key 2 ("cd"): another key has the same digest; a key belongs to one name"#);
    /// # Ok::<(), mcp_vary_auth::key::KeyTableError>(())
    /// ```
    pub fn new(entries: Vec<KeyEntry>) -> Result<Self, KeyTableError> {
        let mut table = Self::default();
        let mut names = BTreeSet::new();
        for (index, entry) in entries.into_iter().enumerate() {
            let name = entry.name.clone();
            table
                .add(entry, &mut names)
                .map_err(|fault| KeyTableError {
                    index,
                    name: name.chars().take(MAX_KEY_NAME).collect(),
                    fault,
                })?;
        }
        Ok(table)
    }

    fn add(&mut self, entry: KeyEntry, names: &mut BTreeSet<String>) -> Result<(), KeyFault> {
        if self.keys.len() == MAX_API_KEYS {
            return Err(KeyFault::TooMany);
        }
        if entry.name.len() > MAX_KEY_NAME {
            return Err(KeyFault::LongName);
        }
        let principal = Arc::new(Principal::key(&entry.name, entry.claims)?);
        if !names.insert(entry.name) {
            return Err(KeyFault::RepeatedName);
        }
        let expires_at = entry.expires_at;
        let replaced = self.keys.insert(
            entry.digest,
            KnownKey {
                digest: entry.digest,
                principal,
                expires_at,
            },
        );
        replaced.map_or(Ok(()), |_| Err(KeyFault::RepeatedDigest))
    }

    /// The key with this text, expired or not.
    ///
    /// The table is searched by digest, so how long it takes says nothing about the keys in it.
    pub fn find(&self, text: &str) -> Option<&KnownKey> {
        self.keys.get(&KeyDigest::of(text))
    }

    /// The key with this digest, expired or not.
    pub fn get(&self, digest: &KeyDigest) -> Option<&KnownKey> {
        self.keys.get(digest)
    }

    /// All keys, in no order that means something.
    pub fn all(&self) -> impl Iterator<Item = &KnownKey> {
        self.keys.values()
    }

    /// The principals of all keys, in no order that means something.
    pub fn principals(&self) -> impl Iterator<Item = &Arc<Principal>> {
        self.keys.values().map(|key| &key.principal)
    }

    /// Whether `text` claims to be an API key. An access token never does: its header starts with `ey`.
    pub fn looks_like_a_key(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl KnownKey {
    /// Whether the key has expired.
    pub fn is_expired(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, byte: u8) -> KeyEntry {
        KeyEntry {
            name: name.to_owned(),
            digest: ApiKey::from_random([byte; 32]).digest(),
            claims: Claims::default(),
            expires_at: None,
        }
    }

    #[track_caller]
    fn refuses(entries: &[KeyEntry], message: &str) {
        let entries = entries.to_vec();
        let error = KeyTable::new(entries).unwrap_err();
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn a_key_has_43_characters_after_its_prefix_and_parses_to_itself() {
        let key = ApiKey::from_random([0xfb; 32]);
        assert_eq!(key.expose().len(), 48);
        assert_eq!(ApiKey::parse(key.expose()).unwrap().digest(), key.digest());
        for wrong in [
            "",
            "vary_",
            "vary_AA",
            "Vary_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc",
            &format!("{}A", key.expose()),
        ] {
            assert!(ApiKey::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn the_digest_is_sha_256_of_the_whole_key() {
        // `printf %s vary_BwcH…Bwc | sha256sum`
        let digest = ApiKey::from_random([7; 32]).digest();
        assert_eq!(digest.to_string(), DIGEST_OF_SEVENS);
        assert_eq!(DIGEST_OF_SEVENS.parse(), Ok(digest));
        assert_eq!(DIGEST_OF_SEVENS.to_uppercase().parse(), Ok(digest));
    }

    const DIGEST_OF_SEVENS: &str =
        "5a4e8f363343af2bd3455402325c76cc20e692c80cf01ab62efae36ef2e7a737";

    #[test]
    fn a_digest_has_64_hexadecimal_digits() {
        for (digit, count) in [("0", 0), ("0", 63), ("0", 65), ("g", 64), ("é", 32)] {
            let wrong = digit.repeat(count);
            assert_eq!(wrong.parse::<KeyDigest>(), Err(DigestError), "{wrong}");
        }
        let spaced = "0".repeat(63) + " ";
        assert_eq!(spaced.parse::<KeyDigest>(), Err(DigestError));
    }

    #[test]
    fn an_expired_key_is_found_as_expired() {
        let mut ci = entry("ci", 1);
        ci.expires_at = Some(100);
        let table = KeyTable::new(vec![ci, entry("cd", 2)]).unwrap();
        let found = table.find(ApiKey::from_random([1; 32]).expose()).unwrap();
        assert!(!found.is_expired(99) && found.is_expired(100));
        let found = table.find(ApiKey::from_random([2; 32]).expose()).unwrap();
        assert!(!found.is_expired(u64::MAX));
        assert!(table.find(ApiKey::from_random([3; 32]).expose()).is_none());
    }

    #[test]
    fn every_key_has_one_name_and_every_name_one_key() {
        refuses(
            &[entry("a", 1), entry("a", 2)],
            r#"key 2 ("a"): another key has the same name; audit and limits go by the name, so give each key its own"#,
        );
        let empty = r#"key 1 (""): the name of the key is empty"#;
        refuses(&[entry("", 1)], empty);
        let control = r#"key 1 ("a\n"): the name of the key contains a control character"#;
        refuses(&[entry("a\n", 1)], control);
        let (long, shown) = ("x".repeat(65), "x".repeat(64));
        let too_long = format!("key 1 ({shown:?}): the name has more than 64 bytes");
        refuses(&[entry(&long, 1)], &too_long);
    }

    #[test]
    fn debug_shows_no_key() {
        let key = ApiKey::from_random([7; 32]);
        let table = KeyTable::new(vec![entry("ci", 7)]).unwrap();
        assert!(!format!("{key:?}{table:?}").contains("BwcH"));
    }
}
