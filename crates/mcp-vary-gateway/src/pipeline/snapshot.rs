//! The gateway as one configuration has it: the servers behind, what they offer together, and to whom.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_vary::error::Error;
use mcp_vary::extension::{self, CONTENT_NEGOTIATION, ExtensionId, SERVER_VARIANTS};
use mcp_vary::feature::{Features, Verbosity};
use mcp_vary::variant::{VariantId, Variants};
use mcp_vary_base::memo::Memo;
use mcp_vary_catalog::index::{VariantIndex, ViewIndex};
use mcp_vary_catalog::selection::rankings::{HintsKey, RankedVariants, Rankings};
use mcp_vary_catalog::selection::rules::ClientRules;
use mcp_vary_catalog::variant_config::{VariantConfig, VariantSet};
use mcp_vary_catalog::view::Layout;
use mcp_vary_upstream::chain::ChainPosition;
use mcp_vary_wire::era::Caching;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use serde_json::{Map, Value};

use crate::pipeline::runtime::Services;
use crate::pool::UpstreamPool;
use crate::session::Session;
use crate::session::client::DeclaredFeatures;
use crate::settings::config::Config;
use crate::subscriptions::Placements;

/// What one configuration makes of the gateway.
///
/// Each request takes the one of its moment and keeps it until it was sent on or answered, so that it sees
/// one configuration from its first step to its last, whatever takes its place in the meantime.
#[derive(Debug)]
pub(crate) struct ConfigSnapshot {
    pub(crate) config: Config,
    pub(crate) pool: Arc<UpstreamPool>,
    pub(crate) variants: Variants,
    pub(crate) variant_set: Arc<VariantSet>,
    /// What is said of clients by the names that they give themselves.
    pub(crate) rules: ClientRules,
    pub(crate) parsed_capabilities: Memo<ParsedCapabilities>,
    pub(crate) rankings: Rankings,
    /// Whether the operator shortens results for clients that do not declare content negotiation.
    pub(crate) shortens_for_all: bool,
    pub(crate) services: Arc<Services>,
    /// Where the gateway is among others.
    pub(crate) position: ChainPosition,
    /// What subscribers see of it.
    pub(crate) placements: Arc<Placements>,
}

/// What follows from the capabilities of a client.
#[derive(Debug)]
pub(crate) struct ParsedCapabilities {
    pub(crate) declared: DeclaredFeatures,
    pub(crate) features: Option<Arc<Features>>,
    /// What a ranking is found by.
    hints: HintsKey,
    /// The names of the capabilities, and of what they have: `elicitation`, `elicitation/url`.
    pub(crate) capabilities: Arc<BTreeSet<String>>,
    /// What servers may know of them, JSON text.
    pub(crate) forwardable: Arc<str>,
    /// The first required extension that they lack.
    missing_required: Option<ExtensionId>,
}

/// Whether a rule for everyone limits results, or some variant or client rule has features that shorten them.
fn shortens_for_all(config: &Config, faces: &VariantSet, rules: &ClientRules) -> bool {
    let of_variants = faces
        .configs()
        .iter()
        .filter_map(|face| face.features.as_deref());
    let mut granted = of_variants.chain(rules.features());
    let shortens = |features: &Features| {
        features.verbosity() == Verbosity::Compact || config.results.truncate_for(Some(features))
    };
    config.results.truncate_for(None) || config.negotiation && granted.any(shortens)
}

impl ParsedCapabilities {
    /// That the client declared whatever is required.
    ///
    /// # Errors
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

/// Bytes of the capabilities of a client. Real ones take some hundred.
const MAX_CAPABILITIES: usize = 64 << 10;

/// Bytes for what is remembered of modern clients' capabilities, in each of two generations; some thousand
/// different clients.
const PARSED_CAPABILITIES_MEMORY: usize = 8 << 20;

impl ConfigSnapshot {
    /// What `config` makes of the gateway; servers whose entry is as it was `before` keep their connections.
    pub(crate) async fn open(
        mut config: Config,
        lasting: Arc<Services>,
        before: Option<&Self>,
    ) -> Self {
        let behind = Arc::clone(&lasting.upstream_gateways);
        let position = ChainPosition::new(lasting.id, &config.ancestors, &config.servers, behind);
        for server in &mut config.servers {
            server.chain = position.outgoing();
            server.fill_random = config.environment.random;
        }
        let rules = ClientRules::new(&config.selection);
        let faces = VariantSet::with_presentations(&config.variant_set, &rules.presentations());
        let layout = Layout {
            variants: Arc::clone(&faces),
            naming: config.naming,
            results: Arc::clone(&config.results.0),
            page_size: config.page_size,
            caching: match config.variants || !rules.is_empty() || config.read_result {
                true => Caching::Never,
                false => Caching::AsDeclared,
            },
        };
        lasting
            .pending_server_requests
            .name_servers(config.servers.len() > 1);
        let classes = UpstreamPool::new(
            config.servers.clone(),
            (layout, config.limits.classes),
            config.start_wait,
            before.map(|before| &*before.pool),
            &lasting.pool_context,
        );
        let pool = Arc::new(classes.await);
        let generation = before.map_or(0, |before| before.placements.generation() + 1);
        let placements = Placements::new(
            generation,
            Arc::clone(&pool),
            Arc::clone(&faces),
            config.variants,
        );
        Self {
            pool,
            rankings: Rankings::new(
                faces.variants.clone(),
                config.weights.clone(),
                config.advertised,
            ),
            variants: faces.variants.clone(),
            shortens_for_all: shortens_for_all(&config, &faces, &rules),
            variant_set: faces,
            rules,
            parsed_capabilities: Memo::new(PARSED_CAPABILITIES_MEMORY),
            placements: Arc::new(placements),
            services: lasting,
            position,
            config,
        }
    }

