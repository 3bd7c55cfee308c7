//! Predicates: an author's condition over a client's features.
//!
//! A client declares [tags](crate::feature); an author's condition tests them. The grammars differ: only a predicate
//! has `&`, ranges and `*`. The ranges are those of RFC 2295, section 6.3.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::feature::{FeatureTag, Features, Form, Presence, TagError, Verbosity};
use crate::ignored::for_display;

/// The maximum number of terms of one predicate.
pub const MAX_TERMS: usize = 16;

/// A condition over features.
///
/// # Grammar
///
/// ```text
/// predicate = "*" / term *( "&" term )          ; spaces around terms are free
/// term      = tag                               ; see FeatureTag
///           / key "=[" [ number ] "-" [ number ] "]"
/// number    = 1*digit                           ; up to 18446744073709551615
/// ```
///
/// | term | matches if the client |
/// |---|---|
/// | `*` | is any client |
/// | `agent` | declared it, and not its absence |
/// | `!interactive` | declared its absence; no declaration is not enough |
/// | `format=json` | declared this value, and did not exclude it |
/// | `verbosity!=verbose` | did not declare this value; no declaration is enough |
/// | `x-acme-max-tokens=[1000-]` | declared a number for it, the highest of which is at least 1000 |
///
/// `!tag` needs a declaration because only a declared absence may remove content. A predicate cannot ask for a value
/// that starts with `[` or contains `&`.
///
/// # Properties
///
/// A printed predicate parses to the same predicate. A predicate with a repeated term, or with a term and its
/// opposite, is rejected as a mistake.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Features;
/// use mcp_vary::predicate::Predicate;
///
/// let predicate: Predicate = "agent & !interactive & verbosity!=verbose".parse()?;
/// let matches = |tags: &[&str]| predicate.matches(&Features::from_tags(tags.iter().copied()).0);
/// assert!(matches(&["agent", "!interactive"]));
/// assert!(!matches(&["agent", "!interactive", "verbosity=verbose"]));
///
/// // The client must declare that it is not interactive.
/// assert!(!matches(&["agent"]));
/// # Ok::<(), mcp_vary::predicate::PredicateError>(())
/// ```
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Predicate {
    /// Empty for `*`.
    terms: Vec<Term>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Term {
    Tag(FeatureTag),
    Range(Range),
}

/// `key=[from-to]`
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Range {
    /// A presence tag, which is a validated key.
    key: FeatureTag,
    from: Option<u64>,
    to: Option<u64>,
}

/// How specific a predicate is.
///
/// A term is more specific than everything it implies: `x=5`, then `x=[1-9]`, then `x!=7`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub struct Specificity {
    /// Terms that require a declaration: all except exclusions.
    pub required: usize,
    /// The terms among these that are not ranges.
    pub exact: usize,
    /// Exclusions: `key!=value`.
    pub excluded: usize,
}

impl Predicate {
    /// `*`: matches every client.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Whether it matches every client.
    pub fn is_any(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether it matches a client with these features.
    #[must_use]
    pub fn matches(&self, features: &Features) -> bool {
        self.terms.iter().all(|term| term.matches(features))
    }

    /// The verbosity that it requires by name, if any.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary::feature::Verbosity;
    /// use mcp_vary::predicate::Predicate;
    ///
    /// let terse: Predicate = "agent & verbosity=compact".parse()?;
    /// assert_eq!(terse.verbosity(), Some(Verbosity::Compact));
    ///
    /// // An exclusion requires nothing.
    /// assert_eq!("verbosity!=verbose".parse::<Predicate>()?.verbosity(), None);
    /// # Ok::<(), mcp_vary::predicate::PredicateError>(())
    /// ```
    #[must_use]
    pub fn verbosity(&self) -> Option<Verbosity> {
        self.terms.iter().find_map(|term| match term {
            Term::Tag(tag) if tag.form() == Form::Equality && tag.key() == "verbosity" => {
                Verbosity::from_value(tag.value()?)
            }
            _ => None,
        })
    }

    /// How specific it is.
    #[must_use]
    pub fn specificity(&self) -> Specificity {
        let mut specificity = Specificity::default();
        for term in &self.terms {
            match term {
                Term::Tag(tag) if tag.form() == Form::Inequality => specificity.excluded += 1,
                Term::Tag(_) => {
                    specificity.required += 1;
                    specificity.exact += 1;
                }
                Term::Range(_) => specificity.required += 1,
            }
        }
        specificity
    }
}

impl Term {
    fn matches(&self, features: &Features) -> bool {
        match self {
            Self::Tag(tag) if tag.form() == Form::Inequality => {
                // Its state is the opposite of the equality's: absent is "has this value".
                features.state_of(tag) != Presence::Absent
            }
            Self::Tag(tag) => features.state_of(tag) == Presence::Present,
            Self::Range(range) => range.matches(features),
        }
    }

