//! Subscriptions: which sessions and streams receive which notifications, for the variants that they see.
//!
//! A catalog reports which lists of which variants changed, and a source which resources. The hub turns these into
//! notifications, each encoded once per variant. [`migrate`] moves subscribers to a new configuration.

pub(crate) mod filter;
pub(crate) mod listen_stream;
mod migrate;
mod notification;
mod placement;
pub(crate) mod server_events;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, Weak};

use mcp_vary::variant::VariantId;
use mcp_vary_view::uri_identity;

pub(crate) use self::tasks::{TaskKey, TaskSubscription};
use crate::pool::dedicated::KeepAliveLease;
use crate::pool::lists::changes::ResourceUpdates;
use crate::pool::lists::ids::{CatalogId, ConnectionId};
use crate::pool::source::ServerSource;
use crate::session::Session;
pub(crate) use crate::subscriptions::listen_stream::ListenStream;
use crate::subscriptions::listen_stream::NotificationSender;
use crate::subscriptions::notification::EncodedNotification;
pub(crate) use crate::subscriptions::placement::{Placement, Placements};
use mcp_vary_base::lock::Lock;
use mcp_vary_base::memory_budget::Lease;
use mcp_vary_catalog::catalog::{Catalog, ChangedLists};
use mcp_vary_catalog::index::{VariantIndex, ViewIndex};
use mcp_vary_catalog::selection::rules::Presentation;
use mcp_vary_upstream::Subscription;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::list_kind::Kind;

/// All subscribers.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionHub {
    subscribers: Lock<Subscribers>,
    /// Whether the current configuration has access rules.
    has_access_rules: AtomicBool,
}

#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    next: u64,
    entries: BTreeMap<u64, Subscriber>,
    sessions: BTreeMap<ClientId, u64>,
    /// The subscribers of each resource, by its source and the server's URI.
    resources: BTreeMap<(ConnectionId, Arc<str>), ResourceSubscribers>,
    /// The subscribers of each task.
    tasks: BTreeMap<TaskKey, BTreeSet<u64>>,
    /// The configuration to which subscribers move; none before the first reload.
    latest: Option<Weak<Placements>>,
}

/// The numbers of subscribers, each with its own URI of the resource.
pub(crate) type ResourceSubscribers = BTreeSet<(u64, Arc<str>)>;

/// One subscriber.
#[derive(Debug)]
pub(crate) struct Subscriber {
    sink: NotificationSink,
    /// The client of its session.
    session: Option<ClientId>,
    pub(crate) placement: Placement,
    /// Its resource subscriptions, by the URIs of its variant.
    pub(crate) resources: BTreeMap<Arc<str>, ResourceSubscription>,
    /// Its task subscriptions.
    tasks: BTreeMap<TaskKey, TaskSubscription>,
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
    fn is_listed(&self, catalog: &Catalog) -> bool {
        catalog
            .resource_server(self.view, &self.subscription.uri)
            .is_some()
    }
}

impl Subscriber {
    fn wants(&self, kind: Kind) -> bool {
        match &self.sink {
            NotificationSink::Session(_) => true,
            NotificationSink::Stream { kinds, .. } => kinds.contains(&kind),
        }
    }

