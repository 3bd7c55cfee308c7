//! A value in fewer words, and what of it was left out.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::columns::columns;
use super::schema::{Bound, admits_marker};
use crate::json::{Json, pointer};

/// The member of an object that says what was left out of it.
pub const META_LEFT_OUT: &str = "vary/leftOut";

/// What stands at the end of a text that was shortened.
pub const ELLIPSIS: &str = "…";

/// A word up to so many bytes, such as a URL, is left whole: half of one is worse than none.
const LONGEST_WORD: usize = 512;

/// So many members of a row are looked at for its key.
const MOST_KEYS: usize = 8;

/// A longer text tells rows apart, but is no key.
const LONGEST_KEY: usize = 64;

/// At most so many places are told apart; what is left out elsewhere is counted with the last.
const MOST_PLACES: usize = 64;

/// How much of a value stays; an array keeps its first element, and the first row whole, in any case.
///
/// # Examples
///
/// ```
/// use mcp_vary::render::Limits;
///
/// let limits = Limits::default().with_rows(50).with_text(80);
/// assert_eq!((limits.rows, limits.elements, limits.text), (50, 20, 80));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Elements of an array that is in no other array.
    pub rows: usize,
    /// Those of them that stay whole; the others keep their key.
    pub detailed: usize,
    /// Elements of an array within another.
    pub elements: usize,
    /// Bytes of a string.
    pub text: usize,
}

impl Default for Limits {
    /// 500 rows, 100 of them whole, 20 elements in each list of a row, 120 bytes to a text.
    fn default() -> Self {
        Self {
            rows: 500,
            detailed: 100,
            elements: 20,
            text: 120,
        }
    }
}

impl Limits {
    /// Keeps so many elements of an array that is in no other.
    #[must_use]
    pub fn with_rows(mut self, rows: usize) -> Self {
        self.rows = rows;
        self
    }

    /// Keeps so many rows whole.
    #[must_use]
    pub fn with_detailed(mut self, detailed: usize) -> Self {
        self.detailed = detailed;
        self
    }

    /// Keeps so many elements of an array within another.
    #[must_use]
    pub fn with_elements(mut self, elements: usize) -> Self {
        self.elements = elements;
        self
    }

    /// Keeps so many bytes of a string, and a little less where a sentence or line ends.
    #[must_use]
    pub fn with_text(mut self, text: usize) -> Self {
        self.text = text;
        self
    }
}

/// By which rule something was left out.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Rule {
    /// Members that are `null` or empty: they carry nothing.
    Empty,
    /// All but the key of the rows after the first ones.
    Details,
    /// The elements of an array after the first ones.
    Elements,
    /// The end of a text.
    Text,
}

/// What was left out by one rule at all places of one path; prints as a phrase.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LeftOut {
    /// By which rule.
    pub rule: Rule,
    /// Where, as a JSON pointer into the whole value, with `*` for every element of an array.
    pub path: String,
    /// The first such place, as a JSON pointer.
    pub first: String,
    /// At how many places.
    pub places: usize,
    /// How many members, elements or bytes stay, over all places.
    pub kept: usize,
    /// How many there were.
    pub of: usize,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            kept,
            of,
            places,
            ..
        } = self;
        match self.rule {
            Rule::Empty => write!(f, "{path}: {places} empty"),
            Rule::Details => write!(f, "{path}: {kept} of {of} in full, the others by their key"),
            Rule::Elements => write!(f, "{path}: {kept} of {of} elements"),
            Rule::Text => write!(f, "{path}: {places} shortened, {kept} of {of} bytes"),
        }
    }
}

/// A value of which something may be missing, and what.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Compact<'a> {
    /// What is left: the same structure, so that a pointer into it leads to the same place of the whole.
    pub value: Json<'a>,
    /// What is not, in the order of the value. Empty when `value` is whole.
    pub left_out: Vec<LeftOut>,
}

/// `value` without what carries nothing and without long tails.
///
/// # Properties
///
/// Of many rows, the first stay whole and the others keep their key: the first member that differs
/// in all of them. What stays is as it was: members and elements in order, numbers as they are spelled, texts from
/// their beginning up to the end of a line, sentence or word, and [`ELLIPSIS`] where they go on. Cuts fall
/// between whole elements. An element of an array is never dropped for being empty, since those after it would
/// move. Everything that is missing is counted in [`Compact::left_out`]. Doing it twice changes
/// nothing more.
///
/// # Examples
///
/// ```
/// use mcp_vary::json::Json;
/// use mcp_vary::render::{Limits, compact};
///
/// let value = Json::parse(r#"{"next": null, "rows": [{"id": 1, "tags": []}, {"id": 2}, {"id": 3}]}"#)?;
/// let short = compact(&value, &Limits::default().with_rows(2));
/// assert_eq!(short.value.to_json(), r#"{"rows":[{"id":1},{"id":2}]}"#);
/// let left_out: Vec<_> = short.left_out.iter().map(ToString::to_string).collect();
/// assert_eq!(left_out, ["/next: 1 empty", "/rows: 2 of 3 elements", "/rows/*/tags: 1 empty"]);
///
/// // Half a URL leads nowhere.
/// let value = Json::parse(r#"["https://a.test/b/c", "One. Two and three."]"#)?;
/// let short = compact(&value, &Limits::default().with_text(8));
/// assert_eq!(short.value.to_json(), r#"["https://a.test/b/c","One. …"]"#);
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[must_use]
pub fn compact<'a>(value: &Json<'a>, limits: &Limits) -> Compact<'a> {
    Compacting::new(limits).whole(value, Bound::Free)
}

