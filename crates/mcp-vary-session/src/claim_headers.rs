//! What of one client is in the headers of servers: values of its claims, or a token in exchange for its own.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderValue;
use mcp_vary_base::caller_token::CallerToken;
use mcp_vary_upstream::ClaimFault;

/// The values of headers from the claims of one client: for each server that has such headers, by the server's number;
/// and the client's access token.
///
/// The values are a part of keys: clients with other values have other connections. The token is not: connections outlive
/// it. `Debug` does not show them.
#[derive(Clone, Debug)]
pub struct ClaimHeaders {
    values: Arc<BTreeMap<usize, ClaimValues>>,
    token: Option<CallerToken>,
}

/// A value for each header of a server, or the claim that gives none.
pub type ClaimValues = Result<Box<[HeaderValue]>, ClaimFault>;

impl ClaimHeaders {
    /// The headers of each server, by its number, and the token of the caller.
    pub fn new(values: BTreeMap<usize, ClaimValues>, token: Option<CallerToken>) -> Self {
        let values = Arc::new(values);
        Self { values, token }
    }

    /// The values for the server with this number.
    pub fn of(&self, server: usize) -> Option<Result<&[HeaderValue], &ClaimFault>> {
        Some(self.values.get(&server)?.as_deref())
    }

    /// The access token of the client.
    pub const fn token(&self) -> Option<&CallerToken> {
        self.token.as_ref()
    }
}

impl PartialEq for ClaimHeaders {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Eq for ClaimHeaders {}

impl PartialOrd for ClaimHeaders {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ClaimHeaders {
    fn cmp(&self, other: &Self) -> Ordering {
        self.values.cmp(&other.values)
    }
}
