//! The connection of a proxied task, held until the task ends.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary::json::edit;
use mcp_vary_upstream::{
    Answer, Event, Exchange, Message, Request, ServerRequest, SupervisedConnection, UpstreamError,
};
use mcp_vary_wire::envelope;
use mcp_vary_wire::era::{self, Caching, PROGRESS_TOKEN, ProgressTokens};
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::task_dialect::{TASK_STATUS_METHODS, rename_related_task};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info};

use super::{ProxiedTask, RESULT_SHARE, STATUS_WAIT, TaskOutcome};
use crate::mrtr::Quota;
use crate::pipeline::runtime::Services;
use crate::pool::ConnectionUse;
use crate::pool::dedicated::DedicatedLease;
use crate::tasks::string;

/// The connection on which a task may be created.
#[derive(Debug)]
pub(crate) struct TaskConnection {
    connection: Arc<SupervisedConnection>,
    /// The connection's events since before the call.
    events: broadcast::Receiver<Event>,
    /// The client's dedicated connection; released when the task ends.
    dedicated: Option<DedicatedLease>,
    /// Keeps the connections of the client's class open.
    class: Option<ConnectionUse>,
    progress: Option<ProgressTokens>,
    pub(super) bounds: Quota,
    /// The longest time for which a task is proxied.
    pub(super) lifetime: Duration,
    /// Bytes for the results of ended tasks.
    keep_alive: usize,
    /// Whether the task is created on this connection; otherwise it existed before.
    pub(super) is_new: bool,
}

/// The operator's limits for proxied tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskBounds {
    pub(crate) bounds: Quota,
    pub(crate) lifetime: Duration,
    pub(crate) keep_alive: usize,
}

impl TaskConnection {
    /// Prepares `line` for a task. Call it before anything is sent on it, so that no event is missed.
    pub(crate) fn pooled(line: &Arc<SupervisedConnection>, allowed: TaskBounds) -> Self {
        Self {
            connection: Arc::clone(line),
            events: line.events(),
            dedicated: None,
            class: None,
            progress: None,
            bounds: allowed.bounds,
            lifetime: allowed.lifetime,
            keep_alive: allowed.keep_alive,
            is_new: true,
        }
    }

    /// The same for a task that already exists.
    pub(crate) fn reconnected(self) -> Self {
        Self {
            is_new: false,
            ..self
        }
    }

    /// Adds the leases that keep the connection open.
    pub(crate) fn leased(
        mut self,
        alone: Option<DedicatedLease>,
        class: Option<ConnectionUse>,
    ) -> Self {
        self.dedicated = alone;
        self.class = class;
        self
    }

    /// Adds the token of progress notifications.
    pub(crate) fn with_progress(mut self, progress: Option<ProgressTokens>) -> Self {
        self.progress = progress;
        self
    }

    pub(super) const fn line(&self) -> &Arc<SupervisedConnection> {
        &self.connection
    }

    pub(super) const fn is_alone(&self) -> bool {
        self.dedicated.is_some()
    }

    /// Waits for the result of the task and retains it until the task expires. If the task is not `is_wanted`, it is
    /// cancelled.
    pub(super) async fn run(
        mut self,
        watched: Arc<ProxiedTask>,
        lasting: Arc<Services>,
        is_wanted: bool,
    ) {
        let expires = Instant::now() + watched.lifetime.min(NO_LIMIT);
        if is_wanted {
            let why = tokio::select! {
                biased;
                () = lasting.shutdown.cancelled() => Some("the gateway stops"),
                () = watched.ended.cancelled() => None,
                () = tokio::time::sleep_until(expires) => Some("its time is over"),
                () = self.wait(&watched, &lasting) => None,
            };
            if let Some(why) = why {
                debug!(server = %watched.key.0, why, "task given up");
            }
        }
        let kept = self.keep_alive;
        self.end(&watched, &lasting).await;
        lasting.proxied_tasks.evict(kept);
        let watched = match is_wanted && watched.is_over() {
            true => retained_until(expires, watched, &lasting).await,
            false => Some(watched),
        };
        if let Some(watched) = watched {
            lasting.proxied_tasks.forget(&watched);
        }
    }

    /// Releases the connection, or cancels the task that still runs on it.
    async fn end(self, watched: &ProxiedTask, lasting: &Services) {
        let is_finished = watched.is_over() && !watched.is_cancelled();
        if let Some(alone) = self.dedicated.as_ref().filter(|_| is_finished) {
            alone.mark_clean();
        }
        if !watched.is_over() {
            // Whether the server responds or not, the task is not queried again.
            let patience = match lasting.shutdown.is_cancelled() {
                true => SHUTDOWN_TIMEOUT,
                false => STATUS_WAIT,
            };
            let _ = timeout(patience, watched.cancel(None, lasting)).await;
        }
    }

