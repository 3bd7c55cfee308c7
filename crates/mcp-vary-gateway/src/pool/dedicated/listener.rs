//! The messages on a session's dedicated connection that belong to no call.

use std::borrow::Cow;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use mcp_vary::json;
use mcp_vary_base::tasks::TaskTracker;
use mcp_vary_upstream::{Event, ServerRequest};
use mcp_vary_wire::task_dialect::rename_related_task;
use mcp_vary_wire::{envelope, era};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::client_lists::ConnectionObserver;
use crate::pool::lists::changes::ResourceUpdates;
use crate::pool::lists::ids::ConnectionId;
use mcp_vary_session::Session;
use mcp_vary_session::pending_server_requests::{ForwardedServerRequest, PendingServerRequests};

/// Handles the messages on a session's connection that belong to no call.
#[derive(Clone, Debug)]
pub(super) struct EventListener {
    pub(super) server: Arc<str>,
    pub(super) session: watch::Receiver<Weak<Session>>,
    pub(super) pending_server_requests: Arc<PendingServerRequests>,
    pub(super) observer: Arc<dyn ConnectionObserver>,
    /// The connection whose resource updates are reported; `None` if the follower of the class reports them.
    pub(super) connection: Option<ConnectionId>,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
}

impl EventListener {
    pub(super) async fn listen(self, mut events: broadcast::Receiver<Event>) {
        loop {
            match events.recv().await {
                // A proxied task reports its input requests in its status.
                Ok(Event::ServerRequest(request))
                    if self.observer.belongs_to_task(&self.server, &request) => {}
                Ok(Event::ServerRequest(request)) => {
                    let forward = self.clone().forward_server_request(request);
                    let stop = self.stop.clone();
                    self.tasks.spawn(stop.run_until_cancelled_owned(forward));
                }
                Ok(Event::Notification(message)) => self.notify_client(message),
                Ok(Event::ResourceUpdated { uri, params }) => {
                    self.report_updates(&ResourceUpdates::Some([(uri, params)].into()));
                }
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    self.report_updates(&ResourceUpdates::Any);
                    warn!(server = %self.server, missed, "messages of the server were missed");
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    fn report_updates(&self, updates: &ResourceUpdates) {
        if let Some(connection) = self.connection {
            self.observer.resources_changed(connection, updates);
        }
    }

    /// Forwards the request to the client, and waits for the response.
    async fn forward_server_request(mut self, request: ServerRequest) {
        // A server may send a request before the connection is used.
        let session = async {
            let session = self.session.wait_for(|session| session.strong_count() > 0);
            session.await.ok()?.upgrade()
        };
        let limit = self.pending_server_requests.timeout();
        let Ok(Some(session)) = tokio::time::timeout(limit, session).await else {
            return;
        };
        let forwarded = {
            let task_id = |id: &str| self.observer.task_id(&self.server, id, session.client);
            self.pending_server_requests
                .forward(&session, (&self.server, &request), &task_id)
        };
        if let Some((pending, message)) = forwarded
            && session.enqueue(message)
        {
            wait(pending, &session).await;
        }
    }

    fn notify_client(&self, message: Bytes) {
        let session = self.session.borrow().upgrade();
        let Some(session) = session else {
            return;
        };
        if let Some(message) = self.client_notification(message, &session)
            && !session.enqueue(message)
        {
            debug!(server = %self.server, "notification dropped: the client has no open stream");
        }
    }

    /// The notification for the client; none for lists, resources and requests, which are handled elsewhere.
    fn client_notification(&self, bytes: Bytes, session: &Session) -> Option<Bytes> {
        let message = envelope::Message::read(&bytes).ok()?;
        let params = message.params.unwrap_or("{}");
        let method = message.method.as_deref()?;
        // Progress of a task continues after its call.
        if method == "notifications/progress" {
            let params = self.observer.task_progress(session.client, params)?;
            return Some(era::progress_notification(&params));
        }
        if !session.receives(&self.server, &bytes) {
            return None;
        }
        let task_id = |id: &str| self.observer.task_id(&self.server, id, session.client);
        let Cow::Owned(params) = rename_related_task(params, &task_id) else {
            return Some(bytes);
        };
        let method = json::string(method);
        let message = format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#);
        Some(message.into())
    }
}

/// Waits until a server request that belongs to no call is answered, and cancels it if the client does not respond.
pub(crate) async fn wait(pending: ForwardedServerRequest, session: &Session) {
    pending.over().await;
    if let Some(cancellation) = pending.cancel() {
        // If the client does not receive the cancellation, it did not receive the request.
        let _ = session.enqueue(cancellation);
    }
}
