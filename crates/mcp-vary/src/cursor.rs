//! Cursors: opaque to the client, and valid only in the list they were created for.
//!
//! Source: the server variants extension, "Cursor and Pagination Scoping".

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::error::Error;
use crate::variant::VariantId;

/// The keys that cursors are sealed with: 32 bytes each.
///
/// Every replica has the same keys. To rotate them, make a new one current and keep the old one among the previous
/// keys while its cursors are in use.
#[derive(Clone)]
pub struct CursorKeys {
    current: [u8; 32],
    previous: Vec<[u8; 32]>,
}

impl CursorKeys {
    /// Seals and opens cursors with `current`.
    #[must_use]
    pub fn new(current: [u8; 32]) -> Self {
        Self {
            current,
            previous: Vec::new(),
        }
    }

    /// Also opens cursors that were sealed with `previous`.
    #[must_use]
    pub fn with_previous(mut self, previous: impl IntoIterator<Item = [u8; 32]>) -> Self {
        self.previous.extend(previous);
        self
    }
}

/// Prints the number of keys, not the keys.
impl fmt::Debug for CursorKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let previous = self.previous.len();
        write!(f, "CursorKeys {{ current: .., previous: {previous} }}")
    }
}

/// What a cursor is bound to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written as a literal where a cursor is sealed; a fourth part must be added everywhere"
)]
pub struct CursorBinding<'a> {
    /// The active variant.
    pub variant: &'a VariantId,
    /// The list that is being paged through, such as `tools/list`.
    pub method: &'a str,
    /// The principal of the request; empty if there is none.
    pub principal: &'a str,
}

/// Why a cursor does not open.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CursorError {
    /// The cursor is authentic, for this method and principal, but belongs to the variant given here.
    #[error("the cursor belongs to the variant `{0}`")]
    WrongVariant(VariantId),
    /// Malformed, forged, or created for another method or principal.
    #[error("the cursor is invalid")]
    Invalid,
}

impl CursorError {
    /// The error for a request with the variant `active`.
    ///
    /// The error never names a variant that the client does not see.
    #[must_use]
    pub fn into_error(self, active: &VariantId, sees: impl FnOnce(&VariantId) -> bool) -> Error {
        match self {
            Self::WrongVariant(cursor) if sees(&cursor) => Error::CursorVariantMismatch {
                cursor,
                requested: active.clone(),
            },
            Self::WrongVariant(_) | Self::Invalid => Error::InvalidCursor {
                active: active.clone(),
            },
        }
    }
}

/// Seals the cursor `inner` of a server, so that it opens only under the same `binding`.
///
/// A sealed cursor is authentic, not secret: its holder can decode `inner`.
///
/// # Examples
///
/// ```
/// use mcp_vary::cursor::{CursorBinding, CursorError, CursorKeys, open, seal};
///
/// let keys = CursorKeys::new([7; 32]);
/// let (compact, standard) = ("compact".parse()?, "standard".parse()?);
/// let binding = CursorBinding { variant: &compact, method: "tools/list", principal: "" };
///
/// let cursor = seal(&keys, &binding, "page 2");
/// assert_eq!(open(&keys, &binding, &cursor).as_deref(), Ok("page 2"));
///
/// let elsewhere = CursorBinding { variant: &standard, ..binding };
/// assert_eq!(open(&keys, &elsewhere, &cursor), Err(CursorError::WrongVariant(compact.clone())));
///
/// // "" is an ordinary cursor, not the absence of one.
/// assert_eq!(open(&keys, &binding, &seal(&keys, &binding, "")).as_deref(), Ok(""));
/// # Ok::<(), mcp_vary::variant::VariantIdError>(())
/// ```
#[must_use]
pub fn seal(keys: &CursorKeys, binding: &CursorBinding<'_>, inner: &str) -> String {
    let variant = binding.variant.as_str();
    let mut sealed = vec![VERSION];
    sealed.extend(mac(&keys.current, binding, inner).finalize().into_bytes());
    sealed.push(variant_length(variant));
    sealed.extend(variant.as_bytes());
    sealed.extend(inner.as_bytes());
    URL_SAFE_NO_PAD.encode(sealed)
}

