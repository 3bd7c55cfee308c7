//! The blocks of a result's `content`.

use std::borrow::Cow;
use std::cell::OnceCell;

use crate::json::{
    Json, JsonError, Members, elements, is_string_of, string, unquoted, write_string,
};

/// One block of `content`.
pub(crate) struct Block<'a> {
    pub(crate) written: &'a str,
    /// The text of a readable text block, as a JSON string.
    quoted_text: Option<&'a str>,
    /// The same decoded, once it was needed: many texts only repeat the value, which needs no decoding to detect.
    text: OnceCell<Cow<'a, str>>,
}

impl<'a> Block<'a> {
    fn new(written: &'a str) -> Self {
        Self {
            written,
            quoted_text: quoted_text(written),
            text: OnceCell::new(),
        }
    }

    /// Whether this is a readable text block.
    pub(crate) fn is_text(&self) -> bool {
        self.quoted_text.is_some()
    }

    /// Whether this is a text block with this text.
    pub(crate) fn has_text(&self, text: &str) -> bool {
        let quoted = self.quoted_text;
        quoted.is_some_and(|quoted| is_string_of(quoted, text))
    }

    /// The text of a readable text block; `None` for other blocks.
    pub(crate) fn text(&self) -> Option<&str> {
        let quoted = self.quoted_text?;
        let text = || unquoted(quoted).unwrap_or_default();
        Some(self.text.get_or_init(text))
    }
}

pub(crate) fn blocks(content: &str) -> Result<Vec<Block<'_>>, JsonError> {
    Ok(elements(content)?.into_iter().map(Block::new).collect())
}

/// The text of a readable text block; `None` for other blocks.
pub(crate) fn text_of(block: &str) -> Option<Cow<'_, str>> {
    quoted_text(block).and_then(unquoted)
}

/// The text of a readable text block as a JSON string; `None` for other blocks.
fn quoted_text(block: &str) -> Option<&str> {
    let block = Members::parse(block).ok()?;
    let is_text = block.get("type").and_then(unquoted).as_deref() == Some("text");
    let text = block.get_written("text")?;
    // Only a code point by number can be unreadable: half of a pair.
    let is_readable = !text.contains("\\u") || unquoted(text).is_some();
    (is_text && is_readable && text.starts_with('"')).then_some(text)
}

pub(crate) fn texts<'b>(blocks: &'b [Block<'_>]) -> Vec<&'b str> {
    blocks.iter().filter_map(Block::text).collect()
}

/// The only text block; `None` if there are none or several.
pub(super) fn only_text<'b, 'a>(blocks: &'b [Block<'a>]) -> Option<&'b Block<'a>> {
    let mut texts = blocks.iter().filter(|block| block.is_text());
    let text = texts.next()?;
    texts.next().is_none().then_some(text)
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
    let mut block = String::with_capacity(text.len() + text.len() / 8 + 32);
    block.push_str(r#"{"type":"text","text":"#);
    write_string(&mut block, text);
    block.push('}');
    block
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
