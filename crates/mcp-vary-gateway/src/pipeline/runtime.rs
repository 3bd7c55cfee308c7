//! The parts of a gateway that outlive its configurations.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hmac::Mac as _;
use mcp_vary::cursor::CursorKeys;
use mcp_vary_base::copies::{Copies, CopyPlace};
use mcp_vary_base::environment::Environment;
use mcp_vary_base::tasks::TaskTracker;
use mcp_vary_catalog::list_tokens::ListTokens;
use mcp_vary_http::replay::ReplayStreams;
use mcp_vary_operator::Operator;
use mcp_vary_results::link_index::LinkIndex;
use mcp_vary_results::negotiation_log::IgnoredCounter;
use mcp_vary_results::result_store::ResultStore;
use mcp_vary_store::{SavedKind, Store};
use mcp_vary_upstream::chain::UpstreamGateways;
use mcp_vary_wire::counters::Counters;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::mrtr::{MrtrServices, SuspendedCalls};
use crate::pipeline::exchange::ExchangeServices;
use crate::pipeline::memory::ClientMemory;
use crate::pipeline::startup::StartupSettings;
use crate::pool::dedicated::{ConnectionObserver, DedicatedPool};
use crate::pool::{PoolContext, PoolServices};
use crate::subscriptions::SubscriptionHub;
use crate::subscriptions::server_events::ServerEvents;
use crate::tasks::TaskServices;
use crate::tasks::context::TaskContext;
use mcp_vary_observation::people::People;
use mcp_vary_observation::refused_credentials::RefusedCredentials;
use mcp_vary_observation::savings::Savings;
use mcp_vary_observation::{AuditService, Observers};
use mcp_vary_session::authentication::CurrentAuthentication;
use mcp_vary_session::client_uses::ClientUses;
use mcp_vary_session::deprecation::DeprecationLog;
use mcp_vary_session::directory_uses::DirectoryUses;
use mcp_vary_session::pending_server_requests::PendingServerRequests;
use mcp_vary_session::{Sessions, keyed};
use mcp_vary_settings::config::Config;
use mcp_vary_settings::sealing_keys::SealingKey;

/// The parts of a gateway that outlive its configurations, each with what it needs.
///
/// Only the pipeline and what composes the gateway see all of them.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) sessions: Sessions,
    /// Who sends a request, under the current configuration; for streams, which outlive theirs.
    pub(crate) authentication: CurrentAuthentication,
    /// Seal the cursors of lists.
    pub(crate) cursor_keys: Arc<CursorKeys>,
    /// The server requests that clients have not answered yet.
    pub(crate) pending_server_requests: Arc<PendingServerRequests>,
    /// Notifies clients of changes.
    pub(crate) hub: Arc<SubscriptionHub>,
    pub(crate) pool: PoolServices,
    pub(crate) tasks: Arc<TaskServices>,
    pub(crate) exchange: Arc<ExchangeServices>,
    pub(crate) memory: ClientMemory,
    /// The parts that results left out.
    pub(crate) result_store: Arc<ResultStore>,
    pub(crate) chain: ChainMember,
    /// Refused and dropped messages, for the status.
    pub(crate) counters: Arc<Counters>,
    pub(crate) deprecations: DeprecationLog,
    /// The variants of recent clients.
    pub(crate) client_uses: ClientUses,
    pub(crate) people: People,
    pub(crate) refused_credentials: RefusedCredentials,
    pub(crate) directory_uses: DirectoryUses,
    pub(crate) ignored_declarations: IgnoredCounter,
    /// When the gateway was opened, in seconds since 1970-01-01 UTC.
    pub(crate) started_at: u64,
    pub(crate) startup: StartupSettings,
    /// What observes requests.
    pub(crate) observers: Observers,
    /// What replicas share, if they do.
    pub(crate) store: Option<Arc<Store>>,
    /// What lists and results cost, and what they would have cost without Vary.
    pub(crate) savings: Savings,
    /// Where the operator's commands go, if there are any.
    pub(crate) operator: Option<Operator>,
    /// The tokens of lists, for metrics.
    pub(crate) list_tokens: Option<ListTokens>,
    /// Cancelled when the gateway stops.
    pub(crate) shutdown: CancellationToken,
    pub(crate) background_tasks: TaskTracker,
}

/// The gateway as a member of a chain of gateways.
#[derive(Debug)]
pub(crate) struct ChainMember {
    /// Identifies the gateway to the others.
    pub(crate) id: [u8; 8],
    /// The gateways behind this one.
    pub(crate) upstream_gateways: Arc<UpstreamGateways>,
}

