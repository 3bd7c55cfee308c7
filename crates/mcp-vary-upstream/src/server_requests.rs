//! What a server asks of its client, until it is answered.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use mcp_vary::json::Members;
use mcp_vary_wire::sanitize::excerpt;
use mcp_vary_wire::server_message::{self, canonical, range};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::http;
use super::stdio;

/// A request that a server made of its client, and the way back for the answer.
///
/// # Properties
///
/// The server gets one answer: the first [`reply`](Self::reply), or an error when the last clone is dropped
/// without. One that it withdrew gets none. While it waits, the calls on its connection do not time out.
///
/// # Examples
///
/// ```
/// use mcp_vary_upstream::ServerRequest;
///
/// fn answer(request: &ServerRequest) {
///     match request.method() {
///         "roots/list" => request.reply(Ok(r#"{"roots":[]}"#)),
///         // Whoever does not know what is asked says so.
///         _ => request.reply(Err(r#"{"code":-32601,"message":"not known here"}"#)),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct ServerRequest(Arc<Pending>);

struct Pending {
    message: Bytes,
    id: Range<usize>,
    method: String,
    params: Option<Range<usize>>,
    reply_handle: ReplyHandle,
    registry: Arc<ServerRequests>,
    settled: CancellationToken,
}

/// The connection that a request came on.
#[derive(Debug)]
pub(super) enum ReplyHandle {
    Stdio(Weak<stdio::Shared>),
    Http(Weak<http::Connection>, Arc<http::Session>),
}

impl ReplyHandle {
    /// Sends the answer to a request.
    fn answer(&self, message: Bytes) {
        match self {
            Self::Stdio(shared) => {
                if let Some(shared) = shared.upgrade() {
                    shared.send_answer(message);
                }
            }
            Self::Http(connection, session) => {
                if let Some(connection) = connection.upgrade() {
                    connection.answer(session, message);
                }
            }
        }
    }

    /// Sends a notification, which is dropped where the server takes no more.
    fn notify(&self, message: Bytes) {
        match self {
            Self::Stdio(shared) => {
                if let Some(shared) = shared.upgrade() {
                    shared.send_now(message);
                }
            }
            Self::Http(connection, session) => {
                if let Some(connection) = connection.upgrade() {
                    connection.notify_soon(session, message);
                }
            }
        }
    }
}

impl fmt::Debug for ServerRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerRequest")
            .field("id", &self.id())
            .field("method", &self.method())
            .finish_non_exhaustive()
    }
}

impl ServerRequest {
    /// The server's id of it, JSON text.
    #[must_use]
    pub fn id(&self) -> &str {
        self.0.text(&self.0.id)
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.0.method
    }

    /// The JSON text of the parameters, if there are any.
    #[must_use]
    pub fn params(&self) -> Option<&str> {
        let params = self.0.params.as_ref()?;
        Some(self.0.text(params))
    }

    /// The whole message, as it was sent.
    #[must_use]
    pub fn message(&self) -> &Bytes {
        &self.0.message
    }

    /// Answers it with the JSON text of a `result`, or that of an `error`; only the first answer counts.
    ///
    /// Nothing is awaited: the answer is on its way when this returns.
    pub fn reply(&self, outcome: Result<&str, &str>) {
        if self.0.settle() {
            self.0.send(outcome);
        }
    }

    /// Tells the server something about it; `params` is JSON text.
    pub fn notify(&self, method: &str, params: &str) {
        if !self.is_settled() {
            self.0
                .reply_handle
                .notify(server_message::write(None, method, Some(params)));
        }
    }

    /// Waits until it was answered, or the server does not want an answer any more.
    pub async fn settled(&self) {
        self.0.settled.cancelled().await;
    }

    /// Whether it was answered, or the server does not want an answer any more.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.0.settled.is_cancelled()
    }
}

impl Pending {
    fn text(&self, at: &Range<usize>) -> &str {
        // Envelopes are read from UTF-8.
        std::str::from_utf8(&self.message[at.clone()]).unwrap_or_default()
    }

