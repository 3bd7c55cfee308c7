//! Rewrites the result of a call for one client: to the names, URIs and fields that its variant shows.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::json::edit;
use mcp_vary_view::UriMap;
use mcp_vary_wire::era::{self, ProgressTokens};

use crate::link_index::LinkSource;
use crate::name_rewriter::NameRewriter;
use crate::shaper::Shaper;
use crate::uri_rewriter;

/// Rewrites the results of one call for its client, also after the request has ended.
#[derive(Clone, Debug, Default)]
pub struct ResultRewriter {
    /// The item that was called, if the links in its results are recorded.
    pub origin: Option<LinkSource>,
    /// Shapes the result.
    pub shape: Option<Shaper>,
    /// The names that the view changed.
    pub names: Option<Arc<NameRewriter>>,
    /// The URIs that the view changed.
    pub uris: Option<Arc<UriMap>>,
    /// Whether to remove structured content that the client's revision does not support.
    pub is_foreign: bool,
    /// The progress tokens, for as long as a task runs.
    pub progress: Option<ProgressTokens>,
}

impl ResultRewriter {
    /// The rules for rewriting, borrowed.
    #[must_use]
    pub fn rules(&self) -> RewriteRules<'_> {
        RewriteRules {
            shape: self.shape.as_ref(),
            names: self.names.as_deref(),
            uris: self.uris.as_deref(),
            is_foreign: self.is_foreign,
        }
    }
}

/// How a result is rewritten.
#[derive(Clone, Copy, Debug, Default)]
pub struct RewriteRules<'a> {
    /// Shapes the result.
    pub shape: Option<&'a Shaper>,
    /// The names that the view changed.
    pub names: Option<&'a NameRewriter>,
    /// The URIs that the view changed.
    pub uris: Option<&'a UriMap>,
    /// Whether to remove structured content that the client's revision does not support.
    pub is_foreign: bool,
}

/// Rewrites `result` to the client's names and URIs, and shapes it.
#[must_use]
pub fn rewrite_result<'a>(result: &'a str, rules: &RewriteRules<'_>) -> Cow<'a, str> {
    let named = match rules.names {
        Some(names) => names.rewrite_failed_result(result),
        None => Cow::Borrowed(result),
    };
    let addressed = match rules.uris {
        Some(uris) => edit::and_then(named, |named| uri_rewriter::rewrite_result(uris, named)),
        None => named,
    };
    let shaped = match rules.shape {
        Some(shape) => edit::and_then(addressed, |addressed| shape.apply(addressed)),
        None => addressed,
    };
    if !rules.is_foreign {
        return shaped;
    }
    edit::and_then(shaped, era::drop_unsupported_structured_content)
}
