//! `prompts/get`.

use std::sync::Arc;

use mcp_vary::error::Identifier;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::link_index::LinkSource;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::shown::Prompt;
use mcp_vary_wire::response::RpcError;

use super::Call;
use super::forward::Forwarding;
use crate::pipeline::exchange::Downward;
use crate::pipeline::router::Outcome;

impl Call<'_> {
    pub(crate) async fn prompt(mut self) -> Result<Outcome, RpcError> {
        self.requires(ListKind::Prompts).await?;
        let name = self.asked.params.string("name")?;
        let variant = self.active()?;
        let prompt = self.known_prompt(variant, &name).await?;
        let place = &prompt.item_ref;
        let subject = self.subject(&name);
        if let Some(prepared) = &prompt.prepared {
            let own = prepared.arguments(self.arguments()?);
            let own = own.map_err(|faults| self.invalid_arguments(&faults))?;
            let own = own.into_owned();
            self.asked.params.members.set("arguments", own);
        }
        self.call_by_its_own_name(&name, place);
        let forwarding = Forwarding {
            server: place.server,
            name: Some(place.upstream_name.to_string()),
            subject,
            downward: Downward {
                origin: Some(LinkSource::of_item(place, ListKind::Prompts)),
                words: prompt.name_rewriter.clone(),
                shape: self.prompt_shape(variant, &prompt),
                ..Downward::default()
            },
            ..Forwarding::default()
        };
        self.forward(variant, forwarding).await
    }

    pub(super) async fn known_prompt(
        &self,
        variant: usize,
        name: &str,
    ) -> Result<Arc<Prompt>, RpcError> {
        let find = |catalog: &Catalog| catalog.prompt(variant, name).cloned();
        self.find(ListKind::Prompts, find, || {
            self.not_found(variant, Identifier::Prompt(name.to_owned()))
        })
        .await
    }
}
