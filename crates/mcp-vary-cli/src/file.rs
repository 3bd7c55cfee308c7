//! A configuration file on disk.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp_vary_base::io_error;
use mcp_vary_config::{Diagnostic, Diagnostics, File, Position, SecretFiles, Source, VaryEntries};
use mcp_vary_gateway::Config;
use serde_json::Value;

use crate::environment::{today, variable};
use crate::failure::Failure;
use crate::print::notice;
use crate::serving::LISTEN;
use crate::similar::nearest;

/// Reads all servers of `path`, and prints notes.
///
/// # Errors
///
/// When the file cannot be read, or has mistakes; all of them are listed.
pub(crate) fn read(path: &Path) -> Result<File, Failure> {
    parse_and_report(path, &text(path)?, &[], &SecretFiles::beside(path), None)
}

/// Parses the `text` of the file at `path`, or only the servers `only`, with the `secrets` that it names, and prints
/// notes. `listen` is the address of the command line on which it is served.
///
/// # Errors
///
/// All mistakes of the file.
pub(crate) fn parse_and_report(
    path: &Path,
    text: &str,
    only: &[String],
    secrets: &SecretFiles,
    listen: Option<&str>,
) -> Result<File, Failure> {
    let name = &path.display().to_string();
    let file = parse(name, text, only, secrets, listen)
        .map_err(|diagnostics| invalid_file(&diagnostics))?;
    // Whom a rule is for matters where one checks the file: others ask about people whom no key stands for.
    let is_of_people =
        |note: &Diagnostic| note.key.starts_with("access[") && note.key.ends_with("].when");
    for note in file.notes.iter().filter(|note| !is_of_people(note)) {
        notice(&crate::print::sanitize(&format!("note: {name}:{note}")));
    }
    for line in left_out(name, &file) {
        notice(&crate::print::sanitize(&line));
    }
    Ok(file)
}

/// A line for each mistake in the entry of a server that is left out.
pub(crate) fn left_out(name: &str, file: &File) -> Vec<String> {
    let servers = file.left_out.iter();
    let lines = servers.flat_map(|server| {
        let diagnostics = server.diagnostics.iter();
        diagnostics
            .map(move |diagnostic| format!("`{}` is left out: {name}:{diagnostic}", server.name))
    });
    lines.collect()
}

pub(crate) fn invalid_file(diagnostics: &Diagnostics) -> Failure {
    Failure::command(match diagnostics.all.len() {
        1 => diagnostics.to_string(),
        count => format!("{} has {count} mistakes\n{diagnostics}", diagnostics.file),
    })
}

/// Why the file at `path` cannot be read.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Failure {
    if path.is_dir() {
        return is_a_directory(path);
    }
    if error.kind() == io::ErrorKind::NotFound {
        return missing(path);
    }
    let why = io_error::describe_at(path, error);
    Failure::command(format!("{} cannot be read: {why}", path.display()))
}

/// The failure for a file that does not exist: where it was looked for, and the file there that was probably meant.
fn missing(path: &Path) -> Failure {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let place = absolute.parent().unwrap_or(&absolute);
    let shown = path.display();
    let looked = place.display();
    if !place.is_dir() {
        return Failure::command(format!(
            "{shown} cannot be read: the directory {looked} does not exist"
        ));
    }
    let similar_path = similar_file(path).map(|similar| similar.display().to_string());
    let meant = similar_path.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
    Failure::command(format!(
        "{shown} cannot be read: no such file in {looked}{meant}"
    ))
}

/// The file beside the missing one at `path` that was probably meant.
pub(crate) fn similar_file(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let entries = std::fs::read_dir(absolute.parent()?).ok()?.flatten();
    let all = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names: Vec<_> = all.take(MOST_COMPARED).collect();
    let written = path.file_name()?.to_str()?;
    let similar = nearest(written, names.iter().map(String::as_str))?;
    Some(path.with_file_name(similar))
}

/// How many files of a directory a missing one is compared with.
const MOST_COMPARED: usize = 2000;

/// The failure for a directory in place of a file, with the files in it that could be meant.
fn is_a_directory(path: &Path) -> Failure {
    let known = [
        "vary.yaml",
        ".mcp.json",
        "mcp.json",
        ".cursor/mcp.json",
        ".vscode/mcp.json",
    ];
    let paths = known.map(|name| path.join(name));
    let files = paths.iter().filter(|file| file.is_file());
    let found: Vec<_> = files.map(|file| format!("`{}`", file.display())).collect();
    let file = match &found[..] {
        [] => format!("a file in it, such as `{}`", paths[0].display()),
        found => format!("the file in it: {}", found.join(" or ")),
    };
    Failure::command(format!("{} is a directory; name {file}", path.display()))
}

