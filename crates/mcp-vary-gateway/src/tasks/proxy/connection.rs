//! The connection of a proxied task, held until the task ends.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary::json::edit;
use mcp_vary_base::lock::Lock;
use mcp_vary_upstream::{
    Answer, Event, Exchange, Message, Request, ServerRequest, SupervisedConnection, UpstreamError,
    without_server,
};
use mcp_vary_wire::envelope;
use mcp_vary_wire::era::{self, Caching, PROGRESS_TOKEN, ProgressTokens};
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::server_message::own_token;
use mcp_vary_wire::task_dialect::{TASK_STATUS_METHODS, rename_related_task};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use super::proxied_tasks::ProxiedTasks;
use super::task::{ProxiedTask, STATUS_WAIT, TaskOutcome, TaskOwner, TaskState};
use crate::mrtr::{InputRequests, Quota};
use crate::pool::ConnectionUse;
use crate::pool::dedicated::DedicatedLease;
use crate::tasks::id::{TaskKey, id_of_copy};
use crate::tasks::task_text::{lifetime, string};
use mcp_vary_settings::limits::Limits;

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
    /// The tokens of progress notifications.
    pub(crate) progress: Option<ProgressTokens>,
    bounds: TaskBounds,
    /// Whether the task is created on this connection; otherwise it existed before.
    pub(crate) is_new: bool,
}

/// The operator's limits for proxied tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskBounds {
    quota: Quota,
    /// The longest time for which a task is proxied.
    lifetime: Duration,
    /// Bytes for the results of ended tasks.
    result_bytes: usize,
}

impl TaskBounds {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self {
            quota: Quota::of(limits),
            lifetime: limits.task_lifetime,
            result_bytes: limits.result_store,
        }
    }
}

impl TaskConnection {
    /// Prepares a connection for a task. Call it before anything is sent on it, so that no event is missed.
    pub(crate) fn new(connection: &Arc<SupervisedConnection>, bounds: TaskBounds) -> Self {
        Self {
            connection: Arc::clone(connection),
            events: connection.events(),
            dedicated: None,
            class: None,
            progress: None,
            bounds,
            is_new: true,
        }
    }

    /// Adds the leases that keep the connection open.
    pub(crate) fn with_leases(
        mut self,
        lease: Option<DedicatedLease>,
        class: Option<ConnectionUse>,
    ) -> Self {
        self.dedicated = lease;
        self.class = class;
        self
    }

    /// Starts to proxy a task that a server of the core dialect reported as `task`.
    ///
    /// # Errors
    ///
    /// When too many tasks are running; a task that was just created is cancelled then.
    pub(crate) fn proxy(
        self,
        tasks: &Arc<ProxiedTasks>,
        key: TaskKey,
        upstream_id: &str,
        task: &str,
        owner: TaskOwner,
    ) -> Result<Arc<ProxiedTask>, RpcError> {
        let longest = self.bounds.lifetime;
        let ttl = lifetime(edit::get(task, "ttl")).filter(|ttl| *ttl <= longest);
        let proxied = Arc::new(ProxiedTask {
            context: Arc::clone(&tasks.context),
            ttl: ttl.is_none().then_some(longest.as_millis()),
            lifetime: ttl.unwrap_or(longest),
            key,
            upstream_id: upstream_id.into(),
            number: tasks.next_number(),
            owner,
            connection: Arc::downgrade(&self.connection),
            is_dedicated: self.dedicated.is_some(),
            state: Lock::new(TaskState {
                task: task.to_owned(),
                input: InputRequests::default(),
                outcome: None,
            }),
            notifying: Lock::default(),
            changed: Notify::new(),
            ended: CancellationToken::new(),
            forgotten: CancellationToken::new(),
        });
        let inserted = tasks.insert(&proxied, self.bounds.quota);
        let known = inserted.as_ref().ok();
        let is_wanted = known.is_some_and(|known| Arc::ptr_eq(known, &proxied));
        if is_wanted || inserted.is_err() && self.is_new {
            let run = self.run(proxied, Arc::clone(tasks), is_wanted);
            tasks.context.background_tasks.spawn(run);
        }
        inserted
    }

