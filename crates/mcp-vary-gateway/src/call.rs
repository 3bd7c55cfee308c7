//! One request on its way: what each method checks, and what it needs to be sent on.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::future::join_all;
use http::{HeaderName, HeaderValue};
use mcp_vary::error::{Error, Identifier};
use mcp_vary::json;
use mcp_vary::view::{Candidate, Fault, PreparedPrompt, Selection, UriMap};
use tokio::sync::OwnedSemaphorePermit;

use crate::bridge::{self, Caching, Upward};
use crate::catalog::Catalog;
use crate::catalog::item::Place;
use crate::catalog::listing::ListKind;
use crate::catalog::shown::{Prompt, Tool};
use crate::class::{Class, InUse};
use crate::client::Client;
use crate::handshake;
use crate::kept::{Kept, Unread};
use crate::links::Origin;
use crate::log_level::{level_from_name, level_name};
use crate::mcp_header;
use crate::meta;
use crate::own::Held;
use crate::reply::{self, Failure};
use crate::revision::Era;
use crate::rounds::{self, Relay, Round, Subject};
use crate::route::{Action, Asked, Outcome, unknown};
use crate::running::{Again, Finish, Progress, Running};
use crate::session::NO_CLASS;
use crate::setup::Setup;
use crate::shape::Shape;
use crate::splice;
use crate::tasks::TaskNames;
use crate::upstream::{Owner, Repeat, Request, Upstream};
use crate::wire;
use crate::words::Words;

/// One request on its way.
pub(crate) struct Call<'a> {
    pub(crate) gateway: &'a Arc<Setup>,
    pub(crate) client: &'a Client,
    /// Whose connections and lists are used.
    pub(crate) class: Arc<Class>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) asked: Asked<'a>,
    pub(crate) action: Action,
}

/// The result of a call whose arguments the tool does not take: the model that made them can make others.
///
/// > Tool Execution Errors contain actionable feedback that language models can use to self-correct.
/// > (MCP 2025-11-25, server/tools, "Error Handling")
fn refused_arguments(faults: &[Fault]) -> String {
    let text = json::string(&sentence(faults));
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true}}"#)
}

fn sentence(faults: &[Fault]) -> String {
    let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
    format!("invalid arguments: {}", faults.join("; "))
}

/// What a request needs beside its params to go upstream.
#[derive(Debug, Default)]
pub(crate) struct Forwarding {
    /// The index of the server.
    pub(crate) server: usize,
    /// What the header `Mcp-Name` says.
    pub(crate) name: Option<String>,
    /// The list that has what is asked for, whose result may point to resources.
    pub(crate) of: Option<ListKind>,
    /// What is asked for, where that is not its `name`.
    pub(crate) origin: Option<String>,
    /// What the view calls otherwise than the server.
    pub(crate) words: Option<Arc<Words>>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) caching: Option<Caching>,
    pub(crate) shape: Option<Shape>,
    /// What the states of its rounds are bound to.
    pub(crate) subject: Option<Subject>,
    /// Whether it may be sent once more when the server is lost.
    pub(crate) repeatable: bool,
    /// The task that it is about, or that may come of it.
    pub(crate) task: Option<Box<TaskNames>>,
}

