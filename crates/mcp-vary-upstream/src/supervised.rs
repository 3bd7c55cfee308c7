//! A connection to a server that is re-established whenever it is lost.

mod attempt;
mod backoff;
mod concurrency;
mod dedup;
mod health;
mod ready;
mod shared;
mod subscriber;
mod subscriptions;
mod supervisor;
mod topic;
mod turns;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use mcp_vary_base::tasks::TaskTracker;
use tokio::sync::{Notify, OwnedSemaphorePermit, broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use mcp_vary_base::caller_token::CallerToken;
use mcp_vary_base::lock::Lock;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::sanitize::excerpt;

pub use self::concurrency::ConcurrencyLimit;
use self::dedup::UpdateDedup;
use self::shared::{AttemptCounters, Shared};
pub use self::shared::{ConnectAttempts, ConnectionState};
pub use self::subscriptions::{SubscribeError, Subscription};
pub use self::supervisor::CONNECT_TARGET;
use self::supervisor::supervise;
use self::topic::Topic;
use crate::config::{Target, UpstreamConfig};
use crate::connect_error::ConnectError;
use crate::connection::UpstreamConnection;
use crate::error::{STDERR_LINES, UpstreamError};
use crate::message::{EVENT_CAPACITY, Event};
use crate::server_facts::ServerFacts;

/// A connection to a server with health checks and reconnects.
///
/// # Properties
///
/// Calls are never retried here: they fail, and their caller decides. After a first loss, [`ready`](Self::ready) waits
/// for the new connection; after failed attempts it returns the reason at once. Dropping it ends the connection and all
/// its background tasks.
///
/// # Examples
///
/// ```no_run
/// use mcp_vary_upstream::{SupervisedConnection, Request, Target, UpstreamConfig};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let target = Target::command("mcp-server-time", []);
/// let connection = SupervisedConnection::open(UpstreamConfig::new("time", target));
/// let _permit = connection.acquire().await?;
/// let answer = connection.ready().await?.request(Request::new("tools/list", None)).await?.answer().await?;
///
/// // A server that cannot be started is an error; it is retried in the background.
/// let missing = SupervisedConnection::open(UpstreamConfig::new("x", Target::command("no-such-program", [])));
/// assert!(missing.first_attempt().await.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SupervisedConnection {
    shared: Arc<Shared>,
    concurrency: Arc<ConcurrencyLimit>,
    _stop_when_dropped: DropGuard,
}

impl SupervisedConnection {
    /// Starts to connect to the server in the background.
    pub fn open(config: UpstreamConfig) -> Arc<Self> {
        let concurrency = Arc::new(ConcurrencyLimit::new(&config.limits));
        Self::open_sharing(config, concurrency, Arc::default())
    }

