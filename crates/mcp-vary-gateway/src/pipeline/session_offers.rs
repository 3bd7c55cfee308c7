//! The variants that `initialize` offers, and why the first one is the default of the session.

use std::sync::Arc;

use mcp_vary_audit::LongText;
use mcp_vary_catalog::selection::variant_selection::{DecidedBy, Offers, VariantReason};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use tracing::debug;

use crate::pipeline::capabilities::ParsedCapabilities;
use crate::pipeline::clients::record_refused_variant;
use crate::pipeline::experiments::Identity;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::pipeline::variant_selection::Candidates;
use mcp_vary_session::caller::Caller;

/// The variants that a client of `initialize` is offered.
///
/// # Errors
///
/// When the request, its address or its header selects a variant that the client does not have.
pub(crate) fn offer_variants(
    snapshot: &ConfigSnapshot,
    caller: &Caller,
    params: &Params<'_>,
    declared: &ParsedCapabilities,
) -> Result<Offers, RpcError> {
    let info = params.object("clientInfo")?;
    let selector = &snapshot.selector;
    let allowed = snapshot.allowed_variants(caller.principal.as_ref());
    let (ranked, by) = selector.ranked(declared, caller, allowed.as_deref(), Era::Legacy);
    let outcome = selector.rules.outcome(Some(info), &caller.requested);
    let candidates = Candidates {
        order: &ranked.order,
        allowed,
        outcome: Some(&outcome),
    };
    let by_experiment = |offers: &Offers| {
        // A client without a principal keeps its arm as long as its session.
        let mut random = [0; 8];
        (snapshot.config.environment.random)(&mut random);
        let session = Some(ClientId::from_be_bytes(random));
        let identity = Identity::of(caller.principal.as_ref(), session);
        let hints = &declared.variant_hints;
        // The rules decide who takes part: a model may not have answered when other clients came.
        let by_rules = selector.ranked_by_rules(declared, offers.allowed.as_deref());
        let by_rules = Offers {
            order: Arc::clone(&by_rules.order),
            ..offers.clone()
        };
        let participation = snapshot.experiments.assign(hints, identity, &by_rules)?;
        Some(participation.choice())
    };
    let requested = &caller.requested;
    let mut offers = selector
        .select(&candidates, requested, params, by_experiment)
        .inspect_err(|_| record_refused_variant(snapshot, caller, params))?;
    if offers.reason.by == DecidedBy::Ranking {
        offers.reason = by.into();
    }
    Ok(offers)
}

/// Why the session has its default variant. The client can read it in the session id, so that it does not name access
/// rules: they decide each request anew.
pub(crate) fn sealed_reason(
    snapshot: &ConfigSnapshot,
    caller: &Caller,
    offers: &Offers,
) -> VariantReason {
    let allowed = snapshot.allowed_variants(caller.principal.as_ref());
    let by_access = allowed.and_then(|allowed| allowed.rule.clone());
    let VariantReason { by, rule } = offers.reason.clone();
    VariantReason::new(by, rule.filter(|rule| Some(rule) != by_access.as_ref()))
}

/// Logs and records the variant that a client gets, and why (SV-22).
pub(crate) fn record_variant(
    snapshot: &ConfigSnapshot,
    caller: &Caller,
    declared: &ParsedCapabilities,
    offers: &Offers,
) {
    let is_recorded =
        caller.observation.record().is_some() || tracing::enabled!(tracing::Level::DEBUG);
    if offers.order.is_empty() || !is_recorded {
        return;
    }
    let id = snapshot.variant_id(offers.default_variant().declared_view());
    let details = snapshot.selector.ranking_details(declared, offers);
    let by = offers.reason.by.as_str();
    let rule = offers.reason.rule.as_deref();
    let order = details.order.as_ref().map(LongText::as_str);
    // The values of hints are in the audit log only.
    debug!(variant = %id, by, rule, method = "initialize", order, "variant selected");
    if let Some(record) = caller.observation.record() {
        record.set_variant(id, &offers.reason, details);
    }
}