    /// Sends a notification. Returns `false` if the subscriber can no longer receive any.
    fn send(&self, notification: &EncodedNotification) -> bool {
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
    fn is_over(&self, now: u64) -> bool {
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

    /// The subscribed resources that its variant no longer has.
    fn take_lost(&mut self) -> Vec<Arc<str>> {
        let catalog = self.placement.class.catalog.current();
        let mut missed = Vec::new();
        for (uri, resource) in &mut self.resources {
            let is_listed = resource.is_listed(&catalog);
            if resource.was_listed && !is_listed {
                missed.push(Arc::clone(uri));
            }
            resource.was_listed |= is_listed;
        }
        missed
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
            known.and_then(|it| Some((it, self.entries.get_mut(&it)?)))
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
    fn remove(&mut self, number: u64) -> Option<Subscriber> {
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
    fn remove_all(&mut self, removed: impl IntoIterator<Item = u64>) -> Vec<Subscriber> {
        let removed = removed.into_iter();
        removed.filter_map(|number| self.remove(number)).collect()
    }
}

impl SubscriptionHub {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Subscribers> {
        self.subscribers.lock()
    }

    /// Removes a subscriber.
    fn remove(&self, number: u64) {
        let removed = self.lock().remove(number);
        drop(removed);
    }

    /// Notes whether the current configuration has access rules.
    pub(crate) fn set_access_rules(&self, has_access_rules: bool) {
        self.has_access_rules
            .store(has_access_rules, Ordering::Release);
    }

    /// The number of streams, and the number of subscribed resources.
    pub(crate) fn count(&self) -> (usize, usize) {
        let subscribers = self.lock();
        let streams = subscribers.entries.len() - subscribers.sessions.len();
        (streams, subscribers.resources.len())
    }

    /// Notifies a session of the lists of `variant`, too, from now on.
    pub(crate) fn add_variant(&self, session: ClientId, variant: &VariantId) {
        let mut subscribers = self.lock();
        let Some((_, subscriber)) = subscribers.of_session(session) else {
            return;
        };
        let placement = &mut subscriber.placement;
        let index = placement.variants().index_of(variant.as_str());
        if let Some(index) = index.filter(|index| !placement.variants.contains(index)) {
            placement.variants = placement.variants.iter().copied().chain([index]).collect();
        }
    }

    /// Removes the subscriber of a session that has ended.
    pub(crate) fn remove_session(&self, session: ClientId) {
        let mut subscribers = self.lock();
        let number = subscribers.of_session(session).map(|(number, _)| number);
        let removed = number.and_then(|number| subscribers.remove(number));
        drop(subscribers);
        drop(removed);
    }

    /// Removes sessions that have ended or expired, or that have neither stream nor subscription.
    pub(crate) fn sweep(&self, now: u64) {
        let mut subscribers = self.lock();
        let over = subscribers
            .entries
            .iter()
            .filter(|(_, subscriber)| subscriber.is_over(now));
        let over: Vec<_> = over.map(|(number, _)| *number).collect();
        let removed = subscribers.remove_all(over);
        drop(subscribers);
        drop(removed);
    }

    /// Sends notifications about the changed lists of `catalog`, each with its variant (SV-16).
    ///
    /// The subscriber of a resource that was removed with the change is notified once that the list changed, and of
    /// nothing afterwards (SV-14).
    pub(crate) fn lists_changed(&self, catalog: CatalogId, changed: &ChangedLists) {
        let changed = by_variant(changed);
        let mut subscribers = self.lock();
        let present = subscribers.entries.iter_mut();
        let present = present.filter(|(_, subscriber)| subscriber.placement.shows(catalog));
        let (mut removed, mut missed) = (Vec::new(), Vec::new());
        let mut notifications = EncodedLists::default();
        for (number, subscriber) in present {
            let lost: Vec<_> = subscriber.take_lost();
            if !send_list_changes(subscriber, &changed, &lost, &mut notifications) {
                removed.push(*number);
            }
            missed.extend(lost.into_iter().map(|uri| (*number, uri)));
        }
        let unbound: Vec<_> = missed
            .iter()
            .filter_map(|(number, uri)| subscribers.unbind(*number, uri))
            .collect();
        let removed = subscribers.remove_all(removed);
        drop(subscribers);
        drop((unbound, removed));
    }

    /// Notifies the subscribers of resources that changed on a connection.
    pub(crate) fn resources_changed(&self, id: ConnectionId, updates: &ResourceUpdates) {
        let mut subscribers = self.lock();
        let mut removed = BTreeSet::new();
        let mut affected = Vec::new();
        match updates {
            ResourceUpdates::Some(updates) => {
                affected.extend(updates.iter().filter_map(|(uri, params)| {
                    let of_resource = subscribers.resources.get(&(id, Arc::clone(uri)))?;
                    Some((of_resource.clone(), params.clone()))
                }))
            }
            ResourceUpdates::Any => {
                let resources = subscribers.resources.iter();
                let resources = resources.filter(|((source, _), _)| *source == id);
                affected.extend(resources.map(|(_, of_resource)| (of_resource.clone(), None)));
            }
        }
        for (of_resource, params) in affected {
            let params = params.as_deref().unwrap_or("{}");
            let late = send_updates(&subscribers, &of_resource, params);
            removed.extend(late);
        }
        let removed = subscribers.remove_all(removed);
        drop(subscribers);
        drop(removed);
    }
}

/// The changed kinds of each variant.
pub(crate) fn by_variant(changed: &ChangedLists) -> BTreeMap<VariantIndex, BTreeSet<Kind>> {
    let mut kinds: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (variant, kind) in changed {
        kinds.entry(*variant).or_default().insert(kind.kind());
    }
    kinds
}

/// The encoded notifications about lists, for each variant.
#[derive(Debug, Default)]
pub(crate) struct EncodedLists(BTreeMap<(Option<VariantId>, Kind), EncodedNotification>);

impl EncodedLists {
    fn of(&mut self, kind: Kind, variant: Option<&VariantId>) -> &EncodedNotification {
        let notification = self.0.entry((variant.cloned(), kind));
        notification.or_insert_with(|| EncodedNotification::list_changed(kind, variant))
    }
}

/// Notifies a subscriber of the lists that `changed`, and of lists that lost a subscribed resource. Returns `false` if
/// it can no longer be notified.
pub(crate) fn send_list_changes(
    subscriber: &Subscriber,
    changed: &BTreeMap<VariantIndex, BTreeSet<Kind>>,
    missed: &[Arc<str>],
    notifications: &mut EncodedLists,
) -> bool {
    let missed = missed
        .iter()
        .filter_map(|uri| subscriber.resources.get(uri));
    let missed: BTreeSet<_> = missed.map(|resource| resource.variant).collect();
    let seen: BTreeSet<_> = subscriber.placement.variants.iter().copied().collect();
    let only_missed = missed.difference(&seen).copied();
    let variants = subscriber
        .placement
        .variants
        .iter()
        .copied()
        .chain(only_missed);
    for variant in variants {
        let mut kinds = changed.get(&variant).cloned().unwrap_or_default();
        if missed.contains(&variant) {
            kinds.insert(Kind::Resources);
        }
        for kind in kinds.into_iter().filter(|kind| subscriber.wants(*kind)) {
            if !subscriber.send(notifications.of(kind, subscriber.placement.id(variant))) {
                return false;
            }
        }
    }
    true
}

/// Notifies the subscribers of one resource, if their variants have it. Returns those that can no longer be notified.
pub(crate) fn send_updates(
    subscribers: &Subscribers,
    of_resource: &ResourceSubscribers,
    params: &str,
) -> Vec<u64> {
    let mut removed = Vec::new();
    let mut updates = EncodedUpdate::default();
    for (number, uri) in of_resource {
        let subscriber = subscribers.entries.get(number);
        let resource =
            subscriber.and_then(|subscriber| Some((subscriber, subscriber.resources.get(uri)?)));
        let Some((subscriber, resource)) = resource else {
            continue;
        };
        let notification = updates.of(subscriber, uri, resource, params);
        if notification.is_some_and(|notification| !subscriber.send(notification)) {
            removed.push(*number);
        }
    }
    removed
}

/// The last encoded notification about a resource, with its catalog and variant: most subscribers share these.
#[derive(Default)]
pub(crate) struct EncodedUpdate<'a> {
    of: Option<(CatalogId, ViewIndex, &'a str)>,
    /// None if the variant no longer has the resource.
    notification: Option<EncodedNotification>,
}

impl<'a> EncodedUpdate<'a> {
    fn of(
        &mut self,
        subscriber: &Subscriber,
        uri: &'a str,
        resource: &ResourceSubscription,
        params: &str,
    ) -> Option<&EncodedNotification> {
        let catalog = &subscriber.placement.class.catalog;
        let of = Some((catalog.id, resource.view, uri));
        if self.of != of {
            let is_there = !resource.was_listed || resource.is_listed(&catalog.current());
            let variant = subscriber.placement.id(resource.variant);
            self.notification =
                is_there.then(|| EncodedNotification::resource_updated(params, uri, variant));
            self.of = of;
        }
        self.notification.as_ref()
    }
}
