//! What `vary up` wrote, so that the next command finishes or takes back what one began that was killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp_vary_base::private_files;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::diff::digests;
use super::operation::{BEFORE, Kind, Operation};
use crate::commands::connect::file;
use crate::failure::Failure;
use crate::file::{unreadable, unwritable};
use crate::operator::client::JOURNAL;
use crate::print::{notice, sanitize_line};
use crate::service::Manager;
use crate::stop::Stop;

/// The key of the address in the configuration.
pub(super) const LISTEN_KEY: &str = "listen: ";
/// The line of the operator's address in the configuration, which is chosen at the start.
pub(super) const ADMIN: &str = "admin: 0\n";
/// How the list of servers of a variant in the configuration begins.
pub(super) const SERVERS: &str = "    servers:";

/// What `vary up` wrote, with the files as they were.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Journal {
    /// Whether a command is at work on the files, or was killed at it.
    pub(crate) is_unfinished: bool,
    /// Whether a file was given back with something of Vary, or without something that it had.
    #[serde(skip)]
    pub(crate) is_partly_undone: bool,
    /// The processes that were at work since nothing was unfinished.
    processes: BTreeSet<u32>,
    /// What runs the service; `None` if `vary up` is not in use.
    pub(crate) manager: Option<Manager>,
    /// The configuration as it was written, without what its user changed since; its digests, and which servers variants
    /// have, once everything is given back.
    pub(crate) generated: String,
    /// The variables that the servers need.
    pub(crate) variables: BTreeMap<String, String>,
    /// The entry that each client got, by the client's name.
    pub(crate) entries: BTreeMap<String, Value>,
    /// The servers that the service has, in the order of the configuration.
    pub(crate) servers: Vec<NamedServer>,
    /// The servers of projects that the service has, by the path of their file.
    pub(crate) projects: BTreeMap<PathBuf, ProjectServers>,
    /// The files in the order in which they were written.
    pub(crate) operations: Vec<Operation>,
    /// For each client that the command at work connects, the files that it has not reported as written.
    planned: Vec<Vec<Operation>>,
    /// Copies of clients' files that could not be given back.
    copies: BTreeSet<PathBuf>,
}

/// A server that was taken over.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct NamedServer {
    /// The path of the file that it comes from.
    pub(crate) file: PathBuf,
    /// Its name in the file.
    pub(crate) entry: String,
    /// Its name in the configuration.
    pub(crate) name: String,
}

/// A copy of the servers of a project's file, which may change later.
#[derive(Deserialize, Serialize)]
pub(crate) struct ProjectServers {
    /// The name of the client whose file it is.
    pub(crate) client: String,
    /// The directory of the project.
    pub(crate) directory: String,
    /// A file of the client, as JSON, with these servers.
    pub(crate) text: String,
}

