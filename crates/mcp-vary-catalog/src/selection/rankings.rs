//! Rankings of the variants, cached for a while by the hints of the request (SV-7).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_vary::hints::VariantHints;
use mcp_vary::rank::model::Reordering;
use mcp_vary::rank::{Ranking, Weights, rank};
use mcp_vary::variant::{ServerVariant, VariantId, Variants};
use mcp_vary_base::memo::Memo;
use sha2::{Digest as _, Sha256};

use crate::index::VariantIndex;

/// Ranks variants, and caches the rankings for a while.
///
/// # Properties
///
/// The variants and weights never change: a new configuration gets a new `Rankings`. The cache key is the digest of the
/// hints plus the variants that the client may see, so no client receives a ranking that was computed for other inputs.
#[derive(Debug)]
pub struct Rankings {
    variants: Variants,
    weights: Weights,
    /// How many variants are advertised (SV-3).
    pub advertised: usize,
    cache: Memo<CachedRanking>,
    computed: AtomicU64,
}

/// The variants, sorted by how well they suit a client.
#[derive(Debug, Default)]
pub struct RankedVariants {
    /// The advertised variants, best first.
    pub order: Arc<[VariantIndex]>,
    /// Whether more variants exist than are advertised.
    pub has_more: bool,
}

#[derive(Debug)]
struct CachedRanking {
    ranked: Arc<RankedVariants>,
    /// Seconds since 1970-01-01 UTC.
    until: u64,
}

/// A digest of a client's hints, used as a short cache key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HintsKey(Box<str>);

impl HintsKey {
    /// The key of these hints.
    pub fn of(hints: &VariantHints) -> Self {
        let mut digest = Sha256::new();
        // Each value is prefixed with its length or count, so that different hints never serialize to the same bytes.
        for (key, values) in hints.iter() {
            digest.update((values.len() as u64).to_be_bytes());
            for text in std::iter::once(key).chain(values.iter().map(String::as_str)) {
                digest.update((text.len() as u64).to_be_bytes());
                digest.update(text);
            }
        }
        Self(URL_SAFE_NO_PAD.encode(digest.finalize()).into())
    }

    /// The key as text of one length.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How the variants rank for a client, and why.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// All variants, best first, with the points that each hint contributed.
    pub ranking: Ranking,
    /// The advertised variants, best first.
    pub advertised: Vec<VariantId>,
    /// The keys of hints without effect: some variant declares them, but they have no weight.
    pub unweighted: Vec<String>,
    /// The keys of hints without effect: no variant declares them.
    pub unknown: Vec<String>,
}

impl Rankings {
    /// Ranks `variants` by `weights` and advertises `advertised` of them (2 to 5).
    pub fn new(variants: Variants, weights: Weights, advertised: usize) -> Self {
        Self {
            variants,
            weights,
            advertised: advertised.clamp(2, 5),
            cache: Memo::new(CACHE_BYTES),
            computed: AtomicU64::new(0),
        }
    }

    /// How many rankings were computed rather than read from the cache.
    pub fn computed(&self) -> u64 {
        self.computed.load(Ordering::Relaxed)
    }

    /// The ranking for a client with these hints. The client sees the variants in `visible`, or all variants if that is
    /// `None`. `now` is in seconds since 1970.
    pub fn get(
        &self,
        hints: &VariantHints,
        digest: &HintsKey,
        visible: Option<&[VariantIndex]>,
        now: u64,
    ) -> Arc<RankedVariants> {
        let make = |_: &str| CachedRanking {
            ranked: Arc::new(self.compute(hints, visible)),
            until: now.saturating_add(TTL_SECONDS),
        };
        let is_fresh = |cached: &CachedRanking| now < cached.until;
        let cached = match visible {
            None => self.cache.get_if(&digest.0, is_fresh, make),
            Some(visible) => self.cache.get_if(&key(digest, visible), is_fresh, make),
        };
        Arc::clone(&cached.ranked)
    }

