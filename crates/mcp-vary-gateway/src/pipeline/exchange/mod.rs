//! A request that the server works on: its notifications, then its answer, as the client gets them.

mod failure;
mod implicit_task;
mod notification;
mod orphaned;
pub(crate) mod pump;
mod response;
mod retry;
mod server_requests;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

pub(crate) use crate::pipeline::exchange::implicit_task::ByTask;
pub(crate) use crate::pipeline::exchange::response::{
    Downward, Finish, Progress, Retelling, retold,
};
pub(crate) use crate::pipeline::exchange::retry::Again;
use crate::pipeline::exchange::server_requests::over;

use crate::mrtr::{InputRequests, Relay};
pub(crate) use crate::pipeline::exchange::orphaned::unheard_for;
use crate::pipeline::runtime::Lasting;
use crate::pool::InUse;
use crate::pool::dedicated::Held;
use crate::session::Place;
use crate::session::client::Client;
use crate::session::pending_server_requests::Question;
use crate::tasks::{Awaited, Coming, Ended, Road};
use mcp_vary_base::memory_budget::Lease;
use mcp_vary_upstream::{Exchange, Message};
use mcp_vary_wire::response::{Reply, RpcError};

/// A request that was forwarded and is not answered yet.
#[derive(Debug)]
pub(crate) struct Running {
    /// None while the server is lost, or the client is asked.
    exchange: Option<Exchange>,
    taken: Taken,
    /// What it takes to send it once more, where that does no harm and nothing was passed on yet.
    again: Option<Again>,
    finish: Finish,
    /// What the server asks of the client and waits for.
    questions: Vec<Question>,
    /// What it takes to ask a legacy client what a modern server asks in a result.
    relay: Option<Relay>,
    /// The task whose result the client waits for.
    awaited: Option<Box<Awaited>>,
    /// What a legacy server asked of a modern client when it went on.
    input: InputRequests,
    /// The place in the client's session, by which the client can cancel; none for modern HTTP.
    place: Option<Place>,
    /// What the client's message is held in.
    memory: Option<Lease>,
    lasting: Arc<Lasting>,
}

/// What a request has for as long as the server works on it.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// The task that it becomes where its client knows none; ended before the connection is given back.
    pub(crate) by_task: Option<Box<ByTask>>,
    /// Its place among the calls that the server may have at once.
    pub(crate) turn: Option<OwnedSemaphorePermit>,
    /// The connection that the client has alone; given back after the exchange has ended.
    pub(crate) alone: Option<Held>,
    /// Keeps the connections of the client's class open.
    pub(crate) class: Option<InUse>,
    /// How the server of a task is asked what it comes to, where that has to be waited for.
    pub(crate) road: Option<Box<Road>>,
}

