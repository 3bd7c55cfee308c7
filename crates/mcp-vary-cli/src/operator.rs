//! How commands reach running gateways.

pub(crate) mod client;
#[cfg(unix)]
pub(crate) mod socket;
pub(crate) mod token;
