//! The values that a gateway is started with.

pub mod config;
pub mod keys;
pub mod limits;
