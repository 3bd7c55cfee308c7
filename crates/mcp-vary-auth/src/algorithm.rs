//! The algorithms of signatures, by the type of the key.

use jsonwebtoken::Algorithm;

/// The type of a public key. It decides which algorithms a token may name; the token never does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum KeyType {
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl KeyType {
    /// The algorithms of RFC 7518, section 3.1, and RFC 8037, section 3.1, that a key of this type verifies.
    pub(crate) const fn algorithms(self) -> &'static [(&'static str, Algorithm)] {
        match self {
            Self::Rsa => &[
                ("RS256", Algorithm::RS256),
                ("RS384", Algorithm::RS384),
                ("RS512", Algorithm::RS512),
                ("PS256", Algorithm::PS256),
                ("PS384", Algorithm::PS384),
                ("PS512", Algorithm::PS512),
            ],
            Self::P256 => &[("ES256", Algorithm::ES256)],
            Self::P384 => &[("ES384", Algorithm::ES384)],
            Self::Ed25519 => &[("EdDSA", Algorithm::EdDSA)],
        }
    }

    /// The algorithm `name`, if this type allows it.
    pub(crate) fn algorithm(self, name: &str) -> Option<Algorithm> {
        let mut algorithms = self.algorithms().iter();
        algorithms
            .find(|(known, _)| *known == name)
            .map(|(_, algorithm)| *algorithm)
    }

    /// Whether this type allows `algorithm`.
    pub(crate) fn allows(self, algorithm: Algorithm) -> bool {
        self.algorithms()
            .iter()
            .any(|(_, known)| *known == algorithm)
    }
}

/// How a message names the algorithm `name`, which no type of key allows. Other names are what anybody can write.
pub(crate) fn refused_name(name: Option<&str>) -> &'static str {
    match name {
        Some("none") => "`none`",
        Some("HS256" | "HS384" | "HS512") => "symmetric (HS256 to HS512)",
        Some(_) => "unknown",
        None => "missing",
    }
}

/// The algorithm `name` if some type of key allows it; never `none` or an HMAC, and names are case-sensitive.
pub(crate) fn parse_algorithm(name: &str) -> Option<Algorithm> {
    const TYPES: [KeyType; 4] = [KeyType::Rsa, KeyType::P256, KeyType::P384, KeyType::Ed25519];
    TYPES.iter().find_map(|key_type| key_type.algorithm(name))
}
