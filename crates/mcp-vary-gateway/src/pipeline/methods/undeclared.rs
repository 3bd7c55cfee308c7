//! Methods of capabilities that a server does not declare: forwarded, as a client without a gateway would send them,
//! until the server answers that it does not have them ([0029](../../../../docs/decisions/0029-undeclared-capabilities.md)).

use std::sync::Arc;

use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_wire::method_names::COMPLETE;
use mcp_vary_wire::response::RpcError;

use super::RequestContext;
use crate::pipeline::exchange::UndeclaredMethod;
use crate::pipeline::method_action::method_not_found;

const READ_RESOURCE: &str = "resources/read";

impl RequestContext<'_> {
    /// Refuses `completion/complete` if no server declares it and all are known not to have it.
    pub(super) fn may_complete(&self) -> Result<(), RpcError> {
        let may_have = || {
            self.visible_sources().any(|it| {
                it.connection
                    .server_facts()
                    .undeclared_methods()
                    .has(COMPLETE)
                    != Some(false)
            })
        };
        match self.catalog.capabilities.contains("completions") || may_have() {
            true => Ok(()),
            false => Err(method_not_found(self.request.method)),
        }
    }

    /// Where to record the answer of `server` to `completion/complete`; `None` if it declares the capability.
    ///
    /// # Errors
    ///
    /// `-32601` if the server is known not to have the method.
    pub(super) fn completes(
        &self,
        server: ServerIndex,
    ) -> Result<Option<Box<UndeclaredMethod>>, RpcError> {
        self.undeclared(server, "completions", COMPLETE)
    }

    /// Refuses `resources/read` if no server has resources. A single server is not asked for its lists first: its answer
    /// shows whether it has the method, and is recorded in the returned value.
    pub(super) async fn requires_resources(
        &mut self,
    ) -> Result<Option<Box<UndeclaredMethod>>, RpcError> {
        let is_offered = self.catalog.has_list(ListKind::Resources);
        let is_only = self.class.sources().len() == 1 && self.visible_sources().next().is_some();
        if !is_offered && is_only {
            return self.undeclared(ServerIndex::FIRST, "resources", READ_RESOURCE);
        }
        if self.require_list(ListKind::Resources).await.is_err() {
            self.require_list(ListKind::Templates).await?;
        }
        Ok(None)
    }

    fn undeclared(
        &self,
        server: ServerIndex,
        capability: &str,
        method: &'static str,
    ) -> Result<Option<Box<UndeclaredMethod>>, RpcError> {
        let source = self.class.source(server);
        let server_snapshot = source.snapshot();
        if server_snapshot.handshake.is_none()
            || server_snapshot.capabilities().contains(capability)
        {
            return Ok(None);
        }
        let facts = Arc::clone(source.connection.server_facts());
        match facts.undeclared_methods().has(method) {
            Some(false) => Err(method_not_found(method)),
            Some(true) => Ok(None),
            None => Ok(Some(Box::new(UndeclaredMethod::new(facts, method)))),
        }
    }
}
