//! A cache of rankings.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_vary::hints::VariantHints;
use mcp_vary::rank::Ranking;
use mcp_vary_base::lock::Lock;

/// Recent rankings, by the variants that a client cannot see and by its hints.
///
/// The principal is not part of the key: two principals that see the same variants share a ranking.
/// Entries do not expire, because a ranking depends on nothing else.
#[derive(Default)]
pub(super) struct RankingCache(Lock<BTreeMap<RankingKey, Arc<Ranking>>>);

/// What a ranking depends on.
#[derive(Clone, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct RankingKey {
    /// The positions of the variants that the client cannot see.
    pub(super) hidden: Vec<usize>,
    pub(super) hints: VariantHints,
}

impl RankingCache {
    /// The ranking of `key`, computed by `rank` if it is not cached.
    pub(super) fn get_or_rank(
        &self,
        key: RankingKey,
        rank: impl FnOnce(&VariantHints) -> Ranking,
    ) -> Arc<Ranking> {
        if let Some(ranking) = self.0.lock().get(&key) {
            return Arc::clone(ranking);
        }
        // Rank without holding the lock: the author's function may be slow.
        let ranking = Arc::new(rank(&key.hints));
        let mut known = self.0.lock();
        if known.len() >= MAX_RANKINGS {
            known.clear();
        }
        known.insert(key, Arc::clone(&ranking));
        ranking
    }
}

/// The largest number of cached rankings. Hints have at most 70 KiB; those of real clients are
/// short.
const MAX_RANKINGS: usize = 64;
