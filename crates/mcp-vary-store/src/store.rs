//! The store as requests see it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use mcp_vary_base::lock::Lock;
use mcp_vary_base::log_backoff::LogBackoff;
use redis::Script;
use redis::aio::MultiplexedConnection;
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use tracing::debug;

use crate::counting::{Count, Counting, MAX_IN_FLIGHT, Verdict};
use crate::ended::{EndedSessions, MAX_ENDED, SessionKey};
use crate::heirs::Heirs;
use crate::mailbox::{MAX_EXCHANGES, Mailbox};
use crate::namespace::Namespace;
use crate::operations::{Operation, Operations, Outcome};
use crate::saved::{MAX_SAVED_TOTAL, MAX_SEALED, SavedKind, SavedValue, Saving};
use crate::tallies::Tallies;
use crate::url::StoreUrl;
use crate::variants::{MAX_VARIANTS, RefusedChange, VariantUse, Variants};

/// How long a request waits for the store.
pub const TIMEOUT: Duration = Duration::from_millis(250);

/// A store that replicas share.
///
/// # Properties
///
/// It does nothing before [`run`](Self::run), and is away then.
pub struct Store {
    pub(crate) url: StoreUrl,
    /// By the keys of the gateway: the first one writes, all of them read.
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) now: fn() -> u64,
    /// The connection, if it is up.
    pub(crate) connection: ArcSwapOption<MultiplexedConnection>,
    state: AtomicU8,
    permits: Semaphore,
    pub(crate) ended: Lock<EndedSessions>,
    pub(crate) operations: Operations,
    /// Notified when a request waited in vain.
    pub(crate) suspected: Notify,
    pub(crate) changes: LogBackoff,
    timeout: Duration,
    /// What goes to other replicas, and comes from them.
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) counting: Counting,
    pub(crate) saving: Saving,
    variants: Variants,
    pub(crate) tallies: Tallies,
    pub(crate) heirs: Heirs,
    end: Script,
}

/// Whether a store can be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum StoreState {
    /// The first attempt to connect has not ended yet.
    Connecting,
    /// It cannot be reached, or takes no writes.
    Away,
    /// It is connected, and the ended sessions are being read.
    Reading,
    /// It is in use.
    Up,
}

impl StoreState {
    /// Its name for probes and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Away => "away",
            Self::Reading => "reading",
            Self::Up => "up",
        }
    }

    /// Whether the sessions that ended elsewhere have been read, or cannot be read because the store is away.
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Away | Self::Up)
    }
}

/// What a gateway learns from a store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StoreEvent {
    /// A session has ended at another replica.
    Ended(SessionKey),
    /// A client has cancelled a request, which may run here.
    Cancelled {
        /// The session of the request.
        session: SessionKey,
        /// The JSON text of its id.
        request: String,
    },
    /// There were too many to remember: a session that expires no later than this time may have ended.
    ForgottenUntil(u64),
}

/// The store did not answer in time, or takes no writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the store is away")]
pub struct StoreAway;

impl Store {
    /// The store at `url`. The first of `keys` seals what is written, each of them opens what is read. `now`: seconds since
    /// 1970-01-01 UTC. `replica`: a random number of this process.
    pub fn new(
        url: StoreUrl,
        keys: impl IntoIterator<Item = [u8; 32]>,
        now: fn() -> u64,
        replica: u64,
    ) -> Self {
        Self {
            url,
            namespaces: keys.into_iter().map(Namespace::new).collect(),
            now,
            connection: ArcSwapOption::empty(),
            state: AtomicU8::new(StoreState::Connecting as u8),
            permits: Semaphore::new(MAX_IN_FLIGHT),
            ended: Lock::default(),
            operations: Operations::default(),
            suspected: Notify::new(),
            changes: LogBackoff::default(),
            timeout: TIMEOUT,
            mailbox: Mailbox::new(replica),
            counting: Counting::new(),
            saving: Saving::default(),
            variants: Variants::new(),
            tallies: Tallies::default(),
            heirs: Heirs::default(),
            end: Script::new(END),
        }
    }

    /// The same store, for which a request waits so long instead of [`TIMEOUT`].
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Whether it can be used.
    pub fn state(&self) -> StoreState {
        match self.state.load(Ordering::Acquire) {
            0 => StoreState::Connecting,
            2 => StoreState::Reading,
            3 => StoreState::Up,
            _ => StoreState::Away,
        }
    }

