//! The gateway under one configuration: its servers, what they offer together, and to which clients.

use std::sync::Arc;

use mcp_vary::extension::CONTENT_NEGOTIATION;
use mcp_vary::extension::ExtensionId;
use mcp_vary::feature::Features;
use mcp_vary::hints::VariantHints;
use mcp_vary::json;
use mcp_vary::variant::{ServerVariant, VariantId};
use mcp_vary_access::Principal;
use mcp_vary_auth::refresh::FetchReason;
use mcp_vary_base::environment::Variables;
use mcp_vary_base::memo::Memo;
use mcp_vary_catalog::index::{VariantIndex, ViewIndex};
use mcp_vary_catalog::layout::Layout;
use mcp_vary_catalog::selection::rankings::HintsKey;
use mcp_vary_catalog::selection::rules::ClientRules;
use mcp_vary_catalog::variant_config::VariantConfig;
use mcp_vary_catalog::variant_set::VariantSet;
use mcp_vary_metrics::VariantMetrics;
use mcp_vary_store::StoreEvent;
use mcp_vary_upstream::chain::ChainPosition;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::era::Caching;
use mcp_vary_wire::response::RpcError;
use serde_json::Value;

use crate::pipeline::capabilities::{ParsedCapabilities, capability_names, hash_of};
use crate::pipeline::experiments::Experiments;
use crate::pipeline::model_ranking::BackgroundTasks;
use crate::pipeline::negotiated_extensions::NEGOTIATED;
use crate::pipeline::runtime::Services;
use crate::pipeline::variant_selection::VariantSelector;
use crate::pool::access::{AccessControl, AllowedVariants};
use crate::pool::{PoolConfig, UpstreamPool};
use crate::subscriptions::Placements;
use mcp_vary_observation::call_counters::ServerCalls;
use mcp_vary_session::Session;
use mcp_vary_session::authentication::AuthenticationService;
use mcp_vary_session::client::DeclaredFeatures;
use mcp_vary_settings::config::Config;

/// The gateway under one configuration.
///
/// A request takes the current snapshot when it begins and holds it until it is forwarded or answered: it sees one
/// configuration from its first step to its last, even if another one replaces it meanwhile.
#[derive(Debug)]
pub(crate) struct ConfigSnapshot {
    pub(crate) config: Config,
    pub(crate) pool: Arc<UpstreamPool>,
    pub(crate) variant_set: Arc<VariantSet>,
    pub(crate) selector: VariantSelector,
    pub(crate) experiments: Experiments,
    /// The calls of each server. They are counted on over reloads.
    pub(crate) calls: ServerCalls,
    /// The series of the variants, in their order; none if requests are not measured.
    pub(crate) variant_metrics: Vec<Arc<VariantMetrics>>,
    parsed_capabilities: Memo<ParsedCapabilities>,
    /// Whether the operator shortens results for clients that do not declare content negotiation.
    pub(crate) shortens_for_all: bool,
    /// Whether the links in results decide from which server, or whether, a resource can be read.
    pub(crate) follows_links: bool,
    pub(crate) services: Arc<Services>,
    /// Who sends a request; none if clients are not authenticated.
    pub(crate) authentication: Option<Arc<AuthenticationService>>,
    /// The position of the gateway in a chain of gateways.
    pub(crate) position: ChainPosition,
    /// The part that subscribers see.
    pub(crate) placements: Arc<Placements>,
}

/// Whether results are shortened for clients that declare nothing: by a rule for everyone, or by the features of a
/// variant or a client rule.
fn shortens_for_all(config: &Config, variant_set: &VariantSet, rules: &ClientRules) -> bool {
    let of_variants = variant_set
        .configs()
        .iter()
        .filter_map(|config| config.features.as_deref());
    let mut granted = of_variants.chain(rules.features());
    let shortens =
        |features: &Features| features.shortens() || config.results.truncate_for(Some(features));
    config.results.truncate_for(None) || config.negotiation && granted.any(shortens)
}

fn follows_links(config: &Config, variant_set: &VariantSet) -> bool {
    let mut variants = variant_set.configs().iter();
    config.servers.len() > 1
        || config.access.is_some()
        || variants.any(VariantConfig::selects_resources)
}

/// Whether lists depend on the client, which shared caches do not see.
fn depends_on_client(config: &Config, rules: &ClientRules) -> bool {
    let depends_on_principal = config.authentication.is_some() || config.access.is_some();
    config.variants || !rules.is_empty() || config.read_result || depends_on_principal
}

/// How lists are written.
fn layout(config: &Config, variants: &Arc<VariantSet>, rules: &ClientRules) -> Layout {
    Layout {
        variants: Arc::clone(variants),
        naming: config.naming,
        results: Arc::clone(&config.results.0),
        page_size: config.page_size,
        caching: if depends_on_client(config, rules) {
            Caching::Never
        } else {
            Caching::AsDeclared
        },
        read_result: config.read_result,
    }
}