    /// Like [`open`](Self::open), with a concurrency limit and facts that are shared with other connections to the server.
    pub fn open_sharing(
        config: UpstreamConfig,
        concurrency: Arc<ConcurrencyLimit>,
        learned: Arc<ServerFacts>,
    ) -> Arc<Self> {
        let preferred = config.legacy_first.then_some(Era::Legacy);
        let (events, _) = broadcast::channel(EVENT_CAPACITY);
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            current: ArcSwapOption::empty(),
            state: watch::Sender::new(ConnectionState::Connecting),
            state_since: Lock::new(Instant::now()),
            events,
            stop: stop.clone(),
            retry: Notify::new(),
            tasks: TaskTracker::new(),
            resources: Arc::default(),
            task_updates: Arc::default(),
            dedup: UpdateDedup::default(),
            server_facts: learned,
            preferred: watch::Sender::new(preferred),
            era_failed: AtomicBool::new(false),
            attempts: AttemptCounters::default(),
            turn_began: Lock::new(Some(Instant::now())),
            late: AtomicU32::new(0),
            config,
        });
        shared.tasks.spawn(supervise(Arc::clone(&shared)));
        Arc::new(Self {
            concurrency,
            shared,
            _stop_when_dropped: stop.drop_guard(),
        })
    }

    /// The configuration of the server.
    pub fn config(&self) -> &UpstreamConfig {
        &self.shared.config
    }

    /// The facts about the server, from all its connections.
    pub fn server_facts(&self) -> &Arc<ServerFacts> {
        &self.shared.server_facts
    }

    /// Reconnects in `era` if the server may support it and the connection uses the other one. Calls in flight finish on the
    /// old connection.
    pub fn prefer_era(&self, era: Era) {
        self.shared.preferred.send_replace(Some(era));
    }

    /// Waits until the connection uses the preferred era, or the server is known not to support it.
    pub async fn wait_for_preferred_era(&self) {
        let mut state = self.state();
        let settled = state.wait_for(|state| match state {
            ConnectionState::Connected(upstream) => {
                let has_failed = self.shared.era_failed.load(Ordering::Relaxed);
                has_failed || !self.shared.is_better_in_other_era(upstream)
            }
            // The next connection will use that era.
            ConnectionState::Connecting
            | ConnectionState::Disconnected { .. }
            | ConnectionState::Closed => true,
        });
        // An error means that the supervisor has ended.
        let _ = settled.await;
    }

    /// The current connection, if there is one.
    pub fn current(&self) -> Option<Arc<UpstreamConnection>> {
        self.shared.current.load_full()
    }

    /// Gives the sources of credentials the latest token of the only client. If the connection is down, it is tried again with
    /// a token that is new, and this waits for the attempt.
    pub async fn present(&self, caller: &CallerToken) {
        let sources = self.config().credentials.iter();
        let is_new = sources.filter(|credential| credential.source.present(caller));
        let mut state = self.state();
        if is_new.count() > 0 && self.current().is_none() {
            let limit = self.config().limits.ready_timeout;
            // `ready` returns the error.
            let _ = tokio::time::timeout(limit, state.changed()).await;
        }
    }

    /// Ends the pause before the next attempt, if the last one failed.
    pub fn retry_now(&self) {
        self.shared.state.send_if_modified(|state| {
            if let ConnectionState::Disconnected { retry_at, .. } = state {
                *retry_at = Instant::now();
                self.shared.retry.notify_one();
            }
            // Those who wait for the outcome of the attempt go on waiting.
            false
        });
    }

    /// The state and its changes.
    pub fn state(&self) -> watch::Receiver<ConnectionState> {
        self.shared.state.subscribe()
    }

    /// Whether its program waits for its turn to be started.
    pub fn is_waiting(&self) -> bool {
        self.shared.turn_began.lock().is_none()
    }

    /// The attempts to connect so far.
    pub fn connect_attempts(&self) -> ConnectAttempts {
        self.shared.attempts.load()
    }

    /// How long the current state has lasted; another failed attempt does not count as a change.
    pub fn in_state_for(&self) -> Duration {
        let since = self.shared.state_since.lock();
        since.elapsed()
    }

    /// The events of all successive connections, with [`Event::Connected`] and [`Event::Lost`] in between;
    /// [`Event::Closed`] is the last.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.shared.events.subscribe()
    }

    /// Acquires a permit for one call from the server's concurrency limit.
    ///
    /// # Errors
    ///
    /// [`UpstreamError::Overloaded`] when no permit became free in time, or when too many calls are queued already.
    pub async fn acquire(&self) -> Result<OwnedSemaphorePermit, UpstreamError> {
        self.concurrency.acquire(&self.shared.config.name).await
    }

    /// Returns the connection; waits up to `limits.ready_timeout` while it is being established. The time counts from the turn
    /// of its program to start, which is waited for up to `limits.handshake`.
    ///
    /// # Errors
    ///
    /// [`UpstreamError::Unavailable`] when there is none, with the reason and the time of the next attempt.
    pub async fn ready(&self) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        if let Some(upstream) = self
            .current()
            .filter(|upstream| upstream.liveness.end_reason().is_none())
        {
            return Ok(upstream);
        }
        let mut state = self.state();
        let over = state.wait_for(|state| match state {
            ConnectionState::Connecting => false,
            // The supervisor is about to notice that it ended.
            ConnectionState::Connected(upstream) => upstream.liveness.end_reason().is_none(),
            ConnectionState::Disconnected { .. } | ConnectionState::Closed => true,
        });
        let limits = &self.config().limits;
        let over = ready::wait(over, limits, &self.shared.turn_began).await;
        match over.as_ref().map(Result::as_deref) {
            Ok(Ok(ConnectionState::Connected(upstream))) => Ok(Arc::clone(upstream)),
            Ok(Ok(ConnectionState::Disconnected {
                error: ConnectError::UnusableClaims { server, why },
                ..
            })) => Err(UpstreamError::UnusableClaims {
                server: Arc::clone(server),
                why: Arc::clone(why),
            }),
            Ok(Ok(ConnectionState::Disconnected {
                error: ConnectError::Failed(error @ UpstreamError::NoConnectionLeft { .. }),
                ..
            })) => Err(error.clone()),
            Ok(Ok(ConnectionState::Disconnected {
                error, retry_at, ..
            })) => {
                let pause = retry_at.saturating_duration_since(Instant::now());
                let pause = Some(pause).filter(|pause| *pause < supervisor::NEVER / 2);
                let reason = error.client_message() + &self.further_process_advice(error);
                Err(self.unavailable(&reason, &error.to_string(), pause))
            }
            Ok(_) => Err(self.closed()),
            Err(_elapsed) => {
                let reason = "the gateway is still connecting to it";
                Err(self.unavailable(reason, reason, None))
            }
        }
    }

    /// What to do if the `error` is that a process beside the first one ended, since only one can run.
    fn further_process_advice(&self, error: &ConnectError) -> String {
        let config = self.config();
        let is_program = matches!(config.target, Target::Command { .. });
        let ConnectError::Failed(UpstreamError::Closed { output, .. }) = error else {
            return String::new();
        };
        if !is_program || !config.is_further {
            return String::new();
        }
        let lines = output.split_once(STDERR_LINES).map(|(_, lines)| lines);
        let last = lines.and_then(|lines| lines.rsplit(" | ").next());
        let shown = last.map(|line| excerpt(line.as_bytes(), 200));
        let wrote = shown.map_or_else(String::new, |line| format!(" and wrote `{line}`"));
        format!(
            "; it was a process beside the first one, for a client with other capabilities{wrote}; if only one can run at a \
             time, set `processes: one` for the server"
        )
    }

    fn unavailable(&self, reason: &str, details: &str, pause: Option<Duration>) -> UpstreamError {
        let name = &self.config().name;
        // The error that contains the reason names the server already.
        let start = format!("server `{name}`");
        let bare = |text: &str| match text.strip_prefix(&start) {
            Some(after) => after
                .strip_prefix(": ")
                .map_or_else(|| format!("it{after}"), str::to_owned),
            None => text.to_owned(),
        };
        UpstreamError::Unavailable {
            server: name.as_str().into(),
            reason: bare(reason).into(),
            details: bare(details).into(),
            pause,
        }
    }

    /// Subscribes to the server's resource `uri`, on this connection and its successors, until all guards of the same URI
    /// are dropped. Updates arrive as [`Event::ResourceUpdated`].
    pub fn subscribe(&self, uri: &str) -> Subscription {
        self.shared.subscriptions(Topic::Resources).add(uri)
    }

    /// Like [`subscribe`](Self::subscribe), for a subscription that moves here from another connection: the resource may
    /// have changed in between.
    pub fn resubscribe(&self, uri: &str) -> Subscription {
        let subscription = self.shared.subscriptions(Topic::Resources).add_moved(uri);
        // The update that follows a new subscription was before this one.
        if subscription.is_active() {
            self.resource_may_have_changed(&subscription.uri);
        }
        subscription
    }

    /// The subscribed resources whose subscription the server has not rejected, at most `most`.
    pub fn subscribed_resources(&self, most: usize) -> BTreeSet<Arc<str>> {
        self.shared
            .subscriptions(Topic::Resources)
            .wanted_up_to(most)
    }

    /// Changes whenever [`subscribed_resources`](Self::subscribed_resources) may have changed.
    pub fn subscription_changes(&self) -> watch::Receiver<u64> {
        self.shared.subscriptions(Topic::Resources).changes()
    }

    /// Subscribes to the server's task `id`. Updates arrive as [`Event::TaskChanged`].
    pub fn subscribe_task(&self, id: &str) -> Subscription {
        self.shared.subscriptions(Topic::Tasks).add(id)
    }

    /// Like [`subscribe_task`](Self::subscribe_task), for a subscription that moves here from another connection.
    pub fn resubscribe_task(&self, id: &str) -> Subscription {
        self.shared.subscriptions(Topic::Tasks).add_moved(id)
    }

    /// Whether both connections belong to the same server of the configuration.
    pub fn has_same_server(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.concurrency, &other.concurrency)
    }

    /// Reports that another connection to the server announced a change of a list: the list may differ here, too.
    pub fn list_may_have_changed(&self, kind: Kind) {
        self.shared.publish(Event::ListMayHaveChanged(kind));
    }

    /// Reports that a resource update arrived on another connection. If the resource is subscribed here, the update is
    /// published here as well, unless the server sends its own within `DEDUP_WINDOW`. Updates of several connections
    /// within that time are published once.
    pub fn resource_updated_elsewhere(&self, uri: Arc<str>, params: Option<Arc<str>>) {
        let shared = Arc::clone(&self.shared);
        // Bounded by the number of subscriptions.
        if !shared.subscriptions(Topic::Resources).contains(&uri)
            || !shared.dedup.insert(Arc::clone(&uri), params)
        {
            return;
        }
        let stop = shared.stop.clone();
        let publishing = async move {
            tokio::time::sleep(DEDUP_WINDOW).await;
            if let Some(params) = shared.dedup.take(&uri) {
                shared.publish(Event::ResourceUpdated { uri, params });
            }
        };
        let tasks = &self.shared.tasks;
        tasks.spawn(stop.run_until_cancelled_owned(publishing));
    }

    /// Reports that a resource may have changed without a notification.
    pub fn resource_may_have_changed(&self, uri: &Arc<str>) {
        self.resource_updated_elsewhere(Arc::clone(uri), None);
    }

    /// Waits until the first attempt to connect has ended.
    ///
    /// # Errors
    ///
    /// Why the attempt failed. It is retried in the background.
    pub async fn first_attempt(&self) -> Result<Arc<UpstreamConnection>, ConnectError> {
        let mut state = self.state();
        let over = state.wait_for(|state| !matches!(state, ConnectionState::Connecting));
        match over.await.as_deref() {
            Ok(ConnectionState::Connected(upstream)) => Ok(Arc::clone(upstream)),
            Ok(ConnectionState::Disconnected { error, .. }) => Err(error.clone()),
            _ => Err(self.closed().into()),
        }
    }

    /// Waits until no call is in flight, or the server has been silent for `limits.idle`.
    pub async fn drained(&self) {
        if let Some(upstream) = self.current() {
            upstream.liveness.drained(self.config().limits.idle).await;
        }
    }

    fn closed(&self) -> UpstreamError {
        UpstreamError::closed_by_gateway(&self.config().name.as_str().into())
    }

    /// Closes the connection or ends the current attempt, and waits until that is done. There are no further attempts.
    pub async fn close(&self) {
        self.shared.stop.cancel();
        self.shared.set_state(ConnectionState::Closed);
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

/// Servers that notify every session of an update do so at the same time.
const DEDUP_WINDOW: Duration = Duration::from_millis(100);
