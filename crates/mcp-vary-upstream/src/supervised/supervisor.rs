//! The supervisor: the task that connects, watches the connection, and reconnects when it is lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_vary_http_client::credential_source::renewed;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::revision::Era;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::backoff::{Backoff, rounded};
use super::shared::{ConnectionState, Shared};
use super::subscriber;
use super::topic::Topic;
use crate::config::Target;
use crate::connect_error::ConnectError;
use crate::connection::UpstreamConnection;
use crate::error::{UpstreamError, without_server};
use crate::message::Event;
use crate::supervised::health::{self, Health};
use crate::transport::Transport;

/// Connects, serves until the connection is lost, and reconnects, until the supervised connection is closed.
pub(super) async fn supervise(shared: Arc<Shared>) {
    let mut keeper = Supervisor {
        backoff: Backoff::new(&shared.config),
        lost_at: None,
        last_failure: None,
        preferred_era: shared.preferred.subscribe(),
        reached: shared.server_facts.reached(),
        is_transient: true,
        shared,
    };
    let stop = keeper.shared.stop.clone();
    while !stop.is_cancelled() {
        keeper.reached.mark_unchanged();
        let pause = match keeper.connect().await {
            Ok(upstream) => keeper.serve(upstream).await,
            Err(error) => keeper.on_failure(error),
        };
        let Shared { config, retry, .. } = &*keeper.shared;
        // Programs are started for each connection: that one starts says nothing of another.
        let is_one_for_all = keeper.is_transient && matches!(config.target, Target::Http { .. });
        let waited = async {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = retry.notified() => {}
                () = renewed(&config.credentials), if config.refusal.is_none() => {}
                () = reached_by_others(&mut keeper.reached), if is_one_for_all => {}
            }
        };
        stop.run_until_cancelled(waited).await;
    }
    keeper.shared.current.store(None);
    keeper.shared.set_state(ConnectionState::Closed);
    let reason = format!("server `{}` was closed by the gateway", keeper.name());
    keeper.shared.publish(Event::Closed { reason });
}

/// The only writer of a supervised connection's state.
#[derive(Debug)]
struct Supervisor {
    shared: Arc<Shared>,
    backoff: Backoff,
    /// When the connection was lost.
    lost_at: Option<Instant>,
    /// Why the last attempt failed, as logged.
    last_failure: Option<String>,
    /// The preferred era.
    preferred_era: watch::Receiver<Option<Era>>,
    /// Changes when any connection to the server comes up.
    reached: watch::Receiver<u64>,
    /// Whether the last failure may be over when another connection comes up.
    is_transient: bool,
}

/// Why the gateway stopped serving with a connection.
enum End {
    /// The supervised connection was closed.
    Stopped,
    /// The connection was lost.
    Lost(UpstreamError),
    Unhealthy(Health),
    /// A connection in the preferred era replaces it.
    ReplacedBy(Arc<UpstreamConnection>),
}

impl Supervisor {
    fn name(&self) -> &str {
        &self.shared.config.name
    }

    /// Connects. If that shows that the server may support the preferred era, connects once more in that era.
    async fn connect(&mut self) -> Result<Arc<UpstreamConnection>, ConnectError> {
        let upstream = self.attempt().await?;
        if !self.shared.is_better_in_other_era(&upstream) {
            return Ok(upstream);
        }
        upstream.close().await;
        self.attempt().await
    }

    async fn attempt(&mut self) -> Result<Arc<UpstreamConnection>, ConnectError> {
        let preferred = *self.preferred_era.borrow_and_update();
        self.shared.attempt(preferred).await
    }

    /// Handles a failed attempt; returns the pause before the next one.
    fn on_failure(&mut self, error: ConnectError) -> Duration {
        let shared = Arc::clone(&self.shared);
        self.is_transient = false;
        if shared.stop.is_cancelled() {
            return Duration::ZERO;
        }
        if shared.config.refusal.is_some() {
            // Another client has another connection.
            let message = error.to_string();
            let why = without_server(&message, self.name());
            tracing::debug!(server = self.name(), why, "server not connected");
            shared.set_disconnected(error, NEVER);
            return NEVER;
        }
        let is_process = matches!(shared.config.target, Target::Command { .. });
        if is_process && matches!(error, ConnectError::Loop { .. }) {
            if shared.config.loop_error.set(error.clone()).is_ok() {
                let message = error.to_string();
                let server = self.name();
                let why = without_server(&message, server);
                tracing::warn!(target: CONNECT_TARGET, server, why, "server left out");
            }
            // The next start would fail in the same way until the configuration changes.
            shared.set_disconnected(error, NEVER);
            return NEVER;
        }
        self.is_transient = !error.is_permanent();
        let pause = if error.is_permanent() {
            self.backoff.longest_pause()
        } else {
            self.backoff.pause()
        };
        self.log_failure(&error, pause);
        shared.set_disconnected(error, pause);
        pause
    }

