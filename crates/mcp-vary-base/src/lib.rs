//! Clock, randomness, bounded stores, blocking work, tokens of clients, the name in requests, private files and texts of system errors, independent of the protocol.

pub mod blocking_work;
pub mod caller_token;
pub mod copies;
mod defaults;
pub mod environment;
pub mod expiring_store;
pub mod histogram;
pub mod io_error;
pub mod limit;
pub mod limited_file;
pub mod lock;
pub mod log_backoff;
pub mod memo;
pub mod memory_budget;
pub mod private_files;
mod setters;
pub mod tasks;
mod trait_objects;
pub mod user_agent;
