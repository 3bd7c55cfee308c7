//! Which tasks a client and the servers support, and in which dialect.

use mcp_vary::error_code::MISSING_CLIENT_CAPABILITY;
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::task_dialect::{TASKS_EXTENSION, TaskDialect, has_extension};
use serde_json::json;

use crate::pipeline::request::{MethodAction, TaskAction, method_not_found};
use crate::pipeline::request_context::RequestContext;
use crate::tasks::proxy::EXT_OVER_CORE;

/// Whether the server itself supports tasks of this dialect.
pub(crate) fn server_supports(
    context: &RequestContext<'_>,
    server: ServerIndex,
    dialect: TaskDialect,
) -> bool {
    let handshake = context.catalog.handshake(server);
    handshake.is_some_and(|handshake| dialect.is_supported_by(handshake))
}

/// Whether the client declares the extension, with this request or for its session.
pub(super) fn declares_extension(context: &RequestContext<'_>) -> bool {
    // Servers create tasks only for the capabilities of the class, which they receive.
    has_extension(&context.class.capabilities)
}

/// Whether the client supports tasks of this dialect.
pub(super) fn client_supports(context: &RequestContext<'_>, dialect: TaskDialect) -> bool {
    match dialect {
        TaskDialect::Core => context.client.era() == Era::Legacy,
        TaskDialect::Extension => declares_extension(context),
    }
}

/// Whether some server offers tasks to clients of this dialect, translated or not.
pub(crate) fn is_offered(context: &RequestContext<'_>, dialect: TaskDialect) -> bool {
    let offers = |server| {
        server_supports(context, server, dialect)
            || dialect == EXT_OVER_CORE.client
                && server_supports(context, server, EXT_OVER_CORE.server)
    };
    context.catalog.servers().any(|(server, _)| offers(server))
}

/// The dialects that the client supports, the method exists in, and some server offers, translated or not.
///
/// # Errors
///
/// When there are none.
///
/// > Servers MUST return this error for non-declaring clients issuing `tasks/get`, `tasks/update`, and
/// > `tasks/cancel` requests. (SEP-2663, "Protocol Errors")
pub(crate) fn request_dialects(context: &RequestContext<'_>) -> Result<Vec<TaskDialect>, RpcError> {
    let has_method = |dialect: &TaskDialect| match context.action {
        MethodAction::Task(TaskAction::Update) => *dialect == TaskDialect::Extension,
        MethodAction::Task(TaskAction::Result) | MethodAction::ListTasks => {
            *dialect == TaskDialect::Core
        }
        _ => true,
    };
    let known = TaskDialect::BOTH.into_iter().filter(has_method);
    let offered: Vec<_> = known.filter(|it| is_offered(context, *it)).collect();
    let dialects = offered.iter().copied();
    let supported: Vec<_> = dialects
        .filter(|dialect| client_supports(context, *dialect))
        .collect();
    if !supported.is_empty() {
        return Ok(supported);
    }
    if context.client.era() == Era::Modern && offered.contains(&TaskDialect::Extension) {
        require_extension(context)?;
    }
    Err(method_not_found(context.request.method))
}

/// Refuses clients that do not declare the extension.
pub(crate) fn require_extension(context: &RequestContext<'_>) -> Result<(), RpcError> {
    if declares_extension(context) {
        return Ok(());
    }
    let data = json!({"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}});
    let why = format!("declare the extension `{TASKS_EXTENSION}` to ask about tasks");
    Err(RpcError::new(MISSING_CLIENT_CAPABILITY, why).with_data(data.to_string()))
}
