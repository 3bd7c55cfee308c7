//! The fixture server on stdio or HTTP.

use std::io::{self, Write as _};
use std::net::SocketAddr;

use clap::Parser;
use fixture_server::Options;
use rmcp::transport::stdio_pipes;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// A server for tests, with everything the official conformance suite calls by name.
#[derive(Debug, Parser)]
#[command(group(clap::ArgGroup::new("transport").required(true)))]
struct CommandLine {
    /// Serve streamable HTTP there until standard input closes; port 0 is any free one.
    ///
    /// The one line on standard output says where: `listening on http://127.0.0.1:PORT/mcp`.
    #[arg(long, value_name = "ADDRESS", group = "transport")]
    http: Option<SocketAddr>,
    /// Serve one client on standard input and output.
    #[arg(long, group = "transport")]
    stdio: bool,
    /// Stdio: first write a line to standard output that is no message, as careless servers do.
    #[arg(long, conflicts_with = "http")]
    banner: bool,
    #[command(flatten)]
    options: Options,
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let command_line = CommandLine::parse();
    match command_line.http {
        Some(address) => serve_http(command_line.options, address).await,
        None => {
            if command_line.banner {
                say("fixture-server is ready")?;
            }
            fixture_server::serve(command_line.options, stdio_pipes()).await
        }
    }
}

async fn serve_http(options: Options, address: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    // Before anybody hears of the server, since whoever does may end it at once.
    let mut terminated = signal(SignalKind::terminate())?;
    let input_closed = input_closed();
    let address = listener.local_addr()?;
    say(&format!("listening on http://{address}/mcp"))?;
    let shutdown = async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = input_closed => {}
        }
    };
    fixture_server::serve_http(options, listener, shutdown).await
}

/// Done when standard input closes.
///
/// A thread of its own reads it: one of the runtime's would keep the process alive after SIGTERM.
fn input_closed() -> oneshot::Receiver<()> {
    let (closed, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        // An input that cannot be read is as good as closed.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = closed.send(());
    });
    receiver
}

fn say(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}
