//! The method table: the gateway on one screen.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_vary::cursor::{self, Binding};
use mcp_vary::error::{Error, Identifier};
use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::variant::VariantId;

use crate::bridge::{self, Caching, Upward};
use crate::catalog::Catalog;
use crate::catalog::listing::ListKind;
use crate::catalog::view::Tool;
use crate::client::Client;
use crate::gateway::Gateway;
use crate::log_level::{level_from_name, level_name};
use crate::mcp_header;
use crate::params::Params;
use crate::reply::{self, Failure, Reply};
use crate::revision::Era;
use crate::running::{Finish, Progress, Running};
use crate::shape::Shaping;
use crate::upstream::{Owner, Request};
use crate::wire;

/// A request from a client, its parts as written.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) id: &'a str,
    pub(crate) method: &'a str,
    pub(crate) params: Params<'a>,
    /// The headers of a modern HTTP request, which must agree with the body.
    pub(crate) headers: Option<&'a HeaderMap>,
}

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The gateway answered.
    Done(Reply),
    /// The server works on it.
    Running(Box<Running>),
}

/// In which eras a method exists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum In {
    Legacy,
    Modern,
    Both,
}

/// What is done for a method.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Ping,
    Discover,
    SetLevel,
    List(ListKind),
    Call,
    Read,
    Prompt,
    Complete,
}

/// `initialize` and notifications belong to the fronts, since they make and use sessions.
const METHODS: &[(&str, In, Action)] = &[
    ("ping", In::Legacy, Action::Ping),
    ("server/discover", In::Modern, Action::Discover),
    ("logging/setLevel", In::Legacy, Action::SetLevel),
    ("tools/list", In::Both, Action::List(ListKind::Tools)),
    ("tools/call", In::Both, Action::Call),
    (
        "resources/list",
        In::Both,
        Action::List(ListKind::Resources),
    ),
    (
        "resources/templates/list",
        In::Both,
        Action::List(ListKind::Templates),
    ),
    ("resources/read", In::Both, Action::Read),
    ("prompts/list", In::Both, Action::List(ListKind::Prompts)),
    ("prompts/get", In::Both, Action::Prompt),
    ("completion/complete", In::Both, Action::Complete),
];

/// Known methods that this gateway does not carry, and what it says.
const NOT_CARRIED: &[(&str, &str)] = &[
    (
        "resources/subscribe",
        "subscriptions are not offered by this gateway",
    ),
    (
        "resources/unsubscribe",
        "subscriptions are not offered by this gateway",
    ),
    (
        "subscriptions/listen",
        "subscriptions are not offered by this gateway",
    ),
    ("tasks/", "tasks are not offered by this gateway"),
];

/// Answers a request, or hands it to the server.
pub(crate) async fn dispatch(gateway: &Arc<Gateway>, client: &Client, asked: Asked<'_>) -> Outcome {
    let id = asked.id;
    let outcome = match action(asked.method, client.era()) {
        Ok(action) => act(gateway, client, asked, action).await,
        Err(failure) => Err(failure),
    };
    outcome.unwrap_or_else(|failure| Outcome::Done(failure.reply(Some(id), client.era())))
}

fn action(method: &str, era: Era) -> Result<Action, Failure> {
    let row = METHODS.iter().find(|(name, _, _)| *name == method);
    match row {
        Some((_, In::Both, action)) => Ok(*action),
        Some((_, In::Legacy, action)) if era == Era::Legacy => Ok(*action),
        Some((_, In::Modern, action)) if era == Era::Modern => Ok(*action),
        _ => Err(unknown(method)),
    }
}

fn unknown(method: &str) -> Failure {
    let known = NOT_CARRIED
        .iter()
        .find(|(name, _)| method.starts_with(name));
    let cut: String = method.chars().take(128).collect();
    Failure::method_not_found(match known {
        Some((_, why)) => format!("Method not found: {cut}: {why}"),
        None => format!("Method not found: {cut}"),
    })
}

