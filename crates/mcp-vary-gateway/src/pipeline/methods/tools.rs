//! `tools/call`.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::error::Identifier;
use mcp_vary_catalog::apps::AppToolMatch;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::shown::Tool;
use mcp_vary_results::link_index::LinkSource;
use mcp_vary_upstream::RetryPolicy;
use mcp_vary_view::{ArgumentCheck, ArgumentError, refused_call};
use mcp_vary_wire::headers;
use mcp_vary_wire::refusal::ParamsError;
use mcp_vary_wire::response::RpcError;

use super::RequestContext;
use super::forward::ForwardRequest;
use super::gateway_tools::error_result;
use crate::pipeline::exchange::ResponsePlan;
use crate::pipeline::methods::Dispatch;
use crate::pipeline::methods::initialize;
use crate::session::memory_cost;

impl RequestContext<'_> {
    pub(crate) async fn tool(mut self) -> Result<Dispatch, RpcError> {
        self.require_list(ListKind::Tools).await?;
        let name = self.request.params.string("name")?;
        let view = self.active_view()?;
        if let Some(answer) = self.call_gateway_tool(view, &name).await? {
            return Ok(answer);
        }
        let tool = self.known_tool(view, &name).await?;
        let subject = self.request_binding(&name);
        let arguments = self.arguments()?;
        if let Some(headers) = self.request.headers {
            headers::check_params(&tool.headers, headers, arguments)?;
        }
        let upstream_arguments = match self.server_arguments(&tool, arguments)? {
            Ok(upstream_arguments) => upstream_arguments,
            Err(faults) => {
                if let Some(refusal) = ParamsError::of_arguments(&faults) {
                    return Err(refusal.into_counted_error(&self.snapshot.services.counters));
                }
                return Ok(self.refuse_arguments(view, &tool, &faults));
            }
        };
        // As the server gets them: a variant may fix, rename or hide some.
        let item = (ListKind::Tools, &tool.item_ref);
        self.check_access(view, item, Some(&upstream_arguments))?;
        self.count_call(view, &tool.item_ref)?;
        self.note_accepted(view, &tool);
        let headers = tool.upstream_headers.iter();
        let headers = headers
            .filter_map(|header| header.to_header(&upstream_arguments))
            .collect();
        if let Cow::Owned(upstream_arguments) = upstream_arguments {
            self.request
                .params
                .members
                .set("arguments", upstream_arguments);
        }
        let task = self.task_of_call(view, &tool);
        let by_task = task.is_none() && self.as_task(&tool);
        self.rename_to_upstream(&name, &tool.item_ref);
        let forwarding = ForwardRequest {
            server: tool.item_ref.server,
            name: Some(tool.item_ref.upstream_name.to_string()),
            headers,
            binding: subject,
            is_retryable: tool.idempotent
                && self.is_retryable(tool.item_ref.server)
                && task.is_none()
                && !by_task,
            implicit_task: by_task,
            plan: ResponsePlan {
                origin: Some(LinkSource::new(
                    ListKind::Tools,
                    &tool.item_ref.upstream_name,
                )),
                names: tool.name_rewriter.clone(),
                shape: self.tool_result_shape(view, &tool),
                task,
                ..ResponsePlan::default()
            },
        };
        self.forward(view, forwarding).await
    }

    /// The tool that the variant lists as `name`. For clients with apps, also a tool that its server calls `name`.
    async fn known_tool(&self, view: ViewIndex, name: &str) -> Result<Arc<Tool>, RpcError> {
        let meant = |catalog: &Catalog| {
            let tools = catalog.view(ListKind::Tools, view);
            match tools?.app_tool(name)? {
                AppToolMatch::Unique(tool) => Some(Ok(Arc::clone(tool))),
                AppToolMatch::Ambiguous(all) => {
                    Some(Err(self.ambiguous_app_tool(view, name, &all)))
                }
            }
        };
        let has_apps = initialize::declares(&self.client.forwardable, initialize::UI);
        let find = |catalog: &Catalog| {
            let listed = catalog.tool(view, name).cloned().map(Ok);
            listed.or_else(|| meant(catalog).filter(|_| has_apps))
        };
        let found = self.find_item((ListKind::Tools, name), find, || {
            self.not_found(view, Identifier::Tool(name.to_owned()))
        });
        found.await?
    }

    /// The error for an app whose server cannot be determined.
    fn ambiguous_app_tool(&self, view: ViewIndex, name: &str, all: &[&Arc<str>]) -> RpcError {
        let all: Vec<_> = all.iter().map(|id| format!("`{id}`")).collect();
        let why = format!(
            "several servers have a tool `{name}`; call one of {}",
            all.join(", ")
        );
        self.with_active_variant(view, RpcError::invalid_params(why))
    }

    fn is_retryable(&self, server: ServerIndex) -> bool {
        self.class.source(server).connection.config().retry == RetryPolicy::Idempotent
    }
}

impl RequestContext<'_> {
    /// The arguments as the server expects them, or their errors.
    ///
    /// # Errors
    ///
    /// When the memory budget has no room for the tree that the arguments are checked in.
    fn server_arguments<'t>(
        &self,
        tool: &Tool,
        arguments: &'t str,
    ) -> Result<Result<Cow<'t, str>, Vec<ArgumentError>>, RpcError> {
        let Some(prepared) = &tool.prepared else {
            return Ok(Ok(Cow::Borrowed(arguments)));
        };
        let tree = match prepared.forwards_arguments_unchanged() {
            true => 0,
            false => memory_cost::of_tree(arguments),
        };
        let _memory = self.snapshot.services.memory.lease(tree)?;
        Ok(prepared.arguments(arguments))
    }

    /// The result of a call with invalid arguments: the model can correct them.
    fn refuse_arguments(&self, view: ViewIndex, tool: &Tool, faults: &[ArgumentError]) -> Dispatch {
        let is_on_demand = self.is_on_demand(view);
        let prepared = tool.prepared.as_ref().filter(|_| is_on_demand);
        let schema = prepared.and_then(|prepared| prepared.schema_for_errors(faults));
        let describer = match is_on_demand {
            true => self.describe_hint(view),
            false => None,
        };
        let text = refused_call(faults, schema.as_deref(), describer.as_deref());
        if is_on_demand {
            let server = self.server_name(tool.item_ref.server);
            let uses = &self.snapshot.services.directory_uses;
            uses.note_refused(&server, &tool.item_ref.upstream_name, self.client.id);
            if let Some(participation) = self.client.observation.participation() {
                participation.refuse_arguments();
            }
        }
        self.answer(&error_result(&text))
    }

    /// Counts a call that was sent, if calls are checked in `view`.
    fn note_accepted(&self, view: ViewIndex, tool: &Tool) {
        let style = self.snapshot.variant_set.config(view).style;
        if !style.schema.is_on_demand() || style.check == ArgumentCheck::Off {
            return;
        }
        let uses = &self.snapshot.services.directory_uses;
        let server = self.server_name(tool.item_ref.server);
        let reason = tool
            .prepared
            .as_ref()
            .and_then(|prepared| prepared.unchecked_reason());
        let upstream_name = &tool.item_ref.upstream_name;
        uses.note_accepted(&server, upstream_name, self.client.id, reason);
    }
}
