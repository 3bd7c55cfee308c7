//! MCP content negotiation and server variants as values: values in, values out.
//!
//! No IO, no clock, no randomness, no SDK. What needs them takes them as arguments.

pub mod cursor;
pub mod error;
pub mod extension;
pub mod feature;
pub mod hints;
pub mod ignored;
pub mod json;
pub mod predicate;
pub mod rank;
pub mod render;
pub mod shape;
pub mod variant;
