//! A server whose variants the tests script, and four connections to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{
    CallParams, CallResult, Context, McpResult, PageParams, PromptParams, PromptResult, ReadParams,
    ReadResult, lifecycle, serve_over_http,
};
use crate::prelude::*;
use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::variant::VariantId;
use mcp_vary_rmcp::client::Client;
pub(crate) use mcp_vary_testkit::wait::soon;
use rmcp::model::*;
use rmcp::service::{
    ClientServiceExt as _, Peer, RoleClient, RunningService, ServiceExt as _, SubscriptionContext,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, ServerHandler};
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

type NotificationContext = rmcp::service::NotificationContext<RoleClient>;
type RequestContext = rmcp::service::RequestContext<RoleClient>;

/// A transport and an era.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Way {
    pub(crate) http: bool,
    pub(crate) modern: bool,
}

/// Every transport with every era.
pub(crate) const WAYS: [Way; 4] = [
    way(false, false),
    way(false, true),
    way(true, false),
    way(true, true),
];

const fn way(http: bool, modern: bool) -> Way {
    Way { http, modern }
}

/// One request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: &'static str,
    pub(crate) selector: Option<Value>,
    pub(crate) meta: RequestMetaObject,
}

/// A scripted server and the requests that it received.
#[derive(Clone)]
pub(crate) struct Scripted {
    script: Arc<Script>,
}

struct Script {
    capabilities: Mutex<ServerCapabilities>,
    /// The known variants, the default first.
    known: Mutex<Vec<String>>,
    ttl: Option<u64>,
    /// Whether the pages of a list repeat forever.
    circling: bool,
    /// The methods that always fail, and their errors.
    failing: Mutex<BTreeMap<&'static str, ErrorData>>,
    seen: Mutex<Vec<Seen>>,
    declared: Mutex<Option<ClientCapabilities>>,
    /// How often the lists have changed.
    version: Mutex<u32>,
    changes: broadcast::Sender<ServerNotification>,
    cancelled: broadcast::Sender<()>,
}

impl Scripted {
    /// Offers variants, with `settings` in `extensions`.
    pub(crate) fn offering(settings: &Value) -> Self {
        let ids = settings["availableVariants"]
            .as_array()
            .into_iter()
            .flatten();
        let known = ids.filter_map(|one| Some(one["id"].as_str()?.to_owned()));
        let capabilities = json!({
            "tools": {"listChanged": true},
            "prompts": {"listChanged": true},
            "resources": {"listChanged": true, "subscribe": true},
            "completions": {},
            "extensions": {SERVER_VARIANTS: settings},
        });
        Self::declaring(capabilities, known.collect())
    }

    /// The variants `standard`, `compact` and `debug`.
    pub(crate) fn with_variants() -> Self {
        Self::offering(&json!({"availableVariants": [
            {"id": "standard", "description": "all"},
            {"id": "compact", "description": "short", "hints": {"contextSize": "compact"}},
            {"id": "debug", "description": "more", "hints": {"useCase": "debugging"}},
        ]}))
    }

    /// Declares `capabilities`.
    pub(crate) fn declaring(capabilities: Value, known: Vec<String>) -> Self {
        let script = Script {
            capabilities: Mutex::new(serde_json::from_value(capabilities).unwrap()),
            known: Mutex::new(known),
            ttl: Some(3_600_000),
            circling: false,
            failing: Mutex::default(),
            seen: Mutex::default(),
            declared: Mutex::default(),
            version: Mutex::default(),
            changes: broadcast::channel(64).0,
            cancelled: broadcast::channel(64).0,
        };
        let script = Arc::new(script);
        Self { script }
    }

    /// Returns `ttl` with every list and resource.
    pub(crate) fn with_ttl(mut self, ttl: Option<u64>) -> Self {
        Arc::get_mut(&mut self.script).unwrap().ttl = ttl;
        self
    }

    /// Repeats the second page of each list forever.
    pub(crate) fn circling(mut self) -> Self {
        Arc::get_mut(&mut self.script).unwrap().circling = true;
        self
    }

    /// Returns `error` for every request of `method` from now on.
    pub(crate) fn fail(&self, method: &'static str, error: ErrorData) {
        self.script.failing.lock().unwrap().insert(method, error);
    }

    /// Removes a variant from the server and from its offers.
    pub(crate) fn retire(&self, id: &str) {
        let mut known = self.script.known.lock().unwrap();
        known.retain(|known| known != id);
        let mut capabilities = self.script.capabilities.lock().unwrap();
        let extensions = capabilities.extensions.as_mut().unwrap();
        let settings = extensions.get_mut(SERVER_VARIANTS).unwrap();
        let offered = settings["availableVariants"].as_array_mut().unwrap();
        offered.retain(|one| one["id"] != id);
    }

