//! The pool's reports to the rest of the gateway.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use mcp_vary_catalog::catalog::ChangedLists;
use mcp_vary_upstream::ServerRequest;
use mcp_vary_wire::client_id::ClientId;

use super::class::CapabilityClass;
use super::client_lists::ClientLists;
use super::connection_id::ConnectionId;
use super::live_catalog::LiveCatalog;
use super::source::ResourceUpdates;

/// Receives the messages that servers send outside of calls, and the resulting changes.
///
/// The pool knows neither subscriptions nor tasks; this is implemented where both are known. It is called for each
/// change and each message outside of calls, never for a call.
pub(crate) trait ConnectionObserver: fmt::Debug + Send + Sync {
    /// Lists of `catalog` changed.
    fn lists_changed(&self, catalog: &LiveCatalog, changed: &ChangedLists);

    /// A server announced on `connection` that resources changed.
    fn resources_changed(&self, connection: ConnectionId, updates: &ResourceUpdates);

    /// `client` now gets the lists of its dedicated connections, or no longer does.
    fn client_lists_changed<'a>(
        &'a self,
        client: ClientId,
        lists: &'a ClientLists,
    ) -> BoxFuture<'a, ()>;

    /// The clients of `before` now have the connections and lists of `after`.
    fn class_replaced<'a>(
        &'a self,
        before: &'a Arc<CapabilityClass>,
        after: &'a Arc<CapabilityClass>,
        lists: &'a ClientLists,
    ) -> BoxFuture<'a, ()>;

    /// A server reported the status of its task `id`. If `connection` is given, only subscribers on that are meant.
    fn task_changed(
        &self,
        server: &Arc<str>,
        id: Arc<str>,
        params: &Arc<str>,
        connection: Option<ConnectionId>,
    );

    /// Whether a server request belongs to a task that reports it in its status, so that it is not forwarded.
    fn belongs_to_task(&self, server: &str, request: &ServerRequest) -> bool;

    /// The id by which `client` knows its task with the server's `id`.
    fn task_id(&self, server: &Arc<str>, id: &str, client: ClientId) -> Option<String>;

    /// The params for `client` of progress that a task of it makes; none if it has no such task.
    fn task_progress(&self, client: ClientId, params: &str) -> Option<String>;
}
