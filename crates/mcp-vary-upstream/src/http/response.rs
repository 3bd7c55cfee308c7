//! What replies mean: statuses, content types, refusals; and our own replies to what a server asks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, Method, Response, StatusCode, Uri};
use hyper::body::Incoming;
use mcp_vary_wire::sanitize::excerpt;
use mcp_vary_wire::server_message;
use tokio::sync::Semaphore;

use super::body::{BodyError, Collect, drain};
use super::session::Session;
use super::{Connection, chain};
use crate::config::origin;
use crate::error::UpstreamError;
use crate::message::{Event, cancel_params};
use crate::server_requests::{ReplyHandle, ServerRequest};

impl Connection {
    /// Posts a message that has no answer.
    pub(super) async fn deliver(
        &self,
        session: &Session,
        headers: &HeaderMap,
        message: Bytes,
    ) -> Result<(), UpstreamError> {
        let delivery = async {
            let response = self.send(Method::POST, session, headers, message);
            let response = response.await.map_err(|error| self.unreachable(&error))?;
            if response.status().is_success() {
                drain(response.into_body()).await;
                return Ok(());
            }
            Err(self.refusal(response).await)
        };
        let delivered = tokio::time::timeout(self.limits.handshake, delivery).await;
        delivered.unwrap_or_else(|_| Err(self.timeout()))
    }

    /// Posts in the background what cannot be waited for, unless too much of it is on its way already.
    fn deliver_soon(
        self: &Arc<Self>,
        places: &Arc<Semaphore>,
        session: &Arc<Session>,
        message: Bytes,
    ) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let place = Arc::clone(places).try_acquire_owned();
        let Some(place) = place.ok().filter(|_| message.len() <= LONGEST_ASIDE) else {
            return self.not_delivered();
        };
        let (connection, session) = (Arc::clone(self), Arc::clone(session));
        runtime.spawn(async move {
            let delivered = connection
                .deliver(&session, &HeaderMap::new(), message)
                .await;
            if let Err(error) = delivered {
                let error = error.details();
                tracing::debug!(server = %connection.server, error, "message not delivered");
            }
            drop(place);
        });
    }

    /// What a server asks, for the client that has this connection; a ping, and what nobody can answer, is
    /// answered here.
    pub(super) fn asked(
        self: &Arc<Self>,
        session: &Arc<Session>,
        parts: (&str, &str, Option<&str>),
        message: &Bytes,
    ) -> Option<ServerRequest> {
        let (id, method, _) = parts;
        let back = || ReplyHandle::Http(Arc::downgrade(self), Arc::clone(session));
        let reply = match self.asking.register(message, parts, self.is_held, back) {
            Ok(request) => return Some(request),
            Err(reply) => reply,
        };
        let (shown, id) = (excerpt(method.as_bytes(), 60), excerpt(id.as_bytes(), 60));
        tracing::debug!(server = %self.server, id, method = shown, "request from the server answered");
        self.deliver_soon(&self.replying, session, reply);
        None
    }

    /// Posts a client's answer to what the server asked; as many are on their way as it may ask at once.
    pub(crate) fn answer(self: &Arc<Self>, session: &Arc<Session>, message: Bytes) {
        let Ok(place) = Arc::clone(&self.answering).try_acquire_owned() else {
            return self.not_delivered();
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (connection, session) = (Arc::clone(self), Arc::clone(session));
        runtime.spawn(async move {
            let headers = HeaderMap::new();
            if let Err(error) = connection.deliver(&session, &headers, message).await {
                connection.log(&error);
            }
            drop(place);
        });
    }

    fn not_delivered(&self) {
        let count = self.undelivered.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            tracing::warn!(server = %self.server, count, "message dropped, the server does not take so many or so long ones");
        }
    }

    /// Posts a notification about what the server asked.
    pub(crate) fn notify_soon(self: &Arc<Self>, session: &Arc<Session>, message: Bytes) {
        self.deliver_soon(&self.replying, session, message);
    }

    /// Tells the server that the request `id` is not wanted any more.
    pub(super) fn withdraw(
        self: &Arc<Self>,
        session: &Arc<Session>,
        id: u64,
        reason: Option<&str>,
    ) {
        let params = cancel_params(id, reason);
        let message = server_message::write(None, "notifications/cancelled", Some(&params));
        self.deliver_soon(&self.withdrawing, session, message);
    }

    /// Tells whoever listens.
    pub(super) fn tell(&self, event: Event) {
        // Nobody listening is fine.
        let _ = self.events.send(event);
    }

    /// Tells that a resource changed.
    pub(super) fn tell_updated(&self, params: Option<&str>) {
        if let Some(updated) = Event::resource_updated(params) {
            self.tell(updated);
        }
    }

    /// Why `response` is a refusal.
    pub(super) async fn refusal(&self, response: Response<Incoming>) -> UpstreamError {
        let status = response.status();
        if let Some(redirect) = self.redirect(&response) {
            return redirect;
        }
        let body = Collect::new(response.into_body(), self.limits.body)
            .run()
            .await;
        self.refused(status, &body.unwrap_or_default())
    }

    pub(super) fn refused(&self, status: StatusCode, body: &[u8]) -> UpstreamError {
        let refused = UpstreamError::Status {
            server: Arc::clone(&self.server),
            status,
            excerpt: self.secrets.excerpt(body, EXCERPT),
        };
        // It has learned that this gateway is behind it.
        if status == StatusCode::LOOP_DETECTED {
            self.life.end(refused.clone());
        }
        refused
    }

    /// The error for a redirect, when `response` is one.
    pub(super) fn redirect(&self, response: &Response<Incoming>) -> Option<UpstreamError> {
        let status = response.status();
        if !status.is_redirection() {
            return None;
        }
        let location = response
            .headers()
            .get(LOCATION)
            .map(http::HeaderValue::as_bytes);
        let location = String::from_utf8_lossy(location.unwrap_or_default());
        Some(UpstreamError::Redirect {
            server: Arc::clone(&self.server),
            status,
            location: excerpt(described(&location, &self.uri).as_bytes(), EXCERPT),
        })
    }

    pub(super) fn body_error(&self, error: &BodyError) -> UpstreamError {
        match error {
            BodyError::TooLarge => UpstreamError::TooLarge {
                server: Arc::clone(&self.server),
                what: "a reply",
                limit: self.limits.body,
            },
            BodyError::Broken(error) => UpstreamError::BrokeOff {
                server: Arc::clone(&self.server),
                reason: chain(error),
            },
        }
    }
}

