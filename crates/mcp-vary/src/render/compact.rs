//! Compacts a value, and reports what was left out.

mod contract;
mod prose;
mod trail;
mod weight;

use std::borrow::Cow;

pub use self::contract::Contract;
pub use self::prose::ELLIPSIS;
use self::prose::shortened;
pub(crate) use self::prose::shorter_prose;
use self::trail::{PathTracker, Step};
pub(crate) use self::weight::fair_share;
use self::weight::{MAX_KEY, is_empty, key_of, size};
use super::columns::columns;
use super::left_out::{LeftOut, LeftOutRule, fold_lines, notice};
use super::limits::Limits;
use super::line::is_container;
use super::schema::Bound;
use crate::json::Json;

/// The member of an object that lists what was left out of it.
pub const META_LEFT_OUT: &str = "vary/leftOut";

/// A compacted value, and what it leaves out.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Compact<'a> {
    /// The remaining value, with the same structure: a pointer into it leads to the same position in the whole
    /// value.
    pub value: Json<'a>,
    /// What was left out, in the order of the value. Empty if `value` is complete.
    pub left_out: Vec<LeftOut>,
}

impl<'a> Compact<'a> {
    /// A complete value.
    pub(crate) fn whole(value: Json<'a>) -> Self {
        Self {
            value,
            left_out: Vec::new(),
        }
    }
}

/// Removes empty parts and long tails from `value`.
///
/// # Properties
///
/// Of many rows, the first stay complete and the others are reduced to their key: the first member that differs in
/// all of them, else two or three that differ together, else the one that differs most. Without such a member, the
/// rows end after the complete ones. Of an object that is a list of its members, the others are reduced to their
/// names, with [`ELLIPSIS`] or an empty value. A text in an array of five gets a fifth of the room that a text
/// elsewhere has, within the limits. Remaining parts stay as they were: members and elements in order, numbers as
/// written, texts from their beginning to the end of a line, sentence or word, followed by [`ELLIPSIS`]. Cuts fall
/// between whole elements. An empty element of an array stays, since removing it would move those after it.
/// Everything that is missing is counted in [`Compact::left_out`]. Compacting twice changes nothing more.
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
/// // A truncated URL would be useless.
/// let value = Json::parse(r#"["https://a.test/b/c", "One. Two and three."]"#)?;
/// let short = compact(&value, &Limits::default().with_text(8));
/// assert_eq!(short.value.to_json(), r#"["https://a.test/b/c","One. …"]"#);
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[must_use]
pub fn compact<'a>(value: &Json<'a>, limits: &Limits) -> Compact<'a> {
    Compactor::new(limits).whole(value, Bound::Free)
}

/// The most compact JSON of `value` for a text: [`compact`], with rows as columns if that is shorter.
///
/// # Properties
///
/// Rows become `{"each", "from", "columns", "rows", "others"}`, each part only if needed: the values that all rows
/// share, including key-only rows; templates of texts that are derived from another column (`/issues/{number}`); the
/// names of the columns; the cells, `null` for a missing one; the keys of key-only rows. Nested objects become
/// columns of their own, `from.station`. An array that would not become a quarter shorter stays as it is.
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

/// A shorter `structuredContent`; `None` if the value must stay or nothing was left out.
///
/// # Properties
///
/// The value itself lists what it lacks under [`META_LEFT_OUT`], since a program may read nothing else; with
/// `whole`, the URI of the whole value, the list says where to read it. Therefore only objects are cut, and under a
/// schema only where it allows additional members. The result is still valid: members are removed if they are not
/// `required`, elements beyond `minItems`, texts if no keyword constrains them. Parts under other keywords (`anyOf`,
/// an external reference) stay complete, unless the contract's validator accepts the shorter value.
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
/// // The schema has no room for the list, so nothing is removed.
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
        let mut compacting = Compactor::new(limits);
        compacting.is_typed = true;
        let mut short = compacting.whole(value, bound);
        let lines = fold_lines(notice(&short.left_out, whole), whole, limits.bytes / 4);
        let notices = lines.into_iter().map(|line| Json::String(line.into()));
        if let Json::Object(members) = &mut short.value {
            members.push((META_LEFT_OUT.into(), Json::Array(notices.collect())));
        }
        (!short.left_out.is_empty() && contract.accepts(&short.value)).then_some(short)
    };
    contract.bounds().into_iter().find_map(shorter)
}

struct Compactor<'v, 'l> {
    limits: &'l Limits,
    /// The bytes that the current text may have, if more than the general limit.
    room: usize,
    /// The bytes that the current value may have; `usize::MAX` if it fits.
    budget: usize,
    /// Whether programs read the value, so that placeholders need the right type.
    is_typed: bool,
    trail: PathTracker<'v>,
}

