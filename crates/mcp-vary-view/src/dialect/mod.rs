//! Schemas as models take them that refuse keywords of JSON Schema.
//!
//! `docs/dialects.md` says where the lists come from and what becomes of each keyword.

mod back;
mod gemini;
mod reading;
mod strict;
mod told;
pub(super) mod words;

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub(super) use back::WayBack;

use mcp_vary::json::{Json, JsonError};

/// What a family of models takes for the schema of a tool's arguments.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Dialect {
    /// Gemini's function declarations: the subset of OpenAPI 3.0 that its `Schema` is.
    Gemini,
    /// OpenAI's strict function calling, which is that of structured outputs.
    OpenaiStrict,
}

/// A schema in a dialect, and how arguments after it become the server's.
#[derive(Clone, Debug)]
pub(super) struct Rewritten {
    /// Nothing when the schema is in the dialect already.
    pub(super) schema: Option<String>,
    pub(super) back: WayBack,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Gemini, Self::OpenaiStrict];

    /// Its name in a configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gemini => "gemini",
            Self::OpenaiStrict => "openai-strict",
        }
    }

    /// The keywords that schemas in this dialect may have; every other one is taken out.
    #[must_use]
    pub const fn keywords(self) -> &'static [&'static str] {
        match self {
            Self::Gemini => &GEMINI,
            Self::OpenaiStrict => &OPENAI_STRICT,
        }
    }

    /// The schema of a tool's arguments in this dialect, as compact JSON.
    ///
    /// # Properties
    ///
    /// - It has no keyword that is not one of [`Self::keywords`].
    /// - What the original allows, it allows, where the dialect can say it; `docs/dialects.md` lists
    ///   what it cannot. It may allow more: [`PreparedTool`](super::PreparedTool) checks arguments
    ///   against the original.
    /// - Whatever the schema, it takes time and room in proportion to it, or is cut and says so.
    ///
    /// # Errors
    ///
    /// When `schema` is not JSON, repeats a key, or nests too deep.
    ///
    /// # Examples
    ///
    /// ```
    /// use crate::Dialect;
    ///
    /// let schema = r#"{"type": "object", "required": ["q"], "properties": {
    ///     "q": {"type": "string", "minLength": 1},
    ///     "n": {"type": "integer", "exclusiveMinimum": 0, "default": 10}
    /// }}"#;
    /// // Every property is required, and `null` says that one is left out.
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

    pub(super) fn rewritten(self, schema: &str) -> Result<Rewritten, JsonError> {
        let original = Json::parse(schema)?;
        let (rewritten, back) = match self {
            Self::Gemini => (gemini::schema(&original), WayBack::default()),
            Self::OpenaiStrict => strict::schema(&original),
        };
        Ok(Rewritten {
            schema: (!rewritten.is_same(&original)).then(|| rewritten.to_json()),
            back,
        })
    }

    /// The name of a tool or prompt as the models take it: at most 64 letters, digits, `_` and `-`; for
    /// Gemini also `.` and `:`, and a letter or `_` first.
    ///
    /// # Properties
    ///
    /// Any other character becomes `_`. What is too long ends in a hash of the whole, so that two names
    /// with one beginning stay two.
    ///
    /// # Examples
    ///
    /// ```
    /// use crate::Dialect;
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
        if starts && name.len() <= LONGEST_NAME && name.chars().all(allowed) {
            return Cow::Borrowed(name);
        }
        let mut other: String = if starts {
            String::new()
        } else {
            "_".to_owned()
        };
        other.extend(name.chars().map(|c| if allowed(c) { c } else { '_' }));
        if other.len() > LONGEST_NAME {
            other = hashed(&other, name);
        }
        Cow::Owned(other)
    }

    /// As [`Self::name`], for a name that would be another item's: with a hash of the original at its end.
    #[must_use]
    pub fn name_apart(self, name: &str) -> String {
        hashed(&self.name(name), name)
    }
}

/// The beginning of `text`, and a hash of `whole`.
fn hashed(text: &str, whole: &str) -> String {
    let mut start: String = text.chars().take(LONGEST_NAME - 9).collect();
    start.push('_');
    for byte in Sha256::digest(whole).iter().take(4) {
        // Writing to a string cannot fail.
        let _ = write!(start, "{byte:02x}");
    }
    start
}

/// In characters, for both.
const LONGEST_NAME: usize = 64;

/// Those fields of `google.ai.generativelanguage.v1beta.Schema` that are of use here.
const GEMINI: [&str; 20] = [
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "nullable",
    "pattern",
    "properties",
    "propertyOrdering",
    "required",
    "title",
    "type",
];

/// What OpenAI's guide to structured outputs names as supported.
const OPENAI_STRICT: [&str; 20] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];
