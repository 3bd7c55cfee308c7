//! A request that the server works on: its notifications, then its answer, as the client gets them.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::select_all;
use mcp_vary::json::Members;
use mcp_vary::variant::VariantId;
use mcp_vary::view::UriMap;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use crate::bridge::{self, Caching};
use crate::class::InUse;
use crate::client::Client;
use crate::lasting::Lasting;
use crate::links::Origin;
use crate::log_level::{is_logged_from, level_of};
use crate::own::{self, Held};
use crate::questions::{self, Question};
use crate::reply::{
    self, Failure, HEADER_MISMATCH, INVALID_PARAMS, MISSING_CLIENT_CAPABILITY, RESOURCE_NOT_FOUND,
    Reply, UNSUPPORTED_VERSION, URL_ELICITATION_REQUIRED,
};
use crate::revision::Era;
use crate::rounds::{self, HeldCall, Next, Relay, Seal, asks_for_input};
use crate::route::{Action, TaskAction};
use crate::session::Place;
use crate::shape::Shape;
use crate::splice;
use crate::tasks::TaskNames;
use crate::upstream::{Exchange, Line, Message, Request, ServerRequest, Upstream, UpstreamError};
use crate::uris;
use crate::wire;
use crate::words::Words;

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

/// A request that may be sent once more, and to whom.
#[derive(Debug)]
pub(crate) struct Again {
    pub(crate) line: Arc<Line>,
    pub(crate) request: Request,
    /// Whom it was sent to.
    pub(crate) upstream: Arc<Upstream>,
    /// When it was first sent once more.
    pub(crate) since: Option<Instant>,
}

impl Again {
    /// Whether it may be sent after `error`: when the server was lost, and after that only when it was not
    /// delivered, since a loss may take a moment to be noticed.
    fn follows(&self, error: &UpstreamError) -> bool {
        let patience = self.line.config().limits.patience;
        match self.since {
            None => error.is_loss(),
            Some(since) => error.is_undelivered() && since.elapsed() < patience,
        }
    }

    async fn send(&mut self) -> Result<Exchange, Failure> {
        if self.since.is_some() {
            tokio::time::sleep(UNNOTICED).await;
        }
        self.since.get_or_insert_with(Instant::now);
        let upstream = self.line.ready().await?;
        let server = upstream.name();
        if !upstream.hello().agrees_with(self.upstream.hello()) {
            let why = format!("server `{server}` was lost, and is another one now; ask again");
            return Err(Failure::internal(why));
        }
        info!(server, method = %self.request.method, "an idempotent request is sent once more");
        Ok(upstream.request(self.request.clone()).await?)
    }
}

/// How long a line may take to notice that its server cannot be reached.
const UNNOTICED: Duration = Duration::from_millis(50);

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

/// What is needed to turn the server's answer into the client's.
#[derive(Debug)]
pub(crate) struct Finish {
    pub(crate) id: String,
    pub(crate) client: Client,
    pub(crate) caching: Caching,
    pub(crate) shape: Option<Shape>,
    /// The variant that the request ran under; `None` when variants are off.
    pub(crate) active_variant: Option<VariantId>,
    pub(crate) action: Action,
    /// The server and what was asked of it, where what its results point to decides what can be read.
    pub(crate) links_of: Option<(Arc<str>, Origin)>,
    /// What the view calls otherwise than the server.
    pub(crate) words: Option<Arc<Words>>,
    /// What the view calls resources, where that is not what the servers do.
    pub(crate) uris: Option<Arc<UriMap>>,
    /// Seals the states of its rounds; none for a client or a method that knows no rounds.
    pub(crate) seal: Option<Seal>,
    /// The task that it is about, or that may come of it.
    pub(crate) task: Option<Box<TaskNames>>,
    /// The era of the server, whose results the client may not be able to read.
    pub(crate) upstream: Era,
    pub(crate) progress: Option<Progress>,
}

