//! The programs that Vary is compared with, and a collector of its spans, each in its own process.

pub(crate) mod collector;
pub(crate) mod fan;
pub(crate) mod fixed;
pub(crate) mod forward;
pub(crate) mod library;
pub(crate) mod rmcp_proxy;

use std::io::{self, Write as _};
use std::thread;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderName, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Serves on any free port, which it prints, until standard input closes. One thread does everything.
pub(crate) fn serve_http<B, F>(
    path: &str,
    respond: impl Fn(Request<Incoming>) -> F + Clone + 'static,
) -> io::Result<()>
where
    B: http_body::Body<Data = Bytes, Error: std::error::Error + Send + Sync> + 'static,
    F: Future<Output = Response<B>> + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let closed = input_closed();
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        say(&format!(
            "listening on http://{}{path}",
            listener.local_addr()?
        ))?;
        tokio::select! {
            accepted = accept(listener, respond) => accepted,
            _ = closed => Ok(()),
        }
    })
}

async fn accept<B, F>(
    listener: TcpListener,
    respond: impl Fn(Request<Incoming>) -> F + Clone + 'static,
) -> io::Result<()>
where
    B: http_body::Body<Data = Bytes, Error: std::error::Error + Send + Sync> + 'static,
    F: Future<Output = Response<B>> + 'static,
{
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let respond = respond.clone();
        let service = service_fn(move |request| {
            let response = respond(request);
            async move { Ok::<_, std::convert::Infallible>(response.await) }
        });
        tokio::task::spawn_local(async move {
            // Errors of a connection are only the client's concern.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
    }
}

/// Completes when standard input closes, which happens when the parent process ends.
pub(crate) fn input_closed() -> oneshot::Receiver<()> {
    let (closed, receiver) = oneshot::channel();
    thread::spawn(move || {
        // An input that cannot be read is as good as closed.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = closed.send(());
    });
    receiver
}

/// Prints a line for the parent process.
pub(crate) fn say(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}

pub(crate) fn json<B>(body: B) -> Response<B> {
    let mut response = Response::new(body);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

pub(crate) fn empty<B: Default>(status: StatusCode) -> Response<B> {
    let mut response = Response::new(B::default());
    *response.status_mut() = status;
    response
}