    /// Whether no client can satisfy both terms.
    fn contradicts(&self, other: &Self) -> bool {
        let denies = |one: &Self, other: &Self| match one.form() {
            Form::Negation => !matches!(other.form(), Form::Negation | Form::Inequality),
            Form::Inequality => other.form() == Form::Equality && one.value() == other.value(),
            Form::Presence | Form::Equality => false,
        };
        if self.key() == other.key() {
            return denies(self, other) || denies(other, self);
        }
        let audiences = ["agent", "human"];
        [self, other]
            .iter()
            .all(|term| term.form() == Form::Presence && audiences.contains(&term.key()))
    }

    /// A range requires a value, like an equality.
    fn form(&self) -> Form {
        match self {
            Self::Tag(tag) => tag.form(),
            Self::Range(_) => Form::Equality,
        }
    }

    fn key(&self) -> &str {
        match self {
            Self::Tag(tag) | Self::Range(Range { key: tag, .. }) => tag.key(),
        }
    }

    /// The required or excluded value; a range has none.
    fn value(&self) -> Option<&str> {
        match self {
            Self::Tag(tag) => tag.value(),
            Self::Range(_) => None,
        }
    }
}

impl Range {
    fn matches(&self, features: &Features) -> bool {
        let highest = features.values(self.key.key()).filter_map(number).max();
        highest.is_some_and(|n| {
            self.from.is_none_or(|from| from <= n) && self.to.is_none_or(|to| n <= to)
        })
    }
}

/// The alternative for a client: the most specific one whose predicate matches, and the first of equally specific
/// ones.
///
/// `None` if no predicate matches; [`Alternatives`] prevents that.
pub fn choose<'a, T>(alternatives: &'a [(Predicate, T)], features: &Features) -> Option<&'a T> {
    choose_with_condition(alternatives, features).map(|(_, alternative)| alternative)
}

/// Like [`choose`], with the matching predicate.
pub fn choose_with_condition<'a, T>(
    alternatives: &'a [(Predicate, T)],
    features: &Features,
) -> Option<(&'a Predicate, &'a T)> {
    let mut best: Option<(Specificity, (&Predicate, &T))> = None;
    for (predicate, alternative) in alternatives {
        let specificity = predicate.specificity();
        let better = best.is_none_or(|(so_far, _)| specificity > so_far);
        if better && predicate.matches(features) {
            best = Some((specificity, (predicate, alternative)));
        }
    }
    best.map(|(_, chosen)| chosen)
}

/// Alternatives under predicates, with one for every client.
///
/// # Properties
///
/// Only the last is unconditional.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Features;
/// use mcp_vary::predicate::Alternatives;
///
/// let alternatives = Alternatives::new(vec![
///     ("agent".parse()?, "terse"),
///     ("agent & format=json".parse()?, "structured"),
///     ("*".parse()?, "plain"),
/// ])?;
/// let choose = |tags: &str| *alternatives.choose(&Features::from_tags(tags.split(',')).0);
/// assert_eq!(choose("agent,format=json"), "structured");
/// assert_eq!(choose("agent"), "terse");
/// assert_eq!(choose("human"), "plain");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Alternatives<T> {
    conditional: Vec<(Predicate, T)>,
    otherwise: T,
}

impl<T> Alternatives<T> {
    /// Creates the list, and checks that only the last alternative is unconditional.
    ///
    /// # Errors
    ///
    /// When it is not, or when there is no alternative.
    pub fn new(mut alternatives: Vec<(Predicate, T)>) -> Result<Self, AlternativesError> {
        let Some((last, otherwise)) = alternatives.pop() else {
            return Err(AlternativesError::Empty);
        };
        if !last.is_any() {
            return Err(AlternativesError::LastIsConditional(last));
        }
        match alternatives.iter().position(|(one, _)| one.is_any()) {
            Some(at) => Err(AlternativesError::Unreachable(at)),
            None => Ok(Self {
                conditional: alternatives,
                otherwise,
            }),
        }
    }

