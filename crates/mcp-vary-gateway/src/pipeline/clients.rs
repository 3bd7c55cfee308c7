//! The client of a request: from its session, or from what a modern request declares.

use std::sync::Arc;

use mcp_vary_catalog::selection::variant_selection::{DecidedBy, Offers};
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::meta::{CLIENT_CAPABILITIES, CLIENT_INFO};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;

use crate::pipeline::experiments::Identity;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::pipeline::variant_selection::{Candidates, requested_variant};
use mcp_vary_observation::Observation;
use mcp_vary_observation::participation::Participation;
use mcp_vary_session::Session;
use mcp_vary_session::caller::Caller;
use mcp_vary_session::client::{Client, check_version, modern_version};
use serde_json::Value;

/// The client of a session.
///
/// # Errors
///
/// When the address or the header names no variant.
pub(crate) fn legacy_client(
    snapshot: &ConfigSnapshot,
    session: &Arc<Session>,
    caller: &Caller,
    params: &Params<'_>,
) -> Result<Arc<Client>, RpcError> {
    let order = snapshot.placements.order_of(session).unwrap_or_default();
    let allowed = snapshot.allowed_variants(caller.principal.as_ref());
    let allowed = snapshot.selector.selectable(&order, allowed);
    if let Some(record) = caller.observation.record() {
        record.set_client(session.client_info());
    }
    let selector = &snapshot.selector;
    let candidates = Candidates {
        order: &order,
        allowed,
        outcome: None,
    };
    let mut offers = selector
        .select(&candidates, &caller.requested, params, |_| None)
        .inspect_err(|_| record_refused_variant(snapshot, caller, params))?;
    let negotiated = &session.negotiated;
    let mut participation = None;
    if offers.reason.by == DecidedBy::Ranking {
        offers.reason.clone_from(&negotiated.reason);
        participation = snapshot.participation_of(session, caller, &offers);
    }
    let rules = &snapshot.selector.rules;
    let outcome = rules.session_outcome(&negotiated.client, &caller.requested);
    Ok(Arc::new(Client {
        revision: negotiated.revision,
        id: session.client,
        connection: Some(session.client),
        features: negotiated.features.clone(),
        offers,
        knows_variants: negotiated.declares_variants || caller.requested.names_variant(),
        presentation: outcome.presentation,
        presumed_features: outcome.features,
        json: outcome.json,
        capabilities: None,
        forwardable: Arc::clone(&negotiated.class),
        forwardable_hash: None,
        class: snapshot.pool.keys.key(
            &negotiated.class,
            Some(session.client),
            caller.principal.as_ref(),
            Era::Legacy,
        ),
        principal: caller.principal.clone(),
        address: caller.address,
        observation: caller.observation.with_participation(participation),
        session: Some(Arc::clone(session)),
    }))
}

impl ConfigSnapshot {
    /// The part that the client of a session takes in the experiment that chose its variant, if one did.
    fn participation_of(
        &self,
        session: &Session,
        caller: &Caller,
        offers: &Offers,
    ) -> Option<Arc<Participation>> {
        let is_arm = offers.reason.by == DecidedBy::Experiment;
        let name = is_arm.then_some(offers.reason.rule.as_deref()?)?;
        let identity = Identity::of(caller.principal.as_ref(), Some(session.client))?;
        let variant = offers.default_variant();
        self.experiments.of_session(name, variant, identity)
    }
}

/// Counts and records that a request selects a variant that the client does not have, or that it has none.
pub(crate) fn record_refused_variant(
    snapshot: &ConfigSnapshot,
    caller: &Caller,
    params: &Params<'_>,
) {
    let counters = &snapshot.services.counters;
    let Some(requested) = requested_variant(&caller.requested, params) else {
        counters.increment(Counter::RefusedByAccessRules);
        let allowed = snapshot.allowed_variants(caller.principal.as_ref());
        let excluding = allowed.and_then(|allowed| allowed.rule.clone());
        let rule = match excluding.as_deref() {
            Some(rule) if caller.requested.pin.is_none() => rule,
            _ => PIN_OF_CREDENTIAL,
        };
        snapshot.selector.log_excluded(rule);
        caller.observation.denied_by(rule);
        return;
    };
    record_unknown_variant(snapshot, &caller.observation, &requested);
}

