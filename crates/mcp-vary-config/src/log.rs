//! `log`: the log on standard error.

use std::fmt;
use std::str::FromStr;

use super::schema_builder::{SchemaBuilder, any_case};
use crate::key_spec::ValueKind::Other;
use crate::key_spec::{KeySpec, choice, keys};

/// The levels of the log, the one with the fewest lines first; `off` writes nothing.
const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// The log on standard error.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct LogSettings {
    /// What is written; `None` if the file does not set it.
    pub level: Option<LogLevel>,
    /// The form of the lines; `None` if the file does not set it.
    pub format: Option<LogFormat>,
}

/// The form of the lines of the log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum LogFormat {
    /// Text, as a person reads it.
    #[default]
    Plain,
    /// A JSON object on each line.
    Json,
}

/// The level of the log, or several of them: `LEVEL`, or `TARGET=LEVEL` for a part of the program, with commas between.
///
/// # Examples
///
/// ```
/// use mcp_vary_config::LogLevel;
///
/// let level: LogLevel = "warn,mcp_vary_gateway::requests=info".parse()?;
/// assert_eq!(level.as_str(), "warn,mcp_vary_gateway::requests=info");
///
/// // Another word would be read as a part of the program, whose lines alone are written.
/// let error = "wran".parse::<LogLevel>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "`wran` is not a log level; write error, warn, info, debug, trace, off, or TARGET=LEVEL"
/// );
/// # Ok::<(), mcp_vary_config::LogLevelError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogLevel(String);

impl LogLevel {
    /// The level as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The level that writes `count` levels more than this one, `trace` at most. A level with targets counts as
    /// `otherwise`.
    pub fn raised(&self, count: u8, otherwise: &str) -> &'static str {
        let index = |level: &str| {
            let mut levels = LEVELS.iter();
            levels.position(|known| known.eq_ignore_ascii_case(level))
        };
        let level = index(&self.0).or_else(|| index(otherwise));
        // `off` is before the first one.
        let at = level.filter(|at| *at < OFF).map_or(0, |at| at + 1);
        let mut levels = LEVELS.iter().take(OFF);
        let raised = (at + usize::from(count)).checked_sub(1);
        raised.map_or("off", |raised| levels.nth(raised).unwrap_or(&"trace"))
    }
}

/// The index of `off`.
const OFF: usize = 5;

/// A word that is not a level of the log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogLevelError(String);

impl fmt::Display for LogLevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = &self.0;
        let levels = LEVELS.join(", ");
        write!(
            f,
            "`{word}` is not a log level; write {levels}, or TARGET=LEVEL"
        )
    }
}

impl std::error::Error for LogLevelError {}

impl FromStr for LogLevel {
    type Err = LogLevelError;

    fn from_str(text: &str) -> Result<Self, LogLevelError> {
        for part in text.split(',').map(str::trim) {
            let level = part.rsplit_once('=').map_or(part, |(_, level)| level);
            let is_level = LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level));
            if !is_level {
                return Err(LogLevelError(part.to_owned()));
            }
        }
        Ok(Self(text.to_owned()))
    }
}

const FORMATS: &[(&str, LogFormat)] = &[("plain", LogFormat::Plain), ("json", LogFormat::Json)];

/// The settings under `log`.
pub(super) const SETTINGS: &[KeySpec<LogSettings>] = keys![
    /// what is written: `error`, `warn`, `info`, `debug`, `trace` or `off`; for a part of the program TARGET=LEVEL,
    /// with commas between several. `--log`, `-v`, `-q` and `VARY_LOG` win
    "level" = "warn" => Other(level_shape, |reader, field, draft| draft.level = reader.value(field, str::parse)),
    /// the form of the lines. `plain`: text. `json`: an object on each line, with time, level, message and fields.
    /// `--log-format` wins
    "format" = "plain" => choice!(FORMATS, |draft| &mut draft.format),
];

fn level_shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let part = format!(r"\s*(?:[^,]*=)?(?:{})\s*", LEVELS.map(any_case).join("|"));
    schema.pattern(&format!("^{part}(?:,{part})*$"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn raises(level: &str, count: u8, expected: &str) {
        let level: LogLevel = level.parse().unwrap();
        assert_eq!(level.raised(count, "warn"), expected);
    }

    #[test]
    fn each_step_is_one_level_more() {
        raises("warn", 1, "info");
        raises("info", 2, "trace");
        raises("debug", 9, "trace");
        raises("off", 1, "error");
        raises("off", 2, "warn");
        raises("warn,a::b=trace", 1, "info");
    }
}
