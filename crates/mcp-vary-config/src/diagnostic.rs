//! What is wrong with a configuration, and where.

use std::fmt;

/// A place in a file: line and column from 1, the column in characters.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub struct Position {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

impl Position {
    /// Where a file begins.
    pub const START: Self = Self { line: 1, column: 1 };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One thing that is wrong with a file.
///
/// # Properties
///
/// It shows keys and what was written as a setting; never a value of `env`, `headers` or `url`, nor what
/// a variable stood for.
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
    /// Where it stands.
    pub at: Position,
    /// The keys that lead there, `servers.git.args[0]`; empty where the file cannot be read.
    pub key: String,
    /// What is wrong, to be read after the key.
    pub what: String,
    /// What to write instead.
    pub fix: Option<String>,
}

impl Diagnostic {
    pub(super) fn new(at: Position, key: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            at,
            key: key.into(),
            what: what.into(),
            fix: None,
        }
    }

    /// Of tables and lists in each other.
    pub(super) fn too_deep(at: Position, deepest: usize) -> Self {
        let what = format!("is nested more than {deepest} deep");
        Self::new(at, "", what).with_fix("a configuration has six levels")
    }

    pub(super) fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.at)?;
        if !self.key.is_empty() {
            write!(f, "`{}` ", self.key)?;
        }
        f.write_str(&self.what)?;
        match &self.fix {
            Some(fix) => write!(f, "; {fix}"),
            None => Ok(()),
        }
    }
}

/// Everything that is wrong with a file, in its order; at least one thing.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// The file's name, as it was given.
    pub file: String,
    /// From the top of the file.
    pub all: Vec<Diagnostic>,
}

/// One mistake a line, each after `file:line:column`, as editors and terminals make links of.
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

/// The one of `known` that a person who wrote `written` may have meant.
///
/// `START_TIMEOUT` is `start-timeout`, and so is whatever is a letter or two away from it.
pub(super) fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    if written.len() > LONGEST_KEY {
        return None;
    }
    let wanted = plain(written);
    let allowed = (wanted.chars().count() / 3).min(2);
    let distances = known
        .iter()
        .map(|known| (strsim::osa_distance(&wanted, &plain(known)), *known));
    let (distance, known) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= allowed).then_some(known)
}

/// The key in lower case, without the characters that separate its words.
fn plain(key: &str) -> String {
    let kept = key.chars().filter(|c| !matches!(c, '-' | '_' | '.' | ' '));
    kept.flat_map(char::to_lowercase).collect()
}

/// No setting is longer, and the work grows with it.
const LONGEST_KEY: usize = 64;

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
    }

    #[test]
    fn what_is_far_from_everything_is_not_guessed() {
        means("x", None);
        means("", None);
        means("arguments", None);
        means(&"command".repeat(20), None);
    }
}