    /// The ranking for such a client in the order of a model (SV-6), or of the rules if `order` is not a
    /// permutation of the variants that the client may see. It is not cached.
    pub fn reordered(
        &self,
        hints: &VariantHints,
        visible: Option<&[VariantIndex]>,
        order: &[VariantId],
        scope: Reordering,
    ) -> RankedVariants {
        let mut ranking = rank(self.visible(visible), hints, &self.weights);
        ranking.reorder(order, scope);
        self.advertise(&ranking)
    }

    /// The variants that are ranked for a client, in the order of declaration: those of `visible`, or all.
    pub fn visible<'a>(
        &'a self,
        visible: Option<&'a [VariantIndex]>,
    ) -> impl Iterator<Item = &'a ServerVariant> {
        let all = self.variants.as_slice().iter().enumerate();
        all.filter_map(move |(at, variant)| {
            let sees = |visible: &[VariantIndex]| visible.contains(&VariantIndex::at(at));
            visible.is_none_or(sees).then_some(variant)
        })
    }

    /// Whether both rank the same variants in the same way.
    pub fn ranks_like(&self, other: &Self) -> bool {
        self.variants == other.variants
            && (&self.weights, self.advertised) == (&other.weights, other.advertised)
    }

    fn compute(&self, hints: &VariantHints, visible: Option<&[VariantIndex]>) -> RankedVariants {
        self.computed.fetch_add(1, Ordering::Relaxed);
        self.advertise(&self.ranking(hints, visible))
    }

    /// How the variants rank for a client with these hints, which sees those in `visible`, or all. It is not cached.
    pub fn ranking(&self, hints: &VariantHints, visible: Option<&[VariantIndex]>) -> Ranking {
        rank(self.visible(visible), hints, &self.weights)
    }

    fn advertise(&self, ranking: &Ranking) -> RankedVariants {
        let all = self.variants.as_slice();
        let (ids, more) = ranking.advertise(self.advertised);
        let place = |id: &VariantId| {
            let position = all.iter().position(|variant| variant.id == *id);
            position.map(VariantIndex::at)
        };
        let order = ids.iter().filter_map(place).collect();
        RankedVariants {
            order,
            has_more: more,
        }
    }

    /// How all variants rank for a client with these hints, and why.
    pub fn explain(&self, hints: &VariantHints) -> Explanation {
        let ranking = self.ranking(hints, None);
        let keys = self.visible(None).flat_map(|variant| variant.hints.keys());
        let declared: BTreeSet<_> = keys.map(String::as_str).collect();
        let weighs = |key: &str| self.weights.hints.get(key).is_some_and(|it| it.first > 0);
        let keys = |wanted: &dyn Fn(&str) -> bool| {
            let sent = hints.iter().map(|(key, _)| key);
            // `status` does not rank variants: it asks for experimental variants to be offered.
            let weighed = sent.filter(|key| *key != "status" && wanted(key));
            weighed.map(str::to_owned).collect()
        };
        Explanation {
            advertised: ranking.advertise(self.advertised).0,
            unweighted: keys(&|key| declared.contains(key) && !weighs(key)),
            unknown: keys(&|key| !declared.contains(key)),
            ranking,
        }
    }
}

fn key(digest: &HintsKey, visible: &[VariantIndex]) -> String {
    let mut key = digest.0.to_string();
    for index in visible {
        let _ = write!(key, " {}", index.position());
    }
    key
}

/// Cache capacity in bytes for each of two generations; enough for about five hundred rankings.
const CACHE_BYTES: usize = 512 << 10;

/// How long a ranking is cached, in seconds.
const TTL_SECONDS: u64 = 300;

#[cfg(test)]
mod tests {
    use mcp_vary::variant::Date;

    use super::*;

    fn rankings(weights: Weights, variants: &[(&str, &str)]) -> Rankings {
        let variants = variants.iter().map(|(id, use_case)| {
            ServerVariant::new(id.parse().unwrap(), "").with_hint("useCase", *use_case)
        });
        let (variants, _) = Variants::new(variants.collect(), Date::from_unix(0)).unwrap();
        Rankings::new(variants, weights, 3)
    }

    type Pairs<'a> = &'a [(&'a str, &'a str)];

