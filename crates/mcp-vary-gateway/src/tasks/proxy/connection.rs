//! The connection that a task was made on, for as long as its server works at it.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary::json::edit;
use mcp_vary_upstream::{
    Answer, Event, Exchange, Message, Request, ServerRequest, SupervisedConnection, UpstreamError,
};
use mcp_vary_wire::envelope;
use mcp_vary_wire::era::{self, Caching, PROGRESS_TOKEN};
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::task_dialect::TASK_STATUS_METHODS;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info};

use super::{A_MOMENT, ComeTo, SHARE, Watched};
use crate::mrtr::Quota;
use crate::pipeline::exchange::ProgressTokens;
use crate::pipeline::runtime::Services;
use crate::pool::InUse;
use crate::pool::dedicated::Held;
use crate::tasks::string;

/// The way to the server of a task that may be made.
#[derive(Debug)]
pub(crate) struct Road {
    line: Arc<SupervisedConnection>,
    /// What the server says on it since before the call.
    events: broadcast::Receiver<Event>,
    /// The connection that the client has alone, given back when the task is over.
    alone: Option<Held>,
    /// Keeps the connections of the client's class open.
    class: Option<InUse>,
    progress: Option<ProgressTokens>,
    pub(super) bounds: Quota,
    /// A task is watched for at most so long.
    pub(super) lifetime: Duration,
    /// Bytes of what is kept of tasks that are over.
    kept: usize,
    /// Whether the task is made on it; otherwise it was made before.
    pub(super) is_new: bool,
}

/// What an operator allows the tasks that are watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowed {
    pub(crate) bounds: Quota,
    pub(crate) lifetime: Duration,
    pub(crate) kept: usize,
}

impl Road {
    /// The way by `line`; to be taken before anything is said on it.
    pub(crate) fn by(line: &Arc<SupervisedConnection>, allowed: Allowed) -> Self {
        Self {
            line: Arc::clone(line),
            events: line.events(),
            alone: None,
            class: None,
            progress: None,
            bounds: allowed.bounds,
            lifetime: allowed.lifetime,
            kept: allowed.kept,
            is_new: true,
        }
    }

    /// The same for a task that was made before.
    pub(crate) fn again(self) -> Self {
        Self {
            is_new: false,
            ..self
        }
    }

    /// The same with what keeps it open.
    pub(crate) fn held_by(mut self, alone: Option<Held>, class: Option<InUse>) -> Self {
        self.alone = alone;
        self.class = class;
        self
    }

    /// The same; progress is told with this token.
    pub(crate) fn with_progress(mut self, progress: Option<ProgressTokens>) -> Self {
        self.progress = progress;
        self
    }

    pub(super) const fn line(&self) -> &Arc<SupervisedConnection> {
        &self.line
    }

    pub(super) const fn is_alone(&self) -> bool {
        self.alone.is_some()
    }

    /// Waits for what the task comes to, and keeps that until its time is over; one that `is_wanted` by nobody is
    /// cancelled.
    pub(super) async fn run(
        mut self,
        watched: Arc<Watched>,
        lasting: Arc<Services>,
        is_wanted: bool,
    ) {
        let expires = Instant::now() + watched.lifetime.min(FOR_EVER);
        if is_wanted {
            let why = tokio::select! {
                biased;
                () = lasting.shutdown.cancelled() => Some("the gateway stops"),
                () = watched.over.cancelled() => None,
                () = tokio::time::sleep_until(expires) => Some("its time is over"),
                () = self.wait(&watched, &lasting) => None,
            };
            if let Some(why) = why {
                debug!(server = %watched.key.0, why, "task given up");
            }
        }
        let kept = self.kept;
        self.end(&watched, &lasting).await;
        lasting.proxied_tasks.make_room(kept);
        let watched = match is_wanted && watched.is_over() {
            true => kept_until(expires, watched, &lasting).await,
            false => Some(watched),
        };
        if let Some(watched) = watched {
            lasting.proxied_tasks.forget(&watched);
        }
    }

    /// Gives the connection back, or ends what still goes on there.
    async fn end(self, watched: &Watched, lasting: &Services) {
        let is_finished = watched.is_over() && !watched.is_cancelled();
        if let Some(alone) = self.alone.as_ref().filter(|_| is_finished) {
            alone.settle();
        }
        if !watched.is_over() {
            // Whether it was heard or not, nobody asks for the task any more.
            let patience = match lasting.shutdown.is_cancelled() {
                true => AT_THE_END,
                false => A_MOMENT,
            };
            let _ = timeout(patience, watched.cancel(None, lasting)).await;
        }
    }

