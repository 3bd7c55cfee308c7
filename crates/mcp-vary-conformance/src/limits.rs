//! How long a server may take.

use std::time::Duration;

/// The limits of one server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// For a request and its response.
    pub(crate) request: Duration,
    /// For the first response of a process.
    pub(crate) start: Duration,
}
