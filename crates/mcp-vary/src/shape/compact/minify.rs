//! Removes white space between the tokens of a result's JSON texts.

use super::draft::ContentDraft;
use super::{ResultCompactor, Subject};
use crate::json::{Json, minified};

impl ResultCompactor<'_> {
    /// Minifies the texts of `draft`. If minifying alone is no longer than `draft`'s `content` with its notice, and
    /// the operator has no bounds, returns only that.
    pub(super) fn minified<'b>(
        &self,
        subject: Option<&Subject<'_>>,
        mut draft: ContentDraft<'b>,
        (structured, content): (Option<&str>, usize),
    ) -> ContentDraft<'b> {
        let can_be_whole = draft.has_omissions() && self.compaction.bounds.is_unbounded();
        let structured_length = structured.map_or(0, str::len);
        let most = content + draft.structured_length(structured);
        if can_be_whole && least_length(&draft) + structured_length <= most {
            let mut whole = ContentDraft::of(draft.blocks);
            self.minify(subject, &mut whole);
            let length = self.content(&whole, false).len() + structured_length;
            if length <= most {
                return whole;
            }
        }
        self.minify(subject, &mut draft);
        draft
    }

    /// Minifies the JSON texts that `draft` does not change.
    ///
    /// Two texts stay: the operator's own, and a text that equals the only string of the structured value, such as
    /// the content of a file.
    fn minify(&self, subject: Option<&Subject<'_>>, draft: &mut ContentDraft<'_>) {
        let terms = self.compaction.custom_text.and_then(|terms| terms.text);
        let data = subject.filter(|subject| !subject.is_prose);
        let string = data.and_then(|data| only_string(&data.value));
        for (at, text) in draft.texts() {
            let is_chosen = Some(text) == terms || Some(text) == string;
            if is_chosen || !draft.is_as_written(at) || !text.trim_start().starts_with(['{', '[']) {
                continue;
            }
            if let Some(short) = minified(text) {
                draft.set(at, &short);
            }
        }
    }
}

/// A lower bound for the length of all blocks when their texts are minified.
fn least_length(draft: &ContentDraft<'_>) -> usize {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
    let least = |text: &str| text.bytes().filter(|byte| !is_space(byte)).count();
    let blocks = draft.blocks.iter();
    let lengths = blocks.map(|block| block.text().map_or(block.written.len(), least));
    lengths.sum()
}

/// The string that `value` wraps as its only member: a structured value must be an object.
fn only_string<'v>(value: &'v Json<'_>) -> Option<&'v str> {
    match value {
        Json::Object(members) => match members.as_slice() {
            [(_, Json::String(only))] => Some(only),
            _ => None,
        },
        _ => None,
    }
}