    /// Takes it off what is open; `false` when it was off already.
    fn settle(&self) -> bool {
        let mut open = self.registry.lock();
        if self.settled.is_cancelled() {
            return false;
        }
        self.settled.cancel();
        let id = canonical(self.text(&self.id));
        let is_this = |other: &Weak<Self>| std::ptr::eq(other.as_ptr(), self);
        if open.requests.get(&id).is_some_and(is_this) {
            open.requests.remove(&id);
        }
        open.idle_since = Instant::now();
        true
    }

    fn send(&self, outcome: Result<&str, &str>) {
        let id = self.text(&self.id);
        self.reply_handle
            .answer(server_message::write_answer(id, outcome));
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.settle() {
            let message = format!("`{}` was not answered by the client", self.method_excerpt());
            self.send(Err(&server_message::error(INTERNAL_ERROR, &message)));
        }
    }
}

impl Pending {
    fn method_excerpt(&self) -> String {
        excerpt(self.method.as_bytes(), 60)
    }
}

/// What a server has asked on one connection and waits for.
#[derive(Debug, Default)]
pub(super) struct ServerRequests(Mutex<Open>);

#[derive(Debug)]
struct Open {
    requests: BTreeMap<String, Weak<Pending>>,
    /// When the last one was settled.
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

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl ServerRequests {
    /// Notes the request `message`, whose id, method and params were read from it.
    ///
    /// # Errors
    ///
    /// The answer to the server when that is known already: to a `ping`, to what no client `can_answer`, to an
    /// id that is in use, and when too many wait.
    pub(super) fn register(
        self: &Arc<Self>,
        message: &Bytes,
        (id, method, params): (&str, &str, Option<&str>),
        can_answer: bool,
        back: impl FnOnce() -> ReplyHandle,
    ) -> Result<ServerRequest, Bytes> {
        if !can_answer || method == "ping" {
            return Err(server_message::write_reply(id, method));
        }
        let refusal = |why| {
            server_message::write_answer(id, Err(&server_message::error(INVALID_REQUEST, why)))
        };
        let mut open = self.lock();
        let key = canonical(id);
        if open.requests.contains_key(&key) {
            return Err(refusal(
                "the id belongs to a request that is not answered yet",
            ));
        }
        if open.requests.len() >= MAX_PENDING {
            return Err(refusal("too many requests wait for an answer already"));
        }
        let whole = std::str::from_utf8(message).unwrap_or_default();
        let asked = Arc::new(Pending {
            id: range(whole, id),
            method: method.to_owned(),
            params: params.map(|params| range(whole, params)),
            // A copy, since a slice would keep all that was read together with it.
            message: Bytes::copy_from_slice(message),
            reply_handle: back(),
            registry: Arc::clone(self),
            settled: CancellationToken::new(),
        });
        open.requests.insert(key, Arc::downgrade(&asked));
        Ok(ServerRequest(asked))
    }

    /// Takes note of what a notification says about the requests: the server may not want one answered any more.
    pub(super) fn on_notification(&self, method: &str, params: Option<&str>) {
        if method != "notifications/cancelled" {
            return;
        }
        let members = Members::parse(params.unwrap_or("{}")).unwrap_or_default();
        let Some(id) = members.get("requestId") else {
            return;
        };
        let asked = self.lock().requests.get(&canonical(id)).cloned();
        if let Some(asked) = asked.and_then(|asked| asked.upgrade()) {
            asked.settle();
        }
    }

    /// Since when the server waits for no answer; `None` while it does.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let open = self.lock();
        if open.requests.is_empty() {
            Some(open.idle_since)
        } else {
            None
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many requests of a server may wait on one connection.
const MAX_PENDING: usize = 64;
/// How many answers may wait for a server that does not take them. As many as it may ask: one that
/// waits for its answers before it asks again never leaves more unread.
pub(super) const MAX_UNREAD_REPLIES: usize = MAX_PENDING;
const INTERNAL_ERROR: i32 = -32603;
const INVALID_REQUEST: i32 = -32600;
