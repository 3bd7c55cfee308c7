//! A handler on the server of rmcp: bare, wrapped by the library, and behind a gateway in the same process.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use clap::{Parser, ValueEnum};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcp_vary::variant::ServerVariant;
use mcp_vary_gateway::{Config, Environment, Gateway, Target, UpstreamConfig};
use mcp_vary_rmcp::server::{VariantHandler, VaryServer, View};
use ring::rand::{SecureRandom as _, SystemRandom};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use tokio::net::TcpListener;

use super::{input_closed, say};
use crate::upstream::tools;

/// A handler on rmcp's own server.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// What it is wrapped in
    #[arg(long, value_enum)]
    wrapping: Wrapping,
}

/// The wrapping of a handler.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Wrapping {
    /// Nothing.
    Bare,
    /// Content negotiation alone.
    Negotiating,
    /// Four variants of it, without content negotiation.
    Variants,
    /// The gateway, which reaches it on a pipe.
    Embedded,
}

/// Returns its argument, as the upstream server does.
#[derive(Clone, Debug)]
struct Echo {
    tools: Arc<[Tool]>,
}

impl Echo {
    fn new() -> io::Result<Self> {
        let tools: Vec<Tool> = serde_json::from_str(&tools::list(10))?;
        Ok(Self {
            tools: tools.into(),
        })
    }
}

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let text = arguments.get("text").and_then(|text| text.as_str());
        let text = text.ok_or_else(|| ErrorData::invalid_params("`text` is missing", None))?;
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }
}

/// Serves until standard input closes.
pub(crate) fn serve(options: &Options) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let closed = input_closed();
    let echo = Echo::new()?;
    runtime.block_on(async {
        tokio::select! {
            accepted = accept_wrapped(echo, options.wrapping) => accepted,
            _ = closed => Ok(()),
        }
    })
}

async fn accept_wrapped(echo: Echo, wrapping: Wrapping) -> io::Result<()> {
    match wrapping {
        Wrapping::Bare => accept(echo, json()).await,
        Wrapping::Negotiating => accept(VaryServer::new(echo), json()).await,
        Wrapping::Variants => accept(variants(echo)?, json()).await,
        Wrapping::Embedded => embed(echo).await,
    }
}

/// The gateway's built-in variants, and one more.
fn variants(echo: Echo) -> io::Result<VaryServer> {
    let face_value = VariantHandler::new(echo);
    let reading = (0..10).filter(|index| tools::only_reads(*index));
    let reading = View::new().with_tools(reading.map(tools::name));
    let one = View::new().with_tools([tools::ECHO]);
    let variant = |id: &str, about: &str| {
        let id = id.parse().map_err(io::Error::other)?;
        Ok::<_, io::Error>(ServerVariant::new(id, about))
    };
    let vary = VaryServer::builder()
        .with_variant(variant("standard", "Everything")?, face_value.clone())
        .with_variant(variant("compact", "Everything, too")?, face_value.clone())
        .with_variant(
            variant("read-only", "What only reads")?,
            face_value.clone().with_view(reading),
        )
        .with_variant(variant("one", "One tool")?, face_value.with_view(one));
    vary.build().map_err(io::Error::other)
}

/// Serves `echo` by a gateway in this process, for ever.
async fn embed(echo: Echo) -> io::Result<()> {
    let target = Target::in_process(move || {
        let (gateway, server) = tokio::io::duplex(64 * 1024);
        let echo = echo.clone();
        tokio::spawn(async move {
            // The gateway reports a pipe that is closed.
            if let Ok(running) = echo.serve(server).await {
                let _ = running.waiting().await;
            }
        });
        gateway
    });
    let environment = Environment::new(
        || 0,
        |bytes| {
            let filled = SystemRandom::new().fill(bytes);
            filled.expect("the system gives randomness");
        },
    );
    let config = Config::new(UpstreamConfig::new("echo", target), environment);
    let gateway = Gateway::start(config).await.map_err(io::Error::other)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    say(&format!("listening on http://{address}/mcp"))?;
    gateway.serve_http(listener, std::future::pending()).await
}

fn json() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default().with_json_response(true)
}

/// Serves `handler` for ever, on a port that it prints.
pub(super) async fn accept<H: ServerHandler + Clone>(
    handler: H,
    config: StreamableHttpServerConfig,
) -> io::Result<()> {
    let service = StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    say(&format!(
        "listening on http://{}/mcp",
        listener.local_addr()?
    ))?;
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let service = service.clone();
        let answer = service_fn(move |request| {
            let service = service.clone();
            async move { Ok::<_, Infallible>(service.handle(request).await) }
        });
        // Errors of a connection are only the client's concern.
        tokio::spawn(async move {
            let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), answer);
            drop(connection.await);
        });
    }
}
