//! Clock, randomness, bounded stores, blocking work and texts of system errors, independent of the protocol.

pub mod blocking_work;
pub mod environment;
pub mod expiring_store;
pub mod histogram;
pub mod io_error;
pub mod lock;
pub mod log_backoff;
pub mod memo;
pub mod memory_budget;
mod setters;
