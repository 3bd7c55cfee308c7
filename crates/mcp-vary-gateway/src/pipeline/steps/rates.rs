//! Rate limits: what a request counts as, and the error of one that a limit refuses.
//!
//! Checked after the item was found and access rules allow it, and before its server receives anything: what does not
//! exist for a client is answered as such, at any rate.

use mcp_vary::error::{Error, with_active_variant};
use mcp_vary_catalog::index::{ServerIndex, VariantIndex};
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::selection::variant_selection::DecidedBy;
use mcp_vary_rates::{Counted, LimitExceeded, Operation};
use mcp_vary_wire::response::RpcError;
use tracing::debug;

use crate::pipeline::request_context::{RequestContext, ViewScope};

/// Counts a call of a tool.
///
/// # Errors
///
/// `-32005` with the limit that refuses it. Then no limit has counted it.
pub(crate) fn count_call(scope: ViewScope<'_>, item_ref: &ItemRef) -> Result<(), RpcError> {
    let Some(limits) = scope.snapshot.config.rates.counting(Counted::Calls) else {
        return Ok(());
    };
    // The name before overrides, so that another variant is no way around a limit.
    let listed = if limits.uses_tool_names {
        scope.catalog.merged_item(ListKind::Tools, item_ref)
    } else {
        None
    };
    let tool = listed.map_or(&*item_ref.upstream_name, |item| &*item.id);
    let server = &scope.server_name(item_ref.server);
    let operation = Operation::CallTool { server, tool };
    let checked = limits.check(&scope.client.rate_caller(), &operation);
    checked.map_err(|limit| rate_limited(scope, &limit))
}

/// Counts a request that a server answers and that does not call a tool: a read, a completion, a request about a task.
///
/// # Errors
///
/// As those of [`count_call`].
pub(crate) fn count_read(scope: ViewScope<'_>, server: ServerIndex) -> Result<(), RpcError> {
    let Some(limits) = scope.snapshot.config.rates.counting(Counted::Calls) else {
        return Ok(());
    };
    let operation = Operation::Read {
        server: &scope.server_name(server),
    };
    let checked = limits.check(&scope.client.rate_caller(), &operation);
    checked.map_err(|limit| rate_limited(scope, &limit))
}

/// Counts a change of the variant, if the client used another one before (SV-21).
///
/// An address `/mcp/v/NAME`, or a pin, is a gateway with one variant: requests to it change nothing.
///
/// # Errors
///
/// `-32000` when a limit refuses the change. The variant that was active stays active.
pub(super) fn count_variant(
    context: &RequestContext<'_>,
    index: VariantIndex,
    decided_by: DecidedBy,
) -> Result<(), RpcError> {
    let Some(limits) = context.snapshot.config.rates.counting(Counted::Switches) else {
        return Ok(());
    };
    let offers = &context.client.offers;
    let is_choice = decided_by != DecidedBy::Address && offers.pin.is_none();
    let user = context.client.variant_user();
    let Some(user) = user.filter(|_| is_choice && context.snapshot.config.variants) else {
        return Ok(());
    };
    let variant = context.snapshot.variant_id(index.declared_view());
    let changed = limits.change_variant(&context.client.rate_caller(), user, variant, |latest| {
        let latest = context.snapshot.variant_index(latest.as_str());
        latest.is_some_and(|latest| offers.allows(latest))
    });
    changed.map_err(|refused| {
        record_limit(context, &refused.limit);
        let failure = RpcError::from(&Error::TooManySwitches {
            active: refused.active.as_ref().clone(),
            retry_after: refused.limit.retry_after(),
        });
        let data = refused.limit.data().to_string();
        failure.with_data(with_active_variant(Some(&data), &refused.active))
    })
}

fn rate_limited(scope: ViewScope<'_>, limit: &LimitExceeded<'_>) -> RpcError {
    record_limit(&scope, limit);
    let data = limit.data().to_string();
    let data = match scope.active_variant() {
        Some(id) => with_active_variant(Some(&data), &id),
        None => data,
    };
    RpcError::rate_limited(limit.to_string(), limit.retry_after()).with_data(data)
}

/// Writes a refusal to the logs.
fn record_limit(context: &RequestContext<'_>, limit: &LimitExceeded<'_>) {
    let (name, retry_after) = (limit.limit(), limit.retry_after());
    debug!(limit = name, retry_after, "request refused by a rate limit");
    if let Some(record) = context.client.observation.record() {
        record.limited_by(name);
    }
}
