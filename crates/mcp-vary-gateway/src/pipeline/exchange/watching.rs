//! Tasks that a server creates in another dialect than its client's.

use mcp_vary_wire::response::{self, Reply};

use super::in_flight_request::InFlightRequest;

impl InFlightRequest {
    /// Proxies the task that the server created, if it has to be. Returns the client's answer.
    pub(super) fn watch(&mut self, result: &str) -> Option<Reply> {
        let connection = self.leases.task_connection.take()?;
        let task = self.response.plan.task.as_ref()?;
        let upstream_id = task.created_id(result)?;
        let leased = connection.with_leases(self.leases.dedicated.take(), self.leases.class.take());
        let response = &self.response;
        let proxied = task.proxy(
            result,
            &upstream_id,
            &response.client,
            || response.rewriter(),
            leased,
        );
        Some(match proxied {
            Ok(proxied) => response::result(&self.response.id, proxied.as_bytes()),
            Err(failure) => self.response.failed(&failure),
        })
    }
}
