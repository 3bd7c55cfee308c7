//! Whether `content` and `structuredContent` say the same.

use std::collections::BTreeMap;
use std::fmt;

use crate::ignored::shown;
use crate::json::{Json, JsonError, Members, pointer};
use crate::shape::META_APPLIED;
use crate::shape::{Relation, ToolFacts, blocks, candidates, meta, relations, texts};

/// One field this many times as large as the other is worth a look.
pub const LARGER: usize = 10;

/// A field below so many bytes is never too large.
pub const SMALLEST_LARGE: usize = 1024;

/// At most so many values are named of one result.
pub const MAX_NAMED: usize = 16;

/// Beyond so many texts, none is compared.
const MOST_TEXTS: usize = 64;

/// Longer labels, keys and words name nothing that prose could say otherwise.
const LONGEST_COMPARED: usize = 128;

/// A field of a tool's result.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a result has these two fields")]
pub enum Field {
    /// What a model reads.
    Content,
    /// What a program reads.
    StructuredContent,
}

impl Field {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::StructuredContent => "structuredContent",
        }
    }
}

/// What a comparison of the two fields found; prints as a sentence.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// A text says another value than the structure: a contradiction.
    Denied {
        /// Where the structure holds the value, as a JSON pointer.
        pointer: String,
        /// What the text says, escaped and cut.
        said: String,
        /// What the structure holds, escaped and cut.
        holds: String,
    },
    /// A text says what the structure nowhere holds.
    Added {
        /// What the text says, escaped and cut.
        said: String,
    },
    /// One of the fields is missing.
    Missing(Field),
    /// This field is at least [`LARGER`] times as large as the other.
    Larger {
        /// The large field.
        field: Field,
        /// How many times, rounded down.
        times: usize,
    },
}

impl Finding {
    /// Whether the fields contradict each other, rather than say more or less.
    #[must_use]
    pub fn is_contradiction(&self) -> bool {
        matches!(self, Self::Denied { .. })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied {
                pointer,
                said,
                holds,
            } => write!(
                f,
                "`content` says `{said}` where `structuredContent` holds `{holds}` at `{pointer}`"
            ),
            Self::Added { said } => write!(
                f,
                "`content` says `{said}`, which `structuredContent` nowhere holds"
            ),
            Self::Missing(Field::Content) => f.write_str(
                "`structuredContent` has no `content` beside it; say the same there, as JSON text at the least",
            ),
            Self::Missing(Field::StructuredContent) => f.write_str(
                "the tool declares an `outputSchema`, but the result has no `structuredContent`",
            ),
            Self::Larger { field, times } => {
                let field = field.as_str();
                write!(f, "`{field}` is {times} times as large as the other field")
            }
        }
    }
}

