//! One file that `vary up` writes, and how it is given back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use mcp_vary_config::{ClientText, Diagnostic};
use mcp_vary_upstream::command_line::shell_word;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::diff::merged;
use crate::commands::connect::client::{Client, ClientName};
use crate::commands::connect::file::ClientFile;
use crate::commands::connect::record::Record;
use crate::failure::Failure;

/// A file that is written, as it was before and as it is after.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct Operation {
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
    /// The text before, without what Vary wrote; `None` if there was no file.
    pub(crate) before: Option<String>,
    /// Whether the file never had exactly the text before, since others had changed it beside what Vary wrote.
    #[serde(default)]
    pub(crate) is_rebuilt: bool,
    pub(crate) after: String,
    /// The mode of a new file.
    pub(crate) mode: u32,
    /// The text that is replaced, which may have what Vary wrote earlier.
    #[serde(skip)]
    pub(crate) replaced: Option<String>,
}

/// What a file is.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// The file of the client of this name.
    Client(String),
    /// What `vary connect` stores beside this file of a client.
    Beside(PathBuf),
    /// A file of the service.
    Service,
    /// The configuration, which stays.
    Configuration,
}

/// What became of a file that was to be given back.
pub(crate) struct TakenBack {
    /// A line about it.
    pub(crate) line: String,
    /// Whether it has everything that it had, and nothing of Vary.
    pub(crate) is_whole: bool,
    /// The copy of the file as it was, if that could not be given back.
    pub(crate) copy: Option<PathBuf>,
}

impl Operation {
    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    ///
    /// If it cannot be written, or if it is the file of a client that another program changed meanwhile.
    pub(crate) fn apply(&self) -> Result<(), Failure> {
        self.check_unchanged()?.write(&self.after)
    }

    /// The file as it is now, which can be written.
    ///
    /// # Errors
    ///
    /// If it cannot be written, or if it is the file of a client that another program changed meanwhile.
    pub(super) fn check_unchanged(&self) -> Result<ClientFile, Failure> {
        let file = self.read()?;
        if self.is_changed_in(&file) {
            return Err(Failure::command(format!(
                "{} was changed by another program meanwhile; run `vary up` again",
                self.path.display()
            )));
        }
        file.check_writable()?;
        Ok(file)
    }

    /// Whether it is the file of a client that another program changed since it was planned.
    pub(super) fn is_changed(&self) -> bool {
        self.read().is_ok_and(|file| self.is_changed_in(&file))
    }

    fn is_changed_in(&self, file: &ClientFile) -> bool {
        file.text != self.replaced && matches!(self.kind, Kind::Client(_))
    }

    fn read(&self) -> Result<ClientFile, Failure> {
        Ok(ClientFile::read(self.path.clone())?.with_mode(self.mode))
    }

    /// Whether others changed the client's file before it was written: it has nothing that would have been added.
    pub(super) fn is_superseded(&self) -> bool {
        let Kind::Client(id) = &self.kind else {
            return false;
        };
        let (Ok(named), Ok(file)) = (ClientName::from_str(id, false), self.read()) else {
            return false;
        };
        let client = named.client();
        let texts = [self.before.as_ref(), Some(&self.after), file.text.as_ref()];
        let [Some(before), Some(after), Some(now)] = texts.map(|text| servers(client, text?))
        else {
            return false;
        };
        let has = |list: &[(String, Value)], name: &str| list.iter().any(|(key, _)| key == name);
        let mut added = after.iter().filter(|(name, _)| !has(&before, name));
        added.all(|(name, _)| !has(&now, name))
    }

    /// Takes back what was written beside the file of a client that was not: it is as the `earlier` operation left it.
    ///
    /// # Errors
    ///
    /// If it cannot be read or written.
    pub(super) fn withdraw(&self, earlier: Option<&Self>) -> Result<(), Failure> {
        let file = self.read()?;
        if matches!(self.kind, Kind::Beside(_)) && file.text.as_ref() == Some(&self.after) {
            replace(&file, earlier.map(|operation| &*operation.after))?;
        }
        Ok(())
    }

    /// Removes what `processes` left that were killed while they wrote the file.
    pub(super) fn remove_drafts(&self, processes: &BTreeSet<u32>) {
        if let Ok(file) = self.read() {
            processes
                .iter()
                .for_each(|process| file.remove_draft(*process));
        }
    }

