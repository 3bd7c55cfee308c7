//! Learns from the answer to an undeclared method whether the server has that method.

use std::sync::Arc;

use mcp_vary::error_code::METHOD_NOT_FOUND;
use mcp_vary_upstream::ServerFacts;
use mcp_vary_wire::response::RpcError;

/// A method that its server does not declare, and where the server's answer is recorded.
#[derive(Debug)]
pub(crate) struct UndeclaredMethod {
    facts: Arc<ServerFacts>,
    method: &'static str,
}

impl UndeclaredMethod {
    pub(crate) const fn new(facts: Arc<ServerFacts>, method: &'static str) -> Self {
        Self { facts, method }
    }

    /// Records whether the server has the method, as its answer shows. Most errors show nothing.
    pub(super) fn record(&self, outcome: Result<&str, &str>) {
        let has = match outcome {
            Ok(_) => true,
            Err(error) if RpcError::from_upstream_or_internal(error).code() == METHOD_NOT_FOUND => {
                false
            }
            Err(_) => return,
        };
        self.facts.undeclared_methods().note(self.method, has);
    }
}
