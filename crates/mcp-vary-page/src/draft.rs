//! Variants as the configuration writes them and the clients that get them, what a change of one would list, and writing it.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use mcp_vary_gateway::{Gateway, VariantConfig};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use similar::TextDiff;

use crate::callers::NameRules;
use crate::catalog::{CountedCatalog, CountedVariant};
use crate::events::Clock;
use crate::response::{PageAnswer, failure, json as json_answer};

/// The variants and rules of the configuration as they are written, from the program that reads it.
pub trait VariantSource: Send + Sync {
    /// The entry of the variant `id` in the configuration; `None` without one.
    ///
    /// # Errors
    ///
    /// When the configuration cannot be read.
    fn written(&self, id: &str) -> Result<Option<WrittenVariant>, String>;

    /// The variant `id` if its entry had this value, and with `clients` if rules gave it to these clients.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    fn draft(
        &self,
        id: &str,
        value: Value,
        clients: Option<&[String]>,
    ) -> Result<DraftedVariant, String>;

    /// Writes this value of the variant `id`, and with `clients` rules that give it to these clients, if the configuration still
    /// has the `digest`.
    ///
    /// # Errors
    ///
    /// Why nothing is written.
    fn save(
        &self,
        id: &str,
        value: &Value,
        clients: Option<&[String]>,
        digest: &str,
    ) -> Result<(), String>;

    /// Undoes the last save, if nothing was written since.
    ///
    /// # Errors
    ///
    /// Why nothing is written.
    fn undo(&self) -> Result<(), String>;

    /// The rules of the configuration as they are written, without secrets.
    ///
    /// # Errors
    ///
    /// When the configuration cannot be read.
    fn rules(&self) -> Result<Vec<WrittenRule>, String>;

    /// The directory in which the program runs, with which the page says how to start it again; `None` if that is not known.
    fn directory(&self) -> Option<String>;

    /// What is in vain in the configuration before the servers of `gateway`, soon ends, or cannot be read.
    fn problems(&self, gateway: &Gateway) -> Vec<SetupProblem>;
}

mcp_vary_base::debug_by_name!(dyn VariantSource);

/// A rule as it is written.
#[derive(Clone, Debug, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "the program builds it")]
pub struct WrittenRule {
    /// What reports call it: its name, or its position such as `access[0]`.
    #[serde(rename = "rule")]
    pub name: String,
    /// The rule on a line.
    pub text: String,
    /// The file.
    pub file: String,
    /// The line of the file at which the rule begins.
    pub line: usize,
}

/// A part of the configuration that should change.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_structs, reason = "the program builds it")]
pub struct SetupProblem {
    /// The file and the line, as editors open it; empty for what is not in a file.
    pub place: String,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub fix: String,
    /// The variant that it is about.
    pub variant: Option<String>,
    /// How soon.
    pub kind: SetupKind,
}

/// How soon a part of the configuration should change.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_enums, reason = "the program builds it")]
pub enum SetupKind {
    /// The file cannot be read, so that Vary could not start again.
    File,
    /// Some of it does not do what it says.
    #[default]
    Setting,
    /// Not now: it guards against what servers add later, or a server that was not read may have it.
    Note,
}

/// A variant as it is written.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the program builds it")]
pub struct WrittenVariant {
    /// Its entry.
    pub value: Value,
    /// The same as YAML, with its id.
    pub yaml: String,
    /// The names, or patterns of names, of clients that rules give it.
    pub clients: Vec<String>,
    /// The digest of the configuration that has it.
    pub digest: String,
    /// The last save, if it can be undone.
    pub last_save: Option<VariantSave>,
}

/// A save of a variant from the page.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the program builds it")]
pub struct VariantSave {
    /// The id of the variant.
    pub variant: String,
    /// When it was written, in microseconds since 1970-01-01 UTC.
    pub at: u64,
    /// Whether the configuration had no such variant before.
    pub is_new: bool,
}

impl VariantSave {
    fn to_json(&self) -> Value {
        json!({
            "variant": self.variant,
            "at": self.at / 1_000_000,
            "isNew": self.is_new,
        })
    }
}

/// A variant that is written nowhere.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the program builds it")]
pub struct DraftedVariant {
    /// What it shows.
    pub config: VariantConfig,
    /// Its entry as YAML, with its id.
    pub yaml: String,
    /// The file with it; or why that cannot be written.
    pub file: Result<DraftedFile, String>,
}

/// What may be shown of a file in which a variant is changed.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the program builds it")]
pub struct DraftedFile {
    /// Its name.
    pub name: String,
    /// Its lines as they are.
    pub before: String,
    /// Its lines with the change.
    pub after: String,
}

/// What the page sends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Draft {
    id: String,
    value: Value,
    /// Rules of clients stay as they are without these.
    clients: Option<Vec<String>>,
}

/// What the page sends to write a variant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Save {
    id: String,
    value: Value,
    clients: Option<Vec<String>>,
    digest: String,
}

