//! The calls in flight on a shared connection, and which client receives messages that name none of them.
//!
//! Messages on the standalone stream name no call. They are forwarded only if exactly one client has called, and to
//! that client.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::clients::Clients;
use crate::message::{CallerId, NotificationSink};
use mcp_vary_base::lock::ScopedLock;

/// The clients of a connection, and the message receiver of each call in flight.
#[derive(Debug, Default)]
pub(super) struct CallTable {
    clients: Clients,
    in_flight: ScopedLock<BTreeMap<u64, Option<Weak<dyn NotificationSink>>>>,
}

/// A call in flight. Dropping it removes the call from the table.
#[derive(Debug)]
pub(super) struct InFlightCall {
    table: Arc<CallTable>,
    id: u64,
}

impl CallTable {
    /// Records that `caller` makes a call, before the call is sent; `receiver` gets the client's messages between calls.
    pub(super) fn record_caller(
        &self,
        caller: CallerId,
        receiver: Option<&Weak<dyn NotificationSink>>,
    ) {
        self.clients.record(caller, receiver);
    }

    /// Adds a call in flight with its receiver.
    pub(super) fn insert(
        self: &Arc<Self>,
        id: u64,
        receiver: Option<Weak<dyn NotificationSink>>,
    ) -> InFlightCall {
        self.in_flight.lock().insert(id, receiver);
        InFlightCall {
            table: Arc::clone(self),
            id,
        }
    }

    /// Whether exactly one client has called.
    pub(super) fn has_sole_client(&self) -> bool {
        self.clients.sole().is_some()
    }

    /// The receiver of a message that names no call, if exactly one client has called; that of its latest call first.
    pub(super) fn sole_receiver(&self) -> Option<Arc<dyn NotificationSink>> {
        self.clients.sole()?;
        let latest = self.in_flight.lock().values().next_back().cloned();
        match latest {
            Some(receiver) => receiver?.upgrade(),
            None => self.clients.receiver(),
        }
    }
}

impl Drop for InFlightCall {
    fn drop(&mut self) {
        self.table.in_flight.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[derive(Debug)]
    struct Receiver;

    impl NotificationSink for Receiver {
        fn receive(&self, _: &str, _: &Bytes) {}
    }

    /// Whether something is for the receiver of the latest call, or for that of the client.
    #[track_caller]
    fn is_for(callers: &CallTable, receiver: Option<&Arc<dyn NotificationSink>>) {
        let found = callers.sole_receiver();
        assert_eq!(
            found.as_ref().map(Arc::as_ptr).map(<*const _>::cast::<()>),
            receiver.map(Arc::as_ptr).map(<*const _>::cast::<()>)
        );
    }

    #[test]
    fn what_names_no_call_is_for_the_only_client() {
        let callers = Arc::<CallTable>::default();
        let [client, call]: [Arc<dyn NotificationSink>; 2] =
            [Arc::new(Receiver), Arc::new(Receiver)];
        is_for(&callers, None);
        callers.record_caller(CallerId(1), Some(&Arc::downgrade(&client)));
        is_for(&callers, Some(&client));
        let call_in_flight = callers.insert(1, Some(Arc::downgrade(&call)));
        is_for(&callers, Some(&call));
        drop(call_in_flight);
        is_for(&callers, Some(&client));
        callers.record_caller(CallerId(2), None);
        is_for(&callers, None);
    }
}
