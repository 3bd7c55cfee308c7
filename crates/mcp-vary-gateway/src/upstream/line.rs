//! A server's connection that is made again whenever it is lost.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::error::{ConnectError, UpstreamError};
use super::message::Event;
use super::{EVENTS, Upstream, UpstreamConfig};

/// A server that is connected to, watched, and connected to again when it is lost.
///
/// # Properties
///
/// Dropping it ends the connection and everything that it runs in the background.
#[derive(Debug)]
pub struct Line {
    config: UpstreamConfig,
    current: ArcSwapOption<Upstream>,
    state: watch::Sender<State>,
    events: broadcast::Sender<Event>,
    stop: CancellationToken,
    _stop_when_dropped: DropGuard,
}

/// How a line stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum State {
    /// A connection is being made.
    Connecting,
    /// There is a connection.
    Up(Arc<Upstream>),
    /// There is none, and why; it is tried again in a while.
    Down {
        /// What went wrong the last time.
        error: ConnectError,
        /// How long after that it is tried again.
        pause: Duration,
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
        let line = Arc::new(Self {
            config,
            current: ArcSwapOption::empty(),
            state: watch::Sender::new(State::Connecting),
            events,
            _stop_when_dropped: stop.clone().drop_guard(),
            stop,
        });
        tokio::spawn(connect_once(Arc::clone(&line)));
        line
    }

    /// The server as it was configured.
    #[must_use]
    pub const fn config(&self) -> &UpstreamConfig {
        &self.config
    }

    /// The connection, when there is one.
    #[must_use]
    pub fn up(&self) -> Option<Arc<Upstream>> {
        self.current.load_full()
    }

    /// How the line stands, now and whenever that changes.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// What the server tells without being asked, through all its connections, and
    /// [`Event::Connected`] and [`Event::Lost`] in between.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// The connection; waits a little while one is being made.
    ///
    /// # Errors
    ///
    /// [`UpstreamError::Down`] when there is none, with the reason and when it is tried again.
    pub async fn ready(&self) -> Result<Arc<Upstream>, UpstreamError> {
        if let Some(upstream) = self.up() {
            return Ok(upstream);
        }
        let mut state = self.state.subscribe();
        let over = state.wait_for(|state| !matches!(state, State::Connecting));
        let over = tokio::time::timeout(self.config.limits.patience, over).await;
        let (reason, pause) = match over.as_ref().map(Result::as_deref) {
            Ok(Ok(State::Up(upstream))) => return Ok(Arc::clone(upstream)),
            Ok(Ok(State::Down { error, pause })) => (error.to_string(), Some(*pause)),
            Ok(_) => ("it was closed by the gateway".to_owned(), None),
            Err(_) => ("it is still being started".to_owned(), None),
        };
        Err(UpstreamError::Down {
            server: self.config.name.as_str().into(),
            reason: reason.into(),
            pause,
        })
    }

    /// Waits until the first attempt to connect has ended.
    ///
    /// # Errors
    ///
    /// Why it failed; it is tried again all the same.
    pub async fn tried(&self) -> Result<Arc<Upstream>, ConnectError> {
        let mut state = self.state.subscribe();
        let over = state.wait_for(|state| !matches!(state, State::Connecting));
        match over.await.as_deref() {
            Ok(State::Up(upstream)) => Ok(Arc::clone(upstream)),
            Ok(State::Down { error, .. }) => Err(error.clone()),
            _ => Err(ConnectError::Failed(UpstreamError::Closed {
                server: self.config.name.as_str().into(),
                reason: "was closed by the gateway".into(),
                last_words: Arc::default(),
            })),
        }
    }

    /// Ends the connection, and waits until that is done; it is not made again.
    pub async fn close(&self) {
        self.stop.cancel();
        self.state.send_replace(State::Closed);
        if let Some(upstream) = self.current.swap(None) {
            upstream.close().await;
        }
    }
}

async fn connect_once(line: Arc<Line>) {
    match Upstream::connect(line.config.clone()).await {
        Ok(upstream) => {
            let mut events = upstream.events();
            line.current.store(Some(Arc::clone(&upstream)));
            line.state.send_replace(State::Up(upstream));
            let _ = line.events.send(Event::Connected);
            let (sender, stop) = (line.events.clone(), line.stop.clone());
            drop(line);
            let pass_on = async {
                while let Ok(event) = events.recv().await {
                    let _ = sender.send(event);
                }
            };
            stop.run_until_cancelled(pass_on).await;
        }
        Err(error) => {
            let pause = Duration::MAX;
            line.state.send_replace(State::Down { error, pause });
        }
    }
}
