//! What Vary wrote to a client's file, so that it can be taken out again.

use std::path::PathBuf;

use mcp_vary_config::{ClientText, Diagnostic, Syntax};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::file::ClientFile;
use crate::failure::Failure;

/// What Vary wrote to one file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Record {
    /// The digest of the file as Vary wrote it.
    pub(crate) digest: String,
    /// Whether Vary created the file.
    pub(crate) is_created: bool,
    pub(crate) entries: Vec<Written>,
    /// The other file of the client from which servers were taken out.
    pub(crate) other: Option<PathBuf>,
}

/// One entry that Vary wrote.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Written {
    pub(crate) name: String,
    /// `None` if servers were only taken out: the entry is in another file of the client, or under other keys.
    pub(crate) entry: Option<Value>,
    /// The keys that lead to the entry.
    pub(crate) container: Vec<String>,
    /// The servers that were taken out; the backup has them.
    pub(crate) moved: Vec<String>,
}

/// A file without what Vary wrote.
pub(crate) struct Undone {
    /// `None` if the file did not exist before.
    pub(crate) text: Option<String>,
    /// What could not be undone.
    pub(crate) notes: Vec<String>,
}

impl Record {
    /// Reads the record beside `file`, if there is one.
    pub(crate) fn read(file: &ClientFile) -> Result<Option<Self>, Failure> {
        let path = file.record();
        let unusable = |why: &str| {
            Failure::command(format!(
                "{} {why}; without it Vary does not know what it wrote: restore {} by hand, and remove both",
                path.display(),
                file.backup().display()
            ))
        };
        let Some(text) = ClientFile::read(path.clone())?.text else {
            return Ok(None);
        };
        let value: Value = serde_json::from_str(&text).map_err(|_| unusable("is not JSON"))?;
        Self::from_json(&value)
            .map(Some)
            .ok_or_else(|| unusable("is not a record of Vary"))
    }

    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let texts = |value: &Value| -> Option<Vec<String>> {
            let items = value.as_array()?.iter();
            items.map(|item| item.as_str().map(str::to_owned)).collect()
        };
        let entries = value.get("entries")?.as_array()?.iter().map(|entry| {
            Some(Written {
                name: entry.get("name")?.as_str()?.to_owned(),
                entry: Some(entry.get("entry")?.clone()).filter(|entry| !entry.is_null()),
                container: texts(entry.get("container")?)?,
                moved: texts(entry.get("moved")?)?,
            })
        });
        Some(Self {
            other: value
                .get("other")
                .and_then(Value::as_str)
                .map(PathBuf::from),
            digest: value.get("sha256")?.as_str()?.to_owned(),
            is_created: value.get("created")?.as_bool()?,
            entries: entries.collect::<Option<_>>()?,
        })
    }

    pub(crate) fn to_json(&self) -> String {
        let entries = self.entries.iter().map(|written| {
            json!({
                "name": written.name,
                "entry": written.entry,
                "container": written.container,
                "moved": written.moved,
            })
        });
        let mut out = Map::new();
        out.insert(
            "about".to_owned(),
            Value::from("written by `vary connect`, which reads it for --remove"),
        );
        out.insert("sha256".to_owned(), Value::from(self.digest.as_str()));
        out.insert("created".to_owned(), Value::from(self.is_created));
        out.insert("entries".to_owned(), entries.collect());
        if let Some(other) = &self.other {
            out.insert("other".to_owned(), Value::from(other.display().to_string()));
        }
        format!("{:#}\n", Value::Object(out))
    }

    /// `current` without what Vary wrote. If nothing else changed, that is the backup, byte for byte.
    pub(crate) fn undo(
        &self,
        syntax: Syntax,
        current: &str,
        backup: Option<&str>,
    ) -> Result<Undone, Diagnostic> {
        // Without its backup, the file has more than nothing.
        if digest(current) == self.digest && (self.is_created || backup.is_some()) {
            let text = backup.filter(|_| !self.is_created).map(str::to_owned);
            return Ok(Undone {
                text,
                notes: Vec::new(),
            });
        }
        let mut text = current.to_owned();
        let mut notes = Vec::new();
        for written in &self.entries {
            let container: Vec<&str> = written.container.iter().map(String::as_str).collect();
            let name = &written.name;
            let entries = ClientText::new(syntax, &text).entries(&container)?;
            let now = entries.iter().find(|(key, _)| key == name);
            let mut is_ours = false;
            match (&written.entry, now) {
                (None, _) => {}
                (Some(entry), Some((_, value))) if connects_to_same(value, entry) => {
                    is_ours = true;
                }
                (Some(_), Some(_)) => notes.push(format!(
                    "`{name}` was changed since, and stays; take it out by hand"
                )),
                (Some(_), None) => notes.push(format!("`{name}` is gone already")),
            }
            // Its place is that of the servers.
            text = restored(syntax, text, backup, written, &mut notes)?;
            if is_ours
                && let Some(removed) = ClientText::new(syntax, &text).remove(&container, name)?
            {
                text = removed.text;
            }
        }
        Ok(Undone {
            text: Some(text),
            notes,
        })
    }
}