    /// The selectors of all requests of `method` so far.
    pub(crate) fn selectors(&self, method: &str) -> Vec<Option<Value>> {
        let seen = self.seen();
        let seen = seen.into_iter().filter(|one| one.method == method);
        seen.map(|one| one.selector).collect()
    }

    /// The requests so far, for lists, calls, reads, prompts, completions and subscriptions.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.script.seen.lock().unwrap().clone()
    }

    /// The capabilities that the client declared.
    pub(crate) fn declared(&self) -> ClientCapabilities {
        self.script.declared.lock().unwrap().clone().unwrap()
    }

    /// Waits for a cancelled call.
    pub(crate) fn cancellations(&self) -> broadcast::Receiver<()> {
        self.script.cancelled.subscribe()
    }

    /// The variant that serves a request.
    fn resolve(&self, method: &'static str, context: &Context) -> McpResult<String> {
        let selector = context.meta.get(SERVER_VARIANT_META).cloned();
        self.script.seen.lock().unwrap().push(Seen {
            method,
            selector: selector.clone(),
            meta: context.meta.clone(),
        });
        *self.script.declared.lock().unwrap() = context.client_capabilities();
        if let Some(error) = self.script.failing.lock().unwrap().get(method) {
            return Err(error.clone());
        }
        let known = self.script.known.lock().unwrap();
        let Some(selector) = selector else {
            return Ok(known.first().cloned().unwrap_or_default());
        };
        match known.iter().find(|id| selector == **id) {
            Some(id) => Ok(id.clone()),
            None => Err(ErrorData::invalid_params(
                "Invalid server variant",
                Some(json!({"requestedVariant": selector, "availableVariants": *known})),
            )),
        }
    }

    /// The names on the page `cursor` of a list of `variant`, and the cursor of the next page.
    fn page(&self, variant: &str, params: PageParams) -> McpResult<(Vec<String>, Option<String>)> {
        let version = *self.script.version.lock().unwrap();
        let second = format!("second page of {variant}");
        match params.and_then(|params| params.cursor) {
            None => Ok((vec![format!("{variant}-a{version}")], Some(second))),
            Some(cursor) if cursor == second => {
                let next = self.script.circling.then_some(second);
                Ok((vec![format!("{variant}-b{version}")], next))
            }
            Some(_) => Err(ErrorData::invalid_params(
                "Cursor invalid for requested variant",
                Some(json!({"cursorVariant": "another", "requestedVariant": variant})),
            )),
        }
    }

    /// Sends a change to the client of the connection, or to all notification streams.
    async fn tell(&self, notification: ServerNotification, context: &Context) -> McpResult<()> {
        *self.script.version.lock().unwrap() += 1;
        let modern = context
            .protocol_version()
            .is_some_and(|version| !version.has_initialize());
        if modern {
            self.script.changes.send(notification).unwrap();
        } else {
            context.peer.send_notification(notification).await.unwrap();
        }
        Ok(())
    }

    async fn change(&self, arguments: JsonObject, context: &Context) -> McpResult<()> {
        let mut meta = NotificationMetaObject::new();
        if let Some(variant) = arguments.get("variant") {
            meta.insert(SERVER_VARIANT_META.to_owned(), variant.clone());
        }
        let mut notification: ServerNotification = match arguments["what"].as_str().unwrap() {
            "tools" => ToolListChangedNotification::default().into(),
            "prompts" => PromptListChangedNotification::default().into(),
            "resources" => ResourceListChangedNotification::default().into(),
            uri => {
                let updated = ResourceUpdatedNotificationParam::new(uri);
                ResourceUpdatedNotification::new(updated).into()
            }
        };
        *notification.get_meta_mut() = meta;
        self.tell(notification, context).await
    }
}

/// A method of a list, whose items are made of their names.
macro_rules! list {
    ($function:ident, $method:literal, $result:ident, |$name:ident| $item:expr) => {
        async fn $function(&self, params: PageParams, context: Context) -> McpResult<$result> {
            let variant = self.resolve($method, &context)?;
            let (names, next) = self.page(&variant, params)?;
            let items = names.into_iter().map(|$name: String| $item).collect();
            let mut result = $result::with_all_items(items);
            (result.next_cursor, result.ttl_ms) = (next, self.script.ttl);
            Ok(result)
        }
    };
}

impl ServerHandler for Scripted {
    fn get_info(&self) -> ServerConfig {
        let capabilities = self.script.capabilities.lock().unwrap().clone();
        ServerConfig::new(capabilities)
    }