    /// Logs a failed attempt, the same failure again only at the level `debug`.
    fn log_failure(&mut self, error: &ConnectError, pause: Duration) {
        let failure = error.to_string();
        let server = self.name();
        let why = without_server(&failure, server);
        let is_known = self.last_failure.as_ref() == Some(&failure);
        if is_known || !self.shared.server_facts.note_failure(why) {
            tracing::debug!(server, why, again_in = ?pause, "server still not connected");
        } else {
            tracing::warn!(target: CONNECT_TARGET, server, why, again_in = ?pause, "server is down, and Vary keeps trying");
        }
        self.last_failure = Some(failure);
    }

    /// Serves with `upstream` and its replacements until one is lost; returns the pause before the next attempt.
    async fn serve(&mut self, mut upstream: Arc<UpstreamConnection>) -> Duration {
        loop {
            let began = Instant::now();
            self.last_failure = None;
            self.shared.server_facts.note_reached();
            self.reached.mark_unchanged();
            if let Some(lost) = self.lost_at.take() {
                let after = rounded(lost.elapsed());
                tracing::info!(server = self.name(), ?after, "server is back");
            }
            let end = self
                .shared
                .serve_with(&upstream, &mut self.preferred_era)
                .await;
            self.backoff.reset_after(began.elapsed());
            match end {
                End::Stopped => {
                    self.shared.current.store(None);
                    self.shared.set_state(ConnectionState::Closed);
                    upstream.close().await;
                    return Duration::ZERO;
                }
                End::Unhealthy(Health::Replaced) => {
                    tracing::info!(server = self.name(), "server replaced by another");
                    match self.connect().await {
                        Ok(other) => self.shared.replace(&mut upstream, other),
                        Err(error) => return self.on_loss(&upstream, error).await,
                    }
                }
                End::ReplacedBy(other) => self.shared.replace(&mut upstream, other),
                End::Unhealthy(Health::Hung(error)) => {
                    // Calls in flight will not be answered.
                    let error = upstream.liveness.end(error);
                    return self.on_loss(&upstream, error.into()).await;
                }
                End::Lost(error) | End::Unhealthy(Health::Unreachable(error)) => {
                    return self.on_loss(&upstream, error.into()).await;
                }
            }
        }
    }

    /// Handles the loss of the connection; returns the pause before the next attempt.
    async fn on_loss(
        &mut self,
        upstream: &Arc<UpstreamConnection>,
        error: ConnectError,
    ) -> Duration {
        let shared = Arc::clone(&self.shared);
        if shared.stop.is_cancelled() {
            upstream.close().await;
            return Duration::ZERO;
        }
        self.lost_at = Some(Instant::now());
        self.is_transient = true;
        self.reached.mark_unchanged();
        let is_first = self.backoff.is_fresh();
        let pause = self.backoff.pause();
        let message = error.to_string();
        let reason = error.client_message();
        let loss = match &error {
            ConnectError::Failed(loss) => Some(loss.clone()),
            _ => None,
        };
        let server = self.name();
        let why = without_server(&message, server);
        if shared.server_facts.note_failure(why) {
            tracing::warn!(server, why, again_in = ?pause, "server lost");
        } else {
            tracing::debug!(server, why, again_in = ?pause, "another connection to the server lost");
        }
        if is_first {
            shared.set_state(ConnectionState::Connecting);
            shared.current.store(None);
        } else {
            shared.set_disconnected(error, pause);
        }
        shared.publish(Event::Lost { reason });
        match &*upstream.transport {
            // Two processes of one server could conflict, so the old one ends first.
            Transport::Stdio(_) => upstream.close().await,
            Transport::Http(_) => {
                let patience = shared.drain_timeout();
                shared.retire(Arc::clone(upstream), loss, patience);
            }
        }
        pause
    }
}

/// Waits until another connection to the server comes up.
async fn reached_by_others(reached: &mut watch::Receiver<u64>) {
    if reached.changed().await.is_err() {
        std::future::pending().await
    }
}

