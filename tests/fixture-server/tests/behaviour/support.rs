//! The fixture as a child process, and an rmcp client.

use std::process::Stdio;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, CallToolResult, ProtocolVersion};
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _,
    RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

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

/// A connected client, and the server's process, which ends with it.
pub(crate) struct Connection {
    pub(crate) client: RunningService<RoleClient, ()>,
    _server: Child,
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
            let client = ().serve_with_lifecycle((output, input), lifecycle);
            (client.await?, server)
        }
        Wire::Http => {
            let (server, url, _) = http(options).await;
            let transport = StreamableHttpClientTransport::from_uri(url);
            let client = ().serve_with_lifecycle(transport, lifecycle);
            (client.await?, server)
        }
    };
    // Lists here change on purpose.
    client
        .set_response_cache_config(ClientCacheConfig::disabled())
        .await;
    Ok(Connection {
        client,
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
}

/// The longest that a test waits for one message.
const LIMIT: Duration = Duration::from_secs(30);

/// What `future` ends with; a message that does not come fails its test, and does not hold up the others.
async fn within<T>(future: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(LIMIT, future).await;
    ended.unwrap_or_else(|_| panic!("nothing came within {LIMIT:?}"))
}

fn params(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object, not {arguments}");
    };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}
