//! Clients against a scripted server of the SDK, in both eras, over pipes and HTTP.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "each case is written in place"
)]

mod choosing;
#[path = "../common/mod.rs"]
mod common;
mod declaring;
mod falling_back;
mod listening;
mod prelude;
mod remembering;
mod scripted;
mod selecting;
mod together;
