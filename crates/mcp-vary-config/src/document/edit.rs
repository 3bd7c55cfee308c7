//! Edits the files in which clients configure their servers: one entry is added or taken out, every other byte stays.

mod json;
mod toml;
pub(crate) mod yaml;

use super::Lines;
use crate::diagnostic::Diagnostic;

/// A file of a client, as text.
///
/// # Properties
///
/// Comments, white space, the order of keys and line ends stay. What [`Self::insert`] adds, [`Self::remove`] takes out
/// again.
///
/// # Examples
///
/// ```
/// use mcp_vary_config::{ClientText, Syntax};
/// use serde_json::json;
///
/// let text = "{\n  // Mine.\n  \"mcpServers\": {\n    \"git\": {\"command\": \"uvx\"} // 1\n  }\n}\n";
/// let file = ClientText::new(Syntax::Json, text);
/// let entry = json!({"url": "http://127.0.0.1:8800/mcp"});
/// let added = file.insert(&["mcpServers"], "vary", &entry)?;
/// assert_eq!(
///     added,
///     "{\n  // Mine.\n  \"mcpServers\": {\n    \"git\": {\"command\": \"uvx\"}, // 1\n    \"vary\": {\n      \
///      \"url\": \"http://127.0.0.1:8800/mcp\"\n    }\n  }\n}\n"
/// );
/// let added = ClientText::new(Syntax::Json, &added);
/// assert_eq!(added.remove(&["mcpServers"], "vary")?.unwrap().text, text);
/// # Ok::<(), mcp_vary_config::Diagnostic>(())
/// ```
///
/// A container that is not a table is an error with its position:
///
/// ```
/// # use mcp_vary_config::{ClientText, Syntax};
/// # use serde_json::json;
/// let file = ClientText::new(Syntax::Json, "{\n \"mcpServers\": []}");
/// let error = file.insert(&["mcpServers"], "vary", &json!({})).unwrap_err();
/// assert_eq!(error.to_string(), "2:16: `mcpServers` is a list; servers are in an object: write `{}`");
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ClientText<'a> {
    syntax: Syntax,
    text: &'a str,
}

/// The syntax of a client's file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Syntax {
    /// JSON. Comments and trailing commas are accepted and stay.
    Json,
    /// TOML.
    Toml,
}

/// An entry that was taken out of a file.
#[derive(Clone, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Removed {
    /// The file without the entry.
    pub text: String,
    /// The entry as it was written, for [`ClientText::restore`].
    pub entry: String,
    /// In JSON, the comment that followed it in its last line, with the space before it.
    comment: String,
    /// The comments between it and what follows it.
    below: String,
}

// Omits the texts, which may contain secrets.
mcp_vary_base::debug_by_name!(Removed);

// Omits the text, which may contain secrets.
mcp_vary_base::debug_by_name!(ClientText<'_>);

impl<'a> ClientText<'a> {
    /// The file with the content `text`.
    #[must_use]
    pub const fn new(syntax: Syntax, text: &'a str) -> Self {
        Self { syntax, text }
    }

    /// The entries in the table at `path` with their names, in order; none if there is no such table.
    ///
    /// # Errors
    ///
    /// If the file has a syntax error, or a part of `path` is not a table. The error has the position.
    pub fn entries(&self, path: &[&str]) -> Result<Vec<(String, serde_json::Value)>, Diagnostic> {
        self.check_size()?;
        match self.syntax {
            Syntax::Json => json::entries(self.text, path),
            Syntax::Toml => toml::entries(self.text, path),
        }
    }

    /// The file with a new entry at the end of the table at `path`, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// As [`Self::entries`]; also if `name` exists already, and in TOML if the table is written inline.
    pub fn insert(
        &self,
        path: &[&str],
        name: &str,
        entry: &serde_json::Value,
    ) -> Result<String, Diagnostic> {
        self.check_size()?;
        match self.syntax {
            Syntax::Json => json::insert(self.text, path, name, &json::Entry::Value(entry), None),
            Syntax::Toml => toml::insert(self.text, path, name, entry),
        }
    }

    /// The file with an entry that was taken out before, as it was written: in front of the entry `next`, or last if that
    /// does not exist.
    ///
    /// # Errors
    ///
    /// As [`Self::insert`].
    pub fn restore(
        &self,
        path: &[&str],
        name: &str,
        removed: &Removed,
        next: Option<&str>,
    ) -> Result<String, Diagnostic> {
        self.check_size()?;
        match self.syntax {
            Syntax::Json => {
                json::insert(self.text, path, name, &json::Entry::Written(removed), next)
            }
            Syntax::Toml => toml::restore(self.text, path, name, removed, next),
        }
    }

    /// Takes the entry `name` out of the table at `path`; `None` if it does not exist.
    ///
    /// Comments above the entry stay; one that follows it in its last line goes with it.
    ///
    /// # Errors
    ///
    /// As [`Self::entries`]; also, in TOML, if the entry is written inline.
    pub fn remove(&self, path: &[&str], name: &str) -> Result<Option<Removed>, Diagnostic> {
        self.check_size()?;
        match self.syntax {
            Syntax::Json => json::remove(self.text, path, name),
            Syntax::Toml => toml::remove(self.text, path, name),
        }
    }

    fn check_size(&self) -> Result<(), Diagnostic> {
        if self.text.len() <= LONGEST {
            return Ok(());
        }
        let diagnostic = Diagnostic::new(
            crate::diagnostic::Position::START,
            "",
            "the file has more than 64 MiB",
        );
        Err(diagnostic.with_fix("edit it by hand"))
    }
}

/// `text` with the `edits` made: each replaces a range, and none overlaps another.
fn edited(text: &str, mut edits: Vec<(std::ops::Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (range, new) in edits {
        out.push_str(text.get(copied..range.start).unwrap_or_default());
        out.push_str(&new);
        copied = range.end;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    out
}

/// The line end that `text` uses.
pub(crate) fn line_end(text: &str) -> &'static str {
    match text.split_once('\n') {
        Some((first, _)) if first.ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// The start of the line of `at`, if there is only white space before it; otherwise `at`.
fn start_of_line(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    let blank = before.trim_end_matches([' ', '\t']);
    if blank.is_empty() || blank.ends_with('\n') {
        return blank.len();
    }
    at
}

/// Where an entry returns in front of the one at `next`: above the comments that were `below` it, if they are behind `from`.
fn place_above(text: &str, from: usize, next: usize, below: &str) -> usize {
    let comments = text.get(from..next).unwrap_or_default();
    let found = comments.find(below).filter(|_| !below.is_empty());
    found.map_or(next, |at| from + at)
}

fn not_a_table(text: &str, at: usize, path: &str, kind: &str) -> Diagnostic {
    let at = Lines::of(text).position(at);
    let what = if path.is_empty() {
        format!("is JSON, but the whole file is {kind}")
    } else {
        format!("is {kind}")
    };
    Diagnostic::new(at, path, what)
}

/// The maximum size of a file in bytes. Claude Code stores its history in the file of its servers.
const LONGEST: usize = 64 << 20;

#[cfg(test)]
mod tests;
