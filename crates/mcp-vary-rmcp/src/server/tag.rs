//! A client as the handler of one variant sees it: what the handler sends leaves with the variant.
//!
//! rmcp gives no other way: a `Peer` cannot be made from outside (`service.rs`, `Peer::new` is
//! private), so one is made by serving a transport that hands everything on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::variant::VariantId;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, GetMeta, JsonRpcMessage, RequestId,
    ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerConfig,
    ServerNotification, ServerRequest, ServerResult,
};
use rmcp::service::{
    NotificationContext, Peer, PeerRequestOptions, RequestContext, RunningService,
    RxJsonRpcMessage, Service, ServiceError, SubscriptionSink, TxJsonRpcMessage, serve_directly,
};
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleServer};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::watch::{Change, Watching};

/// A peer that tags, and what keeps it alive.
pub(super) type TaggingPeer = RunningService<RoleServer, Silent>;

/// Where it leads.
#[derive(Clone)]
pub(super) enum Outlet {
    /// The client of a session.
    Client(Peer<RoleServer>),
    /// The client's stream of notifications.
    Stream(SubscriptionSink),
}

/// A peer whose notifications leave through `outlet`, tagged with `variant`; but not those of
/// resources that are hidden, or gone by what `watch` knows.
pub(super) fn tagging_peer(
    outer: &Peer<RoleServer>,
    outlet: Outlet,
    variant: VariantId,
    watch: Watching,
) -> TaggingPeer {
    let (answers, answered) = mpsc::unbounded_channel();
    let transport = Tagging {
        outlet,
        variant,
        watch,
        answers,
        answered,
        asked: Asked::default(),
    };
    let info = outer.peer_info().map(|info| (*info).clone());
    serve_directly(Silent, transport, info)
}

/// Nothing is asked of this service: messages only go out.
#[derive(Debug)]
pub(super) struct Silent;

impl Service<RoleServer> for Silent {
    async fn handle_request(
        &self,
        request: ClientRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
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
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn get_info(&self) -> ServerConfig {
        ServerConfig::default()
    }
}

/// The requests on their way to the client, and how to cancel each.
type Asked = Arc<Mutex<BTreeMap<String, oneshot::Sender<Option<String>>>>>;

struct Tagging {
    outlet: Outlet,
    variant: VariantId,
    watch: Watching,
    answers: mpsc::UnboundedSender<RxJsonRpcMessage<RoleServer>>,
    answered: mpsc::UnboundedReceiver<RxJsonRpcMessage<RoleServer>>,
    asked: Asked,
}

impl Transport<RoleServer> for Tagging {
    type Error = ServiceError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let outlet = self.outlet.clone();
        let notification = match message {
            JsonRpcMessage::Notification(message) => self.tagged(message.notification),
            JsonRpcMessage::Request(message) => {
                self.ask(message.id, message.request);
                None
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => None,
        };
        async move {
            match notification {
                None => Ok(()),
                Some(notification) => deliver(&outlet, notification).await,
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.answered.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl Tagging {
    /// The notification as it leaves; none when it does not.
    fn tagged(&self, notification: ServerNotification) -> Option<ServerNotification> {
        match &notification {
            // The client has had its own, before the handler was asked.
            ServerNotification::SubscriptionsAcknowledgedNotification(_) => return None,
            ServerNotification::CancelledNotification(cancelled) => {
                if let Some(cancel) = cancelled
                    .params
                    .request_id
                    .as_ref()
                    .and_then(|id| self.forget(id))
                {
                    // The request may have been answered a moment ago.
                    let _ = cancel.send(cancelled.params.reason.clone());
                    return None;
                }
            }
            ServerNotification::ResourceUpdatedNotification(updated)
                if !self.watch.shows(&updated.params.uri)
                    || !self.watch.lets_pass(&updated.params.uri) =>
            {
                return None;
            }
            ServerNotification::ResourceListChangedNotification(_) => {
                if let Some(change) = self.watch.change() {
                    self.check(change);
                }
            }
            _ => {}
        }
        Some(with_variant(notification, &self.variant))
    }

    /// Finds out whether what the client is subscribed to is still there, while others go on.
    ///
    /// In a task of its own: the handler may hold what it needs to list until this is sent.
    fn check(&self, change: Change) {
        let (watch, outlet) = (Arc::clone(&self.watch), self.outlet.clone());
        let variant = self.variant.clone();
        tokio::spawn(async move {
            for uri in watch.check(change).await {
                let updated = ResourceUpdatedNotificationParam::new(uri);
                let updated = ResourceUpdatedNotification::new(updated);
                let updated = ServerNotification::ResourceUpdatedNotification(updated);
                // A client that has gone does not want to know.
                let _ = deliver(&outlet, with_variant(updated, &variant)).await;
            }
        });
    }

    /// Asks the client in the handler's name. The request keeps its extensions, by which rmcp
    /// knows which call it belongs to.
    fn ask(&self, id: RequestId, request: ServerRequest) {
        let Outlet::Client(peer) = self.outlet.clone() else {
            let refused =
                ErrorData::invalid_request("a stream of notifications carries no request", None);
            let _ = self.answers.send(JsonRpcMessage::error(refused, Some(id)));
            return;
        };
        let (cancel, cancelled) = oneshot::channel();
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id.to_string(), cancel);
        let (answers, asked) = (self.answers.clone(), self.asked.clone());
        tokio::spawn(async move {
            let answer = forward(peer, request, cancelled).await;
            asked
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&id.to_string());
            let message = match answer {
                None => return,
                Some(Ok(result)) => JsonRpcMessage::response(result, id),
                Some(Err(error)) => JsonRpcMessage::error(error, Some(id)),
            };
            // Whoever asked may be gone.
            let _ = answers.send(message);
        });
    }

    fn forget(&self, id: &RequestId) -> Option<oneshot::Sender<Option<String>>> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&id.to_string())
    }
}

/// A change says of which variant it is; nothing else does.
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

async fn deliver(outlet: &Outlet, notification: ServerNotification) -> Result<(), ServiceError> {
    match outlet {
        Outlet::Client(peer) => peer.send_notification(notification).await,
        Outlet::Stream(sink) => {
            // What the client did not ask for is not sent, and that is no failure.
            if let Err(error) = sink.send(notification).await {
                tracing::debug!(%error, "notification not sent");
            }
            Ok(())
        }
    }
}

/// The client's answer; none when nobody waits for it any more.
async fn forward(
    peer: Peer<RoleServer>,
    request: ServerRequest,
    cancelled: oneshot::Receiver<Option<String>>,
) -> Option<Result<rmcp::model::ClientResult, ErrorData>> {
    let options = PeerRequestOptions::no_options();
    let mut handle = match peer.send_request_with_option(request, options).await {
        Ok(handle) => handle,
        Err(error) => return Some(Err(to_answer(error))),
    };
    tokio::select! {
        answer = &mut handle.rx => Some(match answer {
            Ok(answer) => answer.map_err(to_answer),
            Err(_) => Err(to_answer(ServiceError::TransportClosed)),
        }),
        reason = cancelled => {
            let reason = reason.ok().flatten();
            if let Err(error) = handle.cancel(reason).await {
                tracing::debug!(%error, "request to the client not cancelled");
            }
            None
        }
    }
}

fn to_answer(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        other => ErrorData::internal_error(other.to_string(), None),
    }
}
