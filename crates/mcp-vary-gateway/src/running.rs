//! A request that the server works on: its notifications, then its answer, as the client gets them.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use mcp_vary::variant::VariantId;
use tracing::debug;

use crate::bridge::{self, Caching};
use crate::client::{Client, level_from_name};
use crate::gateway::Gateway;
use crate::reply::{self, Failure, INVALID_PARAMS, RESOURCE_NOT_FOUND, Reply};
use crate::revision::Era;
use crate::session::Place;
use crate::shape::Shaping;
use crate::splice;
use crate::upstream::{Exchange, Message};
use crate::wire;

/// A request that was forwarded and is not answered yet.
#[derive(Debug)]
pub(crate) struct Running {
    exchange: Option<Exchange>,
    finish: Finish,
    /// The place in the client's session, by which the client can cancel; none for modern HTTP.
    place: Option<Place>,
    gateway: Arc<Gateway>,
}

/// What the client gets next.
#[derive(Debug)]
pub(crate) enum Step {
    /// A whole notification message.
    Notification(Bytes),
    /// The response; nothing follows.
    Done(Reply),
    /// The client cancelled; there is no response.
    Cancelled,
}

/// What is needed to turn the server's answer into the client's.
#[derive(Debug)]
pub(crate) struct Finish {
    pub(crate) id: String,
    pub(crate) client: Client,
    pub(crate) caching: Caching,
    pub(crate) shaping: Option<Shaping>,
    /// The variant that the request ran under; `None` when variants are off.
    pub(crate) active_variant: Option<VariantId>,
    /// Errors that mean that something was not found, to which the variant is added (SV-12).
    pub(crate) names_something: bool,
    /// Whether a resource is read from a modern server.
    pub(crate) reads_modern: bool,
    pub(crate) progress: Option<Progress>,
}

/// The progress token towards the server, and the client's own.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    pub(crate) ours: String,
    pub(crate) theirs: String,
}

impl Running {
    pub(crate) fn new(gateway: Arc<Gateway>, exchange: Exchange, finish: Finish) -> Self {
        Self {
            exchange: Some(exchange),
            finish,
            place: None,
            gateway,
        }
    }

    /// Keeps the request's place in its session until it has ended.
    pub(crate) fn hold(&mut self, place: Place) {
        self.place = Some(place);
    }

    /// The next notification, or the answer. Safe to drop while it waits.
    pub(crate) async fn next(&mut self) -> Step {
        loop {
            let Some(exchange) = &mut self.exchange else {
                return Step::Cancelled;
            };
            let message = tokio::select! {
                biased;
                message = exchange.next() => message,
                () = withdrawn(self.place.as_ref()) => {
                    self.cancel();
                    return self.finish.withdrawn();
                }
            };
            match message {
                Ok(Message::Notification(bytes)) => {
                    if let Some(passed) = self.finish.notification(bytes) {
                        return Step::Notification(passed);
                    }
                }
                Ok(Message::Answer(answer)) => return self.done(answer.outcome()),
                Err(error) => {
                    self.exchange = None;
                    return Step::Done(self.finish.failed(&Failure::from(error)));
                }
            }
        }
    }

    fn done(&mut self, outcome: Result<&str, &str>) -> Step {
        self.exchange = None;
        Step::Done(match outcome {
            Ok(result) => self.finish.result(result),
            Err(error) => self.finish.error(error),
        })
    }

    fn cancel(&mut self) {
        if let Some(exchange) = self.exchange.take() {
            exchange.cancel(Some("cancelled by the client"));
        }
    }
}

/// A legacy client that is gone has not cancelled: its request runs on, unheard, and can still be
/// cancelled.
///
/// > Disconnection SHOULD NOT be interpreted as the client cancelling its request.
/// > (MCP 2025-11-25, basic/transports, "Sending Messages to the Server")
///
/// A modern one has; dropping the exchange says so upstream.
impl Drop for Running {
    fn drop(&mut self) {
        if self.finish.client.era() == Era::Modern {
            return;
        }
        if let Some(exchange) = self.exchange.take() {
            let unheard = run_unheard(exchange, self.place.take());
            self.gateway.tasks.spawn(unheard);
        }
    }
}

async fn run_unheard(mut exchange: Exchange, place: Option<Place>) {
    let ended = async { while let Ok(Message::Notification(_)) = exchange.next().await {} };
    tokio::select! {
        () = ended => debug!("a request whose client is gone has ended"),
        () = withdrawn(place.as_ref()) => exchange.cancel(Some("cancelled by the client")),
    }
}

