//! The standalone stream of a legacy server, for messages that belong to no request.
//!
//! Source: MCP 2025-11-25, basic/transports, "Listening for Messages from the Server".

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderMap, Method, Response, StatusCode};
use hyper::body::Incoming;
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::sanitize::excerpt;
use mcp_vary_wire::server_message::{self, ServerMessage};
use mcp_vary_wire::sse::EventTooLarge;
use tokio::time::Instant;

use super::session::Session;
use super::stream::{Read, ResumePoint, Stream};
use super::{Connection, LAST_EVENT_ID, STREAM};
use crate::error::is_transient;
use crate::http::response::is_stream;
use crate::message::{Event, LOG_MESSAGE};

impl Connection {
    /// Delivers a notification that names no call to the only client; `false` if there are several.
    fn deliver_to_sole_client(&self, message: &Bytes) -> bool {
        let one = self.call_table.sole_receiver();
        if let Some(one) = &one {
            one.receive(&self.server, message);
        }
        one.is_some()
    }
}

/// Reads the standalone stream until the server rejects it.
pub(crate) async fn read_standalone_stream(connection: Arc<Connection>) {
    let mut generation = connection.generation.subscribe();
    let mut bookmark = ResumePoint::default();
    let mut failures: u32 = 0;
    loop {
        generation.borrow_and_update();
        connection.stream_refused.store(false, Ordering::Release);
        let outcome = tokio::select! {
            outcome = listen_once(&connection, &mut bookmark) => outcome,
            // A new session has a new stream.
            _ = generation.changed() => {
                bookmark = ResumePoint::default();
                continue;
            }
        };
        match outcome {
            StreamOutcome::Received => failures = 0,
            StreamOutcome::Failed => failures += 1,
            StreamOutcome::Rejected => {
                connection.stream_refused.store(true, Ordering::Release);
                bookmark = ResumePoint::default();
                if *connection.stream_opened.borrow() > 0 {
                    // It was open before, so the session may have expired.
                    connection.liveness.suspect();
                }
                if generation.changed().await.is_err() {
                    return;
                }
                continue;
            }
            StreamOutcome::Unsupported => {
                return connection.stream_refused.store(true, Ordering::Release);
            }
        }
        let pause = bookmark.retry.unwrap_or(PAUSE);
        let pause = pause.saturating_mul(1 << failures.min(6));
        tokio::time::sleep(pause.min(MAX_PAUSE)).await;
    }
}

impl Connection {
    /// Whether messages may arrive on the standalone stream during a request that is sent now.
    pub(super) fn may_have_stream(&self) -> bool {
        *self.stream_opened.borrow() > 0 || !self.stream_refused.load(Ordering::Acquire)
    }

    /// On a dedicated connection, waits until the stream of the session is open or refused.
    ///
    /// Without the stream, requests of the server are lost, and the calls that need their answers hang.
    pub(crate) async fn wait_for_stream(&self) {
        let session = self.session.load_full();
        if !self.is_dedicated || session.era == Era::Modern {
            return;
        }
        let mut listened = self.stream_generation.subscribe();
        let opened = listened.wait_for(|latest| *latest >= session.generation);
        // Some servers send the response head only with the first message.
        let _ = tokio::time::timeout(self.limits.probe.min(OPEN_TIMEOUT), opened).await;
    }
}

enum StreamOutcome {
    /// The stream lasted long, or had messages and can be resumed.
    Received,
    /// The stream ended soon, or could not be opened this time.
    Failed,
    /// Not in this session.
    Rejected,
    /// The server offers no such stream.
    Unsupported,
}