/// The counters of the servers, with their series if requests are measured.
fn server_calls(
    config: &Config,
    services: &Services,
    before: Option<&ConfigSnapshot>,
) -> ServerCalls {
    let earlier = before.map(|before| &before.calls);
    let metrics = services.observers.metrics.as_deref();
    ServerCalls::new(&config.servers, earlier, metrics)
}

/// The series of the variants, if requests are measured and variants are on.
fn variant_metrics(
    config: &Config,
    variant_set: &VariantSet,
    services: &Services,
) -> Vec<Arc<VariantMetrics>> {
    let measured = services.observers.metrics.iter();
    let metrics = measured.filter(|_| config.variants);
    let series = metrics.flat_map(|metrics| {
        let variants = variant_set.variants.iter();
        variants.map(|variant| metrics.variant(variant.id.as_str()))
    });
    series.collect()
}

/// The service that decides who sends a request. It begins to fetch the keys of issuers: after a reload those of all, since the
/// operator may have withdrawn one.
fn authentication(
    config: &Config,
    services: &Services,
    before: Option<&ConfigSnapshot>,
) -> Option<Arc<AuthenticationService>> {
    let earlier = before.and_then(|before| before.authentication.as_deref());
    let settings = config.authentication.clone()?;
    let mut servers = config.servers.iter();
    if servers.any(|server| server.client_credentials.is_some()) {
        settings.authenticator.retain_tokens();
    }
    let service = AuthenticationService::new(
        settings,
        earlier,
        config.environment,
        services.background_tasks.clone(),
    );
    service.fetch_keys(match earlier {
        Some(_) => FetchReason::Reload,
        None => FetchReason::Schedule,
    });
    Some(Arc::new(service))
}

/// The gateway's position in the chain of gateways, which its connections to servers then carry.
fn join_chain(config: &mut Config, services: &Services) -> ChainPosition {
    let gateways = Arc::clone(&services.chain.upstream_gateways);
    let position = ChainPosition::new(
        services.chain.id,
        &config.ancestors,
        &config.servers,
        gateways,
    );
    for server in &mut config.servers {
        server.chain = position.outgoing();
        server.fill_random = config.environment.random;
        server.variables = config.environment.variables;
    }
    position
}

/// Forwards the feature tags of clients to the servers with `passthrough`, unless rules of the configuration shape their
/// results: nothing is shaped twice.
fn forward_features(config: &mut Config) {
    let mut servers = std::mem::take(&mut config.servers);
    for server in &mut servers {
        let forwarded = &mut server.forwarded_extensions;
        forwarded.retain(|id| id != CONTENT_NEGOTIATION);
        if server.passthrough && !config.shapes_results_of(&server.name) {
            forwarded.push(CONTENT_NEGOTIATION.to_owned());
        }
    }
    config.servers = servers;
}

fn background_tasks(services: &Services, variables: Variables) -> BackgroundTasks {
    BackgroundTasks {
        variables,
        tasks: services.background_tasks.clone(),
        shutdown: services.shutdown.clone(),
        audit: services.observers.audit.clone(),
    }
}

/// Who may use what, if the configuration has access rules.
fn access_control(config: &Config, variant_set: &Arc<VariantSet>) -> Option<Arc<AccessControl>> {
    let access = config.access.clone()?;
    let variant_set = Arc::clone(variant_set);
    Some(Arc::new(AccessControl::new(access, variant_set)))
}

/// The placement of subscribers under `config`.
fn placements(
    config: &Config,
    pool: &Arc<UpstreamPool>,
    variant_set: &Arc<VariantSet>,
    before: Option<&ConfigSnapshot>,
) -> Arc<Placements> {
    let generation = before.map_or(0, |before| before.placements.generation + 1);
    let pool = Arc::clone(pool);
    let variant_set = Arc::clone(variant_set);
    let placements = Placements::new(generation, pool, variant_set, config.variants);
    Arc::new(placements)
}

/// Bytes of a client's capabilities. Real ones have some hundred.
const MAX_CAPABILITIES: usize = 64 << 10;

/// Bytes for the parsed capabilities of modern clients: some thousand different ones.
const PARSED_CAPABILITIES_MEMORY: usize = 8 << 20;

/// Takes over what the next configuration does not change.
fn keep_of_before(config: &mut Config, before: Option<&ConfigSnapshot>) {
    let Some(before) = before else { return };
    config.rates = config.rates.clone().or_unchanged(&before.config.rates);
    config.only_client.clone_from(&before.config.only_client);
}

