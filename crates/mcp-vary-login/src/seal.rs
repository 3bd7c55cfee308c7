//! How the files of the store are sealed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use mcp_vary_base::environment::Environment;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{Context, SHA256};

/// A key of 256 bits that seals files.
#[derive(Clone)]
pub struct SealKey(LessSafeKey);

impl SealKey {
    /// The key with these bytes.
    #[must_use]
    pub fn new(bytes: &[u8; 32]) -> Option<Self> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, bytes).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    /// The key for logins that is derived from another `secret`.
    #[must_use]
    pub fn derived(secret: &[u8; 32]) -> Option<Self> {
        let mut context = Context::new(&SHA256);
        context.update(b"vary logins v1\0");
        context.update(secret);
        Self::new(context.finish().as_ref().try_into().ok()?)
    }

    /// `text` sealed for the file `name`: in another file it cannot be opened.
    pub(crate) fn seal(&self, text: &str, name: &str, environment: Environment) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        (environment.random)(&mut nonce);
        let mut bytes = text.as_bytes().to_vec();
        let tag = Nonce::assume_unique_for_key(nonce);
        let sealed = self
            .0
            .seal_in_place_append_tag(tag, Aad::from(name.as_bytes()), &mut bytes);
        sealed.ok()?;
        let sealed = [nonce.as_slice(), &bytes].concat();
        Some(format!("{PREFIX}{}\n", STANDARD_NO_PAD.encode(sealed)))
    }

    /// The text of a sealed file; `None` if it was sealed with another key or for another file.
    pub(crate) fn open(&self, sealed: &str, name: &str) -> Option<String> {
        let encoded = sealed.strip_prefix(PREFIX)?.trim_end();
        let mut bytes = STANDARD_NO_PAD.decode(encoded).ok()?;
        let (nonce, bytes) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let opened = self
            .0
            .open_in_place(nonce, Aad::from(name.as_bytes()), bytes)
            .ok()?;
        String::from_utf8(opened.to_vec()).ok()
    }
}

/// Whether the text of a file is sealed.
pub(crate) fn is_sealed(text: &str) -> bool {
    text.starts_with(PREFIX)
}

// Nothing of the key.
mcp_vary_base::debug_by_name!(SealKey);

const PREFIX: &str = "vary-sealed-v1 ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_opened_with_its_key_and_name_alone() {
        let environment = Environment::new(|| 0, |bytes| bytes.fill(7));
        let key = SealKey::new(&[1; 32]).unwrap();
        let sealed = key.seal("secret text", "a", environment).unwrap();
        assert!(is_sealed(&sealed) && !sealed.contains("secret"));
        assert_eq!(key.open(&sealed, "a").as_deref(), Some("secret text"));
        assert_eq!(key.open(&sealed, "b"), None);
        assert_eq!(SealKey::new(&[2; 32]).unwrap().open(&sealed, "a"), None);
        for cut in 0..sealed.len() - 1 {
            assert_eq!(key.open(&sealed[..cut], "a"), None, "{cut}");
        }
        assert_eq!(format!("{key:?}"), "SealKey");
    }
}
