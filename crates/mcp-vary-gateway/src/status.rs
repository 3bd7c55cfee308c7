//! How a running gateway stands, for whoever operates it.

use std::collections::BTreeMap;

use mcp_vary::variant::{Date, Status as Standing, VariantId};
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_upstream::ConnectionState;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::sanitize::excerpt;
use serde::Serialize;

use crate::gateway::Gateway;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::deprecation::DeprecatedUse;

/// How a running gateway stands. As JSON it is what `GET /status` answers.
///
/// # Properties
///
/// Nothing in it is secret: no address, header, variable or argument of a server, no id of a session, nothing that
/// clients asked.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Status {
    /// The version of this program.
    pub version: &'static str,
    /// Seconds since the gateway was opened.
    pub uptime: u64,
    /// The servers behind, in the order of configuration.
    pub servers: Vec<ServerStatus>,
    /// The variants, in the order of configuration; none where they are off.
    pub variants: Vec<VariantStatus>,
    /// Who used deprecated variants since the start.
    pub deprecated_use: Vec<DeprecatedUse>,
    /// Sessions that were used lately and are found without opening their ids.
    pub sessions: usize,
    /// Streams that are open, or that their clients may come back to.
    pub streams: usize,
    /// Streams of `subscriptions/listen` that are open.
    pub listeners: usize,
    /// Resources that servers tell of, since somebody is subscribed to them.
    pub subscriptions: usize,
    /// What clients are asked and have not answered yet.
    pub pending_server_requests: usize,
    /// Calls that wait for clients whose requests ended with what the server asks.
    pub suspended_calls: usize,
    /// Tasks of servers that are waited for, since their clients know another form of tasks.
    pub proxied_tasks: usize,
    /// Results that came before a client's wish for a task was fulfilled, and are kept as tasks that are done.
    pub completed_tasks: usize,
    /// Connections to servers that one client each has alone.
    pub dedicated_connections: usize,
    /// Bytes of `limits.memory` that are taken now, by requests and subscriptions.
    pub memory: usize,
    /// What runs at once in this process: connections, servers' outputs, calls without a connection, and the rest.
    pub tasks: usize,
    /// How many rankings of the variants were made by this configuration, and not remembered.
    pub rankings: u64,
    /// What was refused or dropped since the start, by name; a counter at zero is left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<&'static str, u64>,
}

/// How one server stands.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerStatus {
    /// The name that the operator gave it.
    pub name: String,
    /// `up`, `starting`, `down`, `closed`, or `invalid` where its entry cannot be used.
    pub state: &'static str,
    /// For how many seconds.
    pub since: u64,
    /// Why it is down, in words that any client may read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The newest revision of each era that it is known to speak.
    pub eras: Vec<&'static str>,
    /// The methods that it was asked for without declaring them, and whether it has them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub undeclared: BTreeMap<&'static str, bool>,
    /// How many tools it lists; absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// Why a list of it could not be read when that was last tried, by the method of the list; of the list before, if
    /// there is one, clients still see what it held.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failed_lists: BTreeMap<&'static str, String>,
}

/// One variant.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct VariantStatus {
    /// Its id.
    pub id: VariantId,
    /// `stable`, `experimental` or `deprecated`.
    pub status: Standing,
    /// What to use instead of one that is deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replacement: Option<VariantId>,
    /// When it goes, as configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removal_date: Option<String>,
    /// How many days that is from now; negative when it is past.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days_left: Option<i64>,
}

impl Gateway {
    /// How the gateway stands now.
    #[must_use]
    pub fn status(&self) -> Status {
        Status::of(&self.current())
    }

    /// Who used deprecated variants since the start, and how often (SV-25).
    ///
    /// Clients are told apart by the name and the version that they say, some hundreds of them; the rest is counted
    /// together. Each is warned about in the log once a day.
    #[must_use]
    pub fn deprecated_use(&self) -> Vec<DeprecatedUse> {
        self.services.deprecations.all()
    }
}

/// Of why a list could not be read so many characters, which may be the server's, are shown.
const MAX_REASON_LENGTH: usize = 300;

/// None outside of a runtime.
fn tasks() -> usize {
    let runtime = tokio::runtime::Handle::try_current();
    runtime.map_or(0, |runtime| runtime.metrics().num_alive_tasks())
}

impl Status {
    pub(crate) fn of(snapshot: &ConfigSnapshot) -> Self {
        let services = &snapshot.services;
        let now = (snapshot.config.environment.now)();
        let (listeners, subscriptions) = services.hub.count();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            uptime: now.saturating_sub(services.started_at),
            servers: server_statuses(snapshot, now),
            variants: variant_statuses(snapshot, Date::from_unix(now)),
            deprecated_use: services.deprecations.all(),
            sessions: services.sessions.known(),
            streams: services.exchange.replay_streams.count(),
            listeners,
            subscriptions,
            pending_server_requests: services.pending_server_requests.count(),
            suspended_calls: services.exchange.suspended_calls.count(),
            proxied_tasks: services.tasks.proxied.count(),
            completed_tasks: services.tasks.core_over_ext.completed.count(),
            dedicated_connections: services.pool.dedicated.count(),
            memory: services.memory.used(),
            tasks: tasks(),
            rankings: snapshot.selector.rankings.computed(),
            counters: services.counters.above_zero(),
        }
    }
}

/// The servers, in the order of configuration, then those that were left out.
fn server_statuses(snapshot: &ConfigSnapshot, now: u64) -> Vec<ServerStatus> {
    let sources = snapshot.pool.base().sources().iter();
    let left_out = snapshot.config.left_out.iter();
    let left_out = left_out.map(|(name, reason)| ServerStatus {
        name: name.clone(),
        state: "invalid",
        since: now.saturating_sub(snapshot.services.started_at),
        reason: Some(format!("server `{name}` is left out: {reason}")),
        eras: Vec::new(),
        undeclared: BTreeMap::new(),
        tools: None,
        failed_lists: BTreeMap::new(),
    });
    sources
        .map(|source| {
            let told = source.snapshot();
            let listed = told.listings.get(&ListKind::Tools).cloned();
            let tools = listed.and_then(|list| Some(list.ok()?.items.len()));
            let unread = told.read_errors.iter();
            let shown = |why: &RpcError| excerpt(why.message().as_bytes(), MAX_REASON_LENGTH);
            let unread = unread.map(|(kind, why)| (kind.method(), shown(why)));
            let (state, reason) = match &*source.connection.state().borrow() {
                ConnectionState::Connected(_) => ("up", None),
                ConnectionState::Connecting => ("starting", None),
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
                eras: source.connection.server_facts().known_revisions(),
                undeclared: source.connection.server_facts().undeclared_methods().all(),
                tools,
                failed_lists: unread.collect(),
            }
        })
        .chain(left_out)
        .collect()
}

fn variant_statuses(snapshot: &ConfigSnapshot, today: Date) -> Vec<VariantStatus> {
    let variants = snapshot
        .variant_set
        .variants
        .iter()
        .filter(|_| snapshot.config.variants);
    let variants = variants.map(|variant| {
        let info = variant.deprecation_info.as_ref();
        VariantStatus {
            id: variant.id.clone(),
            status: variant.status,
            replacement: info.and_then(|info| info.replacement.clone()),
            removal_date: info.and_then(|info| info.removal_date.clone()),
            days_left: info.and_then(|info| info.days_left(today)),
        }
    });
    variants.collect()
}
