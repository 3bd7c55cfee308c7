//! A value in fewer words, and what of it was left out.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::columns::columns;
use super::is_container;
use super::left_out::{LeftOut, Rule, folded, notice};
use super::limits::Limits;
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

/// A member that has no more bytes than this says little.
const SMALLEST_SHARE: usize = 24;

/// At most so many places are told apart; the last one counts those that are not.
const MOST_PLACES: usize = 64;

/// A value of which something may be missing, and what.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Compact<'a> {
    /// What is left: the same structure, so that a pointer into it leads to the same place of the whole.
    pub value: Json<'a>,
    /// What is not, in the order of the value. Empty when `value` is whole.
    pub left_out: Vec<LeftOut>,
}

impl<'a> Compact<'a> {
    /// A value of which nothing is missing.
    pub(crate) fn whole(value: Json<'a>) -> Self {
        Self {
            value,
            left_out: Vec::new(),
        }
    }
}

/// `value` without what carries nothing and without long tails.
///
/// # Properties
///
/// Of many rows, the first stay whole and the others keep their key: the first member that differs
/// in all of them. Rows without a key end after those. A text in an array of five has a fifth of the room that a
/// text elsewhere has, within the limits. What stays is as it was: members and elements in order, numbers as they are spelled, texts from
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
/// each: the values that all rows share, those that are not whole too; how a text is made from another column (`/issues/{number}`);
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
    let short = compact(value, limits);
    Compact {
        value: columns(short.value, value),
        left_out: short.left_out,
    }
}

/// The beginning of a text that its author wrote as such, with [`ELLIPSIS`], and how many bytes of it
/// that keeps; none when it stays.
pub(crate) fn shorter_prose(text: &str, limit: usize) -> Option<(String, usize)> {
    let kept = shortened(text, limit).filter(|_| text.len() > limit)?;
    Some((format!("{kept}{ELLIPSIS}"), kept.len()))
}

/// What a shorter structured value must meet.
///
/// # Examples
///
/// ```
/// use mcp_vary::render::Contract;
/// use serde_json::{Value, json};
///
/// let schema = json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
/// // Its author knows what it says; else only what is plain to see may change.
/// let accepts = |value: &Value| value.get("a").or(value.get("b")).is_some();
/// let contract = Contract::of(&schema).accepted_by(&accepts);
/// assert!(!contract.is_free() && Contract::default().is_free());
/// ```
#[derive(Clone, Copy, Default)]
pub struct Contract<'c> {
    schema: Option<&'c Value>,
    accepts: Option<&'c dyn Fn(&Value) -> bool>,
}

impl<'c> Contract<'c> {
    /// What this `outputSchema` says, as far as it can be followed without a validator.
    #[must_use]
    pub fn of(schema: &'c Value) -> Self {
        Self {
            schema: Some(schema),
            accepts: None,
        }
    }

    /// Asks a validator of the schema: what it accepts may go out, whatever the schema says.
    #[must_use]
    pub fn accepted_by(mut self, accepts: &'c dyn Fn(&Value) -> bool) -> Self {
        self.accepts = Some(accepts);
        self
    }

    /// Whether anything goes.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.schema.is_none() && self.accepts.is_none()
    }

    /// What may guide a compaction, the one that leaves out most first.
    fn bounds(&self) -> Vec<Bound<'c>> {
        let guided = self.schema.map(Bound::new);
        let is_tried = self.accepts.is_some() || guided.is_none();
        is_tried
            .then_some(Bound::Free)
            .into_iter()
            .chain(guided)
            .collect()
    }

    fn accepts(&self, value: &Json<'_>) -> bool {
        self.accepts.is_none_or(|accepts| {
            serde_json::from_str(&value.to_json()).is_ok_and(|value| accepts(&value))
        })
    }

    /// Whether an object may have a member that no schema declares.
    fn admits_marker(&self) -> bool {
        // A validator is asked about the value with the member in it.
        let is_asked = self.accepts.is_some();
        let declares = |schema: &Value| schema["properties"].get(META_LEFT_OUT).is_some();
        self.schema.is_none_or(|schema| {
            admits_marker(schema, META_LEFT_OUT) || is_asked && !declares(schema)
        })
    }
}

