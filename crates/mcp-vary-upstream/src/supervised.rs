//! A server's connection that is made again whenever it is lost.

mod backoff;
mod concurrency;
mod dedup;
mod health;
mod subscriptions;
mod supervisor;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::{OwnedSemaphorePermit, broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

pub use self::subscriptions::{Refused, Subscription};
use self::subscriptions::{Subscriptions, Topic};
use super::error::{ConnectError, UpstreamError};
use super::message::Event;
use super::{EVENTS, Learned, Upstream, UpstreamConfig};
pub use crate::supervised::concurrency::Places;
use crate::supervised::dedup::Overheard;
use crate::supervised::supervisor::keep;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::revision::Era;

/// A server that is connected to, watched, and connected to again when it is lost.
///
/// # Properties
///
/// No call is ever repeated: whoever asked is told that it failed, and decides. While a first loss is made
/// good, [`ready`](Self::ready) waits; after attempts that failed it says at once why. Dropping the line
/// ends the connection and everything that it runs in the background.
///
/// # Examples
///
/// ```no_run
/// use crate::{Line, Request, Target, UpstreamConfig};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let target = Target::command("mcp-server-time", []);
/// let line = Line::open(UpstreamConfig::new("time", target));
/// let _place = line.place().await?;
/// let answer = line.ready().await?.request(Request::new("tools/list", None)).await?.answer().await?;
///
/// // A server that is not there is an error, and may be there later.
/// let missing = Line::open(UpstreamConfig::new("x", Target::command("no-such-program", [])));
/// assert!(missing.tried().await.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Line {
    shared: Arc<Shared>,
    places: Arc<Places>,
    _stop_when_dropped: DropGuard,
}

/// How a line stands.
#[derive(Clone, Debug)]
pub enum State {
    /// A connection is being made: the first, or the first after one that held.
    Connecting,
    /// There is a connection.
    Up(Arc<Upstream>),
    /// There is none, and why; it is tried again in a while.
    Down {
        /// What went wrong the last time.
        error: ConnectError,
        /// How long after that it is tried again.
        pause: Duration,
        /// When that is.
        again: Instant,
    },
    /// The gateway closed it.
    Closed,
}

impl Line {
    /// Begins to connect to the server and returns at once.
    #[must_use]
    pub fn open(config: UpstreamConfig) -> Arc<Self> {
        let places = Arc::new(Places::new(&config.limits));
        Self::sharing(config, places, Arc::default())
    }