/// `value` in the fewest words for a text: [`compact`], with rows as columns where that saves.
///
/// # Properties
///
/// Rows become `{"each", "from", "columns", "rows", "others"}`, as far as there is something for
/// each: the values that all rows share; how a text is made from another column (`/issues/{number}`);
/// the names of the columns; the cells, `null` where the row lacks one; the keys of the rows that are
/// not whole. Objects in a row become columns of their own, `from.station`. An array that would not become
/// a quarter shorter stays as it is.
///
/// # Examples
///
/// ```
/// use mcp_vary::json::Json;
/// use mcp_vary::render::{Limits, compact_columns};
///
/// let value = Json::parse(concat!(
///     r#"[{"id": 1, "from": {"station": "Bern", "platform": "7"}, "cancelled": false},"#,
///     r#" {"id": 2, "from": {"station": "Thun", "platform": "1"}, "cancelled": false},"#,
///     r#" {"id": 3, "from": {"station": "Visp", "platform": null}, "cancelled": false}]"#,
/// ))?;
/// let short = compact_columns(&value, &Limits::default());
/// assert_eq!(short.value.to_json(), concat!(
///     r#"{"each":{"cancelled":false},"columns":["id","from.station","from.platform"],"#,
///     r#""rows":[[1,"Bern","7"],[2,"Thun","1"],[3,"Visp",null]]}"#,
/// ));
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[must_use]
pub fn compact_columns<'a>(value: &Json<'a>, limits: &Limits) -> Compact<'a> {
    let Compact { value, left_out } = compact(value, limits);
    Compact {
        value: columns(value),
        left_out,
    }
}

/// `value` as a shorter `structuredContent`; none when it must stay, or nothing was left out.
///
/// # Properties
///
/// The value says itself what it lacks, in a list under [`META_LEFT_OUT`], since a program may read
/// nothing else. So it is cut only where there is room for that: in an object, and under
/// `output_schema` only where the schema leaves members open. What is cut is still valid: a member
/// goes where it is not `required`, elements go beyond `minItems`, texts where no keyword speaks of
/// them. A schema that says more than can be followed (`anyOf`, a reference elsewhere) keeps
/// what it governs whole.
///
/// # Examples
///
/// ```
/// use mcp_vary::json::Json;
/// use mcp_vary::render::{Limits, compact_structured};
/// use serde_json::json;
///
/// let value = Json::parse(r#"{"next": null, "total": null}"#)?;
/// let compacted = |schema| {
///     let short = compact_structured(&value, Some(&schema), &Limits::default());
///     short.map(|short| short.value.to_json())
/// };
/// assert_eq!(
///     compacted(json!({"type": "object", "required": ["total"]})).as_deref(),
///     Some(r#"{"total":null,"vary/leftOut":["/next: 1 empty"]}"#),
/// );
///
/// // No room to say what is missing: nothing is.
/// assert_eq!(compacted(json!({"type": "object", "additionalProperties": false})), None);
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[must_use]
pub fn compact_structured<'a>(
    value: &Json<'a>,
    output_schema: Option<&serde_json::Value>,
    limits: &Limits,
) -> Option<Compact<'a>> {
    let has_room = value.get(META_LEFT_OUT).is_none()
        && output_schema.is_none_or(|schema| admits_marker(schema, META_LEFT_OUT));
    let bound = output_schema.map_or(Bound::Free, Bound::new);
    // A program expects a row to be one, so that rows stay whole or go.
    let limits = limits.with_detailed(usize::MAX);
    let mut short = Compacting::new(&limits).whole(value, bound);
    let Json::Object(members) = &mut short.value else {
        return None;
    };
    if short.left_out.is_empty() || !has_room {
        return None;
    }
    let said = short
        .left_out
        .iter()
        .map(|one| Json::String(one.to_string().into()));
    members.push((META_LEFT_OUT.into(), Json::Array(said.collect())));
    Some(short)
}

