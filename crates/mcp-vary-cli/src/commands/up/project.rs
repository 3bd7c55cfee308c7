//! The clients' files in the current directory: their servers are copied once the user confirms what they do.

use std::path::{Path, PathBuf};

use clap::ValueEnum as _;

use super::args::Up;
use super::home::{FoundClient, Home};
use crate::commands::connect::client::{Client, ClientName};
use crate::commands::connect::file::ClientFile;
use crate::commands::connect::places::{self, System};
use crate::environment::variable;
use crate::failure::Failure;
use crate::file::unreadable;
use crate::print::{notice, sanitize, sanitize_line};
use crate::question::{has_person, is_confirmed};
use crate::server_target::approval::effect_lines;

/// Fails if the question about the files cannot be asked: their author would choose what the service starts.
pub(super) fn check_can_ask(args: &Up) -> Result<(), Failure> {
    if has_person() && !args.yes {
        return Ok(());
    }
    let advice = if has_person() {
        "leave --yes out: `vary up --project` asks whether the files of this directory may start servers"
    } else {
        "--project asks at a terminal whether the files of this directory may start servers, which --yes does not \
         answer; type there: vary up --project"
    };
    Err(Failure::command(advice))
}

/// A line about the files, which are not used without `--project`.
pub(super) fn left() -> Option<String> {
    let found = files();
    let shown = listed(found.iter().map(|(_, file)| file.as_path()));
    let stays = stay(&shown);
    (!found.is_empty()).then(|| format!("{stays}; to copy their servers: vary up --project"))
}

fn stay(files: &str) -> String {
    format!("the files of this directory stay as they are: {files}")
}

/// Adds the servers of the files to `home` if the user confirms what they do. Returns whether the user does.
pub(super) async fn add(home: &mut Home) -> Result<bool, Failure> {
    home.command = "vary up --project";
    let current = Path::new(".");
    let real = current.canonicalize();
    let directory = real.map_err(|error| unreadable(current, &error))?;
    let found = read(&directory)?;
    let staying: Vec<_> = found.iter().flat_map(FoundClient::staying).collect();
    let mut project = Home {
        projects: found.into_iter().filter(FoundClient::is_movable).collect(),
        command: home.command,
        ..Home::default()
    };
    let added = project.projects.iter();
    let relative = added.map(|found| {
        let path = &found.file.path;
        path.strip_prefix(&directory).unwrap_or(path)
    });
    let shown = listed(relative);
    if shown.is_empty() {
        let lines = staying.iter().map(ToString::to_string);
        lines.for_each(|line| notice(&sanitize_line(&line)));
        let clients = ClientName::value_variants().iter();
        let names: Vec<&str> = clients.filter_map(|name| name.client().project).collect();
        return Err(Failure::command(format!(
            "no file of this directory has servers for Vary; looked for: {}",
            names.join(", ")
        )));
    }
    let yaml = project.import(&|_, _| true)?.yaml;
    let lines = effect_lines("vary.yaml", &yaml, &[])?.ok_or_else(|| {
        Failure::command(format!(
            "{shown} would start more than a question can show; take out what you do not need"
        ))
    })?;
    let question = format!(
        "The service would have the servers of {shown}. This is what they do:\n{lines}Copy them? Vary does not read \
         these files again by itself. [y/N] "
    );
    if !is_confirmed(&sanitize(&question)).await? {
        return Ok(false);
    }
    notice(&sanitize_line(&format!(
        "{}; in it, clients start these servers themselves, too, until you take them out of the files",
        stay(&shown)
    )));
    let is_replaced = |known: &FoundClient| {
        let mut new = project.projects.iter();
        new.any(|found| found.file.path == known.file.path)
    };
    home.projects.retain(|known| !is_replaced(known));
    home.projects.append(&mut project.projects);
    home.staying.extend(staying);
    Ok(true)
}

/// The files of clients in the current directory that are not the user's.
fn files() -> Vec<(&'static Client, PathBuf)> {
    let clients = ClientName::value_variants()
        .iter()
        .map(|name| name.client());
    let of_user = clients.clone().filter_map(|client| {
        let file = places::user_file(client, System::current(), &variable).ok()?;
        file.canonicalize().ok()
    });
    let known: Vec<PathBuf> = of_user.collect();
    let named = clients.filter_map(|client| {
        let file = places::project_file(client, Path::new("")).ok()?;
        Some((client, file))
    });
    let is_of_project = |(_, file): &(&'static Client, PathBuf)| {
        let real = file.canonicalize();
        real.is_ok_and(|real| real.is_file() && !known.contains(&real))
    };
    named.filter(is_of_project).collect()
}

/// The servers of the files, none of which may be a link out of the `directory`.
fn read(directory: &Path) -> Result<Vec<FoundClient>, Failure> {
    let shown = directory.display().to_string();
    let mut found = Vec::new();
    for (client, file) in files() {
        places::check_inside(&file, directory)?;
        let client_file = ClientFile::read(directory.join(file))?;
        let servers = FoundClient::of_project(client, client_file, shown.clone())?;
        found.extend(servers);
    }
    Ok(found)
}

fn listed<'a>(files: impl Iterator<Item = &'a Path>) -> String {
    let names: Vec<_> = files.map(|file| file.display().to_string()).collect();
    names.join(", ")
}