    /// The alternative for a client.
    #[must_use]
    pub fn choose(&self, features: &Features) -> &T {
        choose(&self.conditional, features).unwrap_or(&self.otherwise)
    }
}

/// Why a list of alternatives is invalid.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AlternativesError {
    /// There is no alternative.
    #[error("there is no alternative; add one under `*`")]
    Empty,
    /// The last alternative is conditional.
    #[error("the last alternative has the condition `{0}`; add one under `*` after it")]
    LastIsConditional(Predicate),
    /// The alternative at this index, counted from 0, is unconditional, so the last is never chosen.
    #[error("alternative number {} is under `*`, so the last is never chosen; remove one", .0 + 1)]
    Unreachable(usize),
}

impl FromStr for Predicate {
    type Err = PredicateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim() == "*" {
            return Ok(Self::any());
        }
        if text.trim().is_empty() {
            return Err(PredicateError::Empty);
        }
        let mut terms: Vec<Term> = Vec::new();
        for part in text.split('&') {
            let term: Term = part.trim().parse()?;
            if terms.len() == MAX_TERMS {
                return Err(PredicateError::TooMany);
            }
            if terms.contains(&term) {
                return Err(PredicateError::Twice(term.to_string()));
            }
            if let Some(other) = terms.iter().find(|other| other.contradicts(&term)) {
                return Err(PredicateError::Never(other.to_string(), term.to_string()));
            }
            terms.push(term);
        }
        Ok(Self { terms })
    }
}

impl FromStr for Term {
    type Err = PredicateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once("=[") {
            Some((key, _)) if key.ends_with('!') => Err(PredicateError::Range(for_display(text))),
            Some((key, range)) => parse_range(key, range)?
                .map(Self::Range)
                .ok_or_else(|| PredicateError::Range(for_display(text))),
            None => tag(text).map(Self::Tag),
        }
    }
}

/// Parses the text before and after `=[`; `None` if it is not a range.
fn parse_range(key: &str, range: &str) -> Result<Option<Range>, PredicateError> {
    let key = tag(key)?;
    let Some((from, to)) = range.strip_suffix(']').and_then(|r| r.split_once('-')) else {
        return Ok(None);
    };
    let bound = |text: &str| match text {
        "" => Some(None),
        digits if is_number(digits) => digits.parse().ok().map(Some),
        _ => None,
    };
    let (Some(from), Some(to)) = (bound(from), bound(to)) else {
        return Ok(None);
    };
    let empty = matches!((from, to), (Some(from), Some(to)) if from > to);
    let plain = key.form() == Form::Presence;
    Ok((plain && !empty).then_some(Range { key, from, to }))
}

fn tag(text: &str) -> Result<FeatureTag, PredicateError> {
    text.parse()
        .map_err(|error| PredicateError::Tag(for_display(text), error))
}