impl fmt::Debug for Contract<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contract")
            .field("schema", &self.schema)
            .field("accepts", &self.accepts.is_some())
            .finish()
    }
}

/// `value` as a shorter `structuredContent`; none when it must stay, or nothing was left out.
///
/// # Properties
///
/// The value says itself what it lacks, in a list under [`META_LEFT_OUT`], since a program may read
/// nothing else; with `whole`, the URI of the whole value, where to read it. So it is cut only where
/// there is room for that: in an object, and under a schema only where that leaves members open. What
/// is cut is still valid: a member goes where it is not `required`, elements go beyond `minItems`, texts
/// where no keyword speaks of them. What a schema says beyond that (`anyOf`, a reference elsewhere)
/// keeps what it governs whole, unless the contract's validator accepts the shorter value.
///
/// # Examples
///
/// ```
/// use mcp_vary::json::Json;
/// use mcp_vary::render::{Contract, Limits, compact_structured};
/// use serde_json::json;
///
/// let value = Json::parse(r#"{"next": null, "total": null}"#)?;
/// let compacted = |schema| {
///     let short = compact_structured(&value, &Contract::of(&schema), &Limits::default(), None);
///     short.map(|short| short.value.to_json())
/// };
/// assert_eq!(
///     compacted(json!({"type": "object", "required": ["total"]})).as_deref(),
///     Some(r#"{"total":null,"vary/leftOut":["empty: /next"]}"#),
/// );
///
/// // No room to say what is missing: nothing is.
/// assert_eq!(compacted(json!({"type": "object", "additionalProperties": false})), None);
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[must_use]
pub fn compact_structured<'a>(
    value: &Json<'a>,
    contract: &Contract<'_>,
    limits: &Limits,
    whole: Option<&str>,
) -> Option<Compact<'a>> {
    let is_object = value.as_object().is_some();
    if !is_object || value.get(META_LEFT_OUT).is_some() || !contract.admits_marker() {
        return None;
    }
    let shorter = |bound| {
        let mut compacting = Compacting::new(limits);
        compacting.is_typed = true;
        let mut short = compacting.whole(value, bound);
        let said = folded(notice(&short.left_out, whole), whole, limits.bytes / 4);
        let said = said.into_iter().map(|line| Json::String(line.into()));
        if let Json::Object(members) = &mut short.value {
            members.push((META_LEFT_OUT.into(), Json::Array(said.collect())));
        }
        (!short.left_out.is_empty() && contract.accepts(&short.value)).then_some(short)
    };
    contract.bounds().into_iter().find_map(shorter)
}

/// The elements of an array that stay.
struct Rows<'e> {
    count: usize,
    /// How many of them stay whole.
    whole: usize,
    /// What the others keep.
    key: Option<&'e str>,
}

/// How many bytes each of `weights` may have so that all of them together have `budget`; none when they have
/// less.
pub(crate) fn level(mut weights: Vec<usize>, budget: usize) -> Option<usize> {
    weights.sort_unstable();
    let mut left = budget;
    for (at, weight) in weights.iter().enumerate() {
        let share = left / (weights.len() - at);
        if *weight > share {
            return Some(share);
        }
        left -= weight;
    }
    None
}

/// How many elements or members `value` has.
fn size(value: &Json<'_>) -> usize {
    match value {
        Json::Object(members) => members.len(),
        Json::Array(elements) => elements.len(),
        _ => 0,
    }
}

