//! A proxy made of rmcp's server and client, with the fastest settings of rmcp.
//!
//! It answers with JSON and without sessions in both eras, and sends all requests concurrently over one upstream
//! connection.

use std::error::Error;
use std::io;

use clap::Parser;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::{
    ClientCacheConfig, ClientLifecycleMode, ClientServiceExt as _, RequestContext, RunningService,
    ServiceError,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{
    StreamableHttpClientTransport, StreamableHttpServerConfig, TokioChildProcess,
};
use rmcp::{ErrorData, Peer, RoleClient, RoleServer, ServerHandler};

use super::input_closed;
use super::library::accept;

/// A proxy made of rmcp's server and client.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// The URL of the upstream server
    #[arg(long, conflicts_with = "command")]
    to: Option<String>,
    /// The command of the upstream server
    #[arg(last = true, required_unless_present = "to")]
    command: Vec<String>,
}

#[derive(Clone, Debug)]
struct Proxy {
    behind: Peer<RoleClient>,
}

impl ServerHandler for Proxy {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // The client's `_meta` does not describe the proxy.
        request.meta = None;
        self.behind.call_tool_once(request).await.map_err(refused)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.behind.list_tools(None).await.map_err(refused)
    }
}

fn refused(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        other => ErrorData::internal_error(other.to_string(), None),
    }
}

/// Serves until standard input closes.
pub(crate) fn serve(options: Options) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let closed = input_closed();
    runtime.block_on(async {
        let behind = connect(options).await.map_err(io::Error::other)?;
        behind
            .peer()
            .set_response_cache_config(ClientCacheConfig::disabled())
            .await;
        let proxy = Proxy {
            behind: behind.peer().clone(),
        };
        tokio::select! {
            accepted = accept(proxy, stateless()) => accepted,
            _ = closed => Ok(()),
        }
    })
}

async fn connect(
    options: Options,
) -> Result<RunningService<RoleClient, ()>, Box<dyn Error + Send + Sync>> {
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: None,
    };
    if let Some(url) = options.to {
        let config = StreamableHttpClientTransportConfig::with_uri(url).max_concurrent_requests(64);
        let transport = StreamableHttpClientTransport::from_config(config);
        return Ok(().serve_with_lifecycle(transport, lifecycle).await?);
    }
    let mut arguments = options.command.iter();
    let mut command = tokio::process::Command::new(arguments.next().ok_or("no command is named")?);
    command.args(arguments);
    let transport = TokioChildProcess::new(command)?;
    Ok(().serve_with_lifecycle(transport, lifecycle).await?)
}

/// The fastest settings of rmcp.
fn stateless() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
}
