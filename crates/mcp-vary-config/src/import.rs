//! Imports the files in which other programs configure their servers, as one configuration of Vary.
//!
//! Notes list everything that has no equivalent; nothing is dropped silently. Notes never contain values.

mod client_need;
mod entry;
mod foreign_keys;
mod format;
mod print;
mod text;
mod tool_filter;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use self::client_need::ClientNeed;
use self::entry::Server;
pub use self::format::{Format, UnknownFormat};
use self::tool_filter::ToolFilter;
use super::reader::Located;
use super::server::{NO_OTHER_CHARACTERS, plain_name};
use super::vary_entries::VaryEntries;
use crate::diagnostic::{Diagnostic, Diagnostics};

/// The text of another program's file.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ImportSource<'a> {
    name: &'a str,
    text: &'a str,
    format: Option<Format>,
    vary_entries: VaryEntries<'a>,
    variant: Option<&'a str>,
    has_fixed_variant: bool,
    server_name: Option<&'a str>,
    project: Option<&'a str>,
}

impl<'a> ImportSource<'a> {
    /// The file `name` with its text. The format is detected.
    #[must_use]
    pub const fn new(name: &'a str, text: &'a str) -> Self {
        Self {
            name,
            text,
            format: None,
            vary_entries: VaryEntries {
                names: &[],
                port: None,
            },
            variant: None,
            has_fixed_variant: false,
            server_name: None,
            project: None,
        }
    }

    /// Sets the name of a variant with the servers of this file, and of others with that name. The configuration has it
    /// if other files have others, or other tools of them.
    #[must_use]
    pub const fn with_variant(mut self, name: &'a str) -> Self {
        self.variant = Some(name);
        self
    }

    /// Has the configuration contain the variant even if no other file has other servers.
    #[must_use]
    pub const fn with_fixed_variant(mut self) -> Self {
        self.has_fixed_variant = true;
        self
    }

    /// Sets the name of the only server of this file in the configuration, unless another has it.
    #[must_use]
    pub const fn with_server_name(mut self, name: &'a str) -> Self {
        self.server_name = Some(name);
        self
    }

    /// Sets the directory of the project whose file this is. Programs run there, and the configuration has variables in
    /// place of what looks like secrets: one for each secret, with numbers where names are the same.
    #[must_use]
    pub const fn with_project(mut self, directory: &'a str) -> Self {
        self.project = Some(directory);
        self
    }

    /// Sets how entries that lead to Vary itself are recognised. They are left out.
    #[must_use]
    pub const fn with_vary_entries(mut self, vary_entries: VaryEntries<'a>) -> Self {
        self.vary_entries = vary_entries;
        self
    }

    /// The key beside `servers` that makes the file a configuration of Vary, so that [`import`] refuses it; `None` if it has
    /// none.
    pub fn setting_of_vary(&self) -> Option<String> {
        format::setting_of_vary(self)
    }

    /// Sets the format instead of detecting it.
    #[must_use]
    pub const fn with_format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }
}

// Omits the text, which may contain secrets.
mcp_vary_base::debug_by_name!(ImportSource<'_>);

/// The outcome of an import.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Imported {
    /// A configuration of Vary. Secrets are copied from the files as they are.
    pub yaml: String,
    /// Notes on what was left out or changed, with file and position.
    pub notes: Vec<Note>,
    /// The names of the entries that are left out, since they cannot be used. The notes have the reasons.
    pub left_out: Vec<String>,
    /// The outcome of each file, in their order.
    pub files: Vec<ImportedFile>,
    /// The variables of the environment that the servers need.
    pub variables: BTreeSet<String>,
}

/// The outcome of one file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ImportedFile {
    /// The names of its enabled servers in the configuration, by their names in the file.
    pub servers: BTreeMap<String, String>,
    /// The variant with these servers, and those of other files with its name; `None` if they are all that there are,
    /// or if no name was set for it.
    pub variant: Option<String>,
    /// What its servers need of the client, by their names in the file.
    pub client_needs: BTreeMap<String, ClientNeed>,
}

/// A note for the user about an imported file.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Note {
    /// The name of the file, as given.
    pub file: String,
    /// What the note is about.
    pub kind: NoteKind,
    /// The note, its position and the fix. It contains no values.
    pub note: Diagnostic,
}

