//! Rate limits: what a request counts as, and the error of one that a limit refuses.
//!
//! Checked after the item was found and the client may use it, and before the handler receives
//! anything.

use mcp_vary::error_code::RATE_LIMITED;
use mcp_vary_rates::{LimitExceeded, Operation};
use rmcp::ErrorData;
use rmcp::model::ErrorCode;

use super::errors::data_with_active_variant;
use super::request_record::RequestRecord;
use super::rules::{Context, McpResult};
use super::selected_handler::SelectedHandler;
use super::vary_server::VaryServer;

impl VaryServer {
    /// Counts a call of the handler's tool `tool`.
    pub(super) fn count_call(
        &self,
        active: &SelectedHandler<'_>,
        tool: &str,
        context: &Context,
    ) -> McpResult<()> {
        let server = &*active.handler.server_name;
        self.count(active, &Operation::CallTool { server, tool }, context)
    }

    /// Counts a read of a resource or prompt, or a completion.
    pub(super) fn count_read(
        &self,
        active: &SelectedHandler<'_>,
        context: &Context,
    ) -> McpResult<()> {
        let server = &*active.handler.server_name;
        self.count(active, &Operation::Read { server }, context)
    }

    fn count(
        &self,
        active: &SelectedHandler<'_>,
        operation: &Operation<'_>,
        context: &Context,
    ) -> McpResult<()> {
        let Some(rates) = &self.state.rates else {
            return Ok(());
        };
        let clients = &self.state.clients;
        let checked = clients.with_caller(context, |caller| rates.check(caller, operation));
        checked.map_err(|limit| {
            RequestRecord::of(context).limited_by(limit.limit());
            rate_limited(&limit, active)
        })
    }
}

fn rate_limited(limit: &LimitExceeded<'_>, active: &SelectedHandler<'_>) -> ErrorData {
    let code = i32::try_from(RATE_LIMITED).map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    let data = data_with_active_variant(limit.data(), active.variant);
    ErrorData::new(code, limit.to_string(), Some(data))
}
