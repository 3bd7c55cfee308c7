//! Tasks that a server creates in another dialect than its client's.

use mcp_vary_wire::response::{self, Reply};

use super::InFlightRequest;

impl InFlightRequest {
    /// Proxies the task that the server created, if it has to be. Returns the client's answer.
    pub(super) fn watch(&mut self, result: &str) -> Option<Reply> {
        let road = self.leases.task_connection.take()?;
        let names = self.response.plan.task.as_ref()?;
        let upstream_id = names.created_id(result)?;
        let road = road.with_leases(self.leases.dedicated.take(), self.leases.class.take());
        let retelling = || self.response.rewriter();
        let proxied = names.proxy(result, &upstream_id, &self.response.client, retelling, road);
        Some(match proxied {
            Ok(proxied) => response::result(&self.response.id, proxied.as_bytes()),
            Err(failure) => self.response.failed(&failure),
        })
    }
}