impl Call<'_> {
    pub(crate) fn answer(&self, result: &str) -> Outcome {
        let sent = bridge::result_downward(result, self.client.era(), Caching::None);
        Outcome::Done(reply::result(self.asked.id, sent.as_bytes()))
    }

    pub(crate) fn discover(&self) -> Outcome {
        let capabilities = self
            .asked
            .params
            .meta
            .get(meta::CLIENT_CAPABILITIES)
            .unwrap_or("{}");
        let known = self.gateway.know(capabilities);
        let result = self
            .gateway
            .discover(&self.catalog, &known, &self.client.offers);
        Outcome::Done(reply::result(self.asked.id, result.as_bytes()))
    }

    pub(crate) async fn set_level(&self) -> Result<Outcome, Failure> {
        self.requires("logging")?;
        let name = self.asked.params.string("level")?;
        let level = level_from_name(&name).ok_or_else(|| {
            Failure::invalid_params("`level` is no log level; use one of debug to emergency")
        })?;
        if let Some(session) = &self.client.session {
            session.set_log_level(level);
        }
        match self.class.sources() {
            [only] => only.log_from(level).await?,
            // One that is down takes the level with its next call.
            several => {
                drop(join_all(several.iter().map(|it| it.log_from_if_possible(level))).await)
            }
        }
        Ok(self.answer("{}"))
    }

    pub(crate) async fn list(&self, kind: ListKind) -> Result<Outcome, Failure> {
        if !self.catalog.offers(kind) {
            return self.nothing(kind);
        }
        let variant = self.active()?;
        let bookmark = self.bookmark(variant, kind)?;
        let catalog = self.class.catalog.fresh(kind).await;
        // A server that was replaced in the meantime may have taken the list with it.
        let view = catalog.view(kind, variant);
        let view = view.ok_or_else(|| unknown(self.asked.method))?;
        let page = view
            .page(self.client.era(), bookmark.as_deref())
            .map_err(|failure| failure.unwrap_or_else(|| self.invalid_cursor(variant)))?;
        let next = page.next().map(|next| view.bookmark(next));
        let next = next.map(|bookmark| self.seal(variant, kind, &bookmark));
        let (start, end) = page.result(next.as_deref());
        if kind == ListKind::Tools && next.is_none() && self.gateway.config.read_result {
            let list = format!("{}{end}", String::from_utf8_lossy(start));
            let list = self.with_reader(view, &list);
            return Ok(Outcome::Done(reply::result(self.asked.id, list.as_bytes())));
        }
        let parts = [start, end.as_bytes()];
        Ok(Outcome::Done(reply::result_of_parts(self.asked.id, &parts)))
    }

    /// The list of a kind that no server has: for a client that was offered resources it is empty.
    fn nothing(&self, kind: ListKind) -> Result<Outcome, Failure> {
        let features = self.client.features.as_deref();
        let is_offered = kind.capability() == "resources" && self.gateway.may_leave_out(features);
        if !is_offered {
            return Err(unknown(self.asked.method));
        }
        self.active()?;
        let result = format!(r#"{{"{}":[]}}"#, kind.items_key());
        let sent = bridge::result_downward(&result, self.client.era(), Caching::Never);
        Ok(Outcome::Done(reply::result(self.asked.id, sent.as_bytes())))
    }

    pub(crate) async fn tool(mut self) -> Result<Outcome, Failure> {
        self.requires("tools")?;
        let name = self.asked.params.string("name")?;
        let variant = self.active()?;
        if let Some(rest) = self.rest(variant, &name).await? {
            return Ok(rest);
        }
        let tool = self.known_tool(variant, &name).await?;
        let subject = self.subject(&name);
        let arguments = self.arguments()?;
        if let Some(headers) = self.asked.headers {
            mcp_header::check_params(&tool.headers, headers, arguments)?;
        }
        let prepared = tool.prepared.as_ref();
        let own = prepared.map_or(Ok(Cow::Borrowed(arguments)), |it| it.arguments(arguments));
        let own = match own {
            Ok(own) => own,
            Err(faults) => return Ok(self.answer(&refused_arguments(&faults))),
        };
        let headers = tool.own_headers.iter();
        let headers = headers.filter_map(|header| header.to_send(&own)).collect();
        if let Cow::Owned(own) = own {
            self.asked.params.members.set("arguments", own);
        }
        let task = self.task_of_call(variant, &tool.place);
        self.call_by_its_own_name(&name, &tool.place);
        let forwarding = Forwarding {
            server: tool.place.server,
            name: Some(tool.place.own.to_string()),
            of: Some(ListKind::Tools),
            words: tool.words.clone(),
            headers,
            shape: self.tool_shape(variant, &tool),
            subject,
            repeatable: tool.idempotent && self.repeats(tool.place.server) && task.is_none(),
            task,
            ..Forwarding::default()
        };
        self.forward(variant, forwarding).await
    }

    fn arguments(&self) -> Result<&str, Failure> {
        if !self.asked.params.members.contains("arguments") {
            return Ok("{}");
        }
        self.asked.params.object("arguments")
    }

    /// Puts the server's own name of a tool or prompt in the place of the one that clients know.
    fn call_by_its_own_name(&mut self, name: &str, place: &Place) {
        if *place.own != *name {
            let own = json::string(&place.own);
            self.asked.params.members.set("name", own);
        }
    }

    pub(crate) async fn read(mut self) -> Result<Outcome, Failure> {
        let uri = self.asked.params.string("uri").unwrap_or_default();
        if Kept::is_uri(&uri) {
            return self.read_kept(uri).await;
        }
        self.requires("resources")?;
        let uri = self.asked.params.string("uri")?;
        let variant = self.active()?;
        let caching = if self.gateway.config.variants {
            Caching::Never
        } else {
            Caching::AsTold
        };
        let own = self.own_uri(variant, &uri)?;
        let server = self.server_of_resource(variant, &uri, &own).await?;
        if own != uri {
            self.asked.params.members.set("uri", json::string(&own));
        }
        let forwarding = Forwarding {
            server,
            subject: self.subject(&uri),
            name: Some(own.into_owned()),
            shape: self.resource_shape(variant, server),
            of: Some(ListKind::Resources),
            caching: Some(caching),
            ..Forwarding::default()
        };
        self.forward(variant, forwarding).await
    }

    /// The rest of a result that was told in fewer words. It is no server's, and outside of the views.
    async fn read_kept(&self, uri: String) -> Result<Outcome, Failure> {
        let variant = self.active()?;
        self.may_read_kept(variant, &uri).await?;
        match self.gateway.lasting.kept.read(&uri, self.client.id) {
            Ok(rest) => {
                let era = self.client.era();
                let contents = rest.contents();
                let sent = bridge::result_downward(&contents, era, Caching::Never);
                Ok(Outcome::Done(reply::result(self.asked.id, sent.as_bytes())))
            }
            Err(Unread::Unknown) => Err(self.not_found(variant, Identifier::Resource(uri))),
            Err(Unread::Part(error)) => Err(Failure::invalid_params(format!("`uri`: {error}"))),
        }
    }

    pub(crate) async fn prompt(mut self) -> Result<Outcome, Failure> {
        self.requires("prompts")?;
        let name = self.asked.params.string("name")?;
        let variant = self.active()?;
        let prompt = self.known_prompt(variant, &name).await?;
        let place = &prompt.place;
        let subject = self.subject(&name);
        if let Some(prepared) = &prompt.prepared {
            let own = prepared.arguments(self.arguments()?);
            let own = own.map_err(|faults| Failure::invalid_params(sentence(&faults)))?;
            let own = own.into_owned();
            self.asked.params.members.set("arguments", own);
        }
        self.call_by_its_own_name(&name, place);
        let forwarding = Forwarding {
            server: place.server,
            name: Some(place.own.to_string()),
            of: Some(ListKind::Prompts),
            words: prompt.words.clone(),
            shape: self.prompt_shape(variant, &prompt),
            subject,
            ..Forwarding::default()
        };
        self.forward(variant, forwarding).await
    }

    /// A method of an extension is carried to the server that declares one, if that is only one.
    pub(crate) async fn of_extension(self) -> Result<Outcome, Failure> {
        let told = self.catalog.told.iter().enumerate();
        let mut declaring = told.filter(|(_, told)| {
            let hello = told.hello.as_ref();
            hello.is_some_and(|hello| handshake::declares_others(&hello.capabilities))
        });
        let (Some((server, _)), None) = (declaring.next(), declaring.next()) else {
            return Err(unknown(self.asked.method));
        };
        let variant = self.client.offers.default();
        let forwarding = Forwarding {
            server,
            ..Forwarding::default()
        };
        self.forward(variant, forwarding).await
    }

    pub(crate) async fn complete(mut self) -> Result<Outcome, Failure> {
        self.requires("completions")?;
        for key in ["ref", "argument"] {
            self.asked.params.object(key)?;
        }
        let variant = self.active()?;
        let (server, words) = self.server_of_reference(variant).await?;
        let forwarding = Forwarding {
            server,
            words,
            ..Forwarding::default()
        };
        self.forward(variant, forwarding).await
    }

    /// What its server calls the resource or template `uri` of the variant.
    pub(crate) fn own_uri<'u>(
        &self,
        variant: usize,
        uri: &'u str,
    ) -> Result<Cow<'u, str>, Failure> {
        let own = self.gateway.faces.uris(variant).own(uri);
        own.ok_or_else(|| self.not_found(variant, Identifier::Resource(uri.to_owned())))
    }

    /// The server to read `uri` from, which it calls `own`: the one that lists it, whose template may stand for
    /// it, or that pointed to it. Of a single server a variant that does not select among resources shows
    /// whatever there is.
    pub(crate) async fn server_of_resource(
        &self,
        variant: usize,
        uri: &str,
        own: &str,
    ) -> Result<usize, Failure> {
        let face = &self.gateway.faces.all[variant];
        if self.is_before_one_server() && !face.selects_resources() {
            return Ok(0);
        }
        let servers = &self.gateway.config.servers;
        let shows = |server: &usize| {
            let candidate = Candidate {
                name: own,
                own,
                server: &servers[*server].name,
                hints: None,
            };
            face.resources.shows(candidate)
        };
        let find = |catalog: &Catalog| {
            // What is not listed must be selected by its own URI, too.
            catalog.listed_resource(variant, own).or_else(|| {
                let template = catalog.resource(variant, own).filter(shows);
                template.or_else(|| self.linked(catalog, variant, own, shows))
            })
        };
        self.find(ListKind::Resources, find, || {
            self.not_found(variant, Identifier::Resource(uri.to_owned()))
        })
        .await
    }

    /// The first server that `may` have what it calls `own`, and of which something that the variant shows
    /// pointed to it.
    fn linked(
        &self,
        catalog: &Catalog,
        variant: usize,
        own: &str,
        may: impl Fn(&usize) -> bool,
    ) -> Option<usize> {
        let (links, servers) = (&self.gateway.lasting.links, &self.gateway.config.servers);
        let shows = |server: usize, origin: &Origin| {
            let place = Place {
                server,
                own: Arc::clone(&origin.own),
            };
            let view = catalog.view(origin.kind, variant);
            let is_listed = view.is_some_and(|view| view.lists(&place));
            let is_resource = origin.kind == ListKind::Resources;
            is_listed || is_resource && catalog.resource(variant, &origin.own) == Some(server)
        };
        let mut servers = servers.iter().enumerate();
        let found = servers.find(|(at, server)| {
            may(at) && links.leads(&server.name, own, |origin| shows(*at, origin))
        });
        found.map(|(at, _)| at)
    }

    /// The server of the prompt or template whose argument is to be completed, and what the view calls
    /// otherwise there; a prompt's name, or a template, becomes the server's own.
    async fn server_of_reference(
        &mut self,
        variant: usize,
    ) -> Result<(usize, Option<Arc<Words>>), Failure> {
        let reference = self.asked.params.object("ref")?.to_owned();
        let text = |key| serde_json::from_str::<String>(splice::get(&reference, key)?).ok();
        let face = &self.gateway.faces.all[variant];
        if let Some(name) = text("name") {
            let shows_all =
                face.prompts == Selection::default() && face.prompt_overrides.is_empty();
            let is_listed = self.catalog.prompt(variant, &name).is_some();
            if self.is_before_one_server() && shows_all && !is_listed {
                return Ok((0, None));
            }
            let prompt = self.known_prompt(variant, &name).await?;
            self.complete_own_argument(variant, &prompt)?;
            let place = &prompt.place;
            if *place.own != *name {
                let renamed = splice::set(&reference, "name", &json::string(&place.own));
                let renamed = renamed.into_owned();
                self.asked.params.members.set("ref", renamed);
            }
            return Ok((place.server, prompt.words.clone()));
        }
        let uri = text("uri").unwrap_or_default();
        let own = self.own_uri(variant, &uri)?;
        if own != uri {
            let renamed = splice::set(&reference, "uri", &json::string(&own)).into_owned();
            self.asked.params.members.set("ref", renamed);
        }
        if self.is_before_one_server() && !face.selects_resources() {
            return Ok((0, None));
        }
        let find = |catalog: &Catalog| {
            let listed = catalog.template(variant, &own);
            listed.or_else(|| catalog.resource(variant, &own))
        };
        let server = self.find(ListKind::Templates, find, || {
            self.not_found(variant, Identifier::Resource(uri.clone()))
        });
        Ok((server.await?, None))
    }

    /// Puts the server's own names of the argument to complete, and of those that were completed before, in
    /// the place of the view's.
    fn complete_own_argument(&mut self, variant: usize, prompt: &Prompt) -> Result<(), Failure> {
        let Some(prepared) = &prompt.prepared else {
            return Ok(());
        };
        let argument = self.asked.params.object("argument")?.to_owned();
        let name = splice::get(&argument, "name").unwrap_or("null");
        let name: String = serde_json::from_str(name).unwrap_or_default();
        let own = prepared.own_argument(&name);
        let own = own.ok_or_else(|| {
            let why = "`argument.name` is no argument of the prompt";
            self.about_the_variant(variant, Failure::invalid_params(why))
        })?;
        let renamed = splice::set(&argument, "name", &json::string(own)).into_owned();
        let context = self.own_context(prepared, &name, own).map_err(|faults| {
            let why = sentence(&faults);
            self.about_the_variant(variant, Failure::invalid_params(why))
        })?;
        self.asked.params.members.set("argument", renamed);
        if let Some(context) = context {
            self.asked.params.members.set("context", context);
        }
        Ok(())
    }

    /// What is said beside the argument `name`, which the server calls `completed`: the other arguments as `prompts/get` would send them, by
    /// the server's names. Nothing when there are none.
    ///
    /// > `context.arguments`: Previously-resolved variables (MCP 2025-06-18, server/utilities/completion)
    fn own_context(
        &self,
        prepared: &PreparedPrompt,
        name: &str,
        completed: &str,
    ) -> Result<Option<String>, Vec<Fault>> {
        let context = self.asked.params.members.get("context").unwrap_or("{}");
        let given = splice::get(context, "arguments").unwrap_or("{}");
        let own = prepared.arguments(given)?;
        // Its default is what a request without it gets; here it is being asked for.
        let own = match splice::get(given, name) {
            Some(_) => own,
            None => splice::cut(&own, completed).into_owned().into(),
        };
        if own == "{}" && !self.asked.params.members.contains("context") {
            return Ok(None);
        }
        Ok(Some(splice::set(context, "arguments", &own).into_owned()))
    }

    /// The failure with the active variant in its data.
    pub(crate) fn about_the_variant(&self, variant: usize, failure: Failure) -> Failure {
        match self.active_variant(variant) {
            Some(id) => failure.with_data(mcp_vary::error::with_active_variant(None, &id)),
            None => failure,
        }
    }

    /// What the variant calls resources, where that is not what the servers do.
    fn changed_uris(&self, variant: usize) -> Option<Arc<UriMap>> {
        let uris = self.gateway.faces.uris(variant);
        (!uris.is_empty()).then(|| Arc::clone(uris))
    }

    fn repeats(&self, server: usize) -> bool {
        self.class.sources()[server].line.config().repeat == Repeat::Idempotent
    }

    fn is_before_one_server(&self) -> bool {
        self.class.sources().len() == 1
    }

    /// Refuses a method whose capability the servers lack.
    fn requires(&self, capability: &str) -> Result<(), Failure> {
        if self.catalog.offered.contains(capability) {
            Ok(())
        } else {
            Err(unknown(self.asked.method))
        }
    }

    async fn known_tool(&self, variant: usize, name: &str) -> Result<Arc<Tool>, Failure> {
        let find = |catalog: &Catalog| catalog.tool(variant, name).cloned();
        self.find(ListKind::Tools, find, || {
            self.not_found(variant, Identifier::Tool(name.to_owned()))
        })
        .await
    }

    async fn known_prompt(&self, variant: usize, name: &str) -> Result<Arc<Prompt>, Failure> {
        let find = |catalog: &Catalog| catalog.prompt(variant, name).cloned();
        self.find(ListKind::Prompts, find, || {
            self.not_found(variant, Identifier::Prompt(name.to_owned()))
        })
        .await
    }

    /// Finds something that a list must show to exist; a list that cannot be read says so itself.
    pub(crate) async fn find<T>(
        &self,
        kind: ListKind,
        find: impl Fn(&Catalog) -> Option<T>,
        not_found: impl FnOnce() -> Failure,
    ) -> Result<T, Failure> {
        if let Some(found) = find(&self.catalog) {
            return Ok(found);
        }
        let found = self.class.catalog.find(kind, find).await;
        found.map_err(|failure| failure.unwrap_or_else(not_found))
    }

    pub(crate) fn not_found(&self, variant: usize, what: Identifier) -> Failure {
        let active = self.active_variant(variant);
        let era = self.client.era();
        Failure::from(&Error::NotFound { what, active, era })
    }

    pub(crate) async fn forward(
        mut self,
        variant: usize,
        mut forwarding: Forwarding,
    ) -> Result<Outcome, Failure> {
        let gateway = self.gateway;
        let source = Arc::clone(&self.class.sources()[forwarding.server]);
        let mut finish = self.finish(variant, &mut forwarding)?;
        let round = self.round(variant, finish.seal.as_ref())?;
        let turn = source.line.place().await?;
        if let Round::Held(call) = round {
            return self.go_on(call, turn, finish);
        }
        let alone = self.alone(forwarding.server).await?;
        let line = alone.as_ref().map_or(&source.line, Held::line);
        if let Some(level) = finish.client.log_level {
            line.log_from_if_possible(level).await;
        }
        let upstream = line.ready().await?;
        finish.upstream = upstream.hello().era();
        round.prepare(&mut self.asked.params, finish.upstream)?;
        let request = self.request(forwarding.server, &upstream, &finish, &mut forwarding);
        let again = forwarding.repeatable.then(|| Again {
            line: Arc::clone(line),
            request: request.clone(),
            upstream: Arc::clone(&upstream),
            since: None,
        });
        let relay = self.is_relayed(finish.upstream).then(|| {
            let (line, upstream) = (Arc::clone(line), Arc::clone(&upstream));
            Relay::new(
                line,
                upstream,
                request.clone(),
                gateway.config.limits.rounds,
            )
        });
        let exchange = upstream.request(request).await?;
        let mut running = Running::new(Arc::clone(&gateway.lasting), exchange, turn, finish);
        running.keep_open(InUse::new(&self.class));
        running.have_alone(alone);
        if let Some(relay) = relay {
            running.relay_with(relay);
        }
        if let Some(again) = again {
            running.repeat_with(again);
        }
        Ok(Outcome::Running(Box::new(running)))
    }

    /// What it takes to turn the answer into the client's.
    fn finish(&self, variant: usize, forwarding: &mut Forwarding) -> Result<Finish, Failure> {
        let source = &self.class.sources()[forwarding.server];
        let origin = forwarding.of.filter(|_| self.gateway.follows_links());
        let own = forwarding.origin.as_deref().or(forwarding.name.as_deref());
        let origin = origin.zip(own);
        let links_of = origin.map(|(kind, own)| {
            let own = own.into();
            (source.name().into(), Origin { kind, own })
        });
        let mut client = self.client.clone();
        client.log_level = self.log_level()?;
        let subject = forwarding.subject.take();
        Ok(Finish {
            id: self.asked.id.to_owned(),
            client,
            caching: forwarding.caching.unwrap_or(Caching::None),
            shape: forwarding.shape.take(),
            active_variant: self.active_variant(variant),
            action: self.action,
            links_of,
            words: forwarding.words.take(),
            uris: self.changed_uris(variant),
            seal: self.seal_of_rounds(variant, forwarding.server, subject),
            task: forwarding.task.take(),
            upstream: Era::Legacy,
            progress: self.progress()?,
        })
    }

    /// The request as the server gets it.
    fn request(
        &mut self,
        server: usize,
        upstream: &Upstream,
        finish: &Finish,
        forwarding: &mut Forwarding,
    ) -> Request {
        let told = self.told_to(server, upstream);
        let token = finish.progress.as_ref().map(|it| it.ours.as_str());
        let upward = Upward {
            revision: upstream.hello().revision,
            capabilities: &told,
            progress_token: token,
            log_level: finish.client.log_level.map(level_name),
        };
        let params = bridge::params_upward(&mut self.asked.params, &upward);
        let mut request = Request::new(self.asked.method.to_owned(), Some(params));
        request.progress_token = token.map(str::to_owned);
        request.name = forwarding.name.take();
        request.param_headers = std::mem::take(&mut forwarding.headers);
        request.owner = Some(Owner(self.client.id));
        request
    }

    /// Whether what a server of `era` asks in results is asked of the client in requests.
    fn is_relayed(&self, era: Era) -> bool {
        let is_between = era == Era::Modern && self.client.session.is_some();
        is_between && self.action.in_rounds().is_some()
    }

    /// Goes on with a call that waits for what the client says.
    fn go_on(
        &self,
        call: u64,
        turn: OwnedSemaphorePermit,
        mut finish: Finish,
    ) -> Result<Outcome, Failure> {
        let responses = self.responses()?;
        let lasting = &self.gateway.lasting;
        let call = lasting.held.take(call).ok_or_else(rounds::not_held)?;
        // The server knows its own token alone.
        finish.progress = match (finish.progress, &call.progress) {
            (Some(progress), Some(ours)) => Some(Progress {
                ours: ours.clone(),
                ..progress
            }),
            _ => None,
        };
        let running = Running::resumed(Arc::clone(lasting), call, &responses, turn, finish);
        Ok(Outcome::Running(Box::new(running)))
    }

    /// What the server is told of what the client can do: a class may hold more clients than one that can do the
    /// same, and a server without sessions is told of each.
    fn told_to(&self, server: usize, upstream: &Upstream) -> Arc<str> {
        let mirrored = self.client.mirrored();
        if upstream.hello().era() == Era::Legacy || mirrored == NO_CLASS {
            return upstream.capabilities().into();
        }
        self.gateway.classes.told_of(server, mirrored)
    }

    /// The connection that the client has alone, where the server could ask it something on the way.
    ///
    /// Modern servers ask by their results; one that knows both eras asks a client with a session as it would
    /// without a gateway.
    async fn alone(&self, server: usize) -> Result<Option<Held>, Failure> {
        if !self.class.can_be_asked {
            return Ok(None);
        }
        let upstream = self.class.sources()[server].line.ready().await?;
        let is_legacy = upstream.hello().era() == Era::Legacy;
        let is_like_its_client = self.client.session.is_some() && upstream.hello().knows_sessions();
        if !is_legacy && !is_like_its_client {
            return Ok(None);
        }
        let classes = &self.gateway.classes;
        let held = classes.alone(&self.class, server, self.client)?;
        held.ready().await?;
        Ok(Some(held))
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
        let ours = self.gateway.lasting.new_progress_token().to_string();
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