    /// Waits for the result of the task and retains it until the task expires. If the task is not `is_wanted`, it is
    /// cancelled.
    async fn run(mut self, task: Arc<ProxiedTask>, tasks: Arc<ProxiedTasks>, is_wanted: bool) {
        let expires = Instant::now() + task.lifetime.min(NO_LIMIT);
        if is_wanted {
            let why = tokio::select! {
                biased;
                () = task.context.shutdown.cancelled() => Some("the gateway stops"),
                () = task.ended.cancelled() => None,
                () = tokio::time::sleep_until(expires) => Some("it has expired"),
                () = self.wait(&task) => None,
            };
            if let Some(why) = why {
                debug!(server = %task.key.0, why, "task abandoned");
            }
        }
        let result_bytes = self.bounds.result_bytes;
        self.end(&task).await;
        if is_wanted && task.is_over() {
            let remaining = expires.saturating_duration_since(Instant::now());
            let id = id_of_copy(&task.key);
            let bytes = task.lock().size();
            let copy = || task.to_json().into_bytes();
            task.context.copies.add(&id, remaining, bytes, copy);
        }
        tasks.evict(result_bytes);
        let task = if is_wanted && task.is_over() {
            retained_until(expires, task).await
        } else {
            Some(task)
        };
        if let Some(task) = task {
            tasks.forget(&task);
        }
    }

    /// Releases the connection, or cancels the task that still runs on it.
    async fn end(self, task: &ProxiedTask) {
        let is_finished = task.is_over() && !task.is_cancelled();
        if is_finished && let Some(lease) = &self.dedicated {
            lease.mark_clean();
        }
        if !task.is_over() {
            // Whether the server responds or not, the task is not queried again.
            let limit = if task.context.shutdown.is_cancelled() {
                SHUTDOWN_TIMEOUT
            } else {
                STATUS_WAIT
            };
            let _ = timeout(limit, task.cancel(None)).await;
        }
    }

