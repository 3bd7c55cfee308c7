//! Legacy sessions: an id that seals the negotiation, and the little state beside it.
//!
//! The [`id`] carries revision, features, ranked variants, capability class and expiry under an HMAC, so that a session
//! needs no stored state. [`Sessions`] has a bounded store, which finds recently used sessions without opening their ids
//! and remembers deletions. A [session](legacy_session) has its log level, and what exists only while a
//! request or a stream is open.

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
