//! The settings with which a gateway starts.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::extension::ExtensionId;
use mcp_vary::rank::{DEFAULT_ADVERTISED, Weights};
use mcp_vary::variant::{self, Date};
use mcp_vary_access::{Principal, When};
use mcp_vary_audit::AuditLog;
use mcp_vary_base::environment::Environment;
use mcp_vary_base::setters;
use mcp_vary_catalog::built_in;
use mcp_vary_catalog::merge::Naming;
use mcp_vary_catalog::selection::variant_selection::SelectionConfig;
use mcp_vary_catalog::variant_config::VariantConfig;
use mcp_vary_catalog::variant_set::VariantSet;
use mcp_vary_operator::Operator;
use mcp_vary_results::rules::{PromptRules, ResourceRules, ResultRules};
use mcp_vary_results::shaper::JsonContent;
use mcp_vary_traces::{Tracer, TracesSettings};
use mcp_vary_upstream::UpstreamConfig;
use mcp_vary_upstream::chain::Ancestors;

use crate::access::AccessSettings;
use crate::audit::AuditSettings;
use crate::authentication::Authentication;
use crate::experiments::ExperimentConfig;
use crate::limits::Limits;
use crate::listener::{ListenerConfig, OffLoopbackError};
use crate::metrics::{MetricsSettings, Readiness};
use crate::model_ranking::ModelRankingConfig;
use crate::rates::RateLimits;
use crate::sealing_keys::{SealingKey, SealingKeys};
use crate::store::{StoreFailure, StoreUrl};

