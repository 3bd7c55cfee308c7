//! Rate limits: what a request counts as, and the error of one that a limit refuses.
//!
//! Checked after the item was found and access rules allow it, and before its server receives anything: what does not
//! exist for a client is answered as such, at any rate.

use mcp_vary::error::{Error, with_active_variant};
use mcp_vary_catalog::index::{ServerIndex, VariantIndex, ViewIndex};
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::selection::variant_selection::DecidedBy;
use mcp_vary_rates::{Counted, LimitExceeded, Operation};
use mcp_vary_wire::response::RpcError;
use tracing::debug;

use super::RequestContext;

impl RequestContext<'_> {
    /// Counts a call of a tool.
    ///
    /// # Errors
    ///
    /// `-32005` with the limit that refuses it. Then no limit has counted it.
    pub(crate) fn count_call(&self, view: ViewIndex, place: &ItemRef) -> Result<(), RpcError> {
        let Some(limits) = self.snapshot.config.rates.counting(Counted::Calls) else {
            return Ok(());
        };
        // The name before overrides, so that another variant is no way around a limit.
        let listed = match limits.uses_tool_names {
            true => self.catalog.merged_item(ListKind::Tools, place),
            false => None,
        };
        let tool = listed.map_or(&*place.upstream_name, |item| &*item.id);
        let server = &self.server_name(place.server);
        let operation = Operation::CallTool { server, tool };
        let checked = limits.check(&self.client.rate_caller(), &operation);
        checked.map_err(|limit| self.rate_limited(view, &limit))
    }

    /// Counts a request that a server answers and that is no call of a tool: a read, a completion, a request about a task.
    ///
    /// # Errors
    ///
    /// As those of [`count_call`](Self::count_call).
    pub(crate) fn count_read(&self, view: ViewIndex, server: ServerIndex) -> Result<(), RpcError> {
        let Some(limits) = self.snapshot.config.rates.counting(Counted::Calls) else {
            return Ok(());
        };
        let server = &self.server_name(server);
        let operation = Operation::Read { server };
        let checked = limits.check(&self.client.rate_caller(), &operation);
        checked.map_err(|limit| self.rate_limited(view, &limit))
    }

    /// Counts a change of the variant, if the client used another one before (SV-21).
    ///
    /// An address `/mcp/v/NAME`, or a pin, is a gateway with one variant: requests to it change nothing.
    ///
    /// # Errors
    ///
    /// `-32000` when a limit refuses the change. The variant that was active stays active.
    pub(crate) fn count_variant(
        &self,
        index: VariantIndex,
        decided_by: DecidedBy,
    ) -> Result<(), RpcError> {
        let Some(limits) = self.snapshot.config.rates.counting(Counted::Switches) else {
            return Ok(());
        };
        let offers = &self.client.offers;
        let is_choice = decided_by != DecidedBy::Address && offers.pin.is_none();
        let user = self.client.variant_user();
        let Some(user) = user.filter(|_| is_choice && self.snapshot.config.variants) else {
            return Ok(());
        };
        let variant = self.snapshot.variant_id(index.declared_view());
        let changed = limits.change_variant(&self.client.rate_caller(), user, variant, |latest| {
            let latest = self.snapshot.variant_index(latest.as_str());
            latest.is_some_and(|latest| offers.allows(latest))
        });
        changed.map_err(|refused| {
            self.record_limit(&refused.limit);
            let failure = RpcError::from(&Error::TooManySwitches {
                active: refused.active.as_ref().clone(),
                retry_after: refused.limit.retry_after(),
            });
            let data = refused.limit.data().to_string();
            failure.with_data(with_active_variant(Some(&data), &refused.active))
        })
    }

    fn rate_limited(&self, view: ViewIndex, limit: &LimitExceeded<'_>) -> RpcError {
        self.record_limit(limit);
        let data = limit.data().to_string();
        let data = match self.active_variant(view) {
            Some(id) => with_active_variant(Some(&data), &id),
            None => data,
        };
        RpcError::rate_limited(limit.to_string(), limit.retry_after()).with_data(data)
    }

    /// Writes a refusal to the logs.
    fn record_limit(&self, limit: &LimitExceeded<'_>) {
        let (name, retry_after) = (limit.limit(), limit.retry_after());
        debug!(limit = name, retry_after, "request refused by a rate limit");
        if let Some(record) = self.client.observation.record() {
            record.limited_by(name);
        }
    }
}
