//! The id of a variant.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The longest identifier of a variant, in bytes.
pub const MAX_ID: usize = 128;

/// The identifier of a variant: 1 to [`MAX_ID`] bytes without control characters.
///
/// # Examples
///
/// ```
/// use mcp_vary::variant::VariantId;
///
/// let id: VariantId = "claude-optimized".parse()?;
/// assert_eq!(id.as_str(), "claude-optimized");
///
/// // "Freeform string that servers define": spaces and letters of any script are fine.
/// assert!("kompakt für Bahnhöfe".parse::<VariantId>().is_ok());
/// assert!("".parse::<VariantId>().is_err());
/// # Ok::<(), mcp_vary::variant::VariantIdError>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct VariantId(Arc<str>);

impl VariantId {
    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The identifier, to be shared.
    pub const fn as_shared(&self) -> &Arc<str> {
        &self.0
    }
}

impl FromStr for VariantId {
    type Err = VariantIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for VariantId {
    type Error = VariantIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.chars().find(|c| c.is_control()) {
            _ if text.is_empty() => Err(VariantIdError::Empty),
            _ if text.len() > MAX_ID => Err(VariantIdError::TooLong),
            Some(c) => Err(VariantIdError::Control(c)),
            None => Ok(Self(text.into())),
        }
    }
}

impl From<VariantId> for String {
    fn from(id: VariantId) -> Self {
        id.as_str().to_owned()
    }
}

impl std::borrow::Borrow<str> for VariantId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for VariantId {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for VariantId {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl fmt::Display for VariantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text is not a variant's identifier.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum VariantIdError {
    /// There is no text.
    #[error("the identifier of a variant is empty")]
    Empty,
    /// The text is longer than [`MAX_ID`] bytes.
    #[error("the identifier of a variant has at most {MAX_ID} bytes")]
    TooLong,
    /// The text holds a control character.
    #[error("the identifier of a variant holds the control character '{}'", .0.escape_default())]
    Control(char),
}
