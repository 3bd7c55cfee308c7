//! The last calls of a gateway, which its page shows.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_vary_audit::{KnownTexts, Outcome};
use mcp_vary_base::lock::ScopedLock;

use crate::finished_call::FinishedCall;

/// The last calls of a gateway, and the last errors: an error is in both, so that 1,000 later calls do not push it out.
///
/// # Properties
///
/// | limit | calls | errors |
/// |---|---|---|
/// | number | 1,000 | 100 |
/// | memory | 2 MiB | 512 KiB |
///
/// The oldest leave first when either limit is reached. Both are spread over 4 rings with a quarter of the limits each; a call
/// that takes more than its ring may is not added. Texts that repeat are shared: to allocate and free those of a thousand calls
/// costs more than the rest, since none of them is in a cache of the processor by then.
#[derive(Debug, Default)]
pub(crate) struct CallHistory {
    calls: Rings,
    errors: Rings,
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
    calls: VecDeque<Arc<FinishedCall>>,
    bytes: usize,
    texts: KnownTexts,
}

impl CallHistory {
    /// Adds a call, which gets the next number.
    pub(crate) fn push(&self, mut call: FinishedCall) -> Arc<FinishedCall> {
        call.id = self.calls.next_number();
        self.calls.intern(&mut call);
        let shared = Arc::new(call);
        self.calls
            .push(shared.id, &shared, MOST_CALLS, MOST_CALL_BYTES);
        if matches!(shared.outcome, Outcome::Error | Outcome::ToolError) {
            let number = self.errors.next_number();
            self.errors
                .push(number, &shared, MOST_ERRORS, MOST_ERROR_BYTES);
        }
        shared
    }

    /// The calls that stayed, the latest first.
    pub(crate) fn latest(&self) -> Vec<Arc<FinishedCall>> {
        let mut latest = self.calls.all();
        latest.extend(self.errors.all());
        latest.sort_by_key(|call| Reverse(call.id));
        latest.dedup_by_key(|call| call.id);
        latest
    }
}

impl Rings {
    fn next_number(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Has `call` share the texts of its ring.
    fn intern(&self, call: &mut FinishedCall) {
        if let Some(ring) = self.ring(call.id) {
            call.intern(&mut ring.lock().texts);
        }
    }

    fn ring(&self, number: u64) -> Option<&ScopedLock<Ring>> {
        self.rings.get(number as usize % RINGS)
    }

    /// Adds the call with this number to its ring, which has its part of `max_calls` and `max_bytes`.
    fn push(&self, number: u64, call: &Arc<FinishedCall>, max_calls: usize, max_bytes: usize) {
        let Some(ring) = self.ring(number) else {
            return;
        };
        let removed = ring.lock().push(call, max_calls / RINGS, max_bytes / RINGS);
        // After the lock: to free its texts takes longer than all of the above.
        drop(removed);
    }

    fn all(&self) -> Vec<Arc<FinishedCall>> {
        let rings = self.rings.iter();
        let calls = rings.flat_map(|ring| ring.lock().calls.iter().cloned().collect::<Vec<_>>());
        calls.collect()
    }
}

impl Ring {
    /// Adds a call, unless it alone takes more than `max_bytes`, and removes the oldest ones that then are too many. Returns
    /// the last one that was removed.
    fn push(
        &mut self,
        call: &Arc<FinishedCall>,
        max_calls: usize,
        max_bytes: usize,
    ) -> Option<Arc<FinishedCall>> {
        let size = call.size();
        if size > max_bytes {
            return None;
        }
        self.bytes += size;
        self.calls.push_back(Arc::clone(call));
        let mut removed = None;
        while self.calls.len() > max_calls || self.bytes > max_bytes {
            let oldest = self.calls.pop_front()?;
            self.bytes -= oldest.size();
            removed = Some(oldest);
        }
        removed
    }
}

const MOST_CALLS: usize = 1000;
const MOST_ERRORS: usize = 100;
const MOST_CALL_BYTES: usize = 2 << 20;
const MOST_ERROR_BYTES: usize = 512 << 10;
/// The locks that calls share. Of [`MOST_CALLS`] and [`MOST_ERRORS`] it is a divisor.
const RINGS: usize = 4;

#[cfg(test)]
mod tests {
    use mcp_vary_audit::{Event, LongText, Record, Target, TargetKind};

    use super::*;

    fn push(history: &CallHistory, outcome: Outcome, error: Option<String>) {
        let record = Record::new(Event::Request, outcome);
        let mut call = FinishedCall::new(&record, None);
        call.error = error;
        history.push(call);
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
        // A refusal is not an error of a server, so refused calls cannot push errors out.
        push(&history, Outcome::Denied, None);
        assert_eq!(ids(&history).last(), Some(&51));
        push(&history, Outcome::Error, None);
        assert_eq!(ids(&history).last(), Some(&52));
    }

    #[test]
    fn calls_share_their_texts() {
        let history = CallHistory::default();
        for _ in 0..=RINGS {
            let target = Target::new(TargetKind::Tool, LongText::new("git_push"));
            let mut record = Record::new(Event::Request, Outcome::Allowed);
            record.target = Some(target);
            history.push(FinishedCall::new(&record, None));
        }
        let calls = history.latest();
        let [first, second] = [calls.first(), calls.last()]
            .map(|call| call.unwrap().target.as_ref().unwrap().as_str().as_ptr());
        assert_eq!(first, second);
    }

    /// OP-9
    #[test]
    fn large_calls_leave_room_for_fewer() {
        let history = CallHistory::default();
        for _ in 0..MOST_CALLS {
            push(&history, Outcome::Error, Some("x".repeat(10_000)));
        }
        let stayed = history.latest();
        let bytes: usize = stayed.iter().map(|call| call.size()).sum();
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