/// The values from which several services are created.
struct Shared {
    environment: Environment,
    /// Distinguishes this gateway from others with the same keys, and from itself before a restart.
    instance: u64,
    /// The part of it by which other replicas reach this one.
    tag: u32,
    store: Option<Arc<Store>>,
    cursor_keys: Arc<CursorKeys>,
    link_index: Arc<LinkIndex>,
    pending_server_requests: Arc<PendingServerRequests>,
    shutdown: CancellationToken,
    background_tasks: TaskTracker,
}

impl Shared {
    fn result_store(&self, config: &Config, copies: Copies) -> Arc<ResultStore> {
        let bytes = config.limits.result_store;
        let ttl = config.limits.result_ttl;
        let store = ResultStore::new(bytes, ttl, config.environment, self.tag);
        Arc::new(store.with_copies(copies))
    }

    fn new(config: &Config) -> Self {
        let rotated = config.previous_keys.iter();
        let previous = rotated.map(|key| derived_key(key, "cursor"));
        let cursor_keys = CursorKeys::new(derived_key(&config.key, "cursor"));
        let instance = u64::from_le_bytes(random(config.environment));
        let store = config.store.clone().map(|url| {
            let secrets = std::iter::once(&config.key).chain(&config.previous_keys);
            let keys = secrets.map(|key| derived_key(key, "store"));
            Arc::new(Store::new(url, keys, config.environment.now, instance))
        });
        let pending = PendingServerRequests::new(
            config.limits.pending_server_requests,
            config.limits.ask_timeout,
            config.environment,
            instance,
        );
        Self {
            environment: config.environment,
            instance,
            tag: mcp_vary_store::tag(instance),
            cursor_keys: Arc::new(cursor_keys.with_previous(previous)),
            link_index: Arc::default(),
            pending_server_requests: Arc::new(pending.with_store(store.clone())),
            store,
            shutdown: CancellationToken::new(),
            background_tasks: TaskTracker::new(),
        }
    }

    fn tasks(&self, hub: &Arc<SubscriptionHub>, copies: Copies) -> Arc<TaskServices> {
        let context = TaskContext {
            observer: Arc::clone(hub) as _,
            pending_server_requests: Arc::clone(&self.pending_server_requests),
            copies,
            shutdown: self.shutdown.clone(),
            background_tasks: self.background_tasks.clone(),
        };
        Arc::new(TaskServices::new(
            context,
            self.instance,
            Arc::clone(&self.cursor_keys),
            Arc::clone(&self.link_index),
        ))
    }

    fn pool(
        &self,
        config: &Config,
        observer: Arc<dyn ConnectionObserver>,
        counters: &Arc<Counters>,
    ) -> PoolServices {
        PoolServices {
            dedicated: DedicatedPool::new(
                config.limits.dedicated_connections,
                Arc::clone(&self.pending_server_requests),
                Arc::clone(&observer),
                self.background_tasks.clone(),
            ),
            context: PoolContext {
                shutdown: self.shutdown.clone(),
                background_tasks: self.background_tasks.clone(),
                observer,
                shared_lists: Arc::default(),
            },
            counters: Arc::clone(counters),
        }
    }

    fn exchange(
        &self,
        config: &Config,
        tasks: &TaskServices,
        copies: Copies,
        counters: &Arc<Counters>,
    ) -> Arc<ExchangeServices> {
        Arc::new(ExchangeServices {
            mrtr: Arc::new(MrtrServices {
                cursor_keys: Arc::clone(&self.cursor_keys),
                environment: self.environment,
                instance: self.instance,
                pending_server_requests: Arc::clone(&self.pending_server_requests),
            }),
            suspended_calls: Arc::new(SuspendedCalls::new(
                self.background_tasks.clone(),
                self.shutdown.clone(),
            )),
            task_registry: Arc::clone(&tasks.registry),
            link_index: Arc::clone(&self.link_index),
            replay_streams: ReplayStreams::new(
                config.limits.replay_buffer,
                config.limits.replay_ttl,
                self.tag,
            )
            .with_copies(copies),
            orphan_permits: Arc::new(Semaphore::new(config.limits.orphaned_requests)),
            progress_tokens: Default::default(),
            counters: Arc::clone(counters),
            environment: self.environment,
            shutdown: self.shutdown.clone(),
            background_tasks: self.background_tasks.clone(),
        })
    }
}

