//! The status of a running gateway, for its operator.

use std::collections::BTreeMap;

use mcp_vary::hints::VariantHints;
use mcp_vary::variant::{Date, Status as Standing, VariantId};
use mcp_vary_audit::AuditStats;
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_experiment::{Metric, Totals};
use mcp_vary_http_client::credential_source::{self, CredentialStatus};
use mcp_vary_upstream::{ConnectionState, SupervisedConnection};
use mcp_vary_wire::sanitize::excerpt;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::gateway::Gateway;
use crate::pipeline::model_ranking::ModelRankingStatus;
use crate::pipeline::runtime::Services;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::pool::ConnectionStatus;
use crate::pool::source::MAX_REASON_LENGTH;
use mcp_vary_observation::call_counters::CallCounters;
use mcp_vary_observation::milliseconds;
use mcp_vary_observation::people::PersonUse;
use mcp_vary_observation::refused_credentials::RefusedCredentialsStatus;
use mcp_vary_observation::savings::SavingsStatus;
use mcp_vary_session::client_uses::ClientUse;
use mcp_vary_session::deprecation::DeprecatedUse;
use mcp_vary_session::directory_uses::DirectoryUse;

/// The status of a running gateway. `GET /status` answers with it as JSON.
///
/// # Properties
///
/// It contains no secrets: no address, header, variable or argument of a server, no id of a session, nothing that clients
/// requested. What a server that is down wrote to standard error has `***` in place of those that the gateway knows.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Status {
    /// The version of this program.
    pub version: &'static str,
    /// A digest of the configuration file that was read; absent without a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// Seconds since the gateway was opened.
    pub uptime: u64,
    /// The servers behind, in the order of configuration.
    pub servers: Vec<ServerStatus>,
    /// The variants, in the order of configuration; none if they are off.
    pub variants: Vec<VariantStatus>,
    /// The recent clients, each with its variant and what selected it, most recent first.
    pub clients: Vec<ClientUse>,
    /// The people who used the gateway recently, most recent first; none without `auth`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub people: Vec<PersonUse>,
    /// Whether there are people that only the operator's token shows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub people_need_token: bool,
    /// The credentials that were refused; absent if there are none. Requests without one are not among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_credentials: Option<RefusedCredentialsStatus>,
    /// The tokens that lists and results of tools cost, and what they would have cost without Vary.
    pub savings: SavingsStatus,
    /// Why tokens of issuers cannot be verified: their keys were not fetched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_keys: Vec<String>,
    /// The clients that used deprecated variants since the start.
    pub deprecated_use: Vec<DeprecatedUse>,
    /// How tools were used in variants whose schemas are on demand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub directory_use: Vec<DirectoryUse>,
    /// What came of the experiments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<ExperimentStatus>,
    /// Recently used sessions, which are found without opening their ids.
    pub sessions: usize,
    /// Streams that are open or can be resumed.
    pub streams: usize,
    /// Streams of `subscriptions/listen` that are open.
    pub listeners: usize,
    /// Resources with subscribers.
    pub subscriptions: usize,
    /// Requests of servers that clients have not answered yet.
    pub pending_server_requests: usize,
    /// Calls that wait for their clients' input.
    pub suspended_calls: usize,
    /// Tasks of servers that the gateway waits for because their clients use another dialect of tasks.
    pub proxied_tasks: usize,
    /// Connections to servers that one client each uses alone.
    pub dedicated_connections: usize,
    /// How many of them there may be, `limits.dedicated-connections`.
    pub dedicated_connections_limit: usize,
    /// Bytes of `limits.memory` that requests and subscriptions use now.
    pub memory: usize,
    /// Bytes of the parts of results that were left out, and that clients can still read.
    pub result_store: usize,
    /// The asynchronous tasks of this process.
    pub tasks: usize,
    /// How many rankings of the variants this configuration computed, instead of finding them in its cache.
    pub rankings: u64,
    /// The ranking by a model; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_ranking: Option<ModelRankingStatus>,
    /// How many requests each rate limit has refused since the limits last changed, by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rate_limits: BTreeMap<String, u64>,
    /// The audit log; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditStats>,
    /// Refused and dropped messages since the start, by name. Counters at zero are omitted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<&'static str, u64>,
}

