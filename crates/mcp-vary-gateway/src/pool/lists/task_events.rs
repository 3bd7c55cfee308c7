//! Forwards the notifications of tasks and of extensions of a connection.

use std::sync::Arc;

use mcp_vary_upstream::Event;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::ids::ConnectionId;
use super::observer::ListObserver;

/// Forwards the notifications of one connection until it is closed: those of tasks, and those of extensions if `source`
/// identifies it. A server without sessions sends those of a task on each connection that subscribed to it, so only the
/// subscribers on that one are meant.
pub(crate) async fn follow(
    server: Arc<str>,
    mut events: broadcast::Receiver<Event>,
    observer: Arc<dyn ListObserver>,
    source: Option<ConnectionId>,
    is_modern: impl Fn() -> bool,
) {
    loop {
        match events.recv().await {
            Ok(Event::TaskChanged { id, params }) => {
                let connection = if is_modern() { source } else { None };
                observer.task_changed(&server, id, &params, connection);
            }
            Ok(Event::Notification(message)) => {
                if let Some(connection) = source {
                    observer.extension_notified(&server, connection, &message);
                }
            }
            // Clients can still ask for the status.
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
