//! Legacy sessions: an id that seals the negotiation, and the little state beside it.
//!
//! The [`id`] carries revision, features, ranked variants, capability class and expiry under an HMAC, so that a session
//! needs no stored state. [`Sessions`] has a bounded store, which finds recently used sessions without opening their ids
//! and remembers deletions. A [session](legacy_session) has its log level, and what exists only while a
//! request or a stream is open.

mod access_key;
pub(crate) mod caller;
mod claim_headers;
pub(crate) mod client;
pub(crate) mod client_uses;
pub(crate) mod deprecation;
pub(crate) mod directory_uses;
mod id;
mod legacy_session;
pub(crate) mod memory_cost;
mod negotiated;
mod outbox;
pub(crate) mod pending_server_requests;
mod pool_key;
mod sessions;

pub(crate) use self::access_key::AccessKey;
pub(crate) use self::claim_headers::{ClaimHeaders, ClaimValues};
pub(crate) use self::id::keyed;
pub(crate) use self::legacy_session::{AdmissionError, InFlightGuard, OutboxStream, Session};
pub(crate) use self::negotiated::{BASE_CLASS, Negotiated, ServerVisibility};
pub(crate) use self::pool_key::PoolKey;
pub(crate) use self::sessions::Sessions;