impl Taken {
    /// Lets the connections stay open for so long after the request.
    fn keep_for(&self, time: Duration) {
        match (&self.alone, &self.class) {
            (Some(alone), _) => alone.keep_for(time),
            (None, Some(class)) => class.keep_for(time),
            (None, None) => {}
        }
    }
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
        taken: Taken,
        finish: Finish,
    ) -> Self {
        Self::of(lasting, Some(exchange), taken, finish)
    }

    /// A request that waits for what a task comes to.
    pub(crate) fn awaiting(
        lasting: Arc<Lasting>,
        awaited: Awaited,
        taken: Taken,
        finish: Finish,
    ) -> Self {
        let mut running = Self::of(lasting, None, taken, finish);
        running.awaited = Some(Box::new(awaited));
        running
    }

    fn of(lasting: Arc<Lasting>, exchange: Option<Exchange>, taken: Taken, finish: Finish) -> Self {
        Self {
            exchange,
            taken,
            again: None,
            finish,
            questions: Vec::new(),
            relay: None,
            awaited: None,
            input: InputRequests::default(),
            place: None,
            memory: None,
            lasting,
        }
    }

    /// Keeps the request's place in its session until it has ended.
    pub(crate) fn hold(&mut self, place: Place) {
        self.place = Some(place);
    }

    /// Keeps what the client's message is held in until the request has ended.
    pub(crate) fn hold_memory(&mut self, memory: Lease) {
        self.memory = Some(memory);
    }

    /// The next notification, or the answer. Safe to drop while it waits.
    pub(crate) async fn next(&mut self) -> Step {
        // What the client has not answered is asked again.
        if !self.input.is_empty() {
            return self.wait_for_the_client();
        }
        loop {
            // What is rare has its room elsewhere: a request is moved about, with all that it may wait for.
            let step = match (&self.exchange, &self.relay) {
                (Some(_), _) => self.next_of_server().await,
                (None, Some(relay)) if relay.is_asking() => Box::pin(self.next_of_round()).await,
                (None, _) if self.has_a_task_to_wait_for() => {
                    Box::pin(self.wait_for_the_task()).await
                }
                (None, _) if self.awaited.is_some() => Box::pin(self.next_of_task()).await,
                (None, _) => Box::pin(self.send_again()).await,
            };
            if let Some(step) = step {
                // What the client has heard of is not begun anew.
                self.again = None;
                return step;
            }
        }
    }

    /// What the server says next, where the client is to hear of it.
    async fn next_of_server(&mut self) -> Option<Step> {
        let said = self.exchange.as_mut()?.next();
        let said = tokio::select! {
            biased;
            () = withdrawn(self.place.as_ref()) => return Some(self.withdraw()),
            at = over(&self.questions), if !self.questions.is_empty() => {
                return self.questions.swap_remove(at).give_up().map(Step::Message);
            }
            said = said => said,
        };
        match said {
            Ok(Message::Notification(bytes)) => self.finish.notification(bytes).map(Step::Message),
            Ok(Message::Request(request)) => self.ask(request),
            Ok(Message::Answer(answer)) if self.becomes_a_task(answer.outcome()) => None,
            Ok(Message::Answer(answer)) => match self.begin_round(answer.outcome()) {
                None => Some(self.done(answer.outcome())),
                Some(Ok(())) => None,
                Some(Err(failure)) => Some(self.fail(&failure)),
            },
            Err(error) => self.lost(error),
        }
    }

    /// What the client is asked for the task whose result it waits for, or how that ended.
    async fn next_of_task(&mut self) -> Option<Step> {
        let awaited = self.awaited.as_mut()?;
        let coming = awaited.next(&self.finish.client, &self.lasting);
        Some(match unless_withdrawn(self.place.as_ref(), coming).await {
            None => self.withdraw(),
            Some(Coming::Message(message)) => Step::Message(message),
            Some(Coming::Ended(Ended::Result(result))) => self.done(Ok(&result)),
            Some(Coming::Ended(Ended::Error(error))) => self.done(Err(&error)),
            Some(Coming::Ended(Ended::Failed(failure))) => self.fail(&failure),
        })
    }

    fn done(&mut self, outcome: Result<&str, &str>) -> Step {
        if let Some(undeclared) = &self.finish.downward.undeclared {
            undeclared.note(outcome);
        }
        if let Some(made) = outcome.ok().and_then(|result| self.watch(result)) {
            self.leave_questions();
            self.end();
            return Step::Done(made);
        }
        if let Some(lasts) = outcome
            .ok()
            .and_then(|result| self.finish.task_lasts(result))
        {
            self.taken.keep_for(lasts);
        }
        if let Some(alone) = &self.taken.alone {
            alone.settle();
        }
        let outcome = outcome.map(|result| self.without_its_task(result));
        self.leave_questions();
        self.end();
        Step::Done(match outcome {
            Ok(result) => {
                self.finish.note_links(&result, &self.lasting);
                self.finish.result(&result, &self.lasting)
            }
            Err(error) => self.finish.error(error, &self.lasting),
        })
    }

    fn fail(&mut self, failure: &RpcError) -> Step {
        self.end();
        Step::Done(self.finish.failed(failure))
    }

    fn withdraw(&mut self) -> Step {
        self.give_up("cancelled by the client");
        self.finish.withdrawn()
    }

    /// The server is done with the request, however long the client takes to read the answer.
    fn end(&mut self) {
        self.exchange = None;
        self.again = None;
        self.relay = None;
        self.awaited = None;
        self.questions.clear();
        self.taken = Taken::default();
    }

    /// Ends the request without an answer, and tells the server why.
    pub(crate) fn give_up(&mut self, why: &str) {
        // A process does not say which call a question is about: it may be another one.
        if self.taken.alone.as_ref().is_some_and(Held::has_others) {
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

/// What comes of `what`; none when the client cancels the request or ends its session before.
async fn unless_withdrawn<T>(place: Option<&Place>, what: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = withdrawn(place) => None,
        done = what => Some(done),
    }
}

/// Waits until the client cancels the request or ends its session.
async fn withdrawn(place: Option<&Place>) {
    match place {
        Some(place) => place.withdrawn().await,
        None => std::future::pending().await,
    }
}
