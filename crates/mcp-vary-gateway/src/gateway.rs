//! The gateway: its current configuration, and what it has from its start to its end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use mcp_vary_auth::refresh::FetchReason;
use mcp_vary_operator::Operator;
use mcp_vary_store::{MAX_EXCHANGES, ReplicaCall};
use mcp_vary_traces::TraceStats;
use mcp_vary_upstream::ConnectError;
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::meta::CLIENT_CAPABILITIES;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::revision::Era;
use tokio::sync::{Mutex, SetOnce, mpsc};
use tokio_util::sync::DropGuard;

use crate::pipeline::runtime::Services;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::pool::source::ServerSource;
use mcp_vary_observation::failed_calls::FailedCalls;
use mcp_vary_observation::finished_call::FinishedCall;
use mcp_vary_observation::request_feed::{RequestWatch, Viewer};
use mcp_vary_observation::savings::Cost;
use mcp_vary_settings::config::{Config, OnlyClient};

/// A running gateway. It serves any number of clients at once through [`serve_http`](Self::serve_http) and
/// [`serve_stdio`](Self::serve_stdio), and can replace its configuration meanwhile: [`reload`](Self::reload).
#[derive(Debug)]
pub struct Gateway {
    /// Requests load it without a lock.
    pub(crate) current: ArcSwap<ConfigSnapshot>,
    pub(crate) services: Arc<Services>,
    /// Held during a reload and during the close.
    pub(crate) reloading: Mutex<()>,
    /// Set once clients are answered. Until then they wait for the servers.
    serving: SetOnce<()>,
    /// Whether the last endpoint will soon accept no more clients.
    is_stopping: AtomicBool,
    /// The requests that other replicas forward.
    pub(crate) replica_calls: Mutex<mpsc::Receiver<ReplicaCall>>,
    /// How many endpoints serve clients.
    endpoints: Arc<AtomicUsize>,
    /// Stops the background tasks if the gateway is dropped without being closed.
    _stop_when_dropped: DropGuard,
}

impl Gateway {
    /// Connects to the servers and reads what they offer.
    ///
    /// If a server cannot be reached, the others work, and the gateway keeps retrying. If none can be reached, the
    /// gateway starts only if the configuration allows that.
    ///
    /// # Errors
    ///
    /// When no server can be started or reached, or speaks MCP. The error names the server and the reason.
    pub async fn start(config: Config) -> Result<Arc<Self>, ConnectError> {
        let gateway = Self::open(config).await;
        gateway.connected().await?;
        Ok(gateway)
    }

    /// Begins to connect to the servers and returns at once. Requests of clients wait until every server was read or
    /// could not be connected to, for [`Config::start_wait`] at most, or until `serve_now`;
    /// what servers list after that is announced. Closing the gateway ends in order what was begun.
    pub async fn open(config: Config) -> Arc<Self> {
        let services = Arc::new(Services::new(&config));
        let stop_when_dropped = services.shutdown.clone().drop_guard();
        let snapshot = ConfigSnapshot::open(config, Arc::clone(&services), None).await;
        services
            .authentication
            .store(snapshot.authentication.clone());
        services
            .hub
            .set_access_rules(snapshot.pool.access().is_some());
        let (forwarded, replica_calls) = mpsc::channel(MAX_EXCHANGES);
        let gateway = Arc::new(Self {
            current: ArcSwap::from_pointee(snapshot),
            services,
            reloading: Mutex::default(),
            serving: SetOnce::new(),
            is_stopping: AtomicBool::new(false),
            replica_calls: Mutex::new(replica_calls),
            endpoints: Arc::default(),
            _stop_when_dropped: stop_when_dropped,
        });
        gateway.sweep();
        gateway.follow_store(forwarded);
        gateway.serve_when_ready();
        gateway
    }

    /// Serves clients as soon as the lists of the servers were read, or at the timeout.
    fn serve_when_ready(self: &Arc<Self>) {
        let snapshot = self.current();
        let base = Arc::clone(snapshot.pool.base());
        let limit = snapshot.config.start_wait;
        let (gateway, shutdown) = (Arc::downgrade(self), self.services.shutdown.clone());
        self.services.background_tasks.spawn(async move {
            shutdown
                .run_until_cancelled(base.first_readings(limit))
                .await;
            if let Some(gateway) = gateway.upgrade() {
                gateway.serve_now().await;
            }
        });
    }

    /// Whether clients are answered.
    pub(crate) fn is_serving(&self) -> bool {
        self.serving.initialized()
    }