/// The number in a client's value; one that is too large counts as the largest.
fn number(value: &str) -> Option<u64> {
    is_number(value).then(|| value.parse().unwrap_or(u64::MAX))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

impl TryFrom<String> for Predicate {
    type Error = PredicateError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Predicate> for String {
    fn from(predicate: Predicate) -> Self {
        predicate.to_string()
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_any() {
            return f.write_str("*");
        }
        for (at, term) in self.terms.iter().enumerate() {
            let separator = if at > 0 { " & " } else { "" };
            write!(f, "{separator}{term}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { key, from, to } = match self {
            Self::Tag(tag) => return tag.fmt(f),
            Self::Range(range) => range,
        };
        write!(f, "{key}=[")?;
        from.map_or(Ok(()), |from| write!(f, "{from}"))?;
        f.write_str("-")?;
        to.map_or(Ok(()), |to| write!(f, "{to}"))?;
        f.write_str("]")
    }
}

/// Why a text is not a predicate.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PredicateError {
    /// There is no text.
    #[error("a condition is not empty; write `*` for every client")]
    Empty,
    /// More than [`MAX_TERMS`].
    #[error("a condition joins at most {MAX_TERMS} terms")]
    TooMany,
    /// A term that is not a tag.
    #[error("`{0}` is not a term: {1}")]
    Tag(String, #[source] TagError),
    /// A term that is not a range.
    #[error("`{0}` is not a range; write `key=[1000-]`, `key=[-4000]` or `key=[1000-4000]`")]
    Range(String),
    /// A term that occurs twice.
    #[error("`{0}` occurs twice; remove one")]
    Twice(String),
    /// Two terms that never match together.
    #[error("`{0}` and `{1}` never match together; remove one")]
    Never(String, String),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CN-20: every slip of an author is named, with the fix.
    #[track_caller]
    fn refuses(text: &str, expected: &str) {
        assert_eq!(text.parse::<Predicate>().unwrap_err().to_string(), expected);
    }

    #[test]
    fn errors_name_the_term() {
        refuses(" ", "a condition is not empty; write `*` for every client");
        refuses("agent & ", "`` is not a term: a tag is not empty");
        refuses(
            "agent & !format=json",
            "`!format=json` is not a term: an absent tag has no value; write `key!=value` to exclude one",
        );
        let range = "is not a range; write `key=[1000-]`, `key=[-4000]` or `key=[1000-4000]`";
        refuses("x=[2-1]", &format!("`x=[2-1]` {range}"));
        refuses("x!=[1-2]", &format!("`x!=[1-2]` {range}"));
        refuses("agent & agent", "`agent` occurs twice; remove one");
        refuses("x=[1-] & x=[01-]", "`x=[1-]` occurs twice; remove one");
        let expected = "`format=json` and `format!=json` never match together; remove one";
        refuses("format=json & a & format!=json", expected);
        refuses(&"a & ".repeat(20), "`a` occurs twice; remove one");
        let many: Vec<_> = (0..=MAX_TERMS).map(|n| format!("t{n}")).collect();
        refuses(&many.join("&"), "a condition joins at most 16 terms");
    }

    /// CN-20: what may hold together is not refused.
    #[test]
    fn terms_that_may_hold_together_are_accepted() {
        for text in [
            "format=json & format=text",
            "format!=json & format=text",
            "!agent & !human",
            "agent & !human",
            "agent & x-human",
            "x & x=1",
            "x=[1-] & x!=5",
            "!x & x!=1",
            "human & agent!=yes",
        ] {
            assert!(text.parse::<Predicate>().is_ok(), "{text}");
        }
    }

    /// CN-20: a predicate prints in one way.
    #[test]
    fn a_predicate_prints_in_one_way() {
        let prints = |text: &str| text.parse::<Predicate>().unwrap().to_string();
        assert_eq!(prints("agent&!x&y!=1"), "agent & !x & y!=1");
        assert_eq!(prints(" x=[007-] "), "x=[7-]");
        let expected = "x=[-7] & y=[1-2] & z=[-]";
        assert_eq!(prints("x=[-7] & y=[1-2] & z=[-]"), expected);
        assert_eq!(prints(" * "), "*");
        assert_eq!(Predicate::any().to_string(), "*");
    }

    /// CN-20: the order of specificity.
    #[test]
    fn what_asks_for_more_is_more_specific() {
        let order = [
            "*",
            "x!=7",
            "x!=7 & x!=8",
            "x=[1-9]",
            "x=[1-9] & x!=7",
            "x=5",
            "x=5 & x!=7",
            "x=[1-9] & y=[1-9]",
            "x=[1-9] & y",
            "x & !y",
        ];
        let order = order.map(|text| text.parse::<Predicate>().unwrap().specificity());
        assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
    }

    /// CN-20: the last alternative, and only the last, is for everybody.
    #[test]
    fn alternatives_say_what_is_missing() {
        let says = |texts: &[&str]| {
            let all = texts
                .iter()
                .map(|text| (text.parse().unwrap(), ()))
                .collect();
            Alternatives::new(all).unwrap_err().to_string()
        };
        assert_eq!(says(&[]), "there is no alternative; add one under `*`");
        assert_eq!(
            says(&["*", "agent&x"]),
            "the last alternative has the condition `agent & x`; add one under `*` after it"
        );
        let expected = "alternative number 2 is under `*`, so the last is never chosen; remove one";
        assert_eq!(says(&["agent", "*", "*"]), expected);
    }

    /// CN-20: JSON goes through the same door.
    #[test]
    fn json_is_checked_too() {
        let predicate: Predicate = serde_json::from_str("\"agent&x=[1-]\"").unwrap();
        let text = serde_json::to_string(&predicate).unwrap();
        assert_eq!(text, "\"agent & x=[1-]\"");
        assert!(serde_json::from_str::<Predicate>("\"agent &\"").is_err());
    }
}
