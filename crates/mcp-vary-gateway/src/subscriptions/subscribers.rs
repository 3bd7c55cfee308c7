//! The subscribers: what each is notified of, and where its notifications go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use mcp_vary_base::memory_budget::Lease;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::index::{VariantIndex, ViewIndex};
use mcp_vary_catalog::selection::rules::Presentation;
use mcp_vary_upstream::Subscription;
use mcp_vary_view::uri_identity;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::extension_methods::declares_extension_of;
use mcp_vary_wire::list_kind::Kind;

use super::notification::{EncodedNotification, NotificationSender};
use super::placement::{Placement, Placements};
use super::tasks::TaskSubscription;
use crate::pool::dedicated::KeepAliveLease;
use crate::pool::lists::ids::ConnectionId;
use crate::pool::source::ServerSource;
use crate::tasks::TaskKey;
use mcp_vary_session::Session;

/// All subscribers, and what they are subscribed to.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    next: u64,
    pub(super) entries: BTreeMap<u64, Subscriber>,
    pub(super) sessions: BTreeMap<ClientId, u64>,
    /// The subscribers of each resource, by its source and the server's URI.
    pub(super) resources: BTreeMap<(ConnectionId, Arc<str>), ResourceSubscribers>,
    /// The subscribers of each task.
    pub(super) tasks: BTreeMap<TaskKey, BTreeSet<u64>>,
    /// The configuration to which subscribers move; none before the first reload.
    pub(super) latest: Option<Weak<Placements>>,
}

/// The numbers of subscribers, each with its own URI of the resource.
pub(crate) type ResourceSubscribers = BTreeSet<(u64, Arc<str>)>;

/// One subscriber.
#[derive(Debug)]
pub(crate) struct Subscriber {
    pub(super) sink: NotificationSink,
    /// The client of its session.
    pub(super) session: Option<ClientId>,
    pub(crate) placement: Placement,
    /// Its resource subscriptions, by the URIs of its variant.
    pub(crate) resources: BTreeMap<Arc<str>, ResourceSubscription>,
    /// Its task subscriptions.
    pub(super) tasks: BTreeMap<TaskKey, TaskSubscription>,
}

/// Where notifications go.
#[derive(Debug)]
pub(crate) enum NotificationSink {
    /// A legacy session, which receives changes of all lists that it sees.
    Session(Weak<Session>),
    /// A modern stream, which receives the notifications that its filter names.
    Stream {
        sender: NotificationSender,
        kinds: BTreeSet<Kind>,
        /// The capabilities that its request declared, JSON text. An extension among them asks for its notifications:
        /// the filter has no member for those.
        capabilities: Arc<str>,
    },
}

/// A subscription to a resource, bound to its variant (SV-14).
#[derive(Debug)]
pub(crate) struct ResourceSubscription {
    pub(crate) variant: VariantIndex,
    /// Its view, in the presentation of the client.
    pub(crate) view: ViewIndex,
    pub(crate) presentation: Presentation,
    pub(crate) source: Arc<ServerSource>,
    /// The session's dedicated connection, if the subscription is on that.
    pub(crate) dedicated: Option<KeepAliveLease>,
    pub(crate) subscription: Subscription,
    /// Its lease from the memory budget.
    pub(crate) memory: Arc<Lease>,
    /// Whether the view has listed it, or had a template for it, so that its loss is reported.
    pub(crate) was_listed: bool,
    /// Whether its loss was reported, and it has not come back.
    pub(crate) is_lost: bool,
}

impl ResourceSubscription {
    /// The announcing connection, and the server's URI.
    fn key(&self) -> (ConnectionId, Arc<str>) {
        let announcer = match &self.dedicated {
            Some(dedicated) => dedicated.id(),
            None => self.source.id,
        };
        (announcer, Arc::clone(&self.subscription.uri))
    }

    /// Whether its view lists it, or has a template for it.
    pub(super) fn is_listed(&self, catalog: &Catalog) -> bool {
        catalog
            .resource_server(self.view, &self.subscription.uri)
            .is_some()
    }
}

impl Subscriber {
    pub(super) fn wants(&self, kind: Kind) -> bool {
        match &self.sink {
            NotificationSink::Session(_) => true,
            NotificationSink::Stream { kinds, .. } => kinds.contains(&kind),
        }
    }

    /// Whether its client declared the extension to which `method` belongs.
    pub(super) fn declares_extension_of(&self, method: &str) -> bool {
        match &self.sink {
            NotificationSink::Session(session) => session
                .upgrade()
                .is_some_and(|session| declares_extension_of(&session.negotiated.class, method)),
            NotificationSink::Stream { capabilities, .. } => {
                declares_extension_of(capabilities, method)
            }
        }
    }

    /// Sends a notification. Returns `false` if the subscriber can no longer receive any.
    pub(super) fn send(&self, notification: &EncodedNotification) -> bool {
        match &self.sink {
            NotificationSink::Session(session) => session.upgrade().is_some_and(|session| {
                // A client without an open stream may open one later.
                let _ = session.enqueue(notification.to_session());
                !session.has_ended()
            }),
            NotificationSink::Stream { sender, .. } => sender.send(notification),
        }
    }

    /// Whether it can be removed.
    pub(super) fn is_over(&self, now: u64) -> bool {
        match &self.sink {
            NotificationSink::Session(session) => session.upgrade().is_none_or(|session| {
                let is_unused = !session.has_stream() && self.resources.is_empty();
                is_unused || session.has_ended() || session.expires() <= now
            }),
            // A stream removes itself.
            NotificationSink::Stream { .. } => false,
        }
    }

