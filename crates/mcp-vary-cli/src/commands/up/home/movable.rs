//! Which servers can be moved to Vary, and which stay with their clients.

use std::path::Path;

use mcp_vary_config::{ClientText, ImportSource, import};
use serde_json::json;

use super::FoundClient;
use crate::commands::connect::client::{Client, UserFile};
use crate::commands::connect::file::ClientFile;
use crate::commands::connect::write;
use crate::failure::Failure;
use crate::print::servers::first_names;

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
        self.needs = needs.filter(|(name, _)| !self.has_moved(name)).collect();
        self.servers
            .retain(|(name, _)| !self.needs.contains_key(name));
        Ok(())
    }

    /// Whether servers can be moved.
    pub(crate) fn is_movable(&self) -> bool {
        !self.servers.is_empty()
    }

    /// A line for each server that stays with the client.
    pub(crate) fn staying(&self) -> Vec<String> {
        let title = self.title();
        let needs = self.needs.iter();
        needs
            .map(|(name, need)| format!("`{name}` stays with {title}: {need}"))
            .collect()
    }
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
