//! Who reads which field of a tool's result.
//!
//! Source: the tool result clarification. "`content` is the model-oriented representation of a tool
//! result", "`structuredContent` is the machine-oriented representation for programmatic use".

use crate::json::{Json, JsonError, Members, elements};
use crate::shape::applied::{META_APPLIED, meta};
use crate::shape::content::{blocks, text_of};
use crate::shape::repeat::{Relation, relations_to};

/// Who reads a result.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Experience {
    /// A model in a conversation or an agent's loop: reads `content`.
    Conversation,
    /// A program: code mode, typed orchestration. Reads `structuredContent`.
    Program,
    /// A user interface that the result fills: reads `structuredContent`.
    UserInterface,
}

/// The parts of a result to forward to its reader.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a result has only two fields")]
pub enum Forward<'a> {
    /// The blocks of `content`, each as written.
    Content(Vec<&'a str>),
    /// The structured value.
    Structured {
        /// `structuredContent`, as written.
        value: &'a str,
        /// The blocks of `content` that no structured value can replace: images, audio, links, embedded resources,
        /// each as written.
        others: Vec<&'a str>,
    },
    /// The result is empty.
    Nothing,
}

/// Selects the parts of `result`, the `result` member of a `tools/call` response, for its reader.
///
/// # Properties
///
/// "Clients SHOULD NOT forward both fields verbatim to the model as separate inputs": a text block and the
/// structured value are never forwarded together, except an author's own text beside negotiated JSON. No image,
/// audio, link or error is lost.
///
/// | result | conversation | program, user interface |
/// |---|---|---|
/// | both fields | `content` | `structuredContent` |
/// | only one of them | that one | that one |
/// | `content` without text | `structuredContent`, and the images | the same |
/// | negotiated as JSON | `structuredContent` | the same |
/// | an error | `content` | `content` |
///
/// # Errors
///
/// When `result` is not a JSON object, or its `content` not an array.
///
/// # Examples
///
/// ```
/// use mcp_vary::visibility::{Experience, Forward, forward};
///
/// let result = r#"{"content": [{"type": "text", "text": "8 °C"}], "structuredContent": {"c": 8.0}}"#;
/// assert_eq!(
///     forward(result, Experience::Conversation)?,
///     Forward::Content(vec![r#"{"type": "text", "text": "8 °C"}"#]),
/// );
/// assert_eq!(
///     forward(result, Experience::Program)?,
///     Forward::Structured { value: r#"{"c": 8.0}"#, others: vec![] },
/// );
///
/// // A structured value cannot contain an image.
/// let result = r#"{"content": [{"type": "image", "data": ""}], "structuredContent": {"c": 8.0}}"#;
/// assert_eq!(
///     forward(result, Experience::Conversation)?,
///     Forward::Structured { value: r#"{"c": 8.0}"#, others: vec![r#"{"type": "image", "data": ""}"#] },
/// );
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
pub fn forward(result: &str, experience: Experience) -> Result<Forward<'_>, JsonError> {
    let members = Members::parse(result)?;
    let content = match members.get_written("content") {
        None | Some("null") => Vec::new(),
        Some(content) => elements(content)?,
    };
    let structured = members
        .get_written("structuredContent")
        .filter(|value| *value != "null");
    let is_negotiated = match structured {
        Some(value) => negotiated_json(&members)? && !has_other_json(value, &content)?,
        None => false,
    };
    let reads_content = match experience {
        _ if members.get("isError") == Some("true") => !content.is_empty(),
        _ if is_negotiated => false,
        Experience::Conversation => content.iter().any(|block| has_text(block)),
        Experience::Program | Experience::UserInterface => false,
    };
    Ok(match structured {
        Some(value) if !reads_content => Forward::Structured {
            value,
            others: if is_negotiated {
                not_repeating(value, content)?
            } else {
                content
                    .into_iter()
                    .filter(|block| !is_text(block))
                    .collect()
            },
        },
        None if content.is_empty() => Forward::Nothing,
        _ => Forward::Content(content),
    })
}

/// Whether the client negotiated JSON for this result, so that its texts are only notices.
fn negotiated_json(result: &Members<'_>) -> Result<bool, JsonError> {
    let metadata = meta(result)?;
    let Some(applied) = metadata.get(META_APPLIED) else {
        return Ok(false);
    };
    let format = Members::parse(applied)
        .ok()
        .and_then(|a| a.get_str("format"));
    Ok(format.as_deref() == Some("json"))
}

/// Whether a text of `content` is other JSON, such as a compacted value.
fn has_other_json(value: &str, content: &[&str]) -> Result<bool, JsonError> {
    let is_json = |block: &&str| {
        let text = text_of(block);
        text.is_some_and(|text| text.starts_with(['{', '[']) && Json::parse(&text).is_ok())
    };
    let all = not_repeating(value, content.to_vec())?;
    Ok(all.iter().any(is_json))
}

/// The blocks of `content` that do not repeat `value`.
fn not_repeating<'c>(value: &str, content: Vec<&'c str>) -> Result<Vec<&'c str>, JsonError> {
    let written = format!("[{}]", content.join(","));
    let parsed = blocks(&written)?;
    let mut relations = relations_to(value, &parsed)?.into_iter();
    let mut says_more = parsed.iter().map(|block| {
        let relation = if block.is_text() {
            relations.next()
        } else {
            None
        };
        relation.is_none_or(|relation| relation == Relation::Author)
    });
    let mut content = content;
    content.retain(|_| says_more.next().unwrap_or(true));
    Ok(content)
}

fn is_text(block: &str) -> bool {
    Members::parse(block).is_ok_and(|block| block.get_str("type").as_deref() == Some("text"))
}

/// Whether a model can read `block`: a text, or an embedded resource that is text.
fn has_text(block: &str) -> bool {
    let says = |block: &Members<'_>| {
        let text = block.get_str("text");
        text.is_some_and(|text| !text.trim().is_empty())
    };
    let Ok(block) = Members::parse(block) else {
        return false;
    };
    match block.get_str("type").as_deref() {
        Some("text") => says(&block),
        Some("resource") => block
            .get("resource")
            .is_some_and(|resource| Members::parse(resource).is_ok_and(|r| says(&r))),
        _ => false,
    }
}
