//! The hub: turns changes of lists and resources into notifications, each encoded once per variant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};

use bytes::Bytes;
use mcp_vary::variant::VariantId;
use mcp_vary_base::lock::Lock;
use mcp_vary_catalog::catalog::ChangedLists;
use mcp_vary_catalog::index::{VariantIndex, ViewIndex};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::list_kind::Kind;

use super::notification::EncodedNotification;
use super::placement::Placement;
use super::subscribers::{ResourceSubscribers, ResourceSubscription, Subscriber, Subscribers};
use crate::pool::lists::changes::ResourceUpdates;
use crate::pool::lists::ids::{CatalogId, ConnectionId};
use mcp_vary_session::ServerVisibility;

/// All subscribers.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionHub {
    subscribers: Lock<Subscribers>,
    /// Whether the current configuration has access rules.
    has_access_rules: AtomicBool,
}

impl SubscriptionHub {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Subscribers> {
        self.subscribers.lock()
    }

    /// Removes a subscriber.
    pub(super) fn remove(&self, number: u64) {
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
        let ended = subscribers
            .entries
            .iter()
            .filter(|(_, subscriber)| subscriber.is_over(now));
        let over: Vec<_> = ended.map(|(number, _)| *number).collect();
        let removed = subscribers.remove_all(over);
        drop(subscribers);
        drop(removed);
    }

    /// Sends notifications about the changed lists of `catalog`, each with its variant (SV-16).
    ///
    /// The subscriber of a resource that was removed with the change is notified once that the list changed, and of
    /// nothing until it is back (SV-14).
    pub(crate) fn lists_changed(&self, catalog: CatalogId, changed: &ChangedLists) {
        let changed = by_variant(changed);
        let mut subscribers = self.lock();
        let entries = subscribers.entries.iter_mut();
        let present = entries.filter(|(_, subscriber)| subscriber.placement.shows(catalog));
        let mut removed = Vec::new();
        let mut notifications = EncodedLists::default();
        for (number, subscriber) in present {
            let losses = subscriber.take_losses();
            if !send_list_changes(subscriber, &changed, &losses, &mut notifications) {
                removed.push(*number);
            }
        }
        let removed = subscribers.remove_all(removed);
        drop(subscribers);
        drop(removed);
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
                let all = subscribers.resources.iter();
                let resources = all.filter(|((source, _), _)| *source == id);
                affected.extend(resources.map(|(_, of_resource)| (of_resource.clone(), None)));
            }
        }
        for (of_resource, params) in affected {
            let written = params.as_deref().unwrap_or("{}");
            let late = send_updates(&subscribers, &of_resource, written);
            removed.extend(late);
        }
        let removed = subscribers.remove_all(removed);
        drop(subscribers);
        drop(removed);
    }

    /// Passes on the `message` of an extension that a server sent on a connection, outside of calls: to the subscribers
    /// that declared the extension and see the server, except the sessions that receive it `elsewhere`.
    pub(crate) fn extension_notified(
        &self,
        id: ConnectionId,
        message: &Bytes,
        elsewhere: &BTreeSet<ClientId>,
    ) {
        let Ok(Message {
            method: Some(method),
            params,
            ..
        }) = Message::read(message)
        else {
            return;
        };
        let notification = EncodedNotification::of_extension(message, &method, params);
        let mut subscribers = self.lock();
        let entries = subscribers.entries.iter();
        let unsent = entries.filter(|(_, subscriber)| {
            let session = subscriber.session.as_ref();
            session.is_none_or(|session| !elsewhere.contains(session))
                && subscriber.placement.shows_server_on(id, &method)
                && subscriber.declares_extension_of(&method)
                && !subscriber.send(&notification)
        });
        let late: Vec<_> = unsent.map(|(number, _)| *number).collect();
        let removed = subscribers.remove_all(late);
        drop(subscribers);
        drop(removed);
    }
}

impl SubscriptionHub {
    /// Whether `client`, which has a session, may know what `shows` finds in its placement. Where there are access
    /// rules, a client that is not subscribed to anything may not: what it sees is not known.
    fn is_visible(&self, client: ClientId, shows: impl FnOnce(&Placement) -> bool) -> bool {
        if !self.has_access_rules.load(Ordering::Acquire) {
            return true;
        }
        let mut subscribers = self.lock();
        let known = subscribers.of_session(client);
        known.is_some_and(|(_, subscriber)| shows(&subscriber.placement))
    }
}

impl ServerVisibility for SubscriptionHub {
    fn may_know(&self, client: ClientId, server: &str) -> bool {
        self.is_visible(client, |placement| placement.may_know(server))
    }

    fn may_know_tool(&self, client: ClientId, server: &str, tool: &str) -> bool {
        self.is_visible(client, |placement| placement.may_know_tool(server, tool))
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
    pub(super) fn of(&mut self, kind: Kind, variant: Option<&VariantId>) -> &EncodedNotification {
        let notification = self.0.entry((variant.cloned(), kind));
        notification.or_insert_with(|| EncodedNotification::list_changed(kind, variant))
    }
}

/// Notifies a subscriber of the lists that `changed`, and of lists that `missed` a subscribed resource. Returns `false` if
/// it can no longer be notified.
pub(crate) fn send_list_changes(
    subscriber: &Subscriber,
    changed: &BTreeMap<VariantIndex, BTreeSet<Kind>>,
    missed: &BTreeSet<VariantIndex>,
    notifications: &mut EncodedLists,
) -> bool {
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
