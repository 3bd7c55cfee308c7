//! Tasks of servers of the core form that clients of the extension had made.
//!
//! In the core form what a task asks, and what it comes to, reaches only whoever waits for its result. In the
//! extension nobody waits: both stand in what is said of the task. So the gateway [waits](road), and knows what to say.

mod connection;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use mcp_vary::json::{self, Members};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Forms, Key, RESULT, Teller, lifetime, string};
use crate::mrtr::{INPUT_REQUESTS, InputRequests, Quota, QuotaKey};
use crate::pipeline::runtime::Services;
use crate::session::Session;
use crate::session::pending_server_requests;
use crate::tasks::MARK;
pub(crate) use crate::tasks::proxy::connection::{Allowed, Road};
use mcp_vary::json::edit;
use mcp_vary_upstream::{CallerId, Request, ServerRequest, SupervisedConnection};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::response::{INTERNAL_ERROR, INVALID_PARAMS, RpcError};
use mcp_vary_wire::server_request_support::ServerRequestSupport;
use mcp_vary_wire::task_dialect::{RELATED_TASK_META, TaskDialect};

/// The tasks that are watched, and what those came to that are over.
///
/// # Properties
///
/// Bounded: in how many the servers work on, in all and for each principal, in how many there are, and in the bytes
/// of what is kept of those that are over, of which the oldest give way. None stays for longer than its time.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    next: AtomicU64,
    all: Mutex<BTreeMap<Key, Arc<Watched>>>,
}

/// One task.
#[derive(Debug)]
pub(crate) struct Watched {
    /// The server, and the task by the id that its client's is made of.
    key: Key,
    /// What the server calls it.
    own: Arc<str>,
    /// In the order in which they were made.
    number: u64,
    whose: QuotaKey,
    client: ClientId,
    askable: ServerRequestSupport,
    /// The client's session, if it has one, and how that is told of the task.
    session: Option<(Weak<Session>, Teller)>,
    /// The connection that it was made on.
    line: Weak<SupervisedConnection>,
    is_alone: bool,
    /// It is forgotten after this long.
    lifetime: Duration,
    /// The same in milliseconds, where its server would keep it for longer.
    ttl: Option<u128>,
    standing: Mutex<Standing>,
    /// Keeps what is told in order.
    telling: Mutex<()>,
    changed: Notify,
    over: CancellationToken,
    /// Cancelled when nobody has it any more.
    forgotten: CancellationToken,
}

/// How a task stands.
#[derive(Debug)]
struct Standing {
    /// What the server said of it last, JSON text.
    task: String,
    /// What it asks.
    input: InputRequests,
    come_to: Option<ComeTo>,
}

/// What a task came to, as the server said it.
#[derive(Debug)]
enum ComeTo {
    Result(String),
    Error(String),
    Cancelled,
}

impl ComeTo {
    /// Nobody knows what it came to, and why.
    fn failed(why: &str) -> Self {
        let why = json::string(why);
        Self::Error(format!(r#"{{"code":{INTERNAL_ERROR},"message":{why}}}"#))
    }

    fn gone(why: &str) -> Self {
        Self::failed(&format!("{why}, and its task is gone"))
    }
}

/// Who had a task made.
#[derive(Debug)]
pub(crate) struct Maker {
    pub(crate) whose: QuotaKey,
    pub(crate) client: ClientId,
    pub(crate) askable: ServerRequestSupport,
    pub(crate) session: Option<(Weak<Session>, Teller)>,
}

/// The forms of every task here.
pub(crate) const CROSSED: Forms = Forms {
    client: TaskDialect::Extension,
    server: TaskDialect::Core,
};

impl Watches {
    /// What an id is begun with that no other task has.
    pub(crate) fn mark(&self, lasting: &Services) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{MARK}{:x}.{number:x}{MARK}", lasting.instance)
    }

    /// How many the servers work on.
    pub(crate) fn count(&self) -> usize {
        let all = self.lock();
        all.values().filter(|it| !it.is_over()).count()
    }

    /// Whether what a server asks is for a task of a session's that is watched.
    pub(crate) fn are_asked(&self, server: &str, request: &ServerRequest) -> bool {
        let Some(own) = related_to(request) else {
            return false;
        };
        let is_its = |it: &Arc<Watched>| {
            *it.key.0 == *server && *it.own == *own && it.session.is_some() && !it.is_over()
        };
        self.lock().values().any(is_its)
    }

    /// The task of a key.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Watched>> {
        self.lock().get(key).cloned()
    }

