//! What must hold of every parser for every sequence of bytes.

#[cfg(feature = "gateway")]
pub mod gateway;
pub mod protocol;