/// One step on the way to a value.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
enum Step<'v> {
    Member(&'v str),
    Element(usize),
}

impl<'v> Step<'v> {
    /// The same step for every element of an array.
    fn any(self) -> Self {
        match self {
            Self::Element(_) => Self::Element(0),
            member => member,
        }
    }
}

struct Compacting<'v, 'l> {
    limits: &'l Limits,
    left_out: Vec<LeftOut>,
    /// The way to the value at hand.
    way: Vec<Step<'v>>,
    /// The number of each path that was taken, after the number of the path before it: a path is
    /// spelled out only where something is left out for the first time, since a peer's keys may be long.
    paths: BTreeMap<(usize, Step<'v>), usize>,
    /// Where each path and rule is counted.
    counted: BTreeMap<(usize, Rule), usize>,
}

impl<'v, 'l> Compacting<'v, 'l> {
    fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            left_out: Vec::new(),
            way: Vec::new(),
            paths: BTreeMap::new(),
            counted: BTreeMap::new(),
        }
    }

    fn whole<'a>(mut self, value: &'v Json<'a>, bound: Bound<'_>) -> Compact<'a> {
        let value = self.value(value, 0, bound);
        Compact {
            value,
            left_out: self.left_out,
        }
    }

    /// `value`, which stands at the end of the path of this number.
    fn value<'a>(&mut self, value: &'v Json<'a>, path: usize, bound: Bound<'_>) -> Json<'a> {
        if bound.is_closed() {
            return value.clone();
        }
        match value {
            Json::Object(members) => self.members(members, path, bound),
            Json::Array(elements) => self.elements(elements, path, bound),
            Json::String(text) if text.len() > self.limits.text && bound.admits_text() => {
                let Some(kept) = shortened(text, self.limits.text) else {
                    return value.clone();
                };
                self.leave_out(Rule::Text, path, kept.len(), text.len());
                Json::String(format!("{kept}{ELLIPSIS}").into())
            }
            other => other.clone(),
        }
    }

    fn members<'a>(
        &mut self,
        members: &'v [(Cow<'a, str>, Json<'a>)],
        path: usize,
        bound: Bound<'_>,
    ) -> Json<'a> {
        let mut kept = Vec::with_capacity(members.len());
        for (key, value) in members {
            let path = self.step(path, Step::Member(key));
            if is_empty(value) && bound.admits_without(key) {
                self.leave_out(Rule::Empty, path, 0, 1);
            } else {
                let value = self.value(value, path, bound.member(key));
                kept.push((key.clone(), value));
            }
            self.way.pop();
        }
        Json::Object(kept)
    }

    fn elements<'a>(
        &mut self,
        elements: &'v [Json<'a>],
        path: usize,
        bound: Bound<'_>,
    ) -> Json<'a> {
        let is_inner = self.way.iter().any(|step| matches!(step, Step::Element(_)));
        let limit = if is_inner {
            self.limits.elements
        } else {
            self.limits.rows
        };
        // None of them would say nothing.
        let count = elements.len().min(bound.items(limit.max(1)));
        if count < elements.len() {
            self.leave_out(Rule::Elements, path, count, elements.len());
        }
        let detailed = self.limits.detailed.max(1);
        let is_long = !is_inner && count > detailed;
        let key = is_long.then(|| key_of(&elements[..count])).flatten();
        let whole = key.map_or(count, |_| detailed);
        let mut has_less = false;
        let mut kept = Vec::with_capacity(count);
        for (at, element) in elements[..count].iter().enumerate() {
            let path = self.step(path, Step::Element(at));
            let bound = bound.item(at);
            let short = match key {
                Some(key) if at >= whole => self.only_key(element, key, path, bound),
                _ => self.value(element, path, bound),
            };
            let members = |row: &Json<'_>| row.as_object().map(<[_]>::len);
            if at >= whole && !has_less && members(&short) < members(element) {
                self.leave_out(Rule::Details, path, whole, count);
                has_less = true;
            }
            kept.push(short);
            self.way.pop();
        }
        Json::Array(kept)
    }

    /// A row with its key, and what else a schema requires of it.
    fn only_key<'a>(
        &mut self,
        row: &'v Json<'a>,
        key: &str,
        path: usize,
        bound: Bound<'_>,
    ) -> Json<'a> {
        let mut kept = Vec::new();
        for (name, value) in row.as_object().unwrap_or_default() {
            if name == key || !bound.admits_without(name) {
                let path = self.step(path, Step::Member(name));
                kept.push((name.clone(), self.value(value, path, bound.member(name))));
                self.way.pop();
            }
        }
        Json::Object(kept)
    }

    /// Goes one step further, and returns the number of the path to there.
    fn step(&mut self, path: usize, step: Step<'v>) -> usize {
        self.way.push(step);
        let next = self.paths.len() + 1;
        *self.paths.entry((path, step.any())).or_insert(next)
    }

    fn leave_out(&mut self, rule: Rule, path: usize, kept: usize, of: usize) {
        let next = self.left_out.len();
        let is_full = next == MOST_PLACES;
        let counted = self.counted.get(&(path, rule)).copied();
        if let Some(at) = counted.or(is_full.then(|| next - 1)) {
            let counted = &mut self.left_out[at];
            counted.places += 1;
            counted.kept += kept;
            counted.of += of;
            return;
        }
        self.counted.insert((path, rule), next);
        let (mut path, mut first) = (String::new(), String::new());
        for step in &self.way {
            match step {
                Step::Member(key) => {
                    path = pointer(&path, key);
                    first = pointer(&first, key);
                }
                Step::Element(at) => {
                    path.push_str("/*");
                    first.push_str(&format!("/{at}"));
                }
            }
        }
        self.left_out.push(LeftOut {
            rule,
            path,
            first,
            places: 1,
            kept,
            of,
        });
    }
}

