//! Which tools of a server a program shows.

use std::collections::BTreeSet;

/// Which tools of a server are shown.
#[derive(Clone, Default, Eq, PartialEq)]
pub(super) struct ToolFilter {
    /// The tools that are allowed. `None` allows all tools.
    pub(super) allowed: Option<Vec<String>>,
    pub(super) denied: Vec<String>,
}

impl ToolFilter {
    /// Whether all tools are shown.
    pub(super) fn is_free(&self) -> bool {
        self.allowed.is_none() && self.denied.is_empty()
    }

    /// Shows what `other` shows, too.
    pub(super) fn widen(&mut self, other: &Self) {
        if self == other {
            return;
        }
        let both = self.allowed.iter().chain(&other.allowed).flatten();
        let all: BTreeSet<String> = both.cloned().collect();
        let is_limited = self.allowed.is_some() && other.allowed.is_some();
        self.allowed = is_limited.then(|| all.into_iter().collect());
        self.denied.retain(|tool| other.denied.contains(tool));
    }
}
