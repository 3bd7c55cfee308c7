//! Keyed digests of what must not be written itself.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::config::AuditKey;

/// Computes digests: HMAC-SHA-256 (RFC 2104), cut to 128 bits.
#[derive(Debug)]
pub(crate) struct Digester(AuditKey);

impl Digester {
    pub(crate) fn new(key: AuditKey) -> Self {
        Self(key)
    }

    /// The digest as `hmac-sha256:` and 32 hexadecimal digits. Equal bytes for different purposes have different ones.
    pub(crate) fn digest(&self, purpose: &str, bytes: &[u8]) -> String {
        let mut block = [0; 64];
        for (to, from) in block.iter_mut().zip(self.0.as_bytes()) {
            *to = *from;
        }
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(bytes);
        let tag = mac.finalize().into_bytes();
        let half = tag.iter().take(16);
        format!("hmac-sha256:{}", hex(&half.copied().collect::<Vec<u8>>()))
    }
}

/// Lowercase hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_depends_on_key_purpose_and_bytes() {
        let digester = |key| Digester::new(AuditKey::new([key; 32]));
        let digest = digester(1).digest("arguments", b"{}");
        assert_eq!(digest, digester(1).digest("arguments", b"{}"));
        assert_ne!(digest, digester(2).digest("arguments", b"{}"));
        assert_ne!(digest, digester(1).digest("session", b"{}"));
        assert_ne!(digest, digester(1).digest("arguments", b"{} "));
    }

    #[test]
    fn a_digest_is_half_of_the_hmac() {
        // `printf 'session\0abc' | openssl dgst -sha256 -mac HMAC -macopt hexkey:0101…`
        let digest = Digester::new(AuditKey::new([1; 32])).digest("session", b"abc");
        assert_eq!(digest, "hmac-sha256:2b352c7898603fd419eb2a888045e3f2");
    }
}