    /// Waits until the task ends.
    async fn wait(&mut self, watched: &ProxiedTask, lasting: &Services) {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.result(watched, lasting).await {
                Ok(answer) => return self.finish(&answer, watched, lasting).await,
                Err(error) => error,
            };
            if !error.is_loss() {
                return watched.finish(TaskOutcome::failed(&error.to_string()), lasting);
            }
            info!(server = %watched.key.0, error = error.details(), "waiting for a task was interrupted");
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            // A task can survive the loss of its connection.
            let is_known = match watched.ask_server("tasks/get", None, lasting).await {
                Ok(Ok(task)) => {
                    watched.receive_status(&task, lasting);
                    true
                }
                Ok(Err(_)) | Err(_) => false,
            };
            if !is_known {
                return watched.finish(TaskOutcome::gone(&error.to_string()), lasting);
            }
        }
    }

    /// Sends `tasks/result` and waits for the response; handles other messages meanwhile.
    async fn result(
        &mut self,
        watched: &ProxiedTask,
        lasting: &Services,
    ) -> Result<Answer, UpstreamError> {
        let upstream = self.connection.ready().await?;
        let request = Request::new("tasks/result", Some(watched.params()));
        let mut exchange = upstream.request_unbounded(request).await?;
        drop(upstream);
        loop {
            tokio::select! {
                biased;
                event = self.events.recv() => match event {
                    Ok(event) => self.receive(event, watched, lasting),
                    // Clients can still ask for the status.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return exchange.answer().await,
                },
                message = exchange.next() => match message? {
                    Message::Answer(answer) => return Ok(answer),
                    Message::Request(request) => self.receive_server_request(request, watched, lasting),
                    Message::Notification(message) => self.notify_client(&message, watched, lasting),
                },
            }
        }
    }

    fn receive_server_request(
        &self,
        request: ServerRequest,
        watched: &ProxiedTask,
        lasting: &Services,
    ) {
        if let Some(alone) = &self.dedicated {
            alone.note_request(&request);
        }
        watched.receive_server_request(request, lasting);
    }

    /// Handles an event outside of the request.
    fn receive(&self, event: Event, watched: &ProxiedTask, lasting: &Services) {
        match event {
            Event::TaskChanged { id, params } if *id == *watched.upstream_id => {
                watched.receive_status(&params, lasting)
            }
            // The connection of a session serves other calls, too.
            Event::ServerRequest(request)
                if self.is_alone() && watched.may_belong_to_task(&request) =>
            {
                self.receive_server_request(request, watched, lasting);
            }
            Event::Notification(message) if self.is_alone() => {
                self.notify_client(&message, watched, lasting)
            }
            _ => {}
        }
    }

    /// Handles a notification that may be about the task.
    fn notify_client(&self, message: &[u8], watched: &ProxiedTask, lasting: &Services) {
        let Ok(message) = envelope::Message::read(message) else {
            return;
        };
        let params = message.params.unwrap_or("{}");
        let is_its = || string(params, "taskId").as_deref() == Some(&*watched.upstream_id);
        match message.method.as_deref() {
            Some(method) if TASK_STATUS_METHODS.contains(&method) && is_its() => {
                watched.receive_status(params, lasting);
            }
            Some("notifications/progress") => self.progress(params, watched),
            _ => {}
        }
    }

    /// Forwards progress to the client that asked for it.
    fn progress(&self, params: &str, watched: &ProxiedTask) {
        let progress = self.progress.as_ref();
        let is_its = |it: &&ProgressTokens| edit::get(params, PROGRESS_TOKEN) == Some(&it.upstream);
        if let Some(progress) = progress.filter(is_its)
            && let Some((session, teller)) = &watched.session
            && let Some(session) = session.upgrade()
        {
            let sealed = |_: &str| Some(teller.client_id.to_string());
            let told = rename_related_task(params, &sealed);
            let _ = session.enqueue(era::to_client_progress(&told, &progress.client));
        }
    }

    /// Records the response to `tasks/result` and the final status.
    async fn finish(&self, answer: &Answer, watched: &ProxiedTask, lasting: &Services) {
        let status = watched.ask_server("tasks/get", None, lasting);
        if let Ok(Ok(Ok(task))) = timeout(STATUS_WAIT, status).await {
            watched.receive_status(&task, lasting);
        }
        let come_to = match answer.outcome() {
            Ok(result) if !result.starts_with('{') => {
                TaskOutcome::failed("the server's result is no object")
            }
            Ok(result) if result.len() > self.keep_alive / RESULT_SHARE => {
                TaskOutcome::failed("the result of the task is larger than what is kept of one")
            }
            // The client is modern: the result takes its form.
            Ok(result) => {
                let result = era::to_client_result(result, Era::Modern, Caching::None);
                TaskOutcome::Result(result.into_owned())
            }
            Err(error) => TaskOutcome::Error(error.to_owned()),
        };
        watched.finish(come_to, lasting);
    }
}

/// The ended task, once it has expired; none if it was evicted before.
async fn retained_until(
    expires: Instant,
    watched: Arc<ProxiedTask>,
    lasting: &Services,
) -> Option<Arc<ProxiedTask>> {
    let forgotten = watched.forgotten.clone();
    let kept = Arc::downgrade(&watched);
    // From here on only those who look it up hold it.
    drop(watched);
    tokio::select! {
        () = lasting.shutdown.cancelled() => {}
        () = forgotten.cancelled() => {}
        () = tokio::time::sleep_until(expires) => {}
    }
    kept.upgrade()
}

impl ProxiedTask {
    fn is_cancelled(&self) -> bool {
        matches!(self.lock().outcome, Some(TaskOutcome::Cancelled))
    }

    /// Waits for the response to a request about the task; handles server requests meanwhile.
    pub(super) async fn receive(
        &self,
        mut exchange: Exchange,
        lasting: &Services,
    ) -> Result<Answer, UpstreamError> {
        loop {
            match exchange.next().await? {
                Message::Answer(answer) => return Ok(answer),
                Message::Request(request) => self.receive_server_request(request, lasting),
                Message::Notification(_) => {}
            }
        }
    }
}

/// How long a server has to respond to the cancellation at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A timer cannot run longer.
const NO_LIMIT: Duration = Duration::from_secs(60 * 60 * 24 * 365);
