//! Requests that may take several round trips.

use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_wire::refusal::ParamsError;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;

use super::RequestContext;
use crate::mrtr::{Quota, REQUEST_STATE, RequestBinding, RequestStateCodec, RoundTrip};

impl RequestContext<'_> {
    /// What the states of the request are bound to, as the client wrote it; `None` for legacy clients, whose requests
    /// have one round trip.
    pub(crate) fn request_binding(&self, name: &str) -> Option<RequestBinding> {
        let is_modern = self.client.era() == Era::Modern;
        let arguments = self.request.params.members.get("arguments");
        is_modern.then(|| RequestBinding {
            name: name.to_owned(),
            arguments: arguments.map(|arguments| self.request.retain(arguments)),
        })
    }

    /// Seals the states of a request with this `binding`.
    pub(super) fn request_state_codec(
        &self,
        view: ViewIndex,
        server: ServerIndex,
        binding: Option<RequestBinding>,
    ) -> Option<RequestStateCodec> {
        let limits = &self.snapshot.config.limits;
        Some(RequestStateCodec {
            variant: self.snapshot.variant_id(view).clone(),
            method: self.action.round_trip_method()?,
            principal: self.client.principal.clone(),
            owner: self.client.quota_key(),
            request: binding?,
            server: self.server_name(server),
            lifetime: limits.state_lifetime,
            quota: Quota::of(limits),
        })
    }

    /// Which round trip this is, by the state in the request.
    ///
    /// # Errors
    ///
    /// As those of [`RequestStateCodec::open`] and [`RequestStateCodec::round_trip`].
    pub(super) fn round_trip(
        &self,
        view: ViewIndex,
        codec: Option<&RequestStateCodec>,
    ) -> Result<RoundTrip, RpcError> {
        if self.action.round_trip_method().is_none() {
            return Ok(RoundTrip::Unsupported);
        }
        let Some(codec) = codec else {
            return Ok(RoundTrip::None);
        };
        let Some(sealed) = self.request.params.members.get(REQUEST_STATE) else {
            return Ok(RoundTrip::First);
        };
        let services = &self.snapshot.services;
        if let Some(key) = codec.request.ambiguous_key() {
            let failure = ParamsError::ambiguous(&key).into_counted_error(&services.counters);
            return Err(self.with_active_variant(view, failure));
        }
        let state = codec.open(&services.exchange.mrtr, sealed);
        let state = state.map_err(|failure| self.with_active_variant(view, failure))?;
        codec.round_trip(&services.exchange.mrtr, state)
    }
}
