//! The resources that one variant of one server shows, without a connection: for the fuzz targets and property tests.

use std::sync::Arc;

use mcp_vary::json;
use mcp_vary_wire::era::Caching;
use mcp_vary_wire::revision::Era;

use super::listing::{Item, ListKind, Listing};
use super::merge::{Naming, Part};
use super::registry::Registry;
use super::view::Layout;
use crate::catalog::{Catalog, Lists};
use crate::variant_config::{Faces, VariantConfig};

/// The resources of a server, as one variant selects and renames them.
#[derive(Debug)]
pub struct SelectedResources {
    faces: Arc<Faces>,
    catalog: Catalog,
}

impl SelectedResources {
    /// What `variant` shows of a server that lists these resources and templates.
    ///
    /// # Panics
    ///
    /// Where the variant is not valid.
    #[must_use]
    pub fn new(variant: VariantConfig, resources: &[&str], templates: &[&str]) -> Self {
        let faces = Faces::new(vec![variant]).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let faces = Arc::new(faces);
        let layout = Layout {
            naming: Naming::Never,
            faces: Arc::clone(&faces),
            results: [].into(),
            page_size: None,
            caching: Caching::Never,
        };
        let mut catalog = Catalog::empty();
        for (kind, ids) in [
            (ListKind::Resources, resources),
            (ListKind::Templates, templates),
        ] {
            let part = Part {
                server: SERVER.into(),
                maker: Era::Legacy.into(),
                is_known: true,
                listing: Some(Ok(Arc::new(listing(kind, ids)))),
            };
            let published = (&Registry::default(), false);
            let lists = Lists::new(kind, vec![part], &layout, None, published);
            catalog.lists.insert(kind, lists);
        }
        Self { faces, catalog }
    }

    /// The URI that the server gets for the resource that a client calls `uri`; `None` when the request is refused.
    #[must_use]
    pub fn sent(&self, uri: &str) -> Option<String> {
        let address = self.catalog.address(&self.faces, 0, uri)?;
        let shows = |_: &usize| self.faces.all[0].shows_unlisted(&address.own, SERVER);
        let server = address.listed_by;
        server.or_else(|| self.catalog.by_checked_template(0, &address, shows))?;
        Some(address.own.into_owned())
    }
}

const SERVER: &str = "server";

/// A list of items with these URIs.
fn listing(kind: ListKind, ids: &[&str]) -> Listing {
    let item = |id: &&str| Item {
        id: (*id).into(),
        json: format!(r#"{{"{}":{},"name":"x"}}"#, kind.id_key(), json::string(id)).into(),
    };
    Listing {
        whole: None,
        frame: format!(r#"{{"{}":[]}}"#, kind.items_key()).into(),
        items: ids.iter().map(item).collect(),
        ttl: None,
    }
}