    list!(list_tools, "tools/list", ListToolsResult, |name| {
        Tool::new(name, "a tool", JsonObject::new())
    });
    list!(list_prompts, "prompts/list", ListPromptsResult, |name| {
        Prompt::new(name, None::<String>, None)
    });
    list!(
        list_resources,
        "resources/list",
        ListResourcesResult,
        |name| { Resource::new(format!("test://{name}"), name) }
    );
    list!(
        list_resource_templates,
        "resources/templates/list",
        ListResourceTemplatesResult,
        |name| ResourceTemplate::new(format!("test://{name}/{{id}}"), name)
    );

    async fn call_tool(&self, params: CallParams, context: Context) -> CallResult {
        let variant = self.resolve("tools/call", &context)?;
        match params.name.as_ref() {
            "change" => {
                self.change(params.arguments.unwrap_or_default(), &context)
                    .await?
            }
            "wait" => {
                context.ct.cancelled().await;
                let _ = self.script.cancelled.send(());
            }
            "ask" if params.input_responses.is_none() => return Ok(question().into()),
            _ => {}
        }
        let answers = params.input_responses.unwrap_or_default();
        let answer = answers.get("name");
        let answer = answer.map(|answer| answer["content"]["name"].to_string());
        let text = format!("{} in {variant}{}", params.name, answer.unwrap_or_default());
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    async fn get_prompt(&self, params: PromptParams, context: Context) -> PromptResult {
        let variant = self.resolve("prompts/get", &context)?;
        let text = format!("{} in {variant}", params.name);
        let message = PromptMessage::new_text(Role::User, text);
        Ok(GetPromptResult::new(vec![message]).into())
    }

    async fn read_resource(&self, params: ReadParams, context: Context) -> ReadResult {
        let variant = self.resolve("resources/read", &context)?;
        let version = *self.script.version.lock().unwrap();
        let text = format!("{variant}, version {version}");
        let contents = ResourceContents::text(text, params.uri);
        let mut result = ReadResourceResult::new(vec![contents]);
        result.ttl_ms = self.script.ttl;
        Ok(result.into())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        context: Context,
    ) -> McpResult<CompleteResult> {
        let variant = self.resolve("completion/complete", &context)?;
        Ok(CompleteResult::new(
            CompletionInfo::new(vec![variant]).unwrap(),
        ))
    }

    async fn subscribe(&self, _: SubscribeRequestParams, context: Context) -> McpResult<()> {
        self.resolve("resources/subscribe", &context).map(drop)
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, context: Context) -> McpResult<()> {
        self.resolve("resources/unsubscribe", &context).map(drop)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> McpResult<()> {
        // Subscribe before anything else, so that no change after the acknowledgement is missed.
        let mut changes = self.script.changes.subscribe();
        let variant = self.resolve("subscriptions/listen", context.request_context())?;
        loop {
            tokio::select! {
                () = context.cancelled() => {
                    let _ = self.script.cancelled.send(());
                    return Ok(());
                }
                change = changes.recv() => {
                    let change = change.unwrap();
                    let of = change.get_meta().get(SERVER_VARIANT_META).cloned();
                    if of.is_none_or(|of| of == variant) {
                        context.sink().send(change).await.unwrap();
                    }
                }
            }
        }
    }
}

/// An input request for a name.
fn question() -> InputRequiredResult {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let request = json!({
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "Your name?", "requestedSchema": schema},
    });
    let result = json!({"resultType": "input_required", "inputRequests": {"name": request}});
    serde_json::from_value(result).unwrap()
}

/// A client handler that reports the notifications it received, and answers every elicitation with
/// `Ada`.
#[derive(Clone, Debug)]
pub(crate) struct Watcher {
    capabilities: ClientCapabilities,
    received: mpsc::UnboundedSender<&'static str>,
}

impl ClientHandler for Watcher {
    fn get_info(&self) -> ClientConfig {
        let watcher = Implementation::new("watcher", "1");
        ClientConfig::new(self.capabilities.clone(), watcher)
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext,
    ) -> McpResult<ElicitResult> {
        let result = ElicitResult::new(ElicitationAction::Accept);
        Ok(result.with_content(json!({"name": "Ada"})))
    }

    async fn on_tool_list_changed(&self, context: NotificationContext) {
        let tagged = context.meta.contains_key(SERVER_VARIANT_META);
        let name = if tagged { "tagged tools" } else { "tools" };
        let _ = self.received.send(name);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext) {
        let _ = self.received.send("prompts");
    }