/// Compares `content` with `structuredContent` in `result`, the `result` member of a `tools/call` answer.
///
/// Nothing found means that they are equivalent: "same information, different presentation".
///
/// # Properties
///
/// A text that is JSON is compared value by value. Of prose, a labelled value
/// (`Temperature: 9 °C` beside `"temperature_c": 8`) is compared where the label names one value
/// only; any other number is looked for in the whole structure: rounded, grouped (`100,000`), as a
/// percentage, as the length of a list, as a part of a date. `content` may say less; it should not
/// say otherwise. At most [`MAX_NAMED`] values are named. Errors are not compared, nor texts
/// that the client negotiated to be compact.
///
/// # Errors
///
/// When `result` is no JSON object, its `content` no array, or its structured value nests too deep.
///
/// # Examples
///
/// ```
/// use mcp_vary::shape::ToolFacts;
/// use mcp_vary::visibility::compare;
///
/// let findings = |text: &str| {
///     let result = serde_json::json!({
///         "content": [{"type": "text", "text": text}],
///         "structuredContent": {"location": "Bern", "temperature_c": 8.2, "rain": 0.3},
///     });
///     let findings = compare(&result.to_string(), ToolFacts::default()).unwrap();
///     findings.iter().map(ToString::to_string).collect::<Vec<_>>()
/// };
/// assert!(findings("**Temperature**: 8 °C\n**Rain**: 30%").is_empty());
/// assert_eq!(
///     findings("**Temperature**: 9 °C"),
///     ["`content` says `9` where `structuredContent` holds `8.2` at `/temperature_c`"],
/// );
///
/// // A number without a label may be anything, but the structure should know it.
/// assert_eq!(
///     findings("It is 8 °C in Bern and feels like 5."),
///     ["`content` says `5`, which `structuredContent` nowhere holds"],
/// );
/// ```
pub fn compare(result: &str, tool: ToolFacts) -> Result<Vec<Finding>, JsonError> {
    let result = Members::parse(result)?;
    if result.get("isError") == Some("true") {
        return Ok(Vec::new());
    }
    let blocks = match result.get("content") {
        None | Some("null") => Vec::new(),
        Some(content) => blocks(content)?,
    };
    let written = result.get("structuredContent").filter(|v| *v != "null");
    let Some(written) = written else {
        let missing = Finding::Missing(Field::StructuredContent);
        return Ok(tool.output_schema.then_some(missing).into_iter().collect());
    };
    let mut findings = Vec::new();
    let meta = meta(&result)?;
    let applied = meta.get(META_APPLIED);
    if blocks.is_empty() && applied.is_none() {
        findings.push(Finding::Missing(Field::Content));
    }
    let verbosity = applied
        .and_then(|applied| Members::parse(applied).ok())
        .and_then(|applied| applied.get_str("verbosity"));
    if verbosity.as_deref() == Some("compact") {
        // Fewer words in another arrangement: it was made from the value.
        return Ok(findings);
    }
    let texts = texts(&blocks);
    let value = Json::parse(written)?;
    compare_texts(&value, &texts, &mut findings);
    findings.extend(larger(
        texts.iter().map(|text| text.len()).sum(),
        written.len(),
    ));
    Ok(findings)
}

/// Whether one of the fields, of which there is something each, is far too large.
fn larger(content: usize, structured: usize) -> Option<Finding> {
    let (large, small) = (content.max(structured), content.min(structured));
    let field = if large == content {
        Field::Content
    } else {
        Field::StructuredContent
    };
    let times = large.checked_div(small)?;
    (large >= SMALLEST_LARGE && times >= LARGER).then_some(Finding::Larger { field, times })
}

fn compare_texts(value: &Json<'_>, texts: &[&str], findings: &mut Vec<Finding>) {
    let relations = relations(value, texts);
    let mut said = Said::default();
    let mut held = None;
    for (text, relation) in texts.iter().zip(relations).take(MOST_TEXTS) {
        if relation != Relation::Author {
            continue;
        }
        let document = Json::parse(text).ok();
        let same_kind = |part: &&Json<'_>| {
            matches!(
                (&document, part),
                (Some(Json::Object(_)), Json::Object(_)) | (Some(Json::Array(_)), Json::Array(_))
            )
        };
        match (&document, candidates(value).find(same_kind)) {
            (Some(document), Some(part)) => {
                said.compare(document, part, &path_to(value, part));
            }
            _ => held
                .get_or_insert_with(|| Held::of(value))
                .compare(text, &mut said),
        }
    }
    findings.extend(said.findings);
}

/// The path from `value` to `part`, one of its candidates.
fn path_to(value: &Json<'_>, part: &Json<'_>) -> String {
    let members = value.as_object().unwrap_or_default();
    let key = members
        .iter()
        .find(|(_, member)| std::ptr::eq(member, part));
    key.map(|(key, _)| step("", key)).unwrap_or_default()
}

/// What texts say otherwise, or besides.
#[derive(Default)]
struct Said {
    findings: Vec<Finding>,
}

impl Said {
    fn is_full(&self) -> bool {
        self.findings.len() >= MAX_NAMED
    }

