//! Who sends a request: credentials are decided on, and the keys that this needs are fetched.
//!
//! The rules are those of `mcp_vary_auth`; here are clock, network and tasks.

mod certificate;
mod issuer;
mod lifetime;
mod service;
mod trial;

pub(crate) use self::certificate::PeerCertificate;
pub(crate) use self::lifetime::{AdmissionLifetime, CurrentAuthentication};
pub(crate) use self::service::AuthenticationService;
pub use self::trial::try_token;