    /// Whether the gateway serves clients not much longer.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire) || self.services.shutdown.is_cancelled()
    }

    /// An endpoint will soon accept no more clients.
    pub(crate) fn begin_stop(&self, endpoint: &Endpoint) {
        if endpoint.is_last() {
            self.is_stopping.store(true, Ordering::Release);
        }
    }

    /// Serves clients from now on with the lists that were read. Later lists are announced as changes.
    pub async fn serve_now(&self) {
        if self.is_serving() {
            return;
        }
        self.current().pool.publish().await;
        let _ = self.serving.set(());
    }

    /// The only client of a gateway on standard streams, by the first message that it sends.
    pub fn only_client(message: &[u8]) -> Option<OnlyClient> {
        let line = message.split(|byte| *byte == b'\n').next()?;
        let (message, params) = Message::read_with_params(line).ok()?;
        let params = Params::of(&message, params).ok()?;
        let has_session = message.method.as_deref() == Some("initialize");
        let declared = if has_session {
            params.object("capabilities").ok()?
        } else {
            params.meta.get(CLIENT_CAPABILITIES)?
        };
        Some(OnlyClient {
            capabilities: declared.to_owned(),
            has_session,
        })
    }

    /// Reads the era of the first client from the start of its first message, which waits until clients are served. Servers
    /// of both eras begin with it then, if they wait for it ([`UpstreamConfig::era_wait`]).
    ///
    /// [`UpstreamConfig::era_wait`]: mcp_vary_upstream::UpstreamConfig::era_wait
    pub fn expect_client(&self, message: &[u8]) {
        let line = message.split(|byte| *byte == b'\n').next();
        let Ok((message, params)) = Message::read_with_params(line.unwrap_or_default()) else {
            return;
        };
        let params = Params::of(&message, params);
        if params.is_ok_and(|params| params.is_modern()) {
            self.expect_era(Era::Modern);
        } else if message.method.as_deref() == Some("initialize") {
            self.expect_era(Era::Legacy);
        }
    }

    /// A client of `era` waits to be served.
    pub(crate) fn expect_era(&self, era: Era) {
        if !self.is_serving() {
            self.current().pool.keys.era_of_base(era);
        }
    }

    /// Waits until clients are served.
    pub(crate) async fn until_serving(&self) {
        self.serving.wait().await;
    }

    /// Waits until each server was connected and its lists were read, or that failed.
    ///
    /// # Errors
    ///
    /// As those of [`start`](Self::start); the gateway is closed then.
    pub async fn connected(&self) -> Result<(), ConnectError> {
        let connected = self.connected_until(|_| false).await;
        connected.map_err(|(first, _)| first)
    }

    /// Waits as [`connected`](Self::connected) does, or until `is_enough`, which is called after each server.
    ///
    /// # Errors
    ///
    /// As those of [`connected`](Self::connected), with the errors of the other servers.
    pub async fn connected_until(
        &self,
        mut is_enough: impl FnMut(&Self) -> bool,
    ) -> Result<(), (ConnectError, Vec<ConnectError>)> {
        let snapshot = self.current();
        let base = snapshot.pool.base();
        let first_readings = base.sources().iter().map(|source| source.first_reading());
        let mut readings: FuturesUnordered<_> = first_readings.collect();
        loop {
            tokio::select! {
                () = self.until_serving() => break,
                Some(_) = readings.next() => {}
            }
            if is_enough(self) {
                self.serve_now().await;
                break;
            }
        }
        let is_usable = |source: &Arc<ServerSource>| source.is_usable();
        if snapshot.config.allow_empty_start || base.sources().iter().any(is_usable) {
            return Ok(());
        }
        let attempts = join_all(
            base.sources()
                .iter()
                .map(|source| source.connection.first_attempt()),
        );
        let mut errors = attempts.await.into_iter().filter_map(Result::err);
        match errors.next() {
            Some(first) => {
                self.close().await;
                Err((first, errors.collect()))
            }
            None => Ok(()),
        }
    }

    /// The current configuration.
    pub(crate) fn current(&self) -> Arc<ConfigSnapshot> {
        self.current.load_full()
    }

    /// Closes unused connections, and drops what has expired, in the background.
    fn sweep(self: &Arc<Self>) {
        let weak = Arc::downgrade(self);
        let shutdown = self.services.shutdown.clone();
        let pause = move || {
            let gateway = weak.upgrade()?;
            let snapshot = gateway.current();
            gateway.services.sweep((snapshot.config.environment.now)());
            if let Some(authentication) = &snapshot.authentication {
                authentication.fetch_keys(FetchReason::Schedule);
            }
            Some(snapshot.pool.sweep())
        };
        self.services.background_tasks.spawn(async move {
            while let Some(pause) = pause() {
                let slept = shutdown.run_until_cancelled(tokio::time::sleep(pause));
                if slept.await.is_none() {
                    return;
                }
            }
        });
    }

    /// Learns what other replicas write to the store, and passes on what they forward, until the gateway stops.
    fn follow_store(self: &Arc<Self>, forwarded: mpsc::Sender<ReplicaCall>) {
        let Some(store) = self.services.store.clone() else {
            return;
        };
        store.share_tallies(self.current().experiments.shared_tallies());
        let (gateway, shutdown) = (Arc::downgrade(self), self.services.shutdown.clone());
        self.services.background_tasks.spawn(async move {
            let learn = |event| {
                if let Some(gateway) = gateway.upgrade() {
                    gateway.current().learn(event);
                }
            };
            let serve = |call| {
                // A call that is dropped is refused: then the other replica answers.
                if gateway.upgrade().is_some_and(|it| !it.is_stopping()) {
                    let _ = forwarded.try_send(call);
                }
            };
            store.run(learn, serve, shutdown.cancelled()).await;
        });
    }

    /// Registers an endpoint for clients.
    pub(crate) fn new_endpoint(&self) -> Endpoint {
        self.endpoints.fetch_add(1, Ordering::Relaxed);
        self.is_stopping.store(false, Ordering::Release);
        Endpoint(Arc::clone(&self.endpoints))
    }

    /// Closes the connections to the servers, so that calls in flight are answered with an error.
    pub(crate) fn cancel_calls(&self) {
        let snapshot = self.current();
        self.services
            .background_tasks
            .spawn(async move { snapshot.pool.close().await });
    }

    /// Ends the background tasks and the connections to the servers.
    pub async fn close(&self) {
        self.services.shutdown.cancel();
        // A reload in progress ends before.
        let _reloading = self.reloading.lock().await;
        self.services.background_tasks.close();
        let snapshot = self.current();
        snapshot.pool.close().await;
        let drain = snapshot.config.limits.drain;
        if tokio::time::timeout(drain, self.services.background_tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("tasks were still running at the end");
        }
        if let Some(audit) = &self.services.observers.audit {
            audit.close().await;
        }
        if let Some(tracer) = &self.services.observers.tracer {
            tracer.close().await;
        }
    }

    /// How many spans were exported and lost; `None` if requests are not traced.
    pub fn trace_stats(&self) -> Option<TraceStats> {
        Some(self.services.observers.tracer.as_ref()?.stats())
    }

    /// Where the operator's commands go, if there are any.
    pub fn operator(&self) -> Option<&Operator> {
        self.services.operator.as_ref()
    }

    /// Tries at once to reach a server, on each connection to it that clients share and that is down. Returns whether
    /// there is a server of this name.
    pub fn retry_server(&self, name: &str) -> bool {
        let snapshot = self.current();
        let mut servers = snapshot.pool.servers.iter();
        let Some(server) = servers.find(|server| server.config.name == name) else {
            return false;
        };
        for connection in server.open_connections() {
            connection.retry_now();
        }
        true
    }

    /// Begins to record the last calls of clients, errors and refused calls.
    pub fn record_calls(&self) {
        self.services.observers.feed.record();
    }

    /// The last calls that were recorded, the latest first: at most a thousand, and from before them a hundred errors and a hundred
    /// refused calls.
    pub fn last_calls(&self) -> Vec<FinishedCall> {
        self.services.observers.feed.last_calls()
    }

    /// The calls that failed or were refused since the start, by whose they are and what came of them.
    pub fn failed_calls(&self) -> Vec<FailedCalls> {
        self.services.observers.feed.failed_calls()
    }

    /// Watches the calls of clients as they end; `None` if as many watch as can, or as many windows of this `viewer` are
    /// open as a reader may have.
    pub fn watch_requests(&self, viewer: Viewer) -> Option<RequestWatch> {
        self.services.observers.feed.watch(viewer)
    }

    /// What lists and results cost on each of the last days, in bytes by the days since 1970-01-01 UTC.
    pub fn saved_days(&self) -> BTreeMap<u64, Cost> {
        let now = (self.current().config.environment.now)();
        self.services.savings.days(now)
    }

    /// Adds what an earlier process counted of the last days.
    pub fn restore_saved_days(&self, days: BTreeMap<u64, Cost>) {
        self.services.savings.restore(days);
    }

    /// The absolute path of the audit log; `None` unless it is a file. Only the operator sees it.
    pub fn audit_file(&self) -> Option<PathBuf> {
        self.services.startup.audit_file()
    }

    /// Opens the file of the audit log again, after it was rotated. Nothing happens without one.
    pub fn reopen_audit_log(&self) {
        if let Some(audit) = &self.services.observers.audit {
            audit.reopen();
        }
    }
}

/// A registered endpoint for clients. Dropping it unregisters it.
#[derive(Debug)]
pub(crate) struct Endpoint(Arc<AtomicUsize>);

impl Endpoint {
    /// Whether it is the only endpoint.
    pub(crate) fn is_last(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 1
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
