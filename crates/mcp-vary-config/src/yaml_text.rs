//! Writes values as YAML.

use std::fmt::Write as _;

use mcp_vary::text::is_invisible;
use serde_json::Value;

/// A table with one `key`, as lines.
pub(super) fn entry(key: &str, value: &Value) -> String {
    let mut out = String::new();
    put(&mut out, 0, key, value);
    out
}

fn put(out: &mut String, indent: usize, key: &str, value: &Value) {
    let _ = write!(out, "{:indent$}{}:", "", scalar(key));
    match value {
        Value::Object(members) if !members.is_empty() => {
            out.push('\n');
            for (key, value) in members {
                put(out, indent + 2, key, value);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            out.push('\n');
            for item in items {
                let _ = writeln!(out, "{:indent$}  - {}", "", flow(item));
            }
        }
        value => {
            let _ = writeln!(out, " {}", flow(value));
        }
    }
}

/// The value on one line.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => {
            let texts: Vec<_> = items.iter().map(flow).collect();
            format!("[{}]", texts.join(", "))
        }
        Value::Object(members) => {
            let texts: Vec<_> = members
                .iter()
                .map(|(key, value)| format!("{}: {}", scalar(key), flow(value)))
                .collect();
            format!("{{{}}}", texts.join(", "))
        }
        other => other.to_string(),
    }
}

/// A text, in quotes unless it is unambiguous without. Texts without quotes are also valid inside brackets.
pub(super) fn scalar(text: &str) -> String {
    let letters = text.trim_start_matches('-');
    let begins = letters.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '_');
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '@' | '+' | '-');
    let plain = text.len() - letters.len() <= 2 && begins && letters.chars().all(is_plain);
    let lower = text.to_ascii_lowercase();
    if plain && !TAKEN.contains(&lower.as_str()) {
        return text.to_owned();
    }
    let quoted = Value::from(text).to_string();
    let mut out = String::with_capacity(quoted.len());
    for c in quoted.chars() {
        // This escape of YAML works for every character.
        if is_invisible(c) {
            let _ = write!(out, "\\U{:08x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Words that YAML, or a parser of older YAML, does not read as text.
const TAKEN: &[&str] = &["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_is_written_as_one_types_it() {
        let value = json!({
            "description": "Only: reads",
            "tools": ["git_*", {"server": "a", "name": "on"}],
            "hints": {},
            "priority": 3,
            "overrides": {"tools": {"odd": {"arguments": {"at": {"fixed": [1, null]}}}}},
        });
        assert_eq!(
            entry("reader", &value),
            "reader:\n  description: \"Only: reads\"\n  tools:\n    - \"git_*\"\n    - {server: a, name: \"on\"}\n  hints: {}\n  \
             priority: 3\n  overrides:\n    tools:\n      odd:\n        arguments:\n          at:\n            fixed: [1, null]\n"
        );
        assert_eq!(entry("off", &json!({})), "\"off\": {}\n");
    }
}
