//! The forms of a pattern that are compared with URIs.

use std::sync::OnceLock;

use globset::GlobMatcher;

/// The forms of a pattern that are compared with URIs: the same characters are decoded in both.
#[derive(Clone, Debug, Default)]
pub(super) struct UriForms {
    pub(super) identity: OnceLock<Option<GlobMatcher>>,
    pub(super) decoded: OnceLock<Option<GlobMatcher>>,
}