mcp_vary_base::defaults! {
    /// All settings of a gateway.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_base::environment::Environment;
    /// use mcp_vary_settings::config::Config;
    /// use mcp_vary_upstream::{Target, UpstreamConfig};
    ///
    /// let target = Target::command("npx", ["-y", "@modelcontextprotocol/server-everything"].map(String::from));
    /// let outside = Environment::new(|| 0, |bytes| bytes.fill(7));
    /// let config = Config::new(UpstreamConfig::new("everything", target), outside).with_variants(false);
    /// assert!(config.negotiation && !config.variants);
    /// ```
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub struct Config {
        fn defaults(servers: Vec<UpstreamConfig>, environment: Environment);
        /// The servers behind the gateway. If two offer the same name, the first one gets it.
        pub servers: Vec<UpstreamConfig> = servers,
        /// Servers whose entries cannot be used, and why; the status shows them.
        pub left_out: Vec<(String, String)> = Vec::new(),
        /// How names show the server that they belong to.
        pub naming: Naming = Naming::default(),
        /// Whether the gateway starts even if no server is reachable yet; off by default.
        pub allow_empty_start: bool = false,
        /// How long the start waits for servers, which may have to be downloaded; a minute by default.
        pub start_wait: Duration = Duration::from_secs(60),
        /// How long a client whose capabilities are new waits for the servers that are started for them; `start_wait` by
        /// default.
        pub class_wait: Option<Duration> = None,
        /// The only client there will be; `None` if any may come. Programs are started with its capabilities, once.
        pub only_client: Option<OnlyClient> = None,
        /// Whether the extension server-variants is offered; on by default (EXT-3).
        pub variants: bool = true,
        /// The variants; `standard`, `compact`, `directory` and `read-only` unless others are set.
        pub variant_set: Arc<VariantSet> = Arc::new(VariantSet::built_in()),
        /// How the default variant of a client is selected, besides its hints.
        pub selection: SelectionConfig = SelectionConfig::default(),
        /// The weights of hints when variants are ranked (SV-5): those of the extension, and 80 for `accessLevel`, by
        /// default.
        pub weights: Weights = built_in::weights(),
        /// How many variants are advertised, 2 to 5 (SV-3); 5 by default.
        pub advertised: usize = DEFAULT_ADVERTISED,
        /// Whether clients can select only variants that they are offered; off by default.
        pub advertised_only: bool = false,
        /// Whether errors about an invalid variant name those that the client can use (SV-9); on by default.
        pub enumerate_variants: bool = true,
        /// The model that ranks variants for clients that describe themselves (SV-6); none by default.
        pub model_ranking: Option<ModelRankingConfig> = None,
        /// Whether the extension content-negotiation is offered; on by default (EXT-3).
        pub negotiation: bool = true,
        /// Extensions that clients must declare (EXT-4); none by default. An extension that is switched off is not
        /// required.
        pub required: Vec<ExtensionId> = Vec::new(),
        /// The server that answers the methods of an extension, by the identifier of that. It decides where several servers
        /// declare one that the gateway does not know.
        pub extension_servers: BTreeMap<String, String> = BTreeMap::new(),
        /// What a client that asked for JSON alone receives in `content` (CN-9's switch).
        pub json_content: JsonContent = JsonContent::default(),
        /// Whether a text that is exactly one JSON document becomes a structured value for clients that prefer JSON
        /// (CN-12); on by default.
        pub lift_json_text: bool = true,
        /// Whether clients get a tool that reads what was left out of results, for models that cannot read resources; off
        /// by default.
        pub read_result: bool = false,
        /// How results of tools are shaped.
        pub results: ResultRules = ResultRules::default(),
        /// How resources are shaped.
        pub resource_results: ResourceRules = ResourceRules::default(),
        /// How prompts are shaped.
        pub prompt_results: PromptRules = PromptRules::default(),
        /// Tools, resources, templates or prompts on one page of a list; `None` puts all on one.
        pub page_size: Option<NonZeroUsize> = None,
        /// How long a session lasts after `initialize`; 24 hours by default.
        pub session_lifetime: Duration = Duration::from_secs(24 * 60 * 60),
        /// The bounds on what clients may use.
        pub limits: Limits = Limits::default(),
        /// The gateways in front of this process; none by default.
        pub ancestors: Ancestors = Ancestors::default(),
        /// Clock and randomness.
        pub environment: Environment = environment,
        /// Seals session ids and cursors. Random by default, so that they expire with the process. Set it if several
        /// replicas share clients, or if sessions must survive a restart.
        pub key: SealingKey = SealingKey([0; 32]),
        /// Opens what was sealed with one of these, too: keys that were replaced recently.
        pub previous_keys: Vec<SealingKey> = Vec::new(),
        /// The keys in the configuration file.
        pub named_keys: SealingKeys = SealingKeys::default(),
        /// Who may use the gateway over HTTP; without it, everybody who can connect.
        pub authentication: Option<Authentication> = None,
        /// How clients reach the HTTP listener; from this machine only by default.
        pub listener: ListenerConfig = ListenerConfig::default(),
        /// What clients may see and use; everything by default.
        pub access: Option<AccessSettings> = None,
        /// Whose access tokens may read the operator's page; nobody's by default.
        pub admin_readers: Option<When> = None,
        /// How often clients may do what; without limits by default.
        pub rates: RateLimits = RateLimits::default(),
        /// The store that replicas with the same keys share; none by default. A gateway keeps the one that it was opened with.
        pub store: Option<StoreUrl> = None,
        /// What happens to requests with a rate limit while the store is away.
        pub store_failure: StoreFailure = StoreFailure::default(),
        /// The experiments that run, those that come first preferred; none by default.
        pub experiments: Vec<ExperimentConfig> = Vec::new(),
        /// Whether and how requests are measured; they are not by default. A gateway keeps the value that it was opened with.
        pub metrics: Option<MetricsSettings> = None,
        /// Counts the tokens of a text, for the status; without it, only metrics have them. A gateway keeps the value that it was
        /// opened with.
        pub count_tokens: Option<fn(&str) -> usize> = None,
        /// Where the operator's commands go; without it the operator's listener has none. A gateway keeps the value that it was
        /// opened with.
        pub operator: Option<Operator> = None,
        /// How many servers must be up for `/readyz`; one of them by default.
        pub ready: Readiness = Readiness::default(),
        /// Who the client on standard input is; nobody by default.
        pub stdio_principal: Option<Arc<Principal>> = None,
        /// The audit log that the configuration asks for. [`AuditSettings::start`] starts it.
        pub audit: Option<AuditSettings> = None,
        /// The audit log, once it is started; without it nothing is recorded. A gateway keeps the one that it was opened
        /// with.
        pub audit_log: Option<AuditLog> = None,
        /// The traces that the configuration asks for. [`Tracer::start`] starts them.
        pub traces: Option<TracesSettings> = None,
        /// What begins spans, once it is started; without it there are none. A gateway keeps the one that it was opened with.
        pub tracer: Option<Arc<Tracer>> = None,
        /// A digest of the configuration, for the audit log: `sha256:` and 16 hexadecimal digits.
        pub digest: Option<Arc<str>> = None,
        /// A digest of the configuration without the keys that differ between replicas, for the metric that compares them.
        pub common_digest: Option<Arc<str>> = None,
    }
}

