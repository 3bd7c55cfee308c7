//! The headers of servers whose values come from the claims of one client.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderValue;
use mcp_vary_upstream::ClaimFault;

/// The values of headers from the claims of one client: for each server that has such headers, by the server's number.
///
/// They are a part of keys: clients with other values have other connections. `Debug` does not show the values.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct ClaimHeaders(Arc<BTreeMap<usize, ClaimValues>>);

/// A value for each header of a server, or the claim that gives none.
pub(crate) type ClaimValues = Result<Box<[HeaderValue]>, ClaimFault>;

impl ClaimHeaders {
    pub(crate) fn new(values: BTreeMap<usize, ClaimValues>) -> Self {
        Self(Arc::new(values))
    }

    /// The values for the server with this number.
    pub(crate) fn of(&self, server: usize) -> Option<Result<&[HeaderValue], &ClaimFault>> {
        Some(self.0.get(&server)?.as_deref())
    }
}
