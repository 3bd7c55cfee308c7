//! The last calls of a gateway, which its page shows.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_vary_audit::Outcome;
use mcp_vary_base::lock::ScopedLock;

use crate::failed_calls::FailureCounts;
use crate::finished_call::FinishedCall;
use crate::recorded_call::{EndedCall, RecordedCall};

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
/// that takes more than its ring may is not added. A call takes over what its record has, and nothing is looked up or copied
/// until somebody reads it.
#[derive(Debug, Default)]
pub(crate) struct CallHistory {
    calls: Rings,
    errors: Rings,
    refusals: Rings,
    /// Those of both since the start.
    pub(crate) failures: FailureCounts,
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
    /// Boxed, so that a place is used again and a call is moved once.
    calls: VecDeque<Box<RecordedCall>>,
    bytes: usize,
}

impl CallHistory {
    /// Adds a call, which gets the next number. Returns a copy of it for those who watch.
    pub(crate) fn push(&self, call: EndedCall<'_>, is_watched: bool) -> Option<FinishedCall> {
        let id = self.calls.next_number();
        let recorded = RecordedCall::new(id, call);
        let separate = match recorded.outcome {
            Outcome::Error | Outcome::ToolError => Some(&self.errors),
            Outcome::Denied => Some(&self.refusals),
            Outcome::Allowed | Outcome::Cancelled => None,
        };
        let has_copy = is_watched || separate.is_some();
        let finished = has_copy.then(|| recorded.finished());
        if let Some((rings, finished)) = separate.zip(finished.as_ref()) {
            self.failures.count(finished);
            let mut ring = rings.ring(rings.next_number()).lock();
            let bytes = MOST_SEPARATE_BYTES / RINGS;
            ring.push(recorded.clone(), MOST_SEPARATE / RINGS, bytes);
        }
        let mut ring = self.calls.ring(id).lock();
        ring.push(recorded, MOST_CALLS / RINGS, MOST_CALL_BYTES / RINGS);
        drop(ring);
        if is_watched { finished } else { None }
    }

    /// The calls that stayed, the latest first.
    pub(crate) fn latest(&self) -> Vec<FinishedCall> {
        let mut latest = self.calls.all();
        latest.extend(self.errors.all());
        latest.extend(self.refusals.all());
        latest.sort_by_key(|call| Reverse(call.id));
        latest.dedup_by_key(|call| call.id);
        latest.iter().map(RecordedCall::finished).collect()
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

    fn all(&self) -> Vec<RecordedCall> {
        let mut all = Vec::new();
        for ring in &self.rings {
            all.extend(
                ring.lock()
                    .calls
                    .iter()
                    .map(|call| RecordedCall::clone(call)),
            );
        }
        all
    }
}

impl Ring {
    /// Adds a call, unless it alone takes more than `max_bytes`, and removes the oldest ones that then are too many.
    fn push(&mut self, call: RecordedCall, max_calls: usize, max_bytes: usize) {
        let size = call.size;
        if size > max_bytes {
            return;
        }
        let mut replaced = None;
        while self.calls.len() >= max_calls || self.bytes + size > max_bytes {
            let Some(oldest) = self.calls.pop_front() else {
                break;
            };
            self.bytes -= oldest.size;
            replaced = Some(oldest);
        }
        self.bytes += size;
        self.calls.push_back(match replaced {
            Some(mut place) => {
                *place = call;
                place
            }
            None => Box::new(call),
        });
    }
}

const MOST_CALLS: usize = 1000;
const MOST_CALL_BYTES: usize = 2 << 20;
/// The limits of the errors, and those of the refused calls.
const MOST_SEPARATE: usize = 100;
const MOST_SEPARATE_BYTES: usize = 512 << 10;
/// The locks that calls share. Of [`MOST_CALLS`] and [`MOST_SEPARATE`] it is a divisor.
const RINGS: usize = 4;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcp_vary_audit::{Event, LongText, Record, Target, TargetKind};
    use tokio::time::Instant;

    use super::*;

    fn push(history: &CallHistory, outcome: Outcome, error: Option<String>) {
        let mut record = Record::new(Event::Request, outcome);
        let call = EndedCall {
            error,
            ..EndedCall::new(&mut record, Instant::now())
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
    fn a_call_has_the_texts_of_its_record_and_copies_none() {
        let history = CallHistory::default();
        let name: Arc<str> = "git_push".into();
        let mut record = Record::new(Event::Request, Outcome::Error);
        record.target = Some(Target::new(TargetKind::Tool, LongText::shared(&name)));
        history.push(EndedCall::new(&mut record, Instant::now()), false);
        let finished = history.latest().remove(0);
        let shown = finished.target.target.as_ref().unwrap();
        assert!(std::ptr::eq(shown.as_str(), &*name));
        // Of a URI it shows a copy, without what may be a secret.
        record.target = Some(Target::new(
            TargetKind::Resource,
            LongText::new("db://u:p@h/x?k=1"),
        ));
        history.push(EndedCall::new(&mut record, Instant::now()), false);
        let shown = history.latest().remove(0).target.target.clone();
        assert_eq!(shown, Some(LongText::new("db://h/x")));
    }

    /// OP-9
    #[test]
    fn large_calls_leave_room_for_fewer() {
        let history = CallHistory::default();
        for _ in 0..MOST_CALLS {
            push(&history, Outcome::Error, Some("x".repeat(10_000)));
        }
        let stayed = history.calls.all();
        let bytes: usize = stayed.iter().map(|call| call.size).sum();
        assert!(bytes <= MOST_CALL_BYTES, "{bytes}");
        assert!(bytes > MOST_CALL_BYTES - RINGS * 20_000, "{bytes}");
        push(
            &history,
            Outcome::Allowed,
            Some("x".repeat(MOST_CALL_BYTES)),
        );
        // A call that is larger than all can be does not stay itself; the others do.
        let after: Vec<_> = history.calls.all().iter().map(|call| call.id).collect();
        assert!(after.into_iter().eq(stayed.iter().map(|call| call.id)));
    }
}
