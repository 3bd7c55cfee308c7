//! The variants and rules of the served file for the operator's page.

use std::collections::BTreeSet;
use std::env;
use std::path::PathBuf;

use mcp_vary_base::io_error;
use mcp_vary_base::lock::Lock;
use mcp_vary_config::{
    File, FileVariants, SecretFiles, VariantEdit, clients_of_variant, digest, file_rules,
};
use mcp_vary_gateway::{Gateway, ServerReport, Status};
use mcp_vary_page::{
    DraftedFile, DraftedVariant, SetupKind, SetupProblem, VariantSave, VariantSource, WrittenRule,
    WrittenVariant,
};
use serde_json::Value;

use crate::commands::config::check::unmatched_rules;
use crate::commands::connect::file::ClientFile;
use crate::file;
use crate::serving::start_report::root_note;

/// The variants of the file as it is now; those that are built in without a file.
#[derive(Debug)]
pub(crate) struct ServedVariants {
    path: Option<PathBuf>,
    /// The servers of the file that are served; all if there is none.
    only: Vec<String>,
    /// Returns the microseconds since 1970-01-01 UTC.
    clock: fn() -> u64,
    last_save: Lock<Option<LastSave>>,
    /// What should change in the file as it could be read last.
    last_problems: Lock<Vec<SetupProblem>>,
    /// The rules at the start, by what reports call them, and as they are written. Uses of a rule are counted by its place, so that
    /// those of one that has moved since then are not known.
    first_rules: BTreeSet<(String, String)>,
}

/// What undoes a save.
struct LastSave {
    before: String,
    /// The digest of the file that was written.
    digest: String,
    save: VariantSave,
}

// Omits the text, which may contain secrets.
mcp_vary_base::debug_by_name!(LastSave);

impl ServedVariants {
    pub(crate) fn new(path: Option<PathBuf>, only: Vec<String>, clock: fn() -> u64) -> Self {
        let mut variants = Self {
            path,
            only,
            clock,
            last_save: Lock::default(),
            last_problems: Lock::default(),
            first_rules: BTreeSet::new(),
        };
        let rules = variants.rules().unwrap_or_default().into_iter();
        variants.first_rules = rules.map(|rule| (rule.name, rule.text)).collect();
        variants
    }

    /// The name of the file and its text; `None` without one.
    fn text(&self) -> Result<Option<(String, String)>, String> {
        let Some(path) = &self.path else {
            return Ok(None);
        };
        let name = path.display().to_string();
        match mcp_vary_config::text(path) {
            Ok(text) => Ok(Some((name, text))),
            Err(error) => {
                let why = io_error::describe(&error);
                Err(format!("{name} cannot be read: {why}"))
            }
        }
    }

    /// The file as it is now; `None` without one.
    fn file(&self) -> Result<Option<File>, String> {
        let (Some(path), Some((name, text))) = (&self.path, self.text()?) else {
            return Ok(None);
        };
        let secrets = SecretFiles::beside(path);
        let file = file::parse(&name, &text, &self.only, &secrets, None);
        file.map(Some)
            .map_err(|all| file::invalid_file(&all).to_string())
    }

    /// What the file notes itself, and what the lists of the servers show, from the top of the file.
    fn problems_of(&self, file: &File, gateway: &Gateway) -> Vec<SetupProblem> {
        let servers = gateway.servers();
        let is_read =
            |server: &ServerReport| server.handshake.is_some() && server.failed_lists.is_empty();
        let are_read = self.only.is_empty() && servers.iter().all(is_read);
        let noted = file.notes.iter().map(|note| (note.clone(), None, true));
        let variants = gateway.unmatched_overrides().into_iter();
        let of_variants = variants.map(|(id, found)| {
            let note = file.places.diagnostic(&id, &found);
            (note, Some(id.to_string()), true)
        });
        let rules = unmatched_rules(file, gateway).into_iter();
        let of_rules = rules.map(|note| (note, None, are_read));
        let mut notes: Vec<_> = noted.chain(of_variants).chain(of_rules).collect();
        notes.sort_by_key(|(note, ..)| note.at);
        // One entry of the file can match nothing on several servers.
        notes.dedup();
        let problems = notes.into_iter().map(|(note, variant, is_certain)| {
            let fix = note.fix.unwrap_or_default();
            SetupProblem {
                place: format!("{}:{}", file.name, note.at.line),
                what: format!("`{}` {}", note.key, note.what),
                // A guard, such as a pattern of `deny`, is for what servers add later.
                kind: if is_certain && !fix.starts_with("it will ") {
                    SetupKind::Setting
                } else {
                    SetupKind::Note
                },
                fix,
                variant,
            }
        });
        let root = root_note(&file.servers).map(|note| {
            let (what, fix) = note.split_once("; ").unwrap_or((note, ""));
            SetupProblem {
                what: what.replace("warning: ", ""),
                fix: fix.to_owned(),
                ..SetupProblem::default()
            }
        });
        problems
            .chain(root)
            .chain(self.unused_rules(gateway))
            .collect()
    }

