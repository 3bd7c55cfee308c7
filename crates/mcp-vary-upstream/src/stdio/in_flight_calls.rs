//! The calls in flight on one process, and to which of them a notification belongs.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use mcp_vary_wire::server_message::own_token;

use crate::clients::Clients;
use crate::error::UpstreamError;
use crate::mailbox::Mailbox;
use crate::message::{CallerId, NotificationSink, RequestKind};

/// A call in flight.
#[derive(Debug)]
pub(super) struct InFlightCall {
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) token: Option<String>,
    pub(super) caller: Option<CallerId>,
    pub(super) kind: RequestKind,
    /// Whether a line may have been its answer, which could not be read.
    pub(super) is_doubtful: bool,
}

impl InFlightCall {
    /// Whether the gateway makes it for itself; messages that name no call never belong to it.
    pub(super) fn is_background(&self) -> bool {
        self.kind != RequestKind::Call
    }
}

/// All calls in flight; closed once the process has ended.
#[derive(Debug, Default)]
pub(super) struct InFlightCalls {
    open: BTreeMap<u64, InFlightCall>,
    tokens: BTreeMap<String, u64>,
    pub(super) clients: Clients,
    /// The callers of cancelled calls that the server may still work on.
    abandoned: BTreeMap<u64, Option<CallerId>>,
    closed: Option<UpstreamError>,
}

impl InFlightCalls {
    /// Adds a call; `receiver` gets the client's messages between calls.
    ///
    /// # Errors
    ///
    /// Why the connection is closed, if it is.
    pub(super) fn insert(
        &mut self,
        id: u64,
        call: InFlightCall,
        receiver: Option<&Weak<dyn NotificationSink>>,
    ) -> Result<(), UpstreamError> {
        if let Some(closed) = &self.closed {
            return Err(closed.clone());
        }
        if let Some(owner) = call.caller {
            self.clients.record(owner, receiver);
        }
        if let Some(token) = &call.token {
            self.tokens.insert(own_token(token), id);
        }
        self.open.insert(id, call);
        Ok(())
    }

    /// Removes a call that the server does not have to answer any more; `None` when it is not in flight.
    pub(super) fn abandon(&mut self, id: u64) -> Option<InFlightCall> {
        let call = self.remove(id)?;
        if !call.is_background() && self.abandoned.len() < MAX_ABANDONED {
            self.abandoned.insert(id, call.caller);
        }
        Some(call)
    }

    /// Removes a call that was answered; `None` when it is not in flight.
    pub(super) fn remove(&mut self, id: u64) -> Option<InFlightCall> {
        self.abandoned.remove(&id);
        let call = self.open.remove(&id)?;
        if let Some(token) = &call.token {
            self.tokens.remove(&own_token(token));
        }
        Some(call)
    }

    /// The only call in flight, apart from subscriptions, which stay open.
    pub(super) fn only_call(&self) -> Option<u64> {
        let is_call = |call: &InFlightCall| call.kind != RequestKind::Subscription;
        let mut calls = self.open.iter().filter(|(_, call)| is_call(call));
        let (id, _) = calls.next()?;
        calls.next().is_none().then_some(*id)
    }

    /// Marks a call whose answer may be lost; `false` if it is not in flight or marked already.
    pub(super) fn doubt(&mut self, id: u64) -> bool {
        let call = self.open.get_mut(&id);
        call.is_some_and(|call| !std::mem::replace(&mut call.is_doubtful, true))
    }

    pub(super) fn by_id(&self, id: u64) -> Option<&InFlightCall> {
        self.open.get(&id)
    }

    pub(super) fn by_token(&self, token: &str) -> Option<&InFlightCall> {
        self.open.get(self.tokens.get(&own_token(token))?)
    }

    /// The call for a notification that names none: the latest call of the only client that has called on this
    /// connection. Once a second client has called, there is none.
    pub(super) fn call_of_sole_client(&self) -> Option<&InFlightCall> {
        let mut calls = self
            .open
            .values()
            .rev()
            .filter(|call| !call.is_background());
        let latest = calls.next()?;
        let is_certain = match latest.caller {
            Some(owner) => {
                self.clients.sole() == Some(owner) && calls.all(|call| call.caller == latest.caller)
            }
            None => self.clients.is_unused() && calls.next().is_none(),
        };
        is_certain.then_some(latest)
    }

    /// The call for a server request of a process that several clients share: the latest, if those in flight, and those that
    /// the server may still work on, are all of one client.
    pub(super) fn call_of_one_client(&self) -> Option<&InFlightCall> {
        let is_call = |call: &&InFlightCall| !call.is_background();
        let latest = self.open.values().rev().find(is_call)?;
        let calls = self.open.values().filter(is_call);
        let mut others = calls
            .map(|call| call.caller)
            .chain(self.abandoned.values().copied());
        let is_certain = match latest.caller {
            Some(_) => others.all(|caller| caller == latest.caller),
            None => others.count() == 1,
        };
        (is_certain && self.abandoned.len() < MAX_ABANDONED).then_some(latest)
    }

    /// The latest call of a client. On a dedicated connection, a request of the server is most likely about it.
    pub(super) fn latest_client_call(&self) -> Option<&InFlightCall> {
        let mut calls = self.open.values().rev();
        calls.find(|call| !call.is_background() && call.caller.is_some())
    }

    /// The requests that may be cancelled; a handshake may not.
    pub(super) fn cancellable(&self) -> Vec<u64> {
        let open = self.open.iter();
        open.filter(|(_, call)| call.kind.is_cancellable())
            .map(|(id, _)| *id)
            .collect()
    }

