//! Interprets responses: statuses, content types, errors. Sends replies to server requests.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION, VIA, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use hyper::body::Incoming;
use mcp_vary_wire::sanitize::excerpt;
use mcp_vary_wire::server_message;
use tokio::sync::Semaphore;

use super::body::{BodyError, Collect, drain};
use super::session::Session;
use super::{Connection, endpoint, root_cause, shown_path};
use crate::config::origin;
use crate::error::UpstreamError;
use crate::message::{Event, cancel_params};
use crate::server_requests::{ReplyHandle, ServerRequest};

/// The session in which a server sent a request.
struct SessionReply {
    connection: Weak<Connection>,
    session: Arc<Session>,
}

impl ReplyHandle for SessionReply {
    fn answer(&self, message: Bytes) {
        if let Some(connection) = self.connection.upgrade() {
            connection.send_reply(&self.session, message);
        }
    }

    fn notify(&self, message: Bytes) {
        if let Some(connection) = self.connection.upgrade() {
            connection.notify_in_background(&self.session, message);
        }
    }
}

impl Connection {
    /// Sends a message that has no answer.
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
            Err(self.read_error(response).await)
        };
        let delivered = tokio::time::timeout(self.limits.handshake, delivery).await;
        delivered.unwrap_or_else(|_| Err(self.timeout()))
    }

    /// Sends a message in the background, unless too many are in flight already.
    fn deliver_in_background(
        self: &Arc<Self>,
        permits: &Arc<Semaphore>,
        session: &Arc<Session>,
        message: Bytes,
    ) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let permit = Arc::clone(permits).try_acquire_owned();
        let Some(permit) = permit
            .ok()
            .filter(|_| message.len() <= MAX_BACKGROUND_MESSAGE)
        else {
            return self.log_undelivered();
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
            drop(permit);
        });
    }

    /// Handles a request of the server. Returns it if a client must answer; `ping` and requests that no client can answer
    /// are answered here.
    pub(super) fn on_server_request(
        self: &Arc<Self>,
        session: &Arc<Session>,
        parts: (&str, &str, Option<&str>),
        message: &Bytes,
    ) -> Option<ServerRequest> {
        let (id, method, _) = parts;
        let reply_handle = || SessionReply {
            connection: Arc::downgrade(self),
            session: Arc::clone(session),
        };
        let reply =
            match self
                .server_requests
                .register(message, parts, self.is_dedicated, reply_handle)
            {
                Ok(request) => return Some(request),
                Err(reply) => reply,
            };
        let (shown, id) = (excerpt(method.as_bytes(), 60), excerpt(id.as_bytes(), 60));
        tracing::debug!(server = %self.server, id, method = shown, "request from the server answered");
        self.deliver_in_background(&self.reply_permits, session, reply);
        None
    }

    /// Sends a client's answer to a request of the server. As many may be in flight as requests may be pending.
    fn send_reply(self: &Arc<Self>, session: &Arc<Session>, message: Bytes) {
        let Ok(place) = Arc::clone(&self.answer_permits).try_acquire_owned() else {
            return self.log_undelivered();
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

    fn log_undelivered(&self) {
        let count = self.undelivered.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            tracing::warn!(server = %self.server, count, "message dropped, the server does not take so many or so long ones");
        }
    }

    /// Sends a notification about a request of the server.
    fn notify_in_background(self: &Arc<Self>, session: &Arc<Session>, message: Bytes) {
        self.deliver_in_background(&self.reply_permits, session, message);
    }

    /// Cancels the request `id` at the server.
    pub(super) fn cancel(self: &Arc<Self>, session: &Arc<Session>, id: u64, reason: Option<&str>) {
        let params = cancel_params(id, reason);
        let message = server_message::write_request(None, "notifications/cancelled", Some(&params));
        self.deliver_in_background(&self.cancel_permits, session, message);
    }

    /// Publishes an event to the subscribers.
    pub(super) fn publish(&self, event: Event) {
        // An error only means that there is no subscriber.
        let _ = self.events.send(event);
    }

    /// Publishes the update of a resource.
    pub(super) fn publish_resource_updated(&self, params: Option<&str>) {
        if let Some(updated) = Event::resource_updated(params) {
            self.publish(updated);
        }
    }

    /// Reads the body of a refusal and creates the error.
    pub(super) async fn read_error(&self, response: Response<Incoming>) -> UpstreamError {
        let status = response.status();
        if let Some(redirect) = self.redirect_error(&response) {
            return redirect;
        }
        self.note_challenge(&response);
        let body = Collect::new(response.into_body(), self.limits.body)
            .run()
            .await;
        self.status_error(status, &body.unwrap_or_default())
    }

    pub(super) fn status_error(&self, status: StatusCode, body: &[u8]) -> UpstreamError {
        let refused = UpstreamError::Status {
            server: Arc::clone(&self.server),
            endpoint: endpoint(&self.uri),
            status,
            excerpt: self.secrets.excerpt(body, EXCERPT_CHARS),
            advice: match status {
                StatusCode::UNAUTHORIZED => self.credentials_advice(),
                _ => self.proxy_advice(status),
            },
        };
        // The server has detected that requests loop through this gateway.
        if status == StatusCode::LOOP_DETECTED {
            self.liveness.end(refused.clone());
        }
        refused
    }

    /// Who may have answered in place of the server.
    fn proxy_advice(&self, status: StatusCode) -> String {
        match &self.proxy {
            Some(proxy) if matches!(status.as_u16(), 407 | 502..=504) => {
                format!("; it may be the answer of the proxy {proxy}")
            }
            _ => String::new(),
        }
    }

    /// Remembers whether the server refers to an authorization server (RFC 9728).
    pub(super) fn note_challenge(&self, response: &Response<Incoming>) {
        let mut challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
        let names_metadata = |value: &HeaderValue| {
            let value = String::from_utf8_lossy(value.as_bytes());
            value.to_ascii_lowercase().contains("resource_metadata")
        };
        if response.status() == StatusCode::UNAUTHORIZED {
            let wants_login = challenges.any(names_metadata);
            self.wants_login.store(wants_login, Ordering::Relaxed);
        }
    }

    /// What to do about a server that answers 401.
    fn credentials_advice(&self) -> String {
        let sent = self.configured_headers.keys().filter(|name| *name != VIA);
        let sent: Vec<String> = sent.map(|name| format!("`{name}`")).collect();
        let mut headers = self.configured_headers.iter();
        if let Some((name, _)) = headers.find(|(_, value)| has_no_credentials(value)) {
            return format!("; its header `{name}` has no token: is the variable empty?");
        }
        let what = match (&sent[..], self.wants_login.load(Ordering::Relaxed)) {
            ([], false) => {
                "it wants credentials: write them into `headers` of its entry, as in `Authorization: Bearer ${TOKEN}` \
                 (for a URL on the command line, --header)"
                    .to_owned()
            }
            ([], true) => format!("it wants a login; {NO_LOGIN}"),
            (sent, wants_login) => {
                let sent = sent.join(", ");
                let rest = if wants_login { NO_LOGIN } else { CHECK_TOKEN };
                format!("it refused the headers that were sent, {sent}; {rest}")
            }
        };
        format!("; {what}; see \"Remote servers\" in the documentation")
    }

    /// The error for a redirect, when `response` is one.
    pub(super) fn redirect_error(&self, response: &Response<Incoming>) -> Option<UpstreamError> {
        let status = response.status();
        if !status.is_redirection() {
            return None;
        }
        let location = response.headers().get(LOCATION).map(HeaderValue::as_bytes);
        let location = String::from_utf8_lossy(location.unwrap_or_default());
        Some(UpstreamError::Redirect {
            server: Arc::clone(&self.server),
            status,
            location: excerpt(
                describe_location(&location, &self.uri).as_bytes(),
                EXCERPT_CHARS,
            ),
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
                reason: root_cause(error),
            },
        }
    }
}

