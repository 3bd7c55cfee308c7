//! Clients of the extension with servers of the core dialect.
//!
//! In the extension, the server decides which calls become tasks. The gateway decides it for servers of the core
//! dialect: a call of a tool that requires a task becomes one, and all other calls are sent without.

use mcp_vary::json;
use mcp_vary_wire::era::{self, UpstreamContext};
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::{Era, Revision};

use crate::mrtr::{INPUT_RESPONSES, read_responses};
use crate::pipeline::request::{MethodAction, TaskAction};
use crate::pipeline::request_context::{Dispatch, RequestContext};
use crate::pipeline::steps::forward::{log_level, progress_tokens, response_context};
use crate::pipeline::steps::found_task::FoundTask;
use crate::pipeline::steps::proxied_task;
use crate::tasks::proxy::ClientQuery;
use crate::tasks::split_prefix;

/// Answers a client of the extension about a task of the core dialect.
pub(super) async fn answer_proxied_task(
    context: &mut RequestContext<'_>,
    found: &FoundTask,
) -> Result<Dispatch, RpcError> {
    let (_, upstream_id) = split_prefix(&found.task.id);
    let members = &mut context.request.params.members;
    members.set("taskId", json::string(upstream_id));
    let responses = members.remove(INPUT_RESPONSES);
    let params = upstream_params(context, found);
    let services = &context.snapshot.services;
    let key = proxied_task::key(context, found);
    let ended = services.status_of_ended_task(&key, found.replica).await;
    if let Some(status) = ended {
        return match context.action {
            // It can be neither answered nor cancelled any more.
            MethodAction::Task(TaskAction::Update | TaskAction::Cancel) => Ok(context.answer("{}")),
            _ => status_answer(context, found, &status),
        };
    }
    let proxied = proxied_task::find(context, found, &params).await?;
    let token = context.client.access_token().cloned();
    let query = ClientQuery { params, token };
    match context.action {
        MethodAction::Task(TaskAction::Update) => {
            proxied.answer(&read_responses(responses.as_deref())?);
            Ok(context.answer("{}"))
        }
        MethodAction::Task(TaskAction::Cancel) => {
            proxied.cancel(Some(query)).await?;
            Ok(context.answer("{}"))
        }
        _ => {
            let answer = proxied.status(query).await;
            let status = answer
                .map_err(|failure| proxied_task::rename_in_failure(context, found, failure))?;
            status_answer(context, found, &status)
        }
    }
}

/// The answer with a status, which already has the extension's dialect.
fn status_answer(
    context: &RequestContext<'_>,
    found: &FoundTask,
    status: &str,
) -> Result<Dispatch, RpcError> {
    let scope = context.in_view(found.view);
    let codec = proxied_task::extension_codec(context, found);
    let mut plan = found.forwarding(scope, codec).plan;
    plan.log_level = log_level(context)?;
    plan.progress = progress_tokens(context)?;
    // Servers of the core dialect are legacy.
    let response = response_context(scope, found.item_ref.server, plan, Era::Legacy);
    let services = &context.snapshot.services.exchange;
    Ok(Dispatch::Done(response.task(status, services)))
}

/// The params of the client's request, as the server of the task expects them.
fn upstream_params(context: &mut RequestContext<'_>, found: &FoundTask) -> String {
    let handshake = context.catalog.handshake(found.item_ref.server);
    let upstream_context = UpstreamContext {
        revision: handshake.map_or(Revision::V2025_11_25, |handshake| handshake.revision),
        capabilities: "{}",
        progress_token: None,
        log_level: None,
    };
    era::to_upstream_params(&mut context.request.params, &upstream_context)
}
