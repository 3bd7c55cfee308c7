//! Counts requests. Those that come while others are being counted share a round trip.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Script, ScriptInvocation};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::yield_now;
use tracing::debug;

use crate::namespace::Namespace;

/// How many requests wait for the store at once.
pub const MAX_IN_FLIGHT: usize = 1024;

/// What counts a request: a bucket that fills up again at a rate.
#[derive(Clone, Debug)]
pub struct Count {
    /// The limit, and for whom it counts. The store sees a hash of it.
    pub name: String,
    /// The time in which one request becomes available again.
    pub interval: Duration,
    /// How far in the future the bucket may be full again so that one more request is allowed.
    pub tolerance: Duration,
}

/// Whether a request may go on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// Each limit has counted it.
    Allowed,
    /// No limit has counted it.
    Refused {
        /// The limit that blocks it the longest, by its place in the arguments.
        index: usize,
        /// After this time it would be allowed.
        wait: Duration,
    },
}

/// Requests that are counted in one round trip.
const BATCH: usize = 64;

/// Requests that wait until they are counted.
#[derive(Debug)]
pub(crate) struct Counting {
    queue: mpsc::Sender<Waiting>,
    queued: Mutex<mpsc::Receiver<Waiting>>,
    script: Script,
}

#[derive(Debug)]
struct Waiting {
    counts: Vec<Count>,
    /// Whether it is only asked whether the request would be refused.
    is_question: bool,
    verdict: oneshot::Sender<Verdict>,
}

impl Counting {
    pub(crate) fn new() -> Self {
        let (queue, queued) = mpsc::channel(MAX_IN_FLIGHT);
        Self {
            queue,
            queued: Mutex::new(queued),
            script: Script::new(&[GCRA, COUNT].concat()),
        }
    }

    /// Has a request counted, unless this `is_question`; `None` if too many wait or the store has not answered.
    pub(crate) async fn count(&self, counts: Vec<Count>, is_question: bool) -> Option<Verdict> {
        let (verdict, counted) = oneshot::channel();
        let waiting = Waiting {
            counts,
            is_question,
            verdict,
        };
        self.queue.try_send(waiting).ok()?;
        counted.await.ok()
    }

    /// Counts requests that wait, a batch at a time, until it is dropped.
    pub(crate) async fn run(&self, namespace: &Namespace, mut connection: MultiplexedConnection) {
        let mut queued = self.queued.lock().await;
        let mut batch = Vec::with_capacity(BATCH);
        while let Some(first) = queued.recv().await {
            batch.push(first);
            // Requests that were read at the same time come now.
            yield_now().await;
            while batch.len() < BATCH
                && let Ok(next) = queued.try_recv()
            {
                batch.push(next);
            }
            // Those that waited too long are not counted.
            batch.retain(|request| !request.verdict.is_closed());
            if batch.is_empty() {
                continue;
            }
            match self.verdicts(namespace, &mut connection, &batch).await {
                Ok(verdicts) => {
                    for (waiting, (place, wait)) in batch.drain(..).zip(verdicts) {
                        // Who has gone needs no answer.
                        let _ = waiting.verdict.send(verdict(place, wait));
                    }
                }
                Err(error) => debug!(%error, "requests not counted"),
            }
            // The callers of those that have no verdict get `StoreAway`, since its sender is dropped.
            batch.clear();
        }
    }

    /// Forgets what waits, which then is not counted.
    pub(crate) fn disconnect(&self) {
        if let Ok(mut queued) = self.queued.try_lock() {
            while queued.try_recv().is_ok() {}
        }
    }

    async fn verdicts(
        &self,
        namespace: &Namespace,
        connection: &mut MultiplexedConnection,
        batch: &[Waiting],
    ) -> RedisResult<Vec<(usize, u64)>> {
        let mut script = self.script.prepare_invoke();
        for waiting in batch {
            script.arg(waiting.counts.len());
            script.arg(u8::from(waiting.is_question));
            add_counts(&mut script, namespace, &waiting.counts);
        }
        script.invoke_async(connection).await
    }
}

/// The key, the interval and the tolerance of each bucket, for [`GCRA`].
pub(crate) fn add_counts(
    script: &mut ScriptInvocation<'_>,
    namespace: &Namespace,
    counts: &[Count],
) {
    for count in counts {
        script.key(namespace.count(&count.name));
        script.arg(microseconds(count.interval));
        script.arg(microseconds(count.tolerance));
    }
}

/// What the script says of a request: the place of the limit that refuses it, from 1, and for how long.
pub(crate) const fn verdict(place: usize, wait: u64) -> Verdict {
    match place.checked_sub(1) {
        None => Verdict::Allowed,
        Some(index) => Verdict::Refused {
            index,
            wait: Duration::from_micros(wait),
        },
    }
}

/// Microseconds with three decimals.
fn microseconds(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
}

/// A function of Lua: the generic cell rate algorithm over several buckets, all or none. Their keys come after `first`, their
/// intervals and tolerances from `argument` on. Returns the place of the bucket that refuses the longest, or 0, and for how
/// long.
///
/// Numbers are doubles, so times are microseconds since 2026: those since 1970 would be exact to a quarter of one. A clock that
/// was set back blocks nobody for longer than a full bucket does: what is stored beyond it is replaced, with its end.
pub(crate) const GCRA: &str = r"
local time = redis.call('TIME')
local now = (time[1] - 1767225600) * 1000000 + time[2]
local function gcra(first, number, argument, is_question)
  local stored = redis.call('MGET', unpack(KEYS, first + 1, first + number))
  local place, wait, full = 0, 0, {}
  for i = 1, number do
    local interval, tolerance = tonumber(ARGV[argument + 2 * i - 2]), tonumber(ARGV[argument + 2 * i - 1])
    local saved, highest = tonumber(stored[i] or now), now + tolerance + interval
    local at = math.min(math.max(saved, now), highest)
    if saved > highest then
      redis.call('SET', KEYS[first + i], string.format('%.3f', at), 'PX', math.ceil((at - now) / 1000))
    end
    if at - tolerance - now > wait then
      place, wait = i, at - tolerance - now
    end
    full[i] = at + interval
  end
  if place == 0 and not is_question then
    for i = 1, number do
      redis.call('SET', KEYS[first + i], string.format('%.3f', full[i]), 'PX', math.ceil((full[i] - now) / 1000))
    end
  end
  return {place, math.ceil(wait)}
end
";

/// What it says of each request.
const COUNT: &str = r"
local verdicts, first, argument = {}, 0, 1
while argument <= #ARGV do
  local number = tonumber(ARGV[argument])
  verdicts[#verdicts + 1] = gcra(first, number, argument + 2, ARGV[argument + 1] == '1')
  first, argument = first + number, argument + 2 + 2 * number
end
return verdicts
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_keep_their_nanoseconds() {
        let shown = |nanoseconds| microseconds(Duration::from_nanos(nanoseconds));
        assert_eq!(shown(100_000_000), "100000.000");
        assert_eq!(shown(1_428_571), "1428.571");
        assert_eq!(shown(7), "0.007");
    }
}
