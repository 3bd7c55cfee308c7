//! The reports about lists to the rest of the gateway, and what following servers needs of it.

use std::sync::Arc;

use bytes::Bytes;
use mcp_vary_base::tasks::TaskTracker;
use mcp_vary_catalog::catalog::ChangedLists;
use mcp_vary_catalog::shared::SharedLists;
use tokio_util::sync::CancellationToken;

use super::changes::ResourceUpdates;
use super::ids::{CatalogId, ConnectionId};

/// Receives the changes that servers announce.
///
/// The pool knows neither subscriptions nor tasks; this is implemented where both are known. It is called for each
/// change, never for a call.
pub(crate) trait ListObserver: Send + Sync {
    /// Lists of `catalog` changed.
    fn lists_changed(&self, catalog: CatalogId, changed: &ChangedLists);

    /// A server announced on `connection` that resources changed.
    fn resources_changed(&self, connection: ConnectionId, updates: &ResourceUpdates);

    /// A server reported the status of its task `id`. If `connection` is given, only subscribers on that are meant.
    fn task_changed(
        &self,
        server: &Arc<str>,
        id: Arc<str>,
        params: &Arc<str>,
        connection: Option<ConnectionId>,
    );

    /// `server` sent a notification of an extension on `connection`, outside of calls; `message` is the whole message.
    fn extension_notified(&self, server: &str, connection: ConnectionId, message: &Bytes);
}

mcp_vary_base::debug_by_name!(dyn ListObserver);

/// The parts of the gateway that are needed to follow servers.
#[derive(Clone, Debug)]
pub(crate) struct PoolContext {
    /// Cancelled when the gateway stops.
    pub(crate) shutdown: CancellationToken,
    pub(crate) background_tasks: TaskTracker,
    pub(crate) observer: Arc<dyn ListObserver>,
    /// The parts that several classes share.
    pub(crate) shared_lists: Arc<SharedLists>,
}