    /// Gives the file back as it was. If others changed it since, their change stays. What `processes` left
    /// that were killed is removed. Returns what there is to say about it.
    ///
    /// # Errors
    ///
    /// If it cannot be read or written.
    pub(crate) fn take_back(
        &self,
        processes: &BTreeSet<u32>,
    ) -> Result<Option<TakenBack>, Failure> {
        let file = self.read()?;
        processes
            .iter()
            .for_each(|process| file.remove_draft(*process));
        if self.kind == Kind::Configuration {
            return Ok(None);
        }
        let outcome = self.take_back_from(&file)?;
        let is_whole = outcome.as_ref().is_none_or(|outcome| outcome.is_whole);
        if is_whole && matches!(self.kind, Kind::Client(_)) {
            let beside = ClientFile::read(file.beside(BEFORE))?;
            if beside.text == self.before {
                // An earlier `vary down` stored it, which could not give the file back.
                beside.delete()?;
            }
        }
        Ok(outcome)
    }

    fn take_back_from(&self, file: &ClientFile) -> Result<Option<TakenBack>, Failure> {
        if file.text == self.before {
            return Ok(None);
        }
        let is_changed = file.text.as_ref() != Some(&self.after);
        match &self.kind {
            Kind::Client(_) if file.text.is_none() => self.report_gone(file).map(Some),
            Kind::Client(name) if is_changed => {
                let named = ClientName::from_str(name, false).map_err(Failure::command)?;
                let client = named.client();
                if !self.has_lost_most(client, file) {
                    return self.merge_back(client, file).map(Some);
                }
                // First: afterwards the file has more again.
                let copy = self.store_before(file)?;
                let outcome = self.merge_back(client, file)?;
                if !outcome.is_whole {
                    return Ok(Some(outcome));
                }
                let lost = "has lost most of what it had; Vary is taken out";
                Ok(Some(self.report_copy(lost, copy)))
            }
            Kind::Service if is_changed => Ok(Some(TakenBack {
                line: format!("{} was changed since, and stays", self.path.display()),
                is_whole: false,
                copy: None,
            })),
            _ => {
                replace(file, self.before.as_deref())?;
                let is_of_client = matches!(self.kind, Kind::Client(_));
                Ok(is_of_client.then(|| {
                    if self.is_rebuilt {
                        return self.without_vary();
                    }
                    TakenBack {
                        line: format!("{} is as it was", self.path.display()),
                        is_whole: true,
                        copy: None,
                    }
                }))
            }
        }
    }

    /// That Vary is taken out of a file that others changed.
    fn without_vary(&self) -> TakenBack {
        let shown = self.path.display();
        TakenBack {
            line: format!("{shown} was changed since: that stays, and Vary is taken out"),
            is_whole: true,
            copy: None,
        }
    }

    /// That the file of a client is gone, and where a copy of it is. Whoever removed its directory wants none.
    fn report_gone(&self, file: &ClientFile) -> Result<TakenBack, Failure> {
        let shown = self.path.display().to_string();
        let has_folder = self.path.parent().is_some_and(Path::is_dir);
        if !has_folder {
            return Ok(TakenBack {
                line: format!("{shown} is gone with its folder, and stays so"),
                is_whole: true,
                copy: None,
            });
        }
        let beside = self.store_before(file)?;
        Ok(self.report_copy("is gone", beside))
    }

    /// What happened to the file, and where the copy `beside` it is.
    fn report_copy(&self, what: &str, beside: PathBuf) -> TakenBack {
        let shown = self.path.display().to_string();
        let copy = shell_word(&beside.display().to_string());
        let target = shell_word(&shown);
        TakenBack {
            line: format!(
                "{shown} {what}; to have it as it was before Vary: mv {copy} {target}; or else: rm {copy}"
            ),
            is_whole: false,
            copy: Some(beside),
        }
    }

    /// Whether others left less than half of what the file had beside Vary.
    fn has_lost_most(&self, client: &Client, file: &ClientFile) -> bool {
        let now = file.text.as_deref().unwrap_or_default();
        let length_beside = |text: &str| rest_length(client, text, self.before.as_deref());
        match (length_beside(&self.after), length_beside(now)) {
            (Some(then), Some(left)) => left * 2 < then,
            _ => now.trim().is_empty(),
        }
    }

