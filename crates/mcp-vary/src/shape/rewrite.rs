//! Rewrites the texts in a result's `content`; everything else stays in place as written.

use std::borrow::Cow;

use super::content::{Block, array, container, text_block, with_text};
use super::repeat::Relation;
use crate::json::Json;

/// `content` without the texts that repeat the value, and with `text` at the position of the first of them.
///
/// `text` inherits the annotations of the text that it replaces. Without any text it comes first. `None` if nothing
/// changes.
pub(super) fn replace(
    blocks: &[Block<'_>],
    relations: &[Relation],
    text: Option<&str>,
) -> Option<String> {
    let mut text = text;
    let mut changed = false;
    let mut new: Vec<Cow<'_, str>> = Vec::with_capacity(blocks.len() + 1);
    if !blocks.iter().any(Block::is_text)
        && let Some(text) = text
    {
        new.push(Cow::Owned(text_block(text)));
        changed = true;
    }
    let mut following = relations.iter();
    for block in blocks {
        let relation = if block.is_text() {
            following.next()
        } else {
            None
        };
        let is_going = relation == Some(&Relation::Repeats);
        if !is_going || text.is_some_and(|text| block.has_text(text)) {
            text = text.filter(|_| !is_going);
            new.push(Cow::Borrowed(block.written));
            continue;
        }
        changed = true;
        new.extend(text.take().map(|text| with_text(block.written, text)));
    }
    changed.then(|| array(&new))
}

/// `content` with `json` at the position of the first text, or first, followed by the author's own texts. `None` if
/// nothing changes.
pub(super) fn json_and_author(
    blocks: &[Block<'_>],
    relations: &[Relation],
    json: &str,
) -> Option<String> {
    let with_relation: Vec<_> = {
        let mut following = relations.iter();
        let relation = |block: &Block<'_>| {
            if block.is_text() {
                following.next()
            } else {
                None
            }
        };
        blocks.iter().map(relation).collect()
    };
    let repeats = |at: &usize| with_relation[*at] == Some(&Relation::Repeats);
    let first = blocks.iter().position(Block::is_text);
    // The new text inherits the annotations of a text that repeats the value.
    let repeating = (0..blocks.len()).find(repeats);
    let replacement = match repeating.map(|at| &blocks[at]) {
        Some(block) if block.has_text(json) => Cow::Borrowed(block.written),
        Some(block) => with_text(block.written, json),
        None => Cow::Owned(text_block(json)),
    };
    let mut new: Vec<Cow<'_, str>> = Vec::with_capacity(blocks.len() + 1);
    for (at, block) in blocks.iter().enumerate() {
        if at == first.unwrap_or(0) {
            new.push(replacement.clone());
        }
        if matches!(with_relation[at], None | Some(Relation::Author)) {
            new.push(Cow::Borrowed(block.written));
        }
    }
    if blocks.is_empty() {
        new.push(replacement);
    }
    let written = blocks.iter().map(|block| block.written);
    (!new.iter().map(Cow::as_ref).eq(written)).then(|| array(&new))
}

/// `content` with only the texts that `stays` selects by index. `None` if all stay.
pub(super) fn with_texts(blocks: &[Block<'_>], stays: impl Fn(usize) -> bool) -> Option<String> {
    let mut number = 0..;
    let mut left = Vec::with_capacity(blocks.len());
    for block in blocks {
        let number = if block.is_text() { number.next() } else { None };
        if number.is_none_or(&stays) {
            left.push(Cow::Borrowed(block.written));
        }
    }
    (left.len() < blocks.len()).then(|| array(&left))
}

/// `content` with `text` after its last text.
pub(super) fn followed_by(blocks: &[Block<'_>], text: &str) -> String {
    let mut new: Vec<_> = blocks
        .iter()
        .map(|block| Cow::Borrowed(block.written))
        .collect();
    let last = blocks.iter().rposition(Block::is_text);
    let after = last.map_or(0, |last| last + 1);
    new.insert(after, Cow::Owned(text_block(text)));
    array(&new)
}

/// `content` with each JSON text that is the value rendered in its place, and without texts that repeat the value;
/// `relation` returns the relation of a text by index. `None` if nothing changes.
pub(super) fn render_each(
    blocks: &[Block<'_>],
    relation: impl Fn(usize) -> Relation,
    render: fn(&Json<'_>) -> String,
) -> Option<String> {
    let mut number = 0..;
    let mut changed = false;
    let mut new = Vec::with_capacity(blocks.len());
    for block in blocks {
        let text = block.text();
        let rendering = match text.and_then(|_| number.next()).map(&relation) {
            Some(Relation::Repeats) => {
                changed = true;
                continue;
            }
            Some(Relation::IsValue) => text.and_then(container).map(|value| render(&value)),
            Some(Relation::Author | Relation::IsPart) | None => None,
        };
        new.push(
            match rendering.filter(|rendering| Some(rendering.as_str()) != text) {
                Some(rendering) => {
                    changed = true;
                    with_text(block.written, &rendering)
                }
                None => Cow::Borrowed(block.written),
            },
        );
    }
    changed.then(|| array(&new))
}
