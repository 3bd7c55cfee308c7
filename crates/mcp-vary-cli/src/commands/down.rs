//! `vary down`: gives back every file that `vary up` wrote, and ends the service.

use std::path::Path;

use crate::commands::connect::file;
use crate::commands::up::args::Down;
use crate::commands::up::configuration;
use crate::commands::up::journal::{self, Journal};
use crate::failure::{Failure, Verdict};
use crate::print::{notice, sanitize};
use crate::service::{self, Manager};
use crate::stop::Stop;

/// Gives back the clients' files, ends the service, and removes its files.
pub(crate) async fn run(args: Down, mut stop: Stop) -> Result<Verdict, Failure> {
    let directory = service::directory()?;
    let _lock = stop.unless_requested(journal::lock(&directory)).await?;
    let mut journal = Journal::read(&directory)?;
    let report = |line: &str| notice(&sanitize(line));
    let mut is_whole = true;
    if journal.manager.is_empty() {
        notice("nothing to undo: `vary up` is not in use");
    } else {
        journal.is_unfinished = true;
        journal.store(&directory)?;
        is_whole = journal.take_back(true, &report);
        journal.store(&directory)?;
        let manager = Manager::named(&journal.manager);
        stop.unless_requested(manager.stop()).await?;
        is_whole &= journal.take_back(false, &report);
        manager.removed().await;
        notice(&format!("ended Vary, which ran {}", manager.description()));
    }
    if !is_whole {
        journal.store(&directory)?;
        notice("repair that, then type `vary down` again");
        return Ok(Verdict::Failed);
    }
    finish(journal.given_back(), &directory, args.all)?;
    Ok(Verdict::Fine)
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
        notice(&sanitize(&format!(
            "the configuration stays: {shown}; to remove it: vary down --all"
        )));
        return Ok(());
    }
    file::delete(&path)?;
    Journal::delete(directory)?;
    notice(&sanitize(&format!("removed {shown}")));
    Ok(())
}
