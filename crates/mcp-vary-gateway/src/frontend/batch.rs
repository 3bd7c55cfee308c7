//! JSON-RPC batches, which only revision 2025-03-26 has.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use mcp_vary_base::memory_budget::Lease;
use mcp_vary_wire::envelope::{Message, WireError, slice_of};
use mcp_vary_wire::response::{Reply, RpcError};
use mcp_vary_wire::revision::{Era, Revision};
use tokio::sync::mpsc;

use super::forwarding;
use super::responses::{Body, Stream, accepted, event_stream, json};
use crate::pipeline::exchange::{InFlightRequest, ResponseEvent};
use crate::pipeline::inbound::{Inbound, MessageSource, Outcome, Sender, bad_request, handle};
use crate::pipeline::methods::Dispatch;
use crate::pipeline::snapshot::ConfigSnapshot;
use mcp_vary_session::caller::Caller;

/// Messages of a batch that wait to be sent. When the client reads slowly, the requests wait.
const BATCH_BUFFER: usize = 16;

/// Answers a batch over HTTP: an event for each message, the answers in the order of arrival.
///
/// > If the input contains any number of JSON-RPC requests, the server MUST either return
/// > `Content-Type: text/event-stream`, to initiate an SSE stream, or `Content-Type:
/// > application/json`. (MCP 2025-03-26, basic/transports)
pub(super) async fn answer(
    snapshot: Arc<ConfigSnapshot>,
    head: &Parts,
    caller: &mut Caller,
    batch: Batch<'_>,
) -> Response<Body> {
    if let Some(store) = snapshot.services.store.as_deref()
        && let Some(response) =
            forwarding::answer_elsewhere(store, &snapshot, head, caller, batch.body, None).await
    {
        return response;
    }
    let sender = Sender {
        snapshot: &snapshot,
        caller,
        source: MessageSource::Post(&head.headers),
    };
    let started = batch.start(sender).await;
    drop(snapshot);
    match started {
        Err(reply) => json(reply),
        Ok(mut answers) => match answers.recv().await {
            None => accepted(),
            Some(first) => event_stream(Body::Stream(Stream::of_channel(answers, &first))),
        },
    }
}

/// The messages of a batch, as a frontend read them.
pub(super) struct Batch<'a> {
    /// The whole batch.
    pub(super) body: &'a Bytes,
    pub(super) messages: Result<Vec<&'a str>, WireError>,
    /// The memory of the batch.
    pub(super) memory: Lease,
}

impl Batch<'_> {
    /// Starts every message of a batch. Their messages arrive in the channel, which closes after the last.
    ///
    /// # Errors
    ///
    /// When it is not a batch, has more messages than a client may have in flight, or its session may not send one.
    pub(super) async fn start(
        self,
        mut sender: Sender<'_, '_>,
    ) -> Result<mpsc::Receiver<Bytes>, Reply> {
        let snapshot = sender.snapshot;
        let messages = self.messages;
        let messages =
            messages.map_err(|why| bad_request(&RpcError::from(&why), None, Era::Legacy))?;
        let limit = snapshot.config.limits.in_flight;
        if messages.len() > limit {
            let why = format!("the batch has more than {limit} messages; send several");
            return Err(refused(why));
        }
        let current = sender.current_session().await;
        let known = current.map_err(|failure| failure.reply(None, Era::Legacy))?;
        let session = known.ok_or_else(|| {
            refused("send `initialize` first; batches exist in revision 2025-03-26 only")
        })?;
        if session.negotiated.revision != Revision::V2025_03_26 {
            let why = "batches exist in revision 2025-03-26 only; send the messages one by one";
            return Err(refused(why));
        }
        sender.caller.session = Some(session);
        let (answer_sender, answers) = mpsc::channel(BATCH_BUFFER);
        let memory = Arc::new(self.memory);
        for message in messages {
            let element = Element {
                snapshot: Arc::clone(snapshot),
                caller: sender.caller.clone(),
                body: slice_of(self.body, message).unwrap_or_default(),
                answers: answer_sender.clone(),
                _memory: Arc::clone(&memory),
            };
            snapshot.services.background_tasks.spawn(element.handle());
        }
        Ok(answers)
    }
}

fn refused(why: impl Into<String>) -> Reply {
    bad_request(&RpcError::invalid_request(why), None, Era::Legacy)
}

/// One message of a batch.
struct Element {
    snapshot: Arc<ConfigSnapshot>,
    caller: Caller,
    body: Bytes,
    answers: mpsc::Sender<Bytes>,
    _memory: Arc<Lease>,
}

impl Element {
    /// Handles the message, and sends what the client gets.
    async fn handle(mut self) {
        let message = match Message::read(&self.body) {
            Ok(message) => message,
            Err(why) => {
                let failure = RpcError::from(&why).to_bytes(why.id.as_deref());
                return drop(self.answers.send(failure).await);
            }
        };
        let handling = handle(Inbound {
            message: &message,
            params: None,
            body: &self.body,
            sender: Sender {
                snapshot: &self.snapshot,
                caller: &mut self.caller,
                source: MessageSource::Batch,
            },
        });
        let outcome = handling.await;
        drop(self.snapshot);
        let answer = match outcome {
            Outcome::Refused(reply) if message.is_request() => Some(reply.body),
            Outcome::Dispatched(Dispatch::Done(reply), _) => Some(reply.body),
            Outcome::Dispatched(Dispatch::InFlight(running), _) => {
                run_to_end(running, &self.answers).await
            }
            // A batch opens no session, and the revision with batches has no method with a stream.
            _ => None,
        };
        if let Some(answer) = answer {
            let _ = self.answers.send(answer).await;
        }
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
            ResponseEvent::Done(reply) => return Some(reply.into_body()),
            ResponseEvent::Message(message) => drop(answers.send(message).await),
            ResponseEvent::Cancelled => return None,
        }
    }
}
