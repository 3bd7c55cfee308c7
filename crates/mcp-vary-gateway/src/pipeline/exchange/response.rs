//! The server's answer, rewritten for the client.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_vary::json::edit;
use mcp_vary::variant::VariantId;
use mcp_vary_catalog::index::ViewIndex;
use mcp_vary_catalog::variant_set::VariantSet;
use mcp_vary_results::link_index::LinkSource;
use mcp_vary_results::name_rewriter::NameRewriter;
use mcp_vary_results::shaper::{ResultRewriter, RewriteRules, Shaper, rewrite_result};
use mcp_vary_results::skill_uris::SkillServer;
use mcp_vary_results::{ResourceRule, any_rule_matches_contents, has_json_contents};
use mcp_vary_view::UriMap;
use mcp_vary_wire::era::{self, Caching, ProgressTokens};
use mcp_vary_wire::response::{self, Reply, RpcError};
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::task_dialect::TaskDialect;

use super::services::ExchangeServices;
use super::undeclared::UndeclaredMethod;
use crate::mrtr::{self, RequestStateCodec, is_input_required};
use crate::pipeline::request::{MethodAction, TaskAction};
use crate::tasks::TaskIdCodec;
use crate::tasks::task_text::RESULT;
use mcp_vary_session::client::Client;

/// Turns the server's answer into the client's.
#[derive(Debug)]
pub(crate) struct ResponseContext {
    pub(crate) id: String,
    pub(crate) client: Arc<Client>,
    /// The variant that the request ran under; `None` when variants are off.
    pub(crate) active_variant: Option<VariantId>,
    pub(crate) action: MethodAction,
    pub(crate) server: Arc<str>,
    pub(crate) plan: ResponsePlan,
    /// The URIs that the view changed, if any.
    pub(crate) uris: Option<Arc<UriMap>>,
    /// The era of the server.
    pub(crate) upstream: Era,
}

/// How the response is rewritten, as the method decided.
#[derive(Debug, Default)]
pub(crate) struct ResponsePlan {
    /// The lowest level that the client wants logged for the request.
    pub(crate) log_level: Option<u8>,
    pub(crate) progress: Option<ProgressTokens>,
    /// The item of the request, if the links in its results are recorded.
    pub(crate) origin: Option<LinkSource>,
    /// The names that the view changed.
    pub(crate) names: Option<Arc<NameRewriter>>,
    pub(crate) caching: Caching,
    /// Seals its request states; `None` for a client or a method without round trips.
    pub(crate) request_state: Option<RequestStateCodec>,
    /// The operator's rules for resources.
    pub(crate) resource_rules: Arc<[ResourceRule]>,
    /// Whether JSON is rendered for clients that ask for another format.
    pub(crate) renders_json: bool,
    pub(crate) shape: Option<Shaper>,
    /// What is about skills. Nothing but their URIs is rewritten then.
    pub(crate) skills: Option<Box<SkillPlan>>,
    /// The task of the request, or that the request may create.
    pub(crate) task: Option<Box<TaskIdCodec>>,
    /// The method, if the server does not declare it and it is not known whether the server has it.
    pub(crate) undeclared: Option<Box<UndeclaredMethod>>,
}

/// How the response of a server about its skills is rewritten.
#[derive(Debug)]
pub(crate) struct SkillPlan {
    pub(crate) server: SkillServer,
    /// The view that shows the skills, and the variants that have it.
    pub(crate) variants: Arc<VariantSet>,
    pub(crate) view: ViewIndex,
}

impl SkillPlan {
    fn rename<'a>(&self, result: &'a str) -> Result<Cow<'a, str>, RpcError> {
        let config = self.variants.config(self.view);
        let name = &self.server.name;
        let shows = |uri: &str| config.shows_skill(uri, name);
        let renamed = self.server.rename_result(result, &shows);
        renamed.map_err(|why| RpcError::internal(format!("server `{name}`: {why}")))
    }
}

/// The next message for the client.
#[derive(Debug)]
pub(crate) enum ResponseEvent {
    /// A whole message that is not the answer: a notification, or a request to the client.
    Message(Bytes),
    /// The response; nothing follows.
    Done(Reply),
    /// The client cancelled; there is no response.
    Cancelled,
}

impl ResponseContext {
    pub(crate) fn result(&self, result: &str, services: &ExchangeServices) -> Reply {
        if !result.starts_with('{') {
            return self.failed(&RpcError::internal("the server's result is not an object"));
        }
        if is_input_required(result) {
            return self.input_required(result, services);
        }
        let dialect = self.plan.task.as_ref().map(|task| task.dialects.client);
        if let MethodAction::Task(_) = self.action
            && dialect == Some(TaskDialect::Extension)
            && let Err(why) =
                mrtr::validate_input_requests(result, self.client.server_request_support())
        {
            let why = format!("server `{}` {why}", self.server);
            return self.failed(&RpcError::internal(why));
        }
        let client_result = match self.transform(result) {
            Ok(client_result) => client_result,
            Err(failure) => return self.failed(&failure),
        };
        let client_result = if self.is_foreign() {
            edit::and_then(client_result, era::without_modern_members)
        } else {
            client_result
        };
        let caching = self.caching(result);
        let (start, end) = era::to_client_result_parts(&client_result, self.client.era(), caching);
        response::result_of_parts(&self.id, &[start.as_bytes(), end.as_bytes()])
    }