    /// The rules of `clients` that gave no client its variant, once clients made some calls. In the first day, the client may be
    /// yet to come.
    fn unused_rules(&self, gateway: &Gateway) -> Vec<SetupProblem> {
        let Status {
            clients, uptime, ..
        } = gateway.status();
        let (kind, fix) = if uptime >= A_DAY {
            (
                SetupKind::Setting,
                "correct the rule, move it up, or remove it",
            )
        } else {
            (SetupKind::Note, "its client may be yet to come")
        };
        let calls: u64 = clients.iter().map(|client| client.calls).sum();
        let used: BTreeSet<_> = clients
            .into_iter()
            .filter_map(|client| client.rule)
            .collect();
        let rules = self.rules().unwrap_or_default().into_iter();
        let unused = rules.filter(|rule| {
            let gives_variant =
                rule.name.starts_with("clients[") && rule.text.contains("variant: ");
            let key = (rule.name.clone(), rule.text.clone());
            calls >= FEWEST_CALLS
                && gives_variant
                && !used.contains(&rule.name)
                && self.first_rules.contains(&key)
        });
        let problems = unused.map(
            |WrittenRule {
                 name,
                 text,
                 file,
                 line,
             }| SetupProblem {
                place: format!("{file}:{line}"),
                what: format!("`{name}` gave no client its variant since Vary started: `{text}`"),
                fix: fix.to_owned(),
                kind,
                ..SetupProblem::default()
            },
        );
        problems.collect()
    }

    /// The file, if it has this digest and can be replaced.
    fn unchanged(&self, expected: &str) -> Result<ClientFile, String> {
        let path = self.path.clone().ok_or(NO_FILE)?;
        let file = ClientFile::read(path).map_err(|failure| failure.to_string())?;
        if file.text.as_deref().map(digest).as_deref() != Some(expected) {
            return Err(CHANGED.to_owned());
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            if std::fs::metadata(&file.path).is_ok_and(|metadata| metadata.nlink() > 1) {
                return Err(LINKED.to_owned());
            }
        }
        Ok(file)
    }

    /// The last save, if the file still has the digest that it had then.
    fn last_save(&self, digest: &str) -> Option<VariantSave> {
        let last = self.last_save.lock();
        let undoable = last.as_ref().filter(|last| last.digest == digest);
        undoable.map(|last| last.save.clone())
    }

    /// Replaces the file, if the gateway can use the text.
    fn write(&self, file: &ClientFile, text: &str) -> Result<(), String> {
        let name = file.path.display().to_string();
        let secrets = SecretFiles::beside(&file.path);
        file::parse(&name, text, &self.only, &secrets, None)
            .map_err(|all| file::invalid_file(&all).to_string())?;
        file.replace(text).map_err(|failure| failure.to_string())
    }
}

/// The variants of the file with this name and text.
fn read(file: Option<&(String, String)>) -> Result<FileVariants, String> {
    match file {
        Some((name, text)) => FileVariants::read(name, text).map_err(|all| all.to_string()),
        None => Ok(FileVariants::built_in()),
    }
}