    fn add(&mut self, finding: Finding) {
        if !self.is_full() && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn deny(&mut self, pointer: &str, said: &str, holds: &str) {
        self.add(Finding::Denied {
            pointer: shown(pointer),
            said: shown(said),
            holds: shown(holds),
        });
    }

    /// Compares what a JSON text says with what the structure holds at `path`.
    fn compare(&mut self, said: &Json<'_>, holds: &Json<'_>, path: &str) {
        if self.is_full() || said.is_same(holds) {
            return;
        }
        match (said, holds) {
            (Json::Object(members), Json::Object(holds)) => {
                let holds: BTreeMap<&str, _> = holds.iter().map(|(k, v)| (k.as_ref(), v)).collect();
                for (key, value) in members {
                    let path = step(path, key);
                    match holds.get(key.as_ref()) {
                        Some(holds) => self.compare(value, holds, &path),
                        None => self.add(Finding::Added { said: shown(&path) }),
                    }
                }
            }
            // A summary lists some of them.
            (Json::Array(said), Json::Array(holds)) if said.len() < holds.len() => {}
            (Json::Array(said), Json::Array(holds)) if said.len() == holds.len() => {
                for (at, (said, holds)) in said.iter().zip(holds).enumerate() {
                    self.compare(said, holds, &step(path, &at.to_string()));
                }
            }
            (said, holds) => {
                self.deny(path, &plain(said), &plain(holds));
            }
        }
    }
}

/// A pointer one step further, as far as it will be shown: a peer's keys may be endless.
fn step(parent: &str, token: &str) -> String {
    if parent.len() > LONGEST_COMPARED {
        return parent.to_owned();
    }
    let token: String = token.chars().take(LONGEST_COMPARED).collect();
    pointer(parent, &token)
}

/// A scalar as it reads.
fn plain(value: &Json<'_>) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_json(), str::to_owned)
}

/// What a structure holds, for the questions that prose raises.
struct Held<'v, 'a> {
    /// The numbers, sorted, without their signs.
    numbers: Vec<f64>,
    /// The value that each key names, by the words of the key; none where it names several.
    labels: BTreeMap<String, Option<Labelled<'v, 'a>>>,
}

struct Labelled<'v, 'a> {
    pointer: String,
    value: &'v Json<'a>,
}

impl<'v, 'a> Held<'v, 'a> {
    fn of(value: &'v Json<'a>) -> Self {
        let mut held = Self {
            numbers: Vec::new(),
            labels: BTreeMap::new(),
        };
        held.collect(value, "", "");
        held.numbers.sort_unstable_by(f64::total_cmp);
        held
    }

    /// Adds what `value` holds; `label` are the words of its key.
    fn collect(&mut self, value: &'v Json<'a>, label: &str, path: &str) {
        match value {
            Json::Object(members) => {
                for (key, value) in members {
                    self.numbers.extend(digits(key));
                    let is_label = key.len() <= LONGEST_COMPARED;
                    let label = if is_label { words(key) } else { String::new() };
                    self.collect(value, &label, &step(path, key));
                }
                return;
            }
            Json::Array(elements) => {
                self.numbers.push(elements.len() as f64);
                for (at, value) in elements.iter().enumerate() {
                    self.collect(value, label, &step(path, &at.to_string()));
                }
                return;
            }
            Json::Number(spelling) => self.numbers.extend(magnitudes(spelling)),
            Json::String(text) => {
                self.numbers.extend(numbers(text).map(|n| n.value));
                self.numbers.extend(digits(text));
            }
            Json::Null | Json::Bool(_) => {}
        }
        let labelled = Labelled {
            pointer: path.to_owned(),
            value,
        };
        self.labels
            .entry(label.to_owned())
            .and_modify(|named| *named = None)
            .or_insert(Some(labelled));
    }

    /// Compares `prose`, segment by segment.
    fn compare(&self, prose: &str, said: &mut Said) {
        for line in prose.lines() {
            let line = without_ordinal(line);
            for segment in line.split([';', '|']).flat_map(|part| part.split(", ")) {
                if said.is_full() {
                    return;
                }
                let labelled = segment
                    .split_once(':')
                    .and_then(|(label, rest)| Some((self.labelled(label)?, rest)));
                if let Some((labelled, rest)) = labelled
                    && let Some(other) = says_otherwise(labelled.value, rest)
                {
                    said.deny(&labelled.pointer, &other, &plain(labelled.value));
                    continue;
                }
                for number in numbers(segment).filter(|number| !self.holds(number)) {
                    said.add(Finding::Added {
                        said: shown(number.spelling),
                    });
                }
            }
        }
    }

