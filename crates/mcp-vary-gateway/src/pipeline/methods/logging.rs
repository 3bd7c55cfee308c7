//! `logging/setLevel`.

use futures_util::future::join_all;
use mcp_vary_wire::log_level::level_from_name;
use mcp_vary_wire::response::RpcError;

use crate::pipeline::request::method_not_found;
use crate::pipeline::request_context::{Dispatch, RequestContext};

/// Sets the log level of a session, and of the connections to the servers.
pub(crate) async fn set_level(context: &RequestContext<'_>) -> Result<Dispatch, RpcError> {
    let name = context.request.params.string("level")?;
    let level = level_from_name(&name).ok_or_else(|| {
        RpcError::invalid_params("`level` is not a log level; use one of debug to emergency")
    })?;
    let sources: Vec<_> = context.visible_sources().collect();
    let connections = sources.iter().map(|source| &source.connection);
    join_all(connections.map(|connection| connection.try_set_log_level(level))).await;
    if !context.catalog.has_capability("logging") {
        return Err(method_not_found(context.request.method));
    }
    if let Some(session) = &context.client.session {
        session.set_log_level(level);
    }
    match sources.as_slice() {
        [only] if !only.is_starting() => only.connection.set_log_level(level).await?,
        // A server that is starting or down gets the level with its next call.
        several => {
            let settings = several.iter();
            join_all(settings.map(|it| it.connection.set_log_level_if_supported(level))).await;
        }
    }
    Ok(context.answer("{}"))
}
