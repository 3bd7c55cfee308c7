//! The blocks of a result's `content`.

use std::borrow::Cow;

use crate::json::{Json, JsonError, Members, elements, string, unquoted};

/// One block of `content`.
pub(crate) struct Block<'a> {
    pub(crate) written: &'a str,
    /// The text, in a text block.
    pub(crate) text: Option<Cow<'a, str>>,
}

pub(crate) fn blocks(content: &str) -> Result<Vec<Block<'_>>, JsonError> {
    let block = |written| Block {
        written,
        text: text_of(written),
    };
    Ok(elements(content)?.into_iter().map(block).collect())
}

/// The text of a readable text block; `None` for other blocks.
pub(crate) fn text_of(block: &str) -> Option<Cow<'_, str>> {
    let block = Members::parse(block).ok()?;
    let is_text = block.get("type").and_then(unquoted).as_deref() == Some("text");
    block
        .get_written("text")
        .filter(|_| is_text)
        .and_then(unquoted)
}

pub(crate) fn texts<'b>(blocks: &'b [Block<'_>]) -> Vec<&'b str> {
    blocks
        .iter()
        .filter_map(|block| block.text.as_deref())
        .collect()
}

/// A text block with a new text; its annotations stay.
pub(super) fn with_text<'b>(block: &str, text: &str) -> Cow<'b, str> {
    Cow::Owned(Members::parse(block).map_or_else(
        |_| text_block(text),
        |mut block| {
            block.set("text", string(text));
            block.to_json()
        },
    ))
}

pub(super) fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, string(text))
}

pub(super) fn array(elements: &[Cow<'_, str>]) -> String {
    format!("[{}]", elements.join(","))
}

/// Parses a text that is an object or array.
pub(super) fn container(text: &str) -> Option<Json<'_>> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    Json::parse(text).ok()
}

/// Whether `result` is final: neither input-required nor a task handle.
pub(super) fn is_complete(result: &Members<'_>) -> bool {
    match result.get("resultType") {
        Some(_) => result.get_str("resultType").as_deref() == Some("complete"),
        None => true,
    }
}
