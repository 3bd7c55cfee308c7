//! Logs content negotiation: what was declared, what was ignored, what was chosen.
//!
//! Tags are printable ASCII by their grammar, and ignored values are escaped and truncated, so that no peer can forge
//! log lines. Nothing else from a peer is logged: no arguments, results or headers.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_vary::feature::{FeatureTag, Features, Format, Verbosity, is_unsupported};
use mcp_vary::hints::VariantHints;
use mcp_vary::ignored::Ignored;
use mcp_vary::shape::Shaped;
use mcp_vary_base::log_backoff::is_logged;
use tracing::{debug, warn};

/// The maximum number of bytes of a list to log.
const MAX_LOGGED_BYTES: usize = 512;

/// Formats tags for the log, truncated after a whole tag.
struct Tags<'a>(&'a Features);

impl fmt::Display for Tags<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, self.0.tags().map(FeatureTag::as_str))
    }
}

/// Formats the keys of hints for the log, escaped and truncated after a whole key.
struct HintKeys<'a>(&'a VariantHints);

impl fmt::Display for HintKeys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(
            f,
            self.0.iter().map(|(key, _)| key.escape_debug().to_string()),
        )
    }
}

/// Writes as many whole items as fit, separated by commas, and how many more there are.
fn write_list(
    f: &mut fmt::Formatter<'_>,
    items: impl Iterator<Item = impl AsRef<str>>,
) -> fmt::Result {
    let mut room = MAX_LOGGED_BYTES;
    let mut remaining = items.peekable();
    let mut separator = "";
    while let Some(item) = remaining.next_if(|item| item.as_ref().len() < room) {
        let text = item.as_ref();
        room -= text.len() + 1;
        write!(f, "{separator}{text}")?;
        separator = ",";
    }
    match remaining.count() {
        0 => Ok(()),
        remaining => write!(f, "{separator}and {remaining} more"),
    }
}

/// Counts declarations of clients that were partly ignored or that asked for unsupported features.
#[derive(Debug, Default)]
pub struct IgnoredCounter {
    ignored: AtomicU64,
    unsupported: AtomicU64,
    /// Sessions whose id was too short for all tags.
    truncated_sessions: AtomicU64,
}

impl IgnoredCounter {
    /// Logs what a client declared for content negotiation. `features` is `None` if it did not declare the extension.
    pub fn features_declared(&self, features: Option<&Features>, ignored: &Ignored) {
        self.add("content-negotiation", ignored);
        if let Some(features) = features {
            debug!(tags = %Tags(features), ignored = ignored.count(), "feature tags declared");
            self.unsupported(features);
        }
    }

    /// Warns about values of registered keys that the gateway does not support.
    ///
    /// > Servers SHOULD ignore unknown tags and log warnings for unsupported features. (content negotiation,
    /// > `ContentNegotiationSettings.features`)
    fn unsupported(&self, features: &Features) {
        let (tags, _) = Features::from_tags(
            features
                .tags()
                .filter(|tag| is_unsupported(tag))
                .map(FeatureTag::as_str),
        );
        if tags.is_empty() {
            return;
        }
        let count = self.unsupported.fetch_add(1, Ordering::Relaxed) + 1;
        if is_logged(count) {
            warn!(tags = %Tags(&tags), count, "unsupported feature tags declared");
        } else {
            debug!(tags = %Tags(&tags), count, "unsupported feature tags declared");
        }
    }

    /// Logs what a client declared for server variants: the keys of its hints, without their values.
    pub fn hints_declared(&self, hints: &VariantHints, ignored: &Ignored) {
        self.add("server-variants", ignored);
        if !hints.is_empty() {
            debug!(hints = %HintKeys(hints), ignored = ignored.count(), "hints declared");
        }
    }

    /// Warns that `dropped` tags of a client did not fit into its session id.
    pub fn tags_dropped(&self, dropped: usize) {
        let count = self.truncated_sessions.fetch_add(1, Ordering::Relaxed) + 1;
        if is_logged(count) {
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

    /// Logs what was ignored and why. The first few times are warnings, later ones less and less often; all others are
    /// logged at debug level.
    fn add(&self, extension: &str, ignored: &Ignored) {
        if ignored.is_empty() {
            return;
        }
        let count = self.ignored.fetch_add(1, Ordering::Relaxed) + 1;
        if is_logged(count) {
            warn!(extension, %ignored, count, "parts of a client's declaration ignored");
        } else {
            debug!(extension, %ignored, count, "parts of a client's declaration ignored");
        }
    }
}

/// Logs how a result, a resource or a prompt (`what`) was shaped for a client with `features`.
pub fn log_shaped(what: &str, features: &Features, variant: Option<&str>, shaped: &Shaped) {
    let tags = Tags(features);
    match shaped {
        Shaped::Changed { applied, .. } => {
            let format = applied.format.map(Format::as_str);
            let verbosity = applied.verbosity.map(Verbosity::as_str);
            debug!(what, %tags, format, verbosity, variant, "content negotiated");
        }
        Shaped::Unchanged => debug!(what, %tags, variant, "content sent as the server returned it"),
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
        let found = shown(&["agent".to_owned(), "format=json".to_owned()]);
        assert_eq!(found, "agent,format=json");
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
        // A tag and its separator take all of the room, or one byte more than there is.
        let tags = |length: usize| {
            let long =
                ["x-a", "x-b", "x-c", "x-d"].map(|key| format!("{key}={}", "v".repeat(length)));
            shown(&long)
        };
        let room = MAX_LOGGED_BYTES / 4 - "x-a=,".len();
        assert_eq!(tags(room).len(), MAX_LOGGED_BYTES - 1);
        assert!(tags(room + 1).ends_with("v,and 1 more"));
    }

    #[test]
    fn keys_of_hints_are_escaped_and_cut_between_two_of_them() {
        let shown = |keys: &[String]| {
            let pairs = keys.iter().map(|key| (key.as_str(), "v"));
            HintKeys(&VariantHints::from_pairs(pairs).0).to_string()
        };
        let keys = ["a\nb".to_owned(), "useCase".to_owned()];
        assert_eq!(shown(&keys), r"a\nb,useCase");
        let long: Vec<_> = (0..10).map(|n| format!("{n}{}", "k".repeat(98))).collect();
        let text = shown(&long);
        assert!(text.ends_with("k,and 5 more"), "{text}");
    }
}