    /// The same with places for calls, and knowledge of the server, that other lines to it have, too.
    pub fn sharing(
        config: UpstreamConfig,
        places: Arc<Places>,
        learned: Arc<Learned>,
    ) -> Arc<Self> {
        let preferred = config.legacy_first.then_some(Era::Legacy);
        let (events, _) = broadcast::channel(EVENTS);
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            current: ArcSwapOption::empty(),
            state: watch::Sender::new(State::Connecting),
            since: Mutex::new(Instant::now()),
            events,
            stop: stop.clone(),
            tasks: TaskTracker::new(),
            resources: Arc::default(),
            changing_tasks: Arc::default(),
            overheard: Overheard::default(),
            learned,
            preferred: watch::Sender::new(preferred),
            era_failed: AtomicBool::new(false),
            config,
        });
        shared.tasks.spawn(keep(Arc::clone(&shared)));
        Arc::new(Self {
            places,
            shared,
            _stop_when_dropped: stop.drop_guard(),
        })
    }

    /// The server as it was configured.
    #[must_use]
    pub fn config(&self) -> &UpstreamConfig {
        &self.shared.config
    }

    /// What was learned of the server on all its connections.
    pub fn learned(&self) -> &Arc<Learned> {
        &self.shared.learned
    }

    /// Connects anew in `era` if the server may speak it and the connection is of the other one; calls that run on
    /// that come to their end there.
    pub fn prefer(&self, era: Era) {
        self.shared.preferred.send_replace(Some(era));
    }

    /// Waits while the connection is of another era than the one that is preferred, and the server may speak that.
    pub async fn in_preferred_era(&self) {
        let mut state = self.state();
        let settled = state.wait_for(|state| match state {
            State::Up(upstream) => {
                let has_failed = self.shared.era_failed.load(Ordering::Relaxed);
                has_failed || !self.shared.is_better_in_other_era(upstream)
            }
            // The next connection is of that era.
            State::Connecting | State::Down { .. } | State::Closed => true,
        });
        // An error means that the line is gone.
        let _ = settled.await;
    }

    /// The connection, when there is one.
    #[must_use]
    pub fn up(&self) -> Option<Arc<Upstream>> {
        self.shared.current.load_full()
    }

    /// How the line stands, now and whenever that changes.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<State> {
        self.shared.state.subscribe()
    }

    /// For how long it has stood like this; failing again does not count as a change.
    #[must_use]
    pub fn since(&self) -> Duration {
        let since = self.shared.since.lock();
        since.unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// What the server tells without being asked, through all its connections, and
    /// [`Event::Connected`] and [`Event::Lost`] in between; [`Event::Closed`] is the last.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.shared.events.subscribe()
    }

    /// A place for one call among those that the server may have at once, until the permit is dropped.
    ///
    /// # Errors
    ///
    /// [`UpstreamError::Crowded`] when none became free in time, or when too many wait for one already.
    pub async fn place(&self) -> Result<OwnedSemaphorePermit, UpstreamError> {
        self.places.take(&self.shared.config.name).await
    }

    /// The connection; waits a little while one is being made.
    ///
    /// # Errors
    ///
    /// [`UpstreamError::Down`] when there is none, with the reason and when it is tried again.
    pub async fn ready(&self) -> Result<Arc<Upstream>, UpstreamError> {
        if let Some(upstream) = self.up().filter(|upstream| upstream.life.how().is_none()) {
            return Ok(upstream);
        }
        let mut state = self.state();
        let over = state.wait_for(|state| match state {
            State::Connecting => false,
            // Its loss is noticed in a moment.
            State::Up(upstream) => upstream.life.how().is_none(),
            State::Down { .. } | State::Closed => true,
        });
        let over = tokio::time::timeout(self.config().limits.patience, over).await;
        match over.as_ref().map(Result::as_deref) {
            Ok(Ok(State::Up(upstream))) => Ok(Arc::clone(upstream)),
            Ok(Ok(State::Down { error, again, .. })) => {
                let pause = again.saturating_duration_since(Instant::now());
                let pause = Some(pause).filter(|pause| *pause < supervisor::NEVER / 2);
                Err(self.down(&error.told(), &error.to_string(), pause))
            }
            Ok(_) => Err(self.closed()),
            Err(_elapsed) => {
                let reason = "it is still being connected to";
                Err(self.down(reason, reason, None))
            }
        }
    }

    fn down(&self, reason: &str, details: &str, pause: Option<Duration>) -> UpstreamError {
        let name = &self.config().name;
        // The error that holds it has named the server.
        let start = format!("server `{name}`");
        let bare = |text: &str| match text.strip_prefix(&start) {
            Some(rest) => rest
                .strip_prefix(": ")
                .map_or_else(|| format!("it{rest}"), str::to_owned),
            None => text.to_owned(),
        };
        UpstreamError::Down {
            server: name.as_str().into(),
            reason: bare(reason).into(),
            details: bare(details).into(),
            pause,
        }
    }

    /// Subscribes to the resource that the server calls `uri`, on this connection and on those after it, until
    /// the guard and all others of the same URI are dropped. What the server tells is an
    /// [`Event::ResourceUpdated`].
    pub fn subscribe(&self, uri: &str) -> Subscription {
        self.shared.of(Topic::Resources).add(uri)
    }

    /// The same, after another connection told of the resource until now: it may have changed in between.
    pub fn subscribe_again(&self, uri: &str) -> Subscription {
        self.shared.of(Topic::Resources).add_again(uri)
    }

    /// Resources that somebody is subscribed to and of which the server does not refuse to tell, as many as `most`.
    pub fn listened_to(&self, most: usize) -> BTreeSet<Arc<str>> {
        self.shared.of(Topic::Resources).some_wanted(most)
    }

    /// Changes whenever those may be others.
    pub fn listening(&self) -> watch::Receiver<u64> {
        self.shared.of(Topic::Resources).changes()
    }

    /// The same for the task that the server calls `id`. What the server tells is an [`Event::TaskChanged`].
    pub fn listen_to_task(&self, id: &str) -> Subscription {
        self.shared.of(Topic::Tasks).add(id)
    }

    /// The same, after another connection told of the task until now.
    pub fn listen_to_task_again(&self, id: &str) -> Subscription {
        self.shared.of(Topic::Tasks).add_again(id)
    }

    /// Whether both are connections to one server of the configuration.
    pub fn is_to_the_server_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.places, &other.places)
    }

    /// Another connection to the server announced that its lists changed; those of this one may have, too.
    pub fn may_have_changed(&self, kind: Kind) {
        self.shared.tell(Event::ListMayHaveChanged(kind));
    }

    /// Waits until the first attempt to connect has ended.
    ///
    /// # Errors
    ///
    /// Why it failed; it is tried again all the same.
    pub async fn tried(&self) -> Result<Arc<Upstream>, ConnectError> {
        let mut state = self.state();
        let over = state.wait_for(|state| !matches!(state, State::Connecting));
        match over.await.as_deref() {
            Ok(State::Up(upstream)) => Ok(Arc::clone(upstream)),
            Ok(State::Down { error, .. }) => Err(error.clone()),
            _ => Err(self.closed().into()),
        }
    }

    /// Waits until no call runs on the connection, or the server says nothing for as long as one may take.
    pub async fn at_rest(&self) {
        if let Some(upstream) = self.up() {
            upstream.life.at_rest(self.config().limits.idle).await;
        }
    }

    fn closed(&self) -> UpstreamError {
        UpstreamError::closed_by_gateway(&self.config().name.as_str().into())
    }

    /// Ends the connection, or the attempt to make one, and waits until that is done; it is not made again.
    pub async fn close(&self) {
        self.shared.stop.cancel();
        self.shared.turn(State::Closed);
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

/// What a line and its tasks have in common.
#[derive(Debug)]
struct Shared {
    config: UpstreamConfig,
    current: ArcSwapOption<Upstream>,
    state: watch::Sender<State>,
    /// When the state was last another.
    since: Mutex<Instant>,
    events: broadcast::Sender<Event>,
    stop: CancellationToken,
    tasks: TaskTracker,
    /// The resources of whose changes somebody wants to hear.
    resources: Arc<Subscriptions>,
    /// The tasks of whose changes somebody wants to hear.
    changing_tasks: Arc<Subscriptions>,
    overheard: Overheard,
    learned: Arc<Learned>,
    /// The era of the clients that the connection is for, where it is for one kind.
    preferred: watch::Sender<Option<Era>>,
    /// Whether a connection in that era failed for a reason that may pass.
    era_failed: AtomicBool,
}

impl Shared {
    /// Whether the server may speak the preferred era, and `upstream` is of the other one.
    fn is_better_in_other_era(&self, upstream: &Upstream) -> bool {
        match *self.preferred.borrow() {
            Some(era) => upstream.hello().era() != era && self.learned.may_speak(era),
            None => false,
        }
    }

    /// Says how the line stands from now on.
    fn turn(&self, state: State) {
        let kind = std::mem::discriminant(&state);
        let before = self.state.send_replace(state);
        if std::mem::discriminant(&before) != kind {
            let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
            *since = Instant::now();
        }
    }
}
