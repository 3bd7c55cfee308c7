//! The calls in flight on one process, and to which of them a notification belongs.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;

use crate::upstream::error::UpstreamError;
use crate::upstream::frame::canonical;
use crate::upstream::mailbox::Mailbox;
use crate::upstream::message::{Owner, Purpose};

/// A call in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) token: Option<String>,
    pub(super) owner: Option<Owner>,
    pub(super) purpose: Purpose,
}

impl Flight {
    /// Whether it is the gateway's own; what has no address never belongs to it.
    pub(super) fn is_background(&self) -> bool {
        self.purpose != Purpose::Call
    }
}

/// A call that nobody waits for any more, but at which the server may still be working.
#[derive(Debug)]
struct Lingering {
    owner: Option<Owner>,
    until: Instant,
}

/// All calls in flight; closed once the process is gone.
#[derive(Debug, Default)]
pub(super) struct Flights {
    open: BTreeMap<u64, Flight>,
    tokens: BTreeMap<String, u64>,
    lingering: BTreeMap<u64, Lingering>,
    /// Until when more calls linger than are remembered.
    crowded: Option<Instant>,
    closed: Option<UpstreamError>,
}

impl Flights {
    /// Adds a call.
    ///
    /// # Errors
    ///
    /// Why the connection is gone, when it is.
    pub(super) fn open(&mut self, id: u64, flight: Flight) -> Result<(), UpstreamError> {
        if let Some(closed) = &self.closed {
            return Err(closed.clone());
        }
        if let Some(token) = &flight.token {
            self.tokens.insert(canonical(token), id);
        }
        self.open.insert(id, flight);
        Ok(())
    }

    /// Takes a call out; `None` when it is not in flight.
    pub(super) fn take(&mut self, id: u64) -> Option<Flight> {
        let flight = self.open.remove(&id)?;
        if let Some(token) = &flight.token {
            self.tokens.remove(&canonical(token));
        }
        Some(flight)
    }

    /// Takes out a call that is cancelled; `false` when it is not in flight.
    ///
    /// Until the server answers it late, or `until`, what the server logs may still be about it.
    pub(super) fn abandon(&mut self, id: u64, until: Instant, now: Instant) -> bool {
        let Some(flight) = self.take(id) else {
            return false;
        };
        self.linger(id, &flight, until, now);
        true
    }

    fn linger(&mut self, id: u64, flight: &Flight, until: Instant, now: Instant) {
        if flight.is_background() {
            return;
        }
        self.lingering.retain(|_, call| call.until > now);
        if self.lingering.len() < MAX_LINGERING {
            let owner = flight.owner;
            self.lingering.insert(id, Lingering { owner, until });
        } else {
            self.crowded = self.crowded.max(Some(until));
        }
    }

    /// The server has answered a call that was abandoned; `false` when it was not.
    pub(super) fn settle(&mut self, id: u64) -> bool {
        self.lingering.remove(&id).is_some()
    }

    pub(super) fn by_id(&self, id: u64) -> Option<&Flight> {
        self.open.get(&id)
    }

    pub(super) fn by_token(&self, token: &str) -> Option<&Flight> {
        self.open.get(self.tokens.get(&canonical(token))?)
    }

    /// The call to which a notification without any reference belongs.
    ///
    /// The one in flight; of several the latest when all have one owner; else nobody can tell. A call
    /// that lingers at `now` counts as one in flight, though nothing can reach it.
    pub(super) fn by_rule(&self, now: Instant) -> Option<&Flight> {
        let mut calls = self
            .open
            .values()
            .rev()
            .filter(|flight| !flight.is_background());
        let latest = calls.next()?;
        let mut lingering = self.lingering.values().filter(|call| call.until > now);
        let alone = match latest.owner {
            Some(_) => {
                calls.all(|flight| flight.owner == latest.owner)
                    && lingering.all(|call| call.owner == latest.owner)
            }
            None => calls.next().is_none() && lingering.next().is_none(),
        };
        let crowded = self.crowded.is_some_and(|until| until > now);
        (alone && !crowded).then_some(latest)
    }

    /// The latest call that is made for a client; where one client has the connection alone, what the server asks
    /// is most likely about that.
    pub(super) fn latest_of_a_client(&self) -> Option<&Flight> {
        let mut calls = self.open.values().rev();
        calls.find(|flight| !flight.is_background() && flight.owner.is_some())
    }

