//! How commands reach running gateways.

pub(crate) mod client;
pub(crate) mod saved_days;
#[cfg(unix)]
pub(crate) mod socket;
pub(crate) mod token;