    /// Takes Vary out of a file that others changed, and puts back what it replaced.
    fn merge_back(&self, client: &Client, file: &ClientFile) -> Result<TakenBack, Failure> {
        let shown = self.path.display();
        if let Some(text) = self.merged_back(client, file) {
            replace(file, Some(&text))?;
            return Ok(self.without_vary());
        }
        let backup = ClientFile::read(file.backup())?.text;
        let record = Record::read(file).ok().flatten();
        let outcome = record
            .zip(file.text.as_deref())
            .map(|(record, text)| record.undo(client.syntax, text, backup.as_deref()));
        let undone = outcome
            .transpose()
            .map_err(|diagnostic| self.unreadable(file, &diagnostic))?;
        let (text, notes) = match undone {
            Some(undone) => (undone.text, undone.notes),
            None => (file.text.clone(), Vec::new()),
        };
        if text != file.text {
            replace(file, text.as_deref())?;
        }
        if self.is_given_back(client, text.as_deref()) {
            return Ok(self.without_vary());
        }
        let beside = self.store_before(file)?;
        let reasons = match &notes[..] {
            [] => String::new(),
            notes => format!(" ({})", notes.join("; ")),
        };
        Ok(TakenBack {
            line: format!(
                "{shown} was changed since, and not everything could be put back{reasons}; a copy of it as it was before \
                 Vary: {}",
                beside.display()
            ),
            is_whole: false,
            copy: Some(beside),
        })
    }

    /// The file as it was before with what others changed: servers and comments are where they were. `None` if the same
    /// lines were changed.
    fn merged_back(&self, client: &Client, file: &ClientFile) -> Option<String> {
        let text = merged(&self.after, self.before.as_deref()?, file.text.as_deref()?)?;
        self.is_given_back(client, Some(&text)).then_some(text)
    }

    /// Stores the file as it was before beside it, and returns the path.
    fn store_before(&self, file: &ClientFile) -> Result<PathBuf, Failure> {
        let beside = file.beside(BEFORE);
        let before = self.before.as_deref();
        replace(&ClientFile::read(beside.clone())?.with_mode(0o600), before)?;
        Ok(beside)
    }

    /// Why the file cannot be read, and what to do about it.
    fn unreadable(&self, file: &ClientFile, diagnostic: &Diagnostic) -> Failure {
        let beside = match self.store_before(file) {
            Ok(beside) => beside,
            Err(why) => return why,
        };
        let shown = file.path.display().to_string();
        let copy = shell_word(&beside.display().to_string());
        let target = shell_word(&shown);
        Failure::command(format!(
            "{shown}:{diagnostic}; or have it as it was before Vary: cp {copy} {target}"
        ))
    }

    /// Whether `text` has every server that was replaced, and nothing that was added.
    fn is_given_back(&self, client: &Client, text: Option<&str>) -> bool {
        let texts = [self.before.as_deref(), Some(&*self.after), text];
        let [before, after, now] = texts.map(|text| servers(client, text?));
        let (Some(before), Some(after), Some(now)) = (before, after, now) else {
            return false;
        };
        let is_back = |entry: &(String, Value)| after.contains(entry) || now.contains(entry);
        let is_gone = |entry: &(String, Value)| {
            before.contains(entry) || now.iter().all(|(name, _)| *name != entry.0)
        };
        before.iter().all(is_back) && after.iter().all(is_gone)
    }
}

/// The servers in the `text` of a file of `client`, with Vary; `None` if it cannot be read.
fn servers(client: &Client, text: &str) -> Option<Vec<(String, Value)>> {
    let container = client.container_in(text).ok()?;
    let keys: Vec<&str> = container.iter().map(String::as_str).collect();
    ClientText::new(client.syntax, text).entries(&keys).ok()
}

/// The length of what `text` has beside servers that `before` has not, as JSON without white space; `None` if it cannot be
/// read.
fn rest_length(client: &Client, text: &str, before: Option<&str>) -> Option<usize> {
    let length = |value: &Value| value.to_string().len();
    let known = servers(client, before?)?;
    let root = ClientText::new(client.syntax, text).entries(&[]).ok()?;
    let all: usize = root
        .iter()
        .map(|(name, value)| name.len() + length(value))
        .sum();
    let present = servers(client, text)?;
    let added = present
        .iter()
        .filter(|(name, _)| known.iter().all(|(other, _)| other != name));
    let of_added: usize = added.map(|(name, value)| name.len() + length(value)).sum();
    Some(all.saturating_sub(of_added))
}

/// Writes `text`, or removes the file without one.
fn replace(file: &ClientFile, text: Option<&str>) -> Result<(), Failure> {
    file.check_writable()?;
    match text {
        Some(text) => file.write(text),
        None => file.delete(),
    }
}

/// What ends the name of a file as it was before, if it could not be given back.
pub(super) const BEFORE: &str = ".vary-before";
