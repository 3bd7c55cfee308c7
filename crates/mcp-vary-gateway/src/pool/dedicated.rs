//! Dedicated connections: each serves one client only.
//!
//! Over stdio, and on the stream that a legacy HTTP server opens by itself, a server request (sampling, elicitation,
//! roots) does not say which call it belongs to. A client that accepts server requests therefore shares the catalog of
//! its class, but calls legacy servers over a connection that no other client uses at the time: a session has one of
//! its own; a request without a session leases one until the response.

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
use crate::pool::dedicated::mirror::SubscriptionMirror;
use crate::pool::source::{ResourceUpdates, ServerSource};
use crate::session::Session;
use crate::session::pending_server_requests::{ForwardedServerRequest, PendingServerRequests};
use crate::subscriptions::{ConnectionId, SubscriptionHub, line_id};
use crate::tasks::{self, ProxiedTasks, TaskRegistry};
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

/// The dedicated connections to all servers.
#[derive(Debug)]
pub(crate) struct DedicatedPool {
    entries: Mutex<BTreeMap<DedicatedKey, Arc<DedicatedConnection>>>,
    /// For all servers together.
    limit: usize,
    next: AtomicUsize,
    pending_server_requests: Arc<PendingServerRequests>,
    task_registry: Arc<TaskRegistry>,
    proxied_tasks: Arc<ProxiedTasks>,
    hub: Arc<SubscriptionHub>,
    lists: Arc<ClientLists>,
    tasks: TaskTracker,
}

/// Identifies a dedicated connection: one server, one owner.
type DedicatedKey = (usize, Owner);

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Owner {
    /// Leased to one request at a time; each has its own number.
    Request(usize),
    Session(ClientId),
}

/// What is needed to connect to a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectSpec<'a> {
    /// The number of the server.
    pub(crate) server: usize,
    pub(crate) config: &'a UpstreamConfig,
    /// The capabilities to declare, JSON text.
    pub(crate) capabilities: &'a str,
    pub(crate) concurrency: &'a Arc<ConcurrencyLimit>,
    pub(crate) learned: &'a Arc<ServerFacts>,
    /// Whether to try `initialize` first on a server of both eras.
    pub(crate) legacy_first: bool,
}

/// One dedicated connection.
#[derive(Debug)]
struct DedicatedConnection {
    line: Arc<SupervisedConnection>,
    /// Whether the class of its session reads its lists on it, too.
    is_adopted: bool,
    /// The session that used it last.
    session: watch::Sender<Weak<Session>>,
    /// Its resource updates, if requests lease it.
    mirror: Option<Arc<SubscriptionMirror>>,
    /// Its lists, if the class reads its lists on another connection.
    lists: Option<Arc<DedicatedLists>>,
    in_use: AtomicUsize,
    /// How many need it open without a running request.
    keep_alive: AtomicUsize,
    used: Mutex<Instant>,
    /// Stops its background tasks when dropped.
    _listening: DropGuard,
}

/// A leased dedicated connection. Dropping it ends the lease.
#[derive(Debug)]
pub(crate) struct DedicatedLease {
    connection: Arc<DedicatedConnection>,
    key: DedicatedKey,
    pool: Arc<DedicatedPool>,
    /// Whether the call was answered, so that no later message belongs to it.
    is_clean: AtomicBool,
    /// Whether the server may have learned something about the client (its roots), so that the connection must not be
    /// leased to another client.
    is_tainted: AtomicBool,
}

impl DedicatedPool {
    pub(crate) fn new(
        limit: usize,
        questions: Arc<PendingServerRequests>,
        (made, watches): (Arc<TaskRegistry>, Arc<ProxiedTasks>),
        audience: Arc<SubscriptionHub>,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        Arc::new(Self {
            entries: Mutex::default(),
            limit,
            next: AtomicUsize::new(0),
            pending_server_requests: questions,
            task_registry: made,
            proxied_tasks: watches,
            lists: Arc::new(ClientLists::new(Arc::clone(&audience))),
            hub: audience,
            tasks,
        })
    }

    /// The lists of clients with dedicated connections.
    pub(crate) fn lists(&self) -> &Arc<ClientLists> {
        &self.lists
    }

