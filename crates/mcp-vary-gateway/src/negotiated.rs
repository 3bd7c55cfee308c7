//! What is logged of content negotiation: what was declared, what of it was ignored, what was chosen.
//!
//! Tags are printable ASCII by their grammar, and what is ignored is escaped and cut, so that no peer writes
//! lines of its own. Nothing else of a peer stands there: no argument, no result, no header.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_vary::feature::{Features, Format, Verbosity};
use mcp_vary::hints::VariantHints;
use mcp_vary::ignored::Ignored;
use mcp_vary::shape::Shaped;
use tracing::{debug, warn};

/// The tags as they are logged, cut between two of them.
struct Tags<'a>(&'a Features);

/// How many bytes of tags are shown at most.
const SHOWN: usize = 512;

impl fmt::Display for Tags<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut room = SHOWN;
        for (at, tag) in self.0.tags().enumerate() {
            let tag = tag.as_str();
            if tag.len() + 1 > room {
                return write!(f, ",and {} more", self.0.tags().len() - at);
            }
            room -= tag.len() + 1;
            let separator = if at > 0 { "," } else { "" };
            write!(f, "{separator}{tag}")?;
        }
        Ok(())
    }
}

/// How many declarations of clients had a part that was ignored.
#[derive(Debug, Default)]
pub(crate) struct Ignorings(AtomicU64);

impl Ignorings {
    /// What a client declared of content negotiation; `None` when it did not.
    pub(crate) fn declared(&self, features: Option<&Features>, ignored: &Ignored) {
        self.add("content-negotiation", ignored);
        if let Some(features) = features {
            let ignored = ignored.count();
            debug!(tags = %Tags(features), ignored, "feature tags declared");
        }
    }

    /// What a client declared of server variants: how many hints it gave, without their words.
    pub(crate) fn hinted(&self, hints: &VariantHints, ignored: &Ignored) {
        self.add("server-variants", ignored);
        if !hints.is_empty() {
            let ignored = ignored.count();
            debug!(hints = hints.iter().count(), ignored, "hints declared");
        }
    }

    /// Says the first few times what was ignored and why, then ever more rarely, unless the log is to have
    /// everything.
    fn add(&self, extension: &str, ignored: &Ignored) {
        if ignored.is_empty() {
            return;
        }
        let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        if count <= 8 || count.is_power_of_two() {
            warn!(extension, %ignored, count, "parts of a client's declaration ignored");
        } else {
            debug!(extension, %ignored, count, "parts of a client's declaration ignored");
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What became of a result, a resource or a prompt, `what`, for a client with `features`.
pub(crate) fn chosen(what: &str, features: &Features, variant: Option<&str>, shaped: &Shaped) {
    let tags = Tags(features);
    match shaped {
        Shaped::Changed { applied, .. } => {
            let format = applied.format.map(Format::as_str);
            let verbosity = applied.verbosity.map(Verbosity::as_str);
            debug!(what, %tags, format, verbosity, variant, "content negotiated");
        }
        Shaped::Unchanged => debug!(what, %tags, variant, "content left as the server said it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CN-21: what is logged of tags is bounded.
    #[test]
    fn tags_are_cut_between_two_of_them() {
        let shown = |tags: &[String]| {
            let (features, _) = Features::from_tags(tags.iter().map(String::as_str));
            Tags(&features).to_string()
        };
        assert_eq!(
            shown(&["agent".to_owned(), "format=json".to_owned()]),
            "agent,format=json"
        );
        assert_eq!(shown(&[]), "");
        let long: Vec<_> = (0..64)
            .map(|n| format!("x-{n}={}", "v".repeat(100)))
            .collect();
        let text = shown(&long);
        assert!(text.len() <= SHOWN + ",and 64 more".len(), "{}", text.len());
        assert!(text.ends_with("v,and 60 more"), "{text}");
    }
}