/// The only client of a gateway.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "what is known before its first request is answered"
)]
pub struct OnlyClient {
    /// Its capabilities, JSON text.
    pub capabilities: String,
    /// Whether it has a session.
    pub has_session: bool,
}

impl Config {
    /// The defaults in front of one server.
    #[must_use]
    pub fn new(server: UpstreamConfig, outside: Environment) -> Self {
        Self::with_servers(vec![server], outside)
    }

    /// The defaults in front of several servers.
    #[must_use]
    pub fn with_servers(servers: Vec<UpstreamConfig>, environment: Environment) -> Self {
        Self::defaults(servers, environment).with_environment(environment)
    }

    /// Replaces clock and randomness, and draws a new random key.
    #[must_use]
    pub fn with_environment(mut self, environment: Environment) -> Self {
        (environment.random)(&mut self.key.0);
        self.environment = environment;
        self
    }

    setters! {
        /// Names tools and prompts as `naming` says.
        with_naming(naming: Naming): naming = naming;
        /// Whether server variants are offered.
        with_variants(on: bool): variants = on;
        /// Advertises at most `most` variants; less than 2 is 2, more than 5 is 5 (SV-3).
        with_advertised(most: usize): advertised = most.clamp(2, 5);
        /// Whether content negotiation is offered.
        with_negotiation(on: bool): negotiation = on;
        /// Whether a tool that reads what was left out of results is listed.
        with_read_result(on: bool): read_result = on;
        /// Puts at most `size` items on a page of a list.
        with_page_size(size: NonZeroUsize): page_size = Some(size);
        /// Seals session ids and cursors with `key`.
        with_key(key: [u8; 32]): key = SealingKey(key);
        /// Replaces the limits.
        with_limits(limits: Limits): limits = limits;
    }

    /// Starts even if no server is reachable, after waiting for them for `wait`.
    #[must_use]
    pub fn allow_empty_start(mut self, wait: Duration) -> Self {
        self.allow_empty_start = true;
        self.start_wait = wait;
        self
    }

    /// Offers these variants in place of the built-in ones.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the declarations.
    pub fn with_variants_of(
        mut self,
        variants: Vec<VariantConfig>,
    ) -> Result<Self, variant::VariantDiagnostics> {
        let today = Date::from_unix((self.environment.now)());
        let variants = VariantSet::new(variants)?;
        variants.log_warnings(today);
        self.variant_set = Arc::new(variants);
        Ok(self)
    }

    /// Makes a variant of the configuration the default of clients without a matching rule, regardless of their hints.
    ///
    /// # Errors
    ///
    /// If there is no such variant; the text names those that exist.
    pub fn with_default_variant(mut self, id: &str) -> Result<Self, String> {
        let known = self.variant_set.ids().find(|known| known.as_str() == id);
        let Some(found) = known else {
            let ids: Vec<_> = self.variant_set.ids().map(|id| format!("`{id}`")).collect();
            let list = ids.join(", ");
            return Err(format!("there is no variant `{id}`; choose one of {list}"));
        };
        self.selection.default = Some(found);
        Ok(self)
    }

    /// Serves only clients that declare `extension`.
    #[must_use]
    pub fn with_required(mut self, extension: ExtensionId) -> Self {
        self.required.push(extension);
        self
    }

    /// Checks that the gateway may listen on `address`: on a loopback address always, else only with authentication,
    /// encryption and a name.
    ///
    /// # Errors
    ///
    /// See [`OffLoopbackError`].
    pub fn check_listen_address(&self, address: SocketAddr) -> Result<(), OffLoopbackError> {
        if address.ip().is_loopback() {
            return Ok(());
        }
        let listener = &self.listener;
        if self.authentication.is_none() {
            return Err(OffLoopbackError::NoAuthentication(address));
        }
        if listener.tls.is_none() && listener.trusted_proxies.is_none() {
            return Err(OffLoopbackError::NoEncryption(address));
        }
        if listener.hosts.is_empty() {
            return Err(OffLoopbackError::NoName(address));
        }
        Ok(())
    }

    /// Whether rules for results, resources or prompts may shape what `server` returns.
    pub fn shapes_results_of(&self, server: &str) -> bool {
        let tools = self.results.0.iter().map(|rule| &rule.tools);
        let resources = self.resource_results.0.iter().map(|rule| &rule.uris);
        let prompts = self.prompt_results.0.iter().map(|rule| &rule.prompts);
        let mut items = tools.chain(resources).chain(prompts);
        items.any(|items| items.may_select_from(server))
    }
}
