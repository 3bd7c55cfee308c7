//! What stays while one configuration takes the place of another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hmac::Mac as _;
use mcp_vary::cursor::CursorKeys;
use mcp_vary_base::environment::Environment;
use mcp_vary_base::memory_budget::{Lease, MemoryBudget};
use mcp_vary_catalog::link_index::LinkIndex;
use mcp_vary_results::negotiation_log::IgnoredCounter;
use mcp_vary_results::result_store::ResultStore;
use mcp_vary_upstream::chain::UpstreamGateways;
use mcp_vary_wire::counters::{Counter, Counters};
use mcp_vary_wire::response::RpcError;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::mrtr::{MrtrServices, SuspendedCalls};
use crate::pipeline::exchange::Leases;
use crate::pool::dedicated::DedicatedPool;
use crate::pool::observer::ConnectionObserver;
use crate::pool::{PoolContext, PoolServices};
use crate::session::deprecation::DeprecationLog;
use crate::session::memory_cost;
use crate::session::pending_server_requests::PendingServerRequests;
use crate::session::replay::ReplayStreams;
use crate::session::{self, Sessions};
use crate::settings::config::Config;
use crate::settings::keys::Keys;
use crate::settings::limits::Limits;
use crate::subscriptions::SubscriptionHub;
use crate::subscriptions::server_events::ServerEvents;
use crate::tasks::TaskServices;
use crate::tasks::context::TaskContext;

/// What a gateway has from its start to its end, whatever it is configured to be in between.
///
/// Whoever works on a request that a server has holds this, and nothing of the configuration, so that the
/// end of what was configured before waits for nobody.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) sessions: Sessions,
    pub(crate) cursor_keys: Arc<CursorKeys>,
    pub(crate) mrtr: Arc<MrtrServices>,
    pub(crate) link_index: Arc<LinkIndex>,
    /// Who hears of changes.
    pub(crate) hub: Arc<SubscriptionHub>,
    /// What was refused or dropped, for the status.
    pub(crate) counters: Arc<Counters>,
    pub(crate) deprecations: DeprecationLog,
    pub(crate) ignored_declarations: IgnoredCounter,
    pub(crate) tasks: Arc<TaskServices>,
    /// When the gateway was opened, in seconds since 1970-01-01 UTC.
    pub(crate) started_at: u64,
    /// What results left out.
    pub(crate) result_store: Arc<ResultStore>,
    /// Calls that wait for what they asked of clients whose requests have ended.
    pub(crate) suspended_calls: Arc<SuspendedCalls<Leases>>,
    /// Tells this gateway from others, to those in front of it and behind it.
    pub(crate) id: [u8; 8],
    /// The gateways behind this one.
    pub(crate) upstream_gateways: Arc<UpstreamGateways>,
    environment: Environment,
    /// What clients were asked.
    pub(crate) pending_server_requests: Arc<PendingServerRequests>,
    /// Connections that clients have alone.
    pub(crate) dedicated_pool: Arc<DedicatedPool>,
    /// What the pool of each configuration gets.
    pub(crate) pool_services: PoolServices,
    /// Streams that clients may come back to.
    pub(crate) replay_streams: ReplayStreams,
    /// What clients can make the gateway hold.
    pub(crate) memory: Arc<MemoryBudget>,
    /// Of it what they can for as long as their sessions last.
    pub(crate) subscription_memory: Arc<MemoryBudget>,
    progress_tokens: AtomicU64,
    /// Places for requests that run on although their client is gone.
    pub(crate) orphan_permits: Arc<Semaphore>,
    /// Cancelled when the gateway stops.
    pub(crate) shutdown: CancellationToken,
    pub(crate) background_tasks: TaskTracker,
    /// The limits at the start, of which some hold until the end.
    initial_limits: Limits,
    /// The keys that the file named at the start.
    named_keys: Keys,
}