/// Opens the stream and reads it until it ends.
///
/// If the stream does not resume an earlier one, [`Event::ListMayHaveChanged`] is published for all lists: earlier
/// changes, since the first list was read or the last stream broke, were missed.
async fn listen_once(connection: &Arc<Connection>, bookmark: &mut ResumePoint) -> StreamOutcome {
    let session = connection.session.load_full();
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, STREAM);
    let last_id = bookmark.header();
    let is_resumed = last_id.is_some();
    if let Some(last_id) = last_id {
        headers.insert(LAST_EVENT_ID, last_id);
    }
    let response = connection.send(Method::GET, &session, &headers, Bytes::new());
    let response = response.await;
    connection
        .stream_generation
        .send_replace(session.generation);
    let Ok(response) = response else {
        connection.liveness.suspect();
        return StreamOutcome::Failed;
    };
    if let Some(refused) = rejection(&response, is_resumed) {
        if is_resumed && !is_transient(response.status()) {
            // The server may have dropped the event.
            bookmark.last_id = None;
        }
        return refused;
    }
    if !is_resumed {
        for kind in Kind::ALL {
            connection.publish(Event::ListMayHaveChanged(kind));
        }
        connection
            .stream_opened
            .send_modify(|hearings| *hearings += 1);
    }
    let began = Instant::now();
    let limit = connection.limits.message;
    let mut stream = Stream::new(response.into_body(), limit, bookmark.clone());
    let (told_something, end) = read_messages(connection, &session, &mut stream).await;
    *bookmark = stream.resume_point();
    if end.is_err() {
        // Resuming would deliver the same event again.
        bookmark.last_id = None;
    }
    // A stream that ends at once and cannot be resumed must not cause all lists to be read each time.
    if began.elapsed() >= MAX_PAUSE || (told_something && bookmark.last_id.is_some()) {
        StreamOutcome::Received
    } else {
        StreamOutcome::Failed
    }
}

/// The meaning of a response that opens no stream.
fn rejection(response: &Response<Incoming>, is_resumed: bool) -> Option<StreamOutcome> {
    match response.status() {
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
            Some(StreamOutcome::Unsupported)
        }
        status if status.is_client_error() && !is_transient(status) && !is_resumed => {
            Some(StreamOutcome::Rejected)
        }
        status if !status.is_success() => Some(StreamOutcome::Failed),
        _ if !is_stream(response.headers()) => Some(StreamOutcome::Unsupported),
        _ => None,
    }
}

/// Handles the messages of the stream; returns whether there were any, and how it ended.
async fn read_messages(
    connection: &Arc<Connection>,
    session: &Arc<Session>,
    stream: &mut Stream,
) -> (bool, Result<(), EventTooLarge>) {
    let mut told_something = false;
    loop {
        let messages = match stream.read().await {
            Ok(Read::Messages(messages)) => {
                connection.liveness.touch();
                messages
            }
            Ok(Read::End(_)) => return (told_something, Ok(())),
            Err(too_large) => return (told_something, Err(too_large)),
        };
        for data in messages {
            told_something = true;
            for message in server_message::messages(data) {
                receive(connection, session, &message);
            }
        }
    }
}

fn receive(connection: &Arc<Connection>, session: &Arc<Session>, message: &Bytes) {
    match ServerMessage::read(message) {
        Ok(ServerMessage::Request { id, method, params }) => {
            let asked = connection.on_server_request(session, (id, &*method, params), message);
            // Without a subscriber the request is dropped, which answers it with an error.
            if let Some(request) =
                asked.and_then(|request| connection.side_channels.deliver_request(request))
            {
                connection.publish(Event::ServerRequest(request));
            }
        }
        Ok(ServerMessage::Notification { method, params }) => {
            connection.server_requests.on_notification(&method, params);
            let is_taken = match (Kind::changed_by(&method), &*method) {
                (Some(kind), _) => {
                    connection.publish(Event::ListChanged(kind));
                    true
                }
                (None, "notifications/progress") => {
                    connection.side_channels.deliver_progress(params, message)
                }
                (None, "notifications/cancelled") => false,
                (None, method) => match Event::from_notification(method, params) {
                    Some(event) => {
                        connection.publish(event);
                        true
                    }
                    None => connection.deliver_to_sole_client(message),
                },
            };
            // On a pooled connection, a log message may be about an earlier request.
            let is_log = method == LOG_MESSAGE;
            let is_certain =
                !(is_log && connection.is_pooled) || connection.call_table.has_sole_client();
            let is_taken =
                is_taken || (is_certain && connection.side_channels.deliver_notification(message));
            if !is_taken && is_certain && connection.is_dedicated {
                connection.publish(Event::Notification(Bytes::copy_from_slice(message)));
            } else if !is_taken {
                if is_log {
                    connection.counters.increment(Counter::DroppedLogs);
                }
                let method = excerpt(method.as_bytes(), 60);
                tracing::debug!(server = %connection.server, method, "notification that belongs to no call dropped");
            }
        }
        Ok(ServerMessage::Response { .. } | ServerMessage::TooDeep { .. }) => {
            tracing::debug!(server = %connection.server, "answer outside its request dropped");
        }
        Err(why) => connection.skip(&why, message),
    }
}

const OPEN_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