/// Whether nothing follows the scheme in the value of a header.
fn has_no_credentials(value: &HeaderValue) -> bool {
    let value = value.as_bytes().trim_ascii().to_ascii_lowercase();
    matches!(&*value, b"" | b"bearer" | b"basic" | b"token")
}

/// What to do about a server that wants a login.
const NO_LOGIN: &str = "Vary cannot log in yet: write a token of this server into `headers` of its entry, or let \
     `npx -y mcp-remote URL` as its `command` log in";

/// What to do about a token that is refused.
const CHECK_TOKEN: &str =
    "check that the token is complete, has not expired, and is for this server";

/// The address `location`, relative to `here`.
fn describe_location(location: &str, here: &Uri) -> String {
    let Ok(there) = location.parse::<Uri>() else {
        let where_to = if location.is_empty() {
            "nowhere"
        } else {
            "another address"
        };
        return where_to.to_owned();
    };
    if there.host().is_some() && origin(&there) != origin(here) {
        return format!("`{}`", endpoint(&there));
    }
    let (old, new) = (here.path(), there.path());
    if new.strip_suffix('/') == Some(old) {
        "its own path with a `/` at the end".to_owned()
    } else if old.strip_suffix('/') == Some(new) {
        "its own path without the `/` at the end".to_owned()
    } else {
        format!("`{}`, another path of its own", shown_path(new))
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

const EXCERPT_CHARS: usize = 200;
/// The longest message that is posted in the background; a server chooses the id of its request.
const MAX_BACKGROUND_MESSAGE: usize = 64 * 1024;
