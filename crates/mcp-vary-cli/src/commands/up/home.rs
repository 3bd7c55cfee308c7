//! The clients of a user, with the files of projects that Vary has, and what is written so that clients reach Vary.

mod configuration;
mod movable;
mod replanned;
mod vary_entry;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use mcp_vary_config::{ClientNeed, ClientText, Format, Syntax};
use serde_json::{Map, Value, json};

use super::journal::{Journal, NamedServer, ProjectServers};
use super::operation::{Kind, Operation};
use crate::commands::connect::client::{Client, ClientName};
use crate::commands::connect::endpoint::{Endpoint, with_variant};
use crate::commands::connect::entry::entry;
use crate::commands::connect::file::ClientFile;
use crate::commands::connect::places::{self, System};
use crate::commands::connect::record::{Record, Written, connects_to_same, digest};
use crate::commands::connect::write;
use crate::failure::Failure;
pub(crate) use movable::StayingServer;
use movable::servers_of_projects;
pub(crate) use vary_entry::variant_in;
use vary_entry::{add_missing, named_variant};

/// The clients that have servers.
#[derive(Default)]
pub(crate) struct Home {
    pub(crate) clients: Vec<FoundClient>,
    /// Files of projects, as the user confirmed them.
    pub(crate) projects: Vec<FoundClient>,
    /// A line for each client that is left as it is.
    pub(crate) notes: Vec<String>,
    /// The servers that stay with their clients, since they need something of them.
    pub(crate) staying: Vec<StayingServer>,
    /// Whether the file of a client could not be used.
    pub(crate) has_unusable: bool,
    /// The command that takes over what does not answer yet.
    pub(crate) command: &'static str,
    /// The servers that Vary has already, in the order of its configuration.
    pub(super) named: Vec<NamedServer>,
    /// The clients that are connected to a variant of their name.
    pub(super) with_variant: BTreeSet<String>,
}

/// A client, and its servers.
pub(crate) struct FoundClient {
    pub(crate) client: &'static Client,
    pub(crate) file: ClientFile,
    /// The file without what Vary wrote.
    base: String,
    /// What Vary wrote.
    written: Vec<Written>,
    /// The keys that lead to the servers.
    container: Vec<String>,
    /// The servers in `base` that can be moved.
    servers: Vec<(String, Value)>,
    /// What other servers need of the client, with which they stay.
    needs: BTreeMap<String, ClientNeed>,
    /// The directory of the project whose file it is; `None` if it is the user's.
    project: Option<String>,
}

impl Home {
    /// The clients whose user's files have servers, and those that `journal` has already, even if their files cannot be
    /// used now. `variable` gives the values of environment variables.
    pub(crate) fn find(variable: &dyn Fn(&str) -> Option<String>, journal: &Journal) -> Self {
        let mut clients = Vec::new();
        let mut notes = Vec::new();
        let mut staying = Vec::new();
        let mut has_unusable = false;
        for name in ClientName::value_variants() {
            let client = name.client();
            let mut found = None;
            if let Ok(path) = places::user_file(client, System::current(), variable) {
                notes.extend(servers_of_projects(client, &path));
                found = FoundClient::read(client, path, journal).unwrap_or_else(|why| {
                    has_unusable = true;
                    notes.push(format!("{} is left as it is: {why}", client.title));
                    None
                });
            }
            staying.extend(found.iter().flat_map(FoundClient::staying));
            let movable = found.filter(FoundClient::is_movable);
            clients.extend(movable.or_else(|| FoundClient::as_written(client, journal)));
        }
        let projects = journal.projects.iter();
        let mut with_variant = journal.entries.clone();
        with_variant.retain(|client, entry| variant_in(entry) == *client);
        Self {
            clients,
            projects: projects
                .filter_map(|(path, project)| FoundClient::from_journal(path, project))
                .collect(),
            notes,
            staying,
            has_unusable,
            command: "vary up",
            named: journal.servers.clone(),
            with_variant: with_variant.into_keys().collect(),
        }
    }

    /// The files of the clients, then those of projects.
    pub(crate) fn all(&self) -> impl Iterator<Item = &FoundClient> {
        self.clients.iter().chain(&self.projects)
    }
}

