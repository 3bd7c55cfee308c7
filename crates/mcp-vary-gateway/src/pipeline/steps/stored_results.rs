//! The stored parts of shortened results: who may read them.

use mcp_vary::error::Identifier;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_results::result_store::ResultReader;
use mcp_vary_wire::response::RpcError;

use super::view;
use crate::pipeline::request_context::{RequestContext, ViewScope};

pub(crate) fn reader(context: &RequestContext<'_>) -> ResultReader {
    ResultReader {
        client: context.client.id,
        principal: context.client.principal_id(),
    }
}

/// Refuses parts of other clients, and parts of tools that the client may not call in this variant.
pub(crate) async fn require_readable(scope: ViewScope<'_>, uri: &str) -> Result<(), RpcError> {
    let not_found = || scope.not_found(Identifier::Resource(uri.to_owned()));
    scope.snapshot.services.take_over_result(uri).await;
    let store = &scope.snapshot.services.result_store;
    let tool = store.tool(uri, reader(&scope)).ok_or_else(not_found)?;
    let shows = |catalog: &Catalog| {
        let view = catalog.view(ListKind::Tools, scope.view)?;
        let is_tool = |item_ref: &ItemRef| {
            item_ref.upstream_name == tool.upstream_name
                && *scope.server_name(item_ref.server) == *tool.server
        };
        let mut item_refs = view.item_refs();
        item_refs
            .any(|(_, item_ref)| is_tool(item_ref))
            .then_some(())
    };
    view::find_item(&scope, ListKind::Tools, uri, shows, not_found).await
}