    /// Whether what a result points to decides where, or whether, it can be read.
    pub(crate) fn follows_links(&self) -> bool {
        self.pool.servers() > 1
            || self
                .variant_set
                .configs()
                .iter()
                .any(VariantConfig::selects_resources)
    }

    /// What follows from a client's capabilities, as JSON text.
    ///
    /// # Errors
    ///
    /// `-32602` when they are longer than [`MAX_CAPABILITIES`]: read, they take some sixty times their size.
    pub(crate) fn parse_capabilities(
        &self,
        capabilities: &str,
    ) -> Result<Arc<ParsedCapabilities>, RpcError> {
        if capabilities.len() > MAX_CAPABILITIES {
            return Err(RpcError::invalid_params(format!(
                "the capabilities of the client are {} bytes long; {MAX_CAPABILITIES} are allowed",
                capabilities.len()
            )));
        }
        Ok(self.parsed_capabilities.get_or_read(capabilities, |text| {
            let value: Value = serde_json::from_str(text).unwrap_or_default();
            let names = capability_names(&value);
            let declared = DeclaredFeatures::read(&value, &self.services.ignored_declarations);
            let lacks = self.missing_required(&value, &declared);
            let known = self.capabilities_of_text(
                declared,
                names,
                self.pool.forwardable_capabilities(&value),
            );
            ParsedCapabilities {
                missing_required: lacks,
                ..known
            }
        }))
    }

    /// The first required extension that `capabilities` lack.
    fn missing_required(
        &self,
        capabilities: &Value,
        declared: &DeclaredFeatures,
    ) -> Option<ExtensionId> {
        let is_there = |id: &&ExtensionId| match id.as_str() {
            CONTENT_NEGOTIATION => !self.config.negotiation || declared.negotiation.is_some(),
            SERVER_VARIANTS => !self.config.variants || declared.variants.is_some(),
            id => extension::settings(capabilities, id).is_some(),
        };
        let mut required = self.config.required.iter();
        required.find(|id| !is_there(id)).cloned()
    }

    fn capabilities_of_text(
        &self,
        declared: DeclaredFeatures,
        capabilities: BTreeSet<String>,
        mirrored: Arc<str>,
    ) -> ParsedCapabilities {
        let features = declared
            .features
            .clone()
            .filter(|_| self.config.negotiation)
            .map(Arc::new);
        ParsedCapabilities {
            hints: HintsKey::of(&declared.hints),
            declared,
            features,
            capabilities: Arc::new(capabilities),
            forwardable: mirrored,
            missing_required: None,
        }
    }

    /// The variants in the order in which they suit a client; none where variants are off.
    pub(crate) fn ranked_variants(&self, known: &ParsedCapabilities) -> Arc<RankedVariants> {
        if !self.config.variants {
            return Arc::default();
        }
        let now = (self.config.environment.now)();
        let hints = &known.declared.hints;
        self.rankings.get(hints, &known.hints, None, now)
    }

    /// The variant of clients of which rules say `variant`, or nothing.
    pub(crate) fn selected_by_rule(&self, variant: Option<&VariantId>) -> Option<VariantIndex> {
        let variant = variant.or(self.config.selection.default.as_ref())?;
        self.variant_index(variant.as_str())
    }

    /// The variant with this id.
    pub(crate) fn variant_index(&self, id: &str) -> Option<VariantIndex> {
        self.variant_set.index_of(id)
    }

    /// The id of the variant that a view shows.
    pub(crate) fn variant_id(&self, view: ViewIndex) -> &VariantId {
        &self.variant_set.config(view).variant.id
    }

    /// Notifies a legacy session of changes from now on.
    pub(crate) async fn notify_session(&self, session: &Arc<Session>) {
        let lists = self.services.dedicated_pool.lists();
        let hub = &self.services.hub;
        hub.admit(session, &self.placements, lists).await;
    }
}

/// The names of capabilities, and of what each has; of more than [`MAX_NAMES`] the first ones.
///
/// They word an error alone, so that what is left out changes no answer of a client that declares what there is.
fn capability_names(capabilities: &Value) -> BTreeSet<String> {
    let all = capabilities.as_object().into_iter().flatten();
    let names = all.flat_map(|(name, settings)| {
        let inner = settings.as_object().into_iter().flat_map(Map::keys);
        let inner = inner.map(move |inner| format!("{name}/{inner}"));
        inner.chain([name.clone()])
    });
    names
        .filter(|name| name.len() <= MAX_NAME)
        .take(MAX_NAMES)
        .collect()
}

const MAX_NAMES: usize = 256;
const MAX_NAME: usize = 256;
