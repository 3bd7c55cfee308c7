//! Methods of capabilities that a server does not declare: forwarded, as a client without a gateway would send them,
//! until the server answers that it does not have them ([0029](../../../../../docs/decisions/0029-undeclared-capabilities.md)).

use std::sync::Arc;

use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_wire::response::RpcError;

use crate::pipeline::exchange::UndeclaredMethod;
use crate::pipeline::request::method_not_found;
use crate::pipeline::request_context::RequestContext;
use crate::pool::source::ServerSource;

/// Whether a server may have a method that it does not declare: unless it answered that it does not.
pub(crate) fn may_have(source: &ServerSource, method: &str) -> bool {
    let facts = source.connection.server_facts();
    facts.undeclared_methods().has(method) != Some(false)
}

/// Where to record the answer of `server` to a method of a `capability`; `None` if the server has the method.
///
/// # Errors
///
/// `-32601` if the server is known not to have the method.
pub(crate) fn undeclared(
    context: &RequestContext<'_>,
    server: ServerIndex,
    capability: &str,
    method: &'static str,
) -> Result<Option<Box<UndeclaredMethod>>, RpcError> {
    let source = context.class.source(server);
    let snapshot = source.snapshot();
    if snapshot.handshake.is_none() || snapshot.capabilities().contains(capability) {
        return Ok(None);
    }
    let facts = Arc::clone(source.connection.server_facts());
    match facts.undeclared_methods().has(method) {
        Some(false) => Err(method_not_found(method)),
        Some(true) => Ok(None),
        None => Ok(Some(Box::new(UndeclaredMethod::new(facts, method)))),
    }
}
