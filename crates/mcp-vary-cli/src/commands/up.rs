//! `vary up`: takes over the servers of all clients of a user, and runs as their service.

pub(crate) mod args;
mod configuration_file;
mod configuration_text;
mod diff;
mod home;
pub(crate) mod journal;
mod operation;
mod permission_rules;
mod plan;
mod project;
mod starting;
mod survey;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use clap::ValueEnum as _;

use self::args::Up;
use self::home::Home;
use self::journal::Journal;
use self::plan::Plan;
use self::survey::Survey;
use crate::commands::connect::client::ClientName;
use crate::environment::variable;
use crate::failure::{Failure, Verdict};
use crate::file::unreadable;
use crate::print::{self, notice, progress, sanitize, sanitize_file, sanitize_line};
use crate::question::{has_person, is_confirmed};
use crate::service;
use crate::stop::Stop;

/// Shows the servers of all clients, and connects the clients to Vary once the user agrees.
pub(crate) async fn run(args: Up, mut stop: Stop) -> Result<Verdict, Failure> {
    if args.project {
        project::check_can_ask(&args)?;
    }
    check_home()?;
    let directory = service::directory()?;
    let _lock = if args.dry_run {
        None
    } else {
        Some(stop.unless_requested(journal::lock(&directory)).await?)
    };
    let mut journal = Journal::read(&directory)?;
    let is_repaired =
        !args.dry_run && undo_interrupted(&mut journal, &directory, &mut stop).await?;
    let unchanged = if is_repaired {
        "nothing else"
    } else {
        "nothing"
    };
    let path = configuration()?;
    configuration_file::check_configuration(&path, &journal, &directory)?;
    let Some(home) = find(&journal, args.project).await? else {
        return Ok(declined(unchanged));
    };
    leave_directory()?;
    // Later ones may have nothing to ask.
    if journal.manager.is_none() && !args.dry_run && !args.yes {
        check_can_ask(unchanged)?;
    }
    let survey = Survey::take(&home, &path, &journal, &mut stop)
        .await
        .map_err(|why| why.with_line(&format!("{unchanged} was changed")))?;
    print::data(&sanitize(&survey.table(&home)))?;
    let plan = Plan::new(&home, &survey, journal, path).await?;
    if !args.dry_run && plan.is_up().await? && plan.is_empty() {
        notice(&plan.running());
        return Ok(Verdict::Fine);
    }
    print::data(&sanitize(&survey.costs()))?;
    for note in survey.notes(&home) {
        progress(&sanitize_line(&note));
    }
    if args.dry_run {
        print::data(&sanitize_file(&plan.diff(&home)))?;
        return Ok(Verdict::Fine);
    }
    if plan.moves_several()
        && let Some(note) = survey.naming_note()
    {
        progress(&sanitize_line(&note));
    }
    if !plan.is_empty() && !args.yes && !is_agreed(&plan, home.command, unchanged).await? {
        return Ok(declined(unchanged));
    }
    let is_whole = plan.carry_out(&home, &directory, &mut stop).await?;
    Ok(Verdict::fine_if(is_whole))
}

/// The clients that have servers, with those of the current directory if `with_project`; `None` if the user does not
/// confirm those.
async fn find(journal: &Journal, with_project: bool) -> Result<Option<Home>, Failure> {
    let mut home = Home::find(&variable, journal);
    let left = if with_project { None } else { project::left() };
    for note in home.notes.iter().chain(&left) {
        notice(&sanitize_line(note));
    }
    if with_project && !project::add(&mut home).await? {
        return Ok(None);
    }
    if home.all().next().is_none() {
        for server in &home.staying {
            notice(&sanitize_line(&server.to_string()));
        }
        return Err(Failure::command(if home.has_unusable {
            "nothing to take over; repair that, then: vary up".to_owned()
        } else {
            nothing_found()
        }));
    }
    Ok(Some(home))
}

/// Reports that the user did not agree, and that `unchanged` was changed.
fn declined(unchanged: &str) -> Verdict {
    notice(&format!("{unchanged} was changed"));
    Verdict::Fine
}

/// Takes back what an earlier command began that was interrupted. Returns whether there was one.
async fn undo_interrupted(
    journal: &mut Journal,
    directory: &Path,
    stop: &mut Stop,
) -> Result<bool, Failure> {
    let Some(manager) = journal.manager else {
        return Ok(false);
    };
    if !journal.is_unfinished {
        return Ok(false);
    }
    notice("an earlier `vary up` or `vary down` was interrupted; taking back what it began");
    if !journal.undo(manager, directory, stop).await? {
        return Err(Failure::command("repair that, then type `vary up` again"));
    }
    journal.entries.clear();
    journal.servers.clear();
    journal.projects.clear();
    journal.is_unfinished = false;
    journal.store(directory)?;
    Ok(true)
}

/// Fails without a terminal, and says that `unchanged` was changed.
fn check_can_ask(unchanged: &str) -> Result<(), Failure> {
    if has_person() {
        return Ok(());
    }
    Err(Failure::command(format!(
        "without a terminal, Vary cannot ask, so {unchanged} was changed; add --yes, or --dry-run to see what would be \
         written"
    )))
}

/// Fails if the home directory is not one in which the files of clients can be.
fn check_home() -> Result<(), Failure> {
    let home = PathBuf::from(variable("HOME").unwrap_or_default());
    let why = if home.as_os_str().is_empty() {
        return Ok(());
    } else if home.is_relative() {
        "which is not a whole path"
    } else if !home.exists() {
        "which does not exist"
    } else {
        return Ok(());
    };
    let shown = home.display();
    Err(Failure::command(format!(
        "`HOME` is {shown}, {why}; set it to your home directory"
    )))
}

/// Whether the user agrees to the plan of `command`. Without a terminal or an answer that is an error, and `unchanged`
/// says what was not changed.
async fn is_agreed(plan: &Plan, command: &str, unchanged: &str) -> Result<bool, Failure> {
    check_can_ask(unchanged)?;
    let question = format!(
        "{} `vary down` gives all back. Go on? [y/N] ",
        plan.summary(command)
    );
    is_confirmed(&sanitize_line(&question))
        .await
        .map_err(|why| why.with_line(&format!("{unchanged} was changed")))
}

/// Changes to the directory of the service: what is in the current one must not decide which program a server is.
fn leave_directory() -> Result<(), Failure> {
    let home = service::home()?;
    std::env::set_current_dir(&home).map_err(|error| unreadable(&home, &error))
}

/// That no client has servers, and which ones were looked for.
fn nothing_found() -> String {
    let names = ClientName::value_variants().iter();
    let titles: Vec<&str> = names.map(|name| name.client().title).collect();
    let all = titles.join(", ");
    format!(
        "no client of yours has servers that Vary can take over (looked for: {all}); begin with one server: vary serve -- COMMAND"
    )
}

/// The configuration of the service.
pub(crate) fn configuration() -> Result<PathBuf, Failure> {
    let directory = service::configuration_directory()?;
    Ok(directory.join("vary").join("vary.yaml"))
}
