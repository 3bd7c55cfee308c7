//! Opens classes: connects to the servers, and waits until their lists are known.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use mcp_vary_catalog::layout::Layout;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_upstream::SupervisedConnection;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::response::RpcError;
use tokio::time::Instant;
use tracing::info;

use super::table::ClassCell;
use super::usage::ClassUsage;
use super::{CapabilityClass, UpstreamPool, source};
use crate::session::PoolKey;

impl UpstreamPool {
    /// The class of `key`, opened on first use, and again if one of its connections was evicted.
    ///
    /// # Errors
    ///
    /// When there are too many classes that are not shared.
    pub(crate) async fn of(&self, key: Option<&PoolKey>) -> Result<Arc<CapabilityClass>, RpcError> {
        self.class_of(key, Some(self.start_wait)).await
    }

    /// The class of `key`. A server without room is waited for; without `wait`, nothing is evicted for it either.
    async fn class_of(
        &self,
        key: Option<&PoolKey>,
        wait: Option<Duration>,
    ) -> Result<Arc<CapabilityClass>, RpcError> {
        let Some(key) = key else {
            self.settle_base().await;
            return Ok(Arc::clone(&self.base));
        };
        if self.services.context.shutdown.is_cancelled() {
            return Err(RpcError::internal("the gateway stops"));
        }
        // Held until the class is open again.
        let mut room = Vec::new();
        if let Some(class) = self.classes.find(key) {
            // First, so that a connection is not evicted after the next line.
            class.connections.note_use();
            if wait.is_some() {
                room = self.room_for(&class, key);
            }
            if room.is_empty() && !class.is_outdated() {
                return Ok(class);
            }
            class.set_outdated(true);
        }
        let Some(place) = self.classes.entry(key, self.limit) else {
            return match key.is_isolated() {
                false => self.shared_beyond_limit(key).await,
                true => Err(RpcError::internal(TOO_MANY_ISOLATED)),
            };
        };
        let class = self.open_in(key, place, wait).await;
        drop(room);
        Ok(class)
    }

    /// Connections to the servers that were left out of `class`, as far as there is room by now.
    fn room_for(&self, class: &CapabilityClass, key: &PoolKey) -> Vec<Arc<SupervisedConnection>> {
        let servers = class.left_out.iter().filter_map(|at| self.servers.get(*at));
        let connections = servers.filter_map(|server| self.connection(server, key, true));
        connections.collect()
    }

    /// The class of a client, with the lists of its dedicated connections.
    ///
    /// # Errors
    ///
    /// As for [`of`](Self::of).
    pub(crate) async fn of_client(
        &self,
        key: Option<&PoolKey>,
        client: Option<ClientId>,
    ) -> Result<Arc<CapabilityClass>, RpcError> {
        let class = self.of(key).await?;
        if let (Some(key), Some(session)) = (key, client)
            && key.principal.is_some()
        {
            class.connections.usage.add_session(session);
        }
        Ok(self.with_dedicated_lists(class, client).await)
    }

    /// The same for a client that is only notified of changes. No connection is evicted for it.
    ///
    /// # Errors
    ///
    /// As for [`of`](Self::of).
    pub(crate) async fn of_subscriber(
        &self,
        key: Option<&PoolKey>,
        client: Option<ClientId>,
    ) -> Result<Arc<CapabilityClass>, RpcError> {
        let class = self.class_of(key, None).await?;
        Ok(self.with_dedicated_lists(class, client).await)
    }

    async fn with_dedicated_lists(
        &self,
        class: Arc<CapabilityClass>,
        client: Option<ClientId>,
    ) -> Arc<CapabilityClass> {
        let lists = self.services.dedicated.lists();
        lists.class_of(class, client).await
    }

    /// `class` after a list was read again on the client's dedicated connections; none if it has none, or if they were
    /// read a moment ago.
    pub(crate) async fn read_again(
        &self,
        class: &Arc<CapabilityClass>,
        client: Option<ClientId>,
        kind: ListKind,
    ) -> Option<Arc<CapabilityClass>> {
        let client = client.filter(|client| {
            class.accepts_server_requests && self.services.dedicated.suspect(*client, kind)
        });
        client?;
        Some(
            self.services
                .dedicated
                .lists()
                .class_of(Arc::clone(class), client)
                .await,
        )
    }

    /// Waits until the connections of [`base`](Self::base) are of the era of its clients, or until the timeout.
    pub(super) async fn settle_base(&self) {
        if self.base_era.is_settled.load(Ordering::Acquire) {
            return;
        }
        let settling = self.base.sources().iter().map(|it| it.in_preferred_era());
        let limit = self.ready_timeout().min(self.start_wait);
        let settled = tokio::time::timeout(limit, join_all(settling)).await;
        if settled.is_ok() {
            self.base_era.is_settled.store(true, Ordering::Release);
        }
    }