    async fn on_resource_list_changed(&self, _: NotificationContext) {
        let _ = self.received.send("resources");
    }

    async fn on_resource_updated(
        &self,
        _: ResourceUpdatedNotificationParam,
        _: NotificationContext,
    ) {
        let _ = self.received.send("resource");
    }
}

/// A client that is connected to a server.
pub(crate) struct Connected<S = Scripted> {
    pub(crate) client: Client,
    pub(crate) server: S,
    pub(crate) received: mpsc::UnboundedReceiver<&'static str>,
    pub(crate) running: RunningService<RoleClient, DeclaringClient<Watcher>>,
    _stop: DropGuard,
}

/// Connects to the server that `make` creates. `declare` adds to the capabilities for elicitation
/// and sampling.
pub(crate) async fn connect<S: ServerHandler>(
    client_kind: Way,
    make: impl Fn() -> S + Clone + Send + Sync + 'static,
    declare: impl FnOnce(DeclaringClient<Watcher>) -> DeclaringClient<Watcher>,
) -> Connected<()> {
    let (sender, received) = mpsc::unbounded_channel();
    let capabilities = json!({"elicitation": {}, "sampling": {}});
    let watcher = Watcher {
        capabilities: serde_json::from_value(capabilities).unwrap(),
        received: sender,
    };
    let stop = CancellationToken::new();
    let running = serve(
        client_kind,
        make,
        declare(DeclaringClient::new(watcher)),
        &stop,
    )
    .await;
    let client = Client::new(running.peer(), running.service())
        .await
        .with_timeout(Duration::from_secs(60));
    Connected {
        client,
        server: (),
        received,
        running,
        _stop: stop.drop_guard(),
    }
}

impl Connected {
    /// Connects with no tags and no hints.
    pub(crate) async fn new(client_kind: Way, server: Scripted) -> Self {
        Self::declaring(client_kind, server, |declaring| declaring).await
    }

    /// Connects with the declarations of `declare`.
    pub(crate) async fn declaring(
        client_kind: Way,
        server: Scripted,
        declare: impl FnOnce(DeclaringClient<Watcher>) -> DeclaringClient<Watcher>,
    ) -> Self {
        let served = server.clone();
        let connected = connect(client_kind, move || served.clone(), declare).await;
        Self {
            client: connected.client,
            server,
            received: connected.received,
            running: connected.running,
            _stop: connected._stop,
        }
    }

    /// Makes the server change its tools, or the resource of a URI, in one variant or in all.
    pub(crate) async fn change(&self, what: &str, variant: Option<&str>) {
        let mut arguments = JsonObject::new();
        arguments.insert("what".to_owned(), what.into());
        if let Some(variant) = variant {
            arguments.insert("variant".to_owned(), variant.into());
        }
        let params = CallParams::new("change").with_arguments(arguments);
        let default = self.client.default_variant();
        default.call_tool(params).await.unwrap();
    }

    /// Makes the server change something, and waits for the client's notification.
    pub(crate) async fn change_and_hear(
        &mut self,
        what: &str,
        variant: Option<&str>,
    ) -> &'static str {
        self.change(what, variant).await;
        soon(self.received.recv()).await.unwrap()
    }
}

impl<S> Connected<S> {
    /// The offered variant `name`.
    pub(crate) fn view(&self, name: &str) -> VariantClient {
        self.client.variant(&id(name)).unwrap()
    }

    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        self.running.peer()
    }
}

async fn serve<S: ServerHandler>(
    client_kind: Way,
    make: impl Fn() -> S + Clone + Send + Sync + 'static,
    declaring: DeclaringClient<Watcher>,
    stop: &CancellationToken,
) -> RunningService<RoleClient, DeclaringClient<Watcher>> {
    let lifecycle = lifecycle(client_kind.modern);
    if client_kind.http {
        let url = serve_over_http(make, |config| config, stop).await;
        let transport = StreamableHttpClientTransport::from_uri(url);
        let running = declaring.serve_with_lifecycle(transport, lifecycle);
        return running.await.unwrap();
    }
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let stop = stop.clone();
    tokio::spawn(async move {
        let running = make().serve_with_ct(theirs, stop).await.unwrap();
        running.waiting().await.unwrap();
    });
    let running = declaring.serve_with_lifecycle(ours, lifecycle);
    running.await.unwrap()
}

/// The identifier `id`.
pub(crate) fn id(id: &str) -> VariantId {
    id.parse().unwrap()
}

/// A call of `tool` without arguments.
pub(crate) fn call(tool: &'static str) -> CallParams {
    CallParams::new(tool)
}
