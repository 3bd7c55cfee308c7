//! Texts that are never shown.

use http::HeaderValue;
use serde::{Deserialize, Serialize};

/// A token, code, password or key. `Debug` shows neither its text nor its length.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The value of `Authorization` for a bearer token (RFC 6750, section 2.1); `None` if no header can have it.
    pub(crate) fn bearer(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

mcp_vary_base::debug_by_name!(Secret);
