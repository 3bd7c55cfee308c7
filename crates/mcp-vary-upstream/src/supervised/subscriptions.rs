//! The resources or tasks of one server that somebody subscribed to, reference-counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_vary_base::lock::ScopedLock;
use tokio::sync::watch;

/// The subscriptions of one topic, reference-counted.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    entries: ScopedLock<BTreeMap<Arc<str>, Entry>>,
    /// Changes with the entries and with the server's answers.
    changes: watch::Sender<u64>,
}

/// One subscribed resource or task.
#[derive(Debug)]
struct Entry {
    count: usize,
    state: SubscriptionState,
    /// Whether it was active before, so that changes since then were missed.
    was_active: bool,
}

/// The server's answer to a subscription.
#[derive(Clone, Debug)]
enum SubscriptionState {
    /// No answer yet.
    Pending,
    Active,
    Rejected(SubscribeError),
}

/// Why a server does not send updates.
#[derive(Clone, Debug)]
pub enum SubscribeError {
    /// The server offers no subscriptions, or not to this resource or task.
    NotOffered,
    /// The error of the server, JSON text.
    Rejected(Arc<str>),
}

/// A subscription to a resource or task. The server is subscribed to until the last one is dropped.
#[derive(Debug)]
pub struct Subscription {
    subscriptions: Arc<Subscriptions>,
    /// The URI of a resource, the id of a task.
    pub uri: Arc<str>,
}

impl Subscription {
    /// Waits until the server has answered.
    ///
    /// # Errors
    ///
    /// When the server rejected the subscription.
    pub async fn settled(&self) -> Result<(), SubscribeError> {
        let mut changes = self.subscriptions.changes.subscribe();
        loop {
            changes.borrow_and_update();
            match self.state() {
                Some(SubscriptionState::Rejected(refused)) => return Err(refused),
                Some(SubscriptionState::Active) | None => return Ok(()),
                Some(SubscriptionState::Pending) => {}
            }
            // The subscription owns the sender, so this cannot fail.
            let _ = changes.changed().await;
        }
    }

    /// Whether the server has accepted it.
    pub(super) fn is_active(&self) -> bool {
        matches!(self.state(), Some(SubscriptionState::Active))
    }

    fn state(&self) -> Option<SubscriptionState> {
        let wanted = self.subscriptions.entries.lock();
        wanted.get(&self.uri).map(|one| one.state.clone())
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut wanted = self.subscriptions.entries.lock();
        if let Some(one) = wanted.get_mut(&self.uri) {
            one.count -= 1;
            if one.count == 0 {
                wanted.remove(&self.uri);
                drop(wanted);
                self.subscriptions.notify();
            }
        }
    }
}

impl Subscriptions {
    pub(super) fn add(self: &Arc<Self>, uri: &str) -> Subscription {
        self.insert(uri, false)
    }

    /// Like [`add`](Self::add), for a subscription that moves here from another connection.
    pub(super) fn add_moved(self: &Arc<Self>, uri: &str) -> Subscription {
        self.insert(uri, true)
    }

    fn insert(self: &Arc<Self>, uri: &str, was_held: bool) -> Subscription {
        let mut wanted = self.entries.lock();
        let known = wanted
            .get_key_value(uri)
            .map(|(known, _)| Arc::clone(known));
        let uri = known.unwrap_or_else(|| uri.into());
        let one = wanted.entry(Arc::clone(&uri)).or_insert(Entry {
            count: 0,
            state: SubscriptionState::Pending,
            was_active: was_held,
        });
        one.was_active |= was_held;
        one.count += 1;
        let is_new = one.count == 1;
        drop(wanted);
        if is_new {
            self.notify();
        }
        Subscription {
            subscriptions: Arc::clone(self),
            uri,
        }
    }

    /// The active subscriptions.
    pub(super) fn active(&self) -> Vec<Arc<str>> {
        let wanted = self.entries.lock();
        let held = wanted
            .iter()
            .filter(|(_, one)| matches!(one.state, SubscriptionState::Active));
        held.map(|(uri, _)| Arc::clone(uri)).collect()
    }

