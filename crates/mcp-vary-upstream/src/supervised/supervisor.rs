//! What keeps a line connected: the one task that connects, waits for the loss and connects again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::StatusCode;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::revision::Era;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::backoff::{Backoff, rounded};
use super::{Shared, State, Topic, subscriptions};
use crate::chain::REFUSAL;
use crate::error::{ConnectError, UpstreamError};
use crate::message::Event;
use crate::supervised::health::{self, Verdict};
use crate::{Link, Target, Upstream};

/// Connects, holds the connection and connects again, until the line is closed.
pub(super) async fn keep(shared: Arc<Shared>) {
    let mut keeper = Keeper {
        backoff: Backoff::new(&shared.config),
        lost: None,
        failure: None,
        preferred: shared.preferred.subscribe(),
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
    keeper.shared.turn(State::Closed);
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
    /// The era that is preferred, as it was seen when the last attempt began.
    preferred: watch::Receiver<Option<Era>>,
}

/// How a connection ended.
enum End {
    /// The line was closed.
    Stopped,
    /// It is gone.
    Gone(UpstreamError),
    Verdict(Verdict),
    /// This connection takes its place, of the era that its clients prefer.
    Other(Arc<Upstream>),
}

impl Keeper {
    fn name(&self) -> &str {
        &self.shared.config.name
    }

    /// Connects, once more if the first connection shows that the server may speak the preferred era, too.
    async fn connect(&mut self) -> Result<Arc<Upstream>, ConnectError> {
        let upstream = self.attempt().await?;
        if !self.shared.is_better_in_other_era(&upstream) {
            return Ok(upstream);
        }
        upstream.close().await;
        self.attempt().await
    }

    async fn attempt(&mut self) -> Result<Arc<Upstream>, ConnectError> {
        let preferred = *self.preferred.borrow_and_update();
        self.shared.attempt(preferred).await
    }

    /// An attempt failed; the pause before the next one.
    fn failed(&mut self, error: ConnectError) -> Duration {
        let shared = Arc::clone(&self.shared);
        if shared.stop.is_cancelled() {
            return Duration::ZERO;
        }
        let is_process = matches!(shared.config.target, Target::Command { .. });
        if is_process && matches!(error, ConnectError::Circle { .. }) {
            if shared.config.circle.set(error.clone()).is_ok() {
                tracing::warn!(why = %error, "server left out");
            }
            // Its next start would be the same, until its entry is another.
            shared.go_down(error, NEVER);
            return NEVER;
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
                let after = rounded(lost.elapsed());
                tracing::info!(server = self.name(), ?after, "server is back");
            }
            let end = self.shared.serve_with(&upstream, &mut self.preferred).await;
            self.backoff.held(began.elapsed());
            match end {
                End::Stopped => {
                    self.shared.current.store(None);
                    self.shared.turn(State::Closed);
                    upstream.close().await;
                    return Duration::ZERO;
                }
                End::Verdict(Verdict::Replaced) => {
                    tracing::info!(server = self.name(), "server replaced by another");
                    match self.connect().await {
                        Ok(other) => self.shared.replace(&mut upstream, other),
                        Err(error) => return self.lose(&upstream, error).await,
                    }
                }
                End::Other(other) => self.shared.replace(&mut upstream, other),
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
        let loss = match &error {
            ConnectError::Failed(loss) => Some(loss.clone()),
            _ => None,
        };
        tracing::warn!(server = self.name(), why, again_in = ?pause, "server lost");
        if is_first {
            shared.turn(State::Connecting);
            shared.current.store(None);
        } else {
            shared.go_down(error, pause);
        }
        shared.tell(Event::Lost { reason });
        match &upstream.link {
            // Two processes of one server may be in each other's way.
            Link::Stdio(_) => upstream.close().await,
            Link::Http(_) => {
                let patience = shared.patience_with_the_lost();
                shared.retire(Arc::clone(upstream), loss, patience);
            }
        }
        pause
    }
}

/// Whether a server refused since it, or one behind it, is a gateway that this one is behind.
fn is_circle(error: &ConnectError) -> bool {
    match error {
        ConnectError::Failed(UpstreamError::Closed { last_words, .. }) => {
            let is_refusal = |line: &str| {
                line.starts_with(REFUSAL)
                    || line.starts_with("error: ") && line.contains(LEADS_BACK)
            };
            last_words.split(" | ").any(is_refusal)
        }
        ConnectError::Failed(UpstreamError::Status { status, .. }) => {
            *status == StatusCode::LOOP_DETECTED
        }
        _ => false,
    }
}

/// What a gateway says that ends since its only server leads back to it.
const LEADS_BACK: &str = "is this gateway itself, or leads back to it";

/// A pause without end: ten years.
pub(super) const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

impl Shared {
    pub(super) fn tell(&self, event: Event) {
        if let Event::ResourceUpdated { uri, .. } = &event {
            self.overheard.take(uri);
        }
        // Nobody listening is fine.
        let _ = self.events.send(event);
    }

    /// How long calls on a connection that is lost may stay without any sign of life.
    fn patience_with_the_lost(&self) -> Duration {
        let limits = &self.config.limits;
        if limits.hung.is_zero() {
            limits.idle
        } else {
            limits.hung
        }
    }

    fn go_down(&self, error: ConnectError, pause: Duration) {
        let again = Instant::now() + pause;
        self.turn(State::Down {
            error,
            pause,
            again,
        });
        self.current.store(None);
    }

    /// Gives `upstream` to whoever asks, until something became of it.
    async fn serve_with(
        &self,
        upstream: &Arc<Upstream>,
        preferred: &mut watch::Receiver<Option<Era>>,
    ) -> End {
        // Subscribed before it is told, so that no change is missed by who reads lists then.
        let events = upstream.events();
        self.current.store(Some(Arc::clone(upstream)));
        self.turn(State::Up(Arc::clone(upstream)));
        self.tell(Event::Connected);
        tokio::select! {
            biased;
            () = self.stop.cancelled() => End::Stopped,
            error = upstream.life.ended() => End::Gone(error),
            verdict = health::watch(upstream) => End::Verdict(verdict),
            () = self.pass_on(events) => End::Gone(upstream.life.ended().await),
            other = self.in_other_era(upstream, preferred) => End::Other(other),
            never = subscriptions::keep(upstream, self) => match never {},
        }
    }

    /// Connects once, in the era `preferred` where the server speaks it.
    async fn attempt(&self, preferred: Option<Era>) -> Result<Arc<Upstream>, ConnectError> {
        if let Some(circle) = self.config.circle.get() {
            return Err(circle.clone());
        }
        let opening = self.learned.opening(preferred);
        let connecting = Upstream::connect_unless(self.config.clone(), opening, &self.stop);
        let connected = connecting.await.map_err(|error| match is_circle(&error) {
            true => ConnectError::Circle {
                server: self.config.name.as_str().into(),
            },
            false => error,
        });
        match &connected {
            Ok(upstream) => self.learned.note(upstream.hello(), opening),
            // Another server may have taken its place that ignores what this one answered.
            Err(ConnectError::Timeout { .. } | ConnectError::Handshake { .. }) => {
                self.learned.forget();
            }
            Err(_) => {}
        }
        connected
    }

    /// A connection of the other era than `upstream`, once that is preferred and the server speaks it.
    async fn in_other_era(
        &self,
        upstream: &Upstream,
        preferred: &mut watch::Receiver<Option<Era>>,
    ) -> Arc<Upstream> {
        while preferred.changed().await.is_ok() {
            if !self.is_better_in_other_era(upstream) {
                continue;
            }
            let preferred = *preferred.borrow_and_update();
            match self.attempt(preferred).await {
                Ok(other) if Some(other.hello().era()) == preferred => return other,
                Ok(other) => other.close().await,
                Err(error) => {
                    let (server, why) = (&self.config.name, error.to_string());
                    tracing::debug!(server, why, "not connected in the era of its clients");
                    self.era_failed.store(true, Ordering::Relaxed);
                }
            }
            // Wakes the tasks that wait for it, which look again.
            self.state.send_modify(|_| {});
        }
        std::future::pending().await
    }

    /// Lets `other` take the place of `upstream`, whose calls run on.
    fn replace(&self, upstream: &mut Arc<Upstream>, other: Arc<Upstream>) {
        let old = std::mem::replace(upstream, other);
        self.retire(old, None, self.config.limits.idle);
    }

    /// Passes on what the server tells, until it tells no more.
    async fn pass_on(&self, mut events: broadcast::Receiver<Event>) {
        loop {
            match events.recv().await {
                Ok(Event::Closed { .. }) | Err(RecvError::Closed) => return,
                Ok(event) => self.tell(event),
                // Any list and resource may be among what was missed.
                Err(RecvError::Lagged(_)) => {
                    for kind in Kind::ALL {
                        self.tell(Event::ListMayHaveChanged(kind));
                    }
                    for uri in self.of(Topic::Resources).held() {
                        self.tell(Event::may_be_updated(&uri));
                    }
                }
            }
        }
    }

    /// Lets the calls on `upstream` come to their end, as long as the server says something within `limit`.
    ///
    /// Whoever still has it in hand and asks it then is told of the `loss`.
    fn retire(&self, upstream: Arc<Upstream>, loss: Option<UpstreamError>, limit: Duration) {
        upstream.stop.cancel();
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let rest = upstream.life.at_rest(limit);
            if let (Some(()), Some(loss)) = (stop.run_until_cancelled(rest).await, loss) {
                upstream.life.end(loss);
            }
            upstream.close().await;
        });
    }
}
