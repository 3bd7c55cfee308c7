//! The store that replicas share.

pub use mcp_vary_store::StoreUrl;

/// What happens to requests with a rate limit while the store is away.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum StoreFailure {
    /// Each replica counts by itself.
    #[default]
    Open,
    /// They are refused.
    Closed,
}
