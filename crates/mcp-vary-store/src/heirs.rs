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
use redis::Script;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::namespace::Namespace;

/// After this time without a beat, a replica that cannot be reached has ended. So long must the connection have been up, too:
/// when the store comes back, others need a moment.
pub(crate) const LOST: Duration = Duration::from_secs(2);
/// Seconds after which the store forgets the heirs of a replica: 30 days.
pub(crate) const LIFETIME: u64 = 30 * 24 * 60 * 60;
/// Replicas whose heirs are known, and the most heirs of one.
pub(crate) const MAX_KNOWN: usize = 1024;

/// A session, as far as its replica matters.
#[derive(Clone, Copy, Debug)]
pub struct SessionHome {
    /// The tag of the replica that has opened the session.
    pub opened_by: u32,
    /// What distinguishes the session from others of that replica.
    pub client: u64,
}

/// What the script does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mode {
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
    pub(crate) known: ArcSwap<BTreeMap<u32, Arc<[u32]>>>,
    /// When the connection to the store came up.
    pub(crate) connected: Lock<Option<Instant>>,
    /// Whether this replica has heirs.
    pub(crate) handed_over: watch::Sender<bool>,
    pub(crate) script: Script,
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
    pub(crate) fn heir(&self, replica: u32, client: u64) -> Option<u32> {
        let known = self.known.load();
        let heirs = known.get(&replica)?;
        let mixed = mix(client ^ u64::from(replica).rotate_left(32));
        let at = usize::try_from(mixed % heirs.len() as u64).ok()?;
        heirs.get(at).copied()
    }

    /// Returns whether there are any.
    pub(crate) fn learn(&self, replica: u32, heirs: &[u32]) -> bool {
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

    pub(crate) fn is_settled(&self) -> bool {
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

/// The bytes of a replica in the store: its tag, and a seal.
const REPLICA: usize = 4 + 16;

impl Namespace {
    /// The key of the replicas that live, by their last beats.
    pub(crate) fn replicas(&self) -> String {
        format!("{}replicas", self.prefix)
    }

    /// The key of the heirs of a replica.
    pub(crate) fn heirs(&self, replica: u32) -> String {
        format!("{}heirs:{replica:08x}", self.prefix)
    }

    pub(crate) fn seal_replica(&self, tag: u32) -> [u8; REPLICA] {
        let bytes = tag.to_be_bytes();
        let seal = self.derived("replica", &[&bytes]);
        let mut sealed = [0; REPLICA];
        sealed[..4].copy_from_slice(&bytes);
        sealed[4..].copy_from_slice(&seal[..REPLICA - 4]);
        sealed
    }

    /// The replicas of a list; none if another one than a replica with this key has written it.
    pub(crate) fn open_replicas(&self, sealed: &[u8]) -> Vec<u32> {
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
