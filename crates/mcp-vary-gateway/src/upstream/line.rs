//! A server's connection that is made again whenever it is lost.

mod backoff;
mod place;
mod pulse;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use self::backoff::Backoff;
use self::place::Places;
use self::pulse::Verdict;
use super::error::{ConnectError, UpstreamError};
use super::message::{Event, Kind};
use super::{EVENTS, Link, Upstream, UpstreamConfig};

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
/// use mcp_vary_gateway::upstream::{Line, Request, Target, UpstreamConfig};
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
    places: Places,
    _stop_when_dropped: DropGuard,
}

/// How a line stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
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
        let (events, _) = broadcast::channel(EVENTS);
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            current: ArcSwapOption::empty(),
            state: watch::Sender::new(State::Connecting),
            events,
            stop: stop.clone(),
            tasks: TaskTracker::new(),
            config,
        });
        shared.tasks.spawn(keep(Arc::clone(&shared)));
        Arc::new(Self {
            places: Places::new(&shared.config.limits),
            shared,
            _stop_when_dropped: stop.drop_guard(),
        })
    }

    /// The server as it was configured.
    #[must_use]
    pub fn config(&self) -> &UpstreamConfig {
        &self.shared.config
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
                Err(self.down(&error.told(), &error.to_string(), Some(pause)))
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

    fn closed(&self) -> UpstreamError {
        UpstreamError::closed_by_gateway(&self.config().name.as_str().into())
    }

    /// Ends the connection, or the attempt to make one, and waits until that is done; it is not made again.
    pub async fn close(&self) {
        self.shared.stop.cancel();
        self.shared.state.send_replace(State::Closed);
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
    events: broadcast::Sender<Event>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// Connects, holds the connection and connects again, until the line is closed.
async fn keep(shared: Arc<Shared>) {
    let mut keeper = Keeper {
        backoff: Backoff::new(&shared.config),
        lost: None,
        failure: None,
        shared,
    };
    let stop = keeper.shared.stop.clone();
    while !stop.is_cancelled() {
        let pause = match keeper.connect().await {
            Ok(upstream) => keeper.hold(upstream).await,
            Err(error) => keeper.failed(error),
        };
        stop.run_until_cancelled(tokio::time::sleep(pause)).await;
    }
    keeper.shared.current.store(None);
    keeper.shared.state.send_replace(State::Closed);
    let reason = format!("server `{}` was closed by the gateway", keeper.name());
    keeper.shared.tell(Event::Closed { reason });
}

/// The one task that changes how a line stands.
#[derive(Debug)]
struct Keeper {
    shared: Arc<Shared>,
    backoff: Backoff,
    /// When the server was lost.
    lost: Option<Instant>,
    /// Why the last attempt failed, as it was logged.
    failure: Option<String>,
}

/// How a connection ended.
enum End {
    /// The line was closed.
    Stopped,
    /// It is gone.
    Gone(UpstreamError),
    Verdict(Verdict),
}

impl Keeper {
    fn name(&self) -> &str {
        &self.shared.config.name
    }

    async fn connect(&self) -> Result<Arc<Upstream>, ConnectError> {
        Upstream::connect_unless(self.shared.config.clone(), &self.shared.stop).await
    }

    /// An attempt failed; the pause before the next one.
    fn failed(&mut self, error: ConnectError) -> Duration {
        let shared = Arc::clone(&self.shared);
        if shared.stop.is_cancelled() {
            return Duration::ZERO;
        }
        let pause = if error.is_lasting() {
            self.backoff.longest_pause()
        } else {
            self.backoff.pause()
        };
        let why = error.to_string();
        let server = self.name();
        if self.failure.as_ref() == Some(&why) {
            tracing::debug!(server, why, again_in = ?pause, "server still not connected");
        } else {
            tracing::warn!(server, why, again_in = ?pause, "server not connected");
            self.failure = Some(why);
        }
        shared.go_down(error, pause);
        pause
    }

    /// Serves with `upstream`, and with others that replace it, until one is lost; the pause after that.
    async fn hold(&mut self, mut upstream: Arc<Upstream>) -> Duration {
        loop {
            let began = Instant::now();
            self.failure = None;
            if let Some(lost) = self.lost.take() {
                tracing::info!(server = self.name(), after = ?lost.elapsed(), "server is back");
            }
            let end = self.shared.serve_with(&upstream).await;
            self.backoff.held(began.elapsed());
            match end {
                End::Stopped => {
                    self.shared.current.store(None);
                    self.shared.state.send_replace(State::Closed);
                    upstream.close().await;
                    return Duration::ZERO;
                }
                End::Verdict(Verdict::Replaced) => match self.replace(&upstream).await {
                    Ok(other) => upstream = other,
                    Err(error) => return self.lose(&upstream, error).await,
                },
                End::Verdict(Verdict::Hung(error)) => {
                    // Nothing that runs is answered any more.
                    let error = upstream.life.end(error);
                    return self.lose(&upstream, error.into()).await;
                }
                End::Gone(error) | End::Verdict(Verdict::Unreachable(error)) => {
                    return self.lose(&upstream, error.into()).await;
                }
            }
        }
    }

    /// Connects to the server that took the place of the one behind `old`, whose calls run on.
    async fn replace(&self, old: &Arc<Upstream>) -> Result<Arc<Upstream>, ConnectError> {
        tracing::info!(server = self.name(), "server replaced by another");
        let other = self.connect().await?;
        let limit = self.shared.config.limits.idle;
        self.shared.retire(Arc::clone(old), limit);
        Ok(other)
    }

    /// The server is lost; ends what is left of the connection. The pause before the next attempt.
    async fn lose(&mut self, upstream: &Arc<Upstream>, error: ConnectError) -> Duration {
        let shared = Arc::clone(&self.shared);
        if shared.stop.is_cancelled() {
            upstream.close().await;
            return Duration::ZERO;
        }
        self.lost = Some(Instant::now());
        let (is_first, pause) = (self.backoff.is_fresh(), self.backoff.pause());
        let (why, reason) = (error.to_string(), error.told());
        tracing::warn!(server = self.name(), why, again_in = ?pause, "server lost");
        if is_first {
            shared.state.send_replace(State::Connecting);
            shared.current.store(None);
        } else {
            shared.go_down(error, pause);
        }
        shared.tell(Event::Lost { reason });
        match &upstream.link {
            // Two processes of one server may be in each other's way.
            Link::Stdio(_) => upstream.close().await,
            Link::Http(_) => shared.retire(Arc::clone(upstream), shared.config.limits.hung),
        }
        pause
    }
}

impl Shared {
    fn tell(&self, event: Event) {
        // Nobody listening is fine.
        let _ = self.events.send(event);
    }

    fn go_down(&self, error: ConnectError, pause: Duration) {
        let again = Instant::now() + pause;
        self.state.send_replace(State::Down {
            error,
            pause,
            again,
        });
        self.current.store(None);
    }

    /// Gives `upstream` to whoever asks, until something became of it.
    async fn serve_with(&self, upstream: &Arc<Upstream>) -> End {
        // Subscribed before it is told, so that no change is missed by who reads lists then.
        let events = upstream.events();
        self.current.store(Some(Arc::clone(upstream)));
        self.state.send_replace(State::Up(Arc::clone(upstream)));
        self.tell(Event::Connected);
        tokio::select! {
            biased;
            () = self.stop.cancelled() => End::Stopped,
            error = upstream.life.ended() => End::Gone(error),
            verdict = pulse::watch(upstream) => End::Verdict(verdict),
            () = self.pass_on(events) => End::Gone(upstream.life.ended().await),
        }
    }

    /// Passes on what the server tells, until it tells no more.
    async fn pass_on(&self, mut events: broadcast::Receiver<Event>) {
        loop {
            match events.recv().await {
                Ok(Event::Closed { .. }) | Err(RecvError::Closed) => return,
                Ok(event) => self.tell(event),
                // Any list may be among what was missed.
                Err(RecvError::Lagged(_)) => {
                    for kind in Kind::ALL {
                        self.tell(Event::ListChanged(kind));
                    }
                }
            }
        }
    }

    /// Lets the calls on `upstream` come to their end, as long as the server says something within `limit`.
    fn retire(&self, upstream: Arc<Upstream>, limit: Duration) {
        upstream.stop.cancel();
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let rest = upstream.life.at_rest(limit);
            stop.run_until_cancelled(rest).await;
            upstream.close().await;
        });
    }
}
