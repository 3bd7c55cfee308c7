//! Checks calls by access rules: the scopes of the token, and expressions over the arguments.

use mcp_vary_access::{
    AccessPolicy, Call, Decision, Denial, HiddenBy, Item as AccessItem, Principal, RuleIndex,
    Verdict,
};
use mcp_vary_catalog::access::AccessView;
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::response::RpcError;
use tracing::debug;

use crate::pipeline::request_context::{RequestContext, ViewScope};

/// Checks a call of a listed item with these `arguments`, JSON text.
///
/// # Errors
///
/// `-32602` when an expression refuses the call, and the error of [`RpcError::insufficient_scope`] when it needs
/// scopes that the token lacks.
pub(crate) fn check(
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

fn check_item(
    scope: ViewScope<'_>,
    access: &AccessView,
    item: AccessItem<'_>,
    arguments: Option<&str>,
) -> Result<(), RpcError> {
    let decision = access.decide(&item);
    let policy = access.policy();
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
            let rule = rule.map(|rule| policy.label(rule));
            let error = error.map(|(rule, error)| format!("{}: {error}", policy.label(rule)));
            debug!(?rule, ?error, "call refused by access rules");
            let why = "the access rules do not allow this call with these arguments";
            Err(scope.with_active_variant(RpcError::invalid_params(why)))
        }
    }
}

/// Records that access rules hide the item `name` of a list, if it is there and hidden. The client gets the answer
/// to a name that nobody has.
pub(super) fn record_hidden(context: &RequestContext<'_>, kind: ListKind, name: &str) {
    let access = context.variant_set().access();
    let Some(access) = access.filter(|_| context.client.observation.observes_denials()) else {
        return;
    };
    let Some(item) = context.catalog.merged_item_named(kind, name) else {
        return;
    };
    let server = context.server_name(item.item_ref.server);
    match access.decide(&access.item(kind, item, &server)) {
        Decision::Hidden(HiddenBy::Default) => record_default_denial(context),
        Decision::Hidden(HiddenBy::Rule(rule)) => {
            record_denial(context, access.policy(), rule);
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