impl FoundClient {
    /// The client whose file is at `path`; `None` if it has no servers.
    fn read(
        client: &'static Client,
        path: PathBuf,
        journal: &Journal,
    ) -> Result<Option<Self>, Failure> {
        let file = ClientFile::read(path)?;
        if file.text.is_none() {
            return Ok(None);
        }
        let (base, written) = write::base(client, &file)?;
        if !written.is_empty() && !journal.has_client(client.name) {
            let name = client.name;
            return Err(Failure::command(format!(
                "an earlier `vary connect` or `vary up` wrote to its file; to have it here, too: vary connect {name} --remove && vary up"
            )));
        }
        let mut found = Self::with_servers(client, file, base.unwrap_or_default(), None)?;
        found.written = written;
        let Self { file, servers, .. } = &found;
        if servers.is_empty() {
            return Ok(None);
        }
        if servers.iter().any(|(name, _)| name == NAME) {
            return Err(Failure::command(format!(
                "{} has an entry `{NAME}` that `vary up` did not write; take it out of the file, then: vary up",
                file.path.display()
            )));
        }
        file.check_writable()?;
        found.leave_dependent()?;
        found.check()?;
        Ok(Some(found))
    }

    /// The client whose `file` has the text `base` without what Vary wrote.
    fn with_servers(
        client: &'static Client,
        file: ClientFile,
        base: String,
        project: Option<String>,
    ) -> Result<Self, Failure> {
        let located = |diagnostic| write::at(&file, &diagnostic);
        let container = client.container_in(&base).map_err(located)?;
        let keys: Vec<&str> = container.iter().map(String::as_str).collect();
        let entries = ClientText::new(client.syntax, &base).entries(&keys);
        let servers = entries.map_err(located)?;
        Ok(Self {
            client,
            file,
            base,
            written: Vec::new(),
            container,
            servers,
            needs: BTreeMap::new(),
            project,
        })
    }

    /// The `file` of the project in `directory`, without an entry of Vary; `None` if it has no other servers.
    pub(super) fn of_project(
        client: &'static Client,
        file: ClientFile,
        directory: String,
    ) -> Result<Option<Self>, Failure> {
        let text = file.text.clone().unwrap_or_default();
        let mut found = Self::with_servers(client, file, text, Some(directory))?;
        found.servers.retain(|(name, _)| name != NAME);
        if found.servers.is_empty() {
            return Ok(None);
        }
        found.leave_dependent()?;
        Ok(Some(found))
    }

    /// The file of a project at `path`, as the user took it over; `None` if this Vary does not know its client.
    fn from_journal(path: &Path, project: &ProjectServers) -> Option<Self> {
        let client = ClientName::from_str(&project.client, false).ok()?.client();
        let container = client.container_in(&project.text).ok()?;
        let keys: Vec<&str> = container.iter().map(String::as_str).collect();
        let entries = ClientText::new(Syntax::Json, &project.text).entries(&keys);
        let found = Self {
            client,
            file: ClientFile::missing(path.to_owned()),
            base: project.text.clone(),
            written: Vec::new(),
            container,
            servers: entries.ok()?,
            needs: BTreeMap::new(),
            project: Some(project.directory.clone()),
        };
        Some(found.with_all_moved(Value::Null))
    }

    /// The client with the servers that Vary took over, as `journal` has them; `None` if it did not write to its file.
    fn as_written(client: &'static Client, journal: &Journal) -> Option<Self> {
        let mut operations = journal.operations.iter();
        let its = Kind::Client(client.name.to_owned());
        let operation = operations.find(|operation| operation.kind == its)?;
        let read = |text: &str| {
            let file = ClientFile::missing(operation.path.clone());
            Self::with_servers(client, file, text.to_owned(), None).ok()
        };
        let mut found = read(operation.before.as_deref()?)?;
        let left = read(&operation.after)?.servers;
        found
            .servers
            .retain(|(name, _)| left.iter().all(|(other, _)| other != name));
        let entry = journal.entries.get(client.name).cloned();
        Some(found.with_all_moved(entry.unwrap_or_default()))
    }

    /// With `entry` in place of all servers.
    fn with_all_moved(mut self, entry: Value) -> Self {
        let names = self.servers.iter().map(|(name, _)| name.clone());
        let written = self.entry_for(entry, names.collect());
        self.written.push(written);
        self
    }

    /// What the journal has of a project's file whose servers `moved` are taken over; `None` if there are none.
    pub(super) fn project_servers(
        &self,
        moved: &BTreeMap<String, String>,
    ) -> Option<(PathBuf, ProjectServers)> {
        let project = ProjectServers {
            client: self.client.name.to_owned(),
            directory: self.project.clone()?,
            text: self.source(&|_, name| moved.contains_key(name))?,
        };
        Some((self.file.path.clone(), project))
    }

