//! Forwards the task notifications of a connection.

use std::sync::Arc;

use mcp_vary_upstream::Event;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::ids::ConnectionId;
use super::observer::ListObserver;

/// Forwards the task notifications of one connection until it is closed. Only the subscribers on `connection` are
/// meant, if that is given.
pub(crate) async fn follow(
    server: Arc<str>,
    mut events: broadcast::Receiver<Event>,
    observer: Arc<dyn ListObserver>,
    connection: impl Fn() -> Option<ConnectionId>,
) {
    loop {
        match events.recv().await {
            Ok(Event::TaskChanged { id, params }) => {
                observer.task_changed(&server, id, &params, connection());
            }
            // Clients can still ask for the status.
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
