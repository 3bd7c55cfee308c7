//! JSON texts of a result without white space between their tokens.

use super::draft::Draft;
use super::{Compacting, Subject};
use crate::json::{Json, minified};

impl Compacting<'_> {
    /// `draft` with minified texts; or nothing but those, where that is no longer than its `content` with the lines
    /// about what it leaves out, and no bound of the operator demands the cut.
    pub(super) fn minified<'b>(
        &self,
        subject: Option<&Subject<'_>>,
        mut draft: Draft<'b>,
        (structured, content): (Option<&str>, usize),
    ) -> Draft<'b> {
        if draft.is_cut() && self.compaction.bounds.are_none() {
            let mut whole = Draft::of(draft.blocks);
            self.minify(subject, &mut whole);
            let length = self.content(&whole, false).len() + structured.map_or(0, str::len);
            if length <= content + draft.structured_length(structured) {
                return whole;
            }
        }
        self.minify(subject, &mut draft);
        draft
    }

    /// Takes the white space out of the JSON texts that `draft` leaves as they were written.
    ///
    /// Two texts stay: the operator's own words, and a text that is the one string of the structured value, such as a
    /// file that was read.
    fn minify(&self, subject: Option<&Subject<'_>>, draft: &mut Draft<'_>) {
        let words = self.compaction.words.and_then(|words| words.text);
        let data = subject.filter(|subject| !subject.is_prose);
        let string = data.and_then(|data| only_string(&data.value));
        for (at, text) in draft.texts() {
            let is_chosen = Some(text) == words || Some(text) == string;
            if is_chosen || !draft.is_as_written(at) || !text.trim_start().starts_with(['{', '[']) {
                continue;
            }
            if let Some(short) = minified(text) {
                draft.set(at, &short);
            }
        }
    }
}

/// The string that `value` wraps as its one member, since a structured value must be an object.
fn only_string<'v>(value: &'v Json<'_>) -> Option<&'v str> {
    match value {
        Json::Object(members) => match members.as_slice() {
            [(_, Json::String(only))] => Some(only),
            _ => None,
        },
        _ => None,
    }
}