    /// Waits until the task is over.
    async fn wait(&mut self, watched: &Watched, lasting: &Services) {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.result(watched, lasting).await {
                Ok(answer) => return self.conclude(&answer, watched, lasting).await,
                Err(error) => error,
            };
            if !error.is_loss() {
                return watched.came_to(ComeTo::failed(&error.to_string()), lasting);
            }
            info!(server = %watched.key.0, error = error.details(), "waiting for a task was interrupted");
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            // A connection that broke need not have taken the task with it.
            let is_known = match watched.ask_server("tasks/get", None, lasting).await {
                Ok(Ok(task)) => {
                    watched.said(&task, lasting);
                    true
                }
                Ok(Err(_)) | Err(_) => false,
            };
            if !is_known {
                return watched.came_to(ComeTo::gone(&error.to_string()), lasting);
            }
        }
    }

    /// What `tasks/result` answers; what comes meanwhile is heard.
    async fn result(
        &mut self,
        watched: &Watched,
        lasting: &Services,
    ) -> Result<Answer, UpstreamError> {
        let upstream = self.line.ready().await?;
        let request = Request::new("tasks/result", Some(watched.params()));
        let mut exchange = upstream.request_unbounded(request).await?;
        drop(upstream);
        loop {
            tokio::select! {
                biased;
                event = self.events.recv() => match event {
                    Ok(event) => self.heard(event, watched, lasting),
                    // How it stands is asked for by whoever wants to know.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return exchange.answer().await,
                },
                message = exchange.next() => match message? {
                    Message::Answer(answer) => return Ok(answer),
                    Message::Request(request) => self.asked(request, watched, lasting),
                    Message::Notification(message) => self.told(&message, watched, lasting),
                },
            }
        }
    }

    fn asked(&self, request: ServerRequest, watched: &Watched, lasting: &Services) {
        if let Some(alone) = &self.alone {
            alone.heed(&request);
        }
        watched.asked(request, lasting);
    }

    /// What the server says beside it.
    fn heard(&self, event: Event, watched: &Watched, lasting: &Services) {
        match event {
            Event::TaskChanged { id, params } if *id == *watched.own => {
                watched.said(&params, lasting)
            }
            // A session's connection is for more than this task.
            Event::ServerRequest(request) if self.is_alone() && watched.may_be_for_it(&request) => {
                self.asked(request, watched, lasting);
            }
            Event::Notification(message) if self.is_alone() => {
                self.told(&message, watched, lasting)
            }
            _ => {}
        }
    }

    /// A notification that may be about it.
    fn told(&self, message: &[u8], watched: &Watched, lasting: &Services) {
        let Ok(message) = envelope::Message::read(message) else {
            return;
        };
        let params = message.params.unwrap_or("{}");
        let is_its = || string(params, "taskId").as_deref() == Some(&*watched.own);
        match message.method.as_deref() {
            Some(method) if TASK_STATUS_METHODS.contains(&method) && is_its() => {
                watched.said(params, lasting);
            }
            Some("notifications/progress") => self.progress(params, watched),
            _ => {}
        }
    }

    /// Progress is told to whoever has a stream for it.
    fn progress(&self, params: &str, watched: &Watched) {
        let progress = self.progress.as_ref();
        let is_its = |it: &&ProgressTokens| edit::get(params, PROGRESS_TOKEN) == Some(&it.upstream);
        if let Some(progress) = progress.filter(is_its)
            && let Some((session, teller)) = &watched.session
            && let Some(session) = session.upgrade()
        {
            let sealed = |_: &str| Some(teller.sealed.to_string());
            let told = crate::tasks::related(params, &sealed);
            let _ = session.tell(era::to_client_progress(&told, &progress.client));
        }
    }

    /// Takes in what `tasks/result` answered, and how the task stands then.
    async fn conclude(&self, answer: &Answer, watched: &Watched, lasting: &Services) {
        let status = watched.ask_server("tasks/get", None, lasting);
        if let Ok(Ok(Ok(task))) = timeout(A_MOMENT, status).await {
            watched.said(&task, lasting);
        }
        let come_to = match answer.outcome() {
            Ok(result) if !result.starts_with('{') => {
                ComeTo::failed("the server's result is no object")
            }
            Ok(result) if result.len() > self.kept / SHARE => {
                ComeTo::failed("the result of the task is larger than what is kept of one")
            }
            // It is a result of the client's era.
            Ok(result) => {
                let result = era::to_client_result(result, Era::Modern, Caching::None);
                ComeTo::Result(result.into_owned())
            }
            Err(error) => ComeTo::Error(error.to_owned()),
        };
        watched.came_to(come_to, lasting);
    }
}

/// What is over, when its time is; none when it gave way to others before.
async fn kept_until(
    expires: Instant,
    watched: Arc<Watched>,
    lasting: &Services,
) -> Option<Arc<Watched>> {
    let forgotten = watched.forgotten.clone();
    let kept = Arc::downgrade(&watched);
    // It is held by nobody but those who may look for it.
    drop(watched);
    tokio::select! {
        () = lasting.shutdown.cancelled() => {}
        () = forgotten.cancelled() => {}
        () = tokio::time::sleep_until(expires) => {}
    }
    kept.upgrade()
}

impl Watched {
    fn is_cancelled(&self) -> bool {
        matches!(self.lock().come_to, Some(ComeTo::Cancelled))
    }

    /// The answer of a request about it; what the server asks before that is asked for it.
    pub(super) async fn heard(
        &self,
        mut exchange: Exchange,
        lasting: &Services,
    ) -> Result<Answer, UpstreamError> {
        loop {
            match exchange.next().await? {
                Message::Answer(answer) => return Ok(answer),
                Message::Request(request) => self.asked(request, lasting),
                Message::Notification(_) => {}
            }
        }
    }
}

/// For a server that is told that the gateway stops.
const AT_THE_END: Duration = Duration::from_millis(500);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// As long as a clock can count.
const FOR_EVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);
