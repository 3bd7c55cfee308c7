//! What `vary up` would write, line by line and without secrets.

use mcp_vary_upstream::secret::{holds_secret, is_secret, secret_arguments};
use serde_json::Value;
use similar::udiff::unified_diff;
use similar::{Algorithm, DiffTag, capture_diff_slices};

/// Values that are not shown.
#[derive(Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// Adds the secrets in `value`, which has this `name`. In `env` and `headers`, that is every value.
    pub(super) fn add(&mut self, name: &str, value: &Value) {
        match value {
            Value::Object(members) => {
                let is_secret_place = PLACES.contains(&name);
                for (key, member) in members {
                    match member {
                        Value::String(text) if is_secret_place => self.add_text(text),
                        _ => self.add(key, member),
                    }
                }
            }
            Value::Array(items) => {
                items.iter().for_each(|item| self.add(name, item));
                for secret in secret_arguments(items.iter().filter_map(Value::as_str)) {
                    self.add_text(&secret);
                }
            }
            Value::String(text) if is_secret(name, text) || holds_secret(text) => {
                self.add_text(text);
            }
            _ => {}
        }
    }

    /// Adds a secret as it is, and as JSON, YAML and TOML write it.
    pub(super) fn add_text(&mut self, text: &str) {
        if text.len() < SHORTEST || text.starts_with("${") && text.ends_with('}') {
            return;
        }
        let escaped = Value::from(text).to_string();
        self.0.push(escaped.trim_matches('"').to_owned());
        self.0.push(text.to_owned());
        // One may be a part of another.
        self.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    fn masked(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for secret in &self.0 {
            out = out.replace(secret, MASK);
        }
        // Others are in what was not read as a server, or are written with escapes.
        let lines = out.lines().map(|line| {
            let is_secret = line.contains("\\u") || line.contains("\\U") || holds_secret(line);
            format!("{}\n", if is_secret { MASK } else { line })
        });
        lines.collect()
    }

    /// The lines that change from `before` to `after`, without secrets.
    pub(super) fn diff(&self, name: &str, before: Option<&str>, after: &str) -> String {
        let [old, new] = [before.unwrap_or_default(), after].map(|text| self.masked(text));
        let state = before.map_or(" (new)", |_| "");
        let changes = unified_diff(Algorithm::Myers, &old, &new, 0, None);
        format!("--- {name}{state}\n+++ {name}\n{changes}")
    }
}

/// `text` as [`merged`] compares it, without what it says: a digest for each line, except for those that begin with one of
/// `shown`.
pub(super) fn digests(text: &str, shown: &[&str]) -> String {
    let compared = |line: &str| {
        if shown.iter().any(|start| line.starts_with(start)) {
            return line.to_owned();
        }
        format!("{}\n", digest(line))
    };
    text.split_inclusive('\n').map(compared).collect()
}

/// The digest of a line with its end, which may be one already.
pub(super) fn digest(line: &str) -> String {
    if line.starts_with(DIGEST) {
        return line.trim_end().to_owned();
    }
    mcp_vary_config::digest(line)
}

/// `current` with what changes from `old`, which may be [`digests`], to `new`; `None` if `current` was changed in the same
/// lines.
pub(super) fn merged(old: &str, new: &str, current: &str) -> Option<String> {
    let [old_digests, new_digests, mut digests] =
        [old, new, current].map(|text| text.split_inclusive('\n').map(digest).collect::<Vec<_>>());
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let mut lines: Vec<&str> = current.split_inclusive('\n').collect();
    for change in capture_diff_slices(Algorithm::Myers, &old_digests, &new_digests)
        .iter()
        .rev()
    {
        if change.tag() == DiffTag::Equal {
            continue;
        }
        let range = change.old_range();
        let known = old_digests.get(range.clone())?;
        let is_here = |at: &usize| {
            let tail = digests.get(*at..);
            tail.is_some_and(|tail| tail.starts_with(known))
        };
        let mut places: Vec<usize> = (0..=digests.len()).filter(is_here).collect();
        // As many lines above it as are needed to find the place.
        let mut above = old_digests.get(..range.start)?.iter().rev().zip(1..);
        while places.len() > 1 {
            let (line, distance) = above.next()?;
            places.retain(|place| {
                let at = place.checked_sub(distance);
                at.and_then(|at| digests.get(at)) == Some(line)
            });
        }
        let place = places.pop()?;
        let replaced = place..place + range.len();
        let with = change.new_range();
        digests.splice(
            replaced.clone(),
            new_digests.get(with.clone())?.iter().cloned(),
        );
        lines.splice(replaced, new_lines.get(with)?.iter().copied());
    }
    Some(lines.concat())
}

/// How a digest begins.
pub(super) const DIGEST: &str = "sha256:";
/// The keys whose values are secret, as clients call them.
const PLACES: [&str; 4] = ["env", "environment", "headers", "http_headers"];
/// What is shown in place of a secret.
const MASK: &str = "••••";
/// Shorter values are numbers and modes.
const SHORTEST: usize = 4;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_masked_as_they_are_written() {
        let mut secrets = Secrets::default();
        let entry = json!({
            "command": "x", "args": ["--token", "abcdefghij", "-p", "plain-pw", "--mode", "fast"],
            "env": {"KEY": "a\"b\\c", "MODE": "${MODE}", "N": "1"},
            "headers": {"Authorization": "Bearer abcdefgh"},
            "url": "https://h/mcp?api_key=0123456789"
        });
        secrets.add("git", &entry);
        let before = format!("{entry:#}\n");
        let diff = secrets.diff("f", Some(&before), "{\"x\": \"\\u0061\"}\n");
        for secret in [
            "abcdefghij",
            "plain-pw",
            "a\\\"b",
            "abcdefgh",
            "0123456789",
            "u0061",
        ] {
            assert!(!diff.contains(secret), "{secret}: {diff}");
        }
        for shown in [
            "--- f\n+++ f\n@@ -1,",
            "\"KEY\": \"••••\"",
            "${MODE}",
            "\"fast\"",
            "\"N\": \"1\"",
        ] {
            assert!(diff.contains(shown), "{shown}: {diff}");
        }
    }

    #[test]
    fn what_a_user_changed_stays_when_servers_are_added() {
        let old = "servers:\n  a:\n    command: x\nvariants:\n  c:\n    tools: [a]\n";
        let new = "servers:\n  a:\n    command: x\n  b:\n    command: x\nvariants:\n  c:\n    tools: [a, b]\n";
        let current = "naming: always\n".to_owned() + &old.replace("  c:", "  # mine\n  c:");
        let expected = "naming: always\n".to_owned() + &new.replace("  c:", "  # mine\n  c:");
        assert_eq!(merged(old, new, &current).as_ref(), Some(&expected));
        let stored = digests(&format!("listen: x\n{old}"), &["listen: "]);
        assert!(stored.starts_with("listen: x\nsha256:") && !stored.contains("command"));
        assert_eq!(digests(&stored, &["listen: "]), stored);
        assert_eq!(
            merged(&digests(old, &["listen: "]), new, &current),
            Some(expected)
        );
        assert_eq!(merged(old, new, old).as_deref(), Some(new));
        assert_eq!(merged(old, new, old.trim_end()), None);
        assert_eq!(merged(old, new, &old.replace("[a]", "[a, q]")), None);
        assert_eq!(merged(old, old, "anything"), Some("anything".to_owned()));
    }
}
