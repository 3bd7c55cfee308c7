//! The maximum size of results.

/// The largest value or text that a projection or template may return, in bytes.
pub const LARGEST: usize = 8 << 20;
