//! The other files in which a client has servers: the user's beside the project's, and the other way round.

use std::path::{Path, PathBuf};

use mcp_vary_config::{ClientText, Diagnostic};
use mcp_vary_upstream::command_line::shell_word;
use serde_json::Value;

use super::client::{Client, UserFile};
use super::file::ClientFile;
use super::places::{self, System};
use super::record::{Record, Written};
use crate::environment::variable;
use crate::print::{notice, sanitize_line};

/// Another place with servers of the client than the one to which `vary connect` writes the entry.
#[derive(Debug)]
pub(crate) struct OtherPlace {
    /// Where it is: a text to be read after "in".
    pub(crate) shown: String,
    /// Its file; `None` if that is the one to which the entry is written.
    pub(crate) file: Option<ClientFile>,
    /// The keys that lead to the servers.
    pub(crate) container: Vec<String>,
    /// The servers, without Vary.
    pub(crate) servers: Vec<(String, Value)>,
    /// The entries that Vary wrote there.
    pub(crate) vary: Vec<Written>,
    /// Whether servers were taken out there, and Vary is in another place.
    pub(crate) has_moved: bool,
}

/// The other places of `client`, when `vary connect` writes to `written`, the project's file if `is_project`. A file that
/// cannot be read is named, and left out.
pub(crate) fn find(client: &Client, written: &ClientFile, is_project: bool) -> Vec<OtherPlace> {
    let user = places::user_file(client, System::current(), &variable).ok();
    let project = places::project_file(client, Path::new("")).ok();
    let candidate = if is_project { user.clone() } else { project };
    let other = candidate.filter(|path| !is_same(path, &written.path));
    let mut found = Vec::new();
    found.extend(other.and_then(|path| of_file(client, path, None)));
    if matches!(client.user, UserFile::HomeWithProjects(_))
        && let Some(user) = user
        && let Ok(directory) = std::env::current_dir()
    {
        // Claude Code calls this scope "local": https://code.claude.com/docs/en/mcp.
        let here = directory.to_string_lossy();
        let keys = ["projects", &here, "mcpServers"];
        let shown = format!("{} for this project alone", user.display());
        let local = if is_same(&user, &written.path) {
            let text = written.text.as_deref();
            let servers = text.and_then(|text| servers(client, &user, text, &keys));
            servers.map(|servers| OtherPlace {
                shown: String::new(),
                file: None,
                container: keys.map(str::to_owned).to_vec(),
                servers,
                vary: Vec::new(),
                has_moved: false,
            })
        } else {
            of_file(client, user, Some(&keys))
        };
        found.extend(local.map(|local| OtherPlace { shown, ..local }));
    }
    found.retain(|place| !place.servers.is_empty() || !place.vary.is_empty() || place.has_moved);
    found
}

/// Says how what was taken out of the project's file is put back: of `other`, or of the one of this directory.
pub(crate) fn report_taken_out(client: &Client, other: Option<PathBuf>) {
    let relative = places::project_file(client, Path::new("")).ok();
    let here = relative.and_then(|path| std::path::absolute(path).ok());
    let has_moved = |path: &PathBuf| {
        let file = ClientFile::read(path.clone()).ok();
        let record = file.and_then(|file| Record::read(&file).ok().flatten());
        record.is_some_and(|record| record.entries.iter().any(|written| written.entry.is_none()))
    };
    let Some(path) = other.into_iter().chain(here.clone()).find(has_moved) else {
        return;
    };
    let mut command = super::remove_command(client, true);
    // Its name may have a directory of the project in front.
    let inside = places::project_file(client, Path::new("")).unwrap_or_default();
    let project = path.ancestors().nth(inside.components().count());
    let is_here = here.is_some_and(|here| here == path);
    if !is_here && let Some(project) = project {
        let project = shell_word(&project.display().to_string());
        command = format!("cd {project} && {command}");
    }
    notice(&sanitize_line(&format!(
        "to put back what was taken out of {}, too: {command}",
        path.display()
    )));
}

/// Whether both paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = std::fs::canonicalize(one).ok();
    real.is_some() && real == std::fs::canonicalize(other).ok()
}

/// The servers of the file at `path` under `keys`, by default those of all that the file is for.
fn of_file(client: &Client, path: PathBuf, keys: Option<&[&str]>) -> Option<OtherPlace> {
    let file = match ClientFile::read(path) {
        Ok(file) => file,
        Err(failure) => {
            notice(&sanitize_line(&format!("note: {failure}")));
            return None;
        }
    };
    let text = file.text.as_deref()?;
    let given = keys.map(|keys| Ok(keys.iter().map(|key| (*key).to_owned()).collect()));
    let container = given.unwrap_or_else(|| client.container_in(text));
    let container = named(&file.path, container)?;
    let keys: Vec<&str> = container.iter().map(String::as_str).collect();
    let mut found = servers(client, &file.path, text, &keys)?;
    // If the record cannot be read, the entry is still written.
    let mut vary = Record::read(&file)
        .ok()
        .flatten()
        .unwrap_or_default()
        .entries;
    let has_moved = vary.iter().any(|written| written.entry.is_none());
    vary.retain(|written| {
        let is_it = |(name, entry): &(String, Value)| {
            written.name == *name
                && written.entry.as_ref() == Some(entry)
                && written.container == keys
        };
        let at = found.iter().position(is_it);
        at.map(|at| found.remove(at)).is_some()
    });
    Some(OtherPlace {
        shown: file.path.display().to_string(),
        container,
        file: Some(file),
        servers: found,
        vary,
        has_moved,
    })
}

/// The servers under `keys`.
fn servers(
    client: &Client,
    path: &Path,
    text: &str,
    keys: &[&str],
) -> Option<Vec<(String, Value)>> {
    let read = ClientText::new(client.syntax, text).entries(keys);
    named(path, read)
}

/// What was read, or `None` after a note on the mistake.
fn named<T>(path: &Path, read: Result<T, Diagnostic>) -> Option<T> {
    let read =
        read.map_err(|error| notice(&sanitize_line(&format!("note: {}:{error}", path.display()))));
    read.ok()
}
