//! Peers that tag the notifications of a handler with its variant.
//!
//! rmcp offers no other way: a `Peer` cannot be created outside of it (`service.rs`, `Peer::new` is
//! private), so this serves a transport that forwards all messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::variant::VariantId;
use mcp_vary_base::lock::Lock;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, GetMeta, JsonRpcMessage, RequestId,
    ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerConfig,
    ServerNotification, ServerRequest, ServerResult,
};
use rmcp::service::{
    NotificationContext, Peer, PeerRequestOptions, RunningService, RxJsonRpcMessage, Service,
    ServiceError, SubscriptionSink, TxJsonRpcMessage, serve_directly,
};
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleServer};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::resource_watch::{ListChange, ResourceWatch};
use super::rules::{Context, McpResult};

/// A tagging peer and the service that keeps it alive.
pub(super) type TaggingPeer = RunningService<RoleServer, NoRequests>;

/// Where the notifications of a handler are sent.
#[derive(Clone)]
pub(super) enum NotificationSender {
    /// To the client of a session.
    Client(Peer<RoleServer>),
    /// To a client's notification stream.
    Stream(SubscriptionSink),
}

/// Creates a peer that sends its notifications to `sender`, tagged with `variant`. Updates of
/// resources that are hidden, or removed according to `watch`, are dropped.
pub(super) fn tagging_peer(
    outer: &Peer<RoleServer>,
    sender: NotificationSender,
    variant: VariantId,
    watch: Arc<ResourceWatch>,
) -> TaggingPeer {
    let (responses, incoming) = mpsc::unbounded_channel();
    let transport = TaggingTransport {
        sender,
        variant,
        watch,
        responses,
        incoming,
        pending: PendingRequests::default(),
    };
    let info = outer.peer_info().map(|info| (*info).clone());
    serve_directly(NoRequests, transport, info)
}

/// A service that receives no requests: messages only go out.
#[derive(Debug)]
pub(super) struct NoRequests;

impl Service<RoleServer> for NoRequests {
    async fn handle_request(
        &self,
        request: ClientRequest,
        _context: Context,
    ) -> McpResult<ServerResult> {
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            request.method().to_owned(),
            None,
        ))
    }

    async fn handle_notification(
        &self,
        _notification: ClientNotification,
        _context: NotificationContext<RoleServer>,
    ) -> McpResult<()> {
        Ok(())
    }

    fn get_info(&self) -> ServerConfig {
        ServerConfig::default()
    }
}

/// The pending requests to the client, and how to cancel each.
type PendingRequests = Arc<Lock<BTreeMap<String, oneshot::Sender<Option<String>>>>>;

struct TaggingTransport {
    sender: NotificationSender,
    variant: VariantId,
    watch: Arc<ResourceWatch>,
    responses: mpsc::UnboundedSender<RxJsonRpcMessage<RoleServer>>,
    incoming: mpsc::UnboundedReceiver<RxJsonRpcMessage<RoleServer>>,
    pending: PendingRequests,
}

