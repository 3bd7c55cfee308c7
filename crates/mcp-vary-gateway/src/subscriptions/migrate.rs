//! Moves subscribers to a new configuration after a reload.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use mcp_vary::variant::VariantId;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::index::{ServerIndex, VariantIndex};
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::list_kind::Kind;

use super::hub::{EncodedLists, SubscriptionHub};
use super::placement::{Placement, Placements};
use super::subscribers::{NotificationSink, ResourceSubscription, Subscriber, Subscribers};
use super::tasks::TaskSubscription;
use crate::pool::CapabilityClass;
use crate::pool::dedicated::{ClientLists, KeepAliveLease};
use crate::pool::source::ServerSource;
use mcp_vary_session::{PoolKey, Session};

/// The lists of each variant that differ under another configuration.
type Differences = BTreeMap<VariantId, BTreeSet<Kind>>;

impl SubscriptionHub {
    /// Moves all subscribers to `after` and notifies them of lists that differ. Streams whose variant was removed end
    /// in order, and so do the `GET` streams of sessions with a removed variant, which have expired.
    pub(crate) async fn follow(&self, after: &Arc<Placements>) {
        let numbers: Vec<_> = {
            let mut subscribers = self.lock();
            subscribers.latest = Some(Arc::downgrade(after));
            subscribers.entries.keys().copied().collect()
        };
        let mut known = CatalogViews::default();
        for number in numbers {
            self.migrate(number, after, &mut known).await;
        }
    }

    /// Notifies a legacy session of changes from now on. `lists` has those of its dedicated connections.
    pub(crate) async fn admit(
        &self,
        session: &Arc<Session>,
        placements: &Placements,
        lists: &ClientLists,
    ) {
        match placements.of_session(session).await {
            Ok(placement) => {
                let sink = NotificationSink::Session(Arc::downgrade(session));
                let number = self.lock().add(sink, placement, Some(session.client));
                self.catch_up(number).await;
                // Meanwhile dedicated connections may have replaced its lists.
                self.relocate(session.client, lists).await;
            }
            Err(failure) => {
                let error = failure.message();
                tracing::warn!(error, "session is not notified of changes");
            }
        }
    }

    /// Moves a subscriber that was added during a reload.
    pub(crate) async fn catch_up(&self, number: u64) {
        let latest = self.lock().latest.as_ref().and_then(Weak::upgrade);
        if let Some(latest) = latest {
            self.migrate(number, &latest, &mut CatalogViews::default())
                .await;
        }
    }

    /// Shows `client` the lists of its dedicated connections, or stops showing them, and notifies it of the
    /// differences.
    pub(crate) async fn relocate(&self, client: ClientId, lists: &ClientLists) {
        let is_its = |subscriber: &Subscriber| subscriber.placement.client == Some(client);
        let classes: Vec<_> = {
            let subscribers = self.lock();
            let its = subscribers
                .entries
                .iter()
                .filter(|(_, subscriber)| is_its(subscriber));
            its.map(|(number, subscriber)| {
                (*number, Arc::clone(subscriber.placement.class.shared()))
            })
            .collect()
        };
        let mut known = CatalogViews::default();
        for (number, shared) in classes {
            let class = lists.class_of(Arc::clone(&shared), Some(client)).await;
            let mut subscribers = self.lock();
            let Some(subscriber) = subscribers.entries.get_mut(&number) else {
                continue;
            };
            // The reload that moved it has compared its lists, too.
            if !Arc::ptr_eq(subscriber.placement.class.shared(), &shared) {
                continue;
            }
            let after = Placement {
                class,
                ..subscriber.placement.clone()
            };
            let differences = known.between(&subscriber.placement, &after);
            let before = std::mem::replace(&mut subscriber.placement, after);
            let is_gone = !notify_differences(subscriber, &differences, &BTreeSet::new());
            let removed = is_gone.then(|| subscribers.remove(number));
            drop(subscribers);
            drop((before, removed));
        }
    }

    /// Moves the subscribers of `before` to `after`, and notifies them of the lists that differ.
    pub(super) async fn replace_class(
        &self,
        before: &Arc<CapabilityClass>,
        after: &Arc<CapabilityClass>,
        lists: &ClientLists,
    ) {
        let is_its =
            |subscriber: &Subscriber| Arc::ptr_eq(subscriber.placement.class.shared(), before);
        let clients: Vec<_> = {
            let subscribers = self.lock();
            let its = subscribers.entries.iter().filter(|(_, it)| is_its(it));
            its.map(|(number, it)| (*number, it.placement.client))
                .collect()
        };
        let mut known = CatalogViews::default();
        for (number, client) in clients {
            let class = lists.class_of(Arc::clone(after), client).await;
            let mut subscribers = self.lock();
            let subscriber = subscribers.entries.get(&number);
            let Some(subscriber) = subscriber.filter(|subscriber| is_its(subscriber)) else {
                continue;
            };
            let placement = Placement {
                class,
                ..subscriber.placement.clone()
            };
            let left = subscribers.move_to(number, placement, &mut known);
            drop(subscribers);
            drop(left);
        }
    }

