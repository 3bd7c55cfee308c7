//! A server on a pipe or on HTTP, and an rmcp client of it.
#![expect(deprecated, reason = "servers still ask for sampling and roots")]

use crate::prelude::*;
use mcp_vary_testkit::http_client::{HttpRequest, HttpResponse, RawHttp};
use mcp_vary_testkit::stdio_pipe::StdioPipe;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, Implementation, ListRootsResult,
    NotificationMetaObject, RequestMetaObject, ResourceUpdatedNotificationParam,
};
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _,
    PeerRequestOptions, RequestContext, RequestHandle, RunningService, ServiceError,
    ServiceExt as _,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, StreamableHttpServerConfig};
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) use crate::common::{
    CallParams, CallResult, Context, McpResult, PageParams, PromptParams, PromptResult, ReadParams,
    ReadResult, serve_over_http,
};
pub(crate) use mcp_vary_testkit::wait::soon;

type ClientContext = RequestContext<RoleClient>;
type NotificationContext = rmcp::service::NotificationContext<RoleClient>;

/// The value of the header `x-role`.
pub(crate) fn role(context: &Context) -> Option<&str> {
    let parts = context.extensions.get::<http::request::Parts>()?;
    parts.headers.get("x-role")?.to_str().ok()
}

/// The principal that the header `x-role` names.
pub(crate) fn principal(context: &Context) -> Option<String> {
    role(context).map(str::to_owned)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wire {
    Pipe,
    Http,
}

/// Every era with every transport.
pub(crate) const WAYS: [(Era, Wire); 4] = [
    (Era::Legacy, Wire::Pipe),
    (Era::Legacy, Wire::Http),
    (Era::Modern, Wire::Pipe),
    (Era::Modern, Wire::Http),
];

pub(crate) const VARIANT: &str = "io.modelcontextprotocol/server-variant";
pub(crate) const NEGOTIATION: &str = "io.modelcontextprotocol/content-negotiation";
pub(crate) const VARIANTS: &str = "io.modelcontextprotocol/server-variants";

/// A notification or request that the client received.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    /// A change and its variant.
    Changed(&'static str, Option<String>),
    Progress(f64),
    Asked(String),
}

pub(crate) struct Client {
    pub(crate) service: RunningService<RoleClient, Listener>,
    pub(crate) told: mpsc::UnboundedReceiver<Told>,
    _server: Option<HttpServer>,
}

pub(crate) struct Listener {
    config: ClientConfig,
    told: mpsc::UnboundedSender<Told>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn on_tool_list_changed(&self, context: NotificationContext) {
        self.hear(Told::Changed("tools", variant(&context)));
    }

    async fn on_resource_list_changed(&self, context: NotificationContext) {
        self.hear(Told::Changed("resources", variant(&context)));
    }

    async fn on_resource_updated(
        &self,
        _: ResourceUpdatedNotificationParam,
        context: NotificationContext,
    ) {
        self.hear(Told::Changed("resource", variant(&context)));
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext) {
        self.hear(Told::Progress(params.progress));
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: ClientContext,
    ) -> McpResult<ElicitResult> {
        let request = serde_json::to_value(request).unwrap();
        let message = request["message"].as_str().unwrap().to_owned();
        self.hear(Told::Asked(message));
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"name": "Ada"})))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: ClientContext,
    ) -> McpResult<CreateMessageResult> {
        self.hear(Told::Asked("sampling".to_owned()));
        let content = json!({"type": "text", "text": "hm"});
        let message = json!({"role": "assistant", "content": content, "model": "small"});
        Ok(serde_json::from_value(message).unwrap())
    }

    async fn list_roots(&self, _: ClientContext) -> McpResult<ListRootsResult> {
        self.hear(Told::Asked("roots".to_owned()));
        Ok(serde_json::from_value(json!({"roots": [{"uri": "file:///a"}]})).unwrap())
    }
}

impl Listener {
    fn hear(&self, sent: Told) {
        // The test may have stopped reading.
        let _ = self.told.send(sent);
    }
}

fn variant(context: &NotificationContext) -> Option<String> {
    let meta = context.extensions.get::<NotificationMetaObject>()?;
    Some(meta.get(VARIANT)?.as_str()?.to_owned())
}

/// The capabilities of a client with these feature tags and hints.
pub(crate) fn declaring(tags: &[&str], hints: Value) -> Value {
    json!({
        "elicitation": {},
        "extensions": {
            NEGOTIATION: {"version": "1.0", "features": tags},
            VARIANTS: {"variantHints": {"hints": hints}},
        },
    })
}

/// Connects to `server` with a client that declares nothing.
pub(crate) async fn connect(server: &VaryServer, client_kind: (Era, Wire)) -> Client {
    connect_with(server, client_kind, json!({})).await
}

/// Connects to `server` with a client with `capabilities`.
pub(crate) async fn connect_with(
    server: &VaryServer,
    client_kind: (Era, Wire),
    capabilities: Value,
) -> Client {
    let client = try_connect(server, client_kind, capabilities).await;
    client.unwrap_or_else(|error| panic!("{client_kind:?} does not begin: {error}"))
}

