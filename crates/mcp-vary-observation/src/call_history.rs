//! The last calls of a gateway, which its page shows.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::hash::{BuildHasher as _, Hash};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::quality::RandomState;
use indexmap::{Equivalent, IndexSet};
use mcp_vary_audit::{Outcome, Record};
use mcp_vary_base::lock::ScopedLock;
use tokio::time::Instant;

use crate::failed_calls::FailureCounts;
use crate::finished_call::{CallSource, CallTarget, FinishedCall, RecordedSource, RecordedTarget};

/// The last calls of a gateway, with the last errors and the last refused calls. Those are in a list of their own, too: neither 1,000
/// later calls nor errors push out what was refused, and refused calls push out no errors.
///
/// # Properties
///
/// | limit | calls | errors | refused calls |
/// |---|---|---|---|
/// | number | 1,000 | 100 | 100 |
/// | memory | 2 MiB | 512 KiB | 512 KiB |
///
/// The oldest leave first when either limit is reached. Each list is spread over 4 rings with a quarter of the limits each; a call
/// that takes more than its ring may is not added. Calls share who called and what, so that a ring stays in the caches of the
/// processor: most of what a record costs is memory that is in none of them.
#[derive(Debug, Default)]
pub(crate) struct CallHistory {
    calls: Rings,
    errors: Rings,
    refusals: Rings,
    /// Those of both since the start.
    pub(crate) failures: FailureCounts,
    sources: KnownSources,
}

/// Who called, in several parts by what tells most of them apart, so that no lock is one of all calls.
#[derive(Debug, Default)]
struct KnownSources {
    hash: RandomState,
    parts: [ScopedLock<Known<CallSource>>; RINGS],
}

/// Calls, spread over several rings in turns, so that no lock is one of all calls.
#[derive(Debug, Default)]
struct Rings {
    /// The calls so far.
    count: AtomicU64,
    rings: [ScopedLock<Ring>; RINGS],
}

/// Calls, the oldest first, and the bytes that they take.
#[derive(Debug, Default)]
struct Ring {
    calls: VecDeque<FinishedCall>,
    bytes: usize,
    targets: Known<CallTarget>,
}

/// Values that calls share.
#[derive(Debug)]
struct Known<T>(IndexSet<Arc<T>, RandomState>);

/// A call that has ended, by its record.
pub(crate) struct EndedCall<'a> {
    pub(crate) record: &'a Record,
    pub(crate) ended: Instant,
    /// The server that worked on it.
    pub(crate) server: Option<&'a Arc<str>>,
    /// What [`FinishedCall`] has of this name.
    pub(crate) arguments: Option<String>,
    /// As above.
    pub(crate) error: Option<String>,
    /// As above.
    pub(crate) is_unknown_tool: bool,
}

#[cfg(test)]
impl<'a> EndedCall<'a> {
    /// What its record alone says of it.
    pub(crate) const fn new(record: &'a Record, ended: Instant) -> Self {
        Self {
            record,
            ended,
            server: None,
            arguments: None,
            error: None,
            is_unknown_tool: false,
        }
    }
}

impl CallHistory {
    /// Adds a call, which gets the next number. Returns a copy of it for those who watch.
    pub(crate) fn push(&self, call: EndedCall<'_>, is_watched: bool) -> Option<FinishedCall> {
        let id = self.calls.next_number();
        let separate = match call.record.outcome {
            Outcome::Error | Outcome::ToolError => Some(&self.errors),
            Outcome::Denied => Some(&self.refusals),
            Outcome::Allowed | Outcome::Cancelled => None,
        };
        let has_copy = is_watched || separate.is_some();
        let source = self.sources.value(&RecordedSource(call.record));
        let mut ring = self.calls.ring(id).lock();
        let finished = ring.finished(id, call, source);
        let copy = has_copy.then(|| finished.clone());
        ring.push(finished, MOST_CALLS / RINGS, MOST_CALL_BYTES / RINGS);
        drop(ring);
        if let Some((rings, copy)) = separate.zip(copy.as_ref()) {
            self.failures.count(copy);
            let mut ring = rings.ring(rings.next_number()).lock();
            let bytes = MOST_SEPARATE_BYTES / RINGS;
            ring.push(copy.clone(), MOST_SEPARATE / RINGS, bytes);
        }
        if is_watched { copy } else { None }
    }

