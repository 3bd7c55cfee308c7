//! Which servers can be moved to Vary, and which stay with their clients.

use std::fmt;
use std::path::Path;

use mcp_vary_config::{ClientNeed, ClientText, ImportSource, import};
use serde_json::{Value, json};

use super::FoundClient;
use crate::commands::connect::client::{Client, UserFile};
use crate::commands::connect::file::ClientFile;
use crate::commands::connect::places::{System, user_file};
use crate::commands::connect::write;
use crate::environment::variable;
use crate::failure::Failure;
use crate::print::servers::first_names;

/// A server that stays with its client.
pub(crate) struct StayingServer {
    pub(crate) name: String,
    /// The title of its client.
    pub(crate) title: String,
    pub(crate) need: ClientNeed,
}

impl fmt::Display for StayingServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, title, need } = self;
        write!(f, "`{name}` stays with {title}: {need}")
    }
}

impl FoundClient {
    /// Fails if the servers cannot be taken out.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let names = self.servers.iter().map(|(name, _)| name.clone());
        let whole = self.entry_for(json!({}), names.collect());
        let applied = write::applied(self.client, &self.base, &[whole]);
        applied.map_err(|diagnostic| write::at(&self.file, &diagnostic))?;
        Ok(())
    }

    /// Leaves out the servers that need something of the client, unless Vary has them already. Fails if none can be read.
    pub(super) fn leave_dependent(&mut self) -> Result<(), Failure> {
        let shown = match &self.project {
            Some(_) => self.file.path.display().to_string(),
            None => self.client.title.to_owned(),
        };
        let text = self.source(&|_, _| true).unwrap_or_default();
        let mut source = ImportSource::new(&shown, &text).with_format(self.client.format);
        if let Some(directory) = &self.project {
            source = source.with_project(directory);
        }
        let outcome = import(&[source]);
        let imported = outcome.map_err(|mistakes| Failure::command(mistakes.to_string()))?;
        let files = imported.files.into_iter();
        let needs = files.flat_map(|file| file.client_needs);
        let all = needs.chain(self.disabled_by_projects());
        self.needs = all.filter(|(name, _)| !self.has_moved(name)).collect();
        self.servers
            .retain(|(name, _)| !self.needs.contains_key(name));
        Ok(())
    }

    /// Whether servers can be moved.
    pub(crate) fn is_movable(&self) -> bool {
        !self.servers.is_empty()
    }

    /// The servers that Claude Code has disabled in a project, with the keys that do so. Vary would give them to all.
    fn disabled_by_projects(&self) -> Vec<(String, ClientNeed)> {
        if !matches!(self.client.user, UserFile::HomeWithProjects(_)) {
            return Vec::new();
        }
        let (values, key) = match &self.project {
            None => (self.values(), "disabledMcpServers"),
            Some(_) => (user_values(self.client), "disabledMcpjsonServers"),
        };
        let projects = values.iter().find(|(name, _)| name == "projects");
        let all = projects.and_then(|(_, projects)| projects.as_object());
        let mut found = Vec::new();
        for (directory, settings) in all.into_iter().flatten() {
            if self
                .project
                .as_ref()
                .is_some_and(|known| known != directory)
            {
                continue;
            }
            let names = settings[key].as_array().into_iter().flatten();
            for name in names.filter_map(Value::as_str) {
                if self.servers.iter().any(|(server, _)| server == name) {
                    let need = ClientNeed::Disabled(format!("projects.{directory}.{key}"));
                    found.push((name.to_owned(), need));
                }
            }
        }
        found
    }

    /// The servers that stay with the client.
    pub(crate) fn staying(&self) -> Vec<StayingServer> {
        let staying = |(name, need): (&String, &ClientNeed)| StayingServer {
            name: name.clone(),
            title: self.title(),
            need: need.clone(),
        };
        self.needs.iter().map(staying).collect()
    }
}

/// Everything that the user's file of `client` has; nothing if it cannot be read.
fn user_values(client: &Client) -> Vec<(String, Value)> {
    let path = user_file(client, System::current(), &variable).ok();
    let file = path.and_then(|path| ClientFile::read(path).ok());
    let text = file.and_then(|file| file.text).unwrap_or_default();
    let entries = ClientText::new(client.syntax, &text).entries(&[]);
    entries.unwrap_or_default()
}

/// A line about the servers that the file of `client` at `path` has for single projects: Vary would give them to all.
pub(super) fn servers_of_projects(client: &Client, path: &Path) -> Option<String> {
    if !matches!(client.user, UserFile::HomeWithProjects(_)) {
        return None;
    }
    let text = ClientFile::read(path.to_owned()).ok()?.text?;
    let projects = ClientText::new(client.syntax, &text).entries(&["projects"]);
    let mut names = Vec::new();
    for (_, project) in projects.ok()? {
        let servers = project["mcpServers"].as_object().into_iter().flatten();
        names.extend(servers.map(|(name, _)| format!("`{name}`")));
    }
    if names.is_empty() {
        return None;
    }
    let title = client.title;
    let shown = first_names(&names);
    Some(format!(
        "{title} has servers for single projects, which stay as they are, since Vary would give them to all: {shown}"
    ))
}
