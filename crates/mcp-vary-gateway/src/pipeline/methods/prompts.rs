//! `prompts/get`.

use std::sync::Arc;

use mcp_vary::error::Identifier;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::index::ViewIndex;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::shown::Prompt;
use mcp_vary_results::link_index::LinkSource;
use mcp_vary_wire::response::RpcError;

use super::RequestContext;
use super::forward::ForwardRequest;
use crate::pipeline::exchange::ResponsePlan;
use crate::pipeline::methods::Dispatch;

impl RequestContext<'_> {
    pub(crate) async fn prompt(mut self) -> Result<Dispatch, RpcError> {
        self.require_list(ListKind::Prompts).await?;
        let name = self.request.params.string("name")?;
        let view = self.active_view()?;
        let prompt = self.known_prompt(view, &name).await?;
        let place = &prompt.item_ref;
        let subject = self.request_binding(&name);
        if let Some(prepared) = &prompt.prepared {
            let upstream_arguments = prepared.arguments(self.arguments()?);
            let upstream_arguments =
                upstream_arguments.map_err(|faults| self.invalid_arguments(&faults))?;
            let upstream_arguments = upstream_arguments.into_owned();
            self.request
                .params
                .members
                .set("arguments", upstream_arguments);
        }
        let item = (ListKind::Prompts, place);
        self.check_access(view, item, Some(self.arguments()?))?;
        self.count_read(view, place.server)?;
        self.rename_to_upstream(&name, place);
        let forwarding = ForwardRequest {
            server: place.server,
            name: Some(place.upstream_name.to_string()),
            binding: subject,
            plan: ResponsePlan {
                origin: Some(LinkSource::new(ListKind::Prompts, &place.upstream_name)),
                names: prompt.name_rewriter.clone(),
                shape: self.prompt_result_shape(view, &prompt),
                ..ResponsePlan::default()
            },
            ..ForwardRequest::default()
        };
        self.forward(view, forwarding).await
    }

    pub(super) async fn known_prompt(
        &self,
        view: ViewIndex,
        name: &str,
    ) -> Result<Arc<Prompt>, RpcError> {
        let find = |catalog: &Catalog| catalog.prompt(view, name).cloned();
        self.find_item((ListKind::Prompts, name), find, || {
            self.not_found(view, Identifier::Prompt(name.to_owned()))
        })
        .await
    }
}
