//! A call, as far as experiments look at it.

use std::time::Duration;

use crate::assignment::Unit;

/// How a call ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CallOutcome {
    /// With a result.
    Succeeded,
    /// The arguments were refused, by the gateway's check or by the server's.
    InvalidArguments,
    /// With any other error, or a result that says `isError`.
    Failed,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Who called.
    pub unit: Unit,
    /// The index of the client's arm.
    pub arm: usize,
    /// A hash of the tool's name.
    pub tool: u64,
    /// A hash of the arguments: to call with others after an error is a repair.
    pub arguments: u64,
    /// How it ended.
    pub outcome: CallOutcome,
    /// When it ended, since any fixed moment.
    pub ended: Duration,
    /// How long it took.
    pub duration: Duration,
    /// The length of its result, in tokens.
    pub tokens: u64,
}
