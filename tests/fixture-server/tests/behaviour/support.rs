//! The fixture as a child process, and an rmcp client that writes down what it is told.

use std::process::Stdio;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientRequest, LoggingMessageNotificationParam,
    ProgressNotificationParam, ProtocolVersion, RequestMetaObject,
    ResourceUpdatedNotificationParam, ServerResult,
};
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _,
    NotificationContext, PeerRequestOptions, RequestHandle, RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::mpsc;

/// How a client begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// What a client and the fixture talk over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wire {
    Stdio,
    Http,
}

/// Every way to talk to the fixture.
pub(crate) const WAYS: [(Era, Wire); 4] = [
    (Era::Legacy, Wire::Stdio),
    (Era::Legacy, Wire::Http),
    (Era::Modern, Wire::Stdio),
    (Era::Modern, Wire::Http),
];

/// Something that the server told the client without being asked.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    Progress(f64),
    Log(Value),
    ToolsChanged,
    ResourceUpdated(String),
}

/// A connected client, and the server's process, which ends with it.
pub(crate) struct Connection {
    pub(crate) client: RunningService<RoleClient, Listener>,
    pub(crate) told: mpsc::UnboundedReceiver<Told>,
    _server: Child,
}

pub(crate) struct Listener(mpsc::UnboundedSender<Told>);

impl ClientHandler for Listener {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hear(Told::Progress(params.progress));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hear(Told::Log(params.data));
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.hear(Told::ToolsChanged);
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hear(Told::ResourceUpdated(params.uri));
    }
}

impl Listener {
    fn hear(&self, told: Told) {
        // A test that no longer listens does not want to know.
        let _ = self.0.send(told);
    }
}

/// Starts a fixture with `options` and connects to it.
pub(crate) async fn connect(era: Era, wire: Wire, options: &[&str]) -> Connection {
    try_connect(era, wire, options)
        .await
        .unwrap_or_else(|error| panic!("{era:?} on {wire:?} does not begin: {error}"))
}

pub(crate) async fn try_connect(
    era: Era,
    wire: Wire,
    options: &[&str],
) -> Result<Connection, ClientInitializeError> {
    let (sender, told) = mpsc::unbounded_channel();
    let listener = Listener(sender);
    let lifecycle = match era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    let (client, server) = match wire {
        Wire::Stdio => {
            let mut server = spawn(&[&["--stdio"], options].concat());
            let output = server.stdout.take().expect("standard output is piped");
            let input = server.stdin.take().expect("standard input is piped");
            let client = listener.serve_with_lifecycle((output, input), lifecycle);
            (client.await?, server)
        }
        Wire::Http => {
            let (server, url, _) = http(options).await;
            let transport = StreamableHttpClientTransport::from_uri(url);
            let client = listener.serve_with_lifecycle(transport, lifecycle);
            (client.await?, server)
        }
    };
    // Lists here change on purpose.
    client
        .set_response_cache_config(ClientCacheConfig::disabled())
        .await;
    Ok(Connection {
        client,
        told,
        _server: server,
    })
}

/// Starts a fixture on HTTP: its process, its address, and what else it prints.
pub(crate) async fn http(options: &[&str]) -> (Child, String, Lines<BufReader<ChildStdout>>) {
    let mut server = spawn(&[&["--http", "127.0.0.1:0"], options].concat());
    let output = server.stdout.take().expect("standard output is piped");
    let mut lines = BufReader::new(output).lines();
    let line = lines.next_line().await.expect("the server prints");
    let line = line.expect("the server says where it listens");
    let url = line
        .strip_prefix("listening on ")
        .unwrap_or_else(|| panic!("expected an address, got {line:?}"));
    (server, url.to_owned(), lines)
}

pub(crate) fn spawn(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_fixture-server"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the fixture starts")
}

impl Connection {
    pub(crate) async fn try_call(
        &self,
        tool: &'static str,
        arguments: Value,
    ) -> Result<CallToolResult, ServiceError> {
        within(self.client.call_tool(params(tool, arguments))).await
    }

    pub(crate) async fn call(&self, tool: &'static str, arguments: Value) -> Value {
        let result = self.try_call(tool, arguments).await;
        let result = result.unwrap_or_else(|error| panic!("{tool} fails: {error}"));
        serde_json::to_value(result).expect("results are JSON")
    }

    /// Calls a tool that is refused.
    pub(crate) async fn refused(&self, tool: &'static str, arguments: Value) -> ErrorData {
        match self.try_call(tool, arguments).await {
            Err(ServiceError::McpError(error)) => error,
            other => panic!("expected {tool} to be refused, got {other:?}"),
        }
    }

    /// Sends a call without waiting for its end; every message of any level is asked for.
    pub(crate) async fn begin(
        &self,
        tool: &'static str,
        arguments: Value,
    ) -> RequestHandle<RoleClient> {
        let request = rmcp::model::CallToolRequest::new(params(tool, arguments));
        let mut meta = RequestMetaObject::new();
        let level = serde_json::json!("debug");
        meta.insert("io.modelcontextprotocol/logLevel".to_owned(), level);
        self.client
            .send_cancellable_request(
                ClientRequest::CallToolRequest(request),
                PeerRequestOptions::no_options().with_meta(meta),
            )
            .await
            .expect("the call is sent")
    }

    /// The next `count` things told, as this client's tasks happened to hear them.
    pub(crate) async fn hear(&mut self, count: usize) -> Vec<Told> {
        let mut received = Vec::new();
        while received.len() < count {
            let next = within(self.told.recv()).await;
            received.push(next.expect("the connection lasts"));
        }
        received
    }
}

/// The longest that a test waits for one message.
const LIMIT: Duration = Duration::from_secs(30);

/// What `future` ends with; a message that does not come fails its test, and does not hold up the others.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(LIMIT, future).await;
    ended.unwrap_or_else(|_| panic!("nothing came within {LIMIT:?}"))
}

/// Waits for the end of a call.
pub(crate) async fn finish(handle: RequestHandle<RoleClient>) -> CallToolResult {
    match within(handle.await_response()).await {
        Ok(ServerResult::CallToolResult(result)) => result,
        other => panic!("expected the result of a tool, got {other:?}"),
    }
}

fn params(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object, not {arguments}");
    };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}
