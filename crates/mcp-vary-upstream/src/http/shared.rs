//! The state that a connection shares with its exchanges, and the messages that are sent beside them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use mcp_vary_base::tasks::try_spawn;
use mcp_vary_wire::revision::Revision;
use mcp_vary_wire::sanitize::excerpt;
use mcp_vary_wire::server_message;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};

use super::endpoint::Endpoint;
use super::inbound::Inbound;
use super::session::{CurrentSession, Session};
use super::standalone_stream::StandaloneStream;
use crate::config::UpstreamConfig;
use crate::error::UpstreamError;
use crate::message::{Event, cancel_params};
use crate::outgoing_chain::ConnectionGateways;
use crate::server_requests::{MAX_UNREAD_REPLIES, ReplyHandle, ServerRequest};

/// The state that a connection shares with its exchanges.
pub(super) struct Shared {
    pub(super) endpoint: Endpoint,
    pub(super) session: CurrentSession,
    pub(super) stream: StandaloneStream,
    pub(super) inbound: Inbound,
    /// The gateways behind the endpoint.
    pub(super) gateways: ConnectionGateways,
    permits: Permits,
    next_id: AtomicU64,
}

/// Permits for the messages that are sent in the background.
struct Permits {
    /// Answers of clients to requests of the server. As many may be in flight as requests may be pending.
    answers: Arc<Semaphore>,
    /// Replies of the gateway to requests of the server.
    replies: Arc<Semaphore>,
    cancellations: Arc<Semaphore>,
}

/// The session in which a server sent a request.
struct SessionReply {
    shared: Weak<Shared>,
    session: Arc<Session>,
}

impl ReplyHandle for SessionReply {
    fn answer(&self, message: Bytes) {
        if let Some(shared) = self.shared.upgrade() {
            shared.send_answer(&self.session, message);
        }
    }

    fn notify(&self, message: Bytes) {
        if let Some(shared) = self.shared.upgrade() {
            shared.deliver_in_background(&shared.permits.replies, &self.session, message);
        }
    }
}

/// Ends the tasks of the connection, also if its handshake was given up.
impl Drop for Shared {
    fn drop(&mut self) {
        let closed = UpstreamError::closed_by_gateway(&self.endpoint.server);
        self.endpoint.liveness.end(closed);
    }
}

impl Shared {
    pub(super) fn new(
        config: &UpstreamConfig,
        endpoint: Endpoint,
        events: &broadcast::Sender<Event>,
    ) -> Self {
        let blank = endpoint.blank_session(Revision::LATEST_MODERN, true);
        let permits = |count| Arc::new(Semaphore::new(count));
        Self {
            endpoint,
            session: CurrentSession::new(blank),
            stream: StandaloneStream::default(),
            inbound: Inbound::new(config, events),
            gateways: config.chain.track_connection(),
            permits: Permits {
                answers: permits(MAX_UNREAD_REPLIES),
                replies: permits(MAX_REPLIES),
                cancellations: permits(MAX_CANCELLATIONS),
            },
            next_id: AtomicU64::new(1),
        }
    }

    /// An id for the next request.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// On a dedicated connection, waits until the standalone stream of the session is open or refused.
    ///
    /// Without the stream, requests of the server are lost, and the calls that need their answers hang.
    pub(super) async fn wait_for_stream(&self) {
        let session = self.session.load();
        if self.inbound.is_dedicated && session.is_legacy() {
            let limit = self.endpoint.limits.probe;
            self.stream.wait_for_answer(session.generation, limit).await;
        }
    }

    /// Handles a request of the server. Returns it if a client must answer; `ping` and requests that no client can answer
    /// are answered here.
    pub(super) fn accept_request(
        self: &Arc<Self>,
        session: &Arc<Session>,
        id: &str,
        method: &str,
        params: Option<&str>,
        message: &Bytes,
    ) -> Option<ServerRequest> {
        let parts = (id, method, params);
        let reply_handle = || SessionReply {
            shared: Arc::downgrade(self),
            session: Arc::clone(session),
        };
        let inbound = &self.inbound;
        let registered =
            inbound
                .server_requests
                .register(message, parts, inbound.is_dedicated, reply_handle);
        let reply = match registered {
            Ok(request) => return Some(request),
            Err(reply) => reply,
        };
        let method = excerpt(method.as_bytes(), 60);
        let id = excerpt(id.as_bytes(), 60);
        tracing::debug!(server = %self.endpoint.server, id, method, "request from the server answered");
        self.deliver_in_background(&self.permits.replies, session, reply);
        None
    }

    /// Cancels the request `id` at the server.
    pub(super) fn cancel(self: &Arc<Self>, session: &Arc<Session>, id: u64, reason: Option<&str>) {
        let params = cancel_params(id, reason);
        let message = server_message::write_request(None, "notifications/cancelled", Some(&params));
        self.deliver_in_background(&self.permits.cancellations, session, message);
    }

    /// Sends a client's answer to a request of the server.
    fn send_answer(self: &Arc<Self>, session: &Arc<Session>, message: Bytes) {
        let permit = Arc::clone(&self.permits.answers).try_acquire_owned();
        self.spawn_delivery(permit.ok(), session, message, |shared, error| {
            shared.endpoint.on_failure(&error);
        });
    }

    /// Sends a message in the background, unless too many are in flight already.
    fn deliver_in_background(
        self: &Arc<Self>,
        permits: &Arc<Semaphore>,
        session: &Arc<Session>,
        message: Bytes,
    ) {
        let is_short = message.len() <= MAX_BACKGROUND_MESSAGE;
        let acquire = || Arc::clone(permits).try_acquire_owned().ok();
        let permit = is_short.then(acquire).flatten();
        self.spawn_delivery(permit, session, message, |shared, error| {
            let error = error.details();
            tracing::debug!(server = %shared.endpoint.server, error, "message not delivered");
        });
    }

    /// Sends a message in the background while it holds its permit; drops it without one.
    fn spawn_delivery(
        self: &Arc<Self>,
        permit: Option<OwnedSemaphorePermit>,
        session: &Arc<Session>,
        message: Bytes,
        on_error: impl FnOnce(&Self, UpstreamError) + Send + 'static,
    ) {
        let Some(permit) = permit else {
            return self.endpoint.diagnostics.message_dropped();
        };
        let shared = Arc::clone(self);
        let session = Arc::clone(session);
        let _ = try_spawn(async move {
            if let Err(error) = shared.endpoint.deliver(&session, &[], message).await {
                on_error(&shared, error);
            }
            drop(permit);
        });
    }
}

const MAX_REPLIES: usize = 32;
const MAX_CANCELLATIONS: usize = 1024;
/// The longest message that is posted in the background; a server chooses the id of its request.
const MAX_BACKGROUND_MESSAGE: usize = 64 * 1024;
