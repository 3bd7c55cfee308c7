//! What the operator allows: access rules over the scopes of the token and the arguments, and rate limits.
//!
//! Checked after the item was found and before its server receives anything: what does not exist for a client is
//! answered as such, at any rate. A call counts for limits only after access rules allow it.

use crate::pipeline::request_context::{RequestContext, ViewScope};
use mcp_vary::error::{Error, with_active_variant};
use mcp_vary::variant::VariantId;
use mcp_vary_access::{
    AccessPolicy, Call, Decision, Denial, HiddenBy, Item as AccessItem, Principal, RuleIndex,
    Verdict,
};
use mcp_vary_catalog::access::AccessView;
use mcp_vary_catalog::index::{ServerIndex, VariantIndex};
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::selection::variant_selection::DecidedBy;
use mcp_vary_rates::{Counted, LimitExceeded, Operation};
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::response::RpcError;
use tracing::debug;

use mcp_vary_settings::rates::{ActiveLimits, SharedRefusal};

/// Checks a call of a listed item with these `arguments`, JSON text.
///
/// # Errors
///
/// `-32602` when an expression refuses the call, and the error of [`RpcError::insufficient_scope`] when it needs
/// scopes that the token lacks.
pub(crate) fn check_access(
    scope: ViewScope<'_>,
    kind: ListKind,
    item_ref: &ItemRef,
    arguments: Option<&str>,
) -> Result<(), RpcError> {
    let Some(access) = scope.variant_set().access() else {
        return Ok(());
    };
    let server = scope.server_name(item_ref.server);
    if let Some(record) = scope.client.observation.record() {
        record.set_server(&server, Some(&item_ref.upstream_name));
    }
    // The item may be listed since the request began: its server was starting.
    let latest = scope.class.catalog.current();
    let listed = scope.catalog.merged_item(kind, item_ref);
    match listed.or_else(|| latest.merged_item(kind, item_ref)) {
        Some(item) => check_item(scope, access, access.item(kind, item, &server), arguments),
        None => {
            let item = AccessItem::unlisted_resource(&item_ref.upstream_name, &server);
            check_item(scope, access, item, None)
        }
    }
}

/// Checks a request about a skill that the view shows.
///
/// # Errors
///
/// As those of [`check_access`].
pub(crate) fn check_skill(
    scope: ViewScope<'_>,
    server: ServerIndex,
    upstream_uri: &str,
) -> Result<(), RpcError> {
    let Some(access) = scope.variant_set().access() else {
        return Ok(());
    };
    let server = scope.server_name(server);
    let skill = AccessItem::skill(upstream_uri, &server);
    check_item(scope, access, skill, None)
}

fn check_item(
    scope: ViewScope<'_>,
    access: &AccessView,
    item: AccessItem<'_>,
    arguments: Option<&str>,
) -> Result<(), RpcError> {
    let decision = access.decide(&item);
    let policy = &access.policy;
    if let Decision::Allowed(rule) = decision {
        record_allowed(&scope, policy, rule);
        return Ok(());
    }
    let anonymous = Principal::anonymous();
    let call = Call {
        principal: scope.client.principal.as_deref().unwrap_or(&anonymous),
        item,
        variant: scope.snapshot.variant_id(scope.view),
        arguments,
    };
    match policy.check(&decision, &call) {
        Verdict::Allowed(rule) => {
            record_allowed(&scope, policy, rule);
            Ok(())
        }
        Verdict::NeedsScopes(rule) => {
            record_denial(&scope, policy, rule);
            scope.counters().increment(Counter::RefusedByAccessRules);
            let scopes = policy.rule(rule).into_iter().flat_map(|rule| rule.scopes());
            Err(RpcError::insufficient_scope(scopes))
        }
        Verdict::Denied(Denial { rule, error, .. }) => {
            scope.counters().increment(Counter::RefusedByAccessRules);
            match rule {
                Some(rule) => record_denial(&scope, policy, rule),
                None => record_default_denial(&scope),
            }
            let label = rule.map(|rule| policy.label(rule));
            let cause = error.map(|(rule, error)| format!("{}: {error}", policy.label(rule)));
            debug!(rule = ?label, error = ?cause, "call refused by access rules");
            let why = "the access rules do not allow this call with these arguments";
            Err(scope.with_active_variant(RpcError::invalid_params(why)))
        }
    }
}