    /// Whether `uri` is subscribed.
    pub(super) fn contains(&self, uri: &str) -> bool {
        self.entries.lock().contains_key(uri)
    }

    /// Changes with the entries and with the server's answers.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The subscriptions that the server has not rejected.
    pub(super) fn wanted(&self) -> BTreeSet<Arc<str>> {
        self.wanted_up_to(usize::MAX)
    }

    /// At most `most` of the subscriptions that the server has not rejected.
    pub(super) fn wanted_up_to(&self, most: usize) -> BTreeSet<Arc<str>> {
        let wanted = self.entries.lock();
        let hopeful = wanted
            .iter()
            .filter(|(_, one)| !matches!(one.state, SubscriptionState::Rejected(_)));
        hopeful.map(|(uri, _)| Arc::clone(uri)).take(most).collect()
    }

    /// Those of `held`, what the server is subscribed to, that wait for an answer: they were dropped and added again
    /// before the server was asked.
    pub(super) fn pending_of(&self, held: &BTreeSet<Arc<str>>) -> Vec<Arc<str>> {
        let wanted = self.entries.lock();
        let is_pending = |uri: &&Arc<str>| {
            let state = wanted.get(*uri).map(|one| &one.state);
            matches!(state, Some(SubscriptionState::Pending))
        };
        held.iter().filter(is_pending).cloned().collect()
    }

    /// Marks all as pending: a new connection or session has no subscriptions.
    pub(super) fn reset(&self) {
        for one in self.entries.lock().values_mut() {
            one.state = SubscriptionState::Pending;
        }
        self.notify();
    }

    /// Marks `uri` as active; returns whether updates may have been missed since it was active before.
    pub(super) fn activate(&self, uri: &str) -> bool {
        let mut wanted = self.entries.lock();
        let Some(one) = wanted.get_mut(uri) else {
            return false;
        };
        one.state = SubscriptionState::Active;
        let was_held = std::mem::replace(&mut one.was_active, true);
        drop(wanted);
        self.notify();
        was_held
    }

    pub(super) fn reject(&self, uri: &str, why: SubscribeError) {
        if let Some(one) = self.entries.lock().get_mut(uri) {
            one.state = SubscriptionState::Rejected(why);
        }
        self.notify();
    }

    fn notify(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_and_added_again_at_once_waits_for_no_answer() {
        let all = Arc::new(Subscriptions::default());
        drop(all.add("a"));
        let (_a, _b) = (all.add("a"), all.add("b"));
        let held = BTreeSet::from(["a".into(), "c".into()]);
        assert_eq!(all.pending_of(&held), ["a".into()]);
        assert!(!all.activate("a"));
        assert!(all.pending_of(&held).is_empty());
    }

    #[tokio::test]
    async fn a_resource_is_wanted_until_the_last_one_leaves() {
        let all = Arc::new(Subscriptions::default());
        let (one, other) = (all.add("a"), all.add("a"));
        drop(one);
        assert_eq!(all.wanted().len(), 1);
        assert!(!all.activate("a"));
        other.settled().await.unwrap();
        drop(other);
        assert!(all.wanted().is_empty() && all.active().is_empty());
        // Whoever comes then is the first one again.
        let again = all.add("a");
        assert!(!all.activate("a"));
        all.reset();
        assert!(
            all.activate("a"),
            "what changed in between was told nowhere"
        );
        drop(again);
    }

    #[tokio::test]
    async fn a_refusal_is_told_and_forgotten_with_the_connection() {
        let all = Arc::new(Subscriptions::default());
        let one = all.add("a");
        all.reject("a", SubscribeError::NotOffered);
        assert!(one.settled().await.is_err());
        assert!(all.wanted().is_empty());
        all.reset();
        assert_eq!(all.wanted().len(), 1);
    }
}
