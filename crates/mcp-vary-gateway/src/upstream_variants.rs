//! Offers the variants that servers with `passthrough` offer themselves, as their handshakes show them
//! ([0047](../../../docs/decisions/0047-passthrough.md)).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::variant::VariantId;
use mcp_vary_upstream::ConnectionState;
use tracing::{info, warn};

use crate::gateway::Gateway;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::pool::source::{self, ServerSource};
use crate::pool::upstream_variants::{Recorded, is_passed_through};

/// The longest wait for the lists of new variants. Other servers, and changes of the configuration, wait meanwhile; lists
/// that are read later are announced.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The pause before the variants of the same server are compared again: each other answer replaces the snapshot, and a
/// server could have another one with each connection.
const PAUSE: Duration = Duration::from_secs(1);

impl Gateway {
    /// Offers the variants that the servers have by now. If they differ from those that are offered, the configuration
    /// is used again with the others, like a changed one: sessions continue with their variants, and one whose variant
    /// is gone has expired.
    pub(crate) async fn offer_upstream_variants(self: &Arc<Self>) {
        let _replacing = self.reloading.lock().await;
        let before = self.current();
        let known = &self.services.upstream_variants;
        match known.record(before.pool.base().sources()) {
            Recorded::Same => return,
            Recorded::Nothing => return before.warn_of_unknown_variants(),
            Recorded::Others => {}
        }
        let built = self.with_upstream_variants(&before);
        let Some(after) = self.services.shutdown.run_until_cancelled(built).await else {
            return;
        };
        let was_serving = self.is_serving();
        if was_serving {
            after.pool.publish().await;
        }
        let ids = after.upstream_variant_ids();
        self.replace(before, &after);
        // Clients may be served since a moment ago, with the lists of the previous snapshot.
        if self.is_serving() && !was_serving {
            after.pool.publish().await;
        }
        info!(variants = ids.join(" "), "variants of servers offered");
        after.warn_of_unknown_variants();
    }

    /// The variants of connected servers that rules of the configuration name, and that the servers do not offer.
    #[must_use]
    pub fn unknown_variants(&self) -> Vec<UnknownVariant> {
        self.current().unknown_variants()
    }

    /// The snapshot of the same configuration with the variants that are known by now. It waits a moment for their lists.
    async fn with_upstream_variants(&self, before: &ConfigSnapshot) -> Arc<ConfigSnapshot> {
        let services = Arc::clone(&self.services);
        let after = ConfigSnapshot::open(before.config.clone(), services, Some(before)).await;
        let known = before.pool.base().sources();
        let is_new = |source: &&Arc<ServerSource>| !known.iter().any(|it| Arc::ptr_eq(it, source));
        let new = after.pool.base().sources().iter().filter(is_new);
        let new: Vec<_> = new.cloned().collect();
        let limit = after.config.start_wait.min(LONGEST_WAIT);
        source::first_readings(&new, limit).await;
        Arc::new(after)
    }

    /// Follows the handshakes of the servers whose variants clients can select, and that `before` did not have.
    pub(crate) fn follow_upstream_variants(
        self: &Arc<Self>,
        before: Option<&ConfigSnapshot>,
        after: &ConfigSnapshot,
    ) {
        let known = before.map_or(&[][..], |before| before.pool.base().sources());
        let is_new = |source: &&Arc<ServerSource>| !known.iter().any(|it| Arc::ptr_eq(it, source));
        let sources = after.pool.base().sources().iter();
        let sources = sources.filter(|source| is_passed_through(source));
        for source in sources.filter(is_new) {
            let (gateway, mut state) = (Arc::downgrade(self), source.connection.state());
            let following = async move {
                loop {
                    let state_now = state.borrow_and_update().clone();
                    match state_now {
                        ConnectionState::Closed => return,
                        ConnectionState::Connected(_) => {
                            let Some(gateway) = gateway.upgrade() else {
                                return;
                            };
                            gateway.offer_upstream_variants().await;
                            drop(gateway);
                            tokio::time::sleep(PAUSE).await;
                        }
                        _ => {}
                    }
                    if state.changed().await.is_err() {
                        return;
                    }
                }
            };
            let shutdown = self.services.shutdown.clone();
            let following = shutdown.run_until_cancelled_owned(following);
            self.services.background_tasks.spawn(following);
        }
    }
}

/// A variant of a server that rules of the configuration name, and that the server does not offer.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct UnknownVariant {
    /// The variant, as rules name it: `<server>/<id>`.
    pub id: VariantId,
    /// The server.
    pub server: String,
    /// The variants that the server offers, as rules name them.
    pub offered: Vec<VariantId>,
}

impl fmt::Display for UnknownVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            id,
            server,
            offered,
        } = self;
        write!(
            f,
            "rules name the variant `{id}`, but server `{server}` offers "
        )?;
        if offered.is_empty() {
            return write!(f, "no variants");
        }
        let offered = offered.iter().map(|id| format!("`{id}`"));
        write!(f, "{}", offered.collect::<Vec<_>>().join(", "))
    }
}

impl ConfigSnapshot {
    /// Writes a warning for each variant that rules name and that its server does not offer.
    pub(crate) fn warn_of_unknown_variants(&self) {
        for unknown in self.unknown_variants() {
            let (id, server) = (&unknown.id, &unknown.server);
            let offered: Vec<_> = unknown.offered.iter().map(VariantId::as_str).collect();
            let offered = offered.join(" ");
            warn!(%id, server, offered, "rules name a variant that its server does not offer");
        }
    }

    /// The variants that rules name, of servers whose variants are known.
    fn unknown_variants(&self) -> Vec<UnknownVariant> {
        let named = self.config.unknown_variants(&self.variant_set).into_iter();
        let unknown = named.filter_map(|id| {
            let (server, _) = id.as_str().split_once('/')?;
            let is_known = self.services.upstream_variants.has(server);
            is_known.then(|| UnknownVariant {
                id: id.clone(),
                server: server.to_owned(),
                offered: self.variants_of(server),
            })
        });
        unknown.collect()
    }

    /// The variants of `server` that clients can select.
    fn variants_of(&self, server: &str) -> Vec<VariantId> {
        let sources = self.pool.base().sources().iter();
        let offered = sources.filter(|it| it.is_upstream_variant() && *it.server_name == *server);
        offered
            .filter_map(|source| source.name().parse().ok())
            .collect()
    }

    /// The ids of the variants that servers offer themselves.
    fn upstream_variant_ids(&self) -> Vec<String> {
        let sources = self.pool.base().sources().iter();
        let sources = sources.filter(|source| source.is_upstream_variant());
        sources.map(|source| source.name().to_owned()).collect()
    }
}
