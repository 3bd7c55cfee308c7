//! The order of a model or of servers, and the question that it answers.

use std::sync::Arc;

use mcp_vary::rank::model::Reordering;
use mcp_vary_catalog::selection::rankings::RankedVariants;
use mcp_vary_wire::revision::Era;

/// A digest of the hints, the description and the visible variants of a client.
pub(crate) type QuestionKey = [u8; 32];

/// The variants as a model or the servers order them, for clients of both eras.
#[derive(Debug, Default)]
pub(crate) struct RankedByEra {
    legacy: Arc<RankedVariants>,
    /// The default is that of the rules.
    modern: Arc<RankedVariants>,
}

impl RankedByEra {
    /// The variants in the order that `rank` gives them.
    pub(crate) fn new(rank: impl Fn(Reordering) -> RankedVariants) -> Self {
        Self {
            legacy: Arc::new(rank(Reordering::All)),
            modern: Arc::new(rank(Reordering::AfterDefault)),
        }
    }

    /// The variants for clients of `era`.
    pub(crate) fn for_era(&self, era: Era) -> Arc<RankedVariants> {
        match era {
            Era::Legacy => Arc::clone(&self.legacy),
            Era::Modern => Arc::clone(&self.modern),
        }
    }
}
