//! The calls in flight on a connection that many share, and who receives what names none of them.
//!
//! What a server says on its standalone stream names no call. It is passed on only where one client alone has made
//! calls, and to that client.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::clients::Clients;
use crate::message::{CallerId, NotificationSink};

/// The clients of a connection, and what receives messages for each call in flight.
#[derive(Debug, Default)]
pub(super) struct Callers {
    clients: Clients,
    open: Mutex<BTreeMap<u64, Option<Weak<dyn NotificationSink>>>>,
}

/// A call in flight; it has ended when this is dropped.
#[derive(Debug)]
pub(super) struct Flight {
    callers: Arc<Callers>,
    id: u64,
}

impl Callers {
    /// Notes that `owner` makes a call, before the call is sent; `receiver` is what receives messages for it
    /// between calls.
    pub(super) fn note(&self, owner: CallerId, receiver: Option<&Weak<dyn NotificationSink>>) {
        self.clients.note(owner, receiver);
    }

    /// Adds a call in flight, and what receives messages for it.
    pub(super) fn open(
        self: &Arc<Self>,
        id: u64,
        receiver: Option<Weak<dyn NotificationSink>>,
    ) -> Flight {
        self.lock().insert(id, receiver);
        Flight {
            callers: Arc::clone(self),
            id,
        }
    }

    /// Whether one client alone has made calls.
    pub(super) fn is_sole(&self) -> bool {
        self.clients.sole().is_some()
    }

    /// What receives a message that names no call, if only one client can be meant; its latest call decides.
    pub(super) fn only_one(&self) -> Option<Arc<dyn NotificationSink>> {
        self.clients.sole()?;
        let latest = self.lock().values().next_back().cloned();
        match latest {
            Some(receiver) => receiver?.upgrade(),
            None => self.clients.receiver(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Option<Weak<dyn NotificationSink>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.callers.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[derive(Debug)]
    struct Receiver;

    impl NotificationSink for Receiver {
        fn receive(&self, _: &Bytes) {}
    }

    /// Whether something is for the receiver of the latest call, or for that of the client.
    #[track_caller]
    fn is_for(callers: &Callers, receiver: Option<&Arc<dyn NotificationSink>>) {
        let found = callers.only_one();
        assert_eq!(
            found.as_ref().map(Arc::as_ptr).map(<*const _>::cast::<()>),
            receiver.map(Arc::as_ptr).map(<*const _>::cast::<()>)
        );
    }

    #[test]
    fn what_names_no_call_is_for_the_only_client() {
        let callers = Arc::<Callers>::default();
        let [client, call]: [Arc<dyn NotificationSink>; 2] =
            [Arc::new(Receiver), Arc::new(Receiver)];
        is_for(&callers, None);
        callers.note(CallerId(1), Some(&Arc::downgrade(&client)));
        is_for(&callers, Some(&client));
        let flight = callers.open(1, Some(Arc::downgrade(&call)));
        is_for(&callers, Some(&call));
        drop(flight);
        is_for(&callers, Some(&client));
        callers.note(CallerId(2), None);
        is_for(&callers, None);
    }
}
