//! Opens classes: connects to the servers, and waits until their lists are known.

use std::sync::Arc;

use futures_util::future::join_all;
use mcp_vary_catalog::layout::Layout;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_upstream::SupervisedConnection;
use mcp_vary_wire::response::RpcError;
use tracing::info;

use super::table::ClassCell;
use super::{CapabilityClass, UpstreamPool, source};
use crate::session::PoolKey;

impl UpstreamPool {
    /// The class of `key` in its `place`, opened if it is not open yet.
    pub(super) async fn open_in(
        &self,
        key: &PoolKey,
        place: ClassCell,
    ) -> Result<Arc<CapabilityClass>, RpcError> {
        let class = place.get_or_try_init(|| Box::pin(self.open(key))).await;
        let class = match class {
            Ok(class) => Arc::clone(class),
            Err(failure) => {
                drop(place);
                self.classes.remove_failed(key);
                return Err(failure);
            }
        };
        self.classes.publish();
        class.connections.note_use();
        Ok(class)
    }

    async fn open(&self, key: &PoolKey) -> Result<Arc<CapabilityClass>, RpcError> {
        let inherited = self.classes.inherited(key);
        let connections = self.connections(key).await?;
        let inherited = inherited.iter().flat_map(|it| &it.followers);
        let base = &self.base.connections.followers;
        // Clients of the other era may share the connection.
        let others = self.classes.followers();
        let known: Vec<_> = inherited.chain(base).cloned().chain(others).collect();
        let capabilities = Arc::clone(&key.capabilities);
        let (layout, context) = (self.layout_of(key), &self.services.context);
        let class = CapabilityClass::open(capabilities, connections, &known, layout, context).await;
        self.classes.remove_inherited(key);
        let (capabilities, is_isolated) = (&*key.capabilities, key.is_isolated());
        info!(capabilities, is_isolated, "class of clients opened");
        self.first_readings(&class).await;
        self.show_known_lists(&class).await;
        class.catalog.publish().await;
        Ok(class)
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
    async fn connections(&self, key: &PoolKey) -> Result<Vec<Arc<SupervisedConnection>>, RpcError> {
        let undecided: Vec<_> = self
            .servers
            .iter()
            .map(|it| it.is_undecided(key.era))
            .collect();
        let dedicated = &self.services.dedicated;
        let servers = self.servers.iter();
        let connections = servers.map(|it| it.connection(key, dedicated));
        let connections: Vec<_> = connections.collect::<Result<_, _>>()?;
        if !undecided.contains(&true) {
            return Ok(connections);
        }
        let tried = std::iter::zip(&connections, undecided).filter(|(_, undecided)| *undecided);
        let tried = tried.map(|(connection, _)| connection.first_attempt());
        // A server that does not support the era is shared with clients of the other one.
        let limit = self.ready_timeout().min(self.start_wait);
        let _ = tokio::time::timeout(limit, join_all(tried)).await;
        let servers = self.servers.iter();
        servers.map(|it| it.connection(key, dedicated)).collect()
    }
}
