//! What replicas of a gateway share in Redis or Valkey: ended sessions, the counts of rate limits, tallies of
//! experiments, and a way from one to another.
//!
//! | question | here |
//! |---|---|
//! | which store? | [`StoreUrl`] |
//! | is it there? | [`Store::state`], kept by [`Store::run`] |
//! | which sessions have ended at any replica? | [`Store::end_session`], and the events of [`Store::run`] |
//! | may this request go on? | [`Store::count`] |
//! | what did a replica leave that has ended? | [`Store::save`], [`Store::load`] |
//! | may a client change its variant? | [`Store::use_variant`] |
//! | what have all replicas counted? | [`Store::share_tallies`] |
//! | what if only another replica can answer a request? | [`Store::forward`], and the calls of [`Store::run`] |
//! | which replica serves a session whose replica has ended? | [`Store::home`], [`Store::forward_home`] |
//!
//! # Properties
//!
//! - One connection, which reconnects by itself. A request that needs the store waits for it at most [`TIMEOUT`], at most
//!   [`MAX_IN_FLIGHT`] do so at once, and none waits while the store is known to be away.
//! - Messages from replica to replica are encrypted, each for its reader, and no reader takes one twice.
//! - Names in the store are HMACs, values have one, and each key has an end. Who can read the store learns no name of a
//!   client, and who can write to it cannot end a session or count a call.
//! - All commands exist in Redis 7 and Valkey 8.
//! - Passwords are in no text that this crate makes.
#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]

mod account;
mod connection;
mod counting;
mod ended;
mod forward;
mod heirs;
mod mailbox;
mod namespace;
mod operations;
mod saved;
mod sentinels;
mod store;
mod succession;
mod tallies;
mod tally_exchange;
mod url;
mod variants;

pub use counting::{Count, MAX_IN_FLIGHT, Verdict};
pub use ended::{ENDED_ID, MAX_ENDED, SessionKey};
pub use heirs::SessionHome;
#[doc(hidden)]
pub use mailbox::written_frame;
pub use mailbox::{
    ForwardError, MAX_EXCHANGES, MAX_OF_ONE, ReplicaBody, ReplicaCall, ReplicaResponse,
    RequestHead, Responder, SILENCE, tag,
};
pub use saved::{MAX_SAVED, MAX_SAVED_TOTAL, SavedKind};
pub use store::{Store, StoreAway, StoreEvent, StoreState, TIMEOUT};
pub use tallies::{SharedTally, TALLY_RECORD, TallyRecord};
pub use url::{StoreUrl, StoreUrlError};
pub use variants::{MAX_VARIANTS, RefusedChange, VariantUse};