    pub(crate) fn set_state(&self, state: StoreState) {
        self.state.store(state as u8, Ordering::Release);
    }

    /// The names of each operation and outcome, and how often it occurred.
    pub fn operations(&self) -> impl Iterator<Item = ([&'static str; 2], u64)> {
        self.operations.all()
    }

    /// The name of each resource that is bounded, and the share of it that is in use.
    #[expect(clippy::cast_precision_loss, reason = "the bounds are small numbers")]
    pub fn used(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let now = (self.now)();
        let used = [
            ("ended_sessions", self.ended.lock().len(), MAX_ENDED),
            ("exchanges", self.mailbox.exchanges(), MAX_EXCHANGES),
            ("copies", self.saving.stored(now), MAX_SAVED_TOTAL),
            ("variants", self.variants.stored(now), MAX_VARIANTS),
        ];
        used.into_iter()
            .map(|(resource, used, bound)| (resource, used as f64 / bound as f64))
    }

    /// Counts a request, unless one of `counts` refuses it. They are as exact as if one process counted for all replicas.
    ///
    /// # Errors
    ///
    /// If the store does not answer in time. It may have counted the request then.
    pub async fn count(&self, counts: Vec<Count>) -> Result<Verdict, StoreAway> {
        if counts.is_empty() {
            return Ok(Verdict::Allowed);
        }
        let counted = async |_| self.counting.count(counts, false).await.ok_or(StoreAway);
        self.with_connection(Operation::Count, counted).await
    }

    /// Whether one of `counts` would refuse a request, without counting it.
    ///
    /// # Errors
    ///
    /// If the store does not answer in time.
    pub async fn would_refuse(&self, counts: Vec<Count>) -> Result<Verdict, StoreAway> {
        let answered = async |_| self.counting.count(counts, true).await.ok_or(StoreAway);
        self.with_connection(Operation::Count, answered).await
    }

    /// Ends a session at all replicas. If the store is away, it learns of it when it is back, as long as this replica lives.
    pub async fn end_session(&self, session: SessionKey) {
        self.ended.lock().insert_unwritten(session, (self.now)());
        let answer = self.with_connection(Operation::EndSession, async |connection| {
            self.write_ended(connection, &[session]).await
        });
        // A failure is counted, and the session is written later.
        let _ = answer.await;
    }

    /// Cancels a request of a session at the replica where it runs. If the store is away, or the id of the request is longer
    /// than 256 bytes, the request runs to its end.
    pub async fn cancel(&self, session: SessionKey, request: &str) {
        let Some(namespace) = self.namespaces.first() else {
            return;
        };
        if request.len() > MAX_REQUEST_ID {
            return;
        }
        let answer = self.with_connection(Operation::Cancel, async |mut connection| {
            let mut publish = redis::cmd("PUBLISH");
            publish.arg(&namespace.cancelled);
            publish.arg(namespace.seal_cancelled(&session, request));
            publish.query_async::<()>(&mut connection).await
        });
        // A failure is counted. It is not tried again: the request may have ended by then.
        let _ = answer.await;
    }

    /// Records the variant of a request, and counts a change if the client used another one before, at any replica.
    ///
    /// # Errors
    ///
    /// If the store does not answer in time, or this replica has written too many clients there.
    pub async fn use_variant(
        &self,
        used: &VariantUse<'_>,
    ) -> Result<Option<RefusedChange>, StoreAway> {
        let now = (self.now)();
        let namespace = self.namespaces.first().ok_or(StoreAway)?;
        if used.counts.is_empty() {
            return Ok(None);
        }
        if !self.variants.has_room(now) {
            self.operations.add(Operation::Count, Outcome::Skipped);
            return Err(StoreAway);
        }
        self.with_connection(Operation::Count, async |connection| {
            self.variants.record(namespace, connection, used, now).await
        })
        .await
    }

    /// Whether a value of so many bytes can be [saved](Self::save) at the moment. If not, it counts as skipped.
    pub fn can_save(&self, bytes: usize) -> bool {
        let is_up = self.connection.load().is_some();
        let can_save = is_up && self.saving.has_room(bytes, (self.now)());
        if !can_save {
            self.operations.add(Operation::Save, Outcome::Skipped);
        }
        can_save
    }

    /// Saves a value in the background, so that any replica can [`load`](Self::load) it, also after this one has ended. `id` is
    /// another one for each value.
    pub fn save(&self, kind: SavedKind, id: &str, value: Vec<u8>, lifetime: Duration) {
        let now = (self.now)();
        let value = SavedValue::new(kind, id, value, (lifetime, now));
        if !self.saving.add(value, now) {
            self.operations.add(Operation::Save, Outcome::Skipped);
        }
    }

    /// A value that a replica has saved, if there is one.
    ///
    /// # Errors
    ///
    /// If the store does not answer in time.
    pub async fn load(&self, kind: SavedKind, id: &str) -> Result<Option<Vec<u8>>, StoreAway> {
        let loaded = self.with_connection(Operation::Load, async |mut connection| {
            let mut get = redis::pipe();
            for namespace in &self.namespaces {
                // Not more than a replica writes, whatever is there.
                let key = namespace.saved_name(kind, id);
                get.cmd("GETRANGE").arg(key).arg(0).arg(MAX_SEALED);
            }
            get.query_async::<Vec<Vec<u8>>>(&mut connection).await
        });
        let mut all = self.namespaces.iter().zip(loaded.await?);
        Ok(all.find_map(|(namespace, sealed)| namespace.open_saved(kind, id, sealed)))
    }

    /// Writes sessions that have ended, and publishes them.
    pub(crate) async fn write_ended(
        &self,
        mut connection: MultiplexedConnection,
        sessions: &[SessionKey],
    ) -> redis::RedisResult<()> {
        let Some(namespace) = self.namespaces.first() else {
            return Ok(());
        };
        let mut script = self.end.prepare_invoke();
        script.key(&namespace.ended);
        script.arg(MAX_ENDED);
        for session in sessions {
            script.arg(session.expires).arg(namespace.seal(session));
        }
        script.invoke_async::<()>(&mut connection).await?;
        self.ended.lock().note_written(sessions);
        Ok(())
    }

    /// Does something at the store, if it is up.
    pub(crate) async fn with_connection<T, E: fmt::Display>(
        &self,
        operation: Operation,
        run: impl AsyncFnOnce(MultiplexedConnection) -> Result<T, E>,
    ) -> Result<T, StoreAway> {
        let connection = self.connection.load_full();
        let permit = self.permits.try_acquire();
        let Some((connection, _permit)) = connection.zip(permit.ok()) else {
            self.operations.add(operation, Outcome::Skipped);
            return Err(StoreAway);
        };
        let cause = match timeout(self.timeout, run((*connection).clone())).await {
            Ok(Ok(answer)) => {
                self.operations.add(operation, Outcome::Ok);
                return Ok(answer);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it did not answer in time".to_owned(),
        };
        debug!(?operation, cause, "store not used");
        self.operations.add(operation, Outcome::Failed);
        self.suspected.notify_one();
        Err(StoreAway)
    }
}

/// The longest id of a request that is cancelled at another replica, in bytes of JSON.
const MAX_REQUEST_ID: usize = 256;

/// Leaves out keys, sessions and the password.
impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("url", &self.url)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// Adds sessions to the sorted set, at most so many, and publishes them. The set ends with the last session.
const END: &str = r"
local now = redis.call('TIME')[1]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
for i = 2, #ARGV, 2 do
  redis.call('ZADD', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('PUBLISH', KEYS[1], ARGV[i + 1])
end
local excess = redis.call('ZCARD', KEYS[1]) - ARGV[1]
if excess > 0 then
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, excess - 1)
end
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
if last then
  redis.call('EXPIREAT', KEYS[1], last)
end
return redis.status_reply('OK')
";

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_store_that_does_not_run_is_away_at_once() {
        let url = "redis://ann:secret@localhost".parse().unwrap();
        let store = Store::new(url, [[1; 32]], || 1_000, 1);
        assert_eq!(store.state(), StoreState::Connecting);
        let count = Count {
            name: "calls".to_owned(),
            interval: Duration::from_secs(1),
            tolerance: Duration::ZERO,
        };
        assert_eq!(store.count(vec![count]).await, Err(StoreAway));
        assert_eq!(store.count(Vec::new()).await, Ok(Verdict::Allowed));
        let shown = format!("{store:?}");
        assert!(shown.contains("Connecting") && !shown.contains("secret"));
        let skipped = store.operations().find(|(_, number)| *number == 1);
        assert_eq!(skipped, Some((["count", "skipped"], 1)));
    }
}