impl Services {
    pub(crate) fn new(config: &Config) -> Self {
        let previous = config.previous_keys.iter();
        let previous = previous.map(|key| derived_key(key, "cursor"));
        let cursor_keys = CursorKeys::new(derived_key(&config.key, "cursor"));
        let cursor_keys = Arc::new(cursor_keys.with_previous(previous));
        let instance = u64::from_le_bytes(random(config.environment));
        let pending_server_requests = Arc::new(PendingServerRequests::new(
            config.limits.pending_server_requests,
            config.limits.ask_timeout,
            config.environment,
            instance,
        ));
        let background_tasks = TaskTracker::new();
        let memory = MemoryBudget::new(config.limits.memory);
        let hub = Arc::<SubscriptionHub>::default();
        let session_keys = std::iter::once(&config.key).chain(&config.previous_keys);
        let session_keys = session_keys.map(|key| derived_key(key, "session"));
        let shutdown = CancellationToken::new();
        let counters = Arc::<Counters>::default();
        let link_index = Arc::<LinkIndex>::default();
        let task_context = TaskContext {
            observer: Arc::clone(&hub) as _,
            pending_server_requests: Arc::clone(&pending_server_requests),
            environment: config.environment,
            shutdown: shutdown.clone(),
            background_tasks: background_tasks.clone(),
        };
        let tasks = Arc::new(TaskServices::new(
            task_context,
            instance,
            Arc::clone(&cursor_keys),
            Arc::clone(&link_index),
        ));
        let observer: Arc<dyn ConnectionObserver> = Arc::new(ServerEvents {
            hub: Arc::clone(&hub),
            tasks: Arc::clone(&tasks),
        });
        let dedicated = DedicatedPool::new(
            config.limits.dedicated_connections,
            Arc::clone(&pending_server_requests),
            Arc::clone(&observer),
            background_tasks.clone(),
        );
        let pool_context = PoolContext {
            shutdown: shutdown.clone(),
            background_tasks: background_tasks.clone(),
            observer,
            shared_lists: Arc::default(),
        };
        let pool_services = PoolServices {
            context: pool_context,
            dedicated: Arc::clone(&dedicated),
            counters: Arc::clone(&counters),
        };
        Self {
            sessions: Sessions::new(config, session_keys.collect()),
            mrtr: Arc::new(MrtrServices {
                cursor_keys: Arc::clone(&cursor_keys),
                environment: config.environment,
                instance,
                pending_server_requests: Arc::clone(&pending_server_requests),
            }),
            cursor_keys,
            link_index,
            hub,
            counters,
            deprecations: DeprecationLog::default(),
            ignored_declarations: IgnoredCounter::default(),
            started_at: (config.environment.now)(),
            result_store: Arc::new(ResultStore::new(
                config.limits.result_store,
                config.limits.result_ttl,
                config.environment,
            )),
            suspended_calls: Arc::new(SuspendedCalls::new(
                background_tasks.clone(),
                shutdown.clone(),
            )),
            id: random(config.environment),
            upstream_gateways: Arc::default(),
            environment: config.environment,
            replay_streams: ReplayStreams::new(&config.limits, config.environment),
            subscription_memory: memory.sub_budget(config.limits.memory / SUBSCRIPTION_SHARE),
            memory,
            // Some servers take 0 for no token.
            progress_tokens: AtomicU64::new(1),
            orphan_permits: Arc::new(Semaphore::new(config.limits.orphaned_requests)),
            shutdown,
            dedicated_pool: dedicated,
            pool_services,
            tasks,
            pending_server_requests,
            background_tasks,
            initial_limits: config.limits,
            named_keys: config.named_keys.clone(),
        }
    }

    /// Leases so many bytes for a request.
    ///
    /// # Errors
    ///
    /// When `limits.memory` leaves no room for them, which is counted.
    pub(crate) fn lease(&self, bytes: usize) -> Result<Lease, RpcError> {
        self.memory.lease(bytes).map_err(|exhausted| {
            self.counters.increment(Counter::RefusedForMemory);
            exhausted.into()
        })
    }

    /// The same for a subscription to `uri`.
    ///
    /// # Errors
    ///
    /// When subscriptions take as much as they may, or `limits.memory` leaves no room.
    pub(crate) fn lease_for_subscription(&self, uri: &str) -> Result<Lease, RpcError> {
        let lease = self
            .subscription_memory
            .lease(memory_cost::of_subscription(uri));
        lease.map_err(|_| {
            self.counters.increment(Counter::RefusedForMemory);
            RpcError::internal(
                "subscriptions take a quarter of `limits.memory`, which is all they may; unsubscribe from some, or try \
                 again later",
            )
        })
    }

    /// A token for progress that no other request to a server uses.
    pub(crate) fn new_progress_token(&self) -> u64 {
        self.progress_tokens.fetch_add(1, Ordering::Relaxed)
    }

    /// Seconds since 1970-01-01 UTC.
    pub(crate) fn now(&self) -> u64 {
        (self.environment.now)()
    }

    /// What `config` would change and what holds until the end, by its keys in a file.
    pub(crate) fn unchangeable_settings(&self, config: &Config) -> Vec<&'static str> {
        let limits = &config.limits;
        let before = &self.initial_limits;
        let fixed = [
            (
                "limits.connections",
                before.connections != limits.connections,
            ),
            ("limits.memory", before.memory != limits.memory),
            ("limits.sessions", before.sessions != limits.sessions),
            (
                "limits.orphaned-requests",
                before.orphaned_requests != limits.orphaned_requests,
            ),
            (
                "limits.result-store",
                before.result_store != limits.result_store,
            ),
            (
                "limits.dedicated-connections",
                before.dedicated_connections != limits.dedicated_connections,
            ),
            (
                "limits.ask-timeout",
                before.ask_timeout != limits.ask_timeout,
            ),
            (
                "limits.pending-server-requests",
                before.pending_server_requests != limits.pending_server_requests,
            ),
            ("limits.result-ttl", before.result_ttl != limits.result_ttl),
            (
                "limits.replay-buffer",
                before.replay_buffer != limits.replay_buffer,
            ),
            ("limits.replay-ttl", before.replay_ttl != limits.replay_ttl),
            ("keys", self.named_keys != config.named_keys),
        ];
        let changed = fixed.into_iter().filter(|(_, differs)| *differs);
        changed.map(|(key, _)| key).collect()
    }
}

/// Which part of the memory that clients can take they can take for long.
const SUBSCRIPTION_SHARE: usize = 4;

fn random<const N: usize>(outside: Environment) -> [u8; N] {
    let mut bytes = [0; N];
    (outside.random)(&mut bytes);
    bytes
}

/// A key for one purpose, drawn from a secret of the gateway.
fn derived_key(key: &[u8; 32], label: &str) -> [u8; 32] {
    let mut mac = session::keyed(key);
    mac.update(b"vary key v1\0");
    mac.update(label.as_bytes());
    mac.finalize().into_bytes().into()
}
