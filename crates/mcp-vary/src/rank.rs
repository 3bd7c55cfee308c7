//! Ranking: orders variants by a client's hints, with reasons.
//!
//! Source: the server variants extension, "Rule-Based Server Ranking".

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use crate::hints::VariantHints;
use crate::variant::{ServerVariant, Status, VariantId};

pub mod model;

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
    pub fn entries(&self) -> &[Ranked] {
        &self.entries
    }

    /// The identifiers, best first.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &VariantId> {
        self.entries.iter().map(|entry| &entry.id)
    }

    /// The default variant, for requests without a selector.
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
        let remaining = self.entries.get(chosen.len()..).unwrap_or_default();
        let stable = |entry: &&Ranked| entry.status == Status::Stable;
        if !chosen.iter().copied().skip(1).any(|entry| stable(&entry))
            && let Some(fallback) = remaining.iter().find(stable)
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
            let score = points(key, value, hints.values(key), *weight, weights.any)?;
            let what = format!("{key}={value}");
            Some(Reason {
                label: what,
                points: score,
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
mod tests;
