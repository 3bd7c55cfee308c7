//! Multi round-trip requests: a server asks for input before it answers, and the client retries with that input.
//!
//! What a modern server asks of a modern client passes in a result, its state [sealed](request_state); a legacy client
//! gets it as a [relayed](relay) request. What a legacy server asks of a modern client [suspends](suspended) the call
//! until the client retries.
//!
//! Source: MCP 2026-07-28, basic/patterns/mrtr; docs/decisions/0016-held-calls.md.

mod input_required;
mod relay;
mod request_state;
mod required;
mod round_trip;
mod services;
mod suspended;

pub(crate) use self::input_required::{
    seal_input_required, suspend, url_required, validate_input_requests,
};
pub(crate) use self::relay::{InputRelay, RelayEvent};
pub(crate) use self::request_state::{RequestBinding, RequestStateCodec, replica_of};
pub(crate) use self::required::{
    INPUT_REQUESTS, INPUT_RESPONSES, REQUEST_STATE, is_input_required,
};
pub(crate) use self::round_trip::{RoundTrip, read_responses};
pub(crate) use self::services::MrtrServices;
pub(crate) use self::suspended::{
    InputRequests, Quota, SuspendedCall, SuspendedCalls, unknown_suspended_call,
};
