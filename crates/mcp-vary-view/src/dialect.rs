//! Schema dialects of models that reject some keywords of JSON Schema.
//!
//! `docs/internals/dialects.md` names the sources of the lists and explains how each keyword is rewritten.

mod back;
mod gemini;
mod members;
mod reading;
pub(super) mod sentences;
mod strict;
mod value_schema;

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub(super) use back::ArgumentDecoder;

use mcp_vary::json::{Json, JsonError};

use super::word_list::word_list;

/// The dialect of JSON Schema that a family of models accepts for a tool's arguments.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Dialect {
    /// Gemini's function declarations: the subset of OpenAPI 3.0 that its `Schema` is.
    Gemini,
    /// OpenAI's strict function calling, with the rules of structured outputs.
    OpenaiStrict,
}

/// A schema in a dialect, and the decoder for its arguments.
#[derive(Clone, Debug)]
pub(super) struct RewrittenSchema {
    /// `None` if the schema is already in the dialect.
    pub(super) schema: Option<String>,
    pub(super) decoder: ArgumentDecoder,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 2] = [Self::Gemini, Self::OpenaiStrict];

    /// The name in a configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gemini => "gemini",
            Self::OpenaiStrict => "openai-strict",
        }
    }

    /// The keywords of this dialect; all others are removed.
    #[must_use]
    pub const fn keywords(self) -> &'static [&'static str] {
        match self {
            Self::Gemini => GEMINI,
            Self::OpenaiStrict => OPENAI_STRICT,
        }
    }

    /// The schema of a tool's arguments in this dialect, as compact JSON.
    ///
    /// # Properties
    ///
    /// - It has only keywords of [`Self::keywords`].
    /// - It accepts what the original accepts, as far as the dialect can express it; `docs/reference/dialects.md` lists what
    ///   it cannot. It may accept more: [`PreparedTool`](super::PreparedTool) checks arguments against the original.
    /// - Time and memory are proportional to the schema. A schema that grows too large is truncated and says so.
    ///
    /// # Errors
    ///
    /// When `schema` is not JSON, repeats a key, or nests too deep.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_view::Dialect;
    ///
    /// let schema = r#"{"type": "object", "required": ["q"], "properties": {
    ///     "q": {"type": "string", "minLength": 1},
    ///     "n": {"type": "integer", "exclusiveMinimum": 0, "default": 10}
    /// }}"#;
    /// // Every property is required, and `null` means that one is omitted.
    /// assert_eq!(
    ///     Dialect::OpenaiStrict.rewrite(schema)?,
    ///     r#"{"type":"object","properties":{"q":{"description":"Not empty.","type":"string"},"n":{"description":"Default: 10.","type":["integer","null"],"exclusiveMinimum":0}},"required":["q","n"],"additionalProperties":false}"#,
    /// );
    /// # Ok::<(), mcp_vary::json::JsonError>(())
    /// ```
    pub fn rewrite(self, schema: &str) -> Result<String, JsonError> {
        let rewritten = self.rewritten(schema)?;
        Ok(rewritten.schema.unwrap_or_else(|| schema.to_owned()))
    }

    pub(super) fn rewritten(self, schema: &str) -> Result<RewrittenSchema, JsonError> {
        let original = Json::parse(schema)?;
        let (rewritten, back) = match self {
            Self::Gemini => (gemini::schema(&original), ArgumentDecoder::default()),
            Self::OpenaiStrict => strict::schema(&original),
        };
        Ok(RewrittenSchema {
            schema: (!rewritten.is_same(&original)).then(|| rewritten.to_json()),
            decoder: back,
        })
    }

    /// The name of a tool or prompt in the form that the models accept: at most 64 letters, digits, `_` and `-`; for
    /// Gemini also `.` and `:`, and a letter or `_` first.
    ///
    /// # Properties
    ///
    /// Any other character becomes `_`. A name that is too long ends with a hash of the whole name, so that two
    /// names with the same beginning stay distinct.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_view::Dialect;
    ///
    /// assert_eq!(Dialect::OpenaiStrict.name("files/read.all"), "files_read_all");
    /// assert_eq!(Dialect::Gemini.name("3d.render"), "_3d.render");
    /// ```
    #[must_use]
    pub fn name(self, name: &str) -> Cow<'_, str> {
        let allowed = |c: char| {
            c.is_ascii_alphanumeric()
                || c == '_'
                || c == '-'
                || (self == Self::Gemini && ".:".contains(c))
        };
        let first = |c: char| self != Self::Gemini || c.is_ascii_alphabetic() || c == '_';
        let starts = name.chars().next().is_some_and(first);
        if starts && name.len() <= MAX_NAME && name.chars().all(allowed) {
            return Cow::Borrowed(name);
        }
        let mut other: String = if starts {
            String::new()
        } else {
            "_".to_owned()
        };
        other.extend(name.chars().map(|c| if allowed(c) { c } else { '_' }));
        if other.len() > MAX_NAME {
            other = hashed(&other, name);
        }
        Cow::Owned(other)
    }
}

/// The beginning of `text`, and a hash of `whole`.
fn hashed(text: &str, whole: &str) -> String {
    let mut start: String = text.chars().take(MAX_NAME - 9).collect();
    start.push('_');
    for byte in Sha256::digest(whole).iter().take(4) {
        // Writing to a string cannot fail.
        let _ = write!(start, "{byte:02x}");
    }
    start
}

/// Characters of a name, in both dialects.
const MAX_NAME: usize = 64;

/// The fields of `google.ai.generativelanguage.v1beta.Schema` that are used here.
const GEMINI: &[&str] = word_list!("dialect/gemini_keywords.txt");

/// The keywords that OpenAI's guide to structured outputs lists as supported.
const OPENAI_STRICT: &[&str] = word_list!("dialect/openai_strict_keywords.txt");
