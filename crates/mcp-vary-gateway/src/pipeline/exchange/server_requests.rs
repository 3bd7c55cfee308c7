//! What the server asks of the client before it answers.

use std::sync::Arc;

use futures_util::future::select_all;
use mcp_vary::json::Members;
use mcp_vary_upstream::ServerRequest;
use mcp_vary_wire::response::{self, RpcError};
use tokio::sync::OwnedSemaphorePermit;

use super::{Finish, Running, Step, Taken, unless_withdrawn};
use crate::mrtr::{self, HeldCall, Next, Relay, asks_for_input};
use crate::pipeline::runtime::Lasting;
use crate::pool::dedicated;
use crate::session::pending_server_requests::{self, Question};

impl Running {
    /// What the client is asked, if it can be; the server is told why where it cannot.
    pub(super) fn ask(&mut self, request: ServerRequest) -> Option<Step> {
        if let Some(session) = &self.finish.client.session {
            let (made, server) = (&self.lasting.made, &self.finish.server);
            let names = made.names(server, session.client);
            let questions = &self.lasting.questions;
            let (question, message) = questions.pass_on(session, (server, &request), &names)?;
            self.questions.push(question);
            return Some(Step::Message(message));
        }
        let params = request.params().unwrap_or("{}");
        let may_be_asked = self
            .finish
            .client
            .askable()
            .ensure_supported(request.method(), params);
        // Dropped, a request is refused.
        self.finish.seal.as_ref()?;
        if let Err(why) = may_be_asked {
            pending_server_requests::refuse(&request, &why);
            return None;
        }
        if let Some(alone) = &self.taken.alone {
            alone.heed(&request);
        }
        self.input.add(request);
        Some(self.wait_for_the_client())
    }

    /// Ends the client's request with what the server asks; the server goes on when the client comes back.
    pub(super) fn wait_for_the_client(&mut self) -> Step {
        let (Some(exchange), Some(seal)) = (self.exchange.take(), &self.finish.seal) else {
            return Step::Cancelled;
        };
        let call = HeldCall {
            exchange,
            input: std::mem::take(&mut self.input),
            // Others may call the server while the client is asked.
            taken: Taken {
                turn: None,
                ..std::mem::take(&mut self.taken)
            },
            progress: self.finish.progress.take().map(|progress| progress.ours),
        };
        let held = mrtr::hold(call, seal, &self.lasting);
        self.end();
        Step::Done(match held {
            Ok(result) => response::result(&self.finish.id, result.as_bytes()),
            Err(failure) => self.finish.failed(&failure),
        })
    }

    /// Goes on with a call that waited for the client, which has come back with `responses`.
    pub(crate) fn resumed(
        lasting: Arc<Lasting>,
        mut call: HeldCall,
        responses: &Members<'_>,
        turn: OwnedSemaphorePermit,
        finish: Finish,
    ) -> Self {
        call.input.answer(responses);
        let taken = Taken {
            turn: Some(turn),
            ..call.taken
        };
        let mut running = Self::new(lasting, call.exchange, taken, finish);
        running.input = call.input;
        running
    }

    /// Lets the client be asked what the server asks in a result.
    pub(crate) fn relay_with(&mut self, relay: Relay) {
        self.relay = Some(relay);
    }

    /// Begins to ask a legacy client what a modern server asks in a result; `None` where it does not.
    pub(super) fn begin_round(
        &mut self,
        outcome: Result<&str, &str>,
    ) -> Option<Result<(), RpcError>> {
        let result = outcome.ok().filter(|result| asks_for_input(result))?;
        let session = self.finish.client.session.as_ref()?;
        let client = (&**session, self.finish.client.askable());
        let begun = self.relay.as_mut()?.begin(result, client, &self.lasting);
        // The server works on nothing while the client is asked.
        self.exchange = None;
        self.again = None;
        self.taken.turn = None;
        Some(begun)
    }

    /// The next message of a round for the client, or what it gets when the round fails.
    pub(super) async fn next_of_round(&mut self) -> Option<Step> {
        let relay = self.relay.as_mut()?;
        let next = unless_withdrawn(self.place.as_ref(), relay.next());
        match next.await {
            None => Some(self.withdraw()),
            Some(Next::Message(message)) => Some(Step::Message(message)),
            Some(Next::Failed(failure)) => Some(self.fail(&failure)),
            Some(Next::Sent(turn, exchange)) => {
                self.taken.turn = Some(turn);
                self.exchange = Some(exchange);
                None
            }
        }
    }

    /// Lets questions that outlive the request wait for their answers without it.
    pub(super) fn leave_questions(&mut self) {
        let Some(session) = &self.finish.client.session else {
            return;
        };
        for question in std::mem::take(&mut self.questions) {
            let (session, stopped) = (Arc::clone(session), self.lasting.stopped.clone());
            let waiting = async move { dedicated::wait(question, &session).await };
            let waiting = stopped.run_until_cancelled_owned(waiting);
            self.lasting.tasks.spawn(waiting);
        }
    }
}

/// Waits until one of the questions is over.
pub(super) async fn over(questions: &[Question]) -> usize {
    let over = questions.iter().map(|question| Box::pin(question.over()));
    select_all(over).await.1
}
