//! Shapes `prompts/get` results with an author's alternatives.

use super::applied::{Applied, META_APPLIED, Report, Shaped, meta};
use super::content::{is_complete, text_block, text_of};
use crate::feature::Features;
use crate::json::{JsonError, Members, elements, string};
use crate::predicate::{Predicate, choose_with_condition};

/// The role of a prompt message.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the protocol has these two roles")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The value of `role`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// An alternative prompt for some clients.
///
/// # Properties
///
/// There is at least one message, and each has one content block: "`content: ContentBlock`", as the core schema
/// says. If JSON has an array, as in the extension's examples, each of its blocks becomes a message of the same
/// role.
///
/// # Examples
///
/// ```
/// use mcp_vary::shape::{PromptAlternative, Role};
///
/// let prompt = PromptAlternative::new(Role::User, "Call the weather tool.");
/// assert_eq!(
///     prompt.to_json(),
///     r#"{"messages":[{"role":"user","content":{"type":"text","text":"Call the weather tool."}}]}"#,
/// );
///
/// // Two blocks are two messages.
/// let two = r#"{"messages": [{"role": "user", "content": [{"type":"text","text":"a"}, {"type":"text","text":"b"}]}]}"#;
/// assert_eq!(
///     PromptAlternative::from_json(two)?,
///     PromptAlternative::new(Role::User, "a").with_text(Role::User, "b"),
/// );
/// # Ok::<(), mcp_vary::shape::PromptError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PromptAlternative {
    description: Option<String>,
    /// The messages, each as JSON.
    messages: Vec<String>,
}

impl PromptAlternative {
    /// A prompt with one text message.
    #[must_use]
    pub fn new(role: Role, text: &str) -> Self {
        let prompt = Self {
            description: None,
            messages: Vec::new(),
        };
        prompt.with_text(role, text)
    }

    /// Replaces the server's description.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Adds a text message.
    #[must_use]
    pub fn with_text(mut self, role: Role, text: &str) -> Self {
        let (role, block) = (role.as_str(), text_block(text));
        self.messages
            .push(format!(r#"{{"role":"{role}","content":{block}}}"#));
        self
    }

    /// Reads `{"description"?, "messages": […]}`; unknown members of a message stay.
    ///
    /// # Errors
    ///
    /// When there is no message, or a message lacks a role or content.
    pub fn from_json(text: &str) -> Result<Self, PromptError> {
        let prompt = Members::parse(text)?;
        let written = elements(prompt.get("messages").unwrap_or("[]"))?;
        let mut messages = Vec::new();
        for (at, message) in written.into_iter().enumerate() {
            single(message, at + 1, &mut messages)?;
        }
        if messages.is_empty() {
            return Err(PromptError::Empty);
        }
        Ok(Self {
            description: prompt.get_str("description"),
            messages,
        })
    }

    /// The `prompts/get` result.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut result = Members::default();
        if let Some(description) = &self.description {
            result.set("description", string(description));
        }
        result.set("messages", format!("[{}]", self.messages.join(",")));
        result.to_json()
    }
}

/// Adds message number `at` once for each of its blocks.
fn single(message: &str, at: usize, out: &mut Vec<String>) -> Result<(), PromptError> {
    let message = Members::parse(message)?;
    let role = message.get_str("role");
    if !matches!(role.as_deref(), Some("user" | "assistant")) {
        return Err(PromptError::Role(at));
    }
    let content = message.get("content").ok_or(PromptError::Content(at))?;
    let blocks = if content.starts_with('[') {
        elements(content)?
    } else {
        vec![content]
    };
    for block in blocks {
        let has_type = Members::parse(block).is_ok_and(|b| b.get_str("type").is_some());
        if !has_type {
            return Err(PromptError::Content(at));
        }
        let mut one = message.clone();
        one.set("content", block);
        out.push(one.to_json());
    }
    Ok(())
}

/// Why a JSON text is not a prompt.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// It is not a JSON object, or its messages are not an array.
    #[error("a prompt is an object with an array `messages`: {0}")]
    Json(#[from] JsonError),
    /// There is no message.
    #[error("`messages` is empty; add a message")]
    Empty,
    /// The message with this number has an unknown role, or none.
    #[error("message {0} has no role; write `user` or `assistant`")]
    Role(usize),
    /// The message with this number lacks a content block.
    #[error(
        "message {0} has no content; write a block like {{\"type\": \"text\", \"text\": \"…\"}}"
    )]
    Content(usize),
}

