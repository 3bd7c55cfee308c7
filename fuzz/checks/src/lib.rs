//! What must hold of every parser for every sequence of bytes.

#[cfg(feature = "auth")]
pub mod auth;
#[cfg(feature = "gateway")]
pub mod gateway;
pub mod protocol;