/// Where `location` points, seen from `here`, without its path, which may hold a key.
fn described(location: &str, here: &Uri) -> String {
    let Ok(there) = location.parse::<Uri>() else {
        let where_to = if location.is_empty() {
            "nowhere"
        } else {
            "another address"
        };
        return where_to.to_owned();
    };
    if there.host().is_some() && origin(&there) != origin(here) {
        return format!("`{}`", origin(&there));
    }
    let (old, new) = (here.path(), there.path());
    if new.strip_suffix('/') == Some(old) {
        "its own path with a `/` at the end".to_owned()
    } else if old.strip_suffix('/') == Some(new) {
        "its own path without the `/` at the end".to_owned()
    } else {
        "another path of its own".to_owned()
    }
}

/// Whether the body is a stream of events.
pub(super) fn is_stream(headers: &HeaderMap) -> bool {
    is_type(headers, "text/event-stream")
}

/// Whether the media type is `wanted`, whatever its parameters.
fn is_type(headers: &HeaderMap, wanted: &str) -> bool {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let media = value
        .and_then(|value| value.split(';').next())
        .unwrap_or("");
    media.trim().eq_ignore_ascii_case(wanted)
}

const EXCERPT: usize = 200;
/// The longest message that is posted in the background; a server chooses the id of its request.
const LONGEST_ASIDE: usize = 64 * 1024;
