//! Connections that one client has alone, so that what a server asks on one can only be meant for it.
//!
//! A process, and the stream on which a legacy endpoint speaks on its own, do not say for which call a request is.
//! Clients that can be asked share the catalogue of their class, but make their calls to legacy servers on a
//! connection of their own: a session on one that it keeps, a request without a session on one that it has
//! for as long as it runs.

mod lists;
mod mirror;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use mcp_vary::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

pub(crate) use self::lists::ClientLists;
use self::lists::DedicatedLists;
use crate::pool::dedicated::mirror::Hearsay;
use crate::pool::source::{Source, Updates};
use crate::session::Session;
use crate::session::pending_server_requests::{Question, Questions};
use crate::subscriptions::{Audience, SourceId, line_id};
use crate::tasks::{self, Made, Watches};
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_upstream::UpstreamError;
use mcp_vary_upstream::{
    ConcurrencyLimit, ConnectionState, Event, NotificationSink, ServerFacts, ServerRequest,
    SupervisedConnection, UpstreamConfig, UpstreamConnection,
};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::envelope;
use mcp_vary_wire::era;
use mcp_vary_wire::log_level::is_level_enabled;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::server_request_support::LIST_ROOTS;

/// The connections of all servers that clients have alone.
#[derive(Debug)]
pub(crate) struct OwnLines {
    all: Mutex<BTreeMap<Key, Arc<Own>>>,
    /// Of all servers together.
    limit: usize,
    next: AtomicUsize,
    questions: Arc<Questions>,
    made: Arc<Made>,
    watches: Arc<Watches>,
    audience: Arc<Audience>,
    lists: Arc<ClientLists>,
    tasks: TaskTracker,
}

/// Which server, and for whom.
type Key = (usize, Whose);

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Whose {
    /// For whichever request is next; told apart by a number.
    Any(usize),
    Session(ClientId),
}

/// What it takes to connect to a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Door<'a> {
    /// Tells the servers apart.
    pub(crate) server: usize,
    pub(crate) config: &'a UpstreamConfig,
    /// What its clients can do, JSON text.
    pub(crate) capabilities: &'a str,
    pub(crate) places: &'a Arc<ConcurrencyLimit>,
    pub(crate) learned: &'a Arc<ServerFacts>,
    /// Whether a server of both eras is connected to in that of `initialize`.
    pub(crate) legacy_first: bool,
}

/// One of them.
#[derive(Debug)]
struct Own {
    line: Arc<SupervisedConnection>,
    /// Whether it is the one that its session has for its lists, too.
    is_adopted: bool,
    /// The session, as whoever used it last had it.
    session: watch::Sender<Weak<Session>>,
    /// What it tells of resources, where requests have it by turns.
    hearsay: Option<Arc<Hearsay>>,
    /// What it lists, where the class has its lists from another one.
    lists: Option<Arc<DedicatedLists>>,
    running: AtomicUsize,
    /// How many want it to stay open without anything running on it.
    kept: AtomicUsize,
    used: Mutex<Instant>,
    /// Ends the listening to what belongs to no call.
    _listening: DropGuard,
}

/// A connection of one's own, until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    own: Arc<Own>,
    key: Key,
    lines: Arc<OwnLines>,
    /// Whether the call was answered, so that nothing that comes later is about it.
    is_settled: AtomicBool,
    /// Whether the server may know something of the client that is not so of others.
    is_spent: AtomicBool,
}

impl OwnLines {
    pub(crate) fn new(
        limit: usize,
        questions: Arc<Questions>,
        (made, watches): (Arc<Made>, Arc<Watches>),
        audience: Arc<Audience>,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        Arc::new(Self {
            all: Mutex::default(),
            limit,
            next: AtomicUsize::new(0),
            questions,
            made,
            watches,
            lists: Arc::new(ClientLists::new(Arc::clone(&audience))),
            audience,
            tasks,
        })
    }

    /// What servers list to clients on these connections.
    pub(crate) fn lists(&self) -> &Arc<ClientLists> {
        &self.lists
    }

