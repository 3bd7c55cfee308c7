//! Streamable HTTP at `/mcp`, with the Host and Origin of a browser checked unless the options say otherwise.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::Body;
use crate::fixture::Fixture;
use crate::options::Options;
use crate::state::Shared;

type Service = StreamableHttpService<Fixture, LocalSessionManager>;

/// Serves every client that connects to `listener` until `shutdown` is done; all of them share one state.
///
/// # Errors
///
/// When `listener` fails.
pub async fn serve_http(
    options: Options,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let stop = CancellationToken::new();
    let _ends_with_this_function = stop.clone().drop_guard();
    let service = service(options, stop.child_token());
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => return Ok(()),
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                // Events are small and come one by one; each must leave at once.
                let _ = stream.set_nodelay(true);
                let connection = connection(stream, service.clone());
                tokio::spawn(stop.clone().run_until_cancelled_owned(connection));
            }
        }
    }
}

fn service(options: Options, stop: CancellationToken) -> Service {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(!options.stateless)
        .with_json_response(options.json_response)
        .with_cancellation_token(stop);
    let config = if options.any_host {
        config.disable_allowed_hosts().disable_allowed_origins()
    } else {
        config.with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
    };
    let shared = Shared::new();
    StreamableHttpService::new(
        move || Ok(Fixture::new(options.clone(), shared.clone())),
        Arc::new(LocalSessionManager::default()),
        config,
    )
}

async fn connection(stream: TcpStream, service: Service) {
    let answer = service_fn(move |request| answer(service.clone(), request));
    // A client that breaks its connection is the client's business.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

async fn answer(
    service: Service,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    if request.uri().path() == "/mcp" {
        return Ok(service.handle(request).await);
    }
    let mut response = Response::new(Empty::new().boxed());
    *response.status_mut() = StatusCode::NOT_FOUND;
    Ok(response)
}
