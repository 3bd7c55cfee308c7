//! `tools/call`.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::error::Identifier;
use mcp_vary::json;
use mcp_vary::view::Fault;

use super::forward::Forwarding;
use super::{Call, sentence};
use crate::catalog::Catalog;
use crate::catalog::listing::ListKind;
use crate::catalog::shown::Tool;
use crate::links::Origin;
use crate::mcp_header;
use crate::reply::Failure;
use crate::route::Outcome;
use crate::running::Downward;
use crate::upstream::Repeat;

impl Call<'_> {
    pub(crate) async fn tool(mut self) -> Result<Outcome, Failure> {
        self.requires("tools")?;
        let name = self.asked.params.string("name")?;
        let variant = self.active()?;
        if let Some(rest) = self.rest(variant, &name).await? {
            return Ok(rest);
        }
        let tool = self.known_tool(variant, &name).await?;
        let subject = self.subject(&name);
        let arguments = self.arguments()?;
        if let Some(headers) = self.asked.headers {
            mcp_header::check_params(&tool.headers, headers, arguments)?;
        }
        let prepared = tool.prepared.as_ref();
        let own = prepared.map_or(Ok(Cow::Borrowed(arguments)), |it| it.arguments(arguments));
        let own = match own {
            Ok(own) => own,
            Err(faults) => return Ok(self.answer(&refused_arguments(&faults))),
        };
        let headers = tool.own_headers.iter();
        let headers = headers.filter_map(|header| header.to_send(&own)).collect();
        if let Cow::Owned(own) = own {
            self.asked.params.members.set("arguments", own);
        }
        let task = self.task_of_call(variant, &tool.place);
        self.call_by_its_own_name(&name, &tool.place);
        let forwarding = Forwarding {
            server: tool.place.server,
            name: Some(tool.place.own.to_string()),
            headers,
            subject,
            repeatable: tool.idempotent && self.repeats(tool.place.server) && task.is_none(),
            downward: Downward {
                origin: Some(Origin::at(&tool.place, ListKind::Tools)),
                words: tool.words.clone(),
                shape: self.tool_shape(variant, &tool),
                task,
                ..Downward::default()
            },
        };
        self.forward(variant, forwarding).await
    }

    async fn known_tool(&self, variant: usize, name: &str) -> Result<Arc<Tool>, Failure> {
        let find = |catalog: &Catalog| catalog.tool(variant, name).cloned();
        self.find(ListKind::Tools, find, || {
            self.not_found(variant, Identifier::Tool(name.to_owned()))
        })
        .await
    }

    fn repeats(&self, server: usize) -> bool {
        self.class.sources()[server].line.config().repeat == Repeat::Idempotent
    }
}

/// The result of a call whose arguments the tool does not take: the model that made them can make others.
///
/// > Tool Execution Errors contain actionable feedback that language models can use to self-correct.
/// > (MCP 2025-11-25, server/tools, "Error Handling")
fn refused_arguments(faults: &[Fault]) -> String {
    let text = json::string(&sentence(faults));
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true}}"#)
}
