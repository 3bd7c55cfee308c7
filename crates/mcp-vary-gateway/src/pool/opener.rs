//! Opens classes: connects to the servers, and waits until their lists are known.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use mcp_vary_catalog::layout::Layout;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_upstream::SupervisedConnection;
use tokio::time::Instant;
use tracing::info;

use super::classes::access::AccessControl;
use super::classes::class::{CapabilityClass, ClassSpec};
use super::classes::table::{ClassCell, ClassMap};
use super::classes::usage::ClassUsage;
use super::connections::server::{NoRoom, PooledServer};
use super::connections::servers::Servers;
use super::dedicated::DedicatedPool;
use super::lists::observer::PoolContext;
use super::lists::source;
use mcp_vary_session::PoolKey;

/// Opens the classes of one configuration.
#[derive(Debug)]
pub(super) struct ClassOpener {
    pub(super) servers: Arc<Servers>,
    /// The class of clients without special capabilities.
    pub(super) base: Arc<CapabilityClass>,
    pub(super) classes: ClassMap,
    pub(super) layout: Layout,
    pub(super) access: Option<Arc<AccessControl>>,
    /// The longest wait for servers in a new class.
    pub(super) start_wait: Duration,
    /// When the gateway was started; `None` after a reload.
    pub(super) started: Option<Instant>,
    pub(super) context: PoolContext,
    pub(super) dedicated: Arc<DedicatedPool>,
}

impl ClassOpener {
    /// The longest wait for the first lists of a class. Clients of the gateway's start have waited already.
    pub(super) fn list_wait(&self) -> Duration {
        let started = self.started;
        let is_start = started.is_some_and(|started| started.elapsed() < 2 * self.start_wait);
        let wait = self.start_wait / if is_start { 4 } else { 1 };
        self.servers.ready_timeout().min(wait)
    }

    /// The class of `key` in its `cell`, opened if it is not open yet. A server without room is waited for; without
    /// `wait`, nothing is evicted for it either. `room` is held until the class is open.
    ///
    /// A client that gives up leaves the task that opens the class, so that its next request finds it. `None` if the gateway stops.
    pub(super) async fn open_in(
        self: &Arc<Self>,
        key: &PoolKey,
        cell: Arc<ClassCell>,
        wait: Option<Duration>,
        room: Vec<Arc<SupervisedConnection>>,
    ) -> Option<Arc<CapabilityClass>> {
        if cell.begin() {
            let (opener, key, opening) = (Arc::clone(self), key.clone(), Arc::clone(&cell));
            let opening = async move {
                opening.set(opener.open(&key, wait).await);
                opener.classes.publish();
                drop(room);
            };
            let shutdown = self.context.shutdown.clone();
            let tasks = &self.context.background_tasks;
            tasks.spawn(shutdown.run_until_cancelled_owned(opening));
        }
        let opened = self.context.shutdown.run_until_cancelled(cell.opened());
        let class = opened.await?;
        class.connections.note_use();
        Some(class)
    }

    async fn open(&self, key: &PoolKey, wait: Option<Duration>) -> Arc<CapabilityClass> {
        let deadline = Instant::now() + self.list_wait();
        let outdated = self.classes.outdated(key);
        let inherited = self.classes.inherited(key);
        let connections = self.connections(key, wait, deadline).await;
        let outdated_connections = outdated.as_ref().map(|it| Arc::clone(&it.connections));
        let previous: Vec<_> = inherited.into_iter().chain(outdated_connections).collect();
        let usage = previous.first().map(|first| Arc::clone(&first.usage));
        let followers = previous.iter().flat_map(|previous| &previous.followers);
        let base = &self.base.connections.followers;
        // Clients of the other era may share the connection.
        let others = self.classes.followers();
        let known: Vec<_> = followers.chain(base).cloned().chain(others).collect();
        let spec = ClassSpec {
            capabilities: Arc::clone(&key.capabilities),
            connections,
            shared_lists: self.servers.shared_lists(&self.context),
            known: &known,
            usage: usage.unwrap_or_else(|| Arc::new(ClassUsage::now())),
            layout: self.layout_of(key),
        };
        let class = CapabilityClass::open(spec, &self.context).await;
        self.classes.remove_previous(key);
        let capabilities = &*key.capabilities;
        let is_isolated = key.is_isolated();
        info!(capabilities, is_isolated, "class of clients opened");
        self.first_readings(&class, deadline).await;
        self.show_known_lists(&class).await;
        class.catalog.publish().await;
        if let Some(outdated) = outdated {
            let lists = self.dedicated.lists();
            lists.replace_class(&outdated, &class).await;
        }
        class
    }

    /// How the lists of a class are shown: access rules hide items from each variant.
    fn layout_of(&self, key: &PoolKey) -> Layout {
        let mut layout = self.layout.clone();
        if let (Some(control), Some(access)) = (&self.access, &key.access) {
            layout.variants = layout.variants.restricted(&control.view_of(access));
        }
        layout
    }

