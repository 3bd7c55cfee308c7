//! Whose calls run on a connection that many share.
//!
//! What a server says on its standalone stream names no call. It is told when it can only be about a call of one
//! client, and to that client.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::upstream::message::{Hears, Owner};

/// The calls in flight, and those that something may still come about.
#[derive(Debug, Default)]
pub(super) struct Callers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    open: BTreeMap<u64, Caller>,
    /// Who made the call that ended last, and until when something may come about it.
    last: Option<(Caller, Instant)>,
    /// Until when something may come about a call of anybody else.
    others: Option<Instant>,
}

/// Who made a call.
#[derive(Clone, Debug)]
struct Caller {
    owner: Owner,
    hears: Option<Weak<dyn Hears>>,
}

/// A call in flight; it has ended when this is dropped.
#[derive(Debug)]
pub(super) struct Flight {
    callers: Arc<Callers>,
    id: u64,
    lingers: Duration,
}

impl Callers {
    /// Takes note of a call that `owner` makes.
    pub(super) fn open(
        self: &Arc<Self>,
        id: u64,
        owner: Owner,
        hears: Option<Weak<dyn Hears>>,
    ) -> Flight {
        self.lock().open.insert(id, Caller { owner, hears });
        Flight {
            callers: Arc::clone(self),
            id,
            lingers: LATE,
        }
    }

    /// Whom something can only be for that comes at `now`; of several calls of one client the latest decides.
    pub(super) fn only_one(&self, now: Instant) -> Option<Arc<dyn Hears>> {
        self.lock().only_one(now)?.hears.as_ref()?.upgrade()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn only_one(&self, now: Instant) -> Option<&Caller> {
        let last = self.last.iter().filter(|(_, until)| *until > now);
        let mut all = self
            .open
            .values()
            .rev()
            .chain(last.map(|(caller, _)| caller));
        let latest = all.next()?;
        let alone = all.all(|caller| caller.owner == latest.owner);
        let crowded = self.others.is_some_and(|until| until > now);
        (alone && !crowded).then_some(latest)
    }

    fn end(&mut self, id: u64, until: Instant) {
        let Some(caller) = self.open.remove(&id) else {
            return;
        };
        let until = match self.last.take() {
            Some((last, its)) if last.owner == caller.owner => until.max(its),
            Some((_, its)) => {
                self.others = self.others.max(Some(its));
                until
            }
            None => until,
        };
        self.last = Some((caller, until));
    }
}

impl Flight {
    /// The call is given up, and the server may go on working at it.
    pub(super) fn abandon(&mut self) {
        self.lingers = ABANDONED;
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let until = Instant::now() + self.lingers;
        self.callers.lock().end(self.id, until);
    }
}

/// How much later than the answer to a call may come what was said of it before, by another connection.
const LATE: Duration = Duration::from_millis(500);
/// How long a server is taken to work at a call that was given up.
const ABANDONED: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls of these owners, begun (`+`) and ended (`-`) a second after one another, then nothing for as many
    /// seconds.
    #[track_caller]
    fn belongs(steps: &[(char, u64)], later: u64, expected: Option<u64>) {
        let mut state = State::default();
        let mut now = Instant::now();
        for (id, (step, owner)) in steps.iter().enumerate() {
            let (id, owner) = (id as u64, Owner(*owner));
            match step {
                '+' => drop(state.open.insert(id, Caller { owner, hears: None })),
                _ => {
                    let of_owner = |(_, caller): &(&u64, &Caller)| caller.owner == owner;
                    let id = *state.open.iter().find(of_owner).unwrap().0;
                    state.end(id, now + Duration::from_secs(10));
                }
            }
            now += Duration::from_secs(1);
        }
        now += Duration::from_secs(later);
        let found = state.only_one(now).map(|caller| caller.owner.0);
        assert_eq!(found, expected, "{steps:?} {later}");
    }

    #[test]
    fn it_is_for_the_only_one_who_calls() {
        belongs(&[], 0, None);
        belongs(&[('+', 1)], 0, Some(1));
        belongs(&[('+', 1), ('+', 1)], 0, Some(1));
        belongs(&[('+', 1), ('+', 2)], 0, None);
        belongs(&[('+', 1), ('+', 2), ('-', 1)], 20, Some(2));
    }

    #[test]
    fn who_has_called_counts_for_a_while() {
        belongs(&[('+', 1), ('-', 1)], 0, Some(1));
        belongs(&[('+', 1), ('-', 1)], 20, None);
        belongs(&[('+', 1), ('-', 1), ('+', 2)], 0, None);
        belongs(&[('+', 1), ('-', 1), ('+', 2)], 20, Some(2));
        belongs(&[('+', 1), ('-', 1), ('+', 2), ('-', 2)], 0, None);
        belongs(&[('+', 1), ('-', 1), ('+', 2), ('-', 2)], 7, Some(2));
        // Before and after another's is not alone, either.
        let around = [('+', 1), ('-', 1), ('+', 2), ('-', 2), ('+', 1), ('-', 1)];
        belongs(&around, 0, None);
        belongs(&around, 8, Some(1));
    }
}
