//! The part of the gateway that a subscriber sees, as one configuration decides it.

use std::sync::Arc;

use mcp_vary::variant::VariantId;
use mcp_vary_access::Principal;
use mcp_vary_catalog::index::{ServerIndex, VariantIndex};
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::variant_set::VariantSet;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::extension_methods::known_extension;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::pool::lists::ids::{CatalogId, ConnectionId};
use crate::pool::{CapabilityClass, UpstreamPool};
use mcp_vary_session::{PoolKey, Session};

/// The part of the gateway that one subscriber sees.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    /// The generation of the configuration.
    pub(crate) generation: u64,
    /// Held, so that its connections stay open.
    pub(crate) class: Arc<CapabilityClass>,
    pub(crate) key: Option<PoolKey>,
    /// Whom access rules apply to, and whose connections it uses.
    pub(crate) principal: Option<Arc<Principal>>,
    /// The subscriber's client, if later requests can be attributed to it.
    pub(crate) client: Option<ClientId>,
    /// The variants that it sees, best first.
    pub(crate) variants: Arc<[VariantIndex]>,
    /// Whether notifications name their variant.
    pub(crate) names_variants: bool,
}

impl Placement {
    pub(super) fn variants(&self) -> &VariantSet {
        &self.class.catalog.layout.variants
    }

    /// The id of a variant, if notifications name it.
    pub(crate) fn id(&self, variant: VariantIndex) -> Option<&VariantId> {
        self.names_variants.then(|| self.variants().id(variant))?
    }

    /// Whether the subscriber may know that `server` exists: where there are access rules, if they show something of it.
    pub(super) fn may_know(&self, server: &str) -> bool {
        if self.key.as_ref().is_none_or(|key| key.access.is_none()) {
            return true;
        }
        let catalog = self.class.catalog.current();
        let mut servers = std::iter::zip(catalog.servers(), &self.class.catalog.sources);
        let found = servers.find(|(_, source)| source.name() == server);
        found.is_some_and(|((at, _), _)| catalog.shows_some_of(at))
    }

    /// Whether the subscriber may know that the tool of `server` exists, by its name there: where there are access rules,
    /// if they show it.
    pub(super) fn may_know_tool(&self, server: &str, tool: &str) -> bool {
        let Some(access) = self.variants().access() else {
            return true;
        };
        let mut sources = ServerIndex::enumerate(self.class.sources());
        let Some((at, source)) = sources.find(|(_, source)| source.name() == server) else {
            return false;
        };
        let item_ref = ItemRef {
            server: at,
            upstream_name: tool.into(),
        };
        let catalog = self.class.catalog.current();
        let item = catalog.merged_item(ListKind::Tools, &item_ref);
        item.is_some_and(|item| access.shows(ListKind::Tools, item, &source.name))
    }

    /// Whether a variant of the subscriber shows the server on this connection of its class to the extension of `method`:
    /// skills of it, or else an item of it or all that it has.
    pub(super) fn shows_server_on(&self, id: ConnectionId, method: &str) -> bool {
        let mut sources = ServerIndex::enumerate(self.class.sources());
        let Some((server, source)) = sources.find(|(_, source)| source.id == id) else {
            return false;
        };
        let catalog = self.class.catalog.current();
        self.variants.iter().any(|variant| {
            let view = variant.declared_view();
            let config = self.variants().config(view);
            if known_extension(method).is_some() {
                return config.may_show_skills_of(&source.name);
            }
            !config.hides_something_of(&source.name) || catalog.lists_some_of(view, server)
        })
    }

    pub(super) fn shows(&self, catalog: CatalogId) -> bool {
        self.class.catalog.id == catalog
    }
}

/// The part of one configuration that decides what subscribers see.
#[derive(Debug)]
pub(crate) struct Placements {
    /// Distinguishes configurations. The next one has a higher number.
    pub(crate) generation: u64,
    pub(super) pool: Arc<UpstreamPool>,
    variant_set: Arc<VariantSet>,
    pub(super) offers_variants: bool,
    /// Cancels [`superseded`](Self::superseded).
    superseded: DropGuard,
}

