//! Forwards the messages that servers send outside of calls to subscribers and tasks.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use mcp_vary_catalog::catalog::ChangedLists;
use mcp_vary_upstream::ServerRequest;
use mcp_vary_wire::client_id::ClientId;

use super::SubscriptionHub;
use crate::pool::CapabilityClass;
use crate::pool::dedicated::{ClientLists, ConnectionObserver};
use crate::pool::lists::changes::ResourceUpdates;
use crate::pool::lists::ids::{CatalogId, ConnectionId};
use crate::pool::lists::observer::ListObserver;
use crate::tasks::TaskServices;

/// The observer of all connections of the pool.
#[derive(Debug)]
pub(crate) struct ServerEvents {
    pub(crate) hub: Arc<SubscriptionHub>,
    pub(crate) tasks: Arc<TaskServices>,
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