/// The progress token towards the server, and the client's own.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    pub(crate) ours: String,
    pub(crate) theirs: String,
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

    /// Lets the request be sent once more if the server is lost before it said anything.
    pub(crate) fn repeat_with(&mut self, again: Again) {
        self.again = Some(again);
    }

    /// Goes on with a call that waited for the client, which has come back with `responses`.
    pub(crate) fn resumed(
        lasting: Arc<Lasting>,
        mut call: HeldCall,
        responses: &Members<'_>,
        turn: OwnedSemaphorePermit,
        finish: Finish,
    ) -> Self {
        call.answer(responses);
        let mut running = Self::new(lasting, call.exchange, turn, finish);
        running.asked = call.asked;
        running.keys = call.keys;
        running.class = call.class;
        running.alone = call.alone;
        running
    }

    /// Lets the client be asked what the server asks in a result.
    pub(crate) fn relay_with(&mut self, relay: Relay) {
        self.relay = Some(relay);
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

    /// What the client is asked, if it can be; the server is told why where it cannot.
    fn asks(&mut self, request: ServerRequest) -> Option<Step> {
        if let Some(session) = &self.finish.client.session {
            let (question, message) = self.lasting.questions.pass_on(session, &request)?;
            self.questions.push(question);
            return Some(Step::Message(message));
        }
        let params = request.params().unwrap_or("{}");
        let may_be_asked = self.finish.client.askable().check(request.method(), params);
        // Dropped, a request is refused.
        self.finish.seal.as_ref()?;
        if let Err(why) = may_be_asked {
            questions::refuse(&request, &why);
            return None;
        }
        self.keys += 1;
        self.asked.push((self.keys.to_string(), request));
        Some(self.wait_for_the_client())
    }

    /// Ends the client's request with what the server asks; the server goes on when the client comes back.
    fn wait_for_the_client(&mut self) -> Step {
        let (Some(exchange), Some(seal)) = (self.exchange.take(), &self.finish.seal) else {
            return Step::Cancelled;
        };
        let call = HeldCall {
            exchange,
            asked: std::mem::take(&mut self.asked),
            keys: self.keys,
            alone: self.alone.take(),
            class: self.class.take(),
            progress: self.finish.progress.take().map(|progress| progress.ours),
        };
        let held = rounds::hold(call, seal, &self.lasting);
        self.end();
        Step::Done(match held {
            Ok(result) => reply::result(&self.finish.id, result.as_bytes()),
            Err(failure) => self.finish.failed(&failure),
        })
    }

    /// Begins to ask a legacy client what a modern server asks in a result; `None` where it does not.
    fn asks_in_result(&mut self, outcome: Result<&str, &str>) -> Option<Result<(), Failure>> {
        let result = outcome.ok().filter(|result| asks_for_input(result))?;
        let client = (self.finish.client.id, self.finish.client.askable());
        let begun = self.relay.as_mut()?.begin(result, client, &self.lasting);
        // The server works on nothing while the client is asked.
        self.exchange = None;
        self.again = None;
        self.turn = None;
        Some(begun)
    }

    /// The next message of a round for the client, or what it gets when the round fails.
    async fn next_of_round(&mut self) -> Option<Step> {
        let relay = self.relay.as_mut()?;
        let next = tokio::select! {
            biased;
            () = withdrawn(self.place.as_ref()) => {
                self.end();
                return Some(self.finish.withdrawn());
            }
            next = relay.next() => next,
        };
        match next {
            Next::Message(message) => Some(Step::Message(message)),
            Next::Sent(turn, exchange) => {
                self.turn = Some(turn);
                self.exchange = Some(exchange);
                None
            }
            Next::Failed(failure) => {
                self.end();
                Some(Step::Done(self.finish.failed(&failure)))
            }
        }
    }

    /// Sends the request once more to a server that was lost, as soon as it is back; what the client gets
    /// when that does not come about.
    async fn sent_again(&mut self) -> Option<Step> {
        let Some(again) = &mut self.again else {
            return Some(Step::Cancelled);
        };
        let sent = tokio::select! {
            biased;
            () = withdrawn(self.place.as_ref()) => {
                self.end();
                return Some(self.finish.withdrawn());
            }
            sent = again.send() => sent,
        };
        match sent {
            Ok(exchange) => {
                self.exchange = Some(exchange);
                None
            }
            Err(failure) => {
                self.end();
                Some(Step::Done(self.finish.failed(&failure)))
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

    /// Lets questions that outlive the request wait for their answers without it.
    fn leave_questions(&mut self) {
        let Some(session) = &self.finish.client.session else {
            return;
        };
        for question in std::mem::take(&mut self.questions) {
            let (session, stopped) = (Arc::clone(session), self.lasting.stopped.clone());
            let waiting = async move { own::wait(question, &session).await };
            let waiting = stopped.run_until_cancelled_owned(waiting);
            self.lasting.tasks.spawn(waiting);
        }
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
        self.leave_questions();
        // One too many is cancelled instead, as dropping the exchange does.
        let permit = Arc::clone(&self.lasting.unheard).try_acquire_owned();
        if let (Some(exchange), Ok(permit)) = (self.exchange.take(), permit) {
            let stopped = self.lasting.stopped.clone();
            let permits = (
                permit,
                self.turn.take(),
                self.alone.take(),
                self.class.take(),
            );
            let unheard = run_unheard(exchange, self.place.take(), stopped, permits);
            self.lasting.tasks.spawn(unheard);
        }
    }
}

/// A request whose client is gone is cancelled after this long, however much the server still says.
pub(crate) const UNHEARD: Duration = Duration::from_secs(600);

async fn run_unheard(
    mut exchange: Exchange,
    place: Option<Place>,
    stopped: CancellationToken,
    _kept: (
        OwnedSemaphorePermit,
        Option<OwnedSemaphorePermit>,
        Option<Held>,
        Option<InUse>,
    ),
) {
    let ended = async {
        while let Ok(Message::Notification(_) | Message::Request(_)) = exchange.next().await {}
    };
    let reason = tokio::select! {
        () = ended => return debug!("a request whose client is gone has ended"),
        () = withdrawn(place.as_ref()) => "cancelled by the client",
        () = tokio::time::sleep(UNHEARD) => "the client is gone",
        () = stopped.cancelled() => "the gateway stops",
    };
    exchange.cancel(Some(reason));
}

/// Waits until one of the questions is over.
async fn over(questions: &[Question]) -> usize {
    let over = questions.iter().map(|question| Box::pin(question.over()));
    select_all(over).await.1
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
        match session.is_some_and(|session| session.has_ended()) {
            true => Step::Done(self.failed(&Failure::session_not_found())),
            false => Step::Cancelled,
        }
    }

    fn result(&self, result: &str, lasting: &Lasting) -> Reply {
        if !result.starts_with('{') {
            return self.failed(&Failure::internal("the server's result is no object"));
        }
        if asks_for_input(result) {
            return self.input_required(result, lasting);
        }
        let told = self.told(result);
        let sent = bridge::result_downward(&told, self.client.era(), self.caching);
        reply::result(&self.id, sent.as_bytes())
    }

    /// What the client is told where the server said `result`.
    fn told<'a>(&self, result: &'a str) -> Cow<'a, str> {
        let Some(task) = &self.task else {
            return self.shaped(result);
        };
        match self.action {
            Action::Task(TaskAction::Result) => {
                then(task.downward(result), |named| self.shaped(named))
            }
            // The extension has the result in what it says of the task.
            Action::Task(_) => {
                let named = task.downward(result);
                let inner = splice::get(&named, "result").filter(|inner| inner.starts_with('{'));
                match inner.map(|inner| self.shaped(inner)) {
                    Some(Cow::Owned(shaped)) => {
                        Cow::Owned(splice::set(&named, "result", &shaped).into_owned())
                    }
                    _ => named,
                }
            }
            _ => task
                .of_made(result, &self.client)
                .unwrap_or_else(|| self.shaped(result)),
        }
    }

    /// The result in the client's words and shape.
    fn shaped<'a>(&self, result: &'a str) -> Cow<'a, str> {
        let is_call = matches!(self.action, Action::Call | Action::Task(_));
        let told = match &self.words {
            Some(words) if is_call => words.of_a_failed_call(result),
            _ => Cow::Borrowed(result),
        };
        let told = match &self.uris {
            Some(uris) => then(told, |told| uris::of_the_view(uris, told)),
            None => told,
        };
        let shaped = match &self.shape {
            Some(shape) => then(told, |told| shape.apply(told)),
            None => told,
        };
        if !(is_call && self.upstream == Era::Modern && self.client.era() == Era::Legacy) {
            return shaped;
        }
        then(shaped, bridge::without_foreign_structure)
    }

    /// What a server asks of the client in a result.
    fn input_required(&self, result: &str, lasting: &Lasting) -> Reply {
        let Some(seal) = &self.seal else {
            let why = "the server asks for input where a request cannot have a second round";
            return self.failed(&Failure::internal(why));
        };
        match rounds::passed_on(result, seal, self.client.askable(), lasting) {
            Ok(result) => reply::result(&self.id, result.as_bytes()),
            Err(failure) => self.failed(&failure),
        }
    }

    fn error(&self, error: &str, lasting: &Lasting) -> Reply {
        let failure = Failure::told_by_upstream(error);
        if let Some(result) = self.to_visit(&failure, lasting) {
            return reply::result(&self.id, result.as_bytes());
        }
        let mut failure = self.in_the_words_of_the_client(failure);
        if let Some(words) = &self.words
            && let Cow::Owned(message) = words.of_the_view(failure.message())
        {
            failure.set_message(message);
        }
        if let Some(uris) = &self.uris {
            uris::of_a_failure(uris, &mut failure);
        }
        if let Some(task) = &self.task
            && let Some(message) = task.in_words(failure.message())
        {
            failure.set_message(message);
        }
        let is_named = !matches!(self.action, Action::Call | Action::Task(_));
        let named = is_named || failure.code() == RESOURCE_NOT_FOUND;
        let not_found = named && mcp_vary::error::is_about_an_identifier(failure.code());
        if let (true, Some(variant)) = (not_found, &self.active_variant) {
            let data = mcp_vary::error::with_active_variant(failure.data(), variant);
            failure = failure.with_data(data);
        }
        self.failed(&failure)
    }

    /// What the client is asked to visit before the server does anything.
    fn to_visit(&self, failure: &Failure, lasting: &Lasting) -> Option<String> {
        let (seal, data) = (self.seal.as_ref()?, failure.data()?);
        let is_asked = failure.code() == URL_ELICITATION_REQUIRED && self.upstream == Era::Legacy;
        is_asked.then(|| rounds::to_visit(data, seal, self.client.askable(), lasting))?
    }

    /// Some codes mean another thing, or nothing, to a client of the other era; and some are about the
    /// gateway's own request, not about the client's.
    ///
    /// > Implementations of this protocol version MUST NOT emit these codes: `-32002`, `-32042`.
    /// > (MCP 2026-07-28, basic/index, "Error Codes")
    fn in_the_words_of_the_client(&self, mut failure: Failure) -> Failure {
        let of_the_gateway = |failure: &Failure| {
            Failure::internal(format!(
                "the server refused the gateway: {}",
                failure.message()
            ))
        };
        match (failure.code(), self.client.era()) {
            (RESOURCE_NOT_FOUND, Era::Modern) => failure.set_code(INVALID_PARAMS),
            (INVALID_PARAMS, Era::Legacy) if self.reads_from_a_modern_server() => {
                failure.set_code(RESOURCE_NOT_FOUND);
            }
            (HEADER_MISMATCH | UNSUPPORTED_VERSION, _)
            | (MISSING_CLIENT_CAPABILITY, Era::Legacy)
            | (URL_ELICITATION_REQUIRED, Era::Modern) => return of_the_gateway(&failure),
            (MISSING_CLIENT_CAPABILITY, Era::Modern) if self.declares_what_is_missing(&failure) => {
                return of_the_gateway(&failure);
            }
            _ => {}
        }
        failure
    }

    /// Whether `-32602` of the server is about the resource: its era has no other code for that, and that
    /// `uri` is a string was checked before.
    ///
    /// Source: MCP 2026-07-28, server/resources, "Error Handling".
    fn reads_from_a_modern_server(&self) -> bool {
        matches!(self.action, Action::Read) && self.upstream == Era::Modern
    }

    /// Whether the client has the capabilities that the server misses, so that it is the gateway that
    /// does not carry them.
    fn declares_what_is_missing(&self, failure: &Failure) -> bool {
        let missing = failure
            .data()
            .and_then(|data| splice::get(data, "requiredCapabilities"));
        let missing = missing.and_then(|missing| Members::parse(missing).ok());
        missing.is_some_and(|missing| {
            missing
                .iter()
                .all(|(name, _)| self.client.capabilities.contains(name))
        })
    }

    /// The notification as the client gets it; `None` when it is not for this client.
    fn notification(&self, bytes: Bytes) -> Option<Bytes> {
        let message = wire::Message::read(&bytes).ok()?;
        let params = message.params.unwrap_or("{}");
        match message.method.as_deref()? {
            "notifications/progress" => self.progress(params),
            "notifications/message" => self.wants_logged(params).then_some(bytes),
            "notifications/tasks/status" => self.task_status(params),
            // Changes reach the catalogue by another way.
            method if method.ends_with("list_changed") => None,
            "notifications/resources/updated" | "notifications/cancelled" => None,
            _ => Some(bytes),
        }
    }

    /// > Requestors MUST NOT rely on receiving this notifications (MCP 2025-11-25, basic/utilities/tasks)
    fn task_status(&self, params: &str) -> Option<Bytes> {
        let params = self.task.as_ref()?.status(params, &self.client)?;
        Some(Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{params}}}"#
        )))
    }

    fn progress(&self, params: &str) -> Option<Bytes> {
        let progress = self.progress.as_ref()?;
        let is_ours = splice::get(params, bridge::PROGRESS_TOKEN)? == progress.ours;
        is_ours.then(|| Bytes::from(bridge::progress_downward(params, &progress.theirs)))
    }

    /// A legacy client that never set a level gets what the server sends; a modern one only what it
    /// asked for with this request.
    fn wants_logged(&self, params: &str) -> bool {
        match (
            &self.client.session,
            self.client.log_level,
            self.client.era(),
        ) {
            (Some(session), _, _) => is_logged_from(params, session.log_level()),
            (None, wanted, Era::Legacy) => is_logged_from(params, wanted),
            (None, Some(wanted), Era::Modern) => {
                level_of(params).is_some_and(|level| level >= wanted)
            }
            (None, None, Era::Modern) => false,
        }
    }
}

/// What `step` makes of `text`; borrowed from whoever has the text for as long as nothing changes it.
fn then<'a>(text: Cow<'a, str>, step: impl Fn(&str) -> Cow<'_, str>) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => step(text),
        Cow::Owned(text) => match step(&text) {
            Cow::Borrowed(part) if part.len() == text.len() => Cow::Owned(text),
            changed => Cow::Owned(changed.into_owned()),
        },
    }
}