/// Shapes `result`, the `result` member of a `prompts/get` answer, for a client with `features`.
///
/// The most specific alternative whose condition matches replaces the server's texts, at the position of the first.
///
/// # Properties
///
/// Only the server's texts are removed: images, audio, links, embedded resources and unknown messages stay byte for
/// byte, in order, and so do unknown members of the result. The server's description stays if the alternative has
/// none. The result is unchanged for clients that declared nothing, for clients that match no condition, and if it
/// was already shaped, requires input, or is unreadable.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Features;
/// use mcp_vary::shape::{PromptAlternative, Role, Shaped, prompt_result};
///
/// let alternatives = [(
///     "agent & sampling".parse()?,
///     PromptAlternative::new(Role::User, "1. Parse\n2. Plan\n3. Call the tool"),
/// )];
/// let result = r#"{"messages": [{"role": "user", "content": {"type": "text", "text": "Call it."}}]}"#;
/// let get = |tags: &str| {
///     let (features, _) = Features::from_tags(tags.split(','));
///     prompt_result(result, &features, &alternatives, None)
/// };
/// let Shaped::Changed { result, .. } = get("agent,sampling") else { panic!() };
/// assert!(result.contains("2. Plan"));
///
/// // An agent that cannot sample does not match.
/// assert_eq!(get("agent"), Shaped::Unchanged);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn prompt_result(
    result: &str,
    features: &Features,
    alternatives: &[(Predicate, PromptAlternative)],
    report: Option<Report<'_>>,
) -> Shaped {
    if features.is_empty() {
        return Shaped::Unchanged;
    }
    let Some((when, alternative)) = choose_with_condition(alternatives, features) else {
        return Shaped::Unchanged;
    };
    let applied = Applied::new(None, features).decided_by(when.verbosity());
    match shape(result, alternative, applied, report) {
        Ok(Some(result)) => Shaped::Changed { result, applied },
        // An unreadable result is forwarded unchanged.
        Ok(None) | Err(_) => Shaped::Unchanged,
    }
}

/// The prompt with the texts of `alternative`, for clients that declared nothing.
///
/// # Properties
///
/// As [`prompt_result`]; without a report, which only clients of the extension read.
#[must_use]
pub fn replace_prompt(result: &str, alternative: &PromptAlternative) -> Shaped {
    let applied = Applied::new(None, &Features::default());
    match shape(result, alternative, applied, None) {
        Ok(Some(result)) => Shaped::Changed { result, applied },
        Ok(None) | Err(_) => Shaped::Unchanged,
    }
}

fn shape(
    text: &str,
    alternative: &PromptAlternative,
    applied: Applied,
    report: Option<Report<'_>>,
) -> Result<Option<String>, JsonError> {
    let mut result = Members::parse(text)?;
    let metadata = meta(&result)?;
    let Some(messages) = result.get("messages") else {
        return Ok(None);
    };
    if !is_complete(&result) || metadata.contains(META_APPLIED) {
        return Ok(None);
    }
    let reported = report.map(|report| applied.report(metadata, report));
    let written = elements(messages)?;
    let place = written.iter().position(|message| is_text(message));
    let mut new: Vec<&str> = Vec::new();
    let ours = || alternative.messages.iter().map(String::as_str);
    if place.is_none() {
        new.extend(ours());
    }
    for (at, message) in written.iter().enumerate() {
        if Some(at) == place {
            new.extend(ours());
        } else if !is_text(message) {
            new.push(message);
        }
    }
    let new = format!("[{}]", new.join(","));
    if let Some(description) = &alternative.description {
        result.set("description", string(description));
    }
    result.set("messages", new);
    if let Some(report) = reported {
        result.set("_meta", report);
    }
    Ok(Some(result.to_json()))
}

fn is_text(message: &str) -> bool {
    let message = Members::parse(message).unwrap_or_default();
    message.get("content").and_then(text_of).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CN-15: messages are counted from one.
    #[test]
    fn an_error_names_the_message() {
        let prompt =
            r#"{"messages": [{"role": "user", "content": {"type": "text"}}, {"role": "user"}]}"#;
        let error = PromptAlternative::from_json(prompt).unwrap_err();
        assert_eq!(error, PromptError::Content(2));
    }
}
