//! The other files in which a client has servers: the user's beside the project's, and the other way round.

use std::path::{Path, PathBuf};

use mcp_vary_config::ClientText;
use serde_json::Value;

use super::client::ClientName;
use super::file::ClientFile;
use super::places::{self, System};
use super::record::Record;
use crate::print::{notice, sanitize};

/// Another place with servers of the client, which `vary connect` leaves as it is.
#[derive(Debug)]
pub(crate) struct OtherFile {
    /// Where it is: a text to be read after "are in".
    pub(crate) shown: String,
    /// How to take servers out of it.
    pub(crate) advice: &'static str,
    /// The servers, without Vary.
    pub(crate) entries: Vec<(String, Value)>,
    /// The names of the entries that Vary wrote there.
    pub(crate) vary_entries: Vec<String>,
}

/// The other places of `client`, when `vary connect` writes to `written`, the project's file if `is_project`. A file that
/// cannot be read is named, and left out.
pub(crate) fn find(client: ClientName, written: &ClientFile, is_project: bool) -> Vec<OtherFile> {
    let user = places::user_file(client, System::current(), &super::variable).ok();
    let project = places::project_file(client, Path::new("")).ok();
    let mut found = Vec::new();
    let container = client.client().container;
    if is_project {
        let advice = "without --project, --move takes them out there, for all projects";
        found.extend(
            user.clone()
                .and_then(|path| read(client, path, container, written, advice)),
        );
    } else {
        let advice = "to take them out there, repeat the command with --project --write --move";
        found.extend(project.and_then(|path| read(client, path, container, written, advice)));
    }
    if client == ClientName::ClaudeCode
        && let (Some(user), Ok(here)) = (user, std::env::current_dir())
    {
        // Claude Code calls this scope "local": https://code.claude.com/docs/en/mcp.
        let here = here.to_string_lossy();
        let keys = ["projects", &here, "mcpServers"];
        let advice = "`claude mcp remove --scope local NAME` takes one out";
        let found_there = if written.path == user {
            let text = written.text.as_deref();
            text.and_then(|text| entries(client, &user, text, &keys))
        } else {
            read(client, user.clone(), &keys, written, advice).map(|it| it.entries)
        };
        found.extend(found_there.map(|entries| OtherFile {
            shown: format!("{} for this project alone", user.display()),
            advice,
            entries,
            vary_entries: Vec::new(),
        }));
    }
    found.retain(|file| !file.entries.is_empty() || !file.vary_entries.is_empty());
    found
}

fn read(
    client: ClientName,
    path: PathBuf,
    keys: &[&str],
    written: &ClientFile,
    advice: &'static str,
) -> Option<OtherFile> {
    let is_written = |path: &Path| std::fs::canonicalize(path).ok();
    if is_written(&path).is_some_and(|real| Some(real) == is_written(&written.path)) {
        return None;
    }
    let file = match ClientFile::read(path) {
        Ok(file) => file,
        Err(failure) => {
            notice(&sanitize(&format!("note: {failure}")));
            return None;
        }
    };
    let mut entries = entries(client, &file.path, file.text.as_deref()?, keys)?;
    // This file is only looked at. If it cannot be read, the client's own file is still written.
    let written = Record::read(&file).ok().flatten().unwrap_or_default();
    let is_vary = |(name, entry): &mut (String, Value)| {
        let mut written = written.entries.iter();
        written.any(|it| it.name == *name && it.entry == *entry)
    };
    let vary_entries = entries.extract_if(.., is_vary).map(|(name, _)| name);
    Some(OtherFile {
        shown: file.path.display().to_string(),
        advice,
        vary_entries: vary_entries.collect(),
        entries,
    })
}

/// The servers under `keys`.
fn entries(
    client: ClientName,
    path: &Path,
    text: &str,
    keys: &[&str],
) -> Option<Vec<(String, Value)>> {
    let read = ClientText::new(client.client().syntax, text).entries(keys);
    let read =
        read.map_err(|error| notice(&sanitize(&format!("note: {}:{error}", path.display()))));
    read.ok()
}
