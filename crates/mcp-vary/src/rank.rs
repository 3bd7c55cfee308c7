//! Ranking: orders variants by a client's hints, with reasons.
//!
//! Source: the server variants extension, "Rule-Based Server Ranking".

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use crate::hints::VariantHints;
use crate::variant::{ServerVariant, Status, VariantId};

/// The hint key whose value may be [`ANY_FAMILY`].
pub const MODEL_FAMILY: &str = "modelFamily";

/// The model family of a variant for no particular family.
pub const ANY_FAMILY: &str = "any";

/// The default number of advertised variants.
pub const DEFAULT_ADVERTISED: usize = 5;

/// The points of a matching hint: `first − step · place`, at least 1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "written as a literal in tables")]
pub struct Weight {
    /// Points for the client's first preference. 0 or less disables the key.
    pub first: i32,
    /// Points less for each further preference.
    pub step: i32,
}

/// The weights of a ranking.
///
/// The default is the extension's table. A key without a weight has no effect.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Weights {
    /// Weights by hint key.
    pub hints: BTreeMap<String, Weight>,
    /// Points for a variant of the family [`ANY_FAMILY`], if the client named a family.
    pub any: i32,
    /// Points for a stable variant.
    pub stable: i32,
    /// Points for a deprecated variant.
    pub deprecated: i32,
}

impl Default for Weights {
    fn default() -> Self {
        let hints = [
            (MODEL_FAMILY, 100, 10),
            ("useCase", 80, 10),
            ("contextSize", 40, 5),
        ];
        Self {
            hints: hints
                .into_iter()
                .map(|(key, first, step)| (key.to_owned(), Weight { first, step }))
                .collect(),
            any: 50,
            stable: 20,
            deprecated: -100,
        }
    }
}

impl Weights {
    /// Sets the weight of `key`.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, first: i32, step: i32) -> Self {
        self.hints.insert(key.into(), Weight { first, step });
        self
    }
}

/// Ranks `variants` for a client with `hints`, best first.
///
/// # Properties
///
/// The order is total: higher score, then more stable, then lower priority, then earlier declared. Then the first
/// entry that may be the default moves to the front: a stable one, or an experimental one if the client requested
/// these. Nothing is added, lost or repeated. A hint that either side lacks has no effect.
///
/// # Examples
///
/// ```
/// use mcp_vary::hints::VariantHints;
/// use mcp_vary::rank::{Weights, rank};
/// use mcp_vary::variant::{ServerVariant, Status};
///
/// let variants = [
///     ServerVariant::new("generic".parse()?, "").with_hint("modelFamily", "any"),
///     ServerVariant::new("preview".parse()?, "")
///         .with_hint("modelFamily", "anthropic")
///         .with_status(Status::Experimental),
/// ];
/// let (hints, _) = VariantHints::from_pairs([("modelFamily", "anthropic")]);
///
/// // The better match is experimental, which the client did not request.
/// let ranking = rank(&variants, &hints, &Weights::default());
/// assert_eq!(
///     ranking.to_string(),
///     "1. generic: 70 = modelFamily=any 50 + stable 20, moved to the front\n\
///      2. preview: 100 = modelFamily=anthropic 100\n",
/// );
/// # Ok::<(), mcp_vary::variant::VariantIdError>(())
/// ```
#[must_use]
pub fn rank<'a>(
    variants: impl IntoIterator<Item = &'a ServerVariant>,
    hints: &VariantHints,
    weights: &Weights,
) -> Ranking {
    let mut entries: Vec<Ranked> = variants
        .into_iter()
        .enumerate()
        .map(|(declared, variant)| score(variant, declared, hints, weights))
        .collect();
    entries.sort_by_key(Ranked::key);
    let mut ranking = Ranking {
        entries,
        experimental: hints.requests_experimental(),
    };
    if let Some(at) = ranking
        .entries
        .iter()
        .position(|entry| ranking.may_be_default(entry))
    {
        ranking.move_to_front(at);
    }
    ranking
}