    /// Takes in a task; the one that is known by its key, if there is one.
    fn put(&self, watched: &Arc<Watched>, bounds: Quota) -> Result<Arc<Watched>, RpcError> {
        let mut all = self.lock();
        if let Some(known) = all.get(&watched.key) {
            return Ok(Arc::clone(known));
        }
        let working = all.values().filter(|it| !it.is_over());
        let (mut in_all, mut of_one) = (0, 0);
        for other in working {
            in_all += 1;
            of_one += usize::from(other.whose == watched.whose);
        }
        if in_all >= bounds.total || of_one >= bounds.per_principal {
            return Err(RpcError::internal(
                "it is a task of the server, and too many are waited for already; try again later",
            ));
        }
        all.insert(watched.key.clone(), Arc::clone(watched));
        make_room(&mut all, |all| all.len() <= MOST);
        Ok(Arc::clone(watched))
    }

    /// Lets the oldest that are over give way to what is kept of the others.
    fn make_room(&self, bytes: usize) {
        let kept = |all: &BTreeMap<Key, Arc<Watched>>| {
            let sizes = all.values().map(|it| it.lock().size());
            sizes.sum::<usize>()
        };
        make_room(&mut self.lock(), |all| kept(all) <= bytes);
    }

    fn forget(&self, watched: &Arc<Watched>) {
        let mut all = self.lock();
        if all
            .get(&watched.key)
            .is_some_and(|it| Arc::ptr_eq(it, watched))
        {
            all.remove(&watched.key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Watched>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes out the oldest that are over until there `is_room`.
fn make_room(
    all: &mut BTreeMap<Key, Arc<Watched>>,
    is_room: impl Fn(&BTreeMap<Key, Arc<Watched>>) -> bool,
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
const MOST: usize = 4096;
/// One result may have so much of the bytes of all.
const SHARE: usize = 4;

impl Watched {
    /// Watches the task `task`, as its server of the core form says it, on the way that it was made on.
    ///
    /// # Errors
    ///
    /// When too many are worked on; a task that was made just now is cancelled then.
    pub(crate) fn begin(
        (key, own): (Key, &str),
        task: &str,
        maker: Maker,
        road: Road,
        lasting: &Arc<Services>,
    ) -> Result<Arc<Self>, RpcError> {
        let said = lifetime(edit::get(task, "ttl")).filter(|said| *said <= road.lifetime);
        let watched = Arc::new(Self {
            ttl: said.is_none().then_some(road.lifetime.as_millis()),
            lifetime: said.unwrap_or(road.lifetime),
            key,
            own: own.into(),
            number: lasting.proxied_tasks.next.fetch_add(1, Ordering::Relaxed),
            whose: maker.whose,
            client: maker.client,
            askable: maker.askable,
            session: maker.session,
            line: Arc::downgrade(road.line()),
            is_alone: road.is_alone(),
            standing: Mutex::new(Standing {
                task: task.to_owned(),
                input: InputRequests::default(),
                come_to: None,
            }),
            telling: Mutex::default(),
            changed: Notify::new(),
            over: CancellationToken::new(),
            forgotten: CancellationToken::new(),
        });
        let put = lasting.proxied_tasks.put(&watched, road.bounds);
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
        self.over.is_cancelled()
    }

    /// How it stands, in the form of the extension and with the server's own id, JSON text: `params` ask its server.
    ///
    /// # Errors
    ///
    /// What the server says instead, or why it cannot be asked.
    pub(crate) async fn stands(
        &self,
        params: String,
        lasting: &Services,
    ) -> Result<String, RpcError> {
        if !self.has_something_to_say() {
            match self.ask_server("tasks/get", Some(params), lasting).await? {
                Ok(task) => {
                    self.said(&task, lasting);
                    self.settle().await;
                }
                // The server keeps it no longer: it may have let go of it with the result.
                Err(why) if why.code() == INVALID_PARAMS => {
                    self.wait_for_more(A_MOMENT).await;
                    self.came_to(ComeTo::gone(why.message()), lasting);
                }
                Err(why) => return Err(why),
            }
        }
        Ok(self.to_json(lasting))
    }

    /// Whether what it asks, or what it came to, is known already.
    fn has_something_to_say(&self) -> bool {
        let mut standing = self.lock();
        standing.input.forget_settled();
        standing.come_to.is_some() || !standing.input.is_empty()
    }

    /// The server says that there is something to say, which may come by another way: a moment is waited for it.
    async fn settle(&self) {
        let patience = match string(&self.lock().task, "status").as_deref() {
            Some("completed" | "failed") => A_MOMENT,
            // It may be about what was answered or refused already.
            Some("input_required") => A_BLINK,
            _ => return,
        };
        self.wait_for_more(patience).await;
    }

    /// Waits until what it asks, or what it came to, is known, but not for longer than `patience`.
    async fn wait_for_more(&self, patience: Duration) {
        let waited = async {
            loop {
                let changed = self.changed.notified();
                if self.has_something_to_say() {
                    return;
                }
                changed.await;
            }
        };
        let _ = tokio::time::timeout(patience, waited).await;
    }

    /// As `tasks/get` of the extension says it.
    fn to_json(&self, lasting: &Services) -> String {
        let asker = lasting.pending_server_requests.asker(&self.key.0);
        let standing = self.lock();
        let told = CROSSED.told(&standing.task).into_owned();
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
        match &standing.come_to {
            Some(ComeTo::Result(result)) => set("completed", Some((RESULT, result))),
            Some(ComeTo::Error(error)) => set("failed", Some(("error", error))),
            Some(ComeTo::Cancelled) => set("cancelled", None),
            None if standing.input.is_empty() => set("working", None),
            None => set(
                "input_required",
                Some((INPUT_REQUESTS, &standing.input.to_json(asker))),
            ),
        }
    }

    /// What is said of it, with the time after which it is gone.
    pub(crate) fn with_ttl<'a>(&self, told: &'a str) -> Cow<'a, str> {
        match self.ttl {
            Some(ttl) => edit::set(told, "ttlMs", &ttl.to_string()),
            None => Cow::Borrowed(told),
        }
    }

    /// Passes on what its client says to what was asked; what nobody asked is ignored.
    ///
    /// > A server SHOULD ignore any `inputResponses` responses mapped to a key that is not currently outstanding for
    /// > the task (SEP-2663, "Task Input Requests")
    pub(crate) fn answer(&self, responses: &Members<'_>, lasting: &Services) {
        self.lock().input.answer(responses);
        self.tell(lasting);
    }

    /// Tells the server that the task is not wanted any more. It may be over by then, or the server may not know how
    /// to end it.
    ///
    /// > A server is not obligated to actually stop the work; it is only obligated to acknowledge the request.
    /// > (SEP-2663, "Task Cancellation")
    ///
    /// # Errors
    ///
    /// When the server cannot be asked.
    pub(crate) async fn cancel(
        &self,
        params: Option<String>,
        lasting: &Services,
    ) -> Result<(), RpcError> {
        if !self.is_over() {
            let cancelled = self.ask_server("tasks/cancel", params, lasting).await?;
            match cancelled {
                Ok(task) => self.said(&task, lasting),
                Err(why) => tracing::debug!(why = why.message(), "task not cancelled"),
            }
        }
        Ok(())
    }

    /// Asks the server about it, on the connection that it was made on; what it answers.
    async fn ask_server(
        &self,
        method: &'static str,
        params: Option<String>,
        lasting: &Services,
    ) -> Result<Result<String, RpcError>, RpcError> {
        let line = self.line.upgrade();
        let line =
            line.ok_or_else(|| RpcError::internal("the connection of the task was closed"))?;
        let turn = line.acquire().await?;
        let mut request = Request::new(method, Some(params.unwrap_or_else(|| self.params())));
        // On a connection that is its own whatever comes is about the task.
        request.caller = (!self.is_alone).then_some(CallerId(self.client));
        let exchange = line.ready().await?.request(request).await?;
        let answer = self.heard(exchange, lasting).await?;
        drop(turn);
        let outcome = answer.outcome().map(str::to_owned);
        Ok(outcome.map_err(RpcError::from_upstream_or_internal))
    }

    /// The parameters of a request about it.
    fn params(&self) -> String {
        format!(r#"{{"taskId":{}}}"#, json::string(&self.own))
    }

    /// The server asks something for it.
    fn asked(&self, request: ServerRequest, lasting: &Services) {
        let params = request.params().unwrap_or("{}");
        if let Err(why) = self.askable.ensure_supported(request.method(), params) {
            pending_server_requests::refuse(&request, &why);
            return;
        }
        // Of one that is over nothing is asked; dropped, it is refused.
        if !self.is_over() {
            self.lock().input.add(request);
            self.tell(lasting);
        }
    }

    /// Whether what a server asks on the connection that its client has alone is for this task.
    fn may_be_for_it(&self, request: &ServerRequest) -> bool {
        match &self.session {
            None => true,
            Some(_) => related_to(request).as_deref() == Some(&*self.own),
        }
    }

    /// The server says how it stands.
    fn said(&self, task: &str, lasting: &Services) {
        let mut standing = self.lock();
        if standing.come_to.is_some() || standing.task == task {
            return;
        }
        task.clone_into(&mut standing.task);
        drop(standing);
        match string(task, "status").as_deref() {
            Some("cancelled") => self.came_to(ComeTo::Cancelled, lasting),
            // What it asks and what it came to is told when it is known.
            Some("working") => self.tell(lasting),
            _ => self.changed.notify_waiters(),
        }
    }

    /// It is over.
    fn came_to(&self, come_to: ComeTo, lasting: &Services) {
        let mut standing = self.lock();
        if standing.come_to.is_some() {
            return;
        }
        standing.come_to = Some(come_to);
        // What is still asked is refused.
        let input = std::mem::take(&mut standing.input);
        drop(standing);
        drop(input);
        self.over.cancel();
        self.tell(lasting);
    }

    /// Tells whoever hears of it how it stands.
    fn tell(&self, lasting: &Services) {
        self.changed.notify_waiters();
        let _in_order = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        let told = self.to_json(lasting);
        if let Some((session, teller)) = &self.session
            && let Some(session) = lasting
                .hub
                .session(self.client)
                .or_else(|| session.upgrade())
        {
            // Whoever does not read now may ask how the task stands.
            let _ = session.tell(TaskDialect::Extension.status_notification(&teller.told(&told)));
        }
        lasting.hub.task_changed(&self.key, &told, None);
    }

    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.forgotten.cancel();
    }
}

impl Standing {
    /// The bytes that are kept of one that is over.
    fn size(&self) -> usize {
        let come_to = match &self.come_to {
            Some(ComeTo::Result(text) | ComeTo::Error(text)) => text.len(),
            Some(ComeTo::Cancelled) => 0,
            None => return 0,
        };
        come_to + self.task.len()
    }
}

/// The server's id of the task for which it asks something.
fn related_to(request: &ServerRequest) -> Option<String> {
    let meta = edit::get(request.params()?, "_meta")?;
    string(edit::get(meta, RELATED_TASK_META)?, "taskId")
}

/// For what is known already, and on its way.
const A_MOMENT: Duration = Duration::from_secs(5);
const A_BLINK: Duration = Duration::from_millis(500);
