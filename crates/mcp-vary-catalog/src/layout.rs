//! How lists are named, shown, paged and cached.

use std::num::NonZeroUsize;
use std::sync::Arc;

use mcp_vary_results::ResultRule;
use mcp_vary_wire::era::Caching;

use crate::merge::{Naming, name_prefix};
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
    /// Whether clients have the tool that reads what was left out of results.
    pub read_result: bool,
}

impl Layout {
    /// How the names of a server's tools and prompts begin in `standard`, beside so many `lists` of servers and of their
    /// variants; empty if that is not known.
    pub fn name_prefix(&self, server: &str, lists: usize) -> String {
        let is_prefixed = match self.naming {
            Naming::AsNeeded => lists > 1,
            Naming::Always => true,
            Naming::Never | Naming::OnCollision => false,
        };
        if is_prefixed {
            name_prefix(server)
        } else {
            String::new()
        }
    }

    /// Whether views that were built with `other` are still valid.
    pub fn is_same(&self, other: &Self) -> bool {
        self.naming == other.naming
            && Arc::ptr_eq(&self.variants, &other.variants)
            && Arc::ptr_eq(&self.results, &other.results)
            && self.page_size == other.page_size
            && self.caching == other.caching
            && self.read_result == other.read_result
    }
}