/// Counts and records that a request selects a variant that the client does not have.
pub(crate) fn record_unknown_variant(
    snapshot: &ConfigSnapshot,
    observation: &Observation,
    requested: &Value,
) {
    let counters = &snapshot.services.counters;
    counters.increment(Counter::RefusedUnknownVariants);
    observation.refuse_variant(requested);
}

/// What leaves a client without a variant if no access rule does.
const PIN_OF_CREDENTIAL: &str = "auth: pinned variant";

/// The capabilities in the `_meta` of a modern request.
///
/// # Errors
///
/// When they are missing, or not an object.
fn modern_capabilities<'p>(params: &'p Params<'_>) -> Result<&'p str, RpcError> {
    let written = params.meta.get(CLIENT_CAPABILITIES);
    let capabilities = written.filter(|written| written.starts_with('{'));
    capabilities.ok_or_else(|| {
        RpcError::invalid_params(format!(
            "`_meta` must hold `{CLIENT_CAPABILITIES}`, an object"
        ))
    })
}

/// The client of one modern request: what its `_meta` declares, and nothing from earlier requests.
///
/// # Errors
///
/// When `_meta` lacks a member that every request has, or an extension that is required; when the address or the
/// header names no variant.
pub(crate) fn modern_client(
    snapshot: &ConfigSnapshot,
    method: &str,
    caller: &Caller,
    params: &Params<'_>,
) -> Result<Arc<Client>, RpcError> {
    let revision = check_version(&modern_version(params)?)?;
    let declared = snapshot.parse_capabilities(modern_capabilities(params)?)?;
    // Any client may use `server/discover`.
    if method != "server/discover" {
        declared.has_required(Era::Modern)?;
    }
    let rules = &snapshot.selector.rules;
    let outcome = rules.outcome(params.meta.get(CLIENT_INFO), &caller.requested);
    let principal = caller.principal.as_ref();
    let allowed = snapshot.allowed_variants(principal);
    let (ranked, _) = snapshot
        .selector
        .ranked(&declared, caller, allowed.as_deref(), Era::Modern);
    let mut participation = None;
    let candidates = Candidates {
        order: &ranked.order,
        allowed,
        outcome: Some(&outcome),
    };
    let selector = &snapshot.selector;
    let selection = selector.select(&candidates, &caller.requested, params, |offers| {
        let identity = Identity::of(principal, None);
        let hints = &declared.variant_hints;
        participation = snapshot.experiments.assign(hints, identity, offers);
        participation.as_ref().map(|arm| arm.choice())
    });
    let refused = |_: &RpcError| record_refused_variant(snapshot, caller, params);
    let mut offers = selection.inspect_err(refused)?;
    if method != "server/discover" {
        snapshot.selector.restrict_to_offered(&mut offers);
    }
    Ok(Arc::new(Client {
        revision,
        id: snapshot.services.sessions.new_client(),
        connection: None,
        features: declared.features.clone(),
        offers,
        knows_variants: declared.knows_variants || caller.requested.names_variant(),
        presentation: outcome.presentation,
        presumed_features: outcome.features,
        json: outcome.json,
        session: None,
        capabilities: Some(Arc::clone(&declared.capabilities)),
        forwardable: Arc::clone(&declared.forwardable),
        forwardable_hash: declared.forwardable_hash,
        class: snapshot
            .pool
            .keys
            .key(&declared.forwardable, None, principal, Era::Modern),
        principal: caller.principal.clone(),
        address: caller.address,
        observation: caller.observation.with_participation(participation),
    }))
}
