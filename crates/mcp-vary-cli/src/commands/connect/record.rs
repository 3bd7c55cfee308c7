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
        if digest(current) == self.digest {
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
            match (&written.entry, now) {
                (None, _) => {}
                (Some(entry), Some((_, value))) if connects_to_same(value, entry) => {
                    if let Some(removed) =
                        ClientText::new(syntax, &text).remove(&container, name)?
                    {
                        text = removed.text;
                    }
                }
                (Some(_), Some(_)) => notes.push(format!(
                    "`{name}` was changed since, and stays; take it out by hand"
                )),
                (Some(_), None) => notes.push(format!("`{name}` is gone already")),
            }
            text = restored(syntax, text, backup, written, &mut notes)?;
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

/// `text` with the servers that were moved out.
fn restored(
    syntax: Syntax,
    mut text: String,
    backup: Option<&str>,
    written: &Written,
    notes: &mut Vec<String>,
) -> Result<String, Diagnostic> {
    let container: Vec<&str> = written.container.iter().map(String::as_str).collect();
    for name in &written.moved {
        let backup = ClientText::new(syntax, backup.unwrap_or_default());
        let entries = ClientText::new(syntax, &text).entries(&container)?;
        if entries.iter().any(|(key, _)| key == name) {
            notes.push(format!("`{name}` is there already"));
            continue;
        }
        match backup.remove(&container, name)? {
            Some(removed) => {
                text = ClientText::new(syntax, &text).restore(&container, name, &removed.entry)?;
            }
            None => notes.push(format!(
                "`{name}` is not in the backup, and was not put back"
            )),
        }
    }
    Ok(text)
}

/// The SHA-256 digest of `text`, in hexadecimal digits.
pub(crate) fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
