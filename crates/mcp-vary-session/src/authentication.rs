//! Who sends a request: credentials are decided on, and the keys that this needs are fetched.
//!
//! The rules are those of `mcp_vary_auth`; here are clock, network and tasks.

mod certificate;
mod issuer;
mod lifetime;
mod service;
mod trial;

pub use self::certificate::PeerCertificate;
pub use self::lifetime::{AdmissionLifetime, CurrentAuthentication};
pub use self::service::{AuthenticationService, CredentialRefusal};
pub use self::trial::try_token;
