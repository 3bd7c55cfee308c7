//! Proxied tasks: tasks of servers of the core dialect for clients of the extension.
//!
//! In the core dialect, only a client that waits for the result receives the task's requests and its result. In the
//! extension, both are part of the task's status and no request stays open. So the gateway [waits](connection) for the
//! result itself.

mod connection;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, Weak};
use std::time::Duration;

use mcp_vary::json::{self, Members};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{DialectPair, RESULT, TaskKey, TaskNotifier, lifetime, string};
use crate::mrtr::{INPUT_REQUESTS, InputRequests, Quota, QuotaKey};
use crate::pipeline::runtime::Services;
use crate::session::Session;
use crate::session::pending_server_requests;
use crate::tasks::PREFIX;
pub(crate) use crate::tasks::proxy::connection::{TaskBounds, TaskConnection};
use mcp_vary::error_code::{INTERNAL_ERROR, INVALID_PARAMS};
use mcp_vary::json::edit;
use mcp_vary_base::lock::{Lock, ScopedLock};
use mcp_vary_upstream::{CallerId, Request, ServerRequest, SupervisedConnection};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::server_request_support::ServerRequestSupport;
use mcp_vary_wire::task_dialect::{RELATED_TASK_META, TaskDialect};

/// The proxied tasks: running ones, and the results of ended ones.
///
/// # Properties
///
/// Bounded by: running tasks, in total and for each principal; all tasks; the bytes of the results of ended tasks, of
/// which the oldest are evicted. Each task expires.
#[derive(Debug, Default)]
pub(crate) struct ProxiedTasks {
    next: AtomicU64,
    entries: Lock<BTreeMap<TaskKey, Arc<ProxiedTask>>>,
}

/// One proxied task.
#[derive(Debug)]
pub(crate) struct ProxiedTask {
    /// The server, and the id that is sealed into the client's.
    key: TaskKey,
    /// The server's id.
    upstream_id: Arc<str>,
    /// The position in the order of creation.
    number: u64,
    owner: QuotaKey,
    client: ClientId,
    server_requests: ServerRequestSupport,
    /// The client's session, if it has one, and the notifier for it.
    session: Option<(Weak<Session>, TaskNotifier)>,
    /// The connection on which it was created.
    connection: Weak<SupervisedConnection>,
    is_alone: bool,
    /// How long it exists.
    lifetime: Duration,
    /// The same in milliseconds, where the server would retain the task longer.
    ttl: Option<u128>,
    state: ScopedLock<TaskState>,
    /// Held while a notification is sent, so that they stay in order.
    notifying: ScopedLock<()>,
    changed: Notify,
    ended: CancellationToken,
    /// Cancelled when the task is dropped.
    forgotten: CancellationToken,
}

/// The state of a task.
#[derive(Debug)]
struct TaskState {
    /// The task as the server last reported it, JSON text.
    task: String,
    /// Its open input requests.
    input: InputRequests,
    outcome: Option<TaskOutcome>,
}

/// The outcome of a task, as the server reported it.
#[derive(Debug)]
enum TaskOutcome {
    Result(String),
    Error(String),
    Cancelled,
}

