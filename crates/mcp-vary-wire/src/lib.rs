//! MCP messages on the wire: envelopes, params, headers, errors, and the two eras of the protocol.
//!
//! Everything here is values: no sockets, no clock.

#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]
pub mod client_id;
pub mod client_name;
pub mod counters;
pub mod endpoint_path;
pub mod envelope;
pub mod era;
pub mod extension_methods;
pub mod handshake;
pub mod headers;
pub mod list_kind;
pub mod log_level;
pub mod meta;
pub mod method_names;
pub mod params;
mod raw_envelope;
pub mod refusal;
pub mod response;
pub mod revision;
pub mod sanitize;
pub mod server_message;
pub mod server_request_support;
pub mod sse;
pub mod task_dialect;
pub mod undeclared;