/// Connects to `server` with a client with these feature tags.
pub(crate) async fn connect_tagged(
    server: &VaryServer,
    client_kind: (Era, Wire),
    tags: &[&str],
) -> Client {
    connect_with(server, client_kind, declaring(tags, json!({}))).await
}

pub(crate) async fn try_connect(
    server: &VaryServer,
    (era, wire): (Era, Wire),
    capabilities: Value,
) -> Result<Client, ClientInitializeError> {
    match wire {
        Wire::Pipe => pipe(server.clone(), era, capabilities).await,
        Wire::Http => {
            let http = serve_http(server.clone()).await;
            let mut client = try_join(&http.url, era, capabilities, &[]).await?;
            client._server = Some(http);
            Ok(client)
        }
    }
}

/// Connects to the handler itself, on a pipe.
pub(crate) async fn connect_to(server: impl ServerHandler, era: Era) -> Client {
    pipe(server, era, json!({})).await.unwrap()
}

async fn pipe(
    server: impl ServerHandler,
    era: Era,
    capabilities: Value,
) -> Result<Client, ClientInitializeError> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        // The client sees the end of the connection.
        if let Ok(running) = server.serve(theirs).await {
            let _ = running.waiting().await;
        }
    });
    let (listener, sent) = listener(capabilities);
    let service = listener.serve_with_lifecycle(ours, lifecycle(era)).await?;
    Ok(Client::new(service, sent, None).await)
}

/// Connects to the server at `url`, with `headers` in every request.
pub(crate) async fn join(
    url: &str,
    era: Era,
    capabilities: Value,
    headers: &[(&'static str, &'static str)],
) -> Client {
    try_join(url, era, capabilities, headers).await.unwrap()
}

async fn try_join(
    url: &str,
    era: Era,
    capabilities: Value,
    headers: &[(&'static str, &'static str)],
) -> Result<Client, ClientInitializeError> {
    let headers = headers.iter().map(|(name, value)| {
        let name = http::HeaderName::from_static(name);
        (name, http::HeaderValue::from_static(value))
    });
    let config =
        StreamableHttpClientTransportConfig::with_uri(url).custom_headers(headers.collect());
    let transport = StreamableHttpClientTransport::from_config(config);
    let (listener, sent) = listener(capabilities);
    let service = listener
        .serve_with_lifecycle(transport, lifecycle(era))
        .await?;
    Ok(Client::new(service, sent, None).await)
}

fn listener(capabilities: Value) -> (Listener, mpsc::UnboundedReceiver<Told>) {
    let (sender, sent) = mpsc::unbounded_channel();
    let capabilities: ClientCapabilities = serde_json::from_value(capabilities).unwrap();
    let listener = Listener {
        config: ClientConfig::new(capabilities, Implementation::new("client", "1.0.0")),
        told: sender,
    };
    (listener, sent)
}

fn lifecycle(era: Era) -> ClientLifecycleMode {
    crate::common::lifecycle(era == Era::Modern)
}

pub(crate) struct HttpServer {
    pub(crate) url: String,
    _stop: DropGuard,
}

/// Serves clones of `server` on a free port until the returned value is dropped.
pub(crate) async fn serve_http(server: VaryServer) -> HttpServer {
    serve_http_with(server, |config| config).await
}

pub(crate) async fn serve_http_with(
    server: VaryServer,
    configure: impl FnOnce(StreamableHttpServerConfig) -> StreamableHttpServerConfig,
) -> HttpServer {
    let stop = CancellationToken::new();
    let url = serve_over_http(move || server.clone(), configure, &stop).await;
    HttpServer {
        url,
        _stop: stop.drop_guard(),
    }
}

impl Client {
    async fn new(
        service: RunningService<RoleClient, Listener>,
        sent: mpsc::UnboundedReceiver<Told>,
        server: Option<HttpServer>,
    ) -> Self {
        // The SDK's cache ignores variants.
        service
            .set_response_cache_config(ClientCacheConfig::disabled())
            .await;
        Self {
            service,
            told: sent,
            _server: server,
        }
    }

    /// The server's capabilities in the handshake.
    pub(crate) fn capabilities(&self) -> Value {
        let info = self.service.peer_info().unwrap();
        serde_json::to_value(&info.capabilities).unwrap()
    }

    /// Sends a request with `meta`, and waits for its result.
    pub(crate) async fn ask(&self, method: &str, params: Value, meta: Value) -> McpResult<Value> {
        let request = self.begin(method, params, meta).await;
        match soon(request.await_response()).await {
            Ok(result) => Ok(serde_json::to_value(result).unwrap()),
            Err(ServiceError::McpError(error)) => Err(error),
            Err(error) => panic!("{method} fails: {error}"),
        }
    }

