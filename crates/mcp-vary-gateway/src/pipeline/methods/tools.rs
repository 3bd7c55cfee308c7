//! `tools/call`.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::error::Identifier;
use mcp_vary_catalog::apps::AppToolMatch;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::gateway_tool::GatewayTool;
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::shown::Tool;
use mcp_vary_upstream::RetryPolicy;
use mcp_vary_view::{ArgumentCheck, ArgumentError, refused_call};
use mcp_vary_wire::headers;
use mcp_vary_wire::response::RpcError;

use crate::pipeline::exchange::ResponsePlan;
use crate::pipeline::forwarded_extensions::{UI, declares};
use crate::pipeline::gateway_tools::{call_gateway_tool, tool_response};
use crate::pipeline::request_context::{Dispatch, RequestContext, ViewScope};
use crate::pipeline::steps::forward::{ForwardRequest, forward};
use crate::pipeline::steps::task_mode::TaskMode;
use crate::pipeline::steps::{policy, response_plan, round_trips, view};
use mcp_vary_session::memory_cost;

/// Forwards `tools/call`, or answers a call of a tool of the gateway.
///
/// The order of the steps is what makes a call safe:
///
/// - The variant is selected before anything is found, and the tool before anything is checked: to a client, a tool
///   that its variant hides does not exist, whatever the arguments are.
/// - Headers are compared with the arguments as the client wrote them; access rules check the arguments as the server
///   gets them, since a variant may fix, rename or hide some.
/// - A call counts for rate limits only after access rules allow it, and in the directory only after both.
/// - The request becomes the server's last, so that its states are bound to what the client wrote.
pub(crate) async fn call_tool(context: &mut RequestContext<'_>) -> Result<Dispatch, RpcError> {
    context.require_list(ListKind::Tools).await?;
    let name = context.request.params.string("name")?;
    let scope = view::enter(context).await?;
    if let Some(answer) = call_gateway_tool(scope, &name).await? {
        if let Dispatch::Done(reply) = &answer {
            scope.client.observation.costs(0, reply.body.len());
        }
        return Ok(answer);
    }
    let tool = find_tool(scope, &name).await?;
    scope.client.observation.found(&name);
    let written = scope.arguments()?;
    check_headers(context, &tool, written)?;
    let arguments = match upstream_arguments(context, &tool, written)? {
        Ok(arguments) => arguments,
        Err(errors) => return refuse_arguments(scope, &tool, &errors),
    };
    policy::check_access(scope, ListKind::Tools, &tool.item_ref, Some(&arguments))?;
    policy::count_call(scope, &tool.item_ref).await?;
    count_accepted(scope, &tool);
    let task_mode = TaskMode::of_call(context, &tool);
    let forwarding = plan_call(scope, &name, &tool, &arguments, task_mode);
    if let Cow::Owned(arguments) = arguments {
        context.request.params.members.set("arguments", arguments);
    }
    task_mode.set_member(&mut context.request.params);
    context.rename_to_upstream(&name, &tool.item_ref);
    forward(context, forwarding).await
}

/// The tool that the variant lists as `name`. For clients with apps, also a tool that its server calls `name`.
async fn find_tool(scope: ViewScope<'_>, name: &str) -> Result<Arc<Tool>, RpcError> {
    let app_tool = |catalog: &Catalog| {
        let tools = catalog.view(ListKind::Tools, scope.view)?;
        match tools.app_tool(name)? {
            AppToolMatch::Unique(tool) => Some(Ok(Arc::clone(tool))),
            AppToolMatch::Ambiguous(ids) => Some(Err(ambiguous_app_tool(scope, name, &ids))),
        }
    };
    let has_apps = || declares(&scope.client.forwardable, UI);
    let find = |catalog: &Catalog| {
        let listed = catalog.tool(scope.view, name).cloned().map(Ok);
        listed.or_else(|| has_apps().then(|| app_tool(catalog))?)
    };
    let not_found = || scope.not_found(Identifier::Tool(name.to_owned()));
    view::find_item(&scope, ListKind::Tools, name, find, not_found).await?
}

/// The error for an app whose server cannot be determined.
fn ambiguous_app_tool(scope: ViewScope<'_>, name: &str, ids: &[&Arc<str>]) -> RpcError {
    let quoted: Vec<_> = ids.iter().map(|id| format!("`{id}`")).collect();
    let choices = quoted.join(", ");
    let why = format!("several servers have a tool `{name}`; call one of {choices}");
    scope.with_active_variant(RpcError::invalid_params(why))
}