    /// The one value that `label` names: by its key, or by the first words of its key
    /// (`temperature` of `temperature_c`).
    fn labelled(&self, label: &str) -> Option<&Labelled<'v, 'a>> {
        if label.len() > LONGEST_COMPARED {
            return None;
        }
        let label = words(label);
        if label.is_empty() {
            return None;
        }
        if let Some(named) = self.labels.get(&label) {
            return named.as_ref();
        }
        let start = label + " ";
        let mut keys = self
            .labels
            .range(start.clone()..)
            .take_while(|(key, _)| key.starts_with(&start));
        let (_, named) = keys.next()?;
        named.as_ref().filter(|_| keys.next().is_none())
    }

    fn holds(&self, number: &Number<'_>) -> bool {
        let (low, high) = number.bounds();
        let at = self.numbers.partition_point(|held| *held < low);
        self.numbers.get(at).is_some_and(|held| *held <= high)
    }
}

/// What `rest` says in place of `value`; none when it agrees, or is not understood.
fn says_otherwise(value: &Json<'_>, rest: &str) -> Option<String> {
    match value {
        Json::Number(spelling) if spelling.len() <= LONGEST_COMPARED => {
            let is_negative = spelling.starts_with('-');
            let agrees = |number: &Number<'_>| {
                let (low, high) = number.bounds();
                let mut held = magnitudes(spelling);
                // Without a sign it may be "5 below zero".
                (!number.is_negative || is_negative) && held.any(|x| low <= x && x <= high)
            };
            let first = numbers(rest).next()?;
            let sign = if first.is_negative { "-" } else { "" };
            (!numbers(rest).any(|number| agrees(&number)))
                .then(|| format!("{sign}{}", first.spelling))
        }
        Json::Bool(holds) => {
            let words = words(rest);
            let says = match words.split(' ').next()? {
                "true" | "yes" => true,
                "false" | "no" => false,
                _ => return None,
            };
            (says != *holds).then(|| rest.trim().to_owned())
        }
        Json::String(text) if text.len() <= LONGEST_COMPARED => {
            // Only words for a state: a name or a sentence has many forms.
            let (said, holds) = (words(rest), words(text));
            let is_state = |words: &str| {
                !words.is_empty()
                    && words.split(' ').count() <= 2
                    && words.chars().all(|c| c.is_ascii_alphabetic() || c == ' ')
            };
            let shares = said
                .split(' ')
                .any(|word| holds.split(' ').any(|w| w == word));
            (is_state(&said) && is_state(&holds) && !shares).then(|| rest.trim().to_owned())
        }
        _ => None,
    }
}

/// The magnitudes that a number may be spelled by: itself, and as a percentage.
fn magnitudes(spelling: &str) -> impl Iterator<Item = f64> {
    let value = spelling.parse::<f64>().ok().map(f64::abs);
    let percentage = value
        .filter(|value| *value <= 1.0)
        .map(|value| value * 100.0);
    value.into_iter().chain(percentage)
}

/// The words of a key or label, in lower case: `defaultBudget`, `default_budget` and
/// `**Default Budget**` are the same.
fn words(text: &str) -> String {
    let mut out = String::new();
    let mut before = ' ';
    for c in text.chars() {
        let begins = !before.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase());
        if c.is_alphanumeric() {
            if begins && !out.is_empty() {
                out.push(' ');
            }
            out.extend(c.to_lowercase());
        }
        before = c;
    }
    out
}

/// A line without the number that only counts it.
fn without_ordinal(line: &str) -> &str {
    let line = line.trim_start();
    let after = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_ordinal = after.starts_with(". ") || after.starts_with(") ");
    if is_ordinal { &after[1..] } else { line }
}

/// A number in prose, without its sign.
struct Number<'t> {
    spelling: &'t str,
    value: f64,
    decimals: i32,
    is_negative: bool,
}