    /// Sends a request with `meta`.
    pub(crate) async fn begin(
        &self,
        method: &str,
        params: Value,
        meta: Value,
    ) -> RequestHandle<RoleClient> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        // rmcp parses it, so that it knows the method and sends the headers that belong to it.
        let request = match serde_json::from_value(message) {
            Ok(rmcp::model::ClientJsonRpcMessage::Request(request)) => request.request,
            other => panic!("no request: {other:?}"),
        };
        let Value::Object(meta) = meta else {
            panic!("`_meta` is an object");
        };
        let options = PeerRequestOptions::no_options().with_meta(RequestMetaObject::from(meta));
        self.service
            .send_cancellable_request(request, options)
            .await
            .expect("the request is sent")
    }

    /// Sends a request under `variant`; "" selects none.
    pub(crate) async fn under(
        &self,
        variant: &str,
        method: &str,
        params: Value,
    ) -> McpResult<Value> {
        let selector = (!variant.is_empty()).then_some((VARIANT.to_owned(), variant.into()));
        let meta = selector.into_iter().collect::<serde_json::Map<_, _>>();
        self.ask(method, params, meta.into()).await
    }

    /// The result of a request under `variant`.
    pub(crate) async fn result(&self, variant: &str, method: &str, params: Value) -> Value {
        let result = self.under(variant, method, params).await;
        result.unwrap_or_else(|error| panic!("{method} fails: {error}"))
    }

    /// The error of a request under `variant`.
    pub(crate) async fn error(&self, variant: &str, method: &str, params: Value) -> ErrorData {
        self.under(variant, method, params).await.unwrap_err()
    }

    pub(crate) async fn call(&self, variant: &str, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.result(variant, "tools/call", params).await
    }

    /// The text of a prompt under `variant`.
    pub(crate) async fn prompt(&self, variant: &str, name: &str) -> Value {
        let prompt = json!({"name": name});
        let mut prompt = self.result(variant, "prompts/get", prompt).await;
        prompt["messages"][0]["content"]["text"].take()
    }

    /// The names of the items that are listed under `variant`.
    pub(crate) async fn names(&self, variant: &str, kind: &str) -> Vec<String> {
        let method = format!("{kind}/list");
        names(&self.result(variant, &method, json!({})).await[kind])
    }

    pub(crate) async fn hear(&mut self) -> Told {
        soon(self.told.recv()).await.expect("the connection lasts")
    }
}

/// Checks the code and the message of `error`, and returns its data.
#[track_caller]
pub(crate) fn data_of(error: ErrorData, code: i32, message: &str) -> Value {
    assert_eq!((error.code.0, &*error.message), (code, message));
    error.data.unwrap_or_default()
}

pub(crate) fn names(items: &Value) -> Vec<String> {
    let list = items.as_array();
    let list = list.unwrap_or_else(|| panic!("no list: {items}")).iter();
    list.map(|item| item["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The responses of `server` on a pipe to each of `messages`, byte for byte.
pub(crate) async fn lines(server: impl ServerHandler, messages: &[Value]) -> Vec<String> {
    lines_and_more(server, messages, 0).await
}

/// Like [`lines`], and then reads this many `more` lines.
pub(crate) async fn lines_and_more(
    server: impl ServerHandler,
    messages: &[Value],
    more: usize,
) -> Vec<String> {
    let mut pipe = StdioPipe::connect(|input, output, _stop| async move {
        if let Ok(running) = server.serve((input, output)).await {
            let _ = running.waiting().await;
        }
        Ok(())
    });
    let mut answers = Vec::new();
    for message in messages {
        pipe.send(message.to_string()).await;
        if message.get("id").is_some() {
            answers.push(pipe.line().await);
        }
    }
    for _ in 0..more {
        answers.push(pipe.line().await);
    }
    answers
}

/// Sends a request to the server at `url`.
async fn send(url: &str, request: &HttpRequest) -> HttpResponse {
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut http = RawHttp::connect(address.parse().unwrap()).await;
    http.ask(request).await
}

/// Posts `message` to the server at `url`, with `headers` in addition to those that every client
/// sends. Returns the HTTP status and the answer.
pub(crate) async fn post(url: &str, message: &Value, headers: &[(&str, &str)]) -> (u16, Value) {
    let mut request = HttpRequest::new(message.to_string());
    for (name, value) in headers {
        request = request.with_another(name, *value);
    }
    let response = send(url, &request).await;
    (response.status, response.answer())
}

/// Ends the session `id` of the server at `url`; any client with its identifier can.
pub(crate) async fn end_session(url: &str, id: &str) {
    let delete = HttpRequest::of(id, "").line("DELETE /mcp HTTP/1.1");
    let status = send(url, &delete).await.status;
    assert!((200..210).contains(&status), "{status}");
}

/// The headers of a modern request for `method`, and for `name` if it has one.
pub(crate) fn modern_headers<'a>(method: &'a str, name: &'a str) -> Vec<(&'a str, &'a str)> {
    let name = (!name.is_empty()).then_some(("Mcp-Name", name));
    let version = ("MCP-Protocol-Version", "2026-07-28");
    [version, ("Mcp-Method", method)]
        .into_iter()
        .chain(name)
        .collect()
}

/// A modern request as JSON.
pub(crate) fn modern(id: u32, method: &str, mut params: Value, capabilities: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "client", "version": "1.0.0"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn initialize(capabilities: Value) -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "client", "version": "1.0.0"},
    });
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// `initialized`, after which a legacy client may send requests.
pub(crate) fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}
