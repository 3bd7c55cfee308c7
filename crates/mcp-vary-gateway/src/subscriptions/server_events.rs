//! Forwards the messages that servers send outside of calls to subscribers and tasks.

use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use mcp_vary_catalog::catalog::ChangedLists;
use mcp_vary_upstream::ServerRequest;
use mcp_vary_wire::client_id::ClientId;

use super::hub::SubscriptionHub;
use super::notification::EncodedNotification;
use super::subscribers::NotificationSink;
use crate::pool::CapabilityClass;
use crate::pool::dedicated::{ClientLists, ConnectionObserver, DedicatedPool};
use crate::pool::lists::changes::ResourceUpdates;
use crate::pool::lists::ids::{CatalogId, ConnectionId};
use crate::pool::lists::observer::ListObserver;
use crate::tasks::context::TaskObserver;
use crate::tasks::{TaskKey, TaskServices};
use mcp_vary_session::Session;

/// The observer of all connections of the pool.
#[derive(Debug)]
pub(crate) struct ServerEvents {
    pub(crate) hub: Arc<SubscriptionHub>,
    pub(crate) tasks: Arc<TaskServices>,
    /// The dedicated connections, once there are any; weak, since they hold their observer.
    pub(crate) dedicated: OnceLock<Weak<DedicatedPool>>,
}

impl ListObserver for ServerEvents {
    fn lists_changed(&self, catalog: CatalogId, changed: &ChangedLists) {
        self.hub.lists_changed(catalog, changed);
    }

    fn resources_changed(&self, connection: ConnectionId, updates: &ResourceUpdates) {
        self.hub.resources_changed(connection, updates);
    }

    fn task_changed(
        &self,
        server: &Arc<str>,
        id: Arc<str>,
        params: &Arc<str>,
        connection: Option<ConnectionId>,
    ) {
        let key = (Arc::clone(server), id);
        self.tasks.registry.changed(&key, params, connection);
    }

    fn extension_notified(&self, server: &str, connection: ConnectionId, message: &Bytes) {
        let dedicated = self.dedicated.get().and_then(Weak::upgrade);
        let elsewhere = dedicated.map(|dedicated| dedicated.sessions_on(server));
        self.hub
            .extension_notified(connection, message, &elsewhere.unwrap_or_default());
    }
}

impl ConnectionObserver for ServerEvents {
    fn client_lists_changed<'a>(
        &'a self,
        client: ClientId,
        lists: &'a ClientLists,
    ) -> BoxFuture<'a, ()> {
        self.hub.relocate(client, lists).boxed()
    }

    fn class_replaced<'a>(
        &'a self,
        before: &'a Arc<CapabilityClass>,
        after: &'a Arc<CapabilityClass>,
        lists: &'a ClientLists,
    ) -> BoxFuture<'a, ()> {
        self.hub.replace_class(before, after, lists).boxed()
    }

    fn belongs_to_task(&self, server: &str, request: &ServerRequest) -> bool {
        self.tasks.proxied.owns_request(server, request)
    }

    fn task_id(&self, server: &Arc<str>, id: &str, client: ClientId) -> Option<String> {
        Some(
            self.tasks
                .registry
                .client_id(server, id, client)?
                .to_string(),
        )
    }

    fn task_progress(&self, client: ClientId, params: &str) -> Option<String> {
        self.tasks.registry.progress(client, params)
    }
}

impl TaskObserver for SubscriptionHub {
    fn session(&self, client: ClientId) -> Option<Arc<Session>> {
        let mut subscribers = self.lock();
        let (_, subscriber) = subscribers.of_session(client)?;
        match &subscriber.sink {
            NotificationSink::Session(session) => session.upgrade(),
            NotificationSink::Stream { .. } => None,
        }
    }

    /// Notifies the subscribers of a task; only those on `source`, if that is given.
    fn task_changed(&self, key: &TaskKey, params: &str, source: Option<ConnectionId>) {
        let notifiers: Vec<_> = {
            let subscribers = self.lock();
            let numbers = subscribers.tasks.get(key).into_iter().flatten();
            let listeners = numbers.filter_map(|number| {
                let subscriber = subscribers.entries.get(number)?;
                let subscription = subscriber.tasks.get(key)?;
                let notifier = &subscription.notifier;
                let is_meant = source.is_none_or(|source| source == subscription.source.id)
                    && subscriber
                        .placement
                        .may_know_tool(&notifier.server, &notifier.tool);
                is_meant.then(|| (*number, Arc::clone(notifier)))
            });
            listeners.collect()
        };
        // Results are shaped outside of the lock.
        let notifications: Vec<_> = notifiers
            .into_iter()
            .map(|(number, notifier)| {
                (
                    number,
                    EncodedNotification::task_changed(&notifier.params_to_client(params)),
                )
            })
            .collect();
        let mut subscribers = self.lock();
        let unsent = notifications
            .into_iter()
            .filter_map(|(number, notification)| {
                let subscriber = subscribers.entries.get(&number)?;
                (!subscriber.send(&notification)).then_some(number)
            });
        let late: Vec<_> = unsent.collect();
        let removed = subscribers.remove_all(late);
        drop(subscribers);
        drop(removed);
    }
}