/// The first member that every one of `rows` has, and no two alike: what tells them apart.
fn key_of<'v>(rows: &'v [Json<'_>]) -> Option<&'v str> {
    let candidates = rows.first()?.as_object()?.iter().take(MOST_KEYS);
    candidates.map(|(key, _)| key.as_ref()).find(|key| {
        let mut seen = BTreeSet::new();
        rows.iter().all(|row| match row.get(key) {
            Some(Json::String(text)) => text.len() <= LONGEST_KEY && seen.insert(text.as_ref()),
            Some(Json::Number(spelling)) => seen.insert(spelling.as_ref()),
            _ => false,
        })
    })
}

/// Whether `value` carries nothing: `null`, `""`, `[]`, `{}`, or an object of nothing else.
fn is_empty(value: &Json<'_>) -> bool {
    match value {
        Json::Null => true,
        Json::String(text) => text.is_empty(),
        Json::Array(elements) => elements.is_empty(),
        Json::Object(members) => members.iter().all(|(_, value)| is_empty(value)),
        Json::Bool(_) | Json::Number(_) => false,
    }
}

/// The beginning of `text` up to the end of a line, sentence or word, at most `limit` bytes of it
/// with the ellipsis; none when it has no such end.
fn shortened(text: &str, limit: usize) -> Option<&str> {
    let mut end = limit.saturating_sub(ELLIPSIS.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let head = &text[..end];
    let after_sentence = [". ", "! ", "? ", "\n", "。", "！", "？"]
        .iter()
        .filter_map(|mark| head.rfind(mark).map(|at| at + mark.len()))
        .max();
    let after_word = || head.rfind(char::is_whitespace).map(|at| at + 1);
    let at_least = end / 3;
    let after_sentence = after_sentence.filter(|at| *at >= at_least);
    match after_sentence.or_else(after_word).filter(|at| *at > 0) {
        Some(at) if head.is_char_boundary(at) => Some(&text[..at]),
        _ if text.len() > LONGEST_WORD => Some(head),
        _ => None,
    }
}

/// `left_out` as one line each, for a notice beside the value.
#[must_use]
pub fn notice(left_out: &[LeftOut]) -> String {
    let lines: Vec<_> = left_out.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CN-13: where a text is cut.
    #[track_caller]
    fn shortens(text: &str, limit: usize, expected: Option<&str>) {
        assert_eq!(shortened(text, limit), expected);
    }

    #[test]
    fn a_text_ends_with_a_sentence_a_line_or_a_word() {
        shortens("One two. Three four. Five", 20, Some("One two. "));
        shortens("One\nTwo three four five", 12, Some("One\n"));
        shortens("One two three four five", 12, Some("One two "));
        shortens("東京。大阪。名古屋", 16, Some("東京。"));
        shortens("abcdefghijklmnopqrstuvwxyz", 12, None);
        shortens("a b", 0, None);
        shortens(&"x".repeat(600), 12, Some("xxxxxxxxx"));
        shortens(&"é".repeat(600), 12, Some("éééé"));
    }

    /// CN-13: whole elements are counted where they are missing.
    #[test]
    fn places_beyond_the_limit_are_counted_with_the_last() {
        let members: Vec<_> = (0..100).map(|n| format!("\"k{n}\":null")).collect();
        let text = format!("{{{}}}", members.join(","));
        let short = compact(&Json::parse(&text).unwrap(), &Limits::default());
        assert_eq!(short.left_out.len(), MOST_PLACES);
        let places: usize = short.left_out.iter().map(|one| one.places).sum();
        assert_eq!(places, 100);
        assert_eq!(notice(&short.left_out).lines().count(), MOST_PLACES);
    }
}
