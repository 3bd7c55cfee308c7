//! A rule for clients, and the patterns that it matches.

use std::sync::Arc;

use globset::{Glob, GlobBuilder, GlobMatcher};
use http::HeaderName;
use mcp_vary::feature::Features;
use mcp_vary::variant::VariantId;
use mcp_vary_view::{Dialect, ResultFields};

/// A rule for clients: which clients it matches, and what they receive.
///
/// A rule matches a client if all of its conditions hold. For each setting, the first matching rule that has the
/// setting decides. Clients choose their own names, so rules are a convenience, not a security boundary.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ClientRule {
    /// The pattern that `clientInfo.name` must match.
    pub name: Option<ClientPattern>,
    /// The pattern that `clientInfo.version` must match.
    pub version: Option<ClientPattern>,
    /// The patterns that headers of the request must match. Clients on stdio have no headers.
    pub headers: Vec<(HeaderName, ClientPattern)>,
    /// The variant for clients that do not name one.
    pub variant: Option<VariantId>,
    /// Which fields of a tool's result the clients receive, unless their variant sets this.
    pub result: Option<ResultFields>,
    /// The JSON Schema dialect for tools, unless the variant sets one. `Some(None)` allows all of JSON Schema.
    pub dialect: Option<Option<Dialect>>,
    /// The features assumed for clients that declare none, unless their variant sets them.
    pub features: Option<Arc<Features>>,
    /// Which fields carry JSON for agents that ask for it.
    pub json_content: Option<JsonContent>,
    /// Whether a text that is a single JSON document becomes a structured value.
    pub lift_json_text: Option<bool>,
}

pub use mcp_vary_results::shaper::JsonContent;

impl ClientRule {
    /// A rule that gives `variant` to all clients.
    #[must_use]
    pub fn new(variant: VariantId) -> Self {
        Self {
            variant: Some(variant),
            ..Self::default()
        }
    }

    /// Restricts the rule to clients whose name matches.
    #[must_use]
    pub fn with_name(mut self, pattern: ClientPattern) -> Self {
        self.name = Some(pattern);
        self
    }

    /// Restricts the rule to clients whose version matches.
    #[must_use]
    pub fn with_version(mut self, pattern: ClientPattern) -> Self {
        self.version = Some(pattern);
        self
    }

    /// Restricts the rule to clients that send a matching header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, pattern: ClientPattern) -> Self {
        self.headers.push((name, pattern));
        self
    }

    /// Whether the rule sets anything except the variant.
    pub(super) const fn changes_presentation(&self) -> bool {
        self.result.is_some()
            || self.dialect.is_some()
            || self.features.is_some()
            || self.json_content.is_some()
            || self.lift_json_text.is_some()
    }
}

/// A case-insensitive glob for names, versions and headers of clients. Variants select items with
/// [`mcp_vary_view::Pattern`], which is case-sensitive because the names of two tools may differ only in case.
///
/// `*` matches anything, `?` one character, `{a,b}` one of several alternatives, `[a-z]` a range.
///
/// # Examples
///
/// ```
/// use mcp_vary_catalog::selection::client_rule::ClientPattern;
///
/// let pattern = ClientPattern::new("claude*")?;
/// assert!(pattern.matches("claude-code"));
/// // Case matters to clients, not to people who write rules about them.
/// assert!(pattern.matches("Claude Desktop"));
/// assert!(ClientPattern::new("{a,b").is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClientPattern(GlobMatcher);

impl ClientPattern {
    /// Parses a glob.
    ///
    /// # Errors
    ///
    /// If the glob is invalid. The error describes the problem.
    pub fn new(glob: &str) -> Result<Self, String> {
        let built: Result<Glob, _> = GlobBuilder::new(glob)
            .case_insensitive(true)
            .literal_separator(false)
            .build();
        let pattern = built.map_err(|error| error.kind().to_string())?;
        Ok(Self(pattern.compile_matcher()))
    }

    /// Whether the glob matches all of `text`.
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}