    /// The calls that stayed, the latest first.
    pub(crate) fn latest(&self) -> Vec<FinishedCall> {
        let mut latest = self.calls.all();
        latest.extend(self.errors.all());
        latest.extend(self.refusals.all());
        latest.sort_by_key(|call| Reverse(call.id));
        latest.dedup_by_key(|call| call.id);
        latest
    }
}

impl Rings {
    fn next_number(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The ring of the call with this number.
    fn ring(&self, number: u64) -> &ScopedLock<Ring> {
        let [first, ..] = &self.rings;
        self.rings.get(number as usize % RINGS).unwrap_or(first)
    }

    fn all(&self) -> Vec<FinishedCall> {
        let rings = self.rings.iter();
        let calls = rings.flat_map(|ring| ring.lock().calls.iter().cloned().collect::<Vec<_>>());
        calls.collect()
    }
}

impl KnownSources {
    fn value(&self, recorded: &RecordedSource<'_>) -> Arc<CallSource> {
        let [first, ..] = &self.parts;
        let part = self.hash.hash_one(recorded) as usize % RINGS;
        let mut known = self.parts.get(part).unwrap_or(first).lock();
        known.value(recorded, |source| source.size)
    }
}

impl Ring {
    /// The call that ended, with what it shares with others.
    fn finished(&mut self, id: u64, call: EndedCall<'_>, source: Arc<CallSource>) -> FinishedCall {
        let record = call.record;
        let target = RecordedTarget::new(record, call.server);
        let target = self.targets.value(&target, |target| target.size);
        let copied = [&call.arguments, &call.error].into_iter().flatten();
        let copied: usize = copied.map(String::len).sum();
        FinishedCall {
            id,
            ended: call.ended,
            size: size_of::<FinishedCall>() + copied + target.size + source.size,
            target,
            source,
            arguments: call.arguments,
            outcome: record.outcome,
            code: record.code,
            error: call.error,
            is_unknown_tool: call.is_unknown_tool,
            duration: record.duration,
            waited: record.waited,
            at_server: record.upstream_duration,
            bytes_in: record.bytes_in,
            bytes_out: record.bytes_out,
        }
    }

    /// Adds a call, unless it alone takes more than `max_bytes`, and removes the oldest ones that then are too many.
    fn push(&mut self, call: FinishedCall, max_calls: usize, max_bytes: usize) {
        let size = call.size;
        if size > max_bytes {
            return;
        }
        while self.calls.len() >= max_calls || self.bytes + size > max_bytes {
            let Some(oldest) = self.calls.pop_front() else {
                break;
            };
            self.bytes -= oldest.size;
        }
        self.bytes += size;
        self.calls.push_back(call);
    }
}

impl<T: Eq + Hash> Known<T> {
    /// The value that a record has: the equal one that is known, or else a new one, which then is known. Few are known, none of
    /// them is large, and all are forgotten when there are too many.
    fn value<'a, R>(&mut self, recorded: &'a R, size: impl FnOnce(&T) -> usize) -> Arc<T>
    where
        R: Equivalent<Arc<T>> + Hash,
        T: From<&'a R>,
    {
        if let Some(same) = self.0.get(recorded) {
            return Arc::clone(same);
        }
        let value = Arc::new(T::from(recorded));
        if size(&value) <= LARGEST_KNOWN {
            if self.0.len() >= MOST_KNOWN {
                self.0.clear();
            }
            self.0.insert(Arc::clone(&value));
        }
        value
    }
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self(IndexSet::default())
    }
}

const MOST_CALLS: usize = 1000;
const MOST_CALL_BYTES: usize = 2 << 20;
/// The limits of the errors, and those of the refused calls.
const MOST_SEPARATE: usize = 100;
const MOST_SEPARATE_BYTES: usize = 512 << 10;
/// The locks that calls share. Of [`MOST_CALLS`] and [`MOST_SEPARATE`] it is a divisor.
const RINGS: usize = 4;
/// The values of a kind that a ring or part knows, and the bytes of the largest: those of a list at most 2 MiB.
const MOST_KNOWN: usize = 512;
const LARGEST_KNOWN: usize = 512;

