//! The declarations in a client's capabilities.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use mcp_vary::error::Error;
use mcp_vary::extension::ExtensionId;
use mcp_vary::feature::Features;
use mcp_vary::hints::VariantHints;
use mcp_vary_catalog::selection::rankings::HintsKey;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use serde_json::{Map, Value};

use mcp_vary_session::BASE_CLASS;
use mcp_vary_session::client::DeclaredFeatures;

/// The capabilities of a client, parsed once for all requests with the same text.
#[derive(Debug)]
pub(crate) struct ParsedCapabilities {
    pub(crate) declared: DeclaredFeatures,
    pub(crate) features: Option<Arc<Features>>,
    /// Whether the client declares server variants.
    pub(crate) knows_variants: bool,
    /// Its hints; none if it declares none.
    pub(crate) variant_hints: Arc<VariantHints>,
    /// The key of the client's ranking.
    pub(super) hints: HintsKey,
    /// The names of the capabilities and of their members: `elicitation`, `elicitation/url`.
    pub(crate) capabilities: Arc<BTreeSet<String>>,
    /// The part that is forwarded to servers, JSON text.
    pub(crate) forwardable: Arc<str>,
    /// Its hash; `None` if nothing is forwarded.
    pub(super) forwardable_hash: Option<u64>,
    /// How many extensions of servers were known when that was decided.
    pub(super) known_extensions: usize,
    /// The first required extension that is missing.
    pub(super) missing_required: Option<ExtensionId>,
}

impl ParsedCapabilities {
    /// Checks that the client declared the required extensions.
    ///
    /// # Errors
    ///
    /// When one is missing.
    ///
    /// > the supporting party MUST either revert to core protocol behavior or reject the request with an
    /// > appropriate error if the extension is mandatory. (SEP-2133, "Graceful Degradation")
    pub(crate) fn has_required(&self, era: Era) -> Result<(), RpcError> {
        match self.missing_required.clone() {
            None => Ok(()),
            Some(id) => Err(RpcError::from(&Error::RequiredExtension { id, era })),
        }
    }
}

/// The hash of what is forwarded to servers; `None` if that is nothing.
pub(super) fn hash_of(forwardable: &str) -> Option<u64> {
    let hash = || {
        let mut hasher = DefaultHasher::new();
        forwardable.hash(&mut hasher);
        hasher.finish()
    };
    (forwardable != BASE_CLASS).then(hash)
}

/// The names of capabilities and of their members, at most [`MAX_NAMES`].
///
/// Only the text of an error uses them: names beyond the limit change no other answer.
pub(super) fn capability_names(capabilities: &Value) -> BTreeSet<String> {
    let all = capabilities.as_object().into_iter().flatten();
    let names = all.flat_map(|(name, settings)| {
        let keys = settings.as_object().into_iter().flat_map(Map::keys);
        let inner = keys.map(move |inner| format!("{name}/{inner}"));
        inner.chain([name.clone()])
    });
    names
        .filter(|name| name.len() <= MAX_NAME)
        .take(MAX_NAMES)
        .collect()
}

const MAX_NAMES: usize = 256;
const MAX_NAME: usize = 256;
