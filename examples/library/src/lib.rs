//! Programs that use both extensions, a module for each use; `src/bin` only starts them.
//!
//! What they share is here: serving on standard input and output or on HTTP, and connecting to a server.

pub mod embedded;
pub mod mapping;
pub mod model_optimised;
pub mod phases;
pub mod research;
pub mod toolsets;
pub mod trading;
pub mod weather_client;
pub mod weather_negotiated;

use std::convert::Infallible;
use std::error::Error;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;

use clap::Parser;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcp_vary_rmcp::client::{Client, DeclaringClient};
use mcp_vary_rmcp::server::VaryServer;
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, RunningService, ServerInitializeError, Service,
};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{
    IntoTransport, StreamableHttpClientTransport, StreamableHttpServerConfig,
    StreamableHttpService, stdio,
};
use rmcp::{RoleClient, ServiceExt as _};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

/// Any error ends an example.
pub type ExampleError = Box<dyn Error + Send + Sync>;

#[derive(Debug, Parser)]
struct ServeArgs {
    /// Serve one client on standard input and output; this is the default.
    #[arg(long)]
    stdio: bool,
    /// Serve streamable HTTP at this address, and print the URL. Port 0 takes any free port.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "stdio")]
    http: Option<SocketAddr>,
}

/// Serves `server` as the command line says, until its clients have disconnected.
///
/// # Errors
///
/// When the address is in use, or the client on standard input does not complete the handshake.
pub async fn serve(server: VaryServer) -> Result<(), ExampleError> {
    let Some(address) = ServeArgs::parse().http else {
        match server.serve(stdio()).await {
            Ok(running) => drop(running.waiting().await?),
            // A client may disconnect before it initializes.
            Err(ServerInitializeError::ConnectionClosed(_)) => {}
            Err(error) => return Err(error.into()),
        }
        return Ok(());
    };
    let listener = TcpListener::bind(address).await?;
    print_line(&format!("http://{}/mcp", listener.local_addr()?))?;
    serve_http(server, listener).await?;
    Ok(())
}

/// Serves clones of `server` on `listener`, for as long as the future is polled.
///
/// # Errors
///
/// When the listener can no longer accept connections.
pub async fn serve_http(server: VaryServer, listener: TcpListener) -> io::Result<Infallible> {
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    loop {
        let (stream, _) = listener.accept().await?;
        let service = service.clone();
        let answer = service_fn(move |request| {
            let service = service.clone();
            async move { Ok::<_, Infallible>(service.handle(request).await) }
        });
        tokio::spawn(async move {
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
            // A client may close its connection at any time.
            let _ = connection.await;
        });
    }
}

#[derive(Debug, Parser)]
struct ConnectArgs {
    /// Use the protocol as it was before 2026-07-28.
    #[arg(long)]
    legacy: bool,
    /// The URL of a server, or the command that starts one.
    #[arg(required = true, trailing_var_arg = true)]
    server: Vec<String>,
}

/// A connection to a server, closed when it is dropped.
#[derive(Debug)]
#[non_exhaustive]
pub struct Connection<S: Service<RoleClient>> {
    /// The client.
    pub client: Client,
    _running: RunningService<RoleClient, DeclaringClient<S>>,
    _started: Option<Child>,
}

/// Connects to the server that the command line names, with the declarations of `declaring`.
///
/// # Errors
///
/// When the server cannot be started, or the handshake fails.
pub async fn connect_from_args<S: Service<RoleClient>>(
    declaring: DeclaringClient<S>,
) -> Result<Connection<S>, ExampleError> {
    let ConnectArgs { legacy, server } = ConnectArgs::parse();
    connect_to(declaring, &server, legacy).await
}

/// Connects to `server`, a URL or a command with its arguments, in the given era.
///
/// # Errors
///
/// The same as for [`connect_from_args`].
pub async fn connect_to<S: Service<RoleClient>>(
    declaring: DeclaringClient<S>,
    server: &[String],
    legacy: bool,
) -> Result<Connection<S>, ExampleError> {
    let (place, arguments) = server.split_first().ok_or("no server is named")?;
    if place.starts_with("http") {
        let transport = StreamableHttpClientTransport::from_uri(place.as_str());
        return connect(declaring, transport, legacy).await;
    }
    let mut command = Command::new(place);
    command.args(arguments).kill_on_drop(true);
    let mut started = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let pipes = started.stdout.take().zip(started.stdin.take());
    let mut reached = connect(declaring, pipes.ok_or("the server has no pipes")?, legacy).await?;
    reached._started = Some(started);
    Ok(reached)
}

/// Connects over `transport`, in the given era.
///
/// # Errors
///
/// When the handshake fails.
pub async fn connect<S, T, E, A>(
    declaring: DeclaringClient<S>,
    transport: T,
    legacy: bool,
) -> Result<Connection<S>, ExampleError>
where
    S: Service<RoleClient>,
    T: IntoTransport<RoleClient, E, A>,
    E: Error + Send + Sync + 'static,
{
    let lifecycle = if legacy {
        ClientLifecycleMode::Initialize
    } else {
        ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        }
    };
    let running = declaring.serve_with_lifecycle(transport, lifecycle).await?;
    Ok(Connection {
        client: Client::new(running.peer(), running.service()).await,
        _running: running,
        _started: None,
    })
}

/// Writes a line to standard output.
///
/// # Errors
///
/// When standard output is closed.
pub fn print_line(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}