/// Variants in the order in which they suit a client.
///
/// Prints one line per variant, with its score and the reasons.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ranking {
    entries: Vec<Ranked>,
    /// Whether the client requested experimental variants.
    experimental: bool,
}

/// One variant in a [`Ranking`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Ranked {
    /// The variant.
    pub id: VariantId,
    /// Its status.
    pub status: Status,
    /// The sum of the points.
    pub score: i64,
    /// The reasons for the points.
    pub reasons: Vec<Reason>,
    /// Whether it is first for another reason than its score.
    pub promoted: bool,
    priority: u32,
    declared: usize,
}

/// One reason for points.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Reason {
    /// What matched, such as `useCase=planning` or `stable`.
    pub label: String,
    /// The points.
    pub points: i64,
}

impl Ranked {
    fn key(&self) -> (Reverse<i64>, Status, u32, usize) {
        (
            Reverse(self.score),
            self.status,
            self.priority,
            self.declared,
        )
    }
}

impl Ranking {
    /// The variants, best first.
    #[must_use]
    pub fn entries(&self) -> &[Ranked] {
        &self.entries
    }

    /// The identifiers, best first.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &VariantId> {
        self.entries.iter().map(|entry| &entry.id)
    }

    /// The default variant, for requests without a selector.
    #[must_use]
    pub fn first(&self) -> Option<&VariantId> {
        self.ids().next()
    }

    /// Makes `id` the default, whatever its status; false if it is not in the ranking.
    ///
    /// Used when the operator or the endpoint's address decides, not the client's hints.
    pub fn promote(&mut self, id: &VariantId) -> bool {
        match self.entries.iter().position(|entry| entry.id == *id) {
            Some(at) => self.move_to_front(at),
            None => return false,
        }
        // The decision came from outside, even if the variant was already first.
        if let Some(first) = self.entries.first_mut() {
            first.promoted = true;
        }
        true
    }

    /// The variants to advertise, at most `limit` (2 to 5), and whether there are more.
    ///
    /// The default is always included, and another stable variant if there is one: it takes the last place if it
    /// ranks too low. Empty if the first variant must not be advertised as the default: it is neither stable, nor
    /// experimental on request, nor promoted.
    #[must_use]
    pub fn advertise(&self, limit: usize) -> (Vec<VariantId>, bool) {
        let Some(first) = self.entries.first() else {
            return (Vec::new(), false);
        };
        if !self.may_be_default(first) && !first.promoted {
            return (Vec::new(), false);
        }
        let mut chosen: Vec<&Ranked> = self.entries.iter().take(limit.clamp(2, 5)).collect();
        let rest = self.entries.get(chosen.len()..).unwrap_or_default();
        let stable = |entry: &&Ranked| entry.status == Status::Stable;
        if !chosen.iter().copied().skip(1).any(|entry| stable(&entry))
            && let Some(fallback) = rest.iter().find(stable)
            && let Some(last) = chosen.last_mut()
        {
            *last = fallback;
        }
        let more = chosen.len() < self.entries.len();
        (
            chosen.into_iter().map(|entry| entry.id.clone()).collect(),
            more,
        )
    }

    fn may_be_default(&self, entry: &Ranked) -> bool {
        match entry.status {
            Status::Stable => true,
            Status::Experimental => self.experimental,
            Status::Deprecated => false,
        }
    }

    fn move_to_front(&mut self, at: usize) {
        if at > 0 {
            self.entries[..=at].rotate_right(1);
            self.entries[0].promoted = true;
        }
    }
}

impl fmt::Display for Ranking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, entry) in self.entries.iter().enumerate() {
            writeln!(f, "{}. {entry}", at + 1)?;
        }
        Ok(())
    }
}

impl fmt::Display for Ranked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.score)?;
        for (at, reason) in self.reasons.iter().enumerate() {
            let sign = if at > 0 { "+" } else { "=" };
            write!(f, " {sign} {} {}", reason.label, reason.points)?;
        }
        if self.promoted {
            f.write_str(", moved to the front")?;
        }
        Ok(())
    }
}

