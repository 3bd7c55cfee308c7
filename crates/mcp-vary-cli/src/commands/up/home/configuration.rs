//! The servers of all files as one configuration, in which each stays what it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mcp_vary_config::{ImportSource, Imported, ImportedFile, import};

use super::{FoundClient, Home};
use crate::commands::up::journal::NamedServer;
use crate::failure::Failure;

impl Home {
    /// The servers of all files for which `is_served`, as one configuration, with a variant for each client that has
    /// not all of them. A file that has none is in it with no servers.
    pub(crate) fn import(
        &self,
        is_served: &dyn Fn(&FoundClient, &str) -> bool,
    ) -> Result<Imported, Failure> {
        let known = self.named.iter().filter_map(|server| {
            let mut all = self.all().enumerate();
            let (at, found) = all.find(|(_, found)| found.has_named(server))?;
            Part::new(at, found, Some(server), &|_, name| name == server.entry)
        });
        let is_new = |found: &FoundClient, name: &str| {
            let mut named = self.named.iter();
            is_served(found, name)
                && !named.any(|server| server.entry == name && found.has_named(server))
        };
        let all = self.all().enumerate();
        let new = all.filter_map(|(at, found)| Part::new(at, found, None, &is_new));
        let parts: Vec<Part<'_>> = known.chain(new).collect();
        let sources: Vec<_> = parts.iter().map(|part| part.source(self)).collect();
        let outcome = import(&sources).map_err(|mistakes| Failure::command(mistakes.to_string()));
        let mut imported = outcome?;
        let mut files: Vec<_> = self.all().map(|_| ImportedFile::default()).collect();
        for (part, file) in parts.iter().zip(imported.files) {
            if let Some(whole) = files.get_mut(part.at) {
                whole.servers.extend(file.servers);
                whole.variant = file.variant;
            }
        }
        imported.files = files;
        Ok(imported)
    }

    /// A line for each client whose new servers stay with it, since its variant in the configuration at `path` is `lacking`
    /// them, with the line of each variant.
    pub(crate) fn keep_new_servers(
        &self,
        imported: &Imported,
        lacking: &BTreeMap<String, usize>,
        path: &Path,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        for (found, file) in self.clients.iter().zip(&imported.files) {
            let name = found.client.name;
            let Some(line) = lacking.get(name) else {
                continue;
            };
            let new = file.servers.keys().filter(|entry| !found.has_moved(entry));
            let shown_names: Vec<String> = new.map(|entry| format!("`{entry}`")).collect();
            if shown_names.is_empty() {
                continue;
            }
            let title = found.client.title;
            let all = shown_names.join(", ");
            let shown = path.display();
            let why = match line {
                0 => format!("its variant `{name}` was taken out of {shown}"),
                _ => format!("its variant `{name}` was changed ({shown}:{line})"),
            };
            lines.push(format!(
                "{title} keeps {all}: {why}; write its servers there, below `variants.{name}`, in a line of their own: \
                 `servers: [NAME]`, then: vary up"
            ));
        }
        lines
    }

    /// A line for each client whose new servers stay with it, since they were `removed` from the configuration at `path`.
    pub(crate) fn keep_removed_servers(
        &self,
        imported: &Imported,
        removed: &BTreeSet<String>,
        path: &Path,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        for (found, file) in self.all().zip(&imported.files) {
            let entries = file.servers.iter();
            let staying = entries
                .filter(|(entry, server)| removed.contains(*server) && !found.has_moved(entry));
            let names: Vec<String> = staying.map(|(entry, _)| format!("`{entry}`")).collect();
            if !names.is_empty() {
                lines.push(format!(
                    "{} keeps {}, which was taken out of {}",
                    found.title(),
                    names.join(", "),
                    path.display()
                ));
            }
        }
        lines
    }

    /// Whether the server that the client `found` calls `name` is one of `servers` in `imported`.
    pub(crate) fn is_one_of(
        &self,
        imported: &Imported,
        found: &FoundClient,
        name: &str,
        servers: &BTreeSet<String>,
    ) -> bool {
        let mut files = self.all().zip(&imported.files);
        let of_client = files.find(|(client, _)| std::ptr::eq(*client, found));
        let server = of_client.and_then(|(_, file)| file.servers.get(name));
        server.is_some_and(|server| servers.contains(server))
    }

    /// The servers of `imported`, in its order.
    pub(crate) fn named_in(&self, imported: &Imported) -> Vec<NamedServer> {
        let mut named = self.named.clone();
        named.retain(|server| self.all().any(|found| found.has_named(server)));
        for (found, imported_file) in self.all().zip(&imported.files) {
            let file = &found.file.path;
            for (entry, _) in &found.servers {
                let mut known = named.iter();
                let is_known = known.any(|server| server.file == *file && server.entry == *entry);
                if let (Some(name), false) = (imported_file.servers.get(entry), is_known) {
                    named.push(NamedServer {
                        file: file.clone(),
                        entry: entry.clone(),
                        name: name.clone(),
                    });
                }
            }
        }
        named
    }
}

impl FoundClient {
    /// Whether `variants` has the one of this client.
    pub(crate) fn is_client_in(&self, variants: &BTreeMap<String, usize>) -> bool {
        self.project.is_none() && variants.contains_key(self.client.name)
    }
}

/// Servers of one file that are imported together.
struct Part<'a> {
    /// The place of the file among all.
    at: usize,
    found: &'a FoundClient,
    path: String,
    text: String,
    /// The name of the only server, if it has one already.
    name: Option<&'a str>,
}

impl<'a> Part<'a> {
    /// The servers of the file for which `is_in`, which is only `known` if that is one; `None` if there are none.
    fn new(
        at: usize,
        found: &'a FoundClient,
        known: Option<&'a NamedServer>,
        is_in: &dyn Fn(&FoundClient, &str) -> bool,
    ) -> Option<Self> {
        Some(Self {
            at,
            found,
            path: found.file.path.display().to_string(),
            text: found.source(is_in)?,
            name: known.map(|server| &*server.name),
        })
    }

    fn source(&self, home: &Home) -> ImportSource<'_> {
        let client = self.found.client;
        let mut source = ImportSource::new(&self.path, &self.text)
            .with_format(client.format)
            .with_variant(client.name);
        if home.with_variant.contains(client.name) {
            source = source.with_fixed_variant();
        }
        if let Some(name) = self.name {
            source = source.with_server_name(name);
        }
        match &self.found.project {
            Some(directory) => source.with_project(directory),
            None => source,
        }
    }
}
