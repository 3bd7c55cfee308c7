//! The files in which other programs keep their servers, as one configuration of Vary.
//!
//! What has no equivalent is named in a note; nothing is left out silently. No note shows a value.

mod entry;
mod foreign_keys;
mod format;
mod print;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use self::entry::Server;
pub use self::format::{Format, UnknownFormat};
use super::reader::Located;
use super::server::{NO_OTHER_CHARACTERS, plain_name};
use crate::diagnostic::{Diagnostic, Diagnostics};

/// The text of another program's file.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ImportSource<'a> {
    name: &'a str,
    text: &'a str,
    format: Option<Format>,
}

impl<'a> ImportSource<'a> {
    /// The file `name` with its text, of the format that it looks like.
    #[must_use]
    pub const fn new(name: &'a str, text: &'a str) -> Self {
        let format = None;
        Self { name, text, format }
    }

    /// The same, read as this format.
    #[must_use]
    pub const fn with_format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }
}

/// Without the text, which may hold secrets.
impl fmt::Debug for ImportSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("ImportSource");
        out.field("name", &self.name).field("format", &self.format);
        out.finish_non_exhaustive()
    }
}

/// What came of the files.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Imported {
    /// A configuration of Vary. Secrets stand in it as they stood in the files.
    pub yaml: String,
    /// What was left out or changed, by file and place.
    pub notes: Vec<Note>,
}

/// Something that a person should know of an imported file.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Note {
    /// The file's name, as it was given.
    pub file: String,
    /// What it is, where, and what to do. It shows no value.
    pub note: Diagnostic,
}

/// As editors and terminals make links of.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.note)
    }
}

/// Makes one configuration of the servers of all `files`, in their order.
///
/// # Errors
///
/// When a file cannot be read, or no server is in it: everything that is wrong with the first such file.
///
/// # Examples
///
/// ```
/// use mcp_vary_config::{ImportSource, import};
///
/// let codex = "[mcp_servers.docs]\nurl = 'https://example.com/mcp'\nbearer_token_env_var = 'DOCS'\n";
/// let imported = import(&[ImportSource::new("config.toml", codex)])?;
/// assert!(imported.yaml.ends_with(
///     "servers:\n  docs:\n    url: \"https://example.com/mcp\"\n    headers:\n      Authorization: \"Bearer ${DOCS}\"\n"
/// ));
/// assert!(imported.notes.is_empty());
/// # Ok::<(), mcp_vary_config::Diagnostics>(())
/// ```
pub fn import(files: &[ImportSource<'_>]) -> Result<Imported, Diagnostics> {
    let mut all = All::default();
    for file in files {
        let mut found = Found::default();
        let read = format::read(file, &mut found);
        let note = |note| Note {
            file: file.name.to_owned(),
            note,
        };
        let mut notes = found.notes;
        if let Err(mut diagnostics) = read {
            diagnostics.sort_by_key(|diagnostic| diagnostic.at);
            return Err(Diagnostics {
                file: file.name.to_owned(),
                all: diagnostics,
            });
        }
        for server in found.servers {
            all.add(file.name, server, &mut notes);
        }
        notes.sort_by_key(|note| note.at);
        all.notes.extend(notes.into_iter().map(note));
        for (name, about) in found.variables {
            all.variables.entry(name).or_insert(about);
        }
    }
    let names: Vec<&str> = files.iter().map(|file| file.name).collect();
    let yaml = print::configuration(&names, &all.servers, &all.variables);
    let notes = all.notes;
    Ok(Imported { yaml, notes })
}

/// What a file says of servers.
#[derive(Default)]
struct Found {
    servers: Vec<Server>,
    /// The variables of the environment that the configuration needs, and what they are.
    variables: BTreeMap<String, String>,
    notes: Vec<Diagnostic>,
}

impl Found {
    fn note(&mut self, field: &Located<'_>, what: impl Into<String>, fix: impl Into<String>) {
        let note = Diagnostic::new(field.node.at, field.path.as_str(), what);
        self.notes.push(note.with_fix(fix));
    }

    /// Says that a variable is needed.
    fn needs(&mut self, name: &str, about: &str) {
        if ALWAYS_THERE.contains(&name) {
            return;
        }
        let known = self.variables.entry(name.to_owned()).or_default();
        if known.is_empty() {
            about.clone_into(known);
        }
    }
}

/// What all files say.
#[derive(Default)]
struct All {
    servers: Vec<Server>,
    /// Of each name, the file that has it.
    taken: BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
    notes: Vec<Note>,
}

impl All {
    /// Adds a server by a name that no other one has.
    fn add(&mut self, file: &str, mut server: Server, notes: &mut Vec<Diagnostic>) {
        let own = std::mem::take(&mut server.name);
        let plain = plain_name(&own);
        server.name.clone_from(&plain);
        let mut say = |what: String, fix: &str| {
            let note = Diagnostic::new(server.at, server.key.as_str(), what);
            notes.push(note.with_fix(fix));
        };
        if let Some(first) = self.taken.get(&plain) {
            let same = self
                .servers
                .iter()
                .any(|other| other.says_the_same(&server));
            if same {
                return say(format!("stands in {first} already"), "it is taken once");
            }
            let number = (2..).find(|number| !self.taken.contains_key(&numbered(&plain, *number)));
            server.name = numbered(&plain, number.unwrap_or(2));
            let what = format!("is called `{}` here: {first} has a `{plain}`", server.name);
            say(what, "rename one of them, or take one out");
        } else if plain != own {
            say(format!("is called `{plain}` here"), NO_OTHER_CHARACTERS);
        }
        self.taken.insert(server.name.clone(), file.to_owned());
        self.servers.push(server);
    }
}

fn numbered(name: &str, number: usize) -> String {
    let end = format!("-{number}");
    let kept = name.len().min(64 - end.len());
    format!("{}{end}", &name[..kept])
}

/// The names, up to a number that can be read.
fn some(names: &BTreeSet<&str>) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(MOST_NAMES)
        .map(|name| format!("`{name}`"))
        .collect();
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Variables that nobody has to set.
const ALWAYS_THERE: &[&str] = &["HOME", "LANG", "PATH", "PWD", "TMPDIR", "USER"];

/// Names in one note.
const MOST_NAMES: usize = 12;
