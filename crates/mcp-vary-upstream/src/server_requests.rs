//! Requests of a server to its client, until they are answered.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use mcp_vary::error_code::{INTERNAL_ERROR, INVALID_REQUEST};
use mcp_vary::json::{Members, span};
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_wire::sanitize::excerpt;
use mcp_vary_wire::server_message::{self, canonical_token};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A request of a server to its client, and the means to answer it.
///
/// # Properties
///
/// The server gets one answer: the first [`reply`](Self::reply), or an error when the last clone is dropped without one.
/// A request that the server cancelled gets none. While it is pending, the calls on its connection do not time out.
///
/// # Examples
///
/// ```
/// use mcp_vary_upstream::ServerRequest;
///
/// fn answer(request: &ServerRequest) {
///     match request.method() {
///         "roots/list" => request.reply(Ok(r#"{"roots":[]}"#)),
///         // Unknown methods are errors.
///         _ => request.reply(Err(r#"{"code":-32601,"message":"not known here"}"#)),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct ServerRequest(Arc<Pending>);

/// Sends messages about a request to the server, on the connection on which the request arrived.
pub(super) trait ReplyHandle: Send + Sync + 'static {
    /// Sends the answer to the request.
    fn answer(&self, message: Bytes);

    /// Sends a notification. It is dropped if the server does not accept more messages.
    fn notify(&self, message: Bytes);
}

struct Pending<H: ReplyHandle + ?Sized = dyn ReplyHandle> {
    message: Bytes,
    id: Range<usize>,
    method: String,
    params: Option<Range<usize>>,
    registry: Arc<ServerRequests>,
    settled: CancellationToken,
    reply_handle: H,
}

mcp_vary_base::debug_by_name!(ServerRequest);

impl ServerRequest {
    /// The id of the request, JSON text.
    pub fn id(&self) -> &str {
        self.0.text(&self.0.id)
    }

    /// The method.
    pub fn method(&self) -> &str {
        &self.0.method
    }

    /// The JSON text of the parameters, if there are any.
    pub fn params(&self) -> Option<&str> {
        let params = self.0.params.as_ref()?;
        Some(self.0.text(params))
    }

    /// The whole message, as it was sent.
    pub fn message(&self) -> &Bytes {
        &self.0.message
    }

    /// Answers it with the JSON text of a `result`, or that of an `error`; only the first answer counts.
    ///
    /// The answer is sent in the background.
    pub fn reply(&self, outcome: Result<&str, &str>) {
        if self.0.settle() {
            self.0.send(outcome);
        }
    }

    /// Sends the server a notification about the request; `params` is JSON text.
    pub fn notify(&self, method: &str, params: &str) {
        if !self.is_settled() {
            self.0
                .reply_handle
                .notify(server_message::write_request(None, method, Some(params)));
        }
    }

    /// Waits until the request was answered or cancelled by the server.
    pub async fn settled(&self) {
        self.0.settled.cancelled().await;
    }

    /// Whether the request was answered or cancelled by the server.
    pub fn is_settled(&self) -> bool {
        self.0.settled.is_cancelled()
    }
}

impl<H: ReplyHandle + ?Sized> Pending<H> {
    fn text(&self, at: &Range<usize>) -> &str {
        // Envelopes are read from UTF-8.
        std::str::from_utf8(&self.message[at.clone()]).unwrap_or_default()
    }

    /// Removes the request from the pending ones; `false` when it was removed already.
    fn settle(&self) -> bool {
        let mut open = self.registry.0.lock();
        if self.settled.is_cancelled() {
            return false;
        }
        self.settled.cancel();
        let id = canonical_token(self.text(&self.id));
        let is_this = |other: &Weak<Pending>| std::ptr::addr_eq(other.as_ptr(), self);
        if open.requests.get(&id).is_some_and(is_this) {
            open.requests.remove(&id);
        }
        open.idle_since = Instant::now();
        true
    }

    fn send(&self, outcome: Result<&str, &str>) {
        let id = self.text(&self.id);
        self.reply_handle
            .answer(server_message::write_response(id, outcome));
    }
}

impl<H: ReplyHandle + ?Sized> Drop for Pending<H> {
    fn drop(&mut self) {
        if self.settle() {
            let method = excerpt(self.method.as_bytes(), 60);
            let message = format!("`{method}` was not answered by the client");
            self.send(Err(&server_message::error_json(INTERNAL_ERROR, &message)));
        }
    }
}

/// The pending requests of the server on one connection.
#[derive(Debug, Default)]
pub(super) struct ServerRequests(ScopedLock<Open>);

#[derive(Debug)]
struct Open {
    requests: BTreeMap<String, Weak<Pending>>,
    /// When the last one was answered or cancelled.
    idle_since: Instant,
}

impl Default for Open {
    fn default() -> Self {
        Self {
            requests: BTreeMap::new(),
            idle_since: Instant::now(),
        }
    }
}

impl ServerRequests {
    /// Registers the request `message`, whose id, method and params were read from it.
    ///
    /// # Errors
    ///
    /// The answer to the server if no client is needed for it: to a `ping`, to a request that no client `can_answer`, to an
    /// id that is in use, and when too many requests are pending.
    pub(super) fn register<H: ReplyHandle>(
        self: &Arc<Self>,
        message: &Bytes,
        (id, method, params): (&str, &str, Option<&str>),
        can_answer: bool,
        reply_handle: impl FnOnce() -> H,
    ) -> Result<ServerRequest, Bytes> {
        if !can_answer || method == "ping" {
            return Err(server_message::write_default_response(id, method));
        }
        let refusal = |why| {
            server_message::write_response(
                id,
                Err(&server_message::error_json(INVALID_REQUEST, why)),
            )
        };
        let mut open = self.0.lock();
        let key = canonical_token(id);
        if open.requests.contains_key(&key) {
            return Err(refusal(
                "the id belongs to a pending request; use another one",
            ));
        }
        if open.requests.len() >= MAX_PENDING {
            return Err(refusal(
                "too many requests are pending; wait for answers first",
            ));
        }
        let whole = std::str::from_utf8(message).unwrap_or_default();
        let pending: Arc<Pending> = Arc::new(Pending {
            id: span(whole, id),
            method: method.to_owned(),
            params: params.map(|params| span(whole, params)),
            // A copy, since a slice would keep the whole read buffer alive.
            message: Bytes::copy_from_slice(message),
            registry: Arc::clone(self),
            settled: CancellationToken::new(),
            reply_handle: reply_handle(),
        });
        open.requests.insert(key, Arc::downgrade(&pending));
        Ok(ServerRequest(pending))
    }

    /// Handles a notification of the server, which may cancel a pending request.
    pub(super) fn on_notification(&self, method: &str, params: Option<&str>) {
        if method != "notifications/cancelled" {
            return;
        }
        let members = Members::parse(params.unwrap_or("{}")).unwrap_or_default();
        let Some(id) = members.get("requestId") else {
            return;
        };
        let request = self.0.lock().requests.get(&canonical_token(id)).cloned();
        if let Some(request) = request.and_then(|request| request.upgrade()) {
            request.settle();
        }
    }

    /// Since when no request is pending; `None` while one is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let open = self.0.lock();
        if open.requests.is_empty() {
            Some(open.idle_since)
        } else {
            None
        }
    }
}

/// How many requests of a server may be pending on one connection.
const MAX_PENDING: usize = 64;
/// How many answers may be queued for a server that does not read them. As many as may be pending: a server that reads
/// its answers before it sends more requests never leaves more unread.
pub(super) const MAX_UNREAD_REPLIES: usize = MAX_PENDING;
