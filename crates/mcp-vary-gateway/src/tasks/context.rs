//! The parts of the gateway that the work on tasks uses.

use std::sync::Arc;

use mcp_vary_base::copies::Copies;
use mcp_vary_base::tasks::TaskTracker;
use mcp_vary_wire::client_id::ClientId;
use tokio_util::sync::CancellationToken;

use super::id::TaskKey;
use crate::pool::lists::ids::ConnectionId;
use mcp_vary_session::Session;
use mcp_vary_session::pending_server_requests::PendingServerRequests;

/// Receives the status of tasks. Subscriptions implement it, so that tasks do not depend on them.
pub(crate) trait TaskObserver: Send + Sync {
    /// The current session of `client`, if it receives notifications.
    fn session(&self, client: ClientId) -> Option<Arc<Session>>;

    /// A task has a new status; only subscribers on `connection` are meant, if that is given.
    fn task_changed(&self, key: &TaskKey, params: &str, connection: Option<ConnectionId>);
}

mcp_vary_base::debug_by_name!(dyn TaskObserver);

/// The parts of the gateway that the work on tasks uses, until the gateway stops.
#[derive(Debug)]
pub(crate) struct TaskContext {
    pub(crate) observer: Arc<dyn TaskObserver>,
    pub(crate) pending_server_requests: Arc<PendingServerRequests>,
    /// Where tasks that have ended are copied to.
    pub(crate) copies: Copies,
    /// Cancelled when the gateway stops.
    pub(crate) shutdown: CancellationToken,
    pub(crate) background_tasks: TaskTracker,
}