/// Whether `value` and `entry` connect a client to the same endpoint, in any variant, whatever else its user set.
pub(crate) fn connects_to_same(value: &Value, entry: &Value) -> bool {
    let mut keys = ["url", "httpUrl", "serverUrl", "command", "args"].iter();
    keys.all(|key| value.get(key).map(without_variant) == entry.get(key).map(without_variant))
}

/// `value` as JSON, without the variant in a URL.
fn without_variant(value: &Value) -> String {
    let text = value.to_string();
    let Some((before, after)) = text.split_once("/mcp/v/") else {
        return text;
    };
    let end = after.find(['"', '?']).map_or("", |at| &after[at..]);
    format!("{before}/mcp{end}")
}

/// `text` with the servers that were moved out, each where it was.
fn restored(
    syntax: Syntax,
    mut text: String,
    backup: Option<&str>,
    written: &Written,
    notes: &mut Vec<String>,
) -> Result<String, Diagnostic> {
    let container: Vec<&str> = written.container.iter().map(String::as_str).collect();
    let names = |text: &str| -> Result<Vec<String>, Diagnostic> {
        let entries = ClientText::new(syntax, text).entries(&container)?;
        Ok(entries.into_iter().map(|(name, _)| name).collect())
    };
    let backup = backup.unwrap_or_default();
    let order = names(backup)?;
    let mut moved: Vec<&String> = written.moved.iter().collect();
    moved.sort_by_key(|name| order.iter().position(|other| other == *name));
    for name in moved {
        let present = names(&text)?;
        if present.contains(name) {
            notes.push(format!("`{name}` is there already"));
            continue;
        }
        match ClientText::new(syntax, backup).remove(&container, name)? {
            Some(removed) => {
                let next = next_server(name, &order, &present, written);
                let file = ClientText::new(syntax, &text);
                text = file.restore(&container, name, &removed, next)?;
            }
            None => notes.push(format!(
                "`{name}` is not in the backup, and was not put back"
            )),
        }
    }
    Ok(text)
}

/// The server of those `present` in front of which `name` returns: where Vary is, but behind the nearest one that was before
/// it in the old `order`, and in front of the nearest one that was after it. `None` for the end.
fn next_server<'a>(
    name: &str,
    order: &[String],
    present: &'a [String],
    written: &Written,
) -> Option<&'a str> {
    let index = |name: &String| present.iter().position(|other| other == name);
    let mut sides = order.split(|other| other == name);
    let before = sides.next().unwrap_or_default();
    let after = sides.next().unwrap_or_default();
    let vary = written.entry.as_ref().and_then(|_| index(&written.name));
    let first = before.iter().rev().find_map(index).map_or(0, |at| at + 1);
    let last = after.iter().find_map(index).unwrap_or(present.len());
    let at = vary.unwrap_or(present.len()).max(first).min(last);
    present.get(at).map(String::as_str)
}

