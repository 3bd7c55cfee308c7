//! Clients of a gateway: who sends a request, and the session that it belongs to.
//!
//! | question | here |
//! |---|---|
//! | who sends it? | an [`authentication::AuthenticationService`] decides on credentials; a [`caller::Caller`] has the answer |
//! | what does the client declare, and which variant does it get? | its [`client::Client`], one for each request |
//! | which session is it? | [`Sessions`] find the [`Session`] by its id |
//! | what does a server want to know of the client? | [`pending_server_requests::PendingServerRequests`] |
//!
//! The id of a session carries revision, features, ranked variants, capability class and expiry under an HMAC, so that a
//! session needs no stored state. [`Sessions`] has a bounded store, which finds recently used sessions without opening their
//! ids and remembers deletions. A [`Session`] has its log level, and what exists only while a request or a stream is open.
#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]

mod access_key;
pub mod authentication;
pub mod caller;
mod claim_headers;
pub mod client;
pub mod client_uses;
pub mod deprecation;
pub mod directory_uses;
mod id;
mod legacy_session;
pub mod memory_cost;
mod negotiated;
mod notifications;
mod outbox;
pub mod pending_server_requests;
mod pool_key;
mod sessions;

pub use crate::access_key::AccessKey;
pub use crate::claim_headers::{ClaimHeaders, ClaimValues};
pub use crate::id::keyed;
pub use crate::legacy_session::{AdmissionError, InFlightGuard, OutboxStream, Session};
pub use crate::negotiated::{BASE_CLASS, Negotiated, ServerVisibility};
pub use crate::pool_key::PoolKey;
pub use crate::sessions::Sessions;