impl Note {
    fn new(file: &str, kind: NoteKind, note: Diagnostic) -> Self {
        let file = file.to_owned();
        Self { file, kind, note }
    }
}

/// What a note is about, for commands that do not print all of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum NoteKind {
    /// Something that is left out or changed.
    Change,
    /// A value that looks like a secret, and is in the configuration.
    Secret,
    /// A server that an earlier file has with the same settings.
    SameServer,
}

/// In the format that editors and terminals turn into links.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.note)
    }
}

/// Imports the servers of all `files` into one configuration, in order.
///
/// # Errors
///
/// If a file cannot be read or has no servers. The error lists all problems of the first such file.
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
        let mut found = Found {
            project: file.project.map(str::to_owned),
            secret_values: std::mem::take(&mut all.secret_values),
            ..Found::default()
        };
        let read = format::read(file, &mut found);
        if let Err(mut diagnostics) = read {
            diagnostics.sort_by_key(|diagnostic| diagnostic.at);
            return Err(Diagnostics {
                file: file.name.to_owned(),
                all: diagnostics,
            });
        }
        all.secret_values = found.secret_values;
        all.left_out.append(&mut found.left_out);
        let change = |note| Note::new(file.name, NoteKind::Change, note);
        let secret = |note| Note::new(file.name, NoteKind::Secret, note);
        let changes = found.notes.into_iter().map(change);
        let secrets = found.secrets.into_iter().map(secret);
        let mut notes: Vec<Note> = changes.chain(secrets).collect();
        let is_vary = |server: &Server| {
            let entries = &file.vary_entries;
            entries.contains(&server.name, server.url().as_ref())
        };
        // A file with nothing else is not the one that Vary is to serve.
        if !found.servers.iter().all(is_vary) {
            let vary = found.servers.extract_if(.., |server| is_vary(server));
            let left_out = vary.map(|server| VaryEntries::note(server.at, server.key));
            notes.extend(left_out.map(change));
        }
        let mut imported = ImportedFile::default();
        for mut server in found.servers {
            let (name, is_disabled) = (server.name.clone(), server.disabled);
            let (tools, client_need) = (server.tools.clone(), server.client_need.take());
            let new = all.add(file, server, &mut notes);
            let need = client_need.map(|need| (name.clone(), need));
            imported.client_needs.extend(need);
            if !is_disabled {
                all.show(file, &new, tools);
                imported.servers.insert(name, new);
            }
        }
        all.files.push(imported);
        notes.sort_by_key(|note| note.note.at);
        all.notes.append(&mut notes);
        for (name, about) in found.variables {
            all.variables.entry(name).or_insert(about);
        }
    }
    all.set_variants(files);
    let names: Vec<&str> = files.iter().map(|file| file.name).collect();
    let yaml = print::configuration(&names, &all);
    Ok(Imported {
        yaml,
        notes: all.notes,
        left_out: all.left_out,
        files: all.files,
        variables: all.variables.into_keys().collect(),
    })
}

/// What was found in one file.
#[derive(Default)]
struct Found {
    servers: Vec<Server>,
    /// The environment variables that the configuration needs, each with a description.
    variables: BTreeMap<String, String>,
    notes: Vec<Diagnostic>,
    /// Notes on values that look like secrets.
    secrets: Vec<Diagnostic>,
    /// The names of the entries that cannot be used.
    left_out: Vec<String>,
    /// The directory of the project whose file it is.
    project: Option<String>,
    /// The secrets of projects, also of earlier files, by the variables that stand for them.
    secret_values: BTreeMap<String, String>,
}

impl Found {
    /// The variable that stands for a `secret`: `base`, or with a number if that stands for another one.
    fn variable_for(&mut self, base: &str, secret: &str) -> String {
        let numbered = (2_usize..).map(|number| format!("{base}_{number}"));
        let mut names = std::iter::once(base.to_owned()).chain(numbered);
        let values = &self.secret_values;
        let is_free = |name: &String| values.get(name).is_none_or(|known| known == secret);
        let variable = names.find(is_free).unwrap_or_else(|| base.to_owned());
        self.secret_values
            .insert(variable.clone(), secret.to_owned());
        variable
    }