    /// Rereads a list on the dedicated connections of `client`. Returns whether there are any.
    pub(crate) fn suspect(&self, client: ClientId, kind: ListKind) -> bool {
        let all = self.lock();
        let lists = all.iter().filter_map(|(key, own)| {
            let lists = own.lists.as_ref()?;
            let is_its = key.1 == Owner::Session(client) || lists.was_leased_to(client);
            is_its.then(|| Arc::clone(lists))
        });
        let lists: Vec<_> = lists.collect();
        drop(all);
        let suspected = lists.iter().filter(|lists| lists.suspect(client, kind));
        suspected.count() > 0
    }

    /// The number of dedicated connections.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// A new number, for a server or a connection.
    pub(crate) fn number(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Leases the session's connection to a server, opening it on first use.
    ///
    /// # Errors
    ///
    /// When all are in use.
    pub(crate) fn lease_for_session(
        self: &Arc<Self>,
        door: &ConnectSpec<'_>,
        session: &Arc<Session>,
    ) -> Result<DedicatedLease, RpcError> {
        let key = (door.server, Owner::Session(session.client));
        let mut all = self.lock();
        let known = all.get(&key).cloned();
        // After a reload, a session can have other capabilities.
        let known = known.filter(|own| own.supports(door.capabilities));
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
        Ok(self.lease(key, own, Some(session.client)))
    }

    /// Leases a connection to a request without a session: an idle one, or a new one. A connection with lists that only
    /// `client` gets is leased to that client only.
    ///
    /// # Errors
    ///
    /// When all are in use.
    pub(crate) fn lease_for_request(
        self: &Arc<Self>,
        door: &ConnectSpec<'_>,
        client: Option<ClientId>,
    ) -> Result<DedicatedLease, RpcError> {
        let mut all = self.lock();
        let pool = (door.server, Owner::Request(0))..(door.server, Owner::Request(usize::MAX));
        let pool = all.range(pool);
        let free: Vec<_> = pool
            .filter(|(_, own)| !own.is_used() && own.supports(door.capabilities))
            .collect();
        let of_client = free.iter().find(|(_, own)| own.belongs_to(client));
        let found = of_client.or_else(|| free.iter().find(|(_, own)| own.lists_what_all_get()));
        if let Some((key, own)) = found {
            return Ok(self.lease(**key, Arc::clone(own), client));
        }
        let key = (door.server, Owner::Request(self.number()));
        let own = self.open(&mut all, key, door)?;
        Ok(self.lease(key, own, client))
    }

    fn lease(
        self: &Arc<Self>,
        key: DedicatedKey,
        own: Arc<DedicatedConnection>,
        client: Option<ClientId>,
    ) -> DedicatedLease {
        if let Some(lists) = &own.lists {
            lists.lease_to(client);
        }
        own.in_use.fetch_add(1, Ordering::Relaxed);
        DedicatedLease {
            connection: own,
            key,
            pool: Arc::clone(self),
            is_clean: AtomicBool::new(false),
            is_tainted: AtomicBool::new(false),
        }
    }

    fn open(
        self: &Arc<Self>,
        all: &mut BTreeMap<DedicatedKey, Arc<DedicatedConnection>>,
        key: DedicatedKey,
        door: &ConnectSpec<'_>,
    ) -> Result<Arc<DedicatedConnection>, RpcError> {
        let config = door.config;
        all.remove(&key);
        let is_its = |key: &DedicatedKey| key.0 == door.server;
        let is_crowded = |all: &BTreeMap<DedicatedKey, Arc<DedicatedConnection>>| {
            let its = all
                .iter()
                .filter(|(key, own)| is_its(key) && !own.is_adopted);
            its.count() >= config.limits.dedicated_connections.max(1)
        };
        let is_full = |all: &BTreeMap<DedicatedKey, Arc<DedicatedConnection>>| {
            let own = all.values().filter(|own| !own.is_adopted);
            own.count() >= self.limit.max(1)
        };
        if is_crowded(all) {
            evict_idle(all, is_its);
        }
        if is_full(all) {
            evict_idle(all, |_| true);
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
        config.is_pooled = matches!(key.1, Owner::Request(_));
        config.legacy_first = door.legacy_first;
        let line = SupervisedConnection::open_sharing(
            config,
            Arc::clone(door.concurrency),
            Arc::clone(door.learned),
        );
        debug!(
            server = door.config.name,
            "connection for one client alone opened"
        );
        let own = self.follow_events(line, key, false);
        all.insert(key, Arc::clone(&own));
        Ok(own)
    }

    /// Adds the connection of a session whose class reads its lists on it, too.
    pub(crate) fn adopt(
        self: &Arc<Self>,
        server: usize,
        session: ClientId,
        line: &Arc<SupervisedConnection>,
    ) {
        let key = (server, Owner::Session(session));
        let own = self.follow_events(Arc::clone(line), key, true);
        self.lock().insert(key, own);
    }

    /// Handles the messages that belong to no call, where there is a session to receive them. Between requests without
    /// a session, there is no client.
    fn follow_events(
        &self,
        line: Arc<SupervisedConnection>,
        key: DedicatedKey,
        is_adopted: bool,
    ) -> Arc<DedicatedConnection> {
        let stop = CancellationToken::new();
        let session = watch::Sender::new(Weak::new());
        if matches!(key.1, Owner::Session(_)) {
            let listener = EventListener {
                server: line.config().name.as_str().into(),
                session: session.subscribe(),
                pending_server_requests: Arc::clone(&self.pending_server_requests),
                task_registry: Arc::clone(&self.task_registry),
                proxied_tasks: Arc::clone(&self.proxied_tasks),
                hub: (!is_adopted).then(|| (Arc::clone(&self.hub), line_id(&line))),
                tasks: self.tasks.clone(),
                stop: stop.clone(),
            };
            let listening = listener.listen(line.events());
            let listening = stop.clone().run_until_cancelled_owned(listening);
            self.tasks.spawn(listening);
        }
        let by_turns = matches!(key.1, Owner::Request(_));
        let hearsay = by_turns.then(|| SubscriptionMirror::of(&line));
        if let Some(hearsay) = &hearsay {
            let passing = Arc::clone(hearsay).forward();
            let passing = stop.clone().run_until_cancelled_owned(passing);
            self.tasks.spawn(passing);
        }
        // If the class reads its lists on the connection, the class follows it.
        let lists = (!is_adopted).then(|| DedicatedLists::new(&line, &self.lists));
        if let Some(lists) = &lists {
            self.tasks.spawn(Arc::clone(lists).watch(stop.clone()));
        }
        // The follower of the class forwards these events.
        if !is_adopted {
            let server = line.config().name.as_str().into();
            let telling = tasks::follow(
                server,
                line.events(),
                Arc::clone(&self.task_registry),
                || None,
            );
            self.tasks
                .spawn(stop.clone().run_until_cancelled_owned(telling));
        }
        Arc::new(DedicatedConnection {
            line,
            is_adopted,
            session,
            mirror: hearsay,
            lists,
            in_use: AtomicUsize::new(0),
            keep_alive: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
            _listening: stop.drop_guard(),
        })
    }

    /// Sends a notification of a session's client to the servers on its dedicated connections.
    pub(crate) fn notify_servers(&self, session: ClientId, method: &'static str) {
        let all = self.lock();
        let own = all
            .iter()
            .filter(|(key, _)| key.1 == Owner::Session(session));
        // A server that connects later asks for the current state.
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

    /// Closes the connections of a session or client that has ended.
    pub(crate) fn close_session(&self, client: ClientId) {
        self.lock()
            .retain(|key, own| key.1 != Owner::Session(client) && !own.belongs_to(Some(client)));
    }

    /// Closes idle connections.
    pub(crate) fn sweep(&self) {
        self.lock().retain(|_, own| {
            let unused = own.line.config().limits.idle_timeout;
            let is_tainted = own.lists.as_ref().is_some_and(|lists| lists.is_tainted());
            let is_listed_from = own.is_adopted && Arc::strong_count(&own.line) > 1;
            let is_recent = !is_tainted && lock(&own.used).elapsed() < unused;
            own.is_used() || is_listed_from || is_recent
        });
    }

    /// Removes and returns the connections to a server that was removed.
    pub(crate) fn close_server(&self, server: usize) -> Vec<Arc<SupervisedConnection>> {
        let mut all = self.lock();
        let given_up = all.extract_if(.., |key, _| key.0 == server);
        given_up.map(|(_, own)| Arc::clone(&own.line)).collect()
    }

    /// Removes and returns all connections.
    pub(crate) fn close_all(&self) -> Vec<Arc<SupervisedConnection>> {
        let all = std::mem::take(&mut *self.lock());
        all.into_values().map(|own| Arc::clone(&own.line)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<DedicatedKey, Arc<DedicatedConnection>>> {
        lock(&self.entries)
    }
}

/// Closes the connection that has been idle longest, of those for which `may` returns true.
fn evict_idle(
    all: &mut BTreeMap<DedicatedKey, Arc<DedicatedConnection>>,
    may: impl Fn(&DedicatedKey) -> bool,
) {
    let is_idle = |own: &DedicatedConnection| !own.is_used() && !own.is_adopted;
    let idle = all.iter().filter(|(key, own)| may(key) && is_idle(own));
    let oldest = idle.min_by_key(|(key, own)| {
        // Connections without a session are closed first.
        (matches!(key.1, Owner::Session(_)), *lock(&own.used))
    });
    if let Some(key) = oldest.map(|(key, _)| *key) {
        all.remove(&key);
    }
}

impl DedicatedConnection {
    fn is_used(&self) -> bool {
        self.in_use.load(Ordering::Relaxed) > 0 || self.keep_alive.load(Ordering::Relaxed) > 0
    }

    /// Counts as used for this long from now on.
    fn keep_for(&self, time: Duration) {
        let mut used = lock(&self.used);
        *used = used.max(Instant::now() + time);
    }

    fn supports(&self, capabilities: &str) -> bool {
        self.line.config().capabilities == capabilities
    }

    /// Whether the lists are those of the whole class, as far as is known.
    fn lists_what_all_get(&self) -> bool {
        let lists = self.lists.as_ref();
        lists.is_none_or(|lists| lists.is_shared())
    }

    /// Whether the lists are for `client` only.
    fn belongs_to(&self, client: Option<ClientId>) -> bool {
        let lists = self.lists.as_ref();
        lists.is_some_and(|lists| lists.belongs_to(client))
    }
}

impl DedicatedLease {
    pub(crate) fn line(&self) -> &Arc<SupervisedConnection> {
        &self.connection.line
    }

    /// The connection. The first use waits as long as a server may take to start.
    pub(crate) async fn ready(&self) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        let line = &self.connection.line;
        let is_connecting = || matches!(*line.state().borrow(), ConnectionState::Connecting);
        if line.current().is_none() && is_connecting() {
            let limit = line.config().limits.handshake;
            // `ready` returns the error.
            let _ = tokio::time::timeout(limit, line.first_attempt()).await;
        }
        line.ready().await
    }

    /// Before a call: forwards its resource updates to the subscribers on `class`, and compares its lists with those of
    /// `class`.
    pub(crate) async fn mirror_subscriptions(&self, class: &Arc<ServerSource>) {
        if let Some(lists) = &self.connection.lists {
            lists.compare_with(class);
        }
        if let Some(hearsay) = &self.connection.mirror {
            hearsay.serve(&class.connection).await;
        }
    }

    /// Whether the class reads its lists on it, too.
    pub(crate) fn is_adopted(&self) -> bool {
        self.connection.is_adopted
    }

    /// Keeps it open after the call.
    pub(crate) fn keep_alive(&self) -> KeepAliveLease {
        KeepAliveLease::new(&self.connection)
    }

    /// Keeps it open for this long after the call.
    pub(crate) fn keep_for(&self, time: Duration) {
        self.connection.keep_for(time);
    }

    /// Whether other calls of the client are running on it.
    pub(crate) fn has_others(&self) -> bool {
        self.connection.in_use.load(Ordering::Relaxed) > 1
    }

    /// Notes a server request. A server remembers the roots of a client until they change, so the connection must not
    /// be leased to another client afterwards.
    pub(crate) fn note_request(&self, request: &ServerRequest) {
        if request.method() == LIST_ROOTS {
            self.is_tainted.store(true, Ordering::Relaxed);
        }
    }

    /// The call was answered.
    pub(crate) fn mark_clean(&self) {
        self.is_clean.store(true, Ordering::Relaxed);
    }
}

impl Drop for DedicatedLease {
    fn drop(&mut self) {
        self.connection.keep_for(Duration::ZERO);
        self.connection.in_use.fetch_sub(1, Ordering::Relaxed);
        // A server may continue to send requests for a cancelled call. The next call must not receive them.
        let is_clean =
            self.is_clean.load(Ordering::Relaxed) && !self.is_tainted.load(Ordering::Relaxed);
        if matches!(self.key.1, Owner::Request(_)) && !is_clean {
            self.pool.lock().remove(&self.key);
        }
    }
}

/// Keeps a dedicated connection open until it is dropped.
#[derive(Debug)]
pub(crate) struct KeepAliveLease(Arc<DedicatedConnection>);

impl KeepAliveLease {
    fn new(own: &Arc<DedicatedConnection>) -> Self {
        own.keep_alive.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(own))
    }

    pub(crate) fn line(&self) -> &Arc<SupervisedConnection> {
        &self.0.line
    }
}

impl Clone for KeepAliveLease {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for KeepAliveLease {
    fn drop(&mut self) {
        self.0.keep_for(Duration::ZERO);
        self.0.keep_alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Handles the messages on a session's connection that belong to no call.
#[derive(Clone, Debug)]
struct EventListener {
    server: Arc<str>,
    session: watch::Receiver<Weak<Session>>,
    pending_server_requests: Arc<PendingServerRequests>,
    task_registry: Arc<TaskRegistry>,
    proxied_tasks: Arc<ProxiedTasks>,
    /// Who hears of its resources, and what the connection is called there. Of one that others use, too, that is
    /// told anyway.
    hub: Option<(Arc<SubscriptionHub>, ConnectionId)>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl EventListener {
    async fn listen(self, mut events: broadcast::Receiver<Event>) {
        loop {
            match events.recv().await {
                // A proxied task reports its input requests in its status.
                Ok(Event::ServerRequest(request))
                    if self.proxied_tasks.has_recipient(&self.server, &request) => {}
                Ok(Event::ServerRequest(request)) => {
                    let asking = self.clone().forward_server_request(request);
                    let stop = self.stop.clone();
                    self.tasks.spawn(stop.run_until_cancelled_owned(asking));
                }
                Ok(Event::Notification(message)) => self.publish(message),
                Ok(Event::ResourceUpdated { uri, params }) => {
                    self.publish_updated(&ResourceUpdates::Some([(uri, params)].into()));
                }
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    self.publish_updated(&ResourceUpdates::Any);
                    warn!(server = %self.server, missed, "messages of the server were missed");
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    fn publish_updated(&self, updates: &ResourceUpdates) {
        if let Some((audience, line)) = &self.hub {
            audience.resources_changed_on(*line, updates);
        }
    }

    /// Forwards the request to the client, and waits for the response.
    async fn forward_server_request(mut self, request: ServerRequest) {
        // A server may send a request before the connection is used.
        let known = async {
            let known = self.session.wait_for(|session| session.strong_count() > 0);
            known.await.ok()?.upgrade()
        };
        let known = tokio::time::timeout(self.pending_server_requests.timeout(), known).await;
        let Ok(Some(session)) = known else {
            return;
        };
        let passed = {
            let names = self.task_registry.names(&self.server, session.client);
            self.pending_server_requests
                .forward(&session, (&self.server, &request), &names)
        };
        if let Some((question, message)) = passed
            && session.enqueue(message)
        {
            wait(question, &session).await;
        }
    }

    fn publish(&self, message: Bytes) {
        let session = self.session.borrow().upgrade();
        let Some(session) = session else {
            return;
        };
        if let Some(message) = self.for_a_session(message, &session)
            && !session.enqueue(message)
        {
            debug!(server = %self.server, "notification for a client that does not listen dropped");
        }
    }

    /// The notification for the client; none for lists, resources and requests, which are handled elsewhere.
    fn for_a_session(&self, bytes: Bytes, session: &Session) -> Option<Bytes> {
        let message = envelope::Message::read(&bytes).ok()?;
        let params = message.params.unwrap_or("{}");
        let method = message.method.as_deref()?;
        // Progress of a task continues after its call.
        if method == "notifications/progress" {
            let params = self.task_registry.progress(session.client, params)?;
            return Some(era::progress_notification(&params));
        }
        if !is_for_a_session(&bytes, session) {
            return None;
        }
        let names = self.task_registry.names(&self.server, session.client);
        let Cow::Owned(params) = tasks::related(params, &names) else {
            return Some(bytes);
        };
        let method = json::string(method);
        let told = format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#);
        Some(told.into())
    }
}

/// Waits until a server request that belongs to no call is answered, and cancels it if the client does not respond.
pub(crate) async fn wait(question: ForwardedServerRequest, session: &Session) {
    question.over().await;
    if let Some(withdrawal) = question.cancel() {
        // If the client does not receive the cancellation, it did not receive the request.
        let _ = session.enqueue(withdrawal);
    }
}

impl NotificationSink for Session {
    fn receive(&self, message: &Bytes) {
        // Copied, since a slice would keep the whole read buffer alive.
        if is_for_a_session(message, self) && !self.enqueue(Bytes::copy_from_slice(message)) {
            debug!("notification for a client that does not listen dropped");
        }
    }
}

/// Whether a notification that belongs to no call is for the client. Lists, resources and requests are handled
/// elsewhere.
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