    /// The class of `key` in its `place`, opened if it is not open yet.
    pub(super) async fn open_in(
        &self,
        key: &PoolKey,
        place: ClassCell,
        wait: Option<Duration>,
    ) -> Arc<CapabilityClass> {
        let class = place.get_or_init(|| Box::pin(self.open(key, wait))).await;
        self.classes.publish();
        class.connections.note_use();
        Arc::clone(class)
    }

    async fn open(&self, key: &PoolKey, wait: Option<Duration>) -> Arc<CapabilityClass> {
        let outdated = self.classes.outdated(key);
        let inherited = self.classes.inherited(key);
        let connections = self.connections(key, wait).await;
        let outdated_connections = outdated.as_ref().map(|it| Arc::clone(&it.connections));
        let previous: Vec<_> = inherited.into_iter().chain(outdated_connections).collect();
        let usage = previous.first().map(|it| Arc::clone(&it.usage));
        let usage = usage.unwrap_or_else(|| Arc::new(ClassUsage::now()));
        let previous = previous.iter().flat_map(|it| &it.followers);
        let base = &self.base.connections.followers;
        // Clients of the other era may share the connection.
        let others = self.classes.followers();
        let known: Vec<_> = previous.chain(base).cloned().chain(others).collect();
        let capabilities = Arc::clone(&key.capabilities);
        let shown = (self.layout_of(key), &self.services.context);
        let class = CapabilityClass::open(capabilities, connections, &known, usage, shown).await;
        self.classes.remove_previous(key);
        let (capabilities, is_isolated) = (&*key.capabilities, key.is_isolated());
        info!(capabilities, is_isolated, "class of clients opened");
        self.first_readings(&class).await;
        self.show_known_lists(&class).await;
        class.catalog.publish().await;
        if let Some(outdated) = outdated {
            let lists = self.services.dedicated.lists();
            let observer = &self.services.context.observer;
            observer.class_replaced(&outdated, &class, lists).await;
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
    async fn first_readings(&self, class: &CapabilityClass) {
        let pairs = class.sources().iter().zip(self.base.sources());
        let waited = pairs.filter(|(_, base)| !base.is_starting());
        let waited: Vec<_> = waited.map(|(source, _)| Arc::clone(source)).collect();
        source::first_readings(&waited, self.ready_timeout().min(self.start_wait)).await;
    }

    /// Shows a new class the lists of the base class for servers that it is not connected to yet. Calls wait for the
    /// connection; differences are announced once it is open.
    async fn show_known_lists(&self, class: &CapabilityClass) {
        let mut is_any_shown = false;
        for (source, base) in class.sources().iter().zip(self.base.sources()) {
            is_any_shown |= source.show_until_connected(base);
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
    ) -> Vec<Arc<SupervisedConnection>> {
        let undecided: Vec<_> = self
            .servers
            .iter()
            .map(|it| it.is_undecided(key.era))
            .collect();
        let connections = self.connections_with_room(key, wait).await;
        if !undecided.contains(&true) {
            return connections;
        }
        let tried = std::iter::zip(&connections, undecided).filter(|(_, undecided)| *undecided);
        let tried = tried.map(|(connection, _)| connection.first_attempt());
        // A server that does not support the era is shared with clients of the other one.
        let limit = self.ready_timeout().min(self.start_wait);
        let _ = tokio::time::timeout(limit, join_all(tried)).await;
        self.connections_with_room(key, wait).await
    }

    /// A connection to each server. A server that has no room within `wait` is left out.
    async fn connections_with_room(
        &self,
        key: &PoolKey,
        wait: Option<Duration>,
    ) -> Vec<Arc<SupervisedConnection>> {
        let deadline = Instant::now() + wait.unwrap_or_default();
        let mut connections = vec![None; self.servers.len()];
        loop {
            let mut is_full = false;
            for (connection, server) in connections.iter_mut().zip(&self.servers) {
                if connection.is_none() {
                    *connection = self.connection(server, key, wait.is_some());
                    is_full |= connection.is_none() && server.can_evict();
                }
            }
            let now = Instant::now();
            if !is_full || now >= deadline {
                break;
            }
            tokio::time::sleep((deadline - now).min(ROOM_PAUSE)).await;
        }
        let connections = connections.into_iter().zip(&self.servers);
        let or_left_out = connections.map(|(it, server)| it.unwrap_or_else(|| server.left_out()));
        or_left_out.collect()
    }
}

/// The pause between two looks for room.
const ROOM_PAUSE: Duration = Duration::from_millis(100);

const TOO_MANY_ISOLATED: &str =
    "too many sessions or users use servers that are not shared; end a session, or try again later";
