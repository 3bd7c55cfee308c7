//! The variant that each client has used last, wherever, and how often it may change it.

use std::time::Duration;

use mcp_vary_base::lock::Lock;
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Script};

use crate::account::{Account, OVERHEAD};
use crate::counting::{Count, GCRA, Verdict, add_counts, verdict};
use crate::namespace::Namespace;

/// The most bytes of clients whose variants one replica has in the store. If there were more, it would count by itself.
pub const MAX_VARIANTS: usize = 16 << 20;

/// The variant is forgotten after at least this long without a request, and at most this long.
const LIFETIMES: [Duration; 2] = [
    Duration::from_secs(60 * 60),
    Duration::from_secs(24 * 60 * 60),
];

/// A request of a client under a variant.
#[derive(Clone, Copy, Debug)]
pub struct VariantUse<'a> {
    /// The client, as all replicas name it.
    pub client: &'a str,
    /// The variant of the request.
    pub variant: &'a str,
    /// The variants that the client may use. To leave another one is not its choice.
    pub available: &'a [&'a str],
    /// What counts a change.
    pub counts: &'a [Count],
}

/// A change that a limit refuses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RefusedChange {
    /// The variant that the client keeps, by its place in those that it may use.
    pub active: usize,
    /// The limit that refuses the longest, by its place in what counts.
    pub index: usize,
    /// After this time the change would be allowed.
    pub wait: Duration,
}

/// Asks the store about variants.
#[derive(Debug)]
pub(crate) struct Variants {
    script: Script,
    stored: Lock<Account>,
}

impl Variants {
    pub(crate) fn new() -> Self {
        Self {
            script: Script::new(&[GCRA, CHANGE].concat()),
            stored: Lock::default(),
        }
    }

    /// Whether there is room for one more client.
    pub(crate) fn has_room(&self, now: u64) -> bool {
        self.stored(now) + OVERHEAD <= MAX_VARIANTS
    }

    /// The bytes of clients in the store.
    pub(crate) fn stored(&self, now: u64) -> usize {
        self.stored.lock().used(now)
    }

    /// Records the variant of a client, and counts the change if it used another one before, unless a limit refuses it.
    pub(crate) async fn record(
        &self,
        namespace: &Namespace,
        mut connection: MultiplexedConnection,
        used: &VariantUse<'_>,
        now: u64,
    ) -> RedisResult<Option<RefusedChange>> {
        let token = |variant: &str| namespace.variant_token(used.client, variant);
        let seconds = lifetime(used.counts);
        let expires = now.saturating_add(seconds);
        let mut script = self.script.prepare_invoke();
        script.key(namespace.hashed("variant", used.client));
        script.arg(&token(used.variant)[..]);
        script.arg(seconds).arg(expires);
        script.arg(used.counts.len()).arg(used.available.len());
        for variant in used.available {
            script.arg(&token(variant)[..]);
        }
        add_counts(&mut script, namespace, used.counts);
        let (left, expired_at, (place, wait)): (usize, u64, (usize, u64)) =
            script.invoke_async(&mut connection).await?;
        if place == 0 {
            let mut stored = self.stored.lock();
            // If another replica wrote it, that one counts it until then.
            stored.remove(expired_at, OVERHEAD);
            stored.add(expires, OVERHEAD);
        }
        Ok(match (left.checked_sub(1), verdict(place, wait)) {
            (Some(active), Verdict::Refused { index, wait }) => Some(RefusedChange {
                active,
                index,
                wait,
            }),
            _ => None,
        })
    }
}

/// The seconds after which the buckets are full again, so that few changes pass uncounted because a variant was forgotten.
fn lifetime(counts: &[Count]) -> u64 {
    let full = counts.iter().map(|it| it.interval + it.tolerance).max();
    let [least, most] = LIFETIMES;
    full.unwrap_or_default().clamp(least, most).as_secs()
}

/// The value is the token of the variant, of 32 bytes, and the second at which it expires. Returns the place of the variant
/// that the client leaves, if it was its choice to leave it; the second at which the value before would have expired, or 0;
/// and what the buckets say.
const CHANGE: &str = r"
local number, variants = tonumber(ARGV[4]), tonumber(ARGV[5])
local stored, left, verdict = redis.call('MGET', KEYS[1])[1] or '', 0, {0, 0}
local latest, expires = string.sub(stored, 1, 32), string.sub(stored, 33)
if latest ~= ARGV[1] then
  for i = 1, variants do
    if ARGV[5 + i] == latest then
      left = i
    end
  end
end
if left > 0 then
  verdict = gcra(1, number, 6 + variants, false)
end
if verdict[1] == 0 then
  redis.call('SET', KEYS[1], ARGV[1] .. ARGV[3], 'EX', ARGV[2])
end
return {left, tonumber(expires) or 0, verdict}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_is_remembered_until_its_buckets_are_full_again() {
        let count = |interval, burst: u32| Count {
            name: String::new(),
            interval: Duration::from_secs(interval),
            tolerance: Duration::from_secs(interval) * (burst - 1),
        };
        assert_eq!(lifetime(&[count(1, 2)]), 3_600);
        assert_eq!(lifetime(&[count(1, 2), count(2_400, 3)]), 7_200);
        assert_eq!(lifetime(&[count(90_000, 3)]), 86_400);
    }
}
