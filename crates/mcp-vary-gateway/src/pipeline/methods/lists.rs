//! `tools/list` and the other lists: one page of the active variant's items.

use mcp_vary_catalog::listing::ListKind;
use mcp_vary_wire::era::{self, Caching};
use mcp_vary_wire::response::{self, RpcError};

use super::RequestContext;
use crate::pipeline::method_action::method_not_found;
use crate::pipeline::methods::Dispatch;

impl RequestContext<'_> {
    pub(crate) async fn list(&self, kind: ListKind) -> Result<Dispatch, RpcError> {
        // A server may have a list that it does not declare.
        if !self.catalog.has_list(kind) && !self.class.catalog.fresh(kind).await.has_list(kind) {
            return self.empty_list(kind);
        }
        let view = self.active_view()?;
        let cursor = self.list_cursor(view, kind)?;
        let catalog = self.class.catalog.fresh(kind).await;
        // The server of the list may have been replaced meanwhile.
        let list = catalog.view(kind, view);
        let list = list.ok_or_else(|| method_not_found(self.request.method))?;
        let page = list
            .page(self.client.era(), cursor.as_deref())
            .map_err(|failure| failure.unwrap_or_else(|| self.invalid_cursor(view)))?;
        let next = page.next().map(|next| list.cursor_at(next));
        let next = next.map(|cursor| self.seal_cursor(view, kind, &cursor));
        let (start, end) = page.result(next.as_deref());
        if kind == ListKind::Tools && next.is_none() && self.adds_tools(view) {
            let text = format!("{}{end}", String::from_utf8_lossy(start));
            let text = self.with_gateway_tools(view, list, &text);
            return Ok(Dispatch::Done(response::result(
                self.request.id,
                text.as_bytes(),
            )));
        }
        let parts = [start, end.as_bytes()];
        Ok(Dispatch::Done(response::result_of_parts(
            self.request.id,
            &parts,
        )))
    }

    /// The answer for a list that no server has: empty for a client that was offered resources.
    fn empty_list(&self, kind: ListKind) -> Result<Dispatch, RpcError> {
        let negotiates = self.client.features.is_some();
        let is_offered = kind.capability() == "resources" && self.snapshot.may_shorten(negotiates);
        if !is_offered {
            return Err(method_not_found(self.request.method));
        }
        self.active_view()?;
        let result = format!(r#"{{"{}":[]}}"#, kind.items_key());
        let sent = era::to_client_result(&result, self.client.era(), Caching::Never);
        Ok(Dispatch::Done(response::result(
            self.request.id,
            sent.as_bytes(),
        )))
    }
}
