//! Mirrors resource subscriptions onto leased connections, and forwards their updates.
//!
//! A legacy server may announce a change only in the session that made it. The calls of a client without a session that
//! accepts server requests run in another session than its subscriptions. So the subscriptions of the class's
//! connection are mirrored onto the leased connections, and updates that arrive there are forwarded as if they had
//! arrived on the class's connection.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_upstream::{Event, Subscription, SupervisedConnection};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

/// One leased connection, and its mirrored subscriptions.
#[derive(Debug)]
pub(super) struct SubscriptionMirror {
    connection: Arc<SupervisedConnection>,
    /// The connection of the class whose request leased this one last.
    class: watch::Sender<Weak<SupervisedConnection>>,
    subscribed: ScopedLock<BTreeMap<Arc<str>, Arc<Subscription>>>,
}

impl SubscriptionMirror {
    pub(super) fn of(connection: &Arc<SupervisedConnection>) -> Arc<Self> {
        Arc::new(Self {
            connection: Arc::clone(connection),
            class: watch::Sender::default(),
            subscribed: ScopedLock::default(),
        })
    }

    /// The next request is of the class with this connection. Waits, for a limited time, until the server has confirmed
    /// its subscriptions.
    pub(super) async fn serve(&self, class: &Arc<SupervisedConnection>) {
        self.class.send_if_modified(|known| {
            let is_other = !std::ptr::eq(known.as_ptr(), Arc::as_ptr(class));
            if is_other {
                *known = Arc::downgrade(class);
            }
            is_other
        });
        let subscribed = self.subscribe(class);
        let settled = subscribed.iter().map(|one| one.settled());
        // If a subscription is refused, updates arrive on the other connection, if at all.
        let _ = tokio::time::timeout(SUBSCRIBE_TIMEOUT, join_all(settled)).await;
    }

    /// Subscribes to exactly the resources that `class` is subscribed to.
    fn subscribe(&self, class: &SupervisedConnection) -> Vec<Arc<Subscription>> {
        let wanted = class.subscribed_resources(MAX_MIRRORED);
        let mut subscribed = self.subscribed.lock();
        subscribed.retain(|uri, _| wanted.contains(uri));
        for uri in wanted {
            let subscription = || Arc::new(self.connection.subscribe(&uri));
            subscribed
                .entry(Arc::clone(&uri))
                .or_insert_with(subscription);
        }
        subscribed.values().cloned().collect()
    }

    /// Follows the subscriptions of the class, and forwards updates.
    pub(super) async fn forward(self: Arc<Self>) {
        let mut events = self.connection.events();
        let mut classes = self.class.subscribe();
        let mut listening = None;
        loop {
            tokio::select! {
                _ = classes.changed() => {
                    let class = classes.borrow_and_update().upgrade();
                    listening = class.as_ref().map(|class| class.subscription_changes());
                    self.renew();
                }
                () = changed(&mut listening) => self.renew(),
                event = events.recv() => match event {
                    Err(RecvError::Closed) => return,
                    event => self.publish(event),
                },
            }
        }
    }

    fn renew(&self) {
        match self.class() {
            Some(class) => drop(self.subscribe(&class)),
            None => self.subscribed.lock().clear(),
        }
    }

    /// Forwards an update. If events were missed, any resource may have changed.
    fn publish(&self, event: Result<Event, RecvError>) {
        let Some(class) = self.class() else {
            return;
        };
        match event {
            Ok(Event::ResourceUpdated { uri, params }) => {
                class.resource_updated_elsewhere(uri, params)
            }
            Ok(_) => {}
            Err(_) => {
                for uri in self.subscribed.lock().keys() {
                    class.resource_may_have_changed(uri);
                }
            }
        }
    }

    /// The connection of the class; not held between events.
    fn class(&self) -> Option<Arc<SupervisedConnection>> {
        self.class.borrow().upgrade()
    }
}

/// Waits until the subscriptions of the class change, or the class is closed.
async fn changed(listening: &mut Option<watch::Receiver<u64>>) {
    let Some(changes) = listening else {
        return std::future::pending().await;
    };
    if changes.changed().await.is_err() {
        // The class is closed.
        *listening = None;
    }
}

/// How long a call waits until the server has confirmed the subscriptions.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(1);
/// The most subscriptions that are mirrored: each connection needs all of them.
const MAX_MIRRORED: usize = 256;
