//! The resources and tasks of a server that somebody is subscribed to: asked for once, however many that are, and
//! asked for again whenever the server is another connection or session.

use mcp_vary_wire::methods::SUBSCRIBE;

mod legacy;
mod modern;
mod task;
mod topic;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

pub(super) use self::topic::Topic;
use super::Shared;
use crate::Upstream;
use crate::message::Event;
use mcp_vary_wire::revision::Era;

/// What of one topic is subscribed to on one line, counted.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    wanted: Mutex<BTreeMap<Arc<str>, Wanted>>,
    /// Changes with what is wanted and with what the server answered.
    changes: watch::Sender<u64>,
}

/// One resource or task that somebody is subscribed to.
#[derive(Debug)]
struct Wanted {
    count: usize,
    standing: Standing,
    /// Whether it was held before, so that its changes since then were told nowhere.
    was_held: bool,
}

/// What the server said to a subscription.
#[derive(Clone, Debug)]
enum Standing {
    /// Nothing yet.
    Asked,
    Held,
    Refused(Refused),
}

/// Why a server does not tell of changes.
#[derive(Clone, Debug)]
pub enum Refused {
    /// It offers no subscriptions, or not for this one.
    NotOffered,
    /// The error that it answered, JSON text.
    Answered(Arc<str>),
}

/// One who is subscribed to a resource or task; as long as there is one, the server is asked to tell of its
/// changes.
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
    /// When it refused.
    pub async fn settled(&self) -> Result<(), Refused> {
        let mut changes = self.subscriptions.changes.subscribe();
        loop {
            changes.borrow_and_update();
            match self.standing() {
                Some(Standing::Refused(refused)) => return Err(refused),
                Some(Standing::Held) | None => return Ok(()),
                Some(Standing::Asked) => {}
            }
            // The sender lives as long as the subscription does.
            let _ = changes.changed().await;
        }
    }

    fn standing(&self) -> Option<Standing> {
        let wanted = self.subscriptions.lock();
        wanted.get(&self.uri).map(|one| one.standing.clone())
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut wanted = self.subscriptions.lock();
        if let Some(one) = wanted.get_mut(&self.uri) {
            one.count -= 1;
            if one.count == 0 {
                wanted.remove(&self.uri);
                drop(wanted);
                self.subscriptions.change();
            }
        }
    }
}

impl Subscriptions {
    pub(super) fn add(self: &Arc<Self>, uri: &str) -> Subscription {
        self.added(uri, false)
    }

    /// The same for one who was told by another connection until now.
    pub(super) fn add_again(self: &Arc<Self>, uri: &str) -> Subscription {
        self.added(uri, true)
    }

    fn added(self: &Arc<Self>, uri: &str, was_held: bool) -> Subscription {
        let mut wanted = self.lock();
        let known = wanted
            .get_key_value(uri)
            .map(|(known, _)| Arc::clone(known));
        let uri = known.unwrap_or_else(|| uri.into());
        let one = wanted.entry(Arc::clone(&uri)).or_insert(Wanted {
            count: 0,
            standing: Standing::Asked,
            was_held,
        });
        one.count += 1;
        let is_new = one.count == 1;
        drop(wanted);
        if is_new {
            self.change();
        }
        Subscription {
            subscriptions: Arc::clone(self),
            uri,
        }
    }

    /// What the server tells of at this moment.
    pub(super) fn held(&self) -> Vec<Arc<str>> {
        let wanted = self.lock();
        let held = wanted
            .iter()
            .filter(|(_, one)| matches!(one.standing, Standing::Held));
        held.map(|(uri, _)| Arc::clone(uri)).collect()
    }

    /// Whether somebody is subscribed to it.
    pub(super) fn wants(&self, uri: &str) -> bool {
        self.lock().contains_key(uri)
    }

    /// Changes with what is wanted and with what the server answered.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// What is wanted and was not refused.
    fn wanted(&self) -> BTreeSet<Arc<str>> {
        self.some_wanted(usize::MAX)
    }

    /// As many of those as `most`.
    pub(super) fn some_wanted(&self, most: usize) -> BTreeSet<Arc<str>> {
        let wanted = self.lock();
        let hopeful = wanted
            .iter()
            .filter(|(_, one)| !matches!(one.standing, Standing::Refused(_)));
        hopeful.map(|(uri, _)| Arc::clone(uri)).take(most).collect()
    }