    /// How the client may cache the result: not at all if a rule matches one of the resources in it, or one is JSON,
    /// because other clients get it in another form (SV-17).
    fn caching(&self, result: &str) -> Caching {
        let rules = &self.plan.resource_rules;
        let caching = self.plan.caching;
        let may_cache = caching == Caching::AsDeclared && self.client.era() == Era::Modern;
        let depends_on_features = || {
            !rules.is_empty() && any_rule_matches_contents(rules, &self.server, result)
                || self.plan.renders_json && has_json_contents(result)
        };
        if may_cache && depends_on_features() {
            Caching::Never
        } else {
            caching
        }
    }

    /// The status of a task, for the client that requested it.
    pub(crate) fn task(&self, status: &str, services: &ExchangeServices) -> Reply {
        self.record_links(status, services);
        match edit::get(status, "error").and_then(RpcError::from_upstream) {
            Some(failure) => {
                let error = self.upstream_error(failure).to_json();
                self.result(&edit::set(status, "error", &error), services)
            }
            None => self.result(status, services),
        }
    }

    /// Records the links in the result, which can be read from then on.
    pub(super) fn record_links(&self, result: &str, services: &ExchangeServices) {
        let Some(origin) = &self.plan.origin else {
            return;
        };
        services.link_index.record(&self.server, origin, result);
        if let (MethodAction::Task(_), Some(result)) = (self.action, edit::get(result, RESULT)) {
            services.link_index.record(&self.server, origin, result);
        }
    }

    /// The client's result from the server's.
    ///
    /// # Errors
    ///
    /// When it describes a task that the client could not use, or a skill that cannot be shown.
    fn transform<'a>(&self, result: &'a str) -> Result<Cow<'a, str>, RpcError> {
        if let Some(skills) = &self.plan.skills {
            return skills.rename(result);
        }
        let Some(task) = &self.plan.task else {
            return Ok(self.shaped(result));
        };
        Ok(match self.action {
            MethodAction::Task(TaskAction::Result) => {
                edit::and_then(task.rename(result), |named| self.shaped(named))
            }
            // In the extension the status of the task contains the result.
            MethodAction::Task(_) => {
                let named = task.rename(result);
                let inner = edit::get(&named, RESULT).filter(|inner| inner.starts_with('{'));
                match inner.map(|inner| self.shaped(inner)) {
                    Some(Cow::Owned(shaped)) => {
                        Cow::Owned(edit::set(&named, RESULT, &shaped).into_owned())
                    }
                    _ => named,
                }
            }
            _ => match task.creation_result(result, &self.client, || self.rewriter()) {
                Some(outcome) => outcome?,
                None => self.shaped(result),
            },
        })
    }

    /// How long the connection is needed, if `result` says that a task was created on it.
    pub(super) fn task_ttl(&self, result: &str) -> Option<Duration> {
        match self.action {
            MethodAction::CallTool => self.plan.task.as_ref()?.lifetime(result),
            _ => None,
        }
    }

    /// The rewriter of results for the client, for use after the request.
    pub(crate) fn rewriter(&self) -> ResultRewriter {
        ResultRewriter {
            origin: self.plan.origin.clone(),
            shape: self.plan.shape.clone(),
            names: self.plan.names.clone(),
            uris: self.uris.clone(),
            is_foreign: self.is_foreign(),
            progress: self.plan.progress.clone(),
        }
    }

    /// Whether a result may contain something that the client's revision does not have.
    fn is_foreign(&self) -> bool {
        self.upstream == Era::Modern && self.client.era() == Era::Legacy
    }

    /// The result with the client's names and in its shape.
    fn shaped<'a>(&self, result: &'a str) -> Cow<'a, str> {
        let is_call = matches!(self.action, MethodAction::CallTool | MethodAction::Task(_));
        let parts = RewriteRules {
            shape: self.plan.shape.as_ref(),
            names: is_call.then_some(self.plan.names.as_deref()).flatten(),
            uris: self.uris.as_deref(),
            is_foreign: is_call && self.is_foreign(),
        };
        rewrite_result(result, &parts)
    }

    /// The answer to a result that requires input.
    fn input_required(&self, result: &str, services: &ExchangeServices) -> Reply {
        let Some(codec) = &self.plan.request_state else {
            let why = "the server asks for input where a request cannot have a second round";
            return self.failed(&RpcError::internal(why));
        };
        match mrtr::seal_input_required(
            result,
            codec,
            self.client.server_request_support(),
            &services.mrtr,
        ) {
            Ok(result) => response::result(&self.id, result.as_bytes()),
            Err(failure) => self.failed(&failure),
        }
    }

    pub(crate) fn failed(&self, failure: &RpcError) -> Reply {
        failure.reply(Some(&self.id), self.client.era())
    }

    /// The last event of a request that ends without the server's answer.
    pub(super) fn cancelled(&self) -> ResponseEvent {
        let session = self.client.session.as_ref();
        if session.is_some_and(|session| session.has_ended()) {
            ResponseEvent::Done(self.failed(&RpcError::session_not_found()))
        } else {
            ResponseEvent::Cancelled
        }
    }
}