    /// Waits until the task ends.
    async fn wait(&mut self, task: &ProxiedTask) {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.result(task).await {
                Ok(answer) => return self.finish(&answer, task).await,
                Err(error) => error,
            };
            if !error.is_loss() {
                return task.finish(TaskOutcome::failed(&error.to_string()));
            }
            let server = &*task.key.0;
            let details = error.details();
            let why = without_server(&details, server);
            info!(server, why, "waiting for a task was interrupted");
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            // A task can survive the loss of its connection.
            let is_known = match task.ask_server("tasks/get", None).await {
                Ok(Ok(status)) => {
                    task.receive_status(&status);
                    true
                }
                Ok(Err(_)) | Err(_) => false,
            };
            if !is_known {
                return task.finish(TaskOutcome::gone(&error.to_string()));
            }
        }
    }

    /// Sends `tasks/result` and waits for the response; handles other messages meanwhile.
    async fn result(&mut self, task: &ProxiedTask) -> Result<Answer, UpstreamError> {
        let upstream = self.connection.ready().await?;
        let request = Request::new("tasks/result", Some(task.params()));
        let mut exchange = upstream.request_unbounded(request).await?;
        drop(upstream);
        loop {
            tokio::select! {
                biased;
                event = self.events.recv() => match event {
                    Ok(event) => self.receive(event, task),
                    // Clients can still ask for the status.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return exchange.answer().await,
                },
                message = exchange.next() => match message? {
                    Message::Answer(answer) => return Ok(answer),
                    Message::Request(request) => self.receive_server_request(request, task),
                    Message::Notification(message) => self.receive_notification(&message, task),
                },
            }
        }
    }

    fn receive_server_request(&self, request: ServerRequest, task: &ProxiedTask) {
        if let Some(lease) = &self.dedicated {
            lease.note_request(&request);
        }
        task.receive_server_request(request);
    }

    /// Handles an event outside of the request.
    fn receive(&self, event: Event, task: &ProxiedTask) {
        match event {
            Event::TaskChanged { id, params } if *id == *task.upstream_id => {
                task.receive_status(&params)
            }
            // The connection of a session serves other calls, too.
            Event::ServerRequest(request)
                if self.dedicated.is_some() && task.may_belong_to_task(&request) =>
            {
                self.receive_server_request(request, task);
            }
            Event::Notification(message) if self.dedicated.is_some() => {
                self.receive_notification(&message, task)
            }
            _ => {}
        }
    }

    /// Handles a notification that may be about the task.
    fn receive_notification(&self, message: &[u8], task: &ProxiedTask) {
        let Ok(message) = envelope::Message::read(message) else {
            return;
        };
        let params = message.params.unwrap_or("{}");
        let is_its = || string(params, "taskId").as_deref() == Some(&*task.upstream_id);
        match message.method.as_deref() {
            Some(method) if TASK_STATUS_METHODS.contains(&method) && is_its() => {
                task.receive_status(params);
            }
            Some("notifications/progress") => self.progress(params, task),
            _ => {}
        }
    }

    /// Forwards progress to the client that asked for it.
    fn progress(&self, params: &str, task: &ProxiedTask) {
        let progress = self.progress.as_ref();
        let token = edit::get(params, PROGRESS_TOKEN).map(own_token);
        let is_its = |it: &&ProgressTokens| token.as_ref() == Some(&it.upstream);
        if let Some(progress) = progress.filter(is_its)
            && let Some((session, notifier)) = &task.owner.session
            && let Some(session) = session.upgrade()
        {
            let client_id = |_: &str| Some(notifier.client_id.to_string());
            let params = rename_related_task(params, &client_id);
            let _ = session.enqueue(era::to_client_progress(&params, &progress.client));
        }
    }

    /// Records the response to `tasks/result` and the final status.
    async fn finish(&self, answer: &Answer, task: &ProxiedTask) {
        let status = task.ask_server("tasks/get", None);
        if let Ok(Ok(Ok(status))) = timeout(STATUS_WAIT, status).await {
            task.receive_status(&status);
        }
        let outcome = match answer.outcome() {
            Ok(result) if !result.starts_with('{') => {
                TaskOutcome::failed("the server's result is not an object")
            }
            Ok(result) if result.len() > self.bounds.result_bytes / RESULT_SHARE => {
                TaskOutcome::failed("the result of the task is too large to be stored")
            }
            // The client is modern: the result takes its form.
            Ok(result) => {
                let result = era::to_client_result(result, Era::Modern, Caching::None);
                TaskOutcome::Result(result.into_owned())
            }
            Err(error) => TaskOutcome::Error(error.to_owned()),
        };
        task.finish(outcome);
    }
}

/// The ended task, once it has expired; none if it was evicted before.
async fn retained_until(expires: Instant, task: Arc<ProxiedTask>) -> Option<Arc<ProxiedTask>> {
    let context = Arc::clone(&task.context);
    let forgotten = task.forgotten.clone();
    let remaining = Arc::downgrade(&task);
    // From here on only those who look it up hold it.
    drop(task);
    tokio::select! {
        () = context.shutdown.cancelled() => {}
        () = forgotten.cancelled() => {}
        () = tokio::time::sleep_until(expires) => {}
    }
    remaining.upgrade()
}

impl ProxiedTask {
    fn is_cancelled(&self) -> bool {
        matches!(self.lock().outcome, Some(TaskOutcome::Cancelled))
    }

    /// Waits for the response to a request about the task; handles server requests meanwhile.
    pub(super) async fn receive(&self, mut exchange: Exchange) -> Result<Answer, UpstreamError> {
        loop {
            match exchange.next().await? {
                Message::Answer(answer) => return Ok(answer),
                Message::Request(request) => self.receive_server_request(request),
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
/// One result may take this fraction of all bytes.
const RESULT_SHARE: usize = 4;
