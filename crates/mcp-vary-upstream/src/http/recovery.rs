//! Recovery of an exchange: a stream that broke is resumed, and an expired session is renewed.

use std::sync::Arc;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderMap, Method, Response};
use hyper::body::Incoming;

use super::exchange::{Exchange, State};
use crate::error::UpstreamError;
use crate::http::connect::is_legacy;
use crate::http::response::is_stream;
use crate::http::stream::{ResumePoint, Stream};
use crate::http::{LAST_EVENT_ID, STREAM};
use crate::message::RequestKind;

impl Exchange {
    /// Resumes a stream that ended before the answer.
    ///
    /// "If the client wishes to resume after a disconnection […], it SHOULD issue an HTTP GET to the
    /// MCP endpoint, and include the `Last-Event-ID` header" (MCP 2025-11-25, basic/transports).
    pub(super) fn resume(&mut self, how: &str) -> Result<(), UpstreamError> {
        let bookmark = match &self.state {
            State::Streaming(stream) => stream.resume_point(),
            State::Resuming(bookmark, _) => bookmark.clone(),
            _ => ResumePoint::default(),
        };
        self.resume_at(bookmark, how)
    }

    pub(super) fn resume_at(
        &mut self,
        bookmark: ResumePoint,
        how: &str,
    ) -> Result<(), UpstreamError> {
        let connection = Arc::clone(&self.connection);
        let last_id = bookmark.header().filter(|_| is_legacy(&self.session));
        let Some(last_id) = last_id.filter(|_| self.resumes < connection.limits.resumes) else {
            let server = Arc::clone(&connection.server);
            let reason = format!("the stream of its reply {how}");
            return Err(UpstreamError::BrokeOff { server, reason });
        };
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, STREAM);
        headers.insert(LAST_EVENT_ID, last_id);
        let pause = bookmark
            .retry
            .unwrap_or(RESUME_PAUSE * (1 << self.resumes.min(6)));
        self.resumes += 1;
        let session = Arc::clone(&self.session);
        let response = async move {
            tokio::time::sleep(pause).await;
            let response = connection.send(Method::GET, &session, &headers, Bytes::new());
            response
                .await
                .map_err(|error| connection.unreachable(&error))
        };
        self.state = State::Resuming(bookmark, Box::pin(response));
        Ok(())
    }

    pub(super) fn on_resumed(
        &mut self,
        bookmark: ResumePoint,
        response: Result<Response<Incoming>, UpstreamError>,
    ) -> Result<(), UpstreamError> {
        match response {
            Ok(response) if response.status().is_success() && is_stream(response.headers()) => {
                let limit = self.connection.limits.message;
                let stream = Stream::new(response.into_body(), limit, bookmark);
                self.state = State::Streaming(Box::new(stream));
                Ok(())
            }
            Ok(response) if response.status().is_server_error() => {
                self.resume_at(bookmark, "ended and could not be resumed")
            }
            Ok(response) => {
                let how = format!(
                    "ended and was refused later with HTTP {}",
                    response.status()
                );
                let server = Arc::clone(&self.connection.server);
                let reason = format!("the stream of its reply {how}");
                Err(UpstreamError::BrokeOff { server, reason })
            }
            Err(error) => self.resume_at(
                bookmark,
                &format!("ended and could not be resumed: {}", error.details()),
            ),
        }
    }

    /// Whether the session may have expired, and was not renewed for this call yet.
    pub(super) fn can_renew(&self) -> bool {
        self.session.id.is_some() && !self.was_renewed && self.call.kind != RequestKind::Handshake
    }

    pub(super) fn renew(&mut self) {
        self.was_renewed = true;
        let renewal = Arc::clone(&self.connection).renew(self.session.generation);
        self.state = State::Renewing(Box::pin(renewal));
    }

    pub(super) fn resend(&mut self) {
        self.touch();
        self.session = self.connection.session.load_full();
        let (headers, body) = (&self.call.headers, self.call.body.clone());
        let response = self
            .connection
            .send(Method::POST, &self.session, headers, body);
        self.state = State::Sending(response);
    }
}

/// The pause before a stream is resumed, if the server sends no `retry`.
const RESUME_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);
