//! The operator's bounds on results.

use crate::render::{ELLIPSIS, Limits, shorter_prose, tokens};

/// The operator's bounds on results, which apply to all clients.
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
/// // A result within the bounds stays byte for byte.
/// assert_eq!(within(Bounds { elements: Some(3), ..Bounds::default() }), Shaped::Unchanged);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "callers override some defaults")]
pub struct Bounds {
    /// Elements of any array; members of an object that has more than 64.
    pub elements: Option<usize>,
    /// Levels of arrays and objects.
    pub depth: Option<usize>,
    /// [`tokens`] of the texts together, and of the structured value.
    pub tokens: Option<usize>,
}

impl Bounds {
    pub(super) fn is_unbounded(&self) -> bool {
        *self == Self::default()
    }

    /// `limits` restricted by these bounds.
    pub(super) fn applied_to(&self, limits: Limits) -> Limits {
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

/// Calls `say` with ever smaller limits until its result costs at most `most` tokens; returns the last one
/// otherwise.
pub(super) fn fit_to_tokens<T>(
    limits: &Limits,
    most: Option<usize>,
    say: impl Fn(&Limits) -> Option<T>,
    cost: impl Fn(&T) -> usize,
) -> Option<T> {
    let mut text = say(limits)?;
    let Some(most) = most else { return Some(text) };
    let mut bytes = most.saturating_mul(BYTES_PER_TOKEN);
    for _ in 0..MAX_TRIES {
        if cost(&text) <= most {
            break;
        }
        text = say(&limits.with_bytes(bytes))?;
        let fitting = bytes.saturating_mul(most) / cost(&text).max(1);
        bytes = fitting.min(bytes / 10 * 9);
    }
    Some(text)
}

/// The beginning of `text` that costs at most `most` tokens, and the number of bytes retained; `None` if the whole
/// text fits.
pub(super) fn shortened_to_tokens(text: &str, most: usize) -> Option<(String, usize)> {
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

/// The initial estimate of bytes per token.
const BYTES_PER_TOKEN: usize = 4;

/// The maximum number of attempts to make a value short enough.
const MAX_TRIES: usize = 12;
