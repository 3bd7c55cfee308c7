//! What replies mean: statuses, content types, refusals; and our own replies to what a server asks.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, Method, Response, StatusCode, Uri};
use hyper::body::Incoming;

use super::Connection;
use super::body::{BodyError, Collect, drain};
use super::session::Session;
use crate::upstream::config::shown;
use crate::upstream::error::UpstreamError;
use crate::upstream::frame;
use crate::upstream::message::{Event, Kind};
use crate::upstream::text::excerpt;

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

    /// Posts in the background what cannot be waited for.
    pub(super) fn deliver_soon(self: &Arc<Self>, session: &Arc<Session>, message: Bytes) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (connection, session) = (Arc::clone(self), Arc::clone(session));
        runtime.spawn(async move {
            let delivered = connection
                .deliver(&session, &HeaderMap::new(), message)
                .await;
            if let Err(error) = delivered {
                tracing::debug!(server = %connection.server, %error, "message not delivered");
            }
        });
    }

    /// Answers what a server asks: a ping, or what was never declared.
    pub(super) fn reply(self: &Arc<Self>, session: &Arc<Session>, id: &str, method: &str) {
        tracing::debug!(server = %self.server, method, "request from the server answered");
        self.deliver_soon(session, frame::write_reply(id, method));
    }

    /// Tells all clients' sessions what the server told.
    pub(super) fn tell(&self, method: &str, message: Bytes) {
        let event = match Kind::changed_by(method) {
            Some(kind) => Event::ListChanged(kind),
            None => Event::Other(message),
        };
        // Nobody listening is fine.
        let _ = self.events.send(event);
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
        UpstreamError::Status {
            server: Arc::clone(&self.server),
            status,
            excerpt: excerpt(body, EXCERPT),
        }
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
        let location = String::from_utf8_lossy(location.unwrap_or(b"nowhere"));
        let shown = match location.parse::<Uri>() {
            Ok(uri) if uri.host().is_some() => shown(&uri),
            _ => location
                .split(['?', '#'])
                .next()
                .unwrap_or_default()
                .to_owned(),
        };
        Some(UpstreamError::Redirect {
            server: Arc::clone(&self.server),
            status,
            location: excerpt(shown.as_bytes(), EXCERPT),
        })
    }

    pub(super) fn body_error(&self, error: &BodyError) -> UpstreamError {
        match error {
            BodyError::TooLarge => UpstreamError::TooLarge {
                server: Arc::clone(&self.server),
                what: "a reply",
                limit: self.limits.body,
            },
            BodyError::Broken(error) => self.unreachable(error),
        }
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