async fn act(
    gateway: &Arc<Gateway>,
    client: &Client,
    asked: Asked<'_>,
    action: Action,
) -> Result<Outcome, Failure> {
    let call = Call {
        gateway,
        client,
        asked,
        action,
    };
    match action {
        Action::Ping => Ok(call.answer("{}")),
        Action::Discover => Ok(call.discover()),
        Action::SetLevel => call.set_level().await,
        Action::List(kind) => call.list(kind).await,
        Action::Call => call.tool().await,
        Action::Read => call.read().await,
        Action::Prompt => call.prompt().await,
        Action::Complete => call.complete().await,
    }
}

/// One request on its way.
struct Call<'a> {
    gateway: &'a Arc<Gateway>,
    client: &'a Client,
    asked: Asked<'a>,
    action: Action,
}

/// What a request needs beside its params to go upstream.
#[derive(Debug, Default)]
struct Upstairs {
    name: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
    caching: Option<Caching>,
    shaping: Option<Shaping>,
}

impl Call<'_> {
    fn answer(&self, result: &str) -> Outcome {
        let sent = bridge::result_downward(result, self.client.era(), Caching::None);
        Outcome::Done(reply::result(self.asked.id, sent.as_bytes()))
    }

    fn discover(&self) -> Outcome {
        let capabilities = self
            .asked
            .params
            .meta
            .get(bridge::CLIENT_CAPABILITIES)
            .unwrap_or("{}");
        let result = self.gateway.discover(&self.gateway.know(capabilities));
        Outcome::Done(reply::result(self.asked.id, result.as_bytes()))
    }

    async fn set_level(&self) -> Result<Outcome, Failure> {
        self.requires("logging")?;
        let name = self.asked.params.string("level")?;
        let level = level_from_name(&name).ok_or_else(|| {
            Failure::invalid_params("`level` is no log level; use one of debug to emergency")
        })?;
        if let Some(session) = &self.client.session {
            session.set_log_level(level);
        }
        self.gateway.log_from(level).await?;
        Ok(self.answer("{}"))
    }

    async fn list(&self, kind: ListKind) -> Result<Outcome, Failure> {
        if !self.gateway.catalog.offers(kind) {
            return Err(unknown(self.asked.method));
        }
        let variant = self.active()?;
        let first = self.first_item(variant, kind)?;
        let catalog = self
            .gateway
            .catalog
            .fresh(&self.gateway.upstream, kind)
            .await;
        let page = catalog.views[variant]
            .page(kind, self.client.era(), first)
            .map_err(|failure| failure.unwrap_or_else(|| self.invalid_cursor(variant)))?;
        let next = page.next().map(|at| self.seal(variant, kind, at));
        let result = page.result(next.as_deref());
        Ok(Outcome::Done(reply::result(self.asked.id, &result)))
    }

    async fn tool(mut self) -> Result<Outcome, Failure> {
        self.requires("tools")?;
        let name = self.asked.params.string("name")?;
        let variant = self.active()?;
        let tool = self.known_tool(variant, &name).await?;
        let arguments = self.arguments()?;
        if let Some(headers) = self.asked.headers {
            mcp_header::check_params(&tool.headers, headers, arguments)?;
        }
        let headers = tool.headers.iter();
        let headers = headers
            .filter_map(|header| header.to_send(arguments))
            .collect();
        // Whoever does not offer tasks processes the request normally (2025-11-25, basic/utilities/tasks).
        self.asked.params.members.remove("task");
        let upstairs = Upstairs {
            name: Some(name),
            headers,
            shaping: self.shaping(variant, &tool),
            ..Upstairs::default()
        };
        self.forward(variant, upstairs).await
    }

    fn arguments(&self) -> Result<&str, Failure> {
        if !self.asked.params.members.contains("arguments") {
            return Ok("{}");
        }
        self.asked.params.object("arguments")
    }

    async fn read(self) -> Result<Outcome, Failure> {
        self.requires("resources")?;
        let uri = self.asked.params.string("uri")?;
        let variant = self.active()?;
        let caching = if self.gateway.config.variants {
            Caching::Never
        } else {
            Caching::AsTold
        };
        let upstairs = Upstairs {
            name: Some(uri),
            caching: Some(caching),
            ..Upstairs::default()
        };
        self.forward(variant, upstairs).await
    }

    async fn prompt(self) -> Result<Outcome, Failure> {
        self.requires("prompts")?;
        let name = self.asked.params.string("name")?;
        let variant = self.active()?;
        self.known_prompt(variant, &name).await?;
        let upstairs = Upstairs {
            name: Some(name),
            ..Upstairs::default()
        };
        self.forward(variant, upstairs).await
    }

    async fn complete(self) -> Result<Outcome, Failure> {
        self.requires("completions")?;
        for key in ["ref", "argument"] {
            self.asked.params.object(key)?;
        }
        let variant = self.active()?;
        self.forward(variant, Upstairs::default()).await
    }

    /// Refuses a method whose capability the server lacks.
    fn requires(&self, capability: &str) -> Result<(), Failure> {
        let has = self.gateway.offered.contains(capability);
        if has {
            Ok(())
        } else {
            Err(unknown(self.asked.method))
        }
    }

    /// The index of the variant that this request runs under (SV-8).
    fn active(&self) -> Result<usize, Failure> {
        let requested = self.asked.params.meta.get(SERVER_VARIANT_META);
        let Some(requested) = requested else {
            return Ok(self.client.order.first().copied().unwrap_or(0));
        };
        if !self.gateway.config.variants {
            return Err(Failure::from(&Error::VariantsNotSupported));
        }
        let id: Option<String> = serde_json::from_str(requested).ok();
        let index = id.and_then(|id| self.gateway.variant_index(&id));
        index.ok_or_else(|| self.invalid_variant(requested))
    }

    fn invalid_variant(&self, requested: &str) -> Failure {
        let requested = serde_json::from_str(requested).unwrap_or_default();
        let visible = self
            .client
            .order
            .iter()
            .map(|index| self.gateway.variant_id(*index).clone());
        Failure::from(&Error::invalid_variant(&requested, Some(visible.collect())))
    }

    /// The item that the page asked for starts with.
    fn first_item(&self, variant: usize, kind: ListKind) -> Result<usize, Failure> {
        let Some(cursor) = self.asked.params.members.get("cursor") else {
            return Ok(0);
        };
        let cursor: String = serde_json::from_str(cursor)
            .map_err(|_| Failure::invalid_params("`cursor` must be a string"))?;
        let binding = self.binding(variant, kind);
        let inner =
            cursor::open(&self.gateway.cursor_keys, &binding, &cursor).map_err(|error| {
                let error = error.into_error(binding.variant, |_| true);
                self.without_variant(Failure::from(&error))
            })?;
        inner.parse().map_err(|_| self.invalid_cursor(variant))
    }

    fn seal(&self, variant: usize, kind: ListKind, at: usize) -> String {
        cursor::seal(
            &self.gateway.cursor_keys,
            &self.binding(variant, kind),
            &at.to_string(),
        )
    }

    fn binding(&self, variant: usize, kind: ListKind) -> Binding<'_> {
        Binding {
            variant: self.gateway.variant_id(variant),
            method: kind.method(),
            principal: "",
        }
    }

    fn invalid_cursor(&self, variant: usize) -> Failure {
        let active = self.gateway.variant_id(variant).clone();
        self.without_variant(Failure::from(&Error::InvalidCursor { active }))
    }

    /// Where variants are off nothing is said of them (EXT-3).
    fn without_variant(&self, failure: Failure) -> Failure {
        if self.gateway.config.variants {
            failure
        } else {
            Failure::new(failure.code(), failure.message())
        }
    }

    /// The id of the active variant, unless variants are off.
    fn active_variant(&self, variant: usize) -> Option<VariantId> {
        let on = self.gateway.config.variants;
        on.then(|| self.gateway.variant_id(variant).clone())
    }

    async fn known_tool(&self, variant: usize, name: &str) -> Result<Arc<Tool>, Failure> {
        let find = |catalog: &Catalog| catalog.views[variant].tool(name).cloned();
        self.find(ListKind::Tools, find, || {
            self.not_found(variant, Identifier::Tool(name.to_owned()))
        })
        .await
    }

    async fn known_prompt(&self, variant: usize, name: &str) -> Result<(), Failure> {
        let find = |catalog: &Catalog| {
            let view = &catalog.views[variant];
            view.lists(ListKind::Prompts, name).then_some(())
        };
        self.find(ListKind::Prompts, find, || {
            self.not_found(variant, Identifier::Prompt(name.to_owned()))
        })
        .await
    }

    /// Finds something that a list must show to exist; a list that cannot be read says so itself.
    async fn find<T>(
        &self,
        kind: ListKind,
        find: impl Fn(&Catalog) -> Option<T>,
        not_found: impl FnOnce() -> Failure,
    ) -> Result<T, Failure> {
        let gateway = self.gateway;
        let found = gateway.catalog.find(&gateway.upstream, kind, find).await;
        found.map_err(|failure| failure.unwrap_or_else(not_found))
    }

    fn not_found(&self, variant: usize, what: Identifier) -> Failure {
        let active = self.active_variant(variant);
        let era = self.client.era();
        Failure::from(&Error::NotFound { what, active, era })
    }

    fn shaping(&self, variant: usize, tool: &Tool) -> Option<Shaping> {
        let features = self.client.features.clone()?;
        let config = &self.gateway.config;
        Some(Shaping {
            features,
            tool: tool.facts,
            always_both: config.always_both,
            lift_json_text: config.lift_json_text,
            era: self.client.era(),
            variant: self.active_variant(variant),
        })
    }

    async fn forward(mut self, variant: usize, upstairs: Upstairs) -> Result<Outcome, Failure> {
        let gateway = self.gateway;
        let progress = self.progress()?;
        let level = self.log_level()?;
        if let Some(level) = level {
            gateway.log_from_if_possible(level).await;
        }
        let upward = Upward {
            revision: gateway.upstream.hello().revision,
            capabilities: &gateway.config.upstream.capabilities,
            progress_token: progress.as_ref().map(|progress| progress.ours.as_str()),
            log_level: level.map(level_name),
        };
        let params = bridge::params_upward(&mut self.asked.params, &upward);
        let mut request = Request::new(self.asked.method.to_owned(), Some(params));
        request.progress_token = progress.as_ref().map(|progress| progress.ours.clone());
        request.name = upstairs.name;
        request.param_headers = upstairs.headers;
        request.owner = Some(Owner(self.client.id));
        let exchange = gateway.upstream.request(request).await?;
        let mut client = self.client.clone();
        client.log_level = level;
        let finish = Finish {
            id: self.asked.id.to_owned(),
            client,
            caching: upstairs.caching.unwrap_or(Caching::None),
            shaping: upstairs.shaping,
            active_variant: self.active_variant(variant),
            action: self.action,
            upstream: gateway.upstream.hello().era(),
            progress,
        };
        let running = Running::new(Arc::clone(gateway), exchange, finish);
        Ok(Outcome::Running(Box::new(running)))
    }

    fn progress(&self) -> Result<Option<Progress>, Failure> {
        let Some(theirs) = self.asked.params.meta.get(bridge::PROGRESS_TOKEN) else {
            return Ok(None);
        };
        if !wire::is_id(theirs) {
            let why = "`_meta.progressToken` must be a string or an integer";
            return Err(Failure::invalid_params(why));
        }
        let theirs = theirs.to_owned();
        let ours = self.gateway.new_progress_token().to_string();
        Ok(Some(Progress { ours, theirs }))
    }

    /// The level that this request's logs are wanted from.
    fn log_level(&self) -> Result<Option<u8>, Failure> {
        if self.client.era() == Era::Legacy {
            return Ok(self
                .client
                .session
                .as_ref()
                .and_then(|session| session.log_level()));
        }
        if !self.asked.params.meta.contains(bridge::LOG_LEVEL) {
            return Ok(None);
        }
        let level = self
            .asked
            .params
            .meta
            .get_str(bridge::LOG_LEVEL)
            .and_then(|name| level_from_name(&name));
        let bad =
            || Failure::invalid_params(format!("`_meta.{}` is no log level", bridge::LOG_LEVEL));
        level.map(Some).ok_or_else(bad)
    }
}