    fn note(&mut self, field: &Located<'_>, what: impl Into<String>, fix: impl Into<String>) {
        let note = Diagnostic::new(field.node.at, field.path.as_str(), what);
        self.notes.push(note.with_fix(fix));
    }

    /// Notes why something is not imported.
    fn leave_out(&mut self, field: &Located<'_>, what: impl Into<String>) {
        self.note(field, what, "it is left out");
    }

    /// Records that a variable is needed.
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

/// What was found in all files.
#[derive(Default)]
struct All {
    servers: Vec<Server>,
    /// The names in use, each with the file that it comes from.
    names: BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
    /// The secrets of projects, by the variables that stand for them.
    secret_values: BTreeMap<String, String>,
    notes: Vec<Note>,
    left_out: Vec<String>,
    files: Vec<ImportedFile>,
    /// The enabled servers of each variant, and which of their tools it shows.
    variants: BTreeMap<String, BTreeMap<String, ToolFilter>>,
}

impl All {
    /// Adds a server, renamed if its name is already in use. Returns its name.
    fn add(
        &mut self,
        file: &ImportSource<'_>,
        mut server: Server,
        notes: &mut Vec<Note>,
    ) -> String {
        let found = std::mem::take(&mut server.name);
        let name = file.server_name.map_or(found, str::to_owned);
        let plain = plain_name(&name);
        server.name.clone_from(&plain);
        let mut note = |kind: NoteKind, what: String, fix: &str| {
            let note = Diagnostic::new(server.at, server.key.as_str(), what);
            notes.push(Note::new(file.name, kind, note.with_fix(fix)));
        };
        if let Some(first) = self.names.get(&plain) {
            let is_same = |other: &&mut Server| {
                // A variant can show fewer tools.
                let can_differ = file.variant.is_some();
                other.has_same_settings(&server) && (can_differ || other.tools == server.tools)
            };
            if let Some(same) = self.servers.iter_mut().find(is_same) {
                same.tools.widen(&server.tools);
                let what = format!("is in {first} already");
                note(NoteKind::SameServer, what, "it is taken once");
                return same.name.clone();
            }
            let number = (2..).find(|number| !self.names.contains_key(&numbered(&plain, *number)));
            server.name = numbered(&plain, number.unwrap_or(2));
            let what = format!("is called `{}` here: {first} has a `{plain}`", server.name);
            note(
                NoteKind::Change,
                what,
                "this works; for other names, rename one of them",
            );
        } else if plain != name {
            let what = format!("is called `{plain}` here");
            note(NoteKind::Change, what, NO_OTHER_CHARACTERS);
        }
        let new = server.name.clone();
        self.names.insert(new.clone(), file.name.to_owned());
        self.servers.push(server);
        new
    }

    /// Has the variant of `file` show `tools` of the server `name`.
    fn show(&mut self, file: &ImportSource<'_>, name: &str, tools: ToolFilter) {
        let variant = file.variant.unwrap_or_default().to_owned();
        let servers = self.variants.entry(variant).or_default();
        servers
            .entry(name.to_owned())
            .and_modify(|known| known.widen(&tools))
            .or_insert(tools);
    }

    /// Gives each of the `files` its variant, if others have servers or tools that the files of this variant have not.
    fn set_variants(&mut self, files: &[ImportSource<'_>]) {
        let enabled = self.servers.iter().filter(|server| !server.disabled);
        let whole: BTreeMap<String, ToolFilter> = enabled
            .map(|server| (server.name.clone(), server.tools.clone()))
            .collect();
        for (file, imported) in files.iter().zip(&mut self.files) {
            let Some(variant) = file.variant else {
                continue;
            };
            if file.has_fixed_variant || self.variants.get(variant) != Some(&whole) {
                imported.variant = Some(variant.to_owned());
            }
        }
    }
}

fn numbered(name: &str, number: usize) -> String {
    let end = format!("-{number}");
    let length = name.len().min(64 - end.len());
    format!("{}{end}", &name[..length])
}

/// The names as text, up to a maximum number.
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

/// Variables that the environment always has.
const ALWAYS_THERE: &[&str] = &["HOME", "LANG", "PATH", "PWD", "TMPDIR", "USER"];

/// The maximum number of names in one note.
const MOST_NAMES: usize = 12;
