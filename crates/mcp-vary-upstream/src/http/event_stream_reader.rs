//! Opens the event stream of the transport of 2024-11-05, and receives what the server sends on it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{Method, Uri};
use mcp_vary_base::tasks::spawn;
use mcp_vary_wire::revision::Revision;
use mcp_vary_wire::server_message;
use mcp_vary_wire::sse::{EventTooLarge, SseEvent};

use super::address::resolve_within_origin;
use super::collect::Collect;
use super::endpoint::Endpoint;
use super::event_stream::EventStream;
use super::get_stream::receive;
use super::headers::{STREAM, is_stream};
use super::session::Session;
use super::shared::Shared;
use super::stream::{ResumePoint, Stream, data_of_message};
use crate::error::{UpstreamError, size};
use crate::liveness::Liveness;
use crate::message::Event;

/// Requests the stream of a server.
///
/// # Errors
///
/// If the server has none.
pub(super) async fn request_event_stream(
    shared: &Arc<Shared>,
    limit: Duration,
) -> Result<Stream, UpstreamError> {
    let opening = tokio::time::timeout(limit, request(shared));
    opening.await.unwrap_or_else(|_| {
        let what = format!("it did not answer GET within {limit:?}");
        Err(shared.endpoint.misbehaved(what))
    })
}

/// Waits for the address for messages; returns a session before the handshake. A task reads the stream until the
/// connection ends.
pub(super) async fn enter_event_stream(
    shared: &Arc<Shared>,
    stream: Stream,
    limit: Duration,
) -> Result<Session, UpstreamError> {
    let endpoint = &shared.endpoint;
    let reading = tokio::time::timeout(limit, read_address(endpoint, stream));
    let (uri, stream, events) = reading.await.unwrap_or_else(|_| {
        let what = format!("its stream named no address for messages within {limit:?}");
        Err(endpoint.misbehaved(what))
    })?;
    endpoint.hide_query(&uri);
    let mut session = endpoint.blank_session(Revision::LATEST_LEGACY, false);
    session.stream = Some(Arc::new(EventStream::new(uri)));
    shared.stream.record_opening();
    shared.stream.record_answer(u64::MAX);
    let reader = Reader {
        shared: Arc::downgrade(shared),
        liveness: Arc::clone(&endpoint.liveness),
        session: Arc::new(session.clone()),
        stream,
    };
    spawn(reader.run(events));
    tracing::info!(server = %endpoint.server, "stream of the transport of 2024-11-05 opened");
    Ok(session)
}

async fn request(shared: &Arc<Shared>) -> Result<Stream, UpstreamError> {
    let endpoint = &shared.endpoint;
    let session = endpoint.blank_session(Revision::LATEST_LEGACY, false);
    let headers = [(ACCEPT, STREAM)];
    let sending = endpoint.send(Method::GET, &session, &headers, Bytes::new());
    let response = sending
        .await
        .map_err(|error| endpoint.delivery_error(&error))?;
    endpoint.check_response(&response)?;
    let status = response.status();
    if !status.is_success() {
        let mut body = Collect::new(response.into_body(), endpoint.limits.body);
        let excerpt = body.run().await.unwrap_or_default();
        return Err(endpoint.status_error(status, &excerpt));
    }
    if !is_stream(response.headers()) {
        let what = "it answered GET with something else than a stream of events";
        return Err(endpoint.misbehaved(what.to_owned()));
    }
    let limit = endpoint.limits.message;
    Ok(Stream::new(
        response.into_body(),
        limit,
        ResumePoint::default(),
    ))
}

/// Reads the stream up to the address for messages. Returns the events that follow, too.
async fn read_address(
    endpoint: &Endpoint,
    mut stream: Stream,
) -> Result<(Uri, Stream, Vec<SseEvent>), UpstreamError> {
    loop {
        let read = stream.read_events().await;
        let Some(events) = read.map_err(|error| endpoint.too_large("an event", error.limit))?
        else {
            let what = "the stream ended before it named an address for messages";
            return Err(endpoint.broke_off(what.to_owned()));
        };
        let mut pending = events.into_iter();
        // A server may greet before; the parser skips comments.
        let Some(event) = pending.find(|event| event.kind == "endpoint") else {
            continue;
        };
        let text = String::from_utf8_lossy(&event.data);
        let uri = resolve_within_origin(endpoint.uri(), text.trim()).ok_or_else(|| {
            let what =
                "the address for messages that its stream names is not one of its own origin";
            endpoint.misbehaved(what.to_owned())
        })?;
        return Ok((uri, stream, pending.collect()));
    }
}

/// Reads the stream until it or the connection ends. It does not keep the connection alive.
struct Reader {
    shared: Weak<Shared>,
    liveness: Arc<Liveness>,
    session: Arc<Session>,
    stream: Stream,
}

impl Reader {
    async fn run(mut self, events: Vec<SseEvent>) {
        let liveness = Arc::clone(&self.liveness);
        let reason = tokio::select! {
            biased;
            _ = liveness.ended() => return,
            reason = self.receive_all(events) => reason,
        };
        if let Some(shared) = self.shared.upgrade() {
            let server = &shared.endpoint.server;
            liveness.end(UpstreamError::Closed {
                server: Arc::clone(server),
                reason: reason.as_str().into(),
                output: Arc::default(),
            });
            shared.inbound.publish(Event::Closed {
                reason: format!("server `{server}` {reason}"),
            });
        }
    }

    /// Receives the messages of the stream; returns how it ended.
    async fn receive_all(&mut self, mut events: Vec<SseEvent>) -> String {
        loop {
            for data in events.drain(..).filter_map(data_of_message) {
                let Some(shared) = self.shared.upgrade() else {
                    return "was closed by the gateway".to_owned();
                };
                let current = shared.session.load();
                let session = match current.stream {
                    Some(_) => &current,
                    // During the handshake.
                    None => &self.session,
                };
                for message in server_message::messages(data) {
                    receive(&shared, session, &message);
                }
            }
            match self.stream.read_events().await {
                Ok(Some(read)) => events = read,
                Ok(None) => return "closed its event stream".to_owned(),
                Err(EventTooLarge { limit }) => {
                    return format!("sent an event of more than {}", size(limit));
                }
            }
            self.liveness.touch();
        }
    }
}