impl Placements {
    pub(crate) fn new(
        generation: u64,
        pool: Arc<UpstreamPool>,
        variant_set: Arc<VariantSet>,
        offers_variants: bool,
    ) -> Self {
        Self {
            generation,
            pool,
            variant_set,
            offers_variants,
            superseded: CancellationToken::new().drop_guard(),
        }
    }

    /// Cancelled when the last request, and the last migration, has dropped the configuration: nothing is sent
    /// under it any more.
    pub(crate) fn superseded(&self) -> CancellationToken {
        self.superseded.token().clone()
    }

    /// The variant with this id.
    pub(crate) fn variant_index(&self, id: &str) -> Option<VariantIndex> {
        self.variant_set.index_of(id)
    }

    /// Whether a session is notified of the lists of a variant that it did not select: of all that it was offered, if it
    /// declared server variants; else of its default alone, so that one change is one notification (SV-16).
    pub(crate) fn is_offered_to(&self, session: &Session, variant: VariantIndex) -> bool {
        let order = self.order_of(session).unwrap_or_default();
        if session.negotiated.declares_variants {
            order.contains(&variant)
        } else {
            order.first() == Some(&variant)
        }
    }

    /// The variants whose lists a session is notified of: those that it was offered, best first, then the others that
    /// it has selected; without those that access rules no longer let its principal use. `None` as for
    /// [`order_of`](Self::order_of).
    pub(super) fn visible_to(&self, session: &Session) -> Option<Arc<[VariantIndex]>> {
        let order = self.order_of(session)?;
        let offered = order.iter().copied();
        let order: Arc<[_]> = offered
            .filter(|index| self.is_offered_to(session, *index))
            .collect();
        let selected = session.selected();
        let principal = session.latest_principal();
        if selected.is_empty() {
            return Some(self.allowed(order, principal.as_ref()));
        }
        let indices = selected
            .iter()
            .filter_map(|id| self.variant_index(id.as_str()));
        let further = indices.filter(|index| !order.contains(index));
        let all = order.iter().copied().chain(further).collect();
        Some(self.allowed(all, principal.as_ref()))
    }

    /// Those of `variants` that access rules let `principal` use.
    pub(super) fn allowed(
        &self,
        variants: Arc<[VariantIndex]>,
        principal: Option<&Arc<Principal>>,
    ) -> Arc<[VariantIndex]> {
        let Some(access) = self.pool.access() else {
            return variants;
        };
        let allowed = access.allowed_variants(principal);
        let allowed = variants.iter().filter(|it| allowed.variants.contains(it));
        allowed.copied().collect()
    }

    /// The order of variants that a session was opened with; `None` when one of them was removed, or when variants are
    /// offered now and were not then, or the reverse.
    pub(crate) fn order_of(&self, session: &Session) -> Option<Arc<[VariantIndex]>> {
        session.views(self.generation, |ids| {
            if ids.is_empty() == self.offers_variants {
                return None;
            }
            ids.iter().map(|id| self.variant_index(id)).collect()
        })
    }

    /// The placement of a legacy session.
    ///
    /// # Errors
    ///
    /// When the pool cannot open the session's class.
    pub(super) async fn of_session(&self, session: &Session) -> Result<Placement, RpcError> {
        let principal = session.latest_principal();
        let client = Some(session.client);
        let capabilities = &session.negotiated.class;
        let keys = &self.pool.keys;
        let key = keys.key(capabilities, client, principal.as_ref(), Era::Legacy);
        let order = self.visible_to(session).unwrap_or_default();
        Ok(Placement {
            generation: self.generation,
            class: self.pool.of_subscriber(key.as_ref(), client).await?,
            key,
            principal,
            client,
            variants: if self.offers_variants {
                order
            } else {
                [VariantIndex::FIRST].into()
            },
            names_variants: self.offers_variants,
        })
    }
}