impl<'v, 'l> Compactor<'v, 'l> {
    fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            room: limits.passage,
            budget: limits.bytes,
            is_typed: false,
            trail: PathTracker::default(),
        }
    }

    fn whole<'a>(mut self, value: &'v Json<'a>, bound: Bound<'_>) -> Compact<'a> {
        let value = self.value(value, bound);
        Compact {
            value,
            left_out: self.trail.into_left_out(),
        }
    }

    fn value<'a>(&mut self, value: &'v Json<'a>, bound: Bound<'_>) -> Json<'a> {
        if bound.is_closed() {
            return value.clone();
        }
        if self.trail.depth() >= self.limits.depth
            && let Some(sign) = self.placeholder(value, bound)
        {
            self.trail.leave_out(LeftOutRule::Depth, 0, size(value));
            return sign;
        }
        match value {
            Json::Object(members) => self.members(members, bound),
            Json::Array(elements) => self.elements(elements, bound),
            Json::String(text) if bound.admits_text() => self.text(text),
            other => other.clone(),
        }
    }

    /// The placeholder for a value that nests too deep; `None` if the value stays.
    fn placeholder<'a>(&self, value: &Json<'_>, bound: Bound<'_>) -> Option<Json<'a>> {
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

    fn text<'a>(&mut self, text: &Cow<'a, str>) -> Json<'a> {
        let limit = self.limits.text.max(self.room).min(self.budget);
        if text.len() <= limit {
            return Json::String(text.clone());
        }
        let Some(retained) = shortened(text, limit) else {
            return Json::String(text.clone());
        };
        self.trail
            .leave_out(LeftOutRule::Text, retained.len(), text.len());
        Json::String(format!("{retained}{ELLIPSIS}").into())
    }

    fn members<'a>(
        &mut self,
        members: &'v [(Cow<'a, str>, Json<'a>)],
        bound: Bound<'_>,
    ) -> Json<'a> {
        let budget = self.budget;
        let (count, share) = self.shares(members, bound);
        let named = self.named_members(members).max(count);
        let mut retained = Vec::with_capacity(named);
        let stays = |(at, (key, _)): &(usize, &(Cow<'a, str>, Json<'a>))| {
            *at < named || !bound.admits_without(key)
        };
        let staying: Vec<_> = members.iter().enumerate().filter(stays).collect();
        if staying.len() < members.len() {
            self.trail
                .leave_out(LeftOutRule::Members, named, members.len());
        }
        let is_list = members.len() > self.limits.members;
        let mut has_less = false;
        for (at, (key, value)) in staying {
            let step = if is_list {
                Step::Entry(key)
            } else {
                Step::Member(key)
            };
            self.trail.step(step);
            let sign = (at >= count && is_container(value))
                .then(|| self.placeholder(value, bound.member(key)))
                .flatten();
            if let Some(sign) = sign {
                if !has_less {
                    self.trail.leave_out(LeftOutRule::Details, at, named);
                    has_less = true;
                }
                retained.push((key.clone(), sign));
            } else if self.limits.is_terse && is_empty(value) && bound.admits_without(key) {
                self.trail.leave_out(LeftOutRule::Empty, 0, 1);
            } else {
                let native = key.len() + 4;
                self.budget = match share {
                    Some(share) if native + self.limits.weight(value, share) > share => {
                        share.saturating_sub(native)
                    }
                    _ => usize::MAX,
                };
                let value = self.value(value, bound.member(key));
                retained.push((key.clone(), value));
            }
            self.trail.step_back();
        }
        self.budget = budget;
        Json::Object(retained)
    }

    /// The number of members that stay, and the bytes that each may have, if limited.
    fn shares(
        &self,
        members: &[(Cow<'_, str>, Json<'_>)],
        bound: Bound<'_>,
    ) -> (usize, Option<usize>) {
        let count = self.retained_members(members);
        let budget = self.budget;
        if budget == usize::MAX {
            return (count, None);
        }
        let is_told = |key: &str, value: &Json<'_>| {
            !self.limits.is_terse || !is_empty(value) || !bound.admits_without(key)
        };
        let weigh = |(key, value): &(Cow<'_, str>, Json<'_>)| {
            if is_told(key, value) {
                key.len() + 4 + self.limits.weight(value, budget)
            } else {
                0
            }
        };
        let mut weights: Vec<_> = members[..count].iter().map(weigh).collect();
        let share = fair_share(weights.clone(), budget);
        if share.is_none_or(|share| share >= MIN_SHARE) {
            return (count, share);
        }
        let most = (budget / MIN_SHARE).max(1);
        let nonempty = weights.iter().scan(0, |nonempty, weight| {
            *nonempty += usize::from(*weight > 0);
            Some(*nonempty)
        });
        let count = nonempty.take_while(|nonempty| *nonempty <= most).count();
        weights.truncate(count);
        (count, fair_share(weights, budget))
    }

    /// The number of members that stay, regardless of size: all, unless the object is a list.
    fn retained_members(&self, members: &[(Cow<'_, str>, Json<'_>)]) -> usize {
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
            let weight = key.len() + 4 + self.limits.weight(value, usize::MAX);
            bytes = bytes.saturating_add(weight);
            bytes <= self.limits.detailed_bytes
        };
        let detailed = self.limits.detailed.max(least);
        let detailed = members[..count].iter().take(detailed);
        detailed.take_while(fits).count().max(1)
    }

    /// The number of members of a list that keep at least their name.
    fn named_members(&self, members: &[(Cow<'_, str>, Json<'_>)]) -> usize {
        let is_list = members.len() > self.limits.members;
        let has_room = self.budget == usize::MAX && !self.trail.is_in_array();
        if !is_list || !has_room || !self.limits.is_terse {
            return 0;
        }
        members.len().min(self.limits.rows)
    }

    /// The number of elements that the current array may have, and whether it is in another array.
    fn limit(&self) -> (usize, bool) {
        let is_inner = self.trail.is_in_array();
        let limit = if is_inner {
            self.limits.elements
        } else {
            self.limits.rows
        };
        (limit, is_inner)
    }

    fn elements<'a>(&mut self, elements: &'v [Json<'a>], bound: Bound<'_>) -> Json<'a> {
        let Rows { count, whole, key } = self.rows(elements, bound);
        if count < elements.len() {
            self.trail
                .leave_out(LeftOutRule::Elements, count, elements.len());
        }
        let (room, budget) = (self.room, self.budget);
        self.room /= count.max(1);
        // Elements that still do not fit share the budget.
        if self.limits.fitting(&elements[..whole.min(count)], budget) == whole.min(count) {
            self.budget = usize::MAX;
        } else {
            self.budget /= whole.min(count).max(1);
        }
        let mut has_less = false;
        let mut retained = Vec::with_capacity(count);
        for (at, element) in elements[..count].iter().enumerate() {
            self.trail.step(Step::Element(at));
            let item_bound = bound.item(at);
            let short = match &key {
                Some(key) if at >= whole => self.only_key(element, key, item_bound),
                _ => self.value(element, item_bound),
            };
            let members = |row: &Json<'_>| row.as_object().map(<[_]>::len);
            if at >= whole && !has_less && members(&short) < members(element) {
                self.trail.leave_out(LeftOutRule::Details, at, count);
                has_less = true;
            }
            retained.push(short);
            self.trail.step_back();
        }
        (self.room, self.budget) = (room, budget);
        Json::Array(retained)
    }

    /// Decides which elements stay.
    fn rows<'e>(&self, elements: &'e [Json<'_>], bound: Bound<'_>) -> Rows<'e> {
        let (limit, is_inner) = self.limit();
        // At least one element stays.
        let mut count = elements.len().min(bound.items(limit.max(1)));
        let fitting = self.limits.fitting(&elements[..count], self.budget).max(1);
        let mut whole = if is_inner {
            fitting
        } else {
            fitting.min(self.limits.whole_rows(&elements[..count]))
        };
        // A truncated text is not a key.
        let longest = MAX_KEY.min(self.limits.text);
        let key = (whole < count && !is_inner && self.limits.is_terse)
            .then(|| key_of(&elements[..count], longest))
            .flatten();
        match &key {
            // Keys and complete rows share the budget.
            Some(key) if self.budget != usize::MAX => {
                let half = self.budget / 2;
                whole = whole.min(self.limits.fitting(&elements[..count], half).max(1));
                let most = whole + half / MAX_KEY / key.len();
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

    /// A row with only its key and what a schema requires.
    fn only_key<'a>(&mut self, row: &'v Json<'a>, key: &[&str], bound: Bound<'_>) -> Json<'a> {
        let mut retained = Vec::new();
        for (name, value) in row.as_object().unwrap_or_default() {
            if key.contains(&name.as_ref()) || !bound.admits_without(name) {
                self.trail.step(Step::Member(name));
                retained.push((name.clone(), self.value(value, bound.member(name))));
                self.trail.step_back();
            }
        }
        Json::Object(retained)
    }
}

/// The elements of an array that stay.
struct Rows<'e> {
    count: usize,
    /// The number of complete ones.
    whole: usize,
    /// The key members of the others.
    key: Option<Vec<&'e str>>,
}

/// Bytes of a member, at least; a shorter one has too little information.
const MIN_SHARE: usize = 24;
