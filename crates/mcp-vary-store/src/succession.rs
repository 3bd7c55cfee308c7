//! What a replica does about heirs: it beats, forwards requests to the home of a session, and hands over its own.

use std::time::Duration;

use redis::RedisResult;
use redis::aio::MultiplexedConnection;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::heirs::{LIFETIME, LOST, MAX_KNOWN, Mode, SessionHome};
use crate::mailbox::{ForwardError, ReplicaResponse, RequestHead};
use crate::operations::Operation;
use crate::store::Store;

/// How long a request waits until its replica is back, or has heirs.
const PATIENCE: Duration = Duration::from_secs(4);
/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

impl Store {
    /// The tag of the replica that serves a session, as far as this one knows.
    pub fn home(&self, session: SessionHome) -> u32 {
        let mut home = session.opened_by;
        for _ in 0..MAX_KNOWN {
            match self.heirs.heir(home, session.client) {
                Some(heir) => home = heir,
                None => break,
            }
        }
        home
    }

    /// Has the replica that serves a session answer a request; `None` if this replica does.
    ///
    /// # Errors
    ///
    /// As those of [`forward`](Self::forward). If that replica has ended, its heir is asked.
    pub async fn forward_home(
        &self,
        session: SessionHome,
        head: &RequestHead,
        body: &[u8],
    ) -> Result<Option<ReplicaResponse>, ForwardError> {
        let began = Instant::now();
        loop {
            let home = self.home(session);
            if home == self.tag() {
                return Ok(None);
            }
            let failure = match self.forward(home, head, body).await {
                Ok(response) => return Ok(Some(response)),
                Err(failure @ (ForwardError::Unanswered | ForwardError::Full)) => {
                    return Err(failure);
                }
                Err(failure) => failure,
            };
            let is_missing = failure == ForwardError::Ended;
            let mode = if is_missing && self.heirs.is_settled() {
                Mode::Succeed
            } else {
                Mode::Read
            };
            if self.ask_for_heirs(home, mode).await {
                continue;
            }
            if !is_missing || began.elapsed() >= PATIENCE {
                return Err(failure);
            }
            sleep(PAUSE).await;
        }
    }

    /// Learns why another replica takes this one for the home of a session.
    pub async fn learn_home(&self, session: SessionHome) {
        loop {
            let home = self.home(session);
            if home == self.tag() || !self.ask_for_heirs(home, Mode::Read).await {
                return;
            }
        }
    }

    /// This replica stops: others serve its sessions from now on, if there are any.
    pub async fn hand_over(&self) {
        self.ask_for_heirs(self.tag(), Mode::Leave).await;
    }

    /// Ready when others serve the sessions that this replica has opened.
    pub async fn handed_over(&self) {
        // An error would mean that the store is gone.
        let _ = self.heirs.handed_over.subscribe().wait_for(|it| *it).await;
    }

    /// Reads, and maybe writes, the heirs of a replica. Returns whether there are any.
    async fn ask_for_heirs(&self, replica: u32, mode: Mode) -> bool {
        let heirs = self.with_connection(Operation::Read, async |connection| {
            self.run_heirs(connection, replica, mode).await
        });
        heirs.await.unwrap_or(false)
    }

    async fn run_heirs(
        &self,
        mut connection: MultiplexedConnection,
        replica: u32,
        mode: Mode,
    ) -> RedisResult<bool> {
        // The first one, which writes, comes last: there may be a list that was written under another key.
        for (place, namespace) in self.namespaces.iter().enumerate().rev() {
            let mode = match mode {
                Mode::Beat if *self.heirs.handed_over.borrow() => Mode::Read,
                Mode::Succeed | Mode::Leave if place > 0 => Mode::Read,
                mode => mode,
            };
            let mut script = self.heirs.script.prepare_invoke();
            script
                .key(namespace.replicas())
                .key(namespace.heirs(replica));
            script.arg(&namespace.seal_replica(replica));
            script.arg(format!("{mode:?}")).arg(LOST.as_millis());
            script.arg(LIFETIME);
            let sealed: Option<Vec<u8>> = script.invoke_async(&mut connection).await?;
            let heirs = namespace.open_replicas(&sealed.unwrap_or_default());
            if self.heirs.learn(replica, &heirs) {
                self.note_heirs(replica, mode);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn note_heirs(&self, replica: u32, mode: Mode) {
        if replica != self.tag() {
            info!(
                replica,
                "the sessions of a replica that has ended are served by others"
            );
        } else if !self.heirs.handed_over.send_replace(true) && mode != Mode::Leave {
            warn!(
                "other replicas have taken over the sessions of this one while it was cut off from the store; \
                 restart it, so that it serves its own sessions again"
            );
        }
    }

    /// Tells the others that this replica lives, and learns whether they have taken it for dead.
    pub(crate) async fn beat(&self, connection: MultiplexedConnection) -> RedisResult<()> {
        self.run_heirs(connection, self.tag(), Mode::Beat).await?;
        Ok(())
    }

    /// The connection is up. A store that was emptied gets back the heirs that are known.
    pub(crate) async fn restore_heirs(
        &self,
        mut connection: MultiplexedConnection,
    ) -> RedisResult<()> {
        *self.heirs.connected.lock() = Some(Instant::now());
        let known = self.heirs.known.load_full();
        let Some(namespace) = self.namespaces.first() else {
            return Ok(());
        };
        if known.is_empty() {
            return Ok(());
        }
        let mut pipe = redis::pipe();
        for (replica, heirs) in known.iter() {
            let seals = heirs.iter().flat_map(|heir| namespace.seal_replica(*heir));
            let sealed: Vec<u8> = seals.collect();
            pipe.cmd("SET").arg(namespace.heirs(*replica)).arg(sealed);
            pipe.arg("NX").arg("EX").arg(LIFETIME).ignore();
        }
        pipe.query_async(&mut connection).await
    }
}