/// Why the file at `path` cannot be written.
pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Failure {
    // The file is replaced, so it is its directory that denies it.
    let place = path.parent().filter(|_| path.is_file()).unwrap_or(path);
    let why = io_error::describe_writing_at(place, error);
    Failure::command(format!("{} cannot be written: {why}", path.display()))
}

/// The text of the file at `path`.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
    mcp_vary_config::text(path).map_err(|error| unreadable(path, &error))
}

/// Parses the `text` of the file `name`, or only the servers `only`, with the `secrets` that it names. `listen` is the address
/// of the command line on which it is served.
pub(crate) fn parse(
    name: &str,
    text: &str,
    only: &[String],
    secrets: &SecretFiles,
    listen: Option<&str>,
) -> Result<File, Diagnostics> {
    parse_with(name, text, only, secrets, listen, &variable)
}

/// Parses as [`parse`] does, with the values of environment variables that `variable` gives.
pub(crate) fn parse_with(
    name: &str,
    text: &str,
    only: &[String],
    secrets: &SecretFiles,
    listen: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<File, Diagnostics> {
    let dated = Source::new(name, text).with_today(today());
    let port = listen.unwrap_or(LISTEN).rsplit(':').next();
    let names = names_written_by_connect(name);
    let source = dated
        .with_secret_files(secrets)
        .with_vary_entries(VaryEntries {
            names: &names,
            port: port.and_then(|port| port.parse().ok()),
        });
    source.with_only(only).read(variable)
}

/// A file, and the variables of the environment that it uses.
#[derive(Debug)]
pub(crate) struct FileWithVariables {
    pub(crate) file: File,
    /// Those that are set.
    pub(crate) used: BTreeSet<String>,
    /// Those that are not set, each with its first place in the file.
    pub(crate) missing: Vec<(String, Position)>,
}

/// Parses the `text` of the file `name`, in which variables may be missing.
pub(crate) fn parse_with_variables(
    name: &str,
    text: &str,
    secrets: &SecretFiles,
) -> Result<FileWithVariables, Diagnostics> {
    let used = RefCell::new(BTreeSet::new());
    let dated = Source::new(name, text).with_today(today());
    let written = names_written_by_connect(name);
    let source = dated
        .with_secret_files(secrets)
        .with_vary_entries(VaryEntries {
            names: &written,
            port: None,
        });
    let read = |missing: &[(String, Position)]| {
        source.read(&|name| {
            let value = variable(name);
            if value.is_some() {
                used.borrow_mut().insert(name.to_owned());
            }
            let mut names = missing.iter();
            value.or_else(|| Some(names.find(|(missing, _)| missing == name)?.0.clone()))
        })
    };
    let mut missing = Vec::new();
    let file = read(&missing).or_else(|diagnostics| {
        let all = diagnostics.all.iter();
        missing.extend(
            all.filter_map(|fault| Some((fault.missing_variable.as_deref()?.to_owned(), fault.at))),
        );
        read(&missing).map_err(|_| diagnostics)
    })?;
    Ok(FileWithVariables {
        file,
        used: used.into_inner(),
        missing,
    })
}

/// The names of the entries that `vary connect` wrote to the client's file `name`, as its record beside the file has them.
pub(crate) fn names_written_by_connect(name: &str) -> Vec<String> {
    let record = mcp_vary_config::text(Path::new(&format!("{name}.vary-record.json")));
    let record: Value = serde_json::from_str(&record.unwrap_or_default()).unwrap_or_default();
    let entries = record["entries"].as_array().into_iter().flatten();
    let names = entries.filter_map(|entry| entry["name"].as_str());
    names.map(str::to_owned).collect()
}

/// Makes the start wait for each server for as long as the server's start can take.
pub(crate) fn with_full_start_wait(mut config: Config) -> Config {
    let starts = config.servers.iter().map(|server| server.limits.handshake);
    let longest = starts.max().unwrap_or_default();
    // After the handshake the lists are read.
    config.start_wait = longest.saturating_add(Duration::from_secs(5));
    config
}
