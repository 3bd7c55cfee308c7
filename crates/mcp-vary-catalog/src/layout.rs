//! How lists are named, shown, paged and cached.

use std::num::NonZeroUsize;
use std::sync::Arc;

use mcp_vary_results::ResultRule;
use mcp_vary_wire::era::Caching;

use crate::merge::Naming;
use crate::variant_set::VariantSet;

/// How lists are named, shown, paged and cached.
#[derive(Clone, Debug)]
pub struct Layout {
    /// How tools and prompts of several servers are named.
    pub naming: Naming,
    /// The variants, with their views.
    pub variants: Arc<VariantSet>,
    /// The rules for results.
    pub results: Arc<[ResultRule]>,
    /// The number of items on a page. `None` puts all items on one page.
    pub page_size: Option<NonZeroUsize>,
    /// The caching hints that modern clients receive.
    pub caching: Caching,
}

impl Layout {
    /// Whether views that were built with `other` are still valid.
    pub fn is_same(&self, other: &Self) -> bool {
        self.naming == other.naming
            && Arc::ptr_eq(&self.variants, &other.variants)
            && Arc::ptr_eq(&self.results, &other.results)
            && self.page_size == other.page_size
            && self.caching == other.caching
    }
}