/// Records that access rules hide the item `name` of a list, if it is there and hidden. The client gets the answer
/// to a name that nobody has.
pub(super) fn record_hidden(context: &RequestContext<'_>, kind: ListKind, name: &str) {
    let observes = context.client.observation.observes_denials();
    let Some(access) = observes.then(|| context.variant_set().access()).flatten() else {
        return;
    };
    let Some(item) = context.catalog.merged_item_named(kind, name) else {
        return;
    };
    let server = context.server_name(item.item_ref.server);
    match access.decide(&access.item(kind, item, &server)) {
        Decision::Hidden(HiddenBy::Default) => record_default_denial(context),
        Decision::Hidden(HiddenBy::Rule(rule)) => {
            record_denial(context, &access.policy, rule);
        }
        _ => return,
    }
    if let Some(record) = context.client.observation.record() {
        record.set_server(&server, Some(&item.item_ref.upstream_name));
    }
}

fn record_default_denial(context: &RequestContext<'_>) {
    context.client.observation.denied_by("access: default");
}

fn record_denial(context: &RequestContext<'_>, policy: &AccessPolicy, rule: RuleIndex) {
    let observation = &context.client.observation;
    if observation.observes_denials() {
        observation.denied_by(&policy.label(rule));
    }
}

fn record_allowed(context: &RequestContext<'_>, policy: &AccessPolicy, rule: RuleIndex) {
    if let Some(record) = context.client.observation.record() {
        record.allowed_by(&policy.label(rule));
    }
}

/// Counts a call of a tool.
///
/// # Errors
///
/// `-32005` with the limit that refuses it. Then no limit has counted it. `-32006` if the store that counts is away, and the
/// configuration refuses calls then.
pub(crate) async fn count_call(scope: ViewScope<'_>, item_ref: &ItemRef) -> Result<(), RpcError> {
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
    count(scope, limits, &Operation::CallTool { server, tool }).await
}

/// Counts a request that a server answers and that does not call a tool: a read, a completion, a request about a task.
///
/// # Errors
///
/// As those of [`count_call`].
pub(crate) async fn count_read(scope: ViewScope<'_>, server: ServerIndex) -> Result<(), RpcError> {
    let Some(limits) = scope.snapshot.config.rates.counting(Counted::Calls) else {
        return Ok(());
    };
    let server = &scope.server_name(server);
    count(scope, limits, &Operation::Read { server }).await
}

async fn count(
    scope: ViewScope<'_>,
    limits: &ActiveLimits,
    operation: &Operation<'_>,
) -> Result<(), RpcError> {
    let caller = scope.client.rate_caller();
    let Some(store) = &scope.snapshot.services.store else {
        let checked = limits.check(&caller, operation);
        return checked.map_err(|limit| rate_limited(scope, &limit));
    };
    let on_failure = scope.snapshot.config.store_failure;
    let checked = Box::pin(limits.check_shared(store, on_failure, &caller, operation));
    checked.await.map_err(|refusal| match refusal {
        SharedRefusal::Limit(limit) => rate_limited(scope, &limit),
        SharedRefusal::StoreAway => {
            debug!("request refused: the store is away");
            scope.with_active_variant(RpcError::store_away())
        }
    })
}

/// Counts a change of the variant, if the client used another one before (SV-21).
///
/// An address `/mcp/v/NAME`, or a pin, is a gateway with one variant: requests to it change nothing.
///
/// # Errors
///
/// `-32000` when a limit refuses the change. The variant that was active stays active.
pub(super) async fn count_variant(
    context: &RequestContext<'_>,
    limits: &ActiveLimits,
    index: VariantIndex,
    decided_by: DecidedBy,
) -> Result<(), RpcError> {
    let offers = &context.client.offers;
    let is_choice = decided_by != DecidedBy::Address && offers.pin.is_none();
    let is_counted = is_choice && context.snapshot.config.variants;
    let Some(user) = is_counted.then(|| context.client.variant_user()).flatten() else {
        return Ok(());
    };
    let variant = context.snapshot.variant_id(index.declared_view());
    let caller = context.client.rate_caller();
    let is_available = |latest: &VariantId| {
        let latest = context.snapshot.variant_index(latest.as_str());
        latest.is_some_and(|latest| offers.allows(latest))
    };
    let changed = match &context.snapshot.services.store {
        None => limits.change_variant(&caller, user, variant, is_available),
        Some(store) => {
            let all = context.snapshot.variant_set.variants.as_slice().iter();
            let ids = all.map(|variant| &variant.id);
            let available: Vec<_> = ids.filter(|id| is_available(id)).collect();
            let change = limits.change_shared_variant(store, &caller, user, variant, &available);
            Box::pin(change).await
        }
    };
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
    let failure = RpcError::rate_limited(limit.to_string(), limit.retry_after());
    scope.with_active_variant(failure.with_data(limit.data().to_string()))
}

/// Writes a refusal to the logs.
fn record_limit(context: &RequestContext<'_>, limit: &LimitExceeded<'_>) {
    let name = limit.limit();
    let retry_after = limit.retry_after();
    debug!(limit = name, retry_after, "request refused by a rate limit");
    context.client.observation.limited_by(name);
}