impl Journal {
    /// The journal in `directory`; an empty one if nothing was written.
    pub(crate) fn read(directory: &Path) -> Result<Self, Failure> {
        let path = directory.join(JOURNAL);
        if !path.exists() {
            return Ok(Self::default());
        }
        let checked = private_files::check_regular(&path);
        let read = checked.and_then(|()| fs::read(&path));
        let bytes = read.map_err(|error| unreadable(&path, &error))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Failure::command(format!(
                "{} is not a journal of this Vary: {error}; a copy of each client's file as it was is beside it, with \
                 the ending `.vary-backup`",
                path.display()
            ))
        })
    }

    /// Stores it in one step, for its user alone.
    pub(crate) fn store(&mut self, directory: &Path) -> Result<(), Failure> {
        if !self.is_unfinished {
            self.processes.clear();
            self.planned.clear();
        }
        self.processes.insert(std::process::id());
        let path = directory.join(JOURNAL);
        let failed = |error: std::io::Error| unwritable(&path, &error);
        let text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        let draft = path.with_extension("draft");
        private_files::create_directory(directory).map_err(failed)?;
        let written = private_files::replace(&draft).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&draft, &path)
        });
        written.map_err(failed)
    }

    /// Removes the journal in `directory`.
    pub(crate) fn delete(directory: &Path) -> Result<(), Failure> {
        file::delete(&directory.join(JOURNAL))
    }

    /// What a later `vary up` has to know once everything is given back: of the configuration, only where it listens and the
    /// names of servers can be read in it.
    pub(crate) fn given_back(self) -> Self {
        Self {
            generated: digests(&self.generated, &[LISTEN_KEY, ADMIN, SERVERS]),
            copies: self.copies,
            ..Self::default()
        }
    }

    /// Adds `operations`. One of a file that is here already takes its place.
    pub(crate) fn add(&mut self, operations: &[Operation]) {
        let is_replaced = |known: &Operation| operations.iter().any(|new| new.path == known.path);
        self.operations.retain(|known| !is_replaced(known));
        self.operations.extend(operations.iter().cloned());
    }

    /// Records that the files of one client are about to be written.
    pub(crate) fn plan(&mut self, operations: &[Operation]) {
        self.planned.push(operations.to_vec());
    }

    /// Writes the files of one client that were planned.
    ///
    /// # Errors
    ///
    /// If one of them cannot be written, or if another program changed the client's file meanwhile. Then all are as they
    /// were.
    pub(crate) fn apply(&mut self, operations: &[Operation]) -> Result<(), Failure> {
        let is_done = |planned: &Operation| operations.iter().any(|new| new.path == planned.path);
        self.planned.retain(|planned| !planned.iter().any(is_done));
        let mut all = operations.iter();
        let checked = all.try_for_each(|operation| operation.check_unchanged().map(drop));
        let applied = checked.and_then(|()| operations.iter().try_for_each(Operation::apply));
        if applied.is_ok() {
            self.add(operations);
        } else {
            self.withdraw(operations)?;
        }
        applied
    }

    /// Takes back what was written for a client whose own file was not.
    fn withdraw(&self, operations: &[Operation]) -> Result<(), Failure> {
        operations.iter().try_for_each(|operation| {
            let mut known = self.operations.iter();
            let earlier = known.find(|earlier| earlier.path == operation.path);
            operation.withdraw(earlier)
        })
    }

    /// Adds what was planned by a command that was killed, without the files of clients that others changed before they were
    /// written.
    fn add_planned(&mut self) {
        for mut operations in std::mem::take(&mut self.planned) {
            let is_known = |new: &Operation| self.operations.iter().any(|it| it.path == new.path);
            let is_left =
                operations.iter().any(Operation::is_superseded) && !operations.iter().any(is_known);
            if is_left {
                for operation in &operations {
                    operation.remove_drafts(&self.processes);
                }
                operations.retain(|operation| matches!(operation.kind, Kind::Beside(_)));
            }
            self.add(&operations);
        }
    }

    /// A line for each copy of a client's file that is still there.
    pub(crate) fn copies(&self) -> Vec<String> {
        let left = self.copies.iter().filter(|copy| copy.exists());
        let lines = left.map(|copy| {
            let shown = copy.display().to_string();
            let file = shown.strip_suffix(BEFORE).unwrap_or(&shown);
            format!("{shown} is {file} as it was before Vary; move it back, or remove it")
        });
        lines.collect()
    }

    /// Gives back the clients' files, ends the service that `manager` runs, and gives back its files. Returns whether all
    /// are given back; what is not stays in the journal.
    pub(crate) async fn undo(
        &mut self,
        manager: Manager,
        directory: &Path,
        stop: &mut Stop,
    ) -> Result<bool, Failure> {
        self.is_unfinished = true;
        self.store(directory)?;
        let report = |line: &str| notice(&sanitize_line(line));
        let are_clients_whole = self.take_back(true, &report);
        self.store(directory)?;
        stop.unless_requested(manager.stop()).await?;
        let is_service_whole = self.take_back(false, &report);
        manager.removed().await;
        self.store(directory)?;
        Ok(are_clients_whole && is_service_whole)
    }

    /// Gives back the files of clients if `of_clients`, or else the other ones, the last one first, and reports what
    /// becomes of each. Returns whether all are given back; what is not stays in the journal.
    pub(crate) fn take_back(&mut self, of_clients: bool, report: &dyn Fn(&str)) -> bool {
        if of_clients {
            self.add_planned();
        }
        let mut left: Vec<Operation> = Vec::new();
        let mut failed: Vec<PathBuf> = Vec::new();
        for operation in std::mem::take(&mut self.operations).into_iter().rev() {
            let is_of_client = matches!(operation.kind, Kind::Client(_) | Kind::Beside(_));
            // Without what is beside it, the client's file cannot be given back later.
            let is_needed = matches!(&operation.kind, Kind::Beside(file) if failed.contains(file));
            if is_of_client != of_clients || is_needed {
                left.push(operation);
                continue;
            }
            match operation.take_back(&self.processes) {
                Ok(taken_back) => {
                    if let Some(outcome) = taken_back {
                        report(&outcome.line);
                        self.is_partly_undone |= !outcome.is_whole;
                        self.copies.extend(outcome.copy);
                    }
                }
                Err(failure) => {
                    report(&format!("not given back: {failure}"));
                    failed.push(operation.path.clone());
                    left.push(operation);
                }
            }
        }
        left.reverse();
        self.operations = left;
        failed.is_empty()
    }

    /// Whether Vary wrote to the file of the client called `name`.
    pub(crate) fn has_client(&self, name: &str) -> bool {
        let is_its = |it: &Operation| matches!(&it.kind, Kind::Client(client) if client == name);
        self.operations.iter().any(is_its)
    }
}

/// Waits until no other command of this user is at work on the clients' files. The lock lasts as long as the file is
/// open.
pub(crate) async fn lock(directory: &Path) -> Result<File, Failure> {
    let path = directory.join("up.lock");
    let created = private_files::create_directory(directory);
    let opened = created.and_then(|()| private_files::open(&path));
    let failed = |error| {
        let why = unwritable(&path, &error).into_looked_at();
        why.with_line("nothing was changed")
    };
    let file = opened.map_err(failed)?;
    let mut is_reported = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(unwritable(&path, &error)),
        }
        if !is_reported {
            notice("another `vary up` or `vary down` is at work; waiting for it");
            is_reported = true;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The pause between two checks whether the other command has ended.
const PAUSE: Duration = Duration::from_millis(50);
