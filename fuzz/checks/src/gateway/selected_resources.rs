//! The resources that a variant shows of a server, without a connection.

use std::sync::Arc;

use mcp_vary::json;
use mcp_vary_wire::era::Caching;
use mcp_vary_wire::revision::Era;

use mcp_vary_catalog::catalog::{Catalog, Lists};
use mcp_vary_catalog::layout::Layout;
use mcp_vary_catalog::list_fault::ListFaults;
use mcp_vary_catalog::listing::{ListKind, ListedItem, Listing};
use mcp_vary_catalog::merge::{Naming, ServerListing};
use mcp_vary_catalog::registry::NameRegistry;
use mcp_vary_catalog::variant_config::VariantConfig;
use mcp_vary_catalog::variant_set::VariantSet;

/// The resources of a server, as a variant selects and renames them.
#[derive(Debug)]
pub(super) struct SelectedResources {
    variants: Arc<VariantSet>,
    catalog: Catalog,
}

impl SelectedResources {
    /// Applies `variant` to a server that lists these resources and templates.
    ///
    /// # Panics
    ///
    /// If the variant is invalid.
    #[must_use]
    pub(super) fn new(variant: VariantConfig, resources: &[&str], templates: &[&str]) -> Self {
        let variant_set =
            VariantSet::new(vec![variant]).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
        let variants = Arc::new(variant_set);
        let layout = Layout {
            naming: Naming::Never,
            variants: Arc::clone(&variants),
            results: [].into(),
            page_size: None,
            caching: Caching::Never,
            read_result: false,
        };
        let mut catalog = Catalog::empty();
        for (kind, ids) in [
            (ListKind::Resources, resources),
            (ListKind::Templates, templates),
        ] {
            let part = ServerListing {
                server: SERVER.into(),
                server_era: Era::Legacy,
                was_connected: true,
                listing: Some(Ok(Arc::new(listing(kind, ids)))),
            };
            let published = (&NameRegistry::default(), false);
            let lists = Lists::new(kind, vec![part], &layout, None, published);
            catalog.lists.insert(kind, lists);
        }
        Self { variants, catalog }
    }

    /// The URI that the server receives when a client requests `uri`. `None` if the request is rejected.
    #[must_use]
    pub(super) fn upstream_uri(&self, uri: &str) -> Option<String> {
        let view = self.variants.indices().next()?.declared_view();
        let address = self.catalog.resolve_resource(&self.variants, view, uri)?;
        let shows = |_| {
            self.variants
                .config(view)
                .allows_unlisted(&address.upstream_uri, SERVER)
        };
        let server = address.listed_by;
        server.or_else(|| self.catalog.checked_template_server(view, &address, shows))?;
        Some(address.upstream_uri.into_owned())
    }
}

const SERVER: &str = "server";

/// A list of items with these URIs.
fn listing(kind: ListKind, ids: &[&str]) -> Listing {
    let item = |id: &&str| ListedItem {
        id: (*id).into(),
        json: format!(r#"{{"{}":{},"name":"x"}}"#, kind.id_key(), json::string(id)).into(),
    };
    Listing {
        passthrough: None,
        frame: format!(r#"{{"{}":[]}}"#, kind.items_key()).into(),
        items: ids.iter().map(item).collect(),
        ttl: None,
        faults: ListFaults::default(),
    }
}
