//! JSON-RPC batches, which only revision 2025-03-26 has.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use mcp_vary_base::memory_budget::Lease;
use mcp_vary_wire::envelope::{Message, WireError};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::{Reply, RpcError};
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::revision::Revision;
use tokio::sync::mpsc;

use super::recording::{ReceivedRequest, recorded};
use super::responses::{accepted, event_stream, json};
use super::session_header::{follow_claims, session_of};
use super::{admit, receive_client_message};
use crate::frontend::sse_body::{Body, Stream};
use crate::pipeline::clients::legacy_client;
use crate::pipeline::exchange::{InFlightRequest, ResponseEvent};
use crate::pipeline::methods::Dispatch;
use crate::pipeline::methods::forward_notification;
use crate::pipeline::request::IncomingRequest;
use crate::pipeline::router::dispatch;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::caller::Caller;
use crate::session::client::Client;
use crate::session::{InFlightGuard, Session};

/// Messages of a batch that wait to be sent. When the client reads slowly, the requests wait.
const BATCH_BUFFER: usize = 16;

/// Answers a batch over HTTP: an event for each message, the answers in the order of arrival.
///
/// > If the input contains any number of JSON-RPC requests, the server MUST either return
/// > `Content-Type: text/event-stream`, to initiate an SSE stream, or `Content-Type:
/// > application/json`. (MCP 2025-03-26, basic/transports)
pub(crate) async fn answer(
    gateway: Arc<ConfigSnapshot>,
    head: &Parts,
    caller: &Caller,
    messages: Result<Vec<&str>, WireError>,
    memory: Lease,
) -> Response<Body> {
    let messages = match readable(&gateway, messages) {
        Ok(messages) => messages,
        Err(failure) => return json(refused(&failure)),
    };
    let session = match session_of(&gateway, head, caller) {
        Ok(session) => session,
        Err(failure) => return json(failure.reply(None, Era::Legacy)),
    };
    follow_claims(&gateway, &session, caller).await;
    match open_batch(&session, messages) {
        Err(failure) => json(refused(&failure)),
        Ok(messages) => {
            let mut answers = run(&gateway, &session, caller, &messages, memory);
            drop(gateway);
            match answers.recv().await {
                None => accepted(),
                Some(first) => event_stream(Body::Stream(Stream::of_channel(answers, &first))),
            }
        }
    }
}

fn refused(failure: &RpcError) -> Reply {
    Reply {
        status: StatusCode::BAD_REQUEST,
        ..failure.reply(None, Era::Legacy)
    }
}

/// The messages of a batch, if it is one and no larger than what a client may have in flight.
pub(crate) fn readable<'a>(
    gateway: &ConfigSnapshot,
    messages: Result<Vec<&'a str>, WireError>,
) -> Result<Vec<&'a str>, RpcError> {
    let messages = messages.map_err(|why| RpcError::from(&why))?;
    let limit = gateway.config.limits.in_flight;
    if messages.len() > limit {
        let why = format!("the batch has more than {limit} messages; send several");
        return Err(RpcError::invalid_request(why));
    }
    Ok(messages)
}

/// The messages of a batch, if this session may send one.
pub(crate) fn open_batch<'a>(
    session: &Session,
    messages: Vec<&'a str>,
) -> Result<Vec<&'a str>, RpcError> {
    if session.negotiated.revision == Revision::V2025_03_26 {
        return Ok(messages);
    }
    let why = "batches exist in revision 2025-03-26 only; send the messages one by one";
    Err(RpcError::invalid_request(why))
}

/// Starts every message of a batch. Their messages arrive in the channel, which closes after the last.
pub(crate) fn run(
    gateway: &Arc<ConfigSnapshot>,
    session: &Arc<Session>,
    caller: &Caller,
    messages: &[&str],
    memory: Lease,
) -> mpsc::Receiver<Bytes> {
    let (sender, answers) = mpsc::channel(BATCH_BUFFER);
    let memory = Arc::new(memory);
    for message in messages {
        let work = one(
            Arc::clone(gateway),
            Arc::clone(session),
            caller.clone(),
            (*message).to_owned(),
            sender.clone(),
        );
        let memory = Arc::clone(&memory);
        gateway.services.background_tasks.spawn(async move {
            work.await;
            drop(memory);
        });
    }
    answers
}