impl Number<'_> {
    /// What rounds to it.
    fn bounds(&self) -> (f64, f64) {
        let half = 0.5 * 10_f64.powi(-self.decimals);
        let slack = half * 1e-6 + self.value * 1e-12;
        (self.value - half - slack, self.value + half + slack)
    }
}

/// The numbers in `text`; none that is part of a word (`h264`, `0f28`), or in thousands (`12k`).
fn numbers(text: &str) -> impl Iterator<Item = Number<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = &text[at..];
            let start = at + rest.find(|c: char| c.is_ascii_digit())?;
            let mut before = text[..start].chars().rev();
            let (last, last_but_one) = (before.next(), before.next());
            let goes_on = last == Some('.') && last_but_one.is_some_and(|c| c.is_ascii_digit());
            let spelling = spelling(&text[start..], goes_on);
            let end = start + spelling.len();
            at = end + word_length(&text[end..]);
            let is_inside = last.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '#');
            if is_inside || is_part_of_word(&text[end..at]) {
                continue;
            }
            let digits: String = spelling
                .chars()
                .filter(|c| c.is_ascii_digit() || *c == '.')
                .collect();
            let decimals = digits.split_once('.').map_or(0, |(_, d)| d.len());
            let Ok(value) = digits.parse() else { continue };
            return Some(Number {
                spelling,
                value,
                decimals: i32::try_from(decimals).unwrap_or(i32::MAX),
                is_negative: matches!(last, Some('-' | '−'))
                    && last_but_one.is_none_or(|c| c.is_whitespace() || c == '('),
            });
        }
    })
}

/// The runs of digits in `text`: what a date, a version or an address consists of.
fn digits(text: &str) -> impl Iterator<Item = f64> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
}

/// The number that `text` begins with: digits, groups of three, a fraction.
///
/// 20.11.2026 is a date and 1.2.3 a version: each is three numbers. `goes_on` says that one of them
/// stands before `text`.
fn spelling(text: &str, goes_on: bool) -> &str {
    let digits = |at: usize| {
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        rest.iter().take_while(|b| b.is_ascii_digit()).count()
    };
    let mut end = digits(0);
    if goes_on {
        return &text[..end];
    }
    while end <= 24 {
        let separator = text[end..].chars().next();
        let Some(separator) = separator.filter(|c| ",'’\u{202f}\u{a0}".contains(*c)) else {
            break;
        };
        let after = end + separator.len_utf8();
        if digits(after) != 3 {
            break;
        }
        end = after + 3;
    }
    let fraction = digits(end + 1);
    let after = text
        .as_bytes()
        .get(end + 1 + fraction..)
        .unwrap_or_default();
    let is_first_of_more = matches!(after, [b'.', digit, ..] if digit.is_ascii_digit());
    if text[end..].starts_with('.') && fraction > 0 && !is_first_of_more {
        end += 1 + fraction;
    }
    &text[..end]
}

/// How many bytes of `text` belong to the word that it begins with.
fn word_length(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric())
        .unwrap_or(text.len())
}

/// Whether what follows the digits makes them part of a word, or counts thousands.
fn is_part_of_word(after: &str) -> bool {
    let scales = [
        "k", "K", "M", "G", "B", "KB", "kB", "MB", "GB", "KiB", "MiB", "GiB",
    ];
    after.contains(|c: char| c.is_ascii_digit()) || scales.contains(&after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn finds(content: usize, structured: usize, expected: Option<(Field, usize)>) {
        let expected = expected.map(|(field, times)| Finding::Larger { field, times });
        assert_eq!(larger(content, structured), expected);
    }

    /// TR-2: the larger field is named, from ten times and a kilobyte on.
    #[test]
    fn only_a_field_that_is_large_by_both_measures_is_named() {
        finds(1024, 102, Some((Field::Content, 10)));
        finds(102, 1024, Some((Field::StructuredContent, 10)));
        finds(1023, 1, None);
        finds(1024, 103, None);
        finds(103, 1024, None);
        finds(2000, 2000, None);
    }
}