    /// Hints, who asks by what it sees, and the order.
    type Case<'a> = (Pairs<'a>, Option<&'a [usize]>, &'a [usize]);

    const VARIANTS: Pairs<'_> = &[("a", "x"), ("b", "y"), ("c", "z"), ("d", "x")];

    fn hints(pairs: &[(&str, &str)]) -> VariantHints {
        VariantHints::from_pairs(pairs.iter().copied()).0
    }

    fn order(
        rankings: &Rankings,
        pairs: &[(&str, &str)],
        visible: Option<&[usize]>,
        now: u64,
    ) -> Vec<usize> {
        let hints = hints(pairs);
        let visible = visible.map(|all| {
            all.iter()
                .copied()
                .map(VariantIndex::at)
                .collect::<Vec<_>>()
        });
        let ordered = rankings.get(&hints, &HintsKey::of(&hints), visible.as_deref(), now);
        ordered.order.iter().map(|it| it.position()).collect()
    }

    /// SV-7: what was ranked is not ranked again, for a while.
    #[test]
    fn a_ranking_is_made_once_in_its_time() {
        let rankings = rankings(Weights::default(), VARIANTS);
        for (now, made) in [(1_000, 1), (1_000, 1), (1_299, 1), (1_300, 2), (1_301, 2)] {
            let got = order(&rankings, &[("useCase", "y")], None, now);
            assert_eq!((got, rankings.computed()), (vec![1, 0, 2], made), "{now}");
        }
    }

    /// SV-7: what is remembered is of the same hints, in the same order, and of who sees the same.
    #[test]
    fn nobody_is_given_the_ranking_of_another() {
        let rankings = rankings(Weights::default(), VARIANTS);
        let cases: [Case<'_>; 7] = [
            (&[], None, &[0, 1, 2]),
            (&[("useCase", "z")], None, &[2, 0, 1]),
            (&[("useCase", "z"), ("useCase", "y")], None, &[2, 1, 0]),
            (&[("useCase", "y"), ("useCase", "z")], None, &[1, 2, 0]),
            (&[("useCase", "z")], Some(&[0, 3]), &[0, 3]),
            (&[("useCase", "x")], Some(&[1, 3]), &[3, 1]),
            (&[("useCase", "x")], Some(&[13]), &[]),
        ];
        for _ in 0..2 {
            for (hints, visible, expected) in cases {
                assert_eq!(order(&rankings, hints, visible, 0), expected, "{hints:?}");
            }
        }
        assert_eq!(rankings.computed(), 7);
    }

    /// SV-7: no two sets of hints have one digest by the way they are written one after the other.
    #[test]
    fn hints_that_differ_have_digests_that_differ() {
        let all: [&[(&str, &str)]; 6] = [
            &[],
            &[("a", "b")],
            &[("a", "b"), ("a", "c")],
            &[("a", "b"), ("c", "d")],
            &[("a", "bc")],
            &[("ab", "c")],
        ];
        let digests = all.map(|pairs| HintsKey::of(&hints(pairs)).0);
        let different: BTreeSet<_> = digests.iter().collect();
        assert_eq!(different.len(), all.len());
    }

    /// SV-3, SV-7: however many different hints arrive, only so many rankings are remembered.
    #[test]
    fn rankings_that_are_remembered_are_bounded() {
        let rankings = rankings(Weights::default(), VARIANTS);
        for at in 0..5_000 {
            order(&rankings, &[("useCase", &at.to_string())], None, 0);
        }
        assert!(rankings.cache.len() < 1_100, "{}", rankings.cache.len());
    }

    /// SV-5: what decides nothing is named.
    #[test]
    fn hints_that_decide_nothing_are_named() {
        let mut weights = Weights::default();
        weights.hints.remove("useCase");
        let rankings = rankings(weights, VARIANTS);
        let asked = hints(&[("useCase", "x"), ("region", "eu"), ("status", "stable")]);
        let explanation = rankings.explain(&asked);
        assert_eq!(explanation.unweighted, ["useCase"]);
        assert_eq!(explanation.unknown, ["region"]);
        assert_eq!(explanation.advertised.len(), 3);
        assert_eq!(explanation.ranking.entries().len(), 4);
    }
}
