//! Which replica serves a session: the one that has opened it, or its heir if that one has ended.
//!
//! # Properties
//!
//! - When a replica has ended, the store gets the list of those that live: its heirs. The list is written once, and never
//!   changes. So all replicas agree on the heir of a session, also when others start later, and a session moves only when
//!   its replica ends.
//! - A replica that stops writes its heirs itself. Of one that dies, others do, when it has no connection to the store and
//!   its last beat is `LOST` ago.
//! - A replica that has heirs serves the sessions that it has opened no more, and is nobody's heir: it was taken for dead
//!   while it was cut off from the store, or it stops.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use mcp_vary_base::lock::Lock;
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Script};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::mailbox::{ForwardError, ReplicaResponse, RequestHead};
use crate::namespace::Namespace;
use crate::operations::Operation;
use crate::store::Store;

/// After this time without a beat, a replica that cannot be reached has ended. So long must the connection have been up, too:
/// when the store comes back, others need a moment.
const LOST: Duration = Duration::from_secs(2);
/// How long a request waits until its replica is back, or has heirs.
const PATIENCE: Duration = Duration::from_secs(4);
/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(100);
/// Seconds after which the store forgets the heirs of a replica: 30 days.
const LIFETIME: u64 = 30 * 24 * 60 * 60;
/// Replicas whose heirs are known, and the most heirs of one.
const MAX_KNOWN: usize = 1024;

/// A session, as far as its replica matters.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the gateway builds it")]
pub struct SessionHome {
    /// The tag of the replica that has opened the session.
    pub opened_by: u32,
    /// What distinguishes the session from others of that replica.
    pub client: u64,
}

/// What the script does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    /// This replica lives.
    Beat,
    /// Only reads.
    Read,
    /// Writes the heirs of a replica that cannot be reached, if it has ended.
    Succeed,
    /// Writes the heirs of this replica.
    Leave,
}

/// The heirs that this replica knows.
#[derive(Debug)]
pub(crate) struct Heirs {
    known: ArcSwap<BTreeMap<u32, Arc<[u32]>>>,
    /// When the connection to the store came up.
    connected: Lock<Option<Instant>>,
    /// Whether this replica has heirs.
    handed_over: watch::Sender<bool>,
    script: Script,
}

impl Default for Heirs {
    fn default() -> Self {
        Self {
            known: ArcSwap::default(),
            connected: Lock::default(),
            handed_over: watch::Sender::new(false),
            script: Script::new(SCRIPT),
        }
    }
}

impl Heirs {
    /// The heir of a session, if heirs of `replica` are known.
    fn heir(&self, replica: u32, client: u64) -> Option<u32> {
        let known = self.known.load();
        let heirs = known.get(&replica)?;
        let mixed = mix(client ^ u64::from(replica).rotate_left(32));
        let at = usize::try_from(mixed % heirs.len() as u64).ok()?;
        heirs.get(at).copied()
    }

    /// Returns whether there are any.
    fn learn(&self, replica: u32, heirs: &[u32]) -> bool {
        if heirs.is_empty() {
            return false;
        }
        self.known.rcu(|known| {
            let mut known = BTreeMap::clone(known);
            if known.len() >= MAX_KNOWN {
                known.pop_first();
            }
            known.entry(replica).or_insert_with(|| heirs.into());
            known
        });
        true
    }

    fn is_settled(&self) -> bool {
        let connected = *self.connected.lock();
        connected.is_some_and(|since| since.elapsed() >= LOST)
    }
}

/// Spreads what is close to each other (splitmix64).
const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Store {
    /// The tag of the replica that serves a session, as far as this one knows.
    #[must_use]
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
                Err(ForwardError::Unanswered) => return Err(ForwardError::Unanswered),
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
        let heirs = self.ask(Operation::Read, async |connection| {
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
        let Some(namespace) = self.namespaces.first().filter(|_| !known.is_empty()) else {
            return Ok(());
        };
        let mut pipe = redis::pipe();
        for (replica, heirs) in known.iter() {
            let sealed = heirs.iter().flat_map(|it| namespace.seal_replica(*it));
            let sealed: Vec<u8> = sealed.collect();
            pipe.cmd("SET").arg(namespace.heirs(*replica)).arg(sealed);
            pipe.arg("NX").arg("EX").arg(LIFETIME).ignore();
        }
        pipe.query_async(&mut connection).await
    }
}

/// The bytes of a replica in the store: its tag, and a seal.
const REPLICA: usize = 4 + 16;

impl Namespace {
    /// The key of the replicas that live, by their last beats.
    fn replicas(&self) -> String {
        format!("{}replicas", self.prefix)
    }

    /// The key of the heirs of a replica.
    fn heirs(&self, replica: u32) -> String {
        format!("{}heirs:{replica:08x}", self.prefix)
    }

    fn seal_replica(&self, tag: u32) -> [u8; REPLICA] {
        let tag = tag.to_be_bytes();
        let seal = self.derived("replica", &[&tag]);
        let mut sealed = [0; REPLICA];
        sealed[..4].copy_from_slice(&tag);
        sealed[4..].copy_from_slice(&seal[..REPLICA - 4]);
        sealed
    }

    /// The replicas of a list; none if another one than a replica with this key has written it.
    fn open_replicas(&self, sealed: &[u8]) -> Vec<u32> {
        let (replicas, _) = sealed.as_chunks::<REPLICA>();
        let opened = replicas.iter().take(MAX_KNOWN).filter_map(|sealed| {
            let tag = u32::from_be_bytes(*sealed.first_chunk()?);
            (self.seal_replica(tag) == *sealed).then_some(tag)
        });
        opened.collect()
    }
}

/// A beat, or the heirs of a replica. Times are those of the store.
const SCRIPT: &str = r"
local mode, time = ARGV[2], redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function beat(at)
  redis.call('ZADD', KEYS[1], at, ARGV[1])
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 10 * ARGV[3])
  redis.call('EXPIRE', KEYS[1], 60)
end
if mode == 'Beat' then
  beat(now)
end
local heirs = redis.call('MGET', KEYS[2])[1]
if heirs or mode == 'Beat' or mode == 'Read' then
  return heirs
end
if mode == 'Leave' then
  beat(0)
end
local found = ''
for _, replica in ipairs(redis.call('ZRANGE', KEYS[1], now - ARGV[3], '+inf', 'BYSCORE')) do
  if replica == ARGV[1] then
    return false
  end
  found = found .. replica
end
if found ~= '' then
  redis.call('SET', KEYS[2], found, 'EX', ARGV[4])
  return found
end
return false
";
