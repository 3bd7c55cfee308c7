//! Which tools of a server a client shows.

use std::collections::BTreeSet;

/// The tools of a server that a client shows.
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
        let is_shown = |tool: &String| self.shows(tool) || other.shows(tool);
        if let (Some(mine), Some(others)) = (&self.allowed, &other.allowed) {
            let all: BTreeSet<&String> = mine.iter().chain(others).collect();
            let shown = all.into_iter().filter(|tool| is_shown(tool));
            *self = Self {
                allowed: Some(shown.cloned().collect()),
                denied: Vec::new(),
            };
            return;
        }
        let all: BTreeSet<&String> = self.denied.iter().chain(&other.denied).collect();
        let hidden = all.into_iter().filter(|tool| !is_shown(tool));
        *self = Self {
            allowed: None,
            denied: hidden.cloned().collect(),
        };
    }

    fn shows(&self, tool: &String) -> bool {
        let is_allowed = self.allowed.as_ref();
        is_allowed.is_none_or(|allowed| allowed.contains(tool)) && !self.denied.contains(tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(allowed: Option<&str>, denied: &str) -> ToolFilter {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        ToolFilter {
            allowed: allowed.map(words),
            denied: words(denied),
        }
    }

    #[test]
    fn two_clients_together_are_shown_what_one_of_them_was_and_nothing_else() {
        for (one, other, expected) in [
            (filter(None, "a b"), filter(None, "b c"), filter(None, "b")),
            (
                filter(Some("a b"), "b"),
                filter(Some("c"), ""),
                filter(Some("a c"), ""),
            ),
            (
                filter(None, "a b"),
                filter(Some("a"), ""),
                filter(None, "b"),
            ),
            (filter(None, ""), filter(Some("a"), ""), filter(None, "")),
        ] {
            for (first, second) in [(&one, &other), (&other, &one)] {
                let mut wide = first.clone();
                wide.widen(second);
                assert!(wide == expected, "{:?} {:?}", wide.allowed, wide.denied);
            }
        }
    }
}
