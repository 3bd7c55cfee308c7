//! MCP content negotiation and server variants as values: values in, values out.
//!
//! No IO, no clock, no randomness, no SDK. What needs them takes them as arguments.

pub mod json;