/// Waits until the client cancels the request or ends its session.
async fn withdrawn(place: Option<&Place>) {
    match place {
        Some(place) => place.withdrawn().await,
        None => std::future::pending().await,
    }
}

impl Finish {
    fn failed(&self, failure: &Failure) -> Reply {
        failure.reply(Some(&self.id), self.client.era())
    }

    /// What is said to a request that ends without the server's answer.
    fn withdrawn(&self) -> Step {
        let session = self.client.session.as_ref();
        match session.is_some_and(|session| session.ended.is_cancelled()) {
            true => Step::Done(self.failed(&Failure::session_not_found())),
            false => Step::Cancelled,
        }
    }

    fn result(&self, result: &str) -> Reply {
        if !result.starts_with('{') {
            return self.failed(&Failure::internal("the server's result is no object"));
        }
        if asks_for_input(result) {
            return self.failed(&Failure::internal(
                "the server asks for input from the client, which this gateway does not carry yet",
            ));
        }
        let shaped = match &self.shaping {
            Some(shaping) => shaping.apply(result),
            None => Cow::Borrowed(result),
        };
        let readable = match self.client.era() {
            Era::Legacy => bridge::without_foreign_structure(&shaped),
            Era::Modern => Cow::Borrowed(shaped.as_ref()),
        };
        let sent = bridge::result_downward(&readable, self.client.era(), self.caching);
        reply::result(&self.id, sent.as_bytes())
    }

    fn error(&self, error: &str) -> Reply {
        let mut failure = Failure::told_by_upstream(error);
        let not_found = failure.code() == RESOURCE_NOT_FOUND
            || (self.names_something && failure.code() == INVALID_PARAMS);
        if let (true, Some(variant)) = (not_found, &self.active_variant) {
            let data = mcp_vary::error::with_active_variant(failure.data(), variant);
            failure = failure.with_data(data);
        }
        match (failure.code(), self.client.era()) {
            // 2026-07-28: implementations MUST NOT emit -32002.
            (RESOURCE_NOT_FOUND, Era::Modern) => failure.set_code(INVALID_PARAMS),
            // What a modern server says of a resource that does not exist; `uri` is a string already.
            (INVALID_PARAMS, Era::Legacy) if self.reads_modern => {
                failure.set_code(RESOURCE_NOT_FOUND);
            }
            _ => {}
        }
        self.failed(&failure)
    }

    /// The notification as the client gets it; `None` when it is not for this client.
    fn notification(&self, bytes: Bytes) -> Option<Bytes> {
        let message = wire::Message::read(&bytes).ok()?;
        let params = message.params.unwrap_or("{}");
        match message.method.as_deref()? {
            "notifications/progress" => self.progress(params),
            "notifications/message" => self.wants_logged(params).then_some(bytes),
            // Changes reach the catalogue by another way.
            method if method.ends_with("list_changed") => None,
            "notifications/resources/updated" | "notifications/cancelled" => None,
            _ => Some(bytes),
        }
    }

    fn progress(&self, params: &str) -> Option<Bytes> {
        let progress = self.progress.as_ref()?;
        let is_ours = splice::get(params, bridge::PROGRESS_TOKEN)? == progress.ours;
        is_ours.then(|| Bytes::from(bridge::progress_downward(params, &progress.theirs)))
    }

    /// A legacy client that never set a level gets what the server sends; a modern one only what it
    /// asked for with this request.
    fn wants_logged(&self, params: &str) -> bool {
        let level = splice::get(params, "level")
            .and_then(|level| serde_json::from_str::<String>(level).ok())
            .and_then(|name| level_from_name(&name));
        let wanted = match &self.client.session {
            Some(session) => session.log_level(),
            None => self.client.log_level,
        };
        match (level, wanted, self.client.era()) {
            (Some(level), Some(wanted), _) => level >= wanted,
            (_, _, Era::Legacy) => true,
            (_, _, Era::Modern) => false,
        }
    }
}

/// Whether a result is no result yet (MCP 2026-07-28, basic/patterns/mrtr).
fn asks_for_input(result: &str) -> bool {
    let kind = splice::get(result, "resultType").and_then(|kind| serde_json::from_str(kind).ok());
    kind.is_some_and(|kind: String| kind == "input_required")
}
