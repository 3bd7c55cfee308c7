//! A request that the server works on: its notifications, then its answer, as the client gets them.

mod again;
mod asking;
mod failure;
mod finish;
mod notification;
mod unheard;

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

pub(crate) use self::again::Again;
use self::asking::over;
pub(crate) use self::finish::{Finish, Progress};
pub(crate) use self::unheard::UNHEARD;
use crate::class::InUse;
use crate::client::Client;
use crate::lasting::Lasting;
use crate::own::Held;
use crate::questions::Question;
use crate::reply::{Failure, Reply};
use crate::rounds::Relay;
use crate::session::Place;
use crate::upstream::{Exchange, Message, ServerRequest};

/// A request that was forwarded and is not answered yet.
#[derive(Debug)]
pub(crate) struct Running {
    exchange: Option<Exchange>,
    /// Its place among the calls that the server may have at once.
    turn: Option<OwnedSemaphorePermit>,
    /// What it takes to send it once more, where that does no harm and nothing was passed on yet.
    again: Option<Again>,
    finish: Finish,
    /// What the server asks of the client and waits for.
    questions: Vec<Question>,
    /// What it takes to ask a legacy client what a modern server asks in a result.
    relay: Option<Relay>,
    /// What the server asked of a modern client when it went on, and how many questions of it were told so far.
    asked: Vec<(String, ServerRequest)>,
    keys: usize,
    /// The connection that the client has alone; given back after the exchange has ended.
    alone: Option<Held>,
    /// Keeps the connection open for as long as the server works.
    class: Option<InUse>,
    /// The place in the client's session, by which the client can cancel; none for modern HTTP.
    place: Option<Place>,
    lasting: Arc<Lasting>,
}

/// What the client gets next.
#[derive(Debug)]
pub(crate) enum Step {
    /// A whole message that is not the answer: a notification, or a request to the client.
    Message(Bytes),
    /// The response; nothing follows.
    Done(Reply),
    /// The client cancelled; there is no response.
    Cancelled,
}

impl Running {
    pub(crate) fn new(
        lasting: Arc<Lasting>,
        exchange: Exchange,
        turn: OwnedSemaphorePermit,
        finish: Finish,
    ) -> Self {
        Self {
            exchange: Some(exchange),
            turn: Some(turn),
            again: None,
            questions: Vec::new(),
            relay: None,
            asked: Vec::new(),
            keys: 0,
            alone: None,
            class: None,
            finish,
            place: None,
            lasting,
        }
    }

    /// Keeps the class of the client open until the request has ended.
    pub(crate) fn keep_open(&mut self, class: InUse) {
        self.class = Some(class);
    }

    /// Keeps the connection that the client has alone until the request has ended.
    pub(crate) fn have_alone(&mut self, alone: Option<Held>) {
        self.alone = alone;
    }

    /// Keeps the request's place in its session until it has ended.
    pub(crate) fn hold(&mut self, place: Place) {
        self.place = Some(place);
    }

    /// The next notification, or the answer. Safe to drop while it waits.
    pub(crate) async fn next(&mut self) -> Step {
        // What the client has not answered is asked again.
        if !self.asked.is_empty() {
            return self.wait_for_the_client();
        }
        loop {
            let Some(exchange) = &mut self.exchange else {
                let step = match &self.relay {
                    Some(relay) if relay.is_asking() => self.next_of_round().await,
                    _ => self.sent_again().await,
                };
                match step {
                    Some(step) => return step,
                    None => continue,
                }
            };
            let message = tokio::select! {
                biased;
                () = withdrawn(self.place.as_ref()) => {
                    self.cancel();
                    return self.finish.withdrawn();
                }
                at = over(&self.questions), if !self.questions.is_empty() => {
                    match self.questions.swap_remove(at).give_up() {
                        Some(withdrawal) => return Step::Message(withdrawal),
                        None => continue,
                    }
                }
                message = exchange.next() => message,
            };
            match message {
                Ok(Message::Notification(bytes)) => {
                    if let Some(passed) = self.finish.notification(bytes) {
                        self.again = None;
                        return Step::Message(passed);
                    }
                }
                Ok(Message::Request(request)) => {
                    if let Some(step) = self.asks(request) {
                        self.again = None;
                        return step;
                    }
                }
                Ok(Message::Answer(answer)) => match self.asks_in_result(answer.outcome()) {
                    None => return self.done(answer.outcome()),
                    Some(Ok(())) => {}
                    Some(Err(failure)) => {
                        self.end();
                        return Step::Done(self.finish.failed(&failure));
                    }
                },
                Err(error)
                    if self
                        .again
                        .as_ref()
                        .is_some_and(|again| again.follows(&error)) =>
                {
                    self.exchange = None;
                }
                Err(error) => {
                    self.end();
                    return Step::Done(self.finish.failed(&Failure::from(error)));
                }
            }
        }
    }

    fn done(&mut self, outcome: Result<&str, &str>) -> Step {
        if let Some(alone) = &self.alone {
            alone.settle();
        }
        self.leave_questions();
        self.end();
        Step::Done(match outcome {
            Ok(result) => {
                if let Some((server, origin)) = &self.finish.links_of {
                    self.lasting.links.note(server, origin, result);
                }
                self.finish.result(result, &self.lasting)
            }
            Err(error) => self.finish.error(error, &self.lasting),
        })
    }

    /// The server is done with the request, however long the client takes to read the answer.
    fn end(&mut self) {
        self.exchange = None;
        self.again = None;
        self.relay = None;
        self.turn = None;
        self.questions.clear();
        self.alone = None;
    }

    fn cancel(&mut self) {
        self.give_up("cancelled by the client");
    }

    /// Ends the request without an answer, and tells the server why.
    pub(crate) fn give_up(&mut self, why: &str) {
        // A process does not say which call a question is about: it may be another one.
        if self.alone.as_ref().is_some_and(Held::has_others) {
            self.leave_questions();
        }
        if let Some(exchange) = self.exchange.take() {
            exchange.cancel(Some(why));
        }
        self.end();
    }

    /// The client that asked.
    pub(crate) fn client(&self) -> &Client {
        &self.finish.client
    }

    /// The client's id of the request, JSON text.
    pub(crate) fn id(&self) -> &str {
        &self.finish.id
    }

    pub(crate) fn lasting(&self) -> &Arc<Lasting> {
        &self.lasting
    }
}

/// Waits until the client cancels the request or ends its session.
async fn withdrawn(place: Option<&Place>) {
    match place {
        Some(place) => place.withdrawn().await,
        None => std::future::pending().await,
    }
}