async fn one(
    gateway: Arc<ConfigSnapshot>,
    session: Arc<Session>,
    caller: Caller,
    text: String,
    answers: mpsc::Sender<Bytes>,
) {
    let last = match Message::read(text.as_bytes()) {
        Ok(message) => {
            let message = (&message, text.len());
            request(gateway, &session, &caller, message, &answers).await
        }
        Err(why) => Some(RpcError::from(&why).to_bytes(why.id.as_deref())),
    };
    if let Some(last) = last {
        let _ = answers.send(last).await;
    }
}

/// Registers a request of a batch in its session, and finds its client.
fn admitted(
    gateway: &ConfigSnapshot,
    session: &Arc<Session>,
    caller: &Caller,
    (method, id): (&str, &str),
    params: &Params<'_>,
) -> Result<(InFlightGuard, Client), Reply> {
    // The status was sent with the first answer of the batch.
    if let Some(record) = &caller.record {
        record.status_sent();
    }
    if method == "initialize" {
        let failure = RpcError::invalid_request("`initialize` must not be part of a batch");
        return Err(failure.reply(Some(id), Era::Legacy));
    }
    let place = admit(gateway, session, id)?;
    let client = legacy_client(gateway, session, caller, params)
        .map_err(|failure| failure.reply(Some(id), Era::Legacy))?;
    Ok((place, client))
}

/// Runs one request and sends its notifications; returns its answer, if it gets one.
async fn request(
    gateway: Arc<ConfigSnapshot>,
    session: &Arc<Session>,
    caller: &Caller,
    (message, length): (&Message<'_>, usize),
    answers: &mpsc::Sender<Bytes>,
) -> Option<Bytes> {
    let params = match Params::read(message.params) {
        Ok(params) => params,
        Err(refusal) => {
            let failure = refusal.into_counted_error(&gateway.services.counters);
            return message.id.map(|id| failure.to_bytes(Some(id)));
        }
    };
    let (Some(method), Some(id)) = (message.method.as_deref(), message.id) else {
        unanswered(&gateway, session, caller, message, params).await;
        return None;
    };
    let received = ReceivedRequest {
        era: Era::Legacy,
        message,
        params: &params,
        bytes: None,
        length,
    };
    let caller = match recorded(&gateway, caller, &received).await {
        Ok(caller) => caller,
        Err(reply) => return Some(reply.body),
    };
    let (place, client) = match admitted(&gateway, session, &caller, (method, id), &params) {
        Ok(admitted) => admitted,
        Err(reply) => {
            if let Some(record) = &caller.record {
                record.finish(&reply);
            }
            return Some(reply.body);
        }
    };
    let asked = IncomingRequest {
        id,
        method,
        params,
        headers: None,
        message: None,
    };
    let outcome = dispatch(&gateway, &client, asked).await;
    drop(gateway);
    let mut running = match outcome {
        Dispatch::Done(reply) => return Some(reply.body),
        Dispatch::InFlight(running) => running,
        // The revision with batches has no method that is answered so.
        Dispatch::Listen(_) => return None,
    };
    running.hold_guard(place);
    run_to_end(running, answers).await
}

/// Receives a notification or a response. It has no answer, so an error in it is only logged.
async fn unanswered(
    gateway: &Arc<ConfigSnapshot>,
    session: &Arc<Session>,
    caller: &Caller,
    message: &Message<'_>,
    params: Params<'_>,
) {
    let _ = receive_client_message(gateway, session, message, &params);
    if let Some(method) = message.method.as_deref()
        && let Ok(client) = legacy_client(gateway, session, caller, &params)
    {
        forward_notification(gateway, &client, method, params).await;
    }
}

/// Sends the notifications of a request in flight; returns its answer, if it gets one.
async fn run_to_end(
    mut running: Box<InFlightRequest>,
    answers: &mpsc::Sender<Bytes>,
) -> Option<Bytes> {
    loop {
        let step = tokio::select! {
            biased;
            // It runs on, like any request whose client is gone.
            () = answers.closed() => return None,
            step = running.next() => step,
        };
        match step {
            ResponseEvent::Done(reply) => return Some(reply.body),
            ResponseEvent::Message(message) => drop(answers.send(message).await),
            ResponseEvent::Cancelled => return None,
        }
    }
}