    async fn migrate(&self, number: u64, after: &Arc<Placements>, known: &mut CatalogViews) {
        let is_old = |subscriber: &&Subscriber| subscriber.placement.generation < after.generation;
        let (key, principal, client) = {
            let subscribers = self.lock();
            let Some(subscriber) = subscribers.entries.get(&number).filter(is_old) else {
                return;
            };
            (
                subscriber.placement.key.clone(),
                subscriber.placement.principal.clone(),
                subscriber.placement.client,
            )
        };
        // Another configuration has other access rules.
        let key = after.pool.keys.renewed(key.as_ref(), principal.as_ref());
        let class = after.pool.of_subscriber(key.as_ref(), client).await;
        let mut subscribers = self.lock();
        let Some(subscriber) = subscribers.entries.get(&number).filter(is_old) else {
            return;
        };
        let placement = class
            .ok()
            .and_then(|class| migrate_placement(subscriber, after, class, key));
        let Some(placement) = placement else {
            let removed = subscribers.remove(number);
            drop(subscribers);
            // Dropping a modern stream ends it in order.
            if let Some(NotificationSink::Session(session)) = removed.map(|removed| removed.sink)
                && let Some(session) = session.upgrade()
            {
                session.close_streams();
            }
            return;
        };
        let left = subscribers.move_to(number, placement, known);
        drop(subscribers);
        drop(left);
    }

    /// Shows a session the lists of its access class again, since its principal may have other claims than before, and
    /// notifies it of the lists that differ.
    pub(crate) async fn follow_claims(&self, session: &Session, placements: &Placements) {
        if self.lock().of_session(session.client).is_none() {
            return;
        }
        let Ok(placement) = placements.of_session(session).await else {
            return;
        };
        let mut subscribers = self.lock();
        let Some((number, subscriber)) = subscribers.of_session(session.client) else {
            return;
        };
        // A reload in progress moves it itself.
        if subscriber.placement.generation != placement.generation
            || subscriber.placement.key == placement.key
        {
            return;
        }
        let known = &mut CatalogViews::default();
        let left = subscribers.move_to(number, placement, known);
        drop(subscribers);
        drop(left);
    }
}

/// What a subscriber had before it moved, to be dropped outside of the lock.
type Left = (
    Vec<ResourceSubscription>,
    Vec<TaskSubscription>,
    Option<Placement>,
    Option<Subscriber>,
);

impl Subscribers {
    /// Moves a subscriber to `placement`: its resources and tasks are looked for there, and it is notified of the lists
    /// that differ.
    fn move_to(&mut self, number: u64, placement: Placement, known: &mut CatalogViews) -> Left {
        let Some(subscriber) = self.entries.get(&number) else {
            return Left::default();
        };
        let differences = known.between(&subscriber.placement, &placement);
        let uris: Vec<_> = subscriber.resources.keys().cloned().collect();
        let mut missed = BTreeSet::new();
        let mut left = Vec::new();
        for uri in uris {
            let Some(previous) = self.unbind(number, &uri) else {
                continue;
            };
            match rebind(&uri, &previous, &placement) {
                Some(resource) => self.bind(number, uri, resource),
                None => missed.extend(previous.id(&self.entries[&number].placement).cloned()),
            }
            left.push(previous);
        }
        let tasks = self.move_tasks(number, &placement);
        let mut is_gone = false;
        let mut before = None;
        if let Some(subscriber) = self.entries.get_mut(&number) {
            before = Some(std::mem::replace(&mut subscriber.placement, placement));
            is_gone = !notify_differences(subscriber, &differences, &missed);
        }
        let removed = is_gone.then(|| self.remove(number)).flatten();
        (left, tasks, before, removed)
    }
}

impl ResourceSubscription {
    fn id<'a>(&self, placement: &'a Placement) -> Option<&'a VariantId> {
        placement.variants().id(self.variant)
    }
}

/// The placement of a subscriber under another configuration; none if one of its variants was removed.
fn migrate_placement(
    subscriber: &Subscriber,
    after: &Placements,
    class: Arc<CapabilityClass>,
    key: Option<PoolKey>,
) -> Option<Placement> {
    let before = &subscriber.placement;
    if before.names_variants != after.offers_variants {
        return None;
    }
    let variants = match &subscriber.sink {
        NotificationSink::Session(session) if before.names_variants => {
            after.visible_to(&*session.upgrade()?)?
        }
        _ if !before.names_variants => Arc::clone(&before.variants),
        _ => {
            let ids = before.variants.iter().filter_map(|at| before.id(*at));
            let moved: Option<Arc<[VariantIndex]>> =
                ids.map(|id| after.variant_index(id.as_str())).collect();
            after.allowed(moved?, before.principal.as_ref())
        }
    };
    Some(Placement {
        generation: after.generation,
        class,
        key,
        principal: before.principal.clone(),
        client: before.client,
        variants,
        names_variants: before.names_variants,
    })
}