fn score(
    variant: &ServerVariant,
    declared: usize,
    hints: &VariantHints,
    weights: &Weights,
) -> Ranked {
    let mut reasons: Vec<Reason> = weights
        .hints
        .iter()
        .filter_map(|(key, weight)| {
            let value = variant.hints.get(key)?;
            let points = points(key, value, hints.values(key), *weight, weights.any)?;
            let what = format!("{key}={value}");
            Some(Reason {
                label: what,
                points,
            })
        })
        .collect();
    let of_status = match variant.status {
        Status::Stable => weights.stable,
        Status::Experimental => 0,
        Status::Deprecated => weights.deprecated,
    };
    if of_status != 0 {
        reasons.push(Reason {
            label: variant.status.as_str().to_owned(),
            points: of_status.into(),
        });
    }
    Ranked {
        id: variant.id.clone(),
        status: variant.status,
        score: reasons.iter().map(|reason| reason.points).sum(),
        reasons,
        promoted: false,
        priority: variant.priority,
        declared,
    }
}

/// The points of a variant's hint `key=value` for a client that prefers `wanted`; `None` without a match.
fn points(key: &str, value: &str, wanted: &[String], weight: Weight, any: i32) -> Option<i64> {
    if wanted.is_empty() || weight.first <= 0 {
        return None;
    }
    // A variant for any family is worth less than every definite match.
    let any = if key == MODEL_FAMILY {
        i64::from(any)
    } else {
        0
    };
    if key == MODEL_FAMILY && value == ANY_FAMILY {
        return (any != 0).then_some(any);
    }
    let place = wanted.iter().position(|one| one == value)?;
    let place = i64::try_from(place).unwrap_or(i64::MAX);
    let decayed = i64::from(weight.first).saturating_sub(place.saturating_mul(weight.step.into()));
    Some(decayed.max(1).max(any + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variants written as `id/priority/status`.
    fn variants(texts: &[&str]) -> Vec<ServerVariant> {
        let read = |text: &&str| {
            let parts: Vec<_> = text.split('/').collect();
            let status = match parts[2] {
                "stable" => Status::Stable,
                "experimental" => Status::Experimental,
                _ => Status::Deprecated,
            };
            ServerVariant::new(parts[0].parse().unwrap(), "")
                .with_priority(parts[1].parse().unwrap())
                .with_status(status)
        };
        texts.iter().map(read).collect()
    }

    /// Ranks by nothing but the ties.
    fn ranking(texts: &[&str]) -> Ranking {
        let mut weights = Weights::default();
        (weights.stable, weights.deprecated) = (0, 0);
        rank(&variants(texts), &VariantHints::default(), &weights)
    }

    /// SV-5: ties are broken by status, then priority, then declaration.
    #[track_caller]
    fn ranks(texts: &[&str], expected: &[&str]) {
        assert!(
            ranking(texts).ids().eq(expected.iter()),
            "{}",
            ranking(texts)
        );
    }

    #[test]
    fn status_breaks_ties() {
        ranks(
            &["a/0/deprecated", "b/0/stable", "c/0/experimental"],
            &["b", "c", "a"],
        );
    }

    #[test]
    fn priority_breaks_ties_of_status() {
        ranks(
            &["a/2/stable", "b/1/stable", "c/0/experimental"],
            &["b", "a", "c"],
        );
    }

    #[test]
    fn declaration_breaks_ties_of_priority() {
        ranks(
            &["b/1/stable", "a/1/stable", "c/1/stable"],
            &["b", "a", "c"],
        );
    }

    /// SV-5: a ranking says why.
    #[test]
    fn a_ranking_prints_its_reasons() {
        let mut all = variants(&[
            "a/0/stable",
            "b/0/experimental",
            "c/0/deprecated",
            "d/0/experimental",
        ]);
        for (variant, use_case) in all.iter_mut().zip(["x", "y", "x", "z"]) {
            variant
                .hints
                .insert("useCase".to_owned(), use_case.to_owned());
        }
        let (hints, _) = VariantHints::from_pairs([("useCase", "y"), ("useCase", "x")]);
        assert_eq!(
            rank(&all, &hints, &Weights::default()).to_string(),
            "1. a: 90 = useCase=x 70 + stable 20\n\
             2. b: 80 = useCase=y 80\n\
             3. d: 0\n\
             4. c: -30 = useCase=x 70 + deprecated -100\n",
        );
    }

    /// SV-2: whatever fixes the default moves that variant to the front, and it is advertised.
    #[test]
    fn the_operator_decides_the_first() {
        let mut ranking = ranking(&[
            "a/0/stable",
            "b/0/stable",
            "c/0/experimental",
            "d/0/deprecated",
        ]);
        assert!(ranking.promote(&"c".parse().unwrap()));
        assert!(ranking.ids().eq(["c", "a", "b", "d"].iter()));
        assert!(ranking.entries()[0].promoted);
        let (advertised, more) = ranking.advertise(2);
        assert!(advertised == ["c", "a"] && more);
        assert!(!ranking.promote(&"x".parse().unwrap()));
        assert_eq!(ranking.first().map(VariantId::as_str), Some("c"));
    }

    /// SV-3: a lone experimental variant is a default only where somebody decided that.
    #[test]
    fn a_lone_experimental_variant_is_advertised_only_on_purpose() {
        let mut ranking = ranking(&["a/0/experimental"]);
        assert_eq!(ranking.first().map(VariantId::as_str), Some("a"));
        assert_eq!(ranking.advertise(DEFAULT_ADVERTISED), (Vec::new(), false));
        assert!(ranking.promote(&"a".parse().unwrap()));
        assert_eq!(ranking.advertise(DEFAULT_ADVERTISED).0, ["a"]);
    }

    /// SV-5: the weights are the extension's unless they are set.
    #[test]
    fn the_weights_are_the_extensions() {
        let weights = Weights::default();
        let of = |key: &str| weights.hints.get(key).map(|w| (w.first, w.step));
        assert_eq!(of("modelFamily"), Some((100, 10)));
        assert_eq!(of("useCase"), Some((80, 10)));
        assert_eq!(of("contextSize"), Some((40, 5)));
        assert_eq!(weights.hints.len(), 3);
        assert_eq!(
            (weights.any, weights.stable, weights.deprecated),
            (50, 20, -100)
        );
        let set = weights.with("useCase", 7, 1);
        assert_eq!(set.hints["useCase"], Weight { first: 7, step: 1 });
    }

    /// SV-5: weights that are set badly neither overflow nor turn a match into a loss.
    #[track_caller]
    fn is_worth(place: usize, weight: (i32, i32), any: i32, expected: Option<i64>) {
        let wanted: Vec<_> = (0..16).map(|n| format!("v{n}")).collect();
        let weight = Weight {
            first: weight.0,
            step: weight.1,
        };
        assert_eq!(
            points(MODEL_FAMILY, &format!("v{place}"), &wanted, weight, any),
            expected
        );
    }

    #[test]
    fn odd_weights_are_bounded() {
        is_worth(15, (i32::MAX, i32::MAX), 0, Some(1));
        is_worth(15, (1, i32::MIN), 0, Some(1 + 15 * (1 << 31)));
        is_worth(0, (0, 0), 50, None);
        is_worth(0, (-5, 0), 50, None);
        is_worth(0, (10, 0), i32::MAX, Some(1 << 31));
        is_worth(0, (10, 0), -7, Some(10));
        is_worth(15, (10, 1), -7, Some(1));
        is_worth(16, (10, 1), 50, None);
    }

    /// SV-5: `any` with a weight of 0 is no reason.
    #[test]
    fn any_may_be_worth_nothing() {
        let wanted = ["x".to_owned()];
        let weight = Weight {
            first: 100,
            step: 10,
        };
        assert_eq!(points(MODEL_FAMILY, ANY_FAMILY, &wanted, weight, 0), None);
        assert_eq!(
            points(MODEL_FAMILY, ANY_FAMILY, &wanted, weight, 50),
            Some(50)
        );
        assert_eq!(points(MODEL_FAMILY, ANY_FAMILY, &[], weight, 50), None);
        assert_eq!(points("useCase", ANY_FAMILY, &wanted, weight, 50), None);
    }
}