/// The SHA-256 digest of `text`, in hexadecimal digits.
pub(crate) fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::connect::client::ClientName;
    use crate::commands::connect::write;
    use clap::ValueEnum as _;

    /// The file `before` of `client` with `new` in place of `old`, after Vary replaced `git` and `files`, had its own entry
    /// edited by the user, and was taken out.
    fn given_back(client: &str, before: &str, old: &str, new: &str) -> String {
        let client = ClientName::from_str(client, false).unwrap().client();
        let written = Written {
            name: "vary".to_owned(),
            entry: Some(json!({"url": "u"})),
            container: client.container_in(before).unwrap(),
            moved: vec!["files".to_owned(), "git".to_owned()],
        };
        let after = write::applied(client, before, std::slice::from_ref(&written)).unwrap();
        assert!(after.contains(old), "{after}");
        let edited = match client.syntax {
            Syntax::Toml => after.replace("url = \"u\"\n", "url = \"u\"\nenabled = true\n"),
            _ => after.replace("\"u\"", "\"u\", \"timeout\": 5"),
        };
        assert_ne!(edited, after);
        let record = Record {
            entries: vec![written],
            ..Record::default()
        };
        let current = edited.replacen(old, new, 1);
        let undone = record.undo(client.syntax, &current, Some(before)).unwrap();
        assert_eq!(undone.notes, Vec::<String>::new());
        undone.text.unwrap()
    }

    #[test]
    fn servers_return_to_their_places_when_the_entry_of_vary_was_edited() {
        for (client, before, place) in [
            ("cursor", LINES, "    // about files"),
            ("cursor", LINE, "\"dead\": {}, "),
            ("codex", SECTIONS, "# about files"),
        ] {
            assert_eq!(given_back(client, before, place, place), before);
        }
    }

    #[test]
    fn a_server_that_others_added_stays_behind_its_neighbour() {
        for (client, before, old, new) in [
            (
                "cursor",
                LINES,
                "    // about files",
                "    \"theirs\": {}, // new\n    // about files",
            ),
            (
                "cursor",
                LINE,
                "\"dead\": {}, ",
                "\"dead\": {}, \"theirs\": {}, ",
            ),
            (
                "codex",
                SECTIONS,
                "# about files",
                "[mcp_servers.theirs]\ncommand = 't'\n\n# about files",
            ),
        ] {
            let expected = before.replacen(old, new, 1);
            assert_eq!(given_back(client, before, old, new), expected);
        }
    }

    #[test]
    fn a_file_whose_backup_is_gone_stays_without_vary() {
        let current = r#"{"theme": "dark", "mcpServers": {"vary": {"url": "u"}}}"#;
        let record = Record {
            digest: digest(current),
            entries: vec![Written {
                name: "vary".to_owned(),
                entry: Some(json!({"url": "u"})),
                container: vec!["mcpServers".to_owned()],
                moved: vec!["git".to_owned()],
            }],
            ..Record::default()
        };
        let undone = record.undo(Syntax::Json, current, None).unwrap();
        let expected = r#"{"theme": "dark", "mcpServers": {}}"#;
        assert_eq!(undone.text.as_deref(), Some(expected));
        let note = "`git` is not in the backup, and was not put back";
        assert_eq!(undone.notes, [note]);
    }

    const LINES: &str = r#"{
  "mcpServers": {
    // about git
    "git": {"command": "git"}, // fast
    "dead": {"command": "x"},
    // about files
    "files": {
      "command": "files"
    } // all
  }
}
"#;
    const LINE: &str =
        r#"{"mcpServers": {"git": {"command": "g"}, "dead": {}, "files": {}}, "x": 1.10}"#;
    const SECTIONS: &str = "[mcp_servers.git] # fast\ncommand = 'git'\n\n[mcp_servers.git.env]\nA = '1'\n\n\
                            [mcp_servers.dead]\ncommand = 'x'\n\n# about files\n[mcp_servers.files]\ncommand = 'f'\n";
}
