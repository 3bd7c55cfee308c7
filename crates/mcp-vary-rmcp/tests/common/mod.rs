//! What the tests of servers and of clients share: a handler of the SDK over HTTP, and what handlers take and return.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
};
use rmcp::service::{ClientLifecycleMode, RequestContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) type Context = RequestContext<RoleServer>;
pub(crate) type McpResult<T> = Result<T, ErrorData>;
pub(crate) type PageParams = Option<PaginatedRequestParams>;
pub(crate) type CallParams = CallToolRequestParams;
pub(crate) type CallResult = McpResult<CallToolResponse>;
pub(crate) type PromptParams = GetPromptRequestParams;
pub(crate) type PromptResult = McpResult<GetPromptResponse>;
pub(crate) type ReadParams = ReadResourceRequestParams;
pub(crate) type ReadResult = McpResult<ReadResourceResponse>;

/// How a client of an era begins.
pub(crate) fn lifecycle(is_modern: bool) -> ClientLifecycleMode {
    if !is_modern {
        return ClientLifecycleMode::Initialize;
    }
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}

/// Serves the handlers that `make` creates until `stop`, and returns the URL.
pub(crate) async fn serve_over_http<S: ServerHandler>(
    make: impl Fn() -> S + Clone + Send + Sync + 'static,
    configure: impl FnOnce(StreamableHttpServerConfig) -> StreamableHttpServerConfig,
    stop: &CancellationToken,
) -> String {
    let config = StreamableHttpServerConfig::default().with_cancellation_token(stop.child_token());
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(make()), sessions, configure(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let accepting = stop.clone();
    tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service.clone();
            let connection = async move {
                let answer = service_fn(move |request| {
                    let service = service.clone();
                    async move { Ok::<_, Infallible>(service.handle(request).await) }
                });
                let io = TokioIo::new(stream);
                // A client may close its connection at any time.
                let _ = http1::Builder::new().serve_connection(io, answer).await;
            };
            tokio::spawn(accepting.clone().run_until_cancelled_owned(connection));
        }
    }));
    url
}
