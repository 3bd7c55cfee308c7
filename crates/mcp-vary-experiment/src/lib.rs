//! A/B experiments: who gets which variant, what comes of it, and whether a difference is real.
//!
//! | question | here |
//! |---|---|
//! | which arm does a client get? | [`Experiment::assign`] |
//! | how did its calls go? | [`Tally::record`] with a [`Call`], and [`Tally::totals`] |
//! | and at other replicas? | [`Tally::shared`], with the [`Record`]s of the others |
//! | which arm is better, and is that certain? | [`Report`], made of [`Totals`]; [`Report::sentences`] say it |
//!
//! The unit of assignment and of all statistics is the client, not the call: the calls of one client resemble each
//! other, so intervals by call would be too narrow and find differences that do not exist.
//!
//! # Properties
//!
//! - An assignment depends on the key, the names and weights of the experiment, and the client: every replica with the
//!   same configuration makes the same one. If the weight of one arm changes, clients move only to or from that arm.
//! - Memory is bounded: see [`MAX_UNITS`].
//! - The totals of several replicas can be added. Replicas that share a tally have the same totals.
//! - Nothing is declared below the number of clients that the experiment needs, or if the arms have other shares of
//!   the clients than planned.
//!
//! # Sources
//!
//! SEP-2053, "A/B Testing and Experimentation". Intervals: R. Kohavi, D. Tang, Y. Xu, *Trustworthy Online Controlled
//! Experiments*, chapters 17 (power), 18 (the delta method), 21 (sample ratio mismatch).
#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]

mod assignment;
mod call;
mod client;
mod exact_sums;
mod metric;
mod records;
mod report;
mod sentences;
mod shared;
mod statistics;
mod tally;
mod totals;

pub use assignment::{Arm, Experiment, ExperimentError, MAX_ARMS, MAX_NAME, MAX_WEIGHT, Unit};
pub use call::{Call, CallOutcome};
pub use client::REPAIR_TIME;
pub use metric::{Better, Metric};
pub use records::{RECORD, Record};
pub use report::{Comparison, Estimate, MIN_UNITS, Report, Shares, Verdict};
pub use sentences::probability;
pub use tally::{MAX_RECORDS, MAX_UNITS, Sharing, Tally};
pub use totals::{ArmTotals, Sums, Totals, TotalsError};