fn audit_stats(services: &Services) -> Option<AuditStats> {
    let mut stats = services.observers.audit.as_ref()?.stats();
    if let Some(error) = &mut stats.error {
        *error = excerpt(error.as_bytes(), MAX_REASON_LENGTH);
    }
    Some(stats)
}

/// What came of one experiment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExperimentStatus {
    /// Its name, and the sums over the clients of each arm. Those of several replicas can be added,
    /// unless they share them.
    #[serde(flatten)]
    pub totals: Totals,
    /// The metric that decides.
    pub metric: Metric,
    /// The difference that is worth finding.
    pub effect: f64,
    /// Whether clients without a credential take part: each of their sessions counts as a client.
    pub anonymous: bool,
    /// Whether `auth` is configured. Clients without a credential then take part because of its `anonymous: on`.
    pub has_auth: bool,
}

/// The status of one server.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerStatus {
    /// The name that the operator gave it.
    pub name: String,
    /// `up`, `starting`, `down`, `closed`, `per-user` if it is connected to for each user, or `invalid` if its entry
    /// cannot be used.
    pub state: &'static str,
    /// For how many seconds it has been in this state.
    pub since: u64,
    /// Why it is down, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The last lines that its program wrote to standard error before it ended, if it is down: at most five of 200
    /// characters, without secrets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
    /// In how many seconds Vary tries again, if it is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<u64>,
    /// The revisions that it is known to speak: the newest with sessions, and the newest without.
    pub revisions: Vec<&'static str>,
    /// The methods that it was sent without declaring them, and whether it has them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub undeclared: BTreeMap<&'static str, bool>,
    /// The variants that it offers itself, of which the first one is used; empty if the configuration selects one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub upstream_variants: Vec<VariantId>,
    /// The login or the credentials of a service that Vary uses there; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<CredentialStatus>,
    /// How many tools it lists; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// Whether it declares the extension for skills.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skills: bool,
    /// The connections that clients share; absent for an entry that cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionStatus>,
    /// The connections that one client each uses alone; absent for an entry that cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedicated: Option<ConnectionStatus>,
    /// The calls that clients sent it through the gateway; absent for an entry that cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallStatus>,
    /// Why lists could not be read at the last attempt, by the method of the list, without secrets. Clients still see the
    /// previous list, if there is one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failed_lists: BTreeMap<&'static str, String>,
    /// What was wrong with items of its lists, which Vary repaired or left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub list_faults: Vec<String>,
}

/// The calls of one server since the gateway was opened: requests of clients that were forwarded to it, except those
/// about tasks.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallStatus {
    /// How many have ended.
    pub count: u64,
    /// Those whose response was an error, or a result with `isError`.
    pub errors: u64,
    /// Those that the client cancelled, or whose client has disconnected.
    #[serde(default)]
    pub cancelled: u64,
    /// The median of the time from sending the request to its server to the response, in milliseconds. It is at most 4 % off. Absent
    /// without responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// The time that 95 of 100 responses did not exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95: Option<f64>,
}

impl CallStatus {
    fn of(calls: &CallCounters) -> Self {
        let percentile = |percent| Some(milliseconds(calls.percentile(percent)?));
        Self {
            count: calls.ended(),
            errors: calls.errors(),
            cancelled: calls.cancelled(),
            p50: percentile(50),
            p95: percentile(95),
        }
    }
}

/// The status of one variant.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct VariantStatus {
    /// Its id.
    pub id: VariantId,
    /// `stable`, `experimental` or `deprecated`.
    pub status: Standing,
    /// The replacement of a deprecated variant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replacement: Option<VariantId>,
    /// The configured date of its removal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removal_date: Option<String>,
    /// The days until then; negative after that date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days_left: Option<i64>,
    /// Whether clients get it that declare nothing.
    pub default: bool,
    /// How many tools it lists to clients that may use everything, with the gateway's own.
    pub tools: usize,
    /// The tokens of these tools in the encoding o200k, for `GET /status?tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
}