impl VariantSource for ServedVariants {
    fn written(&self, id: &str) -> Result<Option<WrittenVariant>, String> {
        let file = self.text()?;
        let variants = read(file.as_ref())?;
        let clients = match &file {
            Some((name, text)) => {
                clients_of_variant(name, text, id).map_err(|all| all.to_string())?
            }
            None => Vec::new(),
        };
        let digest = file.map_or_else(String::new, |(_, text)| digest(&text));
        let last_save = self.last_save(&digest);
        let written = variants.value(id).zip(variants.yaml(id));
        Ok(written.map(|(value, yaml)| WrittenVariant {
            value,
            yaml,
            clients,
            digest,
            last_save,
        }))
    }

    fn rules(&self) -> Result<Vec<WrittenRule>, String> {
        let Some((name, text)) = self.text()? else {
            return Ok(Vec::new());
        };
        let rules = file_rules(&name, &text).map_err(|all| all.to_string())?;
        let written = rules.into_iter().map(|rule| WrittenRule {
            name: rule.name,
            text: rule.text,
            file: name.clone(),
            line: rule.at.line,
        });
        Ok(written.collect())
    }

    fn directory(&self) -> Option<String> {
        env::current_dir().ok()?.into_os_string().into_string().ok()
    }

    fn problems(&self, gateway: &Gateway) -> Vec<SetupProblem> {
        let found = self.file().map(|file| {
            let found = file.map(|file| self.problems_of(&file, gateway));
            found.unwrap_or_default()
        });
        let mut last = self.last_problems.lock();
        match found {
            Ok(found) => {
                last.clone_from(&found);
                found
            }
            Err(what) => {
                let mistake = SetupProblem {
                    what,
                    fix: "correct the file: Vary cannot reload it, nor start with it".to_owned(),
                    kind: SetupKind::File,
                    ..SetupProblem::default()
                };
                [vec![mistake], last.clone()].concat()
            }
        }
    }

    fn draft(
        &self,
        id: &str,
        value: Value,
        clients: Option<&[String]>,
    ) -> Result<DraftedVariant, String> {
        let file = self.text()?;
        let edited = match &file {
            Some((name, text)) => {
                VariantEdit::new(name, text, id, &value, clients).map(|edit| DraftedFile {
                    name: name.clone(),
                    before: edit.shown_before,
                    after: edit.shown_after,
                })
            }
            None => Err(NO_FILE.to_owned()),
        };
        let draft = read(file.as_ref())?.draft(id, value)?;
        Ok(DraftedVariant {
            config: draft.config,
            yaml: draft.yaml,
            file: edited,
        })
    }

    fn save(
        &self,
        id: &str,
        value: &Value,
        clients: Option<&[String]>,
        expected: &str,
    ) -> Result<(), String> {
        let mut last = self.last_save.lock();
        let file = self.unchanged(expected)?;
        let before = file.text.clone().unwrap_or_default();
        let name = file.path.display().to_string();
        let edit = VariantEdit::new(&name, &before, id, value, clients)?;
        let variants = FileVariants::read(&name, &before).map_err(|all| all.to_string())?;
        self.write(&file, &edit.text)?;
        let save = VariantSave {
            variant: id.to_owned(),
            at: (self.clock)(),
            is_new: variants.value(id).is_none(),
        };
        let digest = digest(&edit.text);
        *last = Some(LastSave {
            before,
            digest,
            save,
        });
        Ok(())
    }

    fn undo(&self) -> Result<(), String> {
        let mut last = self.last_save.lock();
        let saved = last.as_ref().ok_or(NO_SAVE)?;
        let file = self.unchanged(&saved.digest)?;
        self.write(&file, &saved.before)?;
        *last = None;
        Ok(())
    }
}

/// The calls of clients after which a rule that none of them met is probably a mistake.
const FEWEST_CALLS: u64 = 20;
/// A day, in seconds.
const A_DAY: u64 = 86_400;
const NO_FILE: &str = "this gateway has no file to write to; copy the entry into one";
const NO_SAVE: &str =
    "nothing to undo: no variant was saved since Vary started, or since the last undo";
const CHANGED: &str =
    "the file was changed since the page read it; read it again, and look at the difference";
#[cfg(unix)]
const LINKED: &str =
    "the file has several names (hard links), which saving would make two files; edit it by hand";
