//! `vary down`: gives back every file that `vary up` wrote, and ends the service.

use std::path::Path;

use clap::ValueEnum as _;
use mcp_vary_config::ClientText;

use crate::commands::connect::client::{Client, ClientName};
use crate::commands::connect::file::{self, ClientFile};
use crate::commands::connect::places::{System, user_file};
use crate::commands::connect::record::Record;
use crate::commands::connect::remove_command;
use crate::commands::up::args::Down;
use crate::commands::up::configuration;
use crate::commands::up::journal::{self, Journal};
use crate::environment::variable;
use crate::failure::{Failure, Verdict};
use crate::operator::client::JOURNAL;
use crate::print::{notice, sanitize_line};
use crate::service;
use crate::stop::Stop;

/// Gives back the clients' files, ends the service, and removes its files.
pub(crate) async fn run(args: Down, mut stop: Stop) -> Result<Verdict, Failure> {
    let directory = service::directory()?;
    let _lock = stop.unless_requested(journal::lock(&directory)).await?;
    let lost = without_journal(&directory.join(JOURNAL));
    if !lost.is_empty() {
        lost.iter().for_each(|line| notice(&sanitize_line(line)));
        return Ok(Verdict::Failed);
    }
    let mut journal = Journal::read(&directory)?;
    if let Some(manager) = journal.manager {
        let was_running = manager.is_running();
        let is_whole = journal.undo(manager, &directory, &mut stop).await?;
        if was_running {
            notice(&format!("ended Vary, which ran {}", manager.description()));
        }
        if !is_whole {
            notice(
                "Vary has ended, so clients whose files were not given back cannot use its servers",
            );
            notice("repair that, then type `vary down` again");
            return Ok(Verdict::Failed);
        }
    } else {
        notice("nothing to undo: `vary up` is not in use");
        let copies = journal.copies();
        copies.iter().for_each(|line| notice(&sanitize_line(line)));
        journal.is_partly_undone = !copies.is_empty();
    }
    let is_whole = !journal.is_partly_undone;
    finish(journal.given_back(), &directory, args.all)?;
    Ok(Verdict::fine_if(is_whole))
}

/// Keeps what a later `vary up` has to know of the configuration, or removes both.
fn finish(mut journal: Journal, directory: &Path, is_all: bool) -> Result<(), Failure> {
    if journal.generated.is_empty() {
        return Ok(());
    }
    let path = configuration()?;
    let shown = path.display();
    if !is_all {
        journal.store(directory)?;
        notice(&sanitize_line(&format!(
            "the configuration stays: {shown}; to remove it: vary down --all"
        )));
        return Ok(());
    }
    file::delete(&path)?;
    if let Some(folder) = path.parent() {
        // It stays if its user has other files there.
        let _ = std::fs::remove_dir(folder);
    }
    Journal::delete(directory)?;
    notice(&sanitize_line(&format!("removed {shown}")));
    Ok(())
}

/// What to do about clients' files with Vary if the `journal` is missing; no line if there are none.
fn without_journal(journal: &Path) -> Vec<String> {
    if journal.exists() {
        return Vec::new();
    }
    let clients = ClientName::value_variants().iter();
    let mut lines: Vec<String> = clients
        .filter_map(|name| command_for(name.client()))
        .collect();
    if !lines.is_empty() {
        let why = format!(
            "nothing was changed: {}, in which `vary up` records what it wrote, is missing; if it is in another \
             `XDG_STATE_HOME`, set that and type `vary down` again, or else give back each file:",
            journal.display()
        );
        lines.insert(0, why);
    }
    lines
}

/// The command that takes Vary out of the user's file of `client`; `None` if it does not have what Vary wrote there.
fn command_for(client: &Client) -> Option<String> {
    let path = user_file(client, System::current(), &variable).ok()?;
    let file = ClientFile::read(path).ok()?;
    let text = file.text.as_deref()?;
    let record = Record::read(&file).ok()??;
    let mut written = record.entries.iter().filter(|it| it.entry.is_some());
    let is_there = written.any(|written| {
        let keys: Vec<&str> = written.container.iter().map(String::as_str).collect();
        let now = ClientText::new(client.syntax, text).entries(&keys).ok();
        // If it cannot be read, the command says where.
        now.is_none_or(|now| now.iter().any(|(name, _)| *name == written.name))
    });
    let has_backup = record.is_created || file.backup().exists();
    (is_there && has_backup).then(|| {
        let shown = file.path.display();
        format!("{shown} has Vary: {}", remove_command(client, false))
    })
}
