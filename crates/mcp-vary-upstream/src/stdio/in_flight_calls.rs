//! The calls in flight on one process, and to which of them a notification belongs.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use mcp_vary_wire::server_message::canonical;

use crate::clients::Clients;
use crate::error::UpstreamError;
use crate::mailbox::Mailbox;
use crate::message::{CallerId, NotificationSink, RequestKind};

/// A call in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) token: Option<String>,
    pub(super) owner: Option<CallerId>,
    pub(super) purpose: RequestKind,
}

impl Flight {
    /// Whether it is the gateway's own; what has no address never belongs to it.
    pub(super) fn is_background(&self) -> bool {
        self.purpose != RequestKind::Call
    }
}

/// All calls in flight; closed once the process is gone.
#[derive(Debug, Default)]
pub(super) struct Flights {
    open: BTreeMap<u64, Flight>,
    tokens: BTreeMap<String, u64>,
    pub(super) clients: Clients,
    closed: Option<UpstreamError>,
}

impl Flights {
    /// Adds a call; `receiver` is what receives messages for its client between calls.
    ///
    /// # Errors
    ///
    /// Why the connection is gone, when it is.
    pub(super) fn open(
        &mut self,
        id: u64,
        flight: Flight,
        receiver: Option<&Weak<dyn NotificationSink>>,
    ) -> Result<(), UpstreamError> {
        if let Some(closed) = &self.closed {
            return Err(closed.clone());
        }
        if let Some(owner) = flight.owner {
            self.clients.note(owner, receiver);
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

    /// The call that a notification belongs to which names none: the latest call of the only client that has ever made
    /// calls here. Once a second client has made one, there is no way to know.
    pub(super) fn of_sole_client(&self) -> Option<&Flight> {
        let mut calls = self
            .open
            .values()
            .rev()
            .filter(|flight| !flight.is_background());
        let latest = calls.next()?;
        let is_certain = match latest.owner {
            Some(owner) => {
                self.clients.sole() == Some(owner)
                    && calls.all(|flight| flight.owner == latest.owner)
            }
            None => self.clients.is_unused() && calls.next().is_none(),
        };
        is_certain.then_some(latest)
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
        open.filter(|(_, flight)| flight.purpose.is_cancellable())
            .map(|(id, _)| *id)
            .collect()
    }

    /// Ends every call with `error`; the connection stays, and so may the server's work at them.
    pub(super) fn fail_all(&mut self, error: &UpstreamError) {
        self.tokens.clear();
        for flight in std::mem::take(&mut self.open).into_values() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::Budget;

    fn flight(owner: Option<u64>, purpose: RequestKind) -> Flight {
        Flight {
            mailbox: Arc::new(Mailbox::new(1, Arc::new(Budget::new(1)))),
            token: None,
            owner: owner.map(CallerId),
            purpose,
        }
    }

    /// Calls of these owners, in the background or not, that have ended before, then those in flight.
    #[track_caller]
    fn belongs(ended: &[u64], calls: &[(Option<u64>, bool)], expected: Option<usize>) {
        let mut flights = Flights::default();
        for owner in ended {
            let flight = flight(Some(*owner), RequestKind::Call);
            flights.open(99, flight, None).unwrap();
            flights.take(99).unwrap();
        }
        let mut boxes = Vec::new();
        for (at, (owner, background)) in calls.iter().enumerate() {
            let purpose = if *background {
                RequestKind::Subscription
            } else {
                RequestKind::Call
            };
            let flight = flight(*owner, purpose);
            boxes.push(Arc::clone(&flight.mailbox));
            flights.open(at as u64, flight, None).unwrap();
        }
        let found = flights.of_sole_client().map(|flight| {
            boxes
                .iter()
                .position(|mailbox| Arc::ptr_eq(mailbox, &flight.mailbox))
                .unwrap()
        });
        assert_eq!(found, expected, "{ended:?} {calls:?}");
    }

    #[test]
    fn a_log_line_belongs_to_the_latest_call_of_one_client() {
        belongs(&[], &[], None);
        belongs(&[], &[(None, true)], None);
        belongs(&[], &[(None, false)], Some(0));
        belongs(&[], &[(None, false), (None, true)], Some(0));
        belongs(&[], &[(Some(1), false), (Some(1), false)], Some(1));
        belongs(&[], &[(Some(1), false), (Some(2), false)], None);
        belongs(&[], &[(Some(1), false), (None, false)], None);
        belongs(&[], &[(None, false), (None, false)], None);
    }

    #[test]
    fn a_log_line_belongs_to_nobody_once_another_client_has_called() {
        belongs(&[1], &[(Some(1), false)], Some(0));
        belongs(&[1], &[(Some(2), false)], None);
        belongs(&[1], &[(None, false)], None);
        belongs(&[1, 2], &[(Some(1), false)], None);
    }
}
