//! Requests that may take several round trips.

use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_wire::refusal::ParamsError;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;

use crate::mrtr::{Quota, REQUEST_STATE, RequestBinding, RequestStateCodec, RoundTrip};
use crate::pipeline::request_context::ViewScope;

/// Seals the states of a request about the item `name`, bound to what the client wrote; `None` for legacy clients, whose
/// requests have one round trip.
pub(crate) fn state_codec(
    scope: ViewScope<'_>,
    server: ServerIndex,
    name: &str,
) -> Option<RequestStateCodec> {
    if scope.client.era() == Era::Legacy {
        return None;
    }
    let arguments = scope.request.params.members.get("arguments");
    let limits = &scope.snapshot.config.limits;
    let store = scope.snapshot.services.store.as_ref();
    let is_here = scope.has_state_here(server);
    Some(RequestStateCodec {
        replica: store.and_then(|store| is_here.then(|| store.tag())),
        variant: scope.snapshot.variant_id(scope.view).clone(),
        method: scope.action.round_trip_method()?,
        principal: scope.client.principal.clone(),
        owner: scope.client.quota_key(),
        request: RequestBinding {
            name: name.to_owned(),
            arguments: arguments.map(|arguments| scope.request.retain(arguments)),
        },
        server: scope.server_name(server),
        lifetime: limits.state_lifetime,
        quota: Quota::of(limits),
    })
}

/// Which round trip this is, by the state in the request.
///
/// # Errors
///
/// As those of [`RequestStateCodec::open`] and [`RequestStateCodec::round_trip`].
pub(super) fn open(
    scope: ViewScope<'_>,
    codec: Option<&RequestStateCodec>,
) -> Result<RoundTrip, RpcError> {
    if scope.action.round_trip_method().is_none() {
        return Ok(RoundTrip::Unsupported);
    }
    let Some(codec) = codec else {
        return Ok(RoundTrip::None);
    };
    let Some(sealed) = scope.request.params.members.get(REQUEST_STATE) else {
        return Ok(RoundTrip::First);
    };
    if let Some(key) = codec.request.ambiguous_key() {
        let failure = ParamsError::ambiguous(&key).into_counted_error(scope.counters());
        return Err(scope.with_active_variant(failure));
    }
    let mrtr = &scope.snapshot.services.exchange.mrtr;
    let opened = codec.open(mrtr, sealed);
    let state = opened.map_err(|failure| scope.with_active_variant(failure))?;
    codec.round_trip(mrtr, state)
}