impl TaskOutcome {
    /// The outcome is unknown, for the reason given.
    fn failed(why: &str) -> Self {
        let why = json::string(why);
        Self::Error(format!(r#"{{"code":{INTERNAL_ERROR},"message":{why}}}"#))
    }

    fn gone(why: &str) -> Self {
        Self::failed(&format!("{why}, and its task is gone"))
    }
}

/// The client that created a task.
#[derive(Debug)]
pub(crate) struct TaskOwner {
    pub(crate) quota_key: QuotaKey,
    pub(crate) client: ClientId,
    pub(crate) server_requests: ServerRequestSupport,
    pub(crate) session: Option<(Weak<Session>, TaskNotifier)>,
}

/// The dialects of all proxied tasks.
pub(crate) const EXT_OVER_CORE: DialectPair = DialectPair {
    client: TaskDialect::Extension,
    server: TaskDialect::Core,
};

impl ProxiedTasks {
    /// A prefix that no other task id has.
    pub(crate) fn new_prefix(&self, lasting: &Services) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{PREFIX}{:x}.{number:x}{PREFIX}", lasting.instance)
    }

    /// How many tasks are running.
    pub(crate) fn count(&self) -> usize {
        let all = self.lock();
        all.values().filter(|it| !it.is_over()).count()
    }

    /// Whether a server request belongs to a running task of a session.
    pub(crate) fn has_recipient(&self, server: &str, request: &ServerRequest) -> bool {
        let Some(own) = related_to(request) else {
            return false;
        };
        let is_its = |it: &Arc<ProxiedTask>| {
            *it.key.0 == *server && *it.upstream_id == *own && it.session.is_some() && !it.is_over()
        };
        self.lock().values().any(is_its)
    }

    /// The task of a key.
    pub(crate) fn get(&self, key: &TaskKey) -> Option<Arc<ProxiedTask>> {
        self.lock().get(key).cloned()
    }

    /// Adds a task. Returns the existing one if the key is taken.
    fn insert(
        &self,
        watched: &Arc<ProxiedTask>,
        bounds: Quota,
    ) -> Result<Arc<ProxiedTask>, RpcError> {
        let mut all = self.lock();
        if let Some(known) = all.get(&watched.key) {
            return Ok(Arc::clone(known));
        }
        let working = all.values().filter(|it| !it.is_over());
        let (mut in_all, mut of_one) = (0, 0);
        for other in working {
            in_all += 1;
            of_one += usize::from(other.owner == watched.owner);
        }
        if in_all >= bounds.total || of_one >= bounds.per_principal {
            return Err(RpcError::internal(
                "it is a task of the server, and too many are waited for already; try again later",
            ));
        }
        all.insert(watched.key.clone(), Arc::clone(watched));
        make_room(&mut all, |all| all.len() <= MAX_PROXIED);
        Ok(Arc::clone(watched))
    }

    /// Evicts the oldest ended tasks until the results fit.
    fn evict(&self, bytes: usize) {
        let kept = |all: &BTreeMap<TaskKey, Arc<ProxiedTask>>| {
            let sizes = all.values().map(|it| it.lock().size());
            sizes.sum::<usize>()
        };
        make_room(&mut self.lock(), |all| kept(all) <= bytes);
    }

    fn forget(&self, watched: &Arc<ProxiedTask>) {
        let mut all = self.lock();
        if all
            .get(&watched.key)
            .is_some_and(|it| Arc::ptr_eq(it, watched))
        {
            all.remove(&watched.key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskKey, Arc<ProxiedTask>>> {
        self.entries.lock()
    }
}

/// Removes the oldest ended tasks until there `is_room`.
fn make_room(
    all: &mut BTreeMap<TaskKey, Arc<ProxiedTask>>,
    is_room: impl Fn(&BTreeMap<TaskKey, Arc<ProxiedTask>>) -> bool,
) {
    while !is_room(all) {
        let over = all.values().filter(|it| it.is_over());
        let Some(oldest) = over.min_by_key(|it| it.number) else {
            return;
        };
        let key = oldest.key.clone();
        all.remove(&key);
    }
}

/// Some hundred bytes each.
const MAX_PROXIED: usize = 4096;
/// One result may take this fraction of all bytes.
const RESULT_SHARE: usize = 4;

impl ProxiedTask {
    /// Starts to proxy a task that a server of the core dialect reported as `task`.
    ///
    /// # Errors
    ///
    /// When too many tasks are running; a task that was just created is cancelled then.
    pub(crate) fn begin(
        (key, own): (TaskKey, &str),
        task: &str,
        maker: TaskOwner,
        road: TaskConnection,
        lasting: &Arc<Services>,
    ) -> Result<Arc<Self>, RpcError> {
        let said = lifetime(edit::get(task, "ttl")).filter(|said| *said <= road.lifetime);
        let watched = Arc::new(Self {
            ttl: said.is_none().then_some(road.lifetime.as_millis()),
            lifetime: said.unwrap_or(road.lifetime),
            key,
            upstream_id: own.into(),
            number: lasting.proxied_tasks.next.fetch_add(1, Ordering::Relaxed),
            owner: maker.quota_key,
            client: maker.client,
            server_requests: maker.server_requests,
            session: maker.session,
            connection: Arc::downgrade(road.line()),
            is_alone: road.is_alone(),
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
        let put = lasting.proxied_tasks.insert(&watched, road.bounds);
        let is_wanted = match &put {
            Ok(known) => Arc::ptr_eq(known, &watched),
            Err(_) => false,
        };
        if is_wanted || put.is_err() && road.is_new {
            let runs = road.run(Arc::clone(&watched), Arc::clone(lasting), is_wanted);
            lasting.background_tasks.spawn(runs);
        }
        put
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// The task in the dialect of the extension and with the server's id, JSON text. `params` are those of the request
    /// to the server.
    ///
    /// # Errors
    ///
    /// The server's error, or why it cannot be reached.
    pub(crate) async fn status(
        &self,
        params: String,
        lasting: &Services,
    ) -> Result<String, RpcError> {
        if !self.has_unsent() {
            match self.ask_server("tasks/get", Some(params), lasting).await? {
                Ok(task) => {
                    self.receive_status(&task, lasting);
                    self.settle().await;
                }
                // The server may have dropped the task together with its result.
                Err(why) if why.code() == INVALID_PARAMS => {
                    self.wait_for_more(STATUS_WAIT).await;
                    self.finish(TaskOutcome::gone(why.message()), lasting);
                }
                Err(why) => return Err(why),
            }
        }
        Ok(self.to_json(lasting))
    }

    /// Whether the input requests or the outcome are known.
    fn has_unsent(&self) -> bool {
        let mut standing = self.lock();
        standing.input.forget_settled();
        standing.outcome.is_some() || !standing.input.is_empty()
    }

    /// Waits a moment for the input requests or the outcome that the status announces; they arrive separately.
    async fn settle(&self) {
        let patience = match string(&self.lock().task, "status").as_deref() {
            Some("completed" | "failed") => STATUS_WAIT,
            // The status may refer to input requests that were answered or refused.
            Some("input_required") => RESULT_WAIT,
            _ => return,
        };
        self.wait_for_more(patience).await;
    }

    /// Waits up to `patience` for input requests or the outcome.
    async fn wait_for_more(&self, patience: Duration) {
        let waited = async {
            loop {
                let changed = self.changed.notified();
                if self.has_unsent() {
                    return;
                }
                changed.await;
            }
        };
        let _ = tokio::time::timeout(patience, waited).await;
    }

    /// The task as `tasks/get` of the extension returns it.
    fn to_json(&self, lasting: &Services) -> String {
        let asker = lasting.pending_server_requests.server_name(&self.key.0);
        let standing = self.lock();
        let told = EXT_OVER_CORE.task_to_client(&standing.task).into_owned();
        let told = [RESULT, "error", INPUT_REQUESTS]
            .iter()
            .fold(told, |told, key| edit::remove(&told, key).into_owned());
        let told = self.with_ttl(&told).into_owned();
        let set = |status: &str, more: Option<(&str, &str)>| {
            let told = edit::set(&told, "status", &json::string(status)).into_owned();
            more.map_or_else(
                || told.clone(),
                |(key, value)| edit::set(&told, key, value).into_owned(),
            )
        };
        match &standing.outcome {
            Some(TaskOutcome::Result(result)) => set("completed", Some((RESULT, result))),
            Some(TaskOutcome::Error(error)) => set("failed", Some(("error", error))),
            Some(TaskOutcome::Cancelled) => set("cancelled", None),
            None if standing.input.is_empty() => set("working", None),
            None => set(
                "input_required",
                Some((INPUT_REQUESTS, &standing.input.to_json(asker))),
            ),
        }
    }

    /// `told` with the time to live that the gateway grants.
    pub(crate) fn with_ttl<'a>(&self, told: &'a str) -> Cow<'a, str> {
        match self.ttl {
            Some(ttl) => edit::set(told, "ttlMs", &ttl.to_string()),
            None => Cow::Borrowed(told),
        }
    }

    /// Forwards the client's responses to input requests. Others are ignored.
    ///
    /// > A server SHOULD ignore any `inputResponses` responses mapped to a key that is not currently outstanding for
    /// > the task (SEP-2663, "Task Input Requests")
    pub(crate) fn answer(&self, responses: &Members<'_>, lasting: &Services) {
        self.lock().input.answer(responses);
        self.notify(lasting);
    }

    /// Asks the server to cancel the task. The task may have ended by then, or the server may not support it.
    ///
    /// > A server is not obligated to actually stop the work; it is only obligated to acknowledge the request.
    /// > (SEP-2663, "Task Cancellation")
    ///
    /// # Errors
    ///
    /// When the server cannot be reached.
    pub(crate) async fn cancel(
        &self,
        params: Option<String>,
        lasting: &Services,
    ) -> Result<(), RpcError> {
        if !self.is_over() {
            let cancelled = self.ask_server("tasks/cancel", params, lasting).await?;
            match cancelled {
                Ok(task) => self.receive_status(&task, lasting),
                Err(why) => tracing::debug!(why = why.message(), "task not cancelled"),
            }
        }
        Ok(())
    }

    /// Sends the server a request about the task on its connection. Returns the response.
    async fn ask_server(
        &self,
        method: &'static str,
        params: Option<String>,
        lasting: &Services,
    ) -> Result<Result<String, RpcError>, RpcError> {
        let line = self.connection.upgrade();
        let line =
            line.ok_or_else(|| RpcError::internal("the connection of the task was closed"))?;
        let turn = line.acquire().await?;
        let mut request = Request::new(method, Some(params.unwrap_or_else(|| self.params())));
        // On a dedicated connection all messages belong to the task.
        request.caller = (!self.is_alone).then_some(CallerId(self.client));
        let exchange = line.ready().await?.request(request).await?;
        let answer = self.receive(exchange, lasting).await?;
        drop(turn);
        let outcome = answer.outcome().map(str::to_owned);
        Ok(outcome.map_err(RpcError::from_upstream_or_internal))
    }

    /// The parameters of a request about it.
    fn params(&self) -> String {
        format!(r#"{{"taskId":{}}}"#, json::string(&self.upstream_id))
    }

    /// Handles a server request for the task.
    fn receive_server_request(&self, request: ServerRequest, lasting: &Services) {
        let params = request.params().unwrap_or("{}");
        if let Err(why) = self
            .server_requests
            .ensure_supported(request.method(), params)
        {
            pending_server_requests::refuse(&request, &why);
            return;
        }
        // Dropping the request refuses it.
        if !self.is_over() {
            self.lock().input.add(request);
            self.notify(lasting);
        }
    }

    /// Whether a server request on the client's dedicated connection belongs to this task.
    fn may_belong_to_task(&self, request: &ServerRequest) -> bool {
        match &self.session {
            None => true,
            Some(_) => related_to(request).as_deref() == Some(&*self.upstream_id),
        }
    }

    /// Handles a new status.
    fn receive_status(&self, task: &str, lasting: &Services) {
        let mut standing = self.lock();
        if standing.outcome.is_some() || standing.task == task {
            return;
        }
        task.clone_into(&mut standing.task);
        drop(standing);
        match string(task, "status").as_deref() {
            Some("cancelled") => self.finish(TaskOutcome::Cancelled, lasting),
            // The input requests and the outcome follow separately; clients are notified then.
            Some("working") => self.notify(lasting),
            _ => self.changed.notify_waiters(),
        }
    }

    /// Ends the task.
    fn finish(&self, come_to: TaskOutcome, lasting: &Services) {
        let mut standing = self.lock();
        if standing.outcome.is_some() {
            return;
        }
        standing.outcome = Some(come_to);
        // Dropping the open input requests refuses them.
        let input = std::mem::take(&mut standing.input);
        drop(standing);
        drop(input);
        self.ended.cancel();
        self.notify(lasting);
    }

    /// Notifies the client and all subscribers.
    fn notify(&self, lasting: &Services) {
        self.changed.notify_waiters();
        let _in_order = self.notifying.lock();
        let told = self.to_json(lasting);
        if let Some((session, teller)) = &self.session
            && let Some(session) = lasting
                .hub
                .session(self.client)
                .or_else(|| session.upgrade())
        {
            // A client without an open stream can ask for the status.
            let _ = session
                .enqueue(TaskDialect::Extension.status_notification(&teller.notification(&told)));
        }
        lasting.hub.task_changed(&self.key, &told, None);
    }

    fn lock(&self) -> MutexGuard<'_, TaskState> {
        self.state.lock()
    }
}

impl Drop for ProxiedTask {
    fn drop(&mut self) {
        self.forgotten.cancel();
    }
}

impl TaskState {
    /// The bytes that an ended task takes.
    fn size(&self) -> usize {
        let come_to = match &self.outcome {
            Some(TaskOutcome::Result(text) | TaskOutcome::Error(text)) => text.len(),
            Some(TaskOutcome::Cancelled) => 0,
            None => return 0,
        };
        come_to + self.task.len()
    }
}

/// The server's id of the task that a server request is for.
fn related_to(request: &ServerRequest) -> Option<String> {
    let meta = edit::get(request.params()?, "_meta")?;
    string(edit::get(meta, RELATED_TASK_META)?, "taskId")
}

/// How long to wait for something that is already on its way.
const STATUS_WAIT: Duration = Duration::from_secs(5);
const RESULT_WAIT: Duration = Duration::from_millis(500);