/// The target of the event about a server that cannot be connected to. A program that reports this at its start itself can
/// leave the event out.
pub const CONNECT_TARGET: &str = "mcp_vary_upstream::connect";

/// An endless pause: ten years.
pub(super) const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

impl Shared {
    /// How long calls on a lost connection may stay without a message from the server.
    fn drain_timeout(&self) -> Duration {
        let limits = &self.config.limits;
        if limits.hang_timeout.is_zero() {
            limits.idle
        } else {
            limits.hang_timeout
        }
    }

    fn set_disconnected(&self, error: ConnectError, pause: Duration) {
        let retry_at = Instant::now() + pause;
        self.set_state(ConnectionState::Disconnected {
            error,
            pause,
            retry_at,
        });
        self.current.store(None);
    }

    /// Makes `upstream` the current connection until it is lost, unhealthy or replaced.
    async fn serve_with(
        &self,
        upstream: &Arc<UpstreamConnection>,
        preferred: &mut watch::Receiver<Option<Era>>,
    ) -> End {
        // Subscribed first: those who read lists on `Connected` must not miss a change.
        let events = upstream.events();
        self.current.store(Some(Arc::clone(upstream)));
        self.set_state(ConnectionState::Connected(Arc::clone(upstream)));
        self.publish(Event::Connected);
        tokio::select! {
            biased;
            () = self.stop.cancelled() => End::Stopped,
            error = upstream.liveness.ended() => End::Lost(error),
            verdict = health::watch(upstream) => End::Unhealthy(verdict),
            () = self.forward_events(events) => End::Lost(upstream.liveness.ended().await),
            other = self.connect_in_preferred_era(upstream, preferred) => End::ReplacedBy(other),
            never = subscriber::maintain(upstream, self) => match never {},
        }
    }

    /// Waits until the other era than that of `upstream` is preferred, and returns a connection in it.
    async fn connect_in_preferred_era(
        &self,
        upstream: &UpstreamConnection,
        preferred: &mut watch::Receiver<Option<Era>>,
    ) -> Arc<UpstreamConnection> {
        while preferred.changed().await.is_ok() {
            if !self.is_better_in_other_era(upstream) {
                continue;
            }
            if self.config.has_one_process() {
                // There is no second process beside it.
                self.era_failed.store(true, Ordering::Relaxed);
                self.state.send_modify(|_| {});
                continue;
            }
            let preferred = *preferred.borrow_and_update();
            match self.attempt(preferred).await {
                Ok(other) if Some(other.handshake().era()) == preferred => return other,
                // Clients do not wait until its process has ended.
                Ok(other) => self.retire(other, None, Duration::ZERO),
                Err(error) => {
                    let server = &self.config.name;
                    let message = error.to_string();
                    let why = without_server(&message, server);
                    tracing::debug!(server, why, "not connected in the revision of its clients");
                    self.era_failed.store(true, Ordering::Relaxed);
                }
            }
            // Wakes the tasks in `wait_for_preferred_era`.
            self.state.send_modify(|_| {});
        }
        std::future::pending().await
    }

    /// Replaces `upstream` by `other`; calls in flight finish on the old connection.
    fn replace(&self, upstream: &mut Arc<UpstreamConnection>, other: Arc<UpstreamConnection>) {
        let old = std::mem::replace(upstream, other);
        self.retire(old, None, self.config.limits.idle);
    }

    /// Forwards the events of a connection until it closes.
    async fn forward_events(&self, mut events: broadcast::Receiver<Event>) {
        loop {
            match events.recv().await {
                Ok(Event::Closed { .. }) | Err(RecvError::Closed) => return,
                Ok(event) => self.publish(event),
                // The missed events may concern any list and resource.
                Err(RecvError::Lagged(_)) => {
                    for kind in Kind::ALL {
                        self.publish(Event::ListMayHaveChanged(kind));
                    }
                    for uri in self.subscriptions(Topic::Resources).active() {
                        self.publish(Event::resource_may_have_changed(&uri));
                    }
                }
            }
        }
    }

    /// Closes `upstream` once its calls have finished, or the server has been silent for `limit`.
    ///
    /// Later requests on it fail with `loss`.
    fn retire(
        &self,
        upstream: Arc<UpstreamConnection>,
        loss: Option<UpstreamError>,
        limit: Duration,
    ) {
        upstream.stop.cancel();
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let draining = upstream.liveness.drained(limit);
            if let (Some(()), Some(loss)) = (stop.run_until_cancelled(draining).await, loss) {
                upstream.liveness.end(loss);
            }
            upstream.close().await;
        });
    }
}