/// The response to `GET /api/variant`.
pub(crate) fn variant(source: &dyn VariantSource, id: &str) -> PageAnswer {
    match source.written(id) {
        Ok(Some(written)) => json_answer(&json!({
            "id": id,
            "value": written.value,
            "yaml": written.yaml,
            "clients": written.clients,
            "digest": written.digest,
            "lastSave": written.last_save.as_ref().map(VariantSave::to_json),
        })),
        Ok(None) => {
            let why = format!("the configuration has no variant `{id}`; send a draft to try one");
            failure(StatusCode::NOT_FOUND, &why)
        }
        Err(why) => failure(StatusCode::INTERNAL_SERVER_ERROR, &why),
    }
}

/// The response to `GET /api/rules`.
pub(crate) fn rules(source: &dyn VariantSource) -> PageAnswer {
    match source.rules() {
        Ok(rules) => json_answer(&json!({"rules": rules, "directory": source.directory()})),
        Err(why) => failure(StatusCode::INTERNAL_SERVER_ERROR, &why),
    }
}

/// The response to `POST /api/save` before the configuration is read again.
pub(crate) fn save(source: &dyn VariantSource, body: &Bytes) -> PageAnswer {
    match serde_json::from_slice::<Save>(body) {
        Ok(save) => {
            let clients = save.clients.as_deref();
            answer_to_write(source.save(&save.id, &save.value, clients, &save.digest))
        }
        Err(error) => failure(StatusCode::BAD_REQUEST, &format!("the request: {error}")),
    }
}

/// The response to `POST /api/save` and `POST /api/undo`, after the file was written or was not.
pub(crate) fn answer_to_write(outcome: Result<(), String>) -> PageAnswer {
    match outcome {
        Ok(()) => json_answer(&json!({})),
        Err(why) => failure(StatusCode::CONFLICT, &why),
    }
}

/// The response to `POST /api/draft`. It counts tokens: call it where nothing else waits.
pub(crate) fn respond(
    source: &dyn VariantSource,
    gateway: &Gateway,
    catalog: &CountedCatalog,
    body: &Bytes,
    clock: Clock,
) -> PageAnswer {
    let read = serde_json::from_slice(body).map_err(|error| format!("the request: {error}"));
    let answer = read.and_then(|draft: Draft| {
        let Draft { id, value, clients } = draft;
        let written = source.written(&id)?;
        let drafted = source.draft(&id, value, clients.as_deref())?;
        let yaml = written.as_ref().map_or("", |written| &written.yaml);
        let mut answer = to_json(gateway, &id, yaml, &drafted);
        answer["before"] = catalog.tokens(gateway, &id).unwrap_or(0).into();
        let before = written.map(|written| written.clients).unwrap_or_default();
        let rules = NameRules {
            id: &id,
            names: clients.as_deref().unwrap_or(&before),
            written: &before,
        };
        answer["callers"] = rules.callers(gateway, clock);
        Ok(answer)
    });
    match answer {
        Ok(answer) => json_answer(&answer),
        Err(why) => failure(StatusCode::BAD_REQUEST, &why),
    }
}

/// What a draft lists and costs, and how it differs from what is `written`.
pub(crate) fn to_json(
    gateway: &Gateway,
    id: &str,
    written: &str,
    drafted: &DraftedVariant,
) -> Value {
    let listed = gateway.tools_of_variant(&drafted.config);
    let counted = listed.as_ref().map(CountedVariant::of);
    let reasons = gateway.hidden_tools_of_variant(&drafted.config);
    let tools = gateway.servers().into_iter().flat_map(|server| {
        let tools = gateway.server_tools(&server.name).into_iter();
        let (counted, reasons) = (&counted, &reasons);
        tools.map(move |(name, _)| {
            let shown = counted
                .as_ref()
                .and_then(|counted| counted.shown(&server.name, &name));
            let (shown, tokens) = shown.unzip();
            let key = (server.name.clone(), name);
            let hidden = reasons.get(&key);
            json!({
                "server": key.0,
                "name": key.1,
                "shown": shown,
                "tokens": tokens.unwrap_or(0),
                "hidden": hidden.map(|hidden| &hidden.detail),
                "isLocked": hidden.is_some_and(|hidden| hidden.is_locked),
            })
        })
    });
    let (diff, unsavable) = match &drafted.file {
        Ok(file) => (unified_diff(&file.name, &file.before, &file.after), None),
        Err(why) => (unified_diff(id, written, &drafted.yaml), Some(why)),
    };
    let found = gateway.mistakes_in_variant(&drafted.config).into_iter();
    let mistakes = found.filter(|diagnostic| !diagnostic.is_note());
    json!({
        "id": id,
        "tools": tools.collect::<Value>(),
        "warnings": mistakes.map(|mistake| mistake.to_string()).collect::<Value>(),
        "tokens": counted.as_ref().map_or(0, |counted| counted.tokens),
        "yaml": drafted.yaml,
        "diff": diff,
        "unsavable": unsavable,
    })
}

fn unified_diff(name: &str, before: &str, after: &str) -> String {
    let mut settings = TextDiff::configure();
    let diff = settings.timeout(DIFF_TIMEOUT).diff_lines(before, after);
    diff.unified_diff().header(name, name).to_string()
}

/// The longest time in which the shortest difference is looked for.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);