#[cfg(test)]
mod tests {
    use mcp_vary_audit::{Event, LongText, Target, TargetKind};

    use super::*;

    fn push(history: &CallHistory, outcome: Outcome, error: Option<String>) {
        let record = Record::new(Event::Request, outcome);
        let call = EndedCall {
            error,
            ..EndedCall::new(&record, Instant::now())
        };
        assert!(history.push(call, false).is_none());
    }

    fn ids(history: &CallHistory) -> Vec<u64> {
        history.latest().iter().map(|call| call.id).collect()
    }

    /// OP-9
    #[test]
    fn the_last_thousand_calls_stay_and_of_older_ones_a_hundred_errors() {
        let history = CallHistory::default();
        assert!(ids(&history).is_empty());
        for _ in 0..150 {
            push(&history, Outcome::ToolError, Some("full".to_owned()));
        }
        for _ in 0..1200 {
            push(&history, Outcome::Allowed, None);
        }
        let calls = (351..=1350).rev();
        let errors = (51..=150).rev();
        assert_eq!(ids(&history), calls.chain(errors).collect::<Vec<_>>());
        push(&history, Outcome::Error, None);
        assert_eq!(ids(&history).last(), Some(&52));
    }

    #[test]
    fn a_burst_of_calls_leaves_the_last_hundred_refused_calls_and_they_leave_the_errors() {
        let history = CallHistory::default();
        push(&history, Outcome::Error, None);
        for _ in 0..150 {
            push(&history, Outcome::Denied, None);
        }
        for _ in 0..1200 {
            push(&history, Outcome::Allowed, None);
        }
        let (calls, refused) = ((352..=1351).rev(), (52..=151).rev());
        let all: Vec<_> = calls.chain(refused).chain([1]).collect();
        assert_eq!(ids(&history), all);
        // Nor do errors push out refused calls.
        for _ in 0..1200 {
            push(&history, Outcome::ToolError, None);
        }
        let stayed = history.latest();
        let is_refused = |call: &&FinishedCall| call.outcome == Outcome::Denied;
        let number_of_refused = stayed.iter().filter(is_refused).count();
        assert_eq!((stayed.len(), number_of_refused), (1100, 100));
    }

    #[test]
    fn calls_share_who_called_and_what() {
        let history = CallHistory::default();
        let call = |name: &str| {
            let mut record = Record::new(Event::Request, Outcome::Allowed);
            record.target = Some(Target::new(TargetKind::Tool, LongText::new(name)));
            history.push(EndedCall::new(&record, Instant::now()), false);
        };
        for _ in 0..=RINGS {
            call("git_push");
        }
        let calls = history.latest();
        let (last, first) = (calls.first().unwrap(), calls.last().unwrap());
        assert!(Arc::ptr_eq(&last.target, &first.target));
        assert!(Arc::ptr_eq(&last.source, &first.source));
        // What is too large for that, or came after too many others, is another value with the same text.
        for name in ["x".repeat(600), "git_push".to_owned()] {
            for number in 0..=RINGS * MOST_KNOWN {
                call(&number.to_string());
            }
            let [one, other] = [(); 2].map(|()| {
                for _ in 0..RINGS {
                    call(&name);
                }
                history.latest().swap_remove(0)
            });
            assert_eq!(one.target, other.target);
            let is_small = name.len() < LARGEST_KNOWN;
            assert_eq!(Arc::ptr_eq(&one.target, &other.target), is_small);
        }
    }

    /// OP-9
    #[test]
    fn large_calls_leave_room_for_fewer() {
        let history = CallHistory::default();
        for _ in 0..MOST_CALLS {
            push(&history, Outcome::Error, Some("x".repeat(10_000)));
        }
        let stayed = history.latest();
        let bytes: usize = stayed.iter().map(|call| call.size).sum();
        assert!(bytes <= MOST_CALL_BYTES, "{bytes}");
        assert!(bytes > MOST_CALL_BYTES - RINGS * 20_000, "{bytes}");
        push(
            &history,
            Outcome::Allowed,
            Some("x".repeat(MOST_CALL_BYTES)),
        );
        // A call that is larger than all can be does not stay itself; the others do.
        let before: Vec<_> = stayed.iter().map(|call| call.id).collect();
        assert_eq!(ids(&history), before);
    }
}
