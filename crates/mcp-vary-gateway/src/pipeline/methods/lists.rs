//! `tools/list` and its like: a page of what the active variant shows.

use mcp_vary_catalog::listing::ListKind;
use mcp_vary_wire::era::{self, Caching};
use mcp_vary_wire::response::{self, RpcError};

use super::Call;
use crate::pipeline::router::{Outcome, unknown};

impl Call<'_> {
    pub(crate) async fn list(&self, kind: ListKind) -> Result<Outcome, RpcError> {
        // A list that no server declares may be there all the same.
        if !self.catalog.has_list(kind) && !self.class.catalog.fresh(kind).await.has_list(kind) {
            return self.nothing(kind);
        }
        let variant = self.active()?;
        let bookmark = self.bookmark(variant, kind)?;
        let catalog = self.class.catalog.fresh(kind).await;
        // A server that was replaced in the meantime may have taken the list with it.
        let view = catalog.view(kind, variant);
        let view = view.ok_or_else(|| unknown(self.asked.method))?;
        let page = view
            .page(self.client.era(), bookmark.as_deref())
            .map_err(|failure| failure.unwrap_or_else(|| self.invalid_cursor(variant)))?;
        let next = page.next().map(|next| view.bookmark(next));
        let next = next.map(|bookmark| self.seal(variant, kind, &bookmark));
        let (start, end) = page.result(next.as_deref());
        if kind == ListKind::Tools && next.is_none() && self.gateway.config.read_result {
            let list = format!("{}{end}", String::from_utf8_lossy(start));
            let list = self.with_reader(view, &list);
            return Ok(Outcome::Done(response::result(
                self.asked.id,
                list.as_bytes(),
            )));
        }
        let parts = [start, end.as_bytes()];
        Ok(Outcome::Done(response::result_of_parts(
            self.asked.id,
            &parts,
        )))
    }

    /// The list of a kind that no server has: for a client that was offered resources it is empty.
    fn nothing(&self, kind: ListKind) -> Result<Outcome, RpcError> {
        let negotiates = self.client.features.is_some();
        let is_offered = kind.capability() == "resources" && self.gateway.may_shorten(negotiates);
        if !is_offered {
            return Err(unknown(self.asked.method));
        }
        self.active()?;
        let result = format!(r#"{{"{}":[]}}"#, kind.items_key());
        let sent = era::to_client_result(&result, self.client.era(), Caching::Never);
        Ok(Outcome::Done(response::result(
            self.asked.id,
            sent.as_bytes(),
        )))
    }
}
