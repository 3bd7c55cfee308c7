//! The standalone stream of a legacy server, for messages that belong to no request.
//!
//! Source: MCP 2025-11-25, basic/transports, "Listening for Messages from the Server".

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{Method, Response, StatusCode};
use mcp_vary_http_client::body::Incoming;
use mcp_vary_wire::server_message::{self, ServerMessage};
use mcp_vary_wire::sse::EventTooLarge;
use tokio::time::Instant;

use super::headers::{LAST_EVENT_ID, STREAM, is_stream};
use super::session::Session;
use super::shared::Shared;
use super::stream::{Read, ResumePoint, Stream};
use crate::error::is_transient;
use crate::message::Answer;

/// Reads the standalone stream until the server rejects it.
pub(super) async fn read_standalone_stream(shared: Arc<Shared>) {
    // In the transport of 2024-11-05, the stream of the session is the only one.
    if shared.session.load().stream.is_some() {
        return;
    }
    let mut generation = shared.session.generation();
    let mut resume_point = ResumePoint::default();
    let mut failures: u32 = 0;
    loop {
        generation.borrow_and_update();
        shared.stream.set_refused(false);
        let outcome = tokio::select! {
            outcome = read_once(&shared, &mut resume_point) => outcome,
            // A new session has a new stream.
            _ = generation.changed() => {
                resume_point = ResumePoint::default();
                continue;
            }
        };
        match outcome {
            StreamOutcome::Received => failures = 0,
            StreamOutcome::Failed => failures += 1,
            StreamOutcome::Unsupported if !shared.stream.was_open() => {
                return shared.stream.set_refused(true);
            }
            StreamOutcome::Rejected | StreamOutcome::Unsupported => {
                shared.stream.set_refused(true);
                resume_point = ResumePoint::default();
                if shared.stream.was_open() {
                    // The session may be lost.
                    shared.endpoint.liveness.suspect();
                }
                if generation.changed().await.is_err() {
                    return;
                }
                continue;
            }
        }
        let first = resume_point.retry.unwrap_or(PAUSE);
        let pause = first.saturating_mul(1 << failures.min(6));
        tokio::time::sleep(pause.min(MAX_PAUSE)).await;
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
///
/// [`Event::ListMayHaveChanged`]: crate::message::Event::ListMayHaveChanged
async fn read_once(shared: &Arc<Shared>, resume_point: &mut ResumePoint) -> StreamOutcome {
    let endpoint = &shared.endpoint;
    let session = shared.session.load();
    let mut headers = vec![(ACCEPT, STREAM)];
    let last_id = resume_point.header();
    let is_resumed = last_id.is_some();
    if let Some(last_id) = last_id {
        headers.push((LAST_EVENT_ID, last_id));
    }
    let sending = endpoint.send(Method::GET, &session, &headers, Bytes::new());
    let sent = sending.await;
    shared.stream.record_answer(session.generation);
    let Ok(response) = sent else {
        endpoint.liveness.suspect();
        return StreamOutcome::Failed;
    };
    if let Some(refused) = rejection(&response, is_resumed) {
        if is_resumed && !is_transient(response.status()) {
            // The server may have dropped the event.
            resume_point.last_id = None;
        }
        return refused;
    }
    if !is_resumed {
        shared.inbound.publish_possible_changes();
        shared.stream.record_opening();
    }
    let began = Instant::now();
    let limit = endpoint.limits.message;
    let mut stream = Stream::new(response.into_body(), limit, resume_point.clone());
    let (had_messages, end) = read_messages(shared, &session, &mut stream).await;
    *resume_point = stream.resume_point();
    if end.is_err() {
        // Resuming would deliver the same event again.
        resume_point.last_id = None;
    }
    // A stream that ends at once and cannot be resumed must not cause all lists to be read each time.
    if began.elapsed() >= MAX_PAUSE || (had_messages && resume_point.last_id.is_some()) {
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
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    stream: &mut Stream,
) -> (bool, Result<(), EventTooLarge>) {
    let mut had_messages = false;
    loop {
        let messages = match stream.read().await {
            Ok(Read::Messages(messages)) => {
                shared.endpoint.liveness.touch();
                messages
            }
            Ok(Read::End(_)) => return (had_messages, Ok(())),
            Err(too_large) => return (had_messages, Err(too_large)),
        };
        for data in messages {
            had_messages = true;
            for message in server_message::messages(data) {
                receive(shared, session, &message);
            }
        }
    }
}

/// Handles a message that is not in the response to a request.
pub(super) fn receive(shared: &Arc<Shared>, session: &Arc<Session>, message: &Bytes) {
    let server = &shared.endpoint.server;
    match ServerMessage::read(message) {
        Ok(ServerMessage::Request { id, method, params }) => {
            let request = shared.accept_request(session, id, &method, params, message);
            if let Some(request) = request {
                shared.inbound.deliver_request(request);
            }
        }
        Ok(ServerMessage::Notification {
            method,
            params,
            is_strict,
        }) => {
            let message = server_message::strict(message, is_strict, &method, params);
            let inbound = &shared.inbound;
            inbound.deliver_notification(server, &method, params, &message);
        }
        Ok(ServerMessage::Response { id, outcome, .. }) => {
            let answer = Answer::new(message.clone(), outcome);
            deliver_answer(server, session, id, answer);
        }
        Ok(ServerMessage::TooDeep { id }) => {
            deliver_answer(server, session, Some(id), Answer::too_deep(server, id));
        }
        Err(why) => shared.endpoint.diagnostics.event_skipped(&why, message),
    }
}

/// Delivers an answer on the stream of the transport of 2024-11-05; elsewhere there is none.
fn deliver_answer(server: &Arc<str>, session: &Session, id: Option<u64>, answer: Answer) {
    let stream = session.stream.as_ref().zip(id);
    if !stream.is_some_and(|(stream, id)| stream.deliver(id, answer)) {
        tracing::debug!(server = %server, ?id, "answer outside its request dropped");
    }
}

const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