/// Opens a cursor that a client sent, and returns what [`seal`] was given.
///
/// # Errors
///
/// When it was created for another variant, method or principal, or is not authentic. Nothing in a cursor that is
/// not authentic is ever echoed.
pub fn open(
    keys: &CursorKeys,
    binding: &CursorBinding<'_>,
    cursor: &str,
) -> Result<String, CursorError> {
    let sealed = URL_SAFE_NO_PAD
        .decode(cursor)
        .map_err(|_| CursorError::Invalid)?;
    let (tag, variant, inner) = parts(&sealed).ok_or(CursorError::Invalid)?;
    let sealed_for = CursorBinding {
        variant: &variant,
        ..*binding
    };
    let authentic = std::iter::once(&keys.current)
        .chain(&keys.previous)
        .any(|key| mac(key, &sealed_for, inner).verify_slice(tag).is_ok());
    match authentic {
        false => Err(CursorError::Invalid),
        true if variant != *binding.variant => Err(CursorError::WrongVariant(variant)),
        true => Ok(inner.to_owned()),
    }
}

/// The variant and the inner text that a sealed text claims, before it is authenticated.
pub(crate) fn claimed(sealed: &str) -> Option<(VariantId, String)> {
    let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
    parts(&sealed).map(|(_, variant, inner)| (variant, inner.to_owned()))
}

/// Splits decoded bytes into authentication tag, variant and inner cursor.
fn parts(sealed: &[u8]) -> Option<(&[u8], VariantId, &str)> {
    let (&version, remaining) = sealed.split_first()?;
    let (tag, remaining) = remaining.split_at_checked(TAG_BYTES)?;
    let (&length, remaining) = remaining.split_first()?;
    let (variant, inner) = remaining.split_at_checked(length.into())?;
    let variant = std::str::from_utf8(variant).ok()?.parse().ok()?;
    let inner = std::str::from_utf8(inner).ok()?;
    (version == VERSION).then_some((tag, variant, inner))
}

/// The MAC over all bound parts, each preceded by its length, so that no two bindings are alike.
fn mac(key: &[u8; 32], binding: &CursorBinding<'_>, inner: &str) -> Hmac<Sha256> {
    // HMAC pads a key to the block size with zeros; padding it here means that no length can be wrong.
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    let mut mac = Hmac::<Sha256>::new(&block.into());
    mac.update(LABEL);
    mac.update(&[VERSION]);
    for part in [
        binding.variant.as_str(),
        binding.method,
        binding.principal,
        inner,
    ] {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part.as_bytes());
    }
    mac
}

/// An identifier has at most 128 bytes.
fn variant_length(variant: &str) -> u8 {
    u8::try_from(variant.len()).unwrap_or(u8::MAX)
}

/// Separates these tags from all others with the same key.
const LABEL: &[u8] = b"mcp-vary cursor\0";
const VERSION: u8 = 1;
const TAG_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn binding<'a>(variant: &'a VariantId, method: &'a str) -> CursorBinding<'a> {
        CursorBinding {
            variant,
            method,
            principal: "",
        }
    }

    /// SV-13: no key is printed.
    #[test]
    fn keys_are_not_shown() {
        let keys = CursorKeys::new([171; 32]).with_previous([[205; 32], [1; 32]]);
        let shown = "CursorKeys { current: .., previous: 2 }";
        assert_eq!(format!("{keys:?}"), shown);
    }

    /// SV-13: the longest identifier fits in the byte that tells its length.
    #[test]
    fn the_longest_variant_fits() {
        let variant: VariantId = "v".repeat(crate::variant::MAX_ID).parse().unwrap();
        let binding = binding(&variant, "tools/list");
        let keys = CursorKeys::new([1; 32]);
        let cursor = seal(&keys, &binding, "x");
        assert_eq!(open(&keys, &binding, &cursor).as_deref(), Ok("x"));
    }

    /// SV-13: a cursor is sealed with the current key, never with a previous one.
    #[test]
    fn a_previous_key_only_opens() {
        let variant: VariantId = "v".parse().unwrap();
        let binding = binding(&variant, "m");
        let rotated = CursorKeys::new([2; 32]).with_previous([[1; 32]]);
        let cursor = seal(&rotated, &binding, "x");
        let old = CursorKeys::new([1; 32]);
        assert_eq!(open(&old, &binding, &cursor), Err(CursorError::Invalid));
    }

    /// SV-13: a cursor uses no character that a URL or a log would change.
    #[test]
    fn a_cursor_is_base64url() {
        let variant: VariantId = "v".parse().unwrap();
        let binding = binding(&variant, "m");
        let cursor = seal(&CursorKeys::new([1; 32]), &binding, "\u{ff}\u{fe}>>>???");
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        assert!(cursor.bytes().all(is_plain), "{cursor}");
    }

    #[test]
    fn errors_are_sentences() {
        let another = CursorError::WrongVariant("v".parse().unwrap());
        assert_eq!(another.to_string(), "the cursor belongs to the variant `v`");
        assert_eq!(CursorError::Invalid.to_string(), "the cursor is invalid");
    }
}
