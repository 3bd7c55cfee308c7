//! `vary down`: gives back every file that `vary up` wrote, and ends the service.

use std::path::Path;

use crate::commands::connect::file;
use crate::commands::up::args::Down;
use crate::commands::up::configuration;
use crate::commands::up::journal::{self, Journal};
use crate::failure::{Failure, Verdict};
use crate::print::{notice, sanitize_line};
use crate::service;
use crate::stop::Stop;

/// Gives back the clients' files, ends the service, and removes its files.
pub(crate) async fn run(args: Down, mut stop: Stop) -> Result<Verdict, Failure> {
    let directory = service::directory()?;
    let _lock = stop.unless_requested(journal::lock(&directory)).await?;
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
