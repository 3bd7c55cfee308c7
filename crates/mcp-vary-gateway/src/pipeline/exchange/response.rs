//! The server's answer, as the client gets it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::json::edit;
use mcp_vary::variant::VariantId;
use mcp_vary_catalog::link_index::LinkSource;
use mcp_vary_catalog::name_rewriter::NameRewriter;
use mcp_vary_catalog::uri_rewriter;
use mcp_vary_results::shaper::Shaper;
use mcp_vary_results::{ResourceRule, any_rule_matches_contents};
use mcp_vary_view::UriMap;
use mcp_vary_wire::era::{self, Caching};
use mcp_vary_wire::response::{self, Reply, RpcError};
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::task_dialect::TaskDialect;

use super::Step;
use crate::mrtr::{self, Seal, asks_for_input};
use crate::pipeline::methods::Undeclared;
use crate::pipeline::router::{Action, TaskAction};
use crate::pipeline::runtime::Lasting;
use crate::session::client::Client;
use crate::tasks::{RESULT, TaskNames};

/// What is needed to turn the server's answer into the client's.
#[derive(Debug)]
pub(crate) struct Finish {
    pub(crate) id: String,
    pub(crate) client: Client,
    /// The variant that the request ran under; `None` when variants are off.
    pub(crate) active_variant: Option<VariantId>,
    pub(crate) action: Action,
    pub(crate) server: Arc<str>,
    pub(crate) downward: Downward,
    /// What the view calls resources, where that is not what the servers do.
    pub(crate) uris: Option<Arc<UriMap>>,
    /// Seals the states of its rounds; none for a client or a method that knows no rounds.
    pub(crate) seal: Option<Seal>,
    /// The era of the server, whose results the client may not be able to read.
    pub(crate) upstream: Era,
    pub(crate) progress: Option<Progress>,
}

/// What a method knows of the way back.
#[derive(Debug, Default)]
pub(crate) struct Downward {
    /// What is asked, where what it points to can be read then.
    pub(crate) origin: Option<LinkSource>,
    /// What the view calls otherwise than the server.
    pub(crate) words: Option<Arc<NameRewriter>>,
    pub(crate) caching: Caching,
    /// What the operator makes of resources for some clients.
    pub(crate) resource_rules: Arc<[ResourceRule]>,
    pub(crate) shape: Option<Shaper>,
    /// The task that it is about, or that may come of it.
    pub(crate) task: Option<Box<TaskNames>>,
    /// The method, where the server does not declare it, and nobody knows whether it has it.
    pub(crate) undeclared: Option<Box<Undeclared>>,
}

/// The progress token towards the server, and the client's own.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    pub(crate) ours: String,
    pub(crate) theirs: String,
}

impl Finish {
    pub(crate) fn result(&self, result: &str, lasting: &Lasting) -> Reply {
        if !result.starts_with('{') {
            return self.failed(&RpcError::internal("the server's result is no object"));
        }
        if asks_for_input(result) {
            return self.input_required(result, lasting);
        }
        let asks = self.downward.task.as_ref().map(|task| task.forms.client);
        if let Action::Task(_) = self.action
            && asks == Some(TaskDialect::Extension)
            && let Err(why) = mrtr::may_be_asked(result, self.client.askable())
        {
            let why = format!("server `{}` {why}", self.server);
            return self.failed(&RpcError::internal(why));
        }
        let told = match self.told(result) {
            Ok(told) => told,
            Err(failure) => return self.failed(&failure),
        };
        let told = match self.is_foreign() {
            true => then(told, era::without_modern_members),
            false => told,
        };
        let caching = self.caching(result);
        let (start, rest) = era::to_client_result_parts(&told, self.client.era(), caching);
        response::result_of_parts(&self.id, &[start.as_bytes(), rest.as_bytes()])
    }

    /// How the client may cache the result: not at all if a rule is about one of the resources in it, since other
    /// clients get it otherwise (SV-17).
    fn caching(&self, result: &str) -> Caching {
        let (rules, caching) = (&self.downward.resource_rules, self.downward.caching);
        let is_modern = self.client.era() == Era::Modern;
        let may_keep = caching == Caching::AsDeclared && is_modern && !rules.is_empty();
        match may_keep && any_rule_matches_contents(rules, &self.server, result) {
            true => Caching::Never,
            false => caching,
        }
    }

    /// How a task stands, for a client that asked.
    pub(crate) fn task(&self, stands: &str, lasting: &Lasting) -> Reply {
        self.note_links(stands, lasting);
        match edit::get(stands, "error").and_then(RpcError::from_upstream) {
            Some(failure) => {
                let error = self.failure_as_told(failure).to_json();
                self.result(&edit::set(stands, "error", &error), lasting)
            }
            None => self.result(stands, lasting),
        }
    }

    /// Remembers what the result points to, since that can be read from then on.
    pub(super) fn note_links(&self, result: &str, lasting: &Lasting) {
        let Some(origin) = &self.downward.origin else {
            return;
        };
        lasting.links.record(&self.server, origin, result);
        if let (Action::Task(_), Some(result)) = (self.action, edit::get(result, RESULT)) {
            lasting.links.record(&self.server, origin, result);
        }
    }