impl Gateway {
    /// The current status of the gateway.
    pub fn status(&self) -> Status {
        Status::of(&self.current())
    }

    /// Waits until the keys of issuers were fetched or could not be, and says why tokens cannot be verified.
    pub async fn missing_keys(&self) -> Vec<String> {
        let snapshot = self.current();
        let Some(authentication) = &snapshot.authentication else {
            return Vec::new();
        };
        authentication.first_keys().await;
        authentication.missing_keys()
    }
}

/// The asynchronous tasks of this process; 0 outside of a runtime.
fn tasks() -> usize {
    let runtime = tokio::runtime::Handle::try_current();
    runtime.map_or(0, |runtime| runtime.metrics().num_alive_tasks())
}

impl Status {
    /// The same with the tokens of variants, by their ids.
    pub(crate) fn with_tokens(mut self, counted: Vec<(String, usize)>) -> Self {
        for (id, tokens) in counted {
            let mut variants = self.variants.iter_mut();
            if let Some(variant) = variants.find(|variant| variant.id.as_str() == id) {
                variant.tokens = Some(tokens);
            }
        }
        self
    }

    /// The status without people, what each of them saved, and what programs wrote to standard error.
    pub(crate) fn without_people(mut self) -> Self {
        self.people_need_token = !self.people.is_empty();
        self.people.clear();
        for server in &mut self.servers {
            server.stderr.clear();
        }
        self.savings
            .clients
            .retain(|client| client.person.is_none());
        self
    }

    pub(crate) fn of(snapshot: &ConfigSnapshot) -> Self {
        let services = &snapshot.services;
        let now = (snapshot.config.environment.now)();
        let (listeners, subscriptions) = services.hub.count();
        let authentication = snapshot.config.authentication.as_ref();
        let anonymous =
            authentication.is_none_or(|settings| settings.authenticator.allows_anonymous());
        Self {
            version: env!("CARGO_PKG_VERSION"),
            config: snapshot.config.digest.as_deref().map(str::to_owned),
            uptime: now.saturating_sub(services.started_at),
            servers: server_statuses(snapshot, now),
            variants: variant_statuses(snapshot, Date::from_unix(now)),
            clients: services.client_uses.all(),
            people: services.people.all(),
            people_need_token: false,
            refused_credentials: services.refused_credentials.status(now),
            savings: services.savings.status(now),
            missing_keys: snapshot
                .authentication
                .as_ref()
                .map_or_else(Vec::new, |service| service.missing_keys()),
            deprecated_use: services.deprecations.all(),
            directory_use: services.directory_uses.all(),
            experiments: snapshot
                .experiments
                .tallies()
                .map(|(config, tally)| ExperimentStatus {
                    totals: tally.totals(),
                    metric: config.metric,
                    effect: config.effect,
                    anonymous,
                    has_auth: authentication.is_some(),
                })
                .collect(),
            sessions: services.sessions.known(),
            streams: services.exchange.replay_streams.count(),
            listeners,
            subscriptions,
            pending_server_requests: services.pending_server_requests.count(),
            suspended_calls: services.exchange.suspended_calls.count(),
            proxied_tasks: services.tasks.proxied.count(),
            dedicated_connections: services.pool.dedicated.count(),
            dedicated_connections_limit: services.pool.dedicated.limit(),
            memory: services.memory.used(),
            result_store: services.result_store.bytes(),
            tasks: tasks(),
            rankings: snapshot.selector.rankings.computed(),
            model_ranking: snapshot
                .selector
                .model_ranking
                .as_ref()
                .map(|ranking| ranking.status()),
            rate_limits: snapshot.config.rates.refused(),
            audit: audit_stats(services),
            counters: services.counters.above_zero(),
        }
    }
}

