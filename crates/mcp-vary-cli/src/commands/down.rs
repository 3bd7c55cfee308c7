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
    let mut is_whole = true;
    if journal.manager.is_empty() {
        notice("nothing is to be undone: `vary up` has written nothing");
    } else {
        journal.is_unfinished = true;
        journal.store(&directory)?;
        is_whole = take_back(&mut journal, true);
        journal.store(&directory)?;
        let manager = Manager::named(&journal.manager);
        stop.unless_requested(manager.stop()).await?;
        is_whole &= take_back(&mut journal, false);
        manager.removed().await;
        notice(&format!("ended Vary, which ran {}", manager.description()));
    }
    if !is_whole {
        journal.store(&directory)?;
        notice("once that is repaired, `vary down` goes on");
        return Ok(Verdict::Failed);
    }
    finish(journal.given_back(), &directory, args.all)?;
    Ok(Verdict::Fine)
}

/// Gives back the files of clients if `of_clients`, or else those of the service. Returns whether all are.
fn take_back(journal: &mut Journal, of_clients: bool) -> bool {
    let (notes, failures) = journal.take_back(of_clients);
    notes.iter().for_each(|note| notice(&sanitize(note)));
    for failure in &failures {
        notice(&sanitize(&format!("not given back: {failure}")));
    }
    failures.is_empty()
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
