//! Lines on standard error as JSON objects.

use serde_json::{Map, Value};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};

use super::sanitize_json;

/// One line of the log, without a line end: an object with `timestamp`, `level`, `message` and `fields`.
///
/// Invisible characters are escaped, so that no peer can drive the terminal of a reader.
pub(crate) fn json_line(level: &str, message: &str, fields: Map<String, Value>) -> String {
    let mut timestamp = String::new();
    // Writing to a text does not fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
    let mut line = Map::new();
    line.insert("timestamp".to_owned(), timestamp.into());
    line.insert("level".to_owned(), level.into());
    line.insert("message".to_owned(), message.into());
    for (name, value) in fields {
        line.entry(name).or_insert(value);
    }
    sanitize_json(&Value::Object(line).to_string())
}

/// A notice as lines of the log: each of its lines is one, with the level that its first word names.
pub(crate) fn json_notice(text: &str) -> String {
    let texts = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines = texts.map(|line| {
        let (level, message) = LEVELS
            .iter()
            .find_map(|(prefix, level)| Some((*level, line.strip_prefix(prefix)?)))
            .unwrap_or(("INFO", line));
        json_line(level, message, Map::new())
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// How notices begin, by their level.
const LEVELS: [(&str, &str); 2] = [("error: ", "ERROR"), ("warning: ", "WARN")];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read(line: &str) -> Value {
        assert!(!line.contains('\n'), "{line}");
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn a_line_is_one_object_whatever_its_text_is() {
        let fields = [("tool", "a\u{9b}b"), ("level", "mine")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.into()));
        let line = json_line("INFO", "two\nlines\u{1b}[2J", fields.into_iter().collect());
        assert!(!line.chars().any(mcp_vary::text::is_invisible), "{line:?}");
        let read = read(&line);
        assert_eq!(read["message"], "two\nlines\u{1b}[2J");
        assert_eq!(read["tool"], "a\u{9b}b");
        assert_eq!(read["level"], "INFO");
        let timestamp = read["timestamp"].as_str().unwrap();
        assert!(
            timestamp.starts_with("20") && timestamp.ends_with('Z'),
            "{timestamp}"
        );
    }

    #[test]
    fn each_line_of_a_notice_has_the_level_that_it_names() {
        let text = "\nin front of x\n  x  up\nwarning: y: z\nerror: w\n";
        let lines = json_notice(text);
        let lines: Vec<_> = lines.lines().map(read).collect();
        let found = lines.iter().map(|line| (&line["level"], &line["message"]));
        let expected = [
            ("INFO", "in front of x"),
            ("INFO", "x  up"),
            ("WARN", "y: z"),
            ("ERROR", "w"),
        ];
        let expected = expected.map(|(level, message)| (level.into(), message.into()));
        let expected: Vec<(&Value, &Value)> = expected.iter().map(|(a, b)| (a, b)).collect();
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