impl Services {
    pub(crate) fn new(config: &Config) -> Self {
        let keys = std::iter::once(&config.key).chain(&config.previous_keys);
        let shared = Shared::new(config);
        let store = shared.store.clone();
        let copies = |kind| copies_to(store.as_ref(), kind);
        let hub = Arc::<SubscriptionHub>::default();
        let counters = Arc::<Counters>::default();
        let tasks = shared.tasks(&hub, copies(SavedKind::Task));
        let observer = Arc::new(ServerEvents {
            hub: Arc::clone(&hub),
            tasks: Arc::clone(&tasks),
            dedicated: OnceLock::new(),
        });
        let log = config.audit_log.clone();
        let observers = Observers {
            audit: log.map(|log| Arc::new(AuditService::new(log))),
            metrics: config.metrics.map(|_| Arc::default()),
            tracer: config.tracer.clone(),
            feed: Arc::default(),
        };
        let pool = shared.pool(config, Arc::clone(&observer) as _, &counters);
        // It is set once, here.
        let _ = observer.dedicated.set(Arc::downgrade(&pool.dedicated));
        observe_changes(&pool, config.environment, observers.audit.clone());
        let session_keys = keys.map(|key| derived_key(key, "session")).collect();
        Self {
            sessions: Sessions::new(config, session_keys, Arc::clone(&hub) as _, shared.tag),
            authentication: CurrentAuthentication::default(),
            pool,
            exchange: shared.exchange(config, &tasks, copies(SavedKind::Stream), &counters),
            hub,
            tasks,
            memory: ClientMemory::new(config.limits.memory, Arc::clone(&counters)),
            result_store: shared.result_store(config, copies(SavedKind::Result)),
            chain: ChainMember {
                id: random(config.environment),
                upstream_gateways: Arc::default(),
            },
            counters,
            deprecations: DeprecationLog::default(),
            client_uses: ClientUses::default(),
            people: People::default(),
            refused_credentials: RefusedCredentials::default(),
            directory_uses: DirectoryUses::default(),
            ignored_declarations: IgnoredCounter::default(),
            started_at: (config.environment.now)(),
            startup: StartupSettings::new(config),
            observers,
            store,
            savings: Savings::default(),
            operator: config.operator.clone(),
            list_tokens: config
                .count_tokens
                .or_else(|| config.metrics.map(|metrics| metrics.count_tokens))
                .map(ListTokens::new),
            cursor_keys: shared.cursor_keys,
            pending_server_requests: shared.pending_server_requests,
            shutdown: shared.shutdown,
            background_tasks: shared.background_tasks,
        }
    }

    /// Drops expired streams, sessions, tasks, results and subscriptions.
    pub(crate) fn sweep(&self, now: u64) {
        self.exchange.replay_streams.sweep();
        self.sessions.sweep();
        self.result_store.sweep();
        self.hub.sweep(now);
        // What was counted yesterday is of yesterday.
        self.savings.days(now);
    }
}

/// What servers change is in the audit log, if there is one.
fn observe_changes(
    pool: &PoolServices,
    environment: Environment,
    audit: Option<Arc<AuditService>>,
) {
    let changes = &pool.context.shared_lists.changes;
    changes.observe(environment.now, move |change| {
        if let Some(audit) = &audit {
            audit.server_changed(change);
        }
    });
}

/// Copies of what is made here go to the store, if there is one.
fn copies_to(store: Option<&Arc<Store>>, kind: SavedKind) -> Copies {
    let place = store.cloned().map(|store| StoredCopies { store, kind });
    place.map_or_else(Copies::default, Copies::to)
}

struct StoredCopies {
    store: Arc<Store>,
    kind: SavedKind,
}

impl CopyPlace for StoredCopies {
    fn wants(&self, bytes: usize) -> bool {
        self.store.can_save(bytes)
    }

    fn put(&self, id: &str, value: Vec<u8>, lifetime: Duration) {
        self.store.save(self.kind, id, value, lifetime);
    }
}

fn random<const N: usize>(environment: Environment) -> [u8; N] {
    let mut bytes = [0; N];
    (environment.random)(&mut bytes);
    bytes
}

/// A key for one purpose, derived from a secret of the gateway.
fn derived_key(SealingKey(key): &SealingKey, label: &str) -> [u8; 32] {
    let mut mac = keyed(key);
    mac.update(b"vary key v1\0");
    mac.update(label.as_bytes());
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use mcp_vary_results::result_store::{ResultOwner, ToolRef};

    use super::*;

    static NOW: AtomicU64 = AtomicU64::new(1_000);

    #[test]
    fn a_sweep_drops_expired_results() {
        let environment = Environment::new(|| NOW.load(Ordering::Relaxed), |bytes| bytes.fill(7));
        let mut config = Config::with_servers(Vec::new(), environment);
        config.limits.result_ttl = Duration::from_secs(60);
        let services = Services::new(&config);
        let uri = services.result_store.new_uri(3).unwrap();
        let tool = ToolRef {
            server: "a".into(),
            upstream_name: "b".into(),
        };
        let owner = ResultOwner {
            client: None,
            principal: None,
            tool,
        };
        services.result_store.insert(&uri, "[1]".to_owned(), owner);
        let sweep = || {
            services.sweep(NOW.load(Ordering::Relaxed));
            services.result_store.bytes()
        };
        NOW.fetch_add(59, Ordering::Relaxed);
        assert_eq!(sweep(), 3);
        NOW.fetch_add(1, Ordering::Relaxed);
        assert_eq!(sweep(), 0);
    }
}