    /// What the client is told where the server said `result`.
    ///
    /// # Errors
    ///
    /// When it says something of a task that the client could do nothing with.
    fn told<'a>(&self, result: &'a str) -> Result<Cow<'a, str>, RpcError> {
        let Some(task) = &self.downward.task else {
            return Ok(self.shaped(result));
        };
        Ok(match self.action {
            Action::Task(TaskAction::Result) => {
                let told = then(task.named(result), |named| self.shaped(named));
                match task.own.as_deref() {
                    Some(own) if task.forms.is_to_core() => Cow::Owned(task.relate(&told, own)),
                    _ => told,
                }
            }
            // The extension has the result in what it says of the task.
            Action::Task(_) => {
                task.stands(result);
                let named = task.downward(result);
                let inner = edit::get(&named, RESULT).filter(|inner| inner.starts_with('{'));
                match inner.map(|inner| self.shaped(inner)) {
                    Some(Cow::Owned(shaped)) => {
                        Cow::Owned(edit::set(&named, RESULT, &shaped).into_owned())
                    }
                    _ => named,
                }
            }
            _ => match task.of_made(result, &self.client, || self.retelling()) {
                Some(made) => made?,
                None if task.forms.is_to_core() => {
                    Cow::Owned(task.of_finished(&self.shaped(result), &self.client)?)
                }
                None => self.shaped(result),
            },
        })
    }

    /// For how long the connection is needed on which a task was made, where `result` says so.
    pub(super) fn task_lasts(&self, result: &str) -> Option<Duration> {
        let task = self.downward.task.as_ref();
        task.filter(|_| matches!(self.action, Action::Call))?
            .lasts(result)
    }

    /// How results are told to the client, for when there is no request any more.
    pub(crate) fn retelling(&self) -> Retelling {
        Retelling {
            origin: self.downward.origin.clone(),
            shape: self.downward.shape.clone(),
            words: self.downward.words.clone(),
            uris: self.uris.clone(),
            is_foreign: self.is_foreign(),
            progress: self.progress.clone(),
        }
    }

    /// Whether the client may not know what a result holds.
    fn is_foreign(&self) -> bool {
        self.upstream == Era::Modern && self.client.era() == Era::Legacy
    }

    /// The result in the client's words and shape.
    fn shaped<'a>(&self, result: &'a str) -> Cow<'a, str> {
        let is_call = matches!(self.action, Action::Call | Action::Task(_));
        let parts = Parts {
            shape: self.downward.shape.as_ref(),
            words: self.downward.words.as_deref().filter(|_| is_call),
            uris: self.uris.as_deref(),
            is_foreign: is_call && self.is_foreign(),
        };
        retold(result, &parts)
    }

    /// What a server asks of the client in a result.
    fn input_required(&self, result: &str, lasting: &Lasting) -> Reply {
        let Some(seal) = &self.seal else {
            let why = "the server asks for input where a request cannot have a second round";
            return self.failed(&RpcError::internal(why));
        };
        match mrtr::passed_on(result, seal, self.client.askable(), lasting) {
            Ok(result) => response::result(&self.id, result.as_bytes()),
            Err(failure) => self.failed(&failure),
        }
    }

    pub(crate) fn failed(&self, failure: &RpcError) -> Reply {
        failure.reply(Some(&self.id), self.client.era())
    }

    /// What is said to a request that ends without the server's answer.
    pub(super) fn withdrawn(&self) -> Step {
        let session = self.client.session.as_ref();
        match session.is_some_and(|session| session.has_ended()) {
            true => Step::Done(self.failed(&RpcError::session_not_found())),
            false => Step::Cancelled,
        }
    }
}

/// How the results of a call are told to one client.
#[derive(Clone, Debug)]
pub(crate) struct Retelling {
    /// What is asked, where what it points to can be read then.
    pub(crate) origin: Option<LinkSource>,
    shape: Option<Shaper>,
    words: Option<Arc<NameRewriter>>,
    uris: Option<Arc<UriMap>>,
    is_foreign: bool,
    /// How progress is told, for as long as a task goes on.
    pub(crate) progress: Option<Progress>,
}

impl Retelling {
    /// For a client that knows whatever a result of the server may hold, and hears of no progress.
    pub(crate) fn new(downward: Downward, uris: Option<Arc<UriMap>>) -> Self {
        Self {
            origin: downward.origin,
            shape: downward.shape,
            words: downward.words,
            uris,
            is_foreign: false,
            progress: None,
        }
    }

    pub(crate) fn parts(&self) -> Parts<'_> {
        Parts {
            shape: self.shape.as_ref(),
            words: self.words.as_deref(),
            uris: self.uris.as_deref(),
            is_foreign: self.is_foreign,
        }
    }
}

/// What a result is told by.
pub(crate) struct Parts<'a> {
    shape: Option<&'a Shaper>,
    words: Option<&'a NameRewriter>,
    uris: Option<&'a UriMap>,
    is_foreign: bool,
}

/// The result in the client's words and shape.
pub(crate) fn retold<'a>(result: &'a str, parts: &Parts<'_>) -> Cow<'a, str> {
    let told = match parts.words {
        Some(words) => words.rewrite_failed_result(result),
        None => Cow::Borrowed(result),
    };
    let told = match parts.uris {
        Some(uris) => then(told, |told| uri_rewriter::rewrite_result(uris, told)),
        None => told,
    };
    let shaped = match parts.shape {
        Some(shape) => then(told, |told| shape.apply(told)),
        None => told,
    };
    if !parts.is_foreign {
        return shaped;
    }
    then(shaped, era::drop_unsupported_structured_content)
}

/// What `step` makes of `text`; borrowed from whoever has the text for as long as nothing changes it.
fn then<'a>(text: Cow<'a, str>, step: impl Fn(&str) -> Cow<'_, str>) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => step(text),
        Cow::Owned(text) => match step(&text) {
            Cow::Borrowed(part) if part.len() == text.len() => Cow::Owned(text),
            changed => Cow::Owned(changed.into_owned()),
        },
    }
}