    /// The subscribed spelling of `uri`: the same, or another one if the variant treats both as equal.
    pub(crate) fn subscribed_spelling(&self, uri: &str) -> Option<Arc<str>> {
        if let Some((known, _)) = self.resources.get_key_value(uri) {
            return Some(Arc::clone(known));
        }
        let is_same = |known: &str, resource: &ResourceSubscription| {
            self.placement.variants().checks_uris(resource.view)
                && uri_identity(known) == uri_identity(uri)
        };
        let mut resource = self.resources.iter();
        let found = resource.find(|(known, resource)| is_same(known, resource));
        found.map(|(known, _)| Arc::clone(known))
    }

    /// The variants that have lost a subscribed resource since the last call.
    pub(super) fn take_losses(&mut self) -> BTreeSet<VariantIndex> {
        let catalog = self.placement.class.catalog.current();
        let mut losses = BTreeSet::new();
        for resource in self.resources.values_mut() {
            let is_listed = resource.is_listed(&catalog);
            let is_lost = resource.was_listed && !is_listed;
            if is_lost && !resource.is_lost {
                losses.insert(resource.variant);
            }
            resource.is_lost = is_lost;
            resource.was_listed |= is_listed;
        }
        losses
    }
}

impl Subscribers {
    /// Adds a subscriber, or updates the one of a session that is known.
    pub(crate) fn add(
        &mut self,
        sink: NotificationSink,
        placement: Placement,
        client: Option<ClientId>,
    ) -> u64 {
        let known = client.and_then(|client| self.sessions.get(&client).copied());
        if let Some((number, subscriber)) =
            known.and_then(|number| Some((number, self.entries.get_mut(&number)?)))
        {
            subscriber.sink = sink;
            return number;
        }
        let number = self.next;
        self.next += 1;
        let subscriber = Subscriber {
            sink,
            session: client,
            placement,
            resources: BTreeMap::new(),
            tasks: BTreeMap::new(),
        };
        self.entries.insert(number, subscriber);
        if let Some(client) = client {
            self.sessions.insert(client, number);
        }
        number
    }

    pub(crate) fn of_session(&mut self, client: ClientId) -> Option<(u64, &mut Subscriber)> {
        let number = *self.sessions.get(&client)?;
        Some((number, self.entries.get_mut(&number)?))
    }

    /// Removes a subscriber. The caller drops it outside of the lock.
    pub(super) fn remove(&mut self, number: u64) -> Option<Subscriber> {
        let subscriber = self.entries.remove(&number)?;
        for (uri, resource) in &subscriber.resources {
            self.unlist(number, uri, resource);
        }
        for key in subscriber.tasks.keys() {
            self.forget_listener(number, key);
        }
        if let Some(client) = &subscriber.session {
            self.sessions.remove(client);
        }
        Some(subscriber)
    }

    pub(crate) fn bind(&mut self, number: u64, uri: Arc<str>, resource: ResourceSubscription) {
        let of_resource = self.resources.entry(resource.key()).or_default();
        of_resource.insert((number, Arc::clone(&uri)));
        if let Some(subscriber) = self.entries.get_mut(&number) {
            subscriber.resources.insert(uri, resource);
        }
    }

    pub(crate) fn unbind(&mut self, number: u64, uri: &str) -> Option<ResourceSubscription> {
        let subscriber = self.entries.get_mut(&number)?;
        let resource = subscriber.resources.remove(uri)?;
        self.unlist(number, uri, &resource);
        Some(resource)
    }

    fn unlist(&mut self, number: u64, uri: &str, resource: &ResourceSubscription) {
        let key = resource.key();
        if let Some(of_resource) = self.resources.get_mut(&key) {
            of_resource.remove(&(number, Arc::from(uri)));
            if of_resource.is_empty() {
                self.resources.remove(&key);
            }
        }
    }

    /// Removes the subscribers in `gone`.
    pub(super) fn remove_all(&mut self, numbers: impl IntoIterator<Item = u64>) -> Vec<Subscriber> {
        let removed = numbers.into_iter();
        removed.filter_map(|number| self.remove(number)).collect()
    }

    /// Subscribes a stream to a task.
    pub(crate) fn listen(&mut self, number: u64, key: TaskKey, subscription: TaskSubscription) {
        if let Some(subscriber) = self.entries.get_mut(&number) {
            subscriber.tasks.insert(key.clone(), subscription);
            self.tasks.entry(key).or_default().insert(number);
        }
    }

    pub(crate) fn forget_listener(&mut self, number: u64, key: &TaskKey) {
        if let Some(listeners) = self.tasks.get_mut(key) {
            listeners.remove(&number);
            if listeners.is_empty() {
                self.tasks.remove(key);
            }
        }
    }

    /// Moves the task subscriptions of a stream to another placement. Returns the previous ones.
    pub(crate) fn move_tasks(
        &mut self,
        number: u64,
        placement: &Placement,
    ) -> Vec<TaskSubscription> {
        let tasks = match self.entries.get_mut(&number) {
            Some(subscriber) => std::mem::take(&mut subscriber.tasks),
            None => return Vec::new(),
        };
        let mut before = Vec::new();
        for (key, previous) in tasks {
            self.forget_listener(number, &key);
            if let Some(rebound) = previous.rebind(placement) {
                self.listen(number, key, rebound);
            }
            before.push(previous);
        }
        before
    }
}
