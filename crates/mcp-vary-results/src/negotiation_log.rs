//! What is logged of content negotiation: what was declared, what of it was ignored, what was chosen.
//!
//! Tags are printable ASCII by their grammar, and what is ignored is escaped and cut, so that no peer writes
//! lines of its own. Nothing else of a peer stands there: no argument, no result, no header.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_vary::feature::{FeatureTag, Features, Form, Format, Verbosity};
use mcp_vary::hints::VariantHints;
use mcp_vary::ignored::Ignored;
use mcp_vary::shape::Shaped;
use tracing::{debug, warn};

/// The tags as they are logged, cut between two of them.
struct Tags<'a>(&'a Features);

/// How many bytes of tags are shown at most.
const MAX_LOGGED_BYTES: usize = 512;

impl fmt::Display for Tags<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut room = MAX_LOGGED_BYTES;
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

/// The keys of hints as they are logged, escaped and cut between two of them.
struct HintKeys<'a>(&'a VariantHints);

impl fmt::Display for HintKeys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut room = MAX_LOGGED_BYTES;
        for (at, (key, _)) in self.0.iter().enumerate() {
            let key = key.escape_debug().to_string();
            if key.len() + 1 > room {
                return write!(f, ",and {} more", self.0.iter().count() - at);
            }
            room -= key.len() + 1;
            let separator = if at > 0 { "," } else { "" };
            write!(f, "{separator}{key}")?;
        }
        Ok(())
    }
}

/// How many declarations of clients had a part that was ignored, or that asked for what there is not.
#[derive(Debug, Default)]
pub struct IgnoredCounter {
    ignored: AtomicU64,
    unsupported: AtomicU64,
    /// Sessions whose id has no room for all tags.
    truncated_sessions: AtomicU64,
}

impl IgnoredCounter {
    /// What a client declared of content negotiation; `None` when it did not.
    pub fn features_declared(&self, features: Option<&Features>, ignored: &Ignored) {
        self.add("content-negotiation", ignored);
        if let Some(features) = features {
            let ignored = ignored.count();
            debug!(tags = %Tags(features), ignored, "feature tags declared");
            self.unsupported(features);
        }
    }

    /// Warns of formats and verbosities that the gateway does not know.
    ///
    /// > Servers SHOULD ignore unknown tags and log warnings for unsupported features. (content negotiation,
    /// > `ContentNegotiationSettings.features`)
    fn unsupported(&self, features: &Features) {
        let is_unsupported = |tag: &&FeatureTag| match (tag.form(), tag.key(), tag.value()) {
            (Form::Equality, "format", Some(value)) => Format::from_value(value).is_none(),
            (Form::Equality, "verbosity", Some(value)) => Verbosity::from_value(value).is_none(),
            _ => false,
        };
        let (tags, _) = Features::from_tags(
            features
                .tags()
                .filter(is_unsupported)
                .map(FeatureTag::as_str),
        );
        if tags.is_empty() {
            return;
        }
        let count = self.unsupported.fetch_add(1, Ordering::Relaxed) + 1;
        if is_worth_a_warning(count) {
            warn!(tags = %Tags(&tags), count, "unsupported format or verbosity declared");
        } else {
            debug!(tags = %Tags(&tags), count, "unsupported format or verbosity declared");
        }
    }

    /// What a client declared of server variants: the keys of its hints, without their values.
    pub fn hints_declared(&self, hints: &VariantHints, ignored: &Ignored) {
        self.add("server-variants", ignored);
        if !hints.is_empty() {
            let ignored = ignored.count();
            debug!(hints = %HintKeys(hints), ignored, "hints declared");
        }
    }

    /// Warns that `dropped` tags of a client did not fit into the id of its session.
    pub fn tags_dropped(&self, dropped: usize) {
        let count = self.truncated_sessions.fetch_add(1, Ordering::Relaxed) + 1;
        if is_worth_a_warning(count) {
            warn!(
                dropped,
                count, "feature tags without room in the session id dropped"
            );
        } else {
            debug!(
                dropped,
                count, "feature tags without room in the session id dropped"
            );
        }
    }

    /// Says the first few times what was ignored and why, then ever more rarely, unless the log is to have
    /// everything.
    fn add(&self, extension: &str, ignored: &Ignored) {
        if ignored.is_empty() {
            return;
        }
        let count = self.ignored.fetch_add(1, Ordering::Relaxed) + 1;
        if is_worth_a_warning(count) {
            warn!(extension, %ignored, count, "parts of a client's declaration ignored");
        } else {
            debug!(extension, %ignored, count, "parts of a client's declaration ignored");
        }
    }

    /// How many declarations had a part that was ignored.
    pub fn count(&self) -> u64 {
        self.ignored.load(Ordering::Relaxed)
    }
}

/// The first few occurrences are; then ever fewer, so that no peer floods the log.
fn is_worth_a_warning(count: u64) -> bool {
    count <= 8 || count.is_power_of_two()
}

/// What became of a result, a resource or a prompt, `what`, for a client with `features`.
pub fn log_shaped(what: &str, features: &Features, variant: Option<&str>, shaped: &Shaped) {
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
        assert!(
            text.len() <= MAX_LOGGED_BYTES + ",and 64 more".len(),
            "{}",
            text.len()
        );
        assert!(text.ends_with("v,and 60 more"), "{text}");
    }
}