impl Transport<RoleServer> for TaggingTransport {
    type Error = ServiceError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sender = self.sender.clone();
        let notification = match message {
            JsonRpcMessage::Notification(message) => self.tag(message.notification),
            JsonRpcMessage::Request(message) => {
                self.forward_request(message.id, message.request);
                None
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => None,
        };
        async move {
            match notification {
                None => Ok(()),
                Some(notification) => send_notification(&sender, notification).await,
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl TaggingTransport {
    /// Tags a notification; `None` if it must not be sent.
    fn tag(&self, notification: ServerNotification) -> Option<ServerNotification> {
        match &notification {
            // The client has received its own acknowledgement before the handler's.
            ServerNotification::SubscriptionsAcknowledgedNotification(_) => return None,
            ServerNotification::CancelledNotification(cancelled) => {
                if let Some(cancel) = cancelled
                    .params
                    .request_id
                    .as_ref()
                    .and_then(|id| self.take_pending(id))
                {
                    // The request may have been answered a moment ago.
                    let _ = cancel.send(cancelled.params.reason.clone());
                    return None;
                }
            }
            ServerNotification::ResourceUpdatedNotification(updated)
                if !self.watch.is_visible(&updated.params.uri)
                    || !self.watch.allow_update(&updated.params.uri) =>
            {
                return None;
            }
            ServerNotification::ResourceListChangedNotification(_) => {
                if let Some(change) = self.watch.begin_recheck() {
                    self.recheck_resources(change);
                }
            }
            _ => {}
        }
        Some(with_variant(notification, &self.variant))
    }

    /// Checks in the background whether the client's subscribed resources still exist.
    ///
    /// In its own task: the handler may hold a lock until this notification is sent, and need it to
    /// list.
    fn recheck_resources(&self, change: ListChange) {
        let watch = Arc::clone(&self.watch);
        let sender = self.sender.clone();
        let variant = self.variant.clone();
        tokio::spawn(async move {
            for uri in watch.finish_recheck(change).await {
                let updated = ResourceUpdatedNotificationParam::new(uri);
                let updated = ResourceUpdatedNotification::new(updated);
                let updated = ServerNotification::ResourceUpdatedNotification(updated);
                // The client may have disconnected.
                let _ = send_notification(&sender, with_variant(updated, &variant)).await;
            }
        });
    }

    /// Sends a handler's request to the client. It keeps its extensions, by which rmcp finds the
    /// call it belongs to.
    fn forward_request(&self, id: RequestId, request: ServerRequest) {
        let NotificationSender::Client(peer) = self.sender.clone() else {
            let refused =
                ErrorData::invalid_request("a notification stream cannot carry requests", None);
            let _ = self
                .responses
                .send(JsonRpcMessage::error(refused, Some(id)));
            return;
        };
        let (cancel, cancelled) = oneshot::channel();
        self.pending.lock().insert(id.to_string(), cancel);
        let responses = self.responses.clone();
        let pending = self.pending.clone();
        tokio::spawn(async move {
            let answer = await_response(peer, request, cancelled).await;
            pending.lock().remove(&id.to_string());
            let message = match answer {
                None => return,
                Some(Ok(result)) => JsonRpcMessage::response(result, id),
                Some(Err(error)) => JsonRpcMessage::error(error, Some(id)),
            };
            // The handler may have stopped waiting.
            let _ = responses.send(message);
        });
    }

    fn take_pending(&self, id: &RequestId) -> Option<oneshot::Sender<Option<String>>> {
        self.pending.lock().remove(&id.to_string())
    }
}

/// Adds the variant to change notifications; other notifications stay as they are.
fn with_variant(mut notification: ServerNotification, variant: &VariantId) -> ServerNotification {
    if let ServerNotification::ToolListChangedNotification(_)
    | ServerNotification::PromptListChangedNotification(_)
    | ServerNotification::ResourceListChangedNotification(_)
    | ServerNotification::ResourceUpdatedNotification(_) = &notification
    {
        let meta = notification.get_meta_mut();
        meta.insert(SERVER_VARIANT_META.to_owned(), json!(variant));
    }
    notification
}

async fn send_notification(
    sender: &NotificationSender,
    notification: ServerNotification,
) -> Result<(), ServiceError> {
    match sender {
        NotificationSender::Client(peer) => peer.send_notification(notification).await,
        NotificationSender::Stream(sink) => {
            // The stream drops what the client did not subscribe to, which is not an error.
            if let Err(error) = sink.send(notification).await {
                tracing::debug!(%error, "notification not sent");
            }
            Ok(())
        }
    }
}

/// Waits for the client's response; `None` if the request was cancelled.
async fn await_response(
    peer: Peer<RoleServer>,
    request: ServerRequest,
    cancelled: oneshot::Receiver<Option<String>>,
) -> Option<McpResult<rmcp::model::ClientResult>> {
    let options = PeerRequestOptions::no_options();
    let mut handle = match peer.send_request_with_option(request, options).await {
        Ok(handle) => handle,
        Err(error) => return Some(Err(response_error(error))),
    };
    tokio::select! {
        answer = &mut handle.rx => Some(match answer {
            Ok(answer) => answer.map_err(response_error),
            Err(_) => Err(response_error(ServiceError::TransportClosed)),
        }),
        reason = cancelled => {
            let why = reason.ok().flatten();
            if let Err(error) = handle.cancel(why).await {
                tracing::debug!(%error, "request to the client not cancelled");
            }
            None
        }
    }
}

fn response_error(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        other => ErrorData::internal_error(other.to_string(), None),
    }
}
