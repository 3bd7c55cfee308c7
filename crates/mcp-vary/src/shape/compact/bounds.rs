//! How much of a result every client gets.

use crate::render::{ELLIPSIS, Limits, shorter_prose, tokens};

/// How much of a result every client gets, whatever it declared.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Features;
/// use mcp_vary::shape::{
///     Bounds, Compaction, Policy, Shaped, ToolFacts, Whole, compact_tool_result,
/// };
///
/// let result = r#"{"content": [{"type": "text", "text": "[{\"id\": 1}, {\"id\": 2}, {\"id\": 3}]"}]}"#;
/// let within = |bounds| {
///     let compaction = Compaction {
///         bounds,
///         whole: Some(Whole { uri: "vary://result/x", ..Whole::default() }),
///         ..Compaction::default()
///     };
///     let (features, tool) = (Features::default(), ToolFacts::default());
///     compact_tool_result(result, &features, tool, &Policy::default(), &compaction).shaped
/// };
/// let Shaped::Changed { result: short, .. } = within(Bounds { elements: Some(2), ..Bounds::default() }) else {
///     panic!()
/// };
/// assert_eq!(short, concat!(
///     r#"{"content":[{"type":"text","text":"[{\"id\":1},{\"id\":2}]"},"#,
///     r#"{"type":"text","text":"2 of 3 elements; vary://result/x?offset=2"}]}"#,
/// ));
///
/// // What is within them stays as the bytes it was.
/// assert_eq!(within(Bounds { elements: Some(3), ..Bounds::default() }), Shaped::Unchanged);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers override some of the defaults"
)]
pub struct Bounds {
    /// Elements of any array; members of an object that has more than 64.
    pub elements: Option<usize>,
    /// Levels of arrays and objects.
    pub depth: Option<usize>,
    /// [`tokens`] of the texts together, and of the structured value.
    pub tokens: Option<usize>,
}

impl Bounds {
    pub(super) fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// `limits`, and these.
    pub(super) fn within(&self, limits: Limits) -> Limits {
        let limits = match self.elements {
            Some(elements) => limits.with_at_most(elements),
            None => limits,
        };
        match self.depth {
            Some(depth) => limits.with_depth(depth),
            None => limits,
        }
    }
}

/// What `say` makes within `limits` that costs at most so many tokens, or as few as it can.
pub(super) fn fitted<T>(
    limits: &Limits,
    most: Option<usize>,
    say: impl Fn(&Limits) -> Option<T>,
    cost: impl Fn(&T) -> usize,
) -> Option<T> {
    let mut said = say(limits)?;
    let Some(most) = most else { return Some(said) };
    let mut bytes = most.saturating_mul(BYTES_PER_TOKEN);
    for _ in 0..MOST_TRIES {
        if cost(&said) <= most {
            break;
        }
        said = say(&limits.with_bytes(bytes))?;
        let fitting = bytes.saturating_mul(most) / cost(&said).max(1);
        bytes = fitting.min(bytes / 10 * 9);
    }
    Some(said)
}

/// The beginning of `text` that costs at most so many tokens, and how many bytes of it that keeps; none when
/// it stays.
pub(super) fn within(text: &str, most: usize) -> Option<(String, usize)> {
    let mut bytes = text.len();
    let mut cost = tokens(text);
    let mut short = None;
    while cost > most && bytes > 1 {
        bytes = (bytes.saturating_mul(most) / cost).min(bytes / 10 * 9);
        let next = shorter_prose(text, bytes.max(ELLIPSIS.len()))?;
        cost = tokens(&next.0);
        short = Some(next);
    }
    short
}

/// So many bytes of JSON make a token at first.
const BYTES_PER_TOKEN: usize = 4;

/// So often a value is said again until it is short enough.
const MOST_TRIES: usize = 12;
