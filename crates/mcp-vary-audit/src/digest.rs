//! Keyed digests of what must not be written itself.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::config::AuditKey;

/// Computes digests: HMAC-SHA-256 (RFC 2104), cut to 128 bits.
pub(crate) struct Digester {
    /// It has read the key already: each digest goes on with a copy.
    keyed: Hmac<Sha256>,
}

// It omits what follows from the key.
mcp_vary_base::debug_by_name!(Digester);

impl Digester {
    pub(crate) fn new(key: &AuditKey) -> Self {
        let mut block = [0; 64];
        for (to, from) in block.iter_mut().zip(&key.0) {
            *to = *from;
        }
        let keyed = Hmac::new(&block.into());
        Self { keyed }
    }

    /// The digest as `hmac-sha256:` and 32 hexadecimal digits. Equal bytes for different purposes have different ones.
    pub(crate) fn digest(&self, purpose: &str, bytes: &[u8]) -> String {
        let mut mac = self.keyed.clone();
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(bytes);
        let tag = mac.finalize().into_bytes();
        let mut text = String::with_capacity(44);
        text.push_str("hmac-sha256:");
        push_hex(&mut text, tag.iter().take(16));
        text
    }
}

/// Lowercase hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    push_hex(&mut text, bytes);
    text
}

fn push_hex<'a>(text: &mut String, bytes: impl IntoIterator<Item = &'a u8>) {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value & 15)]);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(*byte));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_depends_on_key_purpose_and_bytes() {
        let digester = |key| Digester::new(&AuditKey::new([key; 32]));
        let digest = digester(1).digest("arguments", b"{}");
        assert_eq!(digest, digester(1).digest("arguments", b"{}"));
        assert_ne!(digest, digester(2).digest("arguments", b"{}"));
        assert_ne!(digest, digester(1).digest("session", b"{}"));
        assert_ne!(digest, digester(1).digest("arguments", b"{} "));
    }

    #[test]
    fn a_digest_is_half_of_the_hmac() {
        // `printf 'session\0abc' | openssl dgst -sha256 -mac HMAC -macopt hexkey:0101…`
        let digest = Digester::new(&AuditKey::new([1; 32])).digest("session", b"abc");
        assert_eq!(digest, "hmac-sha256:2b352c7898603fd419eb2a888045e3f2");
    }
}