/// Compares the headers of a modern HTTP request with the arguments that they repeat.
fn check_headers(
    context: &RequestContext<'_>,
    tool: &Tool,
    arguments: &str,
) -> Result<(), RpcError> {
    match context.request.headers {
        Some(headers) => headers::check_params(&tool.headers, headers, arguments),
        None => Ok(()),
    }
}

/// The arguments as the server expects them, or their errors.
///
/// # Errors
///
/// When the memory budget has no room for the tree that the arguments are checked in.
fn upstream_arguments<'t>(
    context: &RequestContext<'_>,
    tool: &Tool,
    arguments: &'t str,
) -> Result<Result<Cow<'t, str>, Vec<ArgumentError>>, RpcError> {
    let Some(prepared) = &tool.prepared else {
        return Ok(Ok(Cow::Borrowed(arguments)));
    };
    let tree = if prepared.forwards_arguments_unchanged() {
        0
    } else {
        memory_cost::of_tree(arguments)
    };
    let _memory = context.snapshot.services.memory.lease(tree)?;
    Ok(prepared.arguments(arguments))
}

/// The response to a call with invalid arguments: a result, so that the model can correct them.
///
/// # Errors
///
/// When an argument imitates a known one.
fn refuse_arguments(
    scope: ViewScope<'_>,
    tool: &Tool,
    errors: &[ArgumentError],
) -> Result<Dispatch, RpcError> {
    if let Some(failure) = view::ambiguous_arguments(scope.counters(), errors) {
        return Err(failure);
    }
    if !scope.config().style.schema.is_on_demand() {
        return Ok(tool_response(scope, Err(refused_call(errors, None, None))));
    }
    let prepared = tool.prepared.as_ref();
    let schema = prepared.and_then(|prepared| prepared.schema_for_errors(errors));
    let describer = scope.gateway_tool_name(GatewayTool::Describe);
    let text = refused_call(errors, schema.as_deref(), describer.map(|name| &**name));
    let server = scope.server_name(tool.item_ref.server);
    let uses = &scope.snapshot.services.directory_uses;
    uses.note_refused(&server, &tool.item_ref.upstream_name, scope.client.id);
    if let Some(participation) = scope.client.observation.participation() {
        participation.refuse_arguments();
    }
    Ok(tool_response(scope, Err(text)))
}

/// Counts a call that nothing refused, if the view checks calls.
fn count_accepted(scope: ViewScope<'_>, tool: &Tool) {
    let style = scope.config().style;
    if !style.schema.is_on_demand() || style.check == ArgumentCheck::Off {
        return;
    }
    let uses = &scope.snapshot.services.directory_uses;
    let server = scope.server_name(tool.item_ref.server);
    let prepared = tool.prepared.as_ref();
    let reason = prepared.and_then(|prepared| prepared.unchecked_reason());
    let upstream_name = &tool.item_ref.upstream_name;
    uses.note_accepted(&server, upstream_name, scope.client.id, reason);
}

/// The call to the server, and the plan for its response.
fn plan_call(
    scope: ViewScope<'_>,
    name: &str,
    tool: &Tool,
    arguments: &str,
    task_mode: TaskMode,
) -> ForwardRequest {
    let server = tool.item_ref.server;
    let headers = tool.upstream_headers.iter();
    ForwardRequest {
        name: Some(Arc::clone(&tool.item_ref.upstream_name)),
        headers: headers
            .filter_map(|header| header.to_header(arguments))
            .collect(),
        is_retryable: tool.idempotent
            && task_mode == TaskMode::NoTask
            && allows_retry(&scope, server),
        is_implicit_task: task_mode == TaskMode::Implicit,
        plan: ResponsePlan {
            origin: Some(tool.item_ref.link_source(ListKind::Tools)),
            names: tool.name_rewriter.clone(),
            request_state: round_trips::state_codec(scope, server, name),
            shape: response_plan::tool_shape(scope, tool, arguments),
            task: task_mode.codec(scope, tool),
            ..ResponsePlan::default()
        },
        ..ForwardRequest::new(scope.view, server)
    }
}

fn allows_retry(context: &RequestContext<'_>, server: ServerIndex) -> bool {
    let config = context.class.source(server).connection.config();
    config.retry == RetryPolicy::Idempotent
}
