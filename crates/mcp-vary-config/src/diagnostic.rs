//! Errors in a configuration, with their positions.

use std::fmt;

use mcp_vary::text::sanitize_line;

/// A position in a file.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub struct Position {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted in characters from 1.
    pub column: usize,
}

impl Position {
    /// The start of a file.
    pub const START: Self = Self { line: 1, column: 1 };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One error in a file, or a note about it.
///
/// # Properties
///
/// It contains keys and the written values of settings, but never a value of `env`, `headers` or `url`, or the value of
/// a variable.
///
/// # Examples
///
/// ```
/// use mcp_vary_config::Source;
///
/// let text = "servers:\n  git: {comand: uvx, timeout: soon}\n";
/// let mistakes = Source::new("vary.yaml", text).read(&|_| None).unwrap_err();
/// assert_eq!(
///     mistakes.to_string(),
///     "vary.yaml:2:9: `servers.git.comand` is not a known key; did you mean `command`?\n\
///      vary.yaml:2:31: `servers.git.timeout` is not a duration; write it like `30s`, `500ms` or `2m`, or as a number \
///      of seconds"
/// );
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The position of the error.
    pub at: Position,
    /// The path of the setting, `servers.git.args[0]` for example. Empty if the file cannot be parsed.
    pub key: String,
    /// The message, to be read after the key.
    pub what: String,
    /// The fix, if there is one.
    pub fix: Option<String>,
    /// The variable that the environment does not have, if that is the error.
    pub missing_variable: Option<Box<str>>,
    /// The key that was probably meant, if that is the fix.
    pub(super) meant: Option<Box<str>>,
}

impl Diagnostic {
    pub(super) fn new(at: Position, key: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            at,
            key: key.into(),
            what: what.into(),
            fix: None,
            missing_variable: None,
            meant: None,
        }
    }

    /// Tables or lists are nested too deep.
    pub(super) fn too_deep(at: Position, deepest: usize) -> Self {
        let what = format!("is nested more than {deepest} deep");
        Self::new(at, "", what).with_fix("a configuration has six levels")
    }

    /// What is wrong and the fix in one line, for a text without positions.
    pub fn without_position(&self) -> String {
        let key = match &*self.key {
            "" => String::new(),
            key => format!("`{key}` "),
        };
        let fix = self.fix.iter().map(|fix| format!("; {fix}"));
        sanitize_line(&format!("{key}{}{}", self.what, fix.collect::<String>()))
    }

    pub(super) fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.without_position())
    }
}

/// All errors in a file, in the order of the file. There is at least one.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// The name of the file, as given.
    pub file: String,
    /// The errors, from the top of the file.
    pub all: Vec<Diagnostic>,
}

/// One error per line, each prefixed with `file:line:column`, which editors and terminals turn into links.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.all.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{}:{diagnostic}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// The name in `known` that was probably meant by `written`.
///
/// `START_TIMEOUT` matches `start-timeout`, and so does any name that differs in one or two letters. Else a name matches
/// that has the same beginning: `description_mode` matches `descriptions`.
pub(super) fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    if written.len() > LONGEST_KEY {
        return None;
    }
    let wanted = plain(written);
    let allowed = (wanted.chars().count() / 3).min(2);
    let distances = known
        .iter()
        .map(|known| (strsim::osa_distance(&wanted, &plain(known)), *known));
    let (distance, similar) = distances.min_by_key(|(distance, _)| *distance)?;
    if distance <= allowed {
        return Some(similar);
    }
    let begins_alike = |known: &&&str| {
        let normal = plain(known);
        let common = normal.strip_suffix('s').unwrap_or(&normal);
        common.len() >= SHORTEST_BEGINNING && wanted.starts_with(common)
    };
    known
        .iter()
        .filter(begins_alike)
        .max_by_key(|known| known.len())
        .copied()
}

/// The key in lower case, without separators.
fn plain(key: &str) -> String {
    let letters = key.chars().filter(|c| !matches!(c, '-' | '_' | '.' | ' '));
    letters.flat_map(char::to_lowercase).collect()
}

/// Longer keys are not compared: no setting is longer, and the cost grows with the length.
const LONGEST_KEY: usize = 64;
/// The fewest letters at the beginning of a name that suggest it.
const SHORTEST_BEGINNING: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn means(written: &str, expected: Option<&str>) {
        let known = ["env", "url", "command", "start-timeout", "timeout", "cwd"];
        assert_eq!(nearest(written, &known), expected, "{written}");
    }

    #[test]
    fn a_slip_is_understood() {
        means("comand", Some("command"));
        means("cmomand", Some("command"));
        means("startTimeout", Some("start-timeout"));
        means("START_TIMEOUT", Some("start-timeout"));
        means("timeout_", Some("timeout"));
        means("evn", Some("env"));
        means("command_line", Some("command"));
    }

    #[test]
    fn what_is_far_from_everything_is_not_guessed() {
        means("x", None);
        means("", None);
        means("arguments", None);
        means(&"command".repeat(20), None);
    }
}