    /// The server knows of nothing: another connection or session.
    fn ask_anew(&self) {
        for one in self.lock().values_mut() {
            one.standing = Standing::Asked;
        }
        self.change();
    }

    /// The server tells of `uri` from now on; whether changes since an earlier time may have been missed.
    fn hold(&self, uri: &str) -> bool {
        let mut wanted = self.lock();
        let Some(one) = wanted.get_mut(uri) else {
            return false;
        };
        one.standing = Standing::Held;
        let was_held = std::mem::replace(&mut one.was_held, true);
        drop(wanted);
        self.change();
        was_held
    }

    fn refuse(&self, uri: &str, why: Refused) {
        if let Some(one) = self.lock().get_mut(uri) {
            one.standing = Standing::Refused(why);
        }
        self.change();
    }

    fn change(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Wanted>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the server subscribed to what is wanted, for as long as the connection holds.
pub(super) async fn keep(upstream: &Arc<Upstream>, shared: &Shared) -> Infallible {
    let resources = keep_one(Topic::Resources, upstream, shared);
    let tasks = keep_one(Topic::Tasks, upstream, shared);
    tokio::join!(resources, tasks).0
}

async fn keep_one(topic: Topic, upstream: &Arc<Upstream>, shared: &Shared) -> Infallible {
    let subscriptions = shared.of(topic);
    subscriptions.ask_anew();
    if !may_offer(topic, upstream, shared) {
        return refuse_all(subscriptions).await;
    }
    match (upstream.hello().era(), topic) {
        (Era::Modern, _) => modern::keep(topic, upstream, shared).await,
        (Era::Legacy, Topic::Resources) => legacy::keep(upstream, shared).await,
        (Era::Legacy, Topic::Tasks) => task::keep(upstream, shared).await,
    }
}

/// Whether the server may tell of `topic`: it declares so, or is legacy and was not seen to lack the method.
fn may_offer(topic: Topic, upstream: &Upstream, shared: &Shared) -> bool {
    let is_resource = topic == Topic::Resources && upstream.hello().era() == Era::Legacy;
    let may_have = || shared.learned.undeclared().has(SUBSCRIBE) != Some(false);
    topic.is_offered(upstream.hello()) || is_resource && may_have()
}

async fn refuse_all(subscriptions: &Subscriptions) -> Infallible {
    let mut changes = subscriptions.changes.subscribe();
    loop {
        for uri in subscriptions.wanted() {
            subscriptions.refuse(&uri, Refused::NotOffered);
        }
        changes.borrow_and_update();
        if subscriptions.wanted().is_empty() {
            let _ = changes.changed().await;
        }
    }
}

impl Shared {
    /// What is subscribed to of `topic`.
    pub(super) fn of(&self, topic: Topic) -> &Arc<Subscriptions> {
        match topic {
            Topic::Resources => &self.resources,
            Topic::Tasks => &self.changing_tasks,
        }
    }

    /// The server tells of `id` from now on; what changed since it last did is told now.
    fn hold(&self, topic: Topic, upstream: &Arc<Upstream>, id: &Arc<str>) {
        if !self.of(topic).hold(id) {
            return;
        }
        match topic {
            Topic::Resources => self.tell(Event::may_be_updated(id)),
            Topic::Tasks => task::tell(upstream, self, id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_resource_is_wanted_until_the_last_one_leaves() {
        let all = Arc::new(Subscriptions::default());
        let (one, other) = (all.add("a"), all.add("a"));
        drop(one);
        assert_eq!(all.wanted().len(), 1);
        assert!(!all.hold("a"));
        other.settled().await.unwrap();
        drop(other);
        assert!(all.wanted().is_empty() && all.held().is_empty());
        // Whoever comes then is the first one again.
        let again = all.add("a");
        assert!(!all.hold("a"));
        all.ask_anew();
        assert!(all.hold("a"), "what changed in between was told nowhere");
        drop(again);
    }

    #[tokio::test]
    async fn a_refusal_is_told_and_forgotten_with_the_connection() {
        let all = Arc::new(Subscriptions::default());
        let one = all.add("a");
        all.refuse("a", Refused::NotOffered);
        assert!(one.settled().await.is_err());
        assert!(all.wanted().is_empty());
        all.ask_anew();
        assert_eq!(all.wanted().len(), 1);
    }
}
