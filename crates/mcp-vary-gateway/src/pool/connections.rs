//! The connections to servers that clients share: what they declare, how many there may be, and which are evicted.

pub(crate) mod capabilities;
mod claims;
pub(crate) mod client_declarations;
mod connection_map;
pub(crate) mod eviction;
pub(crate) mod last_use;
pub(crate) mod server;
pub(crate) mod servers;