impl ConfigSnapshot {
    /// Opens the gateway under `config`. Servers whose entry is the same as `before` keep their connections.
    pub(crate) async fn open(
        mut config: Config,
        services: Arc<Services>,
        before: Option<&Self>,
    ) -> Self {
        keep_of_before(&mut config, before);
        forward_features(&mut config);
        let position = join_chain(&mut config, &services);
        let rules = ClientRules::new(&config.selection);
        let variant_set =
            VariantSet::with_presentations(&config.variant_set, &rules.presentations());
        services
            .pending_server_requests
            .name_servers(config.servers.len() > 1);
        let access = access_control(&config, &variant_set);
        let pool = UpstreamPool::new(
            PoolConfig {
                servers: config.servers.clone(),
                layout: layout(&config, &variant_set, &rules),
                access,
                only_client: config.only_client.clone(),
                class_limit: config.limits.classes,
                start_wait: config.class_wait.unwrap_or(config.start_wait),
            },
            before.map(|before| &*before.pool),
            &services.pool,
        );
        let pool = Arc::new(pool.await);
        let shortens_for_all = shortens_for_all(&config, &variant_set, &rules);
        let selector = VariantSelector::new(
            &config,
            Arc::clone(&variant_set),
            rules,
            background_tasks(&services, config.environment.variables),
            before.map(|before| &before.selector),
        );
        Self {
            authentication: authentication(&config, &services, before),
            placements: placements(&config, &pool, &variant_set, before),
            pool,
            shortens_for_all,
            follows_links: follows_links(&config, &variant_set),
            experiments: Experiments::new(
                &config,
                &variant_set,
                before.map(|before| &before.experiments),
                services.store.as_deref(),
            ),
            calls: server_calls(&config, &services, before),
            variant_metrics: variant_metrics(&config, &variant_set, &services),
            selector,
            variant_set,
            parsed_capabilities: Memo::new(PARSED_CAPABILITIES_MEMORY),
            services,
            position,
            config,
        }
    }

    /// Parses a client's capabilities, JSON text.
    ///
    /// # Errors
    ///
    /// `-32602` when they are longer than [`MAX_CAPABILITIES`]: parsed, they take some sixty times their size.
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
        let known_extensions = self.pool.servers.known_extensions();
        let is_current = |parsed: &ParsedCapabilities| parsed.known_extensions == known_extensions;
        let parsed = self
            .parsed_capabilities
            .get_if(capabilities, is_current, |text| {
                let value = json::to_value(text).unwrap_or_default();
                let declared = NEGOTIATED.read(&value, &self.services.ignored_declarations);
                let negotiates = self.config.negotiation;
                let features = negotiates.then(|| declared.get::<Features>()).flatten();
                let hints = declared.get::<VariantHints>();
                let knows_variants = hints.is_some();
                let variant_hints = hints.unwrap_or_default();
                let forwardable = self
                    .pool
                    .servers
                    .forwardable_capabilities(&value, features.as_deref());
                ParsedCapabilities {
                    hints: HintsKey::of(&variant_hints),
                    knows_variants,
                    variant_hints,
                    missing_required: self.missing_required(&value, &declared),
                    declared,
                    capabilities: Arc::new(capability_names(&value)),
                    forwardable_hash: hash_of(&forwardable),
                    forwardable,
                    known_extensions,
                    features,
                }
            });
        Ok(parsed)
    }

    /// The first required extension that `capabilities` lack.
    fn missing_required(
        &self,
        capabilities: &Value,
        declared: &DeclaredFeatures,
    ) -> Option<ExtensionId> {
        let is_there = |id: &&ExtensionId| {
            NEGOTIATED.is_satisfied(id.as_str(), &self.config, capabilities, declared)
        };
        let mut required = self.config.required.iter();
        required.find(|id| !is_there(id)).cloned()
    }

    /// Whether a client may get a shortened result, and so is offered resources even if no server has any.
    ///
    /// The client's tags do not decide this (CN-16). A client that `negotiates` declares the extension, with any tags
    /// or none. Other clients are offered resources only if the operator shortens results for them.
    pub(crate) fn may_shorten(&self, negotiates: bool) -> bool {
        self.config.limits.result_store > 0 && (negotiates || self.shortens_for_all)
    }

    /// The variants that access rules let a client of `principal` use; `None` if there are no rules.
    pub(crate) fn allowed_variants(
        &self,
        principal: Option<&Arc<Principal>>,
    ) -> Option<Arc<AllowedVariants>> {
        Some(self.pool.access()?.allowed_variants(principal))
    }

    /// The variants, in the order of configuration; none if they are off.
    pub(crate) fn enabled_variants(&self) -> &[ServerVariant] {
        let variants = self.variant_set.variants.as_slice();
        if self.config.variants { variants } else { &[] }
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
        let lists = self.services.pool.dedicated.lists();
        let hub = &self.services.hub;
        hub.admit(session, &self.placements, lists).await;
    }

    /// Ends what belongs to the client of a session that has ended.
    pub(crate) fn forget_client(&self, client: ClientId) {
        let services = &self.services;
        services.pending_server_requests.forget(client);
        services.hub.remove_session(client);
        self.pool.close_session(client);
        services.exchange.replay_streams.remove_client(client);
    }

    /// Does here what other replicas have done.
    pub(crate) fn learn(&self, event: StoreEvent) {
        let sessions = &self.services.sessions;
        match event {
            StoreEvent::Ended(session) => {
                if let Some(client) = sessions.delete_ended(&session) {
                    self.forget_client(client);
                }
            }
            StoreEvent::Cancelled { session, request } => sessions.cancel(&session, &request),
            StoreEvent::ForgottenUntil(expires) => sessions.refuse_until(expires),
        }
    }
}
