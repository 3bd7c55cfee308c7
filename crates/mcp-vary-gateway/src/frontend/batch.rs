//! JSON-RPC batches, which only revision 2025-03-26 has.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use mcp_vary_base::memory_budget::Lease;
use mcp_vary_wire::envelope::{Message, WireError};
use mcp_vary_wire::response::{Reply, RpcError};
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::revision::Revision;
use tokio::sync::mpsc;

use super::responses::{accepted, event_stream, json};
use crate::frontend::sse_body::{Body, Stream};
use crate::pipeline::exchange::{InFlightRequest, ResponseEvent};
use crate::pipeline::inbound::{
    Inbound, MessageSource, Outcome, follow_claims, handle, session_of,
};
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::Session;
use crate::session::caller::Caller;

/// Messages of a batch that wait to be sent. When the client reads slowly, the requests wait.
const BATCH_BUFFER: usize = 16;

/// Answers a batch over HTTP: an event for each message, the answers in the order of arrival.
///
/// > If the input contains any number of JSON-RPC requests, the server MUST either return
/// > `Content-Type: text/event-stream`, to initiate an SSE stream, or `Content-Type:
/// > application/json`. (MCP 2025-03-26, basic/transports)
pub(crate) async fn answer(
    snapshot: Arc<ConfigSnapshot>,
    head: &Parts,
    caller: &Caller,
    messages: Result<Vec<&str>, WireError>,
    memory: Lease,
) -> Response<Body> {
    let messages = match readable(&snapshot, messages) {
        Ok(messages) => messages,
        Err(failure) => return json(refused(&failure)),
    };
    let session = match session_of(&snapshot, &head.headers, caller) {
        Ok(session) => session,
        Err(failure) => return json(failure.reply(None, Era::Legacy)),
    };
    follow_claims(&snapshot, &session, caller).await;
    match open_batch(&session, messages) {
        Err(failure) => json(refused(&failure)),
        Ok(messages) => {
            let mut answers = run(&snapshot, &session, caller, &messages, memory);
            drop(snapshot);
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
    snapshot: &ConfigSnapshot,
    messages: Result<Vec<&'a str>, WireError>,
) -> Result<Vec<&'a str>, RpcError> {
    let messages = messages.map_err(|why| RpcError::from(&why))?;
    let limit = snapshot.config.limits.in_flight;
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
    snapshot: &Arc<ConfigSnapshot>,
    session: &Arc<Session>,
    caller: &Caller,
    messages: &[&str],
    memory: Lease,
) -> mpsc::Receiver<Bytes> {
    let (sender, answers) = mpsc::channel(BATCH_BUFFER);
    let memory = Arc::new(memory);
    for message in messages {
        let work = handle_element(
            Arc::clone(snapshot),
            Arc::clone(session),
            caller.clone(),
            (*message).to_owned(),
            sender.clone(),
        );
        let memory = Arc::clone(&memory);
        snapshot.services.background_tasks.spawn(async move {
            work.await;
            drop(memory);
        });
    }
    answers
}

/// Handles one message of a batch, and sends what the client gets.
async fn handle_element(
    snapshot: Arc<ConfigSnapshot>,
    session: Arc<Session>,
    mut caller: Caller,
    text: String,
    answers: mpsc::Sender<Bytes>,
) {
    let message = match Message::read(text.as_bytes()) {
        Ok(message) => message,
        Err(why) => {
            let failure = RpcError::from(&why).to_bytes(why.id.as_deref());
            return drop(answers.send(failure).await);
        }
    };
    let inbound = Inbound {
        message: &message,
        params: None,
        body: None,
        length: text.len(),
        caller: &mut caller,
        source: MessageSource::Batch(&session),
    };
    let outcome = handle(&snapshot, inbound).await;
    drop(snapshot);
    let answer = match outcome {
        Outcome::Refused(reply) | Outcome::Answered { reply, .. } => Some(reply.body),
        Outcome::InFlight(running) => run_to_end(running, &answers).await,
        Outcome::Accepted | Outcome::NotAccepted(_) => None,
        // A batch opens no session, and the revision with batches has no method with a stream.
        Outcome::SessionOpened(_) | Outcome::Listening(..) => None,
    };
    if let Some(answer) = answer {
        let _ = answers.send(answer).await;
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
            // The request runs on, like any request whose client is gone.
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