/// One step on the way to a value.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
enum Step<'v> {
    Member(&'v str),
    /// A member of an object that is a list of them.
    Entry(&'v str),
    Element(usize),
}

impl<'v> Step<'v> {
    /// The same step for every element of an array or list.
    fn any(self) -> Self {
        match self {
            Self::Element(_) | Self::Entry(_) => Self::Element(0),
            member => member,
        }
    }
}

struct Compacting<'v, 'l> {
    limits: &'l Limits,
    /// How many bytes a text at hand may have, if more than any may.
    room: usize,
    /// How many bytes the value at hand may have; what fits may have any.
    budget: usize,
    /// Whether it is for programs: what is not shown keeps its type.
    is_typed: bool,
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
            room: limits.passage,
            budget: limits.bytes,
            is_typed: false,
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
        if self.way.len() >= self.limits.depth
            && let Some(sign) = self.sign_of(value, bound)
        {
            self.leave_out(Rule::Depth, path, 0, size(value));
            return sign;
        }
        match value {
            Json::Object(members) => self.members(members, path, bound),
            Json::Array(elements) => self.elements(elements, path, bound),
            Json::String(text) if bound.admits_text() => self.text(text, path),
            other => other.clone(),
        }
    }

    /// What stands for a value that is nested too deep; none when it stays.
    fn sign_of<'a>(&self, value: &Json<'_>, bound: Bound<'_>) -> Option<Json<'a>> {
        let is_free = match value {
            Json::Object(members) => members.iter().all(|(key, _)| bound.admits_without(key)),
            Json::Array(_) => bound.items(0) == 0,
            _ => false,
        };
        if size(value) == 0 || !is_free {
            return None;
        }
        Some(match value {
            Json::Object(_) if self.is_typed => Json::Object(Vec::new()),
            Json::Array(_) if self.is_typed => Json::Array(Vec::new()),
            _ => Json::String(ELLIPSIS.into()),
        })
    }

    fn text<'a>(&mut self, text: &Cow<'a, str>, path: usize) -> Json<'a> {
        let limit = self.limits.text.max(self.room).min(self.budget);
        if text.len() <= limit {
            return Json::String(text.clone());
        }
        let Some(kept) = shortened(text, limit) else {
            return Json::String(text.clone());
        };
        self.leave_out(Rule::Text, path, kept.len(), text.len());
        Json::String(format!("{kept}{ELLIPSIS}").into())
    }

    fn members<'a>(
        &mut self,
        members: &'v [(Cow<'a, str>, Json<'a>)],
        path: usize,
        bound: Bound<'_>,
    ) -> Json<'a> {
        let budget = self.budget;
        let (count, share) = self.shares(members, bound);
        let mut kept = Vec::with_capacity(count);
        let stays = |(at, (key, _)): &(usize, &(Cow<'a, str>, Json<'a>))| {
            *at < count || !bound.admits_without(key)
        };
        let staying: Vec<_> = members.iter().enumerate().filter(stays).collect();
        if staying.len() < members.len() {
            self.leave_out(Rule::Members, path, count, members.len());
        }
        let is_list = members.len() > self.limits.members;
        for (_, (key, value)) in staying {
            let step = if is_list {
                Step::Entry(key)
            } else {
                Step::Member(key)
            };
            let path = self.step(path, step);
            if self.limits.is_terse && is_empty(value) && bound.admits_without(key) {
                self.leave_out(Rule::Empty, path, 0, 1);
            } else {
                let own = key.len() + 4;
                self.budget = match share {
                    Some(share) if own + self.weight(value, share) > share => {
                        share.saturating_sub(own)
                    }
                    _ => usize::MAX,
                };
                let value = self.value(value, path, bound.member(key));
                kept.push((key.clone(), value));
            }
            self.way.pop();
        }
        self.budget = budget;
        Json::Object(kept)
    }

    /// How many of `members` stay, and how many bytes each of them may have, if not any.
    fn shares(
        &self,
        members: &[(Cow<'_, str>, Json<'_>)],
        bound: Bound<'_>,
    ) -> (usize, Option<usize>) {
        let count = self.members_kept(members);
        let budget = self.budget;
        if budget == usize::MAX {
            return (count, None);
        }
        let is_told = |key: &str, value: &Json<'_>| {
            !self.limits.is_terse || !is_empty(value) || !bound.admits_without(key)
        };
        let weigh = |(key, value): &(Cow<'_, str>, Json<'_>)| match is_told(key, value) {
            true => key.len() + 4 + self.weight(value, budget),
            false => 0,
        };
        let mut weights: Vec<_> = members[..count].iter().map(weigh).collect();
        let share = level(weights.clone(), budget);
        if share.is_none_or(|share| share >= SMALLEST_SHARE) {
            return (count, share);
        }
        let most = (budget / SMALLEST_SHARE).max(1);
        let told = weights.iter().scan(0, |told, weight| {
            *told += usize::from(*weight > 0);
            Some(*told)
        });
        let count = told.take_while(|told| *told <= most).count();
        weights.truncate(count);
        (count, level(weights, budget))
    }

    /// How many of `members` stay, whatever they weigh: all, unless they are a list.
    fn members_kept(&self, members: &[(Cow<'_, str>, Json<'_>)]) -> usize {
        let least = self.limits.members;
        if members.len() <= least {
            return members.len();
        }
        if !members.iter().any(|(_, value)| is_container(value)) {
            return members.len().min(self.limits.rows.max(least));
        }
        let (limit, _) = self.limit();
        let count = members.len().min(limit.max(least));
        let mut bytes = 0_usize;
        let fits = |(key, value): &&(Cow<'_, str>, Json<'_>)| {
            let weight = key.len() + 4 + self.weight(value, usize::MAX);
            bytes = bytes.saturating_add(weight);
            bytes <= self.limits.detailed_bytes
        };
        let detailed = self.limits.detailed.max(least);
        let detailed = members[..count].iter().take(detailed);
        detailed.take_while(fits).count().max(1)
    }

    /// How many elements an array at hand keeps, and whether it is within another.
    fn limit(&self) -> (usize, bool) {
        let is_inner = self.way.iter().any(|step| matches!(step, Step::Element(_)));
        let limit = if is_inner {
            self.limits.elements
        } else {
            self.limits.rows
        };
        (limit, is_inner)
    }

    fn elements<'a>(
        &mut self,
        elements: &'v [Json<'a>],
        path: usize,
        bound: Bound<'_>,
    ) -> Json<'a> {
        let Rows { count, whole, key } = self.rows(elements, bound);
        if count < elements.len() {
            self.leave_out(Rule::Elements, path, count, elements.len());
        }
        let (room, budget) = (self.room, self.budget);
        self.room /= count.max(1);
        // What does not fit even so has to share.
        if self.fitting(&elements[..whole.min(count)], budget) == whole.min(count) {
            self.budget = usize::MAX;
        } else {
            self.budget /= whole.min(count).max(1);
        }
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
                self.leave_out(Rule::Details, path, at, count);
                has_less = true;
            }
            kept.push(short);
            self.way.pop();
        }
        (self.room, self.budget) = (room, budget);
        Json::Array(kept)
    }

    /// Which of `elements` stay.
    fn rows<'e>(&self, elements: &'e [Json<'_>], bound: Bound<'_>) -> Rows<'e> {
        let (limit, is_inner) = self.limit();
        // None of them would say nothing.
        let mut count = elements.len().min(bound.items(limit.max(1)));
        let fitting = self.fitting(&elements[..count], self.budget).max(1);
        let mut whole = if is_inner {
            fitting
        } else {
            fitting.min(self.whole_rows(&elements[..count]))
        };
        let key = (whole < count && !is_inner && self.limits.is_terse)
            .then(|| key_of(&elements[..count]))
            .flatten();
        match key {
            // Keys and details share the room.
            Some(_) if self.budget != usize::MAX => {
                let half = self.budget / 2;
                whole = whole.min(self.fitting(&elements[..count], half).max(1));
                let most = whole + half / LONGEST_KEY;
                count = elements.len().min(bound.items(count.min(most)));
            }
            Some(_) => {}
            None if whole < fitting => {
                if elements.iter().any(is_container) {
                    count = count.min(bound.items(whole));
                } else {
                    count = count.min(bound.items(fitting));
                    whole = count;
                }
            }
            None => count = count.min(bound.items(fitting)),
        }
        Rows { count, whole, key }
    }

    /// How many of `elements`, the first ones, have at most `room` bytes together.
    fn fitting(&self, elements: &[Json<'_>], room: usize) -> usize {
        if room == usize::MAX {
            return elements.len();
        }
        let mut left = room;
        let fits = |element: &&Json<'_>| {
            let weight = self.weight(element, left) + 2;
            let fits = weight <= left;
            left = left.saturating_sub(weight);
            fits
        };
        elements.iter().take_while(fits).count()
    }

    /// How many of `rows` stay whole: the first in any case.
    fn whole_rows(&self, rows: &[Json<'_>]) -> usize {
        let Limits {
            detailed,
            detailed_bytes,
            ..
        } = *self.limits;
        if detailed_bytes == usize::MAX {
            return rows.len().min(detailed.max(1));
        }
        let mut bytes = 0_usize;
        let fits = |row: &&Json<'_>| {
            bytes = bytes.saturating_add(self.weight(row, detailed_bytes));
            bytes <= detailed_bytes
        };
        let rows = rows.iter().take(detailed);
        rows.take_while(fits).count().max(1)
    }

    /// About how many bytes `value` has when it is shorter: never more for what is shorter already. It is not
    /// looked at further than `enough`.
    fn weight(&self, value: &Json<'_>, enough: usize) -> usize {
        let mut weight = 0_usize;
        match value {
            Json::Object(members) => {
                for (key, value) in members {
                    if self.limits.is_terse && is_empty(value) {
                        continue;
                    }
                    if weight > enough {
                        break;
                    }
                    weight += key.len() + 4 + self.weight(value, enough - weight);
                }
            }
            Json::Array(elements) => {
                for element in elements.iter().take(self.limits.elements.max(1)) {
                    if weight > enough {
                        break;
                    }
                    weight += 2 + self.weight(element, enough - weight);
                }
            }
            Json::String(text) => weight = text.len().min(self.limits.text) + 2,
            Json::Number(spelling) => weight = spelling.len(),
            Json::Null | Json::Bool(_) => weight = 5,
        }
        weight
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
        if let Some(at) = self.counted.get(&(path, rule)) {
            self.left_out[*at].count(kept, of);
            return;
        }
        let next = self.left_out.len();
        if next == MOST_PLACES {
            self.left_out[next - 1].count(kept, of);
            return;
        }
        let mut one = LeftOut {
            rule: Rule::Elsewhere,
            path: String::new(),
            first: String::new(),
            offset: 0,
            places: 1,
            kept,
            of,
        };
        if next < MOST_PLACES - 1 {
            self.counted.insert((path, rule), next);
            one.rule = rule;
            one.offset = kept;
            (one.path, one.first) = self.pointers();
        }
        self.left_out.push(one);
    }

    /// The path and the pointer to the value at hand.
    fn pointers(&self) -> (String, String) {
        let (mut path, mut first) = (String::new(), String::new());
        for step in &self.way {
            match step {
                Step::Member(key) => {
                    path = pointer(&path, key);
                    first = pointer(&first, key);
                }
                Step::Entry(key) => {
                    path.push_str("/*");
                    first = pointer(&first, key);
                }
                Step::Element(at) => {
                    path.push_str("/*");
                    first.push_str(&format!("/{at}"));
                }
            }
        }
        (path, first)
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
    let mut end = limit.saturating_sub(ELLIPSIS.len()).min(text.len());
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
    match after_sentence.or_else(after_word) {
        Some(at) if head.is_char_boundary(at) => Some(&text[..at]),
        _ if text.len() > LONGEST_WORD => Some(head),
        _ => None,
    }
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

    #[test]
    fn a_sentence_that_is_less_than_a_third_is_no_end() {
        shortens("A. One two three four five", 20, Some("A. One two three "));
        shortens("One. Two three four five", 18, Some("One. "));
    }

    #[test]
    fn a_wide_space_and_a_word_that_is_not_the_longest_are_no_ends() {
        shortens("東京\u{3000}大阪\u{3000}名古屋", 18, None);
        shortens(&"x".repeat(512), 12, None);
        shortens(&"x".repeat(513), 12, Some("xxxxxxxxx"));
    }

    /// CN-13: whole elements are counted where they are missing.
    #[test]
    fn places_beyond_the_limit_are_counted_together() {
        let members: Vec<_> = (0..100).map(|n| format!("\"k{n}\":null")).collect();
        let text = format!("{{{}}}", members.join(","));
        let limits = Limits::default().with_members(100);
        let short = compact(&Json::parse(&text).unwrap(), &limits);
        assert_eq!(short.left_out.len(), MOST_PLACES);
        let places: usize = short.left_out.iter().map(|one| one.places).sum();
        assert_eq!(places, 100);
        let last = short.left_out.last().unwrap();
        assert_eq!((last.rule, last.places), (Rule::Elsewhere, 100 - 63));
        assert_eq!(notice(&short.left_out, None).len(), 2);
        let lines = notice(&short.left_out, Some("vary://result/x"));
        assert!(lines[1].ends_with("; vary://result/x"), "{lines:?}");
    }
}