    /// Ends every call with `error`; the connection stays open, and the server may continue to work on them.
    pub(super) fn fail_all(&mut self, error: &UpstreamError) {
        let open: Vec<_> = self.open.keys().copied().collect();
        for call in open.into_iter().filter_map(|id| self.abandon(id)) {
            call.mailbox.end(Err(error.clone()));
        }
    }

    /// Ends every call, and all later ones immediately. Only the first reason counts.
    pub(super) fn close(&mut self, error: &UpstreamError) {
        let error = self.closed.get_or_insert_with(|| error.clone()).clone();
        self.tokens.clear();
        for call in std::mem::take(&mut self.open).into_values() {
            call.mailbox.end(Err(error.clone()));
        }
    }

    pub(super) const fn closed(&self) -> Option<&UpstreamError> {
        self.closed.as_ref()
    }
}

/// The cancelled calls that are remembered. With as many, no server request is certain any more.
const MAX_ABANDONED: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::Budget;

    fn call(owner: Option<u64>, kind: RequestKind) -> InFlightCall {
        InFlightCall {
            mailbox: Arc::new(Mailbox::new(1, Arc::new(Budget::new(1)))),
            token: None,
            caller: owner.map(CallerId),
            kind,
            is_doubtful: false,
        }
    }

    /// Calls of these owners, in the background or not, that have ended before, then those in flight.
    #[track_caller]
    fn belongs(ended: &[u64], calls: &[(Option<u64>, bool)], expected: Option<usize>) {
        let mut flights = InFlightCalls::default();
        for owner in ended {
            let call = call(Some(*owner), RequestKind::Call);
            flights.insert(99, call, None).unwrap();
            flights.remove(99).unwrap();
        }
        let mut boxes = Vec::new();
        for (at, (owner, background)) in calls.iter().enumerate() {
            let kind = if *background {
                RequestKind::Subscription
            } else {
                RequestKind::Call
            };
            let call = call(*owner, kind);
            boxes.push(Arc::clone(&call.mailbox));
            flights.insert(at as u64, call, None).unwrap();
        }
        let found = flights.call_of_sole_client().map(|call| {
            boxes
                .iter()
                .position(|mailbox| Arc::ptr_eq(mailbox, &call.mailbox))
                .unwrap()
        });
        assert_eq!(found, expected, "{ended:?} {calls:?}");
    }

    /// Calls of these owners, of which those in `abandoned` were cancelled, and the one that gets a server request.
    #[track_caller]
    fn is_asked(owners: &[Option<u64>], abandoned: &[u64], expected: Option<u64>) {
        let mut flights = InFlightCalls::default();
        let mut boxes = Vec::new();
        for (id, owner) in owners.iter().enumerate() {
            let call = call(*owner, RequestKind::Call);
            boxes.push(Arc::clone(&call.mailbox));
            flights.insert(id as u64, call, None).unwrap();
        }
        abandoned.iter().for_each(|id| drop(flights.abandon(*id)));
        let asked = flights.call_of_one_client();
        let position =
            |call: &InFlightCall| boxes.iter().position(|it| Arc::ptr_eq(it, &call.mailbox));
        let asked = asked.and_then(position).map(|at| at as u64);
        assert_eq!(asked, expected, "{owners:?}, {abandoned:?} cancelled");
    }

    #[test]
    fn a_question_of_a_shared_process_reaches_only_the_client_of_all_calls() {
        let (ann, eve) = (Some(1), Some(2));
        is_asked(&[], &[], None);
        is_asked(&[ann], &[], Some(0));
        is_asked(&[ann, ann], &[], Some(1));
        is_asked(&[ann, eve], &[], None);
        is_asked(&[eve, ann, ann], &[], None);
        is_asked(&[None], &[], Some(0));
        is_asked(&[None, None], &[], None);
        is_asked(&[ann, None], &[], None);
        // The server may ask for a cancelled call.
        is_asked(&[ann, eve], &[0], None);
        is_asked(&[ann, ann], &[0], Some(1));
        is_asked(&[None, None], &[0], None);
        is_asked(&[ann], &[0], None);
        is_asked(&[ann; 66], &(0..65).collect::<Vec<_>>(), None);
    }

    #[test]
    fn a_cancelled_call_that_was_answered_all_the_same_is_over() {
        let mut flights = InFlightCalls::default();
        for (id, owner) in [(0, 1), (1, 2)] {
            flights
                .insert(id, call(Some(owner), RequestKind::Call), None)
                .unwrap();
        }
        flights.abandon(0);
        assert!(flights.call_of_one_client().is_none());
        assert!(flights.remove(0).is_none());
        assert!(flights.call_of_one_client().is_some());
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
    fn the_only_call_is_that_beside_subscriptions() {
        let mut flights = InFlightCalls::default();
        let mut only = |kinds: &[(u64, RequestKind)]| {
            for (id, kind) in kinds {
                flights.insert(*id, call(None, *kind), None).unwrap();
            }
            flights.only_call()
        };
        assert_eq!(only(&[]), None);
        assert_eq!(only(&[(1, RequestKind::Subscription)]), None);
        assert_eq!(only(&[(2, RequestKind::Call)]), Some(2));
        assert_eq!(only(&[(3, RequestKind::HealthCheck)]), None);
        assert!(flights.doubt(2) && !flights.doubt(2) && !flights.doubt(9));
    }

    #[test]
    fn a_log_line_belongs_to_nobody_once_another_client_has_called() {
        belongs(&[1], &[(Some(1), false)], Some(0));
        belongs(&[1], &[(Some(2), false)], None);
        belongs(&[1], &[(None, false)], None);
        belongs(&[1, 2], &[(Some(1), false)], None);
    }
}