/// The same subscription on the server that has the resource now; none if no server has it.
fn rebind(
    uri: &Arc<str>,
    previous: &ResourceSubscription,
    placement: &Placement,
) -> Option<ResourceSubscription> {
    let catalog = placement.class.catalog.current();
    let variant = match previous.id(placement) {
        Some(id) if placement.names_variants => placement.variants().index_of(id.as_str())?,
        _ => previous.variant,
    };
    let view = placement
        .variants()
        .presented_view(variant, previous.presentation);
    let address = catalog.resolve_resource(placement.variants(), view, uri)?;
    let sources = placement.class.sources();
    let variant_config = placement.variants().config(view);
    let shows = |server: &ServerIndex| {
        let source = server.get(sources);
        let is_shown = |source: &Arc<ServerSource>| {
            variant_config.allows_unlisted(&address.upstream_uri, &source.name)
        };
        address.fault.is_none() && source.is_some_and(is_shown)
    };
    let template = || {
        catalog
            .template_server(view, &address.upstream_uri)
            .filter(shows)
    };
    let listed = address.listed_by.or_else(template);
    let same = || {
        let name = previous.source.name();
        ServerIndex::find(sources, |source| source.name() == name)
    };
    let may_be_unlisted = !previous.was_listed || previous.is_lost;
    let unlisted = || may_be_unlisted.then(same)?.filter(shows);
    let server = listed.or_else(unlisted)?;
    let source = server.get(sources)?;
    // While the server is the same, the connection is, too.
    let is_same_server = Arc::ptr_eq(source, &previous.source);
    let dedicated = is_same_server.then(|| previous.dedicated.clone()).flatten();
    let connection = dedicated
        .as_ref()
        .map_or(&source.connection, KeepAliveLease::connection);
    let subscription = if is_same_server && *previous.subscription.uri == *address.upstream_uri {
        connection.subscribe(&address.upstream_uri)
    } else {
        connection.resubscribe(&address.upstream_uri)
    };
    Some(ResourceSubscription {
        variant,
        view,
        presentation: previous.presentation,
        source: Arc::clone(source),
        dedicated,
        subscription,
        memory: Arc::clone(&previous.memory),
        was_listed: listed.is_some() || previous.is_lost,
        is_lost: listed.is_none() && previous.is_lost,
    })
}

/// Notifies a subscriber of lists that differ, and of lists that lost a subscribed resource. Returns `false` if it can
/// no longer be notified.
fn notify_differences(
    subscriber: &Subscriber,
    differences: &Differences,
    missed: &BTreeSet<VariantId>,
) -> bool {
    let placement = &subscriber.placement;
    let mut notifications = EncodedLists::default();
    for variant in placement.variants.iter() {
        let Some(id) = placement.variants().id(*variant) else {
            continue;
        };
        let mut kinds = differences.get(id).cloned().unwrap_or_default();
        kinds.extend(missed.contains(id).then_some(Kind::Resources));
        for kind in kinds.into_iter().filter(|kind| subscriber.wants(*kind)) {
            if !subscriber.send(notifications.of(kind, placement.id(*variant))) {
                return false;
            }
        }
    }
    true
}

/// The differences found between pairs of catalogs.
#[derive(Default)]
struct CatalogViews(Vec<(Catalogs, Arc<Differences>)>);

/// The catalogs before and after a reload.
struct Catalogs {
    before: Arc<Catalog>,
    after: Arc<Catalog>,
}

impl CatalogViews {
    fn between(&mut self, before: &Placement, after: &Placement) -> Arc<Differences> {
        let catalogs = Catalogs {
            before: before.class.catalog.current(),
            after: after.class.catalog.current(),
        };
        let is_same = |known: &Catalogs| {
            Arc::ptr_eq(&known.before, &catalogs.before)
                && Arc::ptr_eq(&known.after, &catalogs.after)
        };
        let known = self.0.iter().find(|(known, _)| is_same(known));
        if let Some((_, known)) = known {
            return Arc::clone(known);
        }
        let found = Arc::new(differences(before, after, &catalogs));
        self.0.push((catalogs, Arc::clone(&found)));
        found
    }
}

fn differences(before: &Placement, after: &Placement, catalogs: &Catalogs) -> Differences {
    let mut differences = Differences::new();
    let new = after.variants().variants.as_slice();
    for (at, variant) in VariantIndex::enumerate(new) {
        let id = variant.id.clone();
        // A new variant changes nothing for existing subscribers.
        let Some(was_at) = before.variants().index_of(id.as_str()) else {
            continue;
        };
        let before_view = was_at.declared_view();
        let after_view = at.declared_view();
        let changed = ListKind::ALL.into_iter().filter(|kind| {
            let previous = catalogs.before.view(*kind, before_view);
            match (previous, catalogs.after.view(*kind, after_view)) {
                (Some(previous), Some(new)) => !previous.is_equivalent(new),
                (previous, new) => previous.is_some() || new.is_some(),
            }
        });
        let kinds: BTreeSet<_> = changed.map(ListKind::kind).collect();
        if !kinds.is_empty() {
            differences.insert(id, kinds);
        }
    }
    differences
}