    /// Has a list read again on the dedicated connections of `client`; whether it is on any.
    pub(crate) fn suspect(&self, client: ClientId, kind: ListKind) -> bool {
        let all = self.lock();
        let lists = all.iter().filter_map(|(key, own)| {
            let lists = own.lists.as_ref()?;
            let is_its = key.1 == Whose::Session(client) || lists.was_leased_to(client);
            is_its.then(|| Arc::clone(lists))
        });
        let lists: Vec<_> = lists.collect();
        drop(all);
        let suspected = lists.iter().filter(|lists| lists.suspect(client, kind));
        suspected.count() > 0
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// A number that no server and no connection has.
    pub(crate) fn number(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The connection of `session` to a server, opened at its first use.
    ///
    /// # Errors
    ///
    /// When all are in use.
    pub(crate) fn of_session(
        self: &Arc<Self>,
        door: &Door<'_>,
        session: &Arc<Session>,
    ) -> Result<Held, RpcError> {
        let key = (door.server, Whose::Session(session.client));
        let mut all = self.lock();
        let known = all.get(&key).cloned();
        // A session that goes on under another configuration may be able to do something else.
        let known = known.filter(|own| own.can(door.capabilities));
        let own = match known {
            Some(own) => own,
            None => self.open(&mut all, key, door)?,
        };
        own.session.send_if_modified(|known| {
            let is_other = !std::ptr::eq(known.as_ptr(), Arc::as_ptr(session));
            if is_other {
                *known = Arc::downgrade(session);
            }
            is_other
        });
        Ok(self.hold(key, own, Some(session.client)))
    }

    /// A connection for one request without a session: a free one, or a new one. One on which
    /// the server lists something to `client` alone is for that client.
    ///
    /// # Errors
    ///
    /// When all are in use.
    pub(crate) fn of_request(
        self: &Arc<Self>,
        door: &Door<'_>,
        client: Option<ClientId>,
    ) -> Result<Held, RpcError> {
        let mut all = self.lock();
        let pool = (door.server, Whose::Any(0))..(door.server, Whose::Any(usize::MAX));
        let pool = all.range(pool);
        let free: Vec<_> = pool
            .filter(|(_, own)| !own.is_used() && own.can(door.capabilities))
            .collect();
        let of_client = free.iter().find(|(_, own)| own.belongs_to(client));
        let found = of_client.or_else(|| free.iter().find(|(_, own)| own.lists_what_all_get()));
        if let Some((key, own)) = found {
            return Ok(self.hold(**key, Arc::clone(own), client));
        }
        let key = (door.server, Whose::Any(self.number()));
        let own = self.open(&mut all, key, door)?;
        Ok(self.hold(key, own, client))
    }

    fn hold(self: &Arc<Self>, key: Key, own: Arc<Own>, client: Option<ClientId>) -> Held {
        if let Some(lists) = &own.lists {
            lists.lease_to(client);
        }
        own.running.fetch_add(1, Ordering::Relaxed);
        Held {
            own,
            key,
            lines: Arc::clone(self),
            is_settled: AtomicBool::new(false),
            is_spent: AtomicBool::new(false),
        }
    }

    fn open(
        self: &Arc<Self>,
        all: &mut BTreeMap<Key, Arc<Own>>,
        key: Key,
        door: &Door<'_>,
    ) -> Result<Arc<Own>, RpcError> {
        let config = door.config;
        all.remove(&key);
        let is_its = |key: &Key| key.0 == door.server;
        let is_crowded = |all: &BTreeMap<Key, Arc<Own>>| {
            let its = all
                .iter()
                .filter(|(key, own)| is_its(key) && !own.is_adopted);
            its.count() >= config.limits.dedicated_connections.max(1)
        };
        let is_full = |all: &BTreeMap<Key, Arc<Own>>| {
            let own = all.values().filter(|own| !own.is_adopted);
            own.count() >= self.limit.max(1)
        };
        if is_crowded(all) {
            make_room(all, is_its);
        }
        if is_full(all) {
            make_room(all, |_| true);
        }
        if is_crowded(all) || is_full(all) {
            warn!(
                server = config.name,
                "no connection for one client alone is left"
            );
            return Err(RpcError::internal(format!(
                "server `{}` has a connection for each client that can be asked something, and all are in use; \
                 try again later",
                config.name
            )));
        }
        let mut config = config
            .clone()
            .with_capabilities(door.capabilities)
            .dedicated();
        config.is_pooled = matches!(key.1, Whose::Any(_));
        config.legacy_first = door.legacy_first;
        let line = SupervisedConnection::open_sharing(
            config,
            Arc::clone(door.places),
            Arc::clone(door.learned),
        );
        debug!(
            server = door.config.name,
            "connection for one client alone opened"
        );
        let own = self.followed(line, key, false);
        all.insert(key, Arc::clone(&own));
        Ok(own)
    }

    /// Takes over a connection that a session has alone anyway, with all that it lists.
    pub(crate) fn adopt(
        self: &Arc<Self>,
        server: usize,
        session: ClientId,
        line: &Arc<SupervisedConnection>,
    ) {
        let key = (server, Whose::Session(session));
        let own = self.followed(Arc::clone(line), key, true);
        self.lock().insert(key, own);
    }

    /// Listens to what belongs to no call, where that can be for anybody: between requests without a session
    /// nobody is there.
    fn followed(&self, line: Arc<SupervisedConnection>, key: Key, is_adopted: bool) -> Arc<Own> {
        let stop = CancellationToken::new();
        let session = watch::Sender::new(Weak::new());
        if matches!(key.1, Whose::Session(_)) {
            let listener = Listener {
                server: line.config().name.as_str().into(),
                session: session.subscribe(),
                questions: Arc::clone(&self.questions),
                made: Arc::clone(&self.made),
                watches: Arc::clone(&self.watches),
                audience: (!is_adopted).then(|| (Arc::clone(&self.audience), line_id(&line))),
                tasks: self.tasks.clone(),
                stop: stop.clone(),
            };
            let listening = listener.listen(line.events());
            let listening = stop.clone().run_until_cancelled_owned(listening);
            self.tasks.spawn(listening);
        }
        let by_turns = matches!(key.1, Whose::Any(_));
        let hearsay = by_turns.then(|| Hearsay::of(&line));
        if let Some(hearsay) = &hearsay {
            let passing = Arc::clone(hearsay).pass_on();
            let passing = stop.clone().run_until_cancelled_owned(passing);
            self.tasks.spawn(passing);
        }
        // A connection that its class lists from is followed by the class.
        let lists = (!is_adopted).then(|| DedicatedLists::new(&line, &self.lists));
        if let Some(lists) = &lists {
            self.tasks.spawn(Arc::clone(lists).watch(stop.clone()));
        }
        // Of one that others use, too, that is told anyway.
        if !is_adopted {
            let server = line.config().name.as_str().into();
            let telling = tasks::follow(server, line.events(), Arc::clone(&self.made), || None);
            self.tasks
                .spawn(stop.clone().run_until_cancelled_owned(telling));
        }
        Arc::new(Own {
            line,
            is_adopted,
            session,
            hearsay,
            lists,
            running: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
            _listening: stop.drop_guard(),
        })
    }

    /// Tells the servers something that a session's client says of itself, on the connections that it has.
    pub(crate) fn tell(&self, session: ClientId, method: &'static str) {
        let all = self.lock();
        let own = all
            .iter()
            .filter(|(key, _)| key.1 == Whose::Session(session));
        // A server that is connected to later asks anyway.
        let connected: Vec<_> = own.filter_map(|(_, own)| own.line.current()).collect();
        drop(all);
        for upstream in connected {
            self.tasks.spawn(async move {
                if let Err(error) = upstream.notify(method, None).await {
                    let (server, error) = (upstream.name(), error.details());
                    debug!(server, method, error, "server not told");
                }
            });
        }
    }

    /// Closes those of a session or client that has ended.
    pub(crate) fn forget(&self, client: ClientId) {
        self.lock()
            .retain(|key, own| key.1 != Whose::Session(client) && !own.belongs_to(Some(client)));
    }

    /// Closes those that nobody has used for a while.
    pub(crate) fn sweep(&self) {
        self.lock().retain(|_, own| {
            let unused = own.line.config().limits.idle_timeout;
            let is_tainted = own.lists.as_ref().is_some_and(|lists| lists.is_tainted());
            let is_listed_from = own.is_adopted && Arc::strong_count(&own.line) > 1;
            let is_recent = !is_tainted && lock(&own.used).elapsed() < unused;
            own.is_used() || is_listed_from || is_recent
        });
    }

    /// Those to a server that is no more; they are no longer kept here.
    pub(crate) fn give_up(&self, server: usize) -> Vec<Arc<SupervisedConnection>> {
        let mut all = self.lock();
        let given_up = all.extract_if(.., |key, _| key.0 == server);
        given_up.map(|(_, own)| Arc::clone(&own.line)).collect()
    }

    /// All that there are; they are no longer kept here.
    pub(crate) fn give_up_all(&self) -> Vec<Arc<SupervisedConnection>> {
        let all = std::mem::take(&mut *self.lock());
        all.into_values().map(|own| Arc::clone(&own.line)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Own>>> {
        lock(&self.all)
    }
}

/// Closes the connection that was not used for longest, of those that `may` be.
fn make_room(all: &mut BTreeMap<Key, Arc<Own>>, may: impl Fn(&Key) -> bool) {
    let is_idle = |own: &Own| !own.is_used() && !own.is_adopted;
    let idle = all.iter().filter(|(key, own)| may(key) && is_idle(own));
    let oldest = idle.min_by_key(|(key, own)| {
        // What no session has gives way first.
        (matches!(key.1, Whose::Session(_)), *lock(&own.used))
    });
    if let Some(key) = oldest.map(|(key, _)| *key) {
        all.remove(&key);
    }
}

impl Own {
    fn is_used(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0 || self.kept.load(Ordering::Relaxed) > 0
    }

    /// It counts as used for so long from now on.
    fn keep_for(&self, time: Duration) {
        let mut used = lock(&self.used);
        *used = used.max(Instant::now() + time);
    }

    fn can(&self, capabilities: &str) -> bool {
        self.line.config().capabilities == capabilities
    }

    /// Whether the server lists there what it lists to all clients of the class, as far as is known.
    fn lists_what_all_get(&self) -> bool {
        let lists = self.lists.as_ref();
        lists.is_none_or(|lists| lists.is_shared())
    }

    /// Whether the server lists something there to `client` alone.
    fn belongs_to(&self, client: Option<ClientId>) -> bool {
        let lists = self.lists.as_ref();
        lists.is_some_and(|lists| lists.belongs_to(client))
    }
}

impl Held {
    pub(crate) fn line(&self) -> &Arc<SupervisedConnection> {
        &self.own.line
    }

    /// The connection; the first time it is waited for as long as a server may take to start.
    pub(crate) async fn ready(&self) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        let line = &self.own.line;
        let is_connecting = || matches!(*line.state().borrow(), ConnectionState::Connecting);
        if line.current().is_none() && is_connecting() {
            let limit = line.config().limits.handshake;
            // How it failed is what `ready` says.
            let _ = tokio::time::timeout(limit, line.first_attempt()).await;
        }
        line.ready().await
    }

    /// What it tells of resources is told to those who listen to them on `class`, for a call that is made now; what
    /// it lists is compared with what that lists.
    pub(crate) async fn tells(&self, class: &Arc<Source>) {
        if let Some(lists) = &self.own.lists {
            lists.compare_with(class);
        }
        if let Some(hearsay) = &self.own.hearsay {
            hearsay.serve(&class.line).await;
        }
    }

    /// Whether its class has it for its lists, too.
    pub(crate) fn is_adopted(&self) -> bool {
        self.own.is_adopted
    }

    /// Lets it stay open after the call.
    pub(crate) fn keep(&self) -> Kept {
        Kept::new(&self.own)
    }

    /// Lets it stay open for so long after the call.
    pub(crate) fn keep_for(&self, time: Duration) {
        self.own.keep_for(time);
    }

    /// Whether other calls of the client run on it.
    pub(crate) fn has_others(&self) -> bool {
        self.own.running.load(Ordering::Relaxed) > 1
    }

    /// The server asks the client something. It keeps roots until it is told that they changed, so that a request of
    /// another client must not be made here after that.
    pub(crate) fn heed(&self, request: &ServerRequest) {
        if request.method() == LIST_ROOTS {
            self.is_spent.store(true, Ordering::Relaxed);
        }
    }

    /// The call was answered.
    pub(crate) fn settle(&self) {
        self.is_settled.store(true, Ordering::Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.own.keep_for(Duration::ZERO);
        self.own.running.fetch_sub(1, Ordering::Relaxed);
        // A server may go on asking for a call that was given up; the next one must not hear it.
        let is_clean =
            self.is_settled.load(Ordering::Relaxed) && !self.is_spent.load(Ordering::Relaxed);
        if matches!(self.key.1, Whose::Any(_)) && !is_clean {
            self.lines.lock().remove(&self.key);
        }
    }
}

/// Keeps a connection of one's own open, until this is dropped.
#[derive(Debug)]
pub(crate) struct Kept(Arc<Own>);

impl Kept {
    fn new(own: &Arc<Own>) -> Self {
        own.kept.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(own))
    }

    pub(crate) fn line(&self) -> &Arc<SupervisedConnection> {
        &self.0.line
    }
}

impl Clone for Kept {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.keep_for(Duration::ZERO);
        self.0.kept.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What hears what belongs to no call on a session's connection, for the session.
#[derive(Clone, Debug)]
struct Listener {
    server: Arc<str>,
    session: watch::Receiver<Weak<Session>>,
    questions: Arc<Questions>,
    made: Arc<Made>,
    watches: Arc<Watches>,
    /// Who hears of its resources, and what the connection is called there. Of one that others use, too, that is
    /// told anyway.
    audience: Option<(Arc<Audience>, SourceId)>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Listener {
    async fn listen(self, mut events: broadcast::Receiver<Event>) {
        loop {
            match events.recv().await {
                // What a task asks that is watched stands in what is said of it.
                Ok(Event::ServerRequest(request))
                    if self.watches.are_asked(&self.server, &request) => {}
                Ok(Event::ServerRequest(request)) => {
                    let asking = self.clone().ask(request);
                    let stop = self.stop.clone();
                    self.tasks.spawn(stop.run_until_cancelled_owned(asking));
                }
                Ok(Event::Notification(message)) => self.tell(message),
                Ok(Event::ResourceUpdated { uri, params }) => {
                    self.tell_updated(&Updates::Some([(uri, params)].into()));
                }
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    self.tell_updated(&Updates::Any);
                    warn!(server = %self.server, missed, "messages of the server were missed");
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    fn tell_updated(&self, updates: &Updates) {
        if let Some((audience, line)) = &self.audience {
            audience.resources_changed_on(*line, updates);
        }
    }

    /// Asks the client, and waits until that is over.
    async fn ask(mut self, request: ServerRequest) {
        // A server may ask before anybody has used the connection.
        let known = async {
            let known = self.session.wait_for(|session| session.strong_count() > 0);
            known.await.ok()?.upgrade()
        };
        let known = tokio::time::timeout(self.questions.patience(), known).await;
        let Ok(Some(session)) = known else {
            return;
        };
        let passed = {
            let names = self.made.names(&self.server, session.client);
            self.questions
                .pass_on(&session, (&self.server, &request), &names)
        };
        if let Some((question, message)) = passed
            && session.tell(message)
        {
            wait(question, &session).await;
        }
    }

    fn tell(&self, message: Bytes) {
        let session = self.session.borrow().upgrade();
        let Some(session) = session else {
            return;
        };
        if let Some(message) = self.for_a_session(message, &session)
            && !session.tell(message)
        {
            debug!(server = %self.server, "notification for a client that does not listen dropped");
        }
    }

    /// A notification that belongs to no call, as the client gets it: lists, resources and requests have ways of
    /// their own.
    fn for_a_session(&self, bytes: Bytes, session: &Session) -> Option<Bytes> {
        let message = envelope::Message::read(&bytes).ok()?;
        let params = message.params.unwrap_or("{}");
        let method = message.method.as_deref()?;
        // That of a task goes on after its call.
        if method == "notifications/progress" {
            let params = self.made.progress(session.client, params)?;
            return Some(era::progress_notification(&params));
        }
        if !is_for_a_session(&bytes, session) {
            return None;
        }
        let names = self.made.names(&self.server, session.client);
        let Cow::Owned(params) = tasks::related(params, &names) else {
            return Some(bytes);
        };
        let method = json::string(method);
        let told = format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#);
        Some(told.into())
    }
}

/// Waits until a question that belongs to no call is over, and takes it back if the client has not answered.
pub(crate) async fn wait(question: Question, session: &Session) {
    question.over().await;
    if let Some(withdrawal) = question.give_up() {
        // Whom it does not reach, the question did not.
        let _ = session.tell(withdrawal);
    }
}

impl NotificationSink for Session {
    fn receive(&self, message: &Bytes) {
        // A copy, since a slice would keep all that was read together with it.
        if is_for_a_session(message, self) && !self.tell(Bytes::copy_from_slice(message)) {
            debug!("notification for a client that does not listen dropped");
        }
    }
}

/// Whether a notification that belongs to no call is for the client: lists, resources and requests have ways of
/// their own.
fn is_for_a_session(message: &[u8], session: &Session) -> bool {
    let Ok(message) = envelope::Message::read(message) else {
        return false;
    };
    match message.method.as_deref() {
        Some("notifications/message") => {
            is_level_enabled(message.params.unwrap_or("{}"), session.log_level())
        }
        Some("notifications/elicitation/complete") => true,
        _ => false,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
