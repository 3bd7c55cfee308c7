//! The spans of a gateway for MCP: how they continue the traces of callers, which of them are sampled, and how they
//! reach a collector.
//!
//! | question | here |
//! |---|---|
//! | which trace does a request belong to? | [`TraceContext`], in a [`Carrier`] |
//! | what is recorded of it? | [`RequestSpan`], [`CallSpan`] |
//! | is it recorded at all? | [`Tracer::begin`], by [`Follow`] and a ratio |
//! | where do spans go? | [`TracesSettings`] |
//!
//! # Properties
//!
//! - A request never waits for the collector. Spans wait in a queue of at most [`QUEUE`] entries, and are lost and counted if
//!   it is full.
//! - Of a request that is neither sampled nor has a context nothing is stored, and nothing that is sent for it changes.
//! - Texts that callers choose are cut to [`MAX_TEXT`] bytes, and methods are of a closed list.
//! - Clock, randomness and environment are arguments.
#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]

mod carrier;
mod context;
mod export;
mod processor;
mod proto;
mod settings;
mod span;
mod tracer;

pub use carrier::{Carrier, TRACEPARENT};
pub use context::TraceContext;
pub use export::{QUEUE, TraceStats};
pub use settings::{Follow, Ratio, RatioError, TracesError, TracesSettings};
pub use span::{
    Arrival, CallSpan, MAX_TEXT, Outcome, RequestSpan, Transport, Upstream, session_digest,
};
pub use tracer::Tracer;