    /// Waits until each server's lists were read for a new class. It does not wait for a server that has neither
    /// connected nor failed yet: its lists arrive later.
    async fn first_readings(&self, class: &CapabilityClass, deadline: Instant) {
        let pairs = class.sources().iter().zip(self.base.sources());
        let ready = pairs.filter(|(_, base)| !base.is_starting());
        let started: Vec<_> = ready.map(|(source, _)| Arc::clone(source)).collect();
        let limit = deadline.saturating_duration_since(Instant::now());
        source::first_readings(&started, limit).await;
    }

    /// Shows a new class the lists of the base class for servers that it is not connected to yet. Calls wait for the
    /// connection; differences are announced once it is open.
    async fn show_known_lists(&self, class: &CapabilityClass) {
        let mut is_any_shown = false;
        for (source, base) in class.sources().iter().zip(self.base.sources()) {
            is_any_shown |= source.lists().show_until_connected(base.snapshot());
            is_any_shown |= source.refusal().is_some();
        }
        if is_any_shown {
            class.catalog.rebuild(&ListKind::ALL.into()).await;
        }
    }

    /// The connections of a class to all servers.
    async fn connections(
        &self,
        key: &PoolKey,
        wait: Option<Duration>,
        deadline: Instant,
    ) -> Vec<Arc<SupervisedConnection>> {
        let servers = self.servers.iter();
        let undecided: Vec<_> = servers.map(|server| server.is_undecided(key.era)).collect();
        let connections = self.connections_with_room(key, wait).await;
        if !undecided.contains(&true) {
            return connections;
        }
        let pairs = std::iter::zip(&connections, undecided);
        let opening = pairs.filter(|(_, is_undecided)| *is_undecided);
        let attempts = opening.map(|(connection, _)| connection.first_attempt());
        // A server that does not support the era is shared with clients of the other one.
        let _ = tokio::time::timeout_at(deadline, join_all(attempts)).await;
        self.connections_with_room(key, wait).await
    }

    /// A connection to each server. A server that has no room within `wait` is left out.
    async fn connections_with_room(
        &self,
        key: &PoolKey,
        wait: Option<Duration>,
    ) -> Vec<Arc<SupervisedConnection>> {
        let deadline = Instant::now() + wait.unwrap_or_default();
        let connect = |server: &Arc<PooledServer>| self.connection(server, key, wait.is_some());
        let mut connections: Vec<_> = self.servers.iter().map(connect).collect();
        loop {
            let mut pairs = connections.iter().zip(self.servers.iter());
            let is_full = pairs.any(|(it, server)| it.is_err() && server.can_evict());
            let now = Instant::now();
            if !is_full || now >= deadline {
                break;
            }
            tokio::time::sleep((deadline - now).min(ROOM_PAUSE)).await;
            let missing = connections.iter_mut().zip(self.servers.iter());
            for (connection, server) in missing.filter(|(connection, _)| connection.is_err()) {
                *connection = connect(server);
            }
        }
        let pairs = connections.into_iter().zip(self.servers.iter());
        let connections = pairs.map(|(it, server)| it.unwrap_or_else(|room| server.left_out(room)));
        connections.collect()
    }

    /// Connections to the servers that were left out of `class`, as far as there is room by now.
    pub(super) fn room_for(
        &self,
        class: &CapabilityClass,
        key: &PoolKey,
    ) -> Vec<Arc<SupervisedConnection>> {
        let servers = class.left_out.iter().map(|index| self.servers.get(*index));
        let connections = servers.filter_map(|server| self.connection(server, key, true).ok());
        connections.collect()
    }

    /// The connection of a class to `server`.
    ///
    /// # Errors
    ///
    /// When there is no room, and nothing idle that may be evicted.
    fn connection(
        &self,
        server: &PooledServer,
        key: &PoolKey,
        may_evict: bool,
    ) -> Result<Arc<SupervisedConnection>, NoRoom> {
        if !self.may_use(server, key)
            && let Some(connection) = server.connection_of_all(key.era)
        {
            return Ok(connection);
        }
        let adopt = |session, connection: &Arc<SupervisedConnection>| {
            self.dedicated.adopt(server.index, session, connection);
        };
        let room = match server.connection(key, adopt) {
            Ok(connection) => return Ok(connection),
            Err(room) => room,
        };
        if may_evict && self.evict(server, room) {
            return server.connection(key, adopt);
        }
        server.shared(key, room).ok_or(room)
    }

    /// Whether access rules may allow the clients of a class something of `server`.
    fn may_use(&self, server: &PooledServer, key: &PoolKey) -> bool {
        let (Some(control), Some(access)) = (&self.access, &key.access) else {
            return true;
        };
        let name = server.config.name.as_str();
        let prefix = self.layout.name_prefix(name, self.servers.len());
        let view = control.view_of(access);
        view.server_access(name, &prefix).something
    }

    /// Evicts an idle connection to `server`. Returns whether there was one.
    fn evict(&self, server: &PooledServer, room: NoRoom) -> bool {
        let idle = server.eviction_idle_time().min(self.start_wait / 2);
        let Some(evicted) = self.classes.evict(&server.evictable(room), idle) else {
            return false;
        };
        info!(server = server.config.name, "idle connection evicted");
        server.remove_evicted(&evicted);
        let tasks = &self.context.background_tasks;
        tasks.spawn(async move { evicted.close().await });
        true
    }
}

/// The pause between two looks for room.
const ROOM_PAUSE: Duration = Duration::from_millis(100);