    /// How people call it.
    pub(crate) fn title(&self) -> String {
        match &self.project {
            Some(directory) => format!("{} in {directory}", self.client.title),
            None => self.client.title.to_owned(),
        }
    }

    /// Vary in place of the servers `moved`.
    fn entry_for(&self, entry: Value, moved: Vec<String>) -> Written {
        Written {
            name: NAME.to_owned(),
            entry: Some(entry),
            container: self.container.clone(),
            moved,
        }
    }

    /// Whether Vary has the server called `name` already.
    pub(crate) fn has_moved(&self, name: &str) -> bool {
        let mut moved = self.written.iter().flat_map(|written| &written.moved);
        moved.any(|server| server == name)
    }

    /// The servers that Vary has, and that the file has again.
    pub(crate) fn returned(&self) -> Vec<String> {
        let now = self.entries_now().into_iter().map(|(name, _)| name);
        now.filter(|name| self.has_moved(name)).collect()
    }

    /// Whether the client has the server called `name` in Vary alone.
    pub(crate) fn has_in_vary(&self, name: &str) -> bool {
        self.has_moved(name) && !self.returned().iter().any(|returned| returned == name)
    }

    /// Whether it is the one that has `server`, which Vary has already.
    fn has_named(&self, server: &NamedServer) -> bool {
        self.file.path == server.file && self.has_moved(&server.entry)
    }

    /// Everything that the file has, to find the secrets in it.
    pub(crate) fn values(&self) -> Vec<(String, Value)> {
        let read = ClientText::new(self.client.syntax, &self.base).entries(&[]);
        read.unwrap_or_default()
    }

    /// The servers for which `is_served` as a file of their own, since a client may store its history beside them;
    /// `None` if there are none.
    fn source(&self, is_served: &dyn Fn(&Self, &str) -> bool) -> Option<String> {
        let servers = self.servers.iter();
        let served = servers.filter(|(name, _)| is_served(self, name));
        let table: Map<String, Value> = served.cloned().collect();
        if table.is_empty() {
            return None;
        }
        let keys = self.container.iter().rev();
        let mut root = keys.fold(Value::Object(table), |inner, key| json!({key: inner}));
        if self.client.format == Format::VsCode {
            // What it asks its user for.
            let mut beside = self.values().into_iter();
            if let Some((key, inputs)) = beside.find(|(key, _)| key == "inputs") {
                root[key] = inputs;
            }
        }
        Some(root.to_string())
    }

    /// The entry that the client gets: the one for `reached`, with the variant that its user chose since `journal` got it.
    /// An entry for another address that its user chose stays.
    fn new_entry(
        &self,
        previous: Option<&Written>,
        reached: &Reached<'_>,
        journal: &mut Journal,
    ) -> Result<Value, Failure> {
        let name = self.client.name;
        let mut new = self.entry_in(reached.variant, reached)?;
        if let Some(chosen) = self.chosen_entry(journal) {
            let connects = |known: &Value| connects_to_same(&chosen, known);
            if connects(&new) || !journal.entries.get(name).is_some_and(connects) {
                return Ok(chosen);
            }
            journal.entries.insert(name.to_owned(), new);
            let variant = named_variant(&chosen);
            let mut moved = self.entry_in(variant.as_deref(), reached)?;
            add_missing(&mut moved, chosen);
            return Ok(moved);
        }
        let present = previous.and_then(|written| written.entry.as_ref());
        if let (Some(present), Some(now)) = (present, self.entry_now())
            && connects_to_same(&now, present)
        {
            add_missing(&mut new, now);
        }
        journal.entries.insert(name.to_owned(), new.clone());
        Ok(new)
    }

    /// The entry for `reached` in this variant.
    fn entry_in(&self, variant: Option<&str>, reached: &Reached<'_>) -> Result<Value, Failure> {
        let url = with_variant(reached.address, variant)?;
        let endpoint = match self.client.url {
            Some(_) => Endpoint::Http {
                url,
                headers: Vec::new(),
            },
            None => Endpoint::Stdio {
                program: reached.program.to_owned(),
                args: vec!["serve".to_owned(), "--stdio".to_owned(), url],
            },
        };
        let is_native = self.container.len() > self.client.container.len();
        entry(self.client, &endpoint, is_native)
    }

