//! What the connections that requests have by turns tell of resources.
//!
//! A legacy server may tell of a change nobody but the session that made it, and the calls of a client without a session
//! that can be asked are made in another one than what it listens to. So whatever is listened to on the connection of a
//! class is subscribed to on those, too, and what they tell is told as if that one had.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use mcp_vary_upstream::{Event, Subscription, SupervisedConnection};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use super::lock;

/// One connection that requests have by turns, and what is listened to.
#[derive(Debug)]
pub(super) struct SubscriptionMirror {
    connection: Arc<SupervisedConnection>,
    /// The connection of the class whose request had this one last.
    class: watch::Sender<Weak<SupervisedConnection>>,
    subscribed: Mutex<BTreeMap<Arc<str>, Arc<Subscription>>>,
}

impl SubscriptionMirror {
    pub(super) fn of(line: &Arc<SupervisedConnection>) -> Arc<Self> {
        Arc::new(Self {
            connection: Arc::clone(line),
            class: watch::Sender::default(),
            subscribed: Mutex::default(),
        })
    }

    /// The next request is of the class with this connection: waits until the server tells of what is listened to, for a
    /// while.
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
        // Whoever is refused is told by the other connection, if at all.
        let _ = tokio::time::timeout(SUBSCRIBE_TIMEOUT, join_all(settled)).await;
    }

    /// Subscribes to what is listened to on `class`, and to nothing else.
    fn subscribe(&self, class: &SupervisedConnection) -> Vec<Arc<Subscription>> {
        let wanted = class.subscribed_resources(MAX_MIRRORED);
        let mut subscribed = lock(&self.subscribed);
        subscribed.retain(|uri, _| wanted.contains(uri));
        for uri in wanted {
            let subscription = || Arc::new(self.connection.subscribe(&uri));
            subscribed
                .entry(Arc::clone(&uri))
                .or_insert_with(subscription);
        }
        subscribed.values().cloned().collect()
    }

    /// Follows what is listened to, and passes on what is told.
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
                    heard => self.publish(heard),
                },
            }
        }
    }

    fn renew(&self) {
        match self.class() {
            Some(class) => drop(self.subscribe(&class)),
            None => lock(&self.subscribed).clear(),
        }
    }

    /// Tells those who listen what the connection said; any resource may be among what was missed.
    fn publish(&self, heard: Result<Event, RecvError>) {
        let Some(class) = self.class() else {
            return;
        };
        match heard {
            Ok(Event::ResourceUpdated { uri, params }) => {
                class.resource_updated_elsewhere(uri, params)
            }
            Ok(_) => {}
            Err(_) => {
                for uri in lock(&self.subscribed).keys() {
                    class.resource_may_have_changed(uri);
                }
            }
        }
    }

    /// The connection that is listened on, not held while nothing happens.
    fn class(&self) -> Option<Arc<SupervisedConnection>> {
        self.class.borrow().upgrade()
    }
}

/// Waits until something else is listened to, or nothing any more.
async fn changed(listening: &mut Option<watch::Receiver<u64>>) {
    let Some(changes) = listening else {
        return std::future::pending().await;
    };
    if changes.changed().await.is_err() {
        // The class is gone.
        *listening = None;
    }
}

/// How long a call waits for a server to take note of what is listened to.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(1);
/// Resources that one connection is subscribed to at most: each connection asks for each of them.
const MAX_MIRRORED: usize = 256;
