//! Rate limits: how often a client may call tools, read, change its variant, or fail to authenticate.
//!
//! | question | here |
//! |---|---|
//! | how often? | [`Rate`]: `600/min`, with a burst |
//! | what is counted, and for whom? | [`Limit`], [`Counted`], [`Per`] |
//! | may this request go on? | [`RateLimiter::check`] with a [`Caller`] and an [`Operation`] |
//! | and if several processes count together? | [`RateLimiter::shared_buckets`] |
//! | what does the client get? | [`LimitExceeded`]: `Retry-After`, the data of the JSON-RPC error |
//!
//! The algorithm is the generic cell rate algorithm of the crate `governor`. Lists, handshakes and notifications are not
//! operations and are never limited: a client that may not list its tools starts again, which costs more than the list.
//!
//! # Properties
//!
//! - A request that is refused uses up nothing, in no limit.
//! - Each limit remembers a bounded number of clients. If it needs room, it forgets the client that used the least of
//!   its rate, so a client that is blocked is forgotten only if all others are blocked for longer.
//! - Time is an argument: see [`Clock`].
//! - Requests of different clients wait for each other only if their places in a table share a shard.
#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]

mod caller;
mod clock;
mod limit;
mod limiter;
mod rate;
mod refusal;
mod table;

pub use caller::{AddressGroup, Caller, Operation};
pub use clock::{MonotonicClock, SharedClock};
pub use governor::clock::{Clock, FakeRelativeClock};
pub use limit::{Counted, Limit, LimitError, MAX_LIMIT_NAME, Per};
pub use limiter::{
    DEFAULT_CAPACITY, MAX_CAPACITY, MAX_LIMITS, RateLimiter, RateLimiterError, SharedBucket,
};
pub use rate::{MAX_COUNT, MAX_REPLENISH_TIME, Rate, RateError};
pub use refusal::LimitExceeded;
