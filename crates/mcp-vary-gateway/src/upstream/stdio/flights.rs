//! The calls in flight on one process, and to which of them a notification belongs.

use std::collections::BTreeMap;
use std::sync::Arc;

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

/// All calls in flight; closed once the process is gone.
#[derive(Debug, Default)]
pub(super) struct Flights {
    open: BTreeMap<u64, Flight>,
    tokens: BTreeMap<String, u64>,
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

    pub(super) fn by_id(&self, id: u64) -> Option<&Flight> {
        self.open.get(&id)
    }

    pub(super) fn by_token(&self, token: &str) -> Option<&Flight> {
        self.open.get(self.tokens.get(&canonical(token))?)
    }

    /// The call to which a notification without any reference belongs.
    ///
    /// The one in flight; of several the latest when all have one owner; else nobody can tell.
    pub(super) fn by_rule(&self) -> Option<&Flight> {
        let mut calls = self
            .open
            .values()
            .rev()
            .filter(|flight| !flight.is_background());
        let latest = calls.next()?;
        let alone = match latest.owner {
            Some(_) => calls.all(|flight| flight.owner == latest.owner),
            None => calls.next().is_none(),
        };
        alone.then_some(latest)
    }

    /// The requests that may be cancelled, which a handshake may not.
    pub(super) fn cancellable(&self) -> Vec<u64> {
        let open = self.open.iter();
        open.filter(|(_, flight)| flight.purpose != Purpose::Handshake)
            .map(|(id, _)| *id)
            .collect()
    }

    /// Whether a client's call is in flight.
    pub(super) fn is_busy(&self) -> bool {
        self.open.values().any(|flight| !flight.is_background())
    }

    /// Ends every call with `error`; the connection stays.
    pub(super) fn fail_all(&mut self, error: &UpstreamError) {
        self.tokens.clear();
        for flight in std::mem::take(&mut self.open).into_values() {
            flight.mailbox.end(Err(error.clone()));
        }
    }

    /// Ends every call, and each later one at once. Only the first reason counts.
    pub(super) fn close(&mut self, error: &UpstreamError) {
        let error = self.closed.get_or_insert_with(|| error.clone()).clone();
        self.fail_all(&error);
    }

    pub(super) const fn closed(&self) -> Option<&UpstreamError> {
        self.closed.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn belongs(calls: &[(Option<u64>, bool)], expected: Option<usize>) {
        let mut flights = Flights::default();
        let boxes: Vec<_> = calls.iter().map(|_| Arc::new(Mailbox::new(1))).collect();
        for (at, (owner, background)) in calls.iter().enumerate() {
            let flight = Flight {
                mailbox: Arc::clone(&boxes[at]),
                token: None,
                owner: owner.map(Owner),
                purpose: if *background {
                    Purpose::Subscription
                } else {
                    Purpose::Call
                },
            };
            flights.open(at as u64, flight).unwrap();
        }
        let found = flights.by_rule().map(|flight| {
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
}
