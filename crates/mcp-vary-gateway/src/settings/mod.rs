//! The settings with which a gateway starts.

pub mod config;
pub mod keys;
pub mod limits;