    /// What is written so that the client has Vary in place of the servers in `moved`; nothing if that is so already, or
    /// if its file cannot be used.
    pub(crate) fn operations(
        &self,
        reached: &Reached<'_>,
        moved: &BTreeMap<String, String>,
        journal: &mut Journal,
    ) -> Result<Vec<Operation>, Failure> {
        if moved.is_empty() || self.file.text.is_none() {
            return Ok(Vec::new());
        }
        let is_vary =
            |written: &&Written| written.name == NAME && written.container == self.container;
        let previous = self.written.iter().find(is_vary);
        let new = self.new_entry(previous, reached, journal)?;
        let servers = self.servers.iter().map(|(name, _)| name);
        let names: Vec<String> = servers
            .filter(|name| moved.contains_key(*name))
            .cloned()
            .collect();
        let all = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
        let moved_then = previous.map(|written| all(&written.moved));
        if moved_then == Some(all(&names)) && self.has(&new, &names) {
            return Ok(Vec::new());
        }
        let mut entries = self.written.clone();
        entries.retain(|written| !is_vary(&written));
        entries.push(self.entry_for(new, names));
        self.operations_with(entries, journal)
    }

    /// What writes `entries` to its file.
    fn operations_with(
        &self,
        entries: Vec<Written>,
        journal: &Journal,
    ) -> Result<Vec<Operation>, Failure> {
        let applied = write::applied(self.client, &self.base, &entries);
        let after = applied.map_err(|diagnostic| write::at(&self.file, &diagnostic))?;
        let record = Record {
            digest: digest(&after),
            is_created: false,
            entries,
            other: None,
        };
        let mut known = journal.operations.iter();
        let had_base = |earlier: &Operation| {
            earlier.path == self.file.path
                && !earlier.is_rebuilt
                && earlier.before.as_ref() == Some(&self.base)
        };
        let is_rebuilt = self.file.text.as_ref() != Some(&self.base) && !known.any(had_base);
        let beside = |path: PathBuf, text: String| Operation {
            path,
            kind: Kind::Beside(self.file.path.clone()),
            before: None,
            is_rebuilt: false,
            after: text,
            mode: 0o600,
            replaced: None,
        };
        Ok(vec![
            beside(self.file.backup(), self.base.clone()),
            beside(self.file.record(), record.to_json()),
            Operation {
                path: self.file.path.clone(),
                kind: Kind::Client(self.client.name.to_owned()),
                before: Some(self.base.clone()),
                is_rebuilt,
                after,
                mode: 0o600,
                replaced: self.file.text.clone(),
            },
        ])
    }

    /// The variant in the entry that the user chose since `journal` got its own; `None` if they did not.
    pub(crate) fn chosen_variant(&self, journal: &Journal) -> Option<String> {
        self.chosen_entry(journal).as_ref().map(variant_in)
    }

    /// The entry that the user chose since `journal` got its own: in the file, or with `vary connect`.
    fn chosen_entry(&self, journal: &Journal) -> Option<Value> {
        let mut written = self.written.iter();
        let vary = written.find(|written| written.name == NAME)?;
        let entry = vary.entry.as_ref()?;
        let is_chosen =
            |now: &Value| connects_to_same(now, entry) && variant_in(now) != variant_in(entry);
        if let Some(now) = self.entry_now().filter(is_chosen) {
            return Some(now);
        }
        (Some(entry) != journal.entries.get(self.client.name)).then(|| entry.clone())
    }

    /// The servers that the file has now.
    fn entries_now(&self) -> Vec<(String, Value)> {
        let keys: Vec<&str> = self.container.iter().map(String::as_str).collect();
        let text = self.file.text.as_deref().unwrap_or_default();
        let entries = ClientText::new(self.client.syntax, text).entries(&keys);
        entries.unwrap_or_default()
    }

    /// Vary as the file has it now.
    fn entry_now(&self) -> Option<Value> {
        let mut entries = self.entries_now().into_iter();
        let found = entries.find(|(name, _)| name == NAME);
        found.map(|(_, entry)| entry)
    }

    /// Whether the file has the `entry` of Vary, and none of the servers `moved`.
    fn has(&self, entry: &Value, moved: &[String]) -> bool {
        let now = self.entries_now();
        now.iter().any(|(name, it)| name == NAME && it == entry)
            && !now.iter().any(|(name, _)| moved.contains(name))
    }
}

/// How a client reaches Vary.
pub(crate) struct Reached<'a> {
    /// The URL of the gateway.
    pub(crate) address: &'a str,
    /// The variant of the client; `None` for the default.
    pub(crate) variant: Option<&'a str>,
    /// The path of this program, for a client that cannot connect to a URL.
    pub(crate) program: &'a str,
}

/// The name of Vary in clients' files.
const NAME: &str = "vary";