    /// The requests that may be cancelled, which a handshake may not.
    pub(super) fn cancellable(&self) -> Vec<u64> {
        let open = self.open.iter();
        open.filter(|(_, flight)| flight.purpose.may_be_cancelled())
            .map(|(id, _)| *id)
            .collect()
    }

    /// Ends every call with `error`; the connection stays, and so may the server's work at them.
    pub(super) fn fail_all(&mut self, error: &UpstreamError, until: Instant, now: Instant) {
        self.tokens.clear();
        for (id, flight) in std::mem::take(&mut self.open) {
            self.linger(id, &flight, until, now);
            flight.mailbox.end(Err(error.clone()));
        }
    }

    /// Ends every call, and each later one at once. Only the first reason counts.
    pub(super) fn close(&mut self, error: &UpstreamError) {
        let error = self.closed.get_or_insert_with(|| error.clone()).clone();
        self.tokens.clear();
        for flight in std::mem::take(&mut self.open).into_values() {
            flight.mailbox.end(Err(error.clone()));
        }
    }

    pub(super) const fn closed(&self) -> Option<&UpstreamError> {
        self.closed.as_ref()
    }
}

/// How many calls that linger are remembered one by one.
const MAX_LINGERING: usize = 1024;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::upstream::mailbox::Budget;

    fn flight(owner: Option<u64>, purpose: Purpose) -> Flight {
        Flight {
            mailbox: Arc::new(Mailbox::new(1, Arc::new(Budget::new(1)))),
            token: None,
            owner: owner.map(Owner),
            purpose,
        }
    }

    fn calls(owners: impl IntoIterator<Item = u64>) -> Flights {
        let mut flights = Flights::default();
        for (id, owner) in owners.into_iter().enumerate() {
            let flight = flight(Some(owner), Purpose::Call);
            flights.open(id as u64, flight).unwrap();
        }
        flights
    }

    #[track_caller]
    fn belongs(calls: &[(Option<u64>, bool)], expected: Option<usize>) {
        let mut flights = Flights::default();
        let mut boxes = Vec::new();
        for (at, (owner, background)) in calls.iter().enumerate() {
            let purpose = if *background {
                Purpose::Subscription
            } else {
                Purpose::Call
            };
            let flight = flight(*owner, purpose);
            boxes.push(Arc::clone(&flight.mailbox));
            flights.open(at as u64, flight).unwrap();
        }
        let found = flights.by_rule(Instant::now()).map(|flight| {
            boxes
                .iter()
                .position(|mailbox| Arc::ptr_eq(mailbox, &flight.mailbox))
                .unwrap()
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn a_log_line_belongs_to_the_only_call_or_the_latest_of_one_owner() {
        belongs(&[], None);
        belongs(&[(None, true)], None);
        belongs(&[(None, false)], Some(0));
        belongs(&[(None, false), (None, true)], Some(0));
        belongs(&[(Some(1), false), (Some(1), false)], Some(1));
        belongs(&[(Some(1), false), (Some(2), false)], None);
        belongs(&[(Some(1), false), (None, false)], None);
        belongs(&[(None, false), (None, false)], None);
    }

    #[test]
    fn an_abandoned_call_counts_until_it_is_answered_late_or_its_time_is_over() {
        let now = Instant::now();
        let until = now + Duration::from_secs(60);
        let mut flights = calls([1, 2, 2]);
        assert!(flights.abandon(0, until, now));
        assert!(!flights.abandon(0, until, now));
        assert!(flights.by_rule(now).is_none());
        assert!(flights.by_rule(until).is_some());
        assert!(flights.settle(0));
        assert!(!flights.settle(0));
        assert!(flights.by_rule(now).is_some());
        // One's own does not stand in the way.
        assert!(flights.abandon(1, until, now));
        assert!(flights.by_rule(now).is_some());
    }

    #[test]
    fn more_abandoned_calls_than_are_remembered_still_count() {
        let now = Instant::now();
        let until = now + Duration::from_secs(60);
        let many = MAX_LINGERING as u64 + 1;
        let mut flights = calls((0..=many).map(|id| u64::from(id != 0 && id < many)));
        for id in 1..many {
            flights.abandon(id, until, now);
        }
        flights.abandon(0, until, now);
        for id in 1..many {
            flights.settle(id);
        }
        assert!(flights.lingering.is_empty());
        assert!(flights.by_rule(now).is_none());
        assert!(flights.by_rule(until).is_some());
    }
}
