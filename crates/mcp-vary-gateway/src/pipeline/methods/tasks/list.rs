//! `tasks/list`.

use std::sync::Arc;

use mcp_vary::json::{self, Members, edit, elements};
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::task_dialect::TaskDialect;

use crate::pipeline::request_context::{Dispatch, RequestContext};
use crate::pipeline::steps::forward::RequestConnection;
use crate::pipeline::steps::{found_task, task_support};
use crate::tasks::task_text::string;

/// The most pages of a server's list that are read.
const PAGES: usize = 16;

/// Lists the client's tasks at all servers, as far as the gateway remembers them.
pub(crate) async fn list_tasks(context: &RequestContext<'_>) -> Result<Dispatch, RpcError> {
    task_support::request_dialects(context)?;
    if context.cursor().is_some() {
        return Err(RpcError::invalid_params(
            "Invalid cursor: all tasks are on one page",
        ));
    }
    let mut tasks = Vec::new();
    for (server, source) in ServerIndex::enumerate(context.class.sources()) {
        if task_support::server_supports(context, server, TaskDialect::Core) {
            // A server knows a client's tasks on the connection that created them.
            let leased = RequestConnection::to(context, server).await?;
            tasks.extend(tasks_at(context, source.name(), &leased).await?);
        }
    }
    let mut result = Members::default();
    result.set("tasks", format!("[{}]", tasks.join(",")));
    Ok(context.answer(&result.to_json()))
}

/// The client's tasks at one server, with the client's ids.
async fn tasks_at(
    context: &RequestContext<'_>,
    server: &str,
    leased: &RequestConnection,
) -> Result<Vec<String>, RpcError> {
    let server_name: Arc<str> = server.into();
    let registry = &context.snapshot.services.tasks.registry;
    let mut found = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES {
        let mut params = Members::default();
        if let Some(cursor) = &cursor {
            params.set("cursor", cursor.clone());
        }
        let answer = leased.ask(context, "tasks/list", params.to_json()).await?;
        // A server that cannot list its tasks may still have some.
        let Ok(page) = answer.outcome() else { break };
        let listed = edit::get(page, "tasks").unwrap_or("[]");
        for task in elements(listed).unwrap_or_default() {
            let upstream_id = string(task, "taskId").unwrap_or_default();
            let client_id = registry.client_id(&server_name, &upstream_id, context.client.id);
            if let Some(id) = client_id.filter(|id| found_task::shows_task(context, id)) {
                found.push(edit::set(task, "taskId", &json::string(&id)).into_owned());
            }
        }
        let next = edit::get(page, "nextCursor").filter(|next| *next != "null");
        cursor = next.map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    Ok(found)
}