/// The servers, in the order of configuration, then those that were left out.
fn server_statuses(snapshot: &ConfigSnapshot, now: u64) -> Vec<ServerStatus> {
    let sources = snapshot.pool.base().sources().iter();
    let dedicated = &snapshot.services.pool.dedicated;
    let servers = &snapshot.pool.servers;
    let statuses = servers.connection_statuses(|server| dedicated.count_of(server));
    let invalid = snapshot.config.left_out.iter();
    let left_out = invalid.map(|(name, reason)| ServerStatus {
        name: name.clone(),
        state: "invalid",
        since: now.saturating_sub(snapshot.services.started_at),
        reason: Some(format!("server `{name}` is left out: {reason}")),
        ..ServerStatus::default()
    });
    sources
        .zip(statuses)
        .map(|(source, [connections, dedicated])| {
            let lists = source.snapshot();
            let listed = lists.listings.get(&ListKind::Tools).cloned();
            let tools = listed.and_then(|list| Some(list.ok()?.items.len()));
            let stderr = last_stderr(&source.connection);
            let (state, reason) = match &*source.connection.state().borrow() {
                // There is one connection for each user, and none without one.
                _ if source.refusal().is_some() => ("per-user", None),
                ConnectionState::Connected(_) => ("up", None),
                // Others start first.
                ConnectionState::Connecting if source.connection.is_waiting() => ("waiting", None),
                ConnectionState::Connecting => ("starting", None),
                ConnectionState::Disconnected { error, .. } if stderr.is_empty() => {
                    ("down", Some(error.status_message()))
                }
                ConnectionState::Disconnected { error, .. } => {
                    ("down", Some(error.client_message()))
                }
                ConnectionState::Closed => ("closed", None),
            };
            ServerStatus {
                name: source.name().to_owned(),
                state,
                since: source.connection.in_state_for().as_secs(),
                reason,
                stderr,
                next_attempt: next_attempt(&source.connection).filter(|_| state == "down"),
                revisions: source.connection.server_facts().known_revisions(),
                undeclared: source.connection.server_facts().undeclared_methods().all(),
                upstream_variants: source.offered_variants(),
                login: credential_source::status(&source.connection.config().credentials),
                tools,
                skills: lists.has_skills(),
                connections: Some(connections),
                dedicated: Some(dedicated),
                calls: snapshot
                    .calls
                    .of(source.name())
                    .map(|calls| CallStatus::of(calls)),
                failed_lists: source.failed_lists(),
                list_faults: source.list_faults(),
            }
        })
        .chain(left_out)
        .collect()
}

/// What the program of a server wrote last to standard error, if the server is down.
fn last_stderr(connection: &SupervisedConnection) -> Vec<String> {
    match &*connection.state().borrow() {
        ConnectionState::Disconnected { .. } => {
            connection.config().last_output.lock().stderr.clone()
        }
        _ => Vec::new(),
    }
}

/// The seconds until the next attempt to connect; `None` if the last one did not fail.
fn next_attempt(connection: &SupervisedConnection) -> Option<u64> {
    match &*connection.state().borrow() {
        ConnectionState::Disconnected { retry_at, .. } => {
            let pause = retry_at.saturating_duration_since(Instant::now());
            Some(pause.as_secs_f64().ceil() as u64)
        }
        _ => None,
    }
}

fn variant_statuses(snapshot: &ConfigSnapshot, today: Date) -> Vec<VariantStatus> {
    let ranked = snapshot.selector.rankings.explain(&VariantHints::default());
    let first = ranked.advertised.into_iter().next();
    let default = snapshot.config.selection.default.clone().or(first);
    let catalog = snapshot.pool.base().catalog.current();
    let enabled = VariantIndex::enumerate(snapshot.enabled_variants());
    let variants = enabled.map(|(at, variant)| {
        let info = variant.deprecation_info.as_ref();
        let view = catalog.view(ListKind::Tools, at.declared_view());
        let tools = view.map(|view| view.tool_count() + view.gateway_tools.len());
        VariantStatus {
            default: default.as_ref() == Some(&variant.id),
            tools: tools.unwrap_or(0),
            tokens: None,
            id: variant.id.clone(),
            status: variant.status,
            replacement: info.and_then(|info| info.replacement.clone()),
            removal_date: info.and_then(|info| info.removal_date.clone()),
            days_left: info.and_then(|info| info.days_left(today)),
        }
    });
    variants.collect()
}
