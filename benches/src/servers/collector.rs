//! A collector of spans: an HTTP server that reads what it gets, and accepts it or never answers.

use std::io;

use bytes::Bytes;
use clap::Parser;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;

use super::{empty, serve_http};

/// The collector.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// Never answer
    #[arg(long)]
    hangs: bool,
}

/// Serves until standard input closes.
pub(crate) fn serve(options: &Options) -> io::Result<()> {
    let hangs = options.hangs;
    serve_http("/v1/traces", move |request| respond(request, hangs))
}

/// An empty answer says that all spans were accepted.
async fn respond(request: Request<Incoming>, hangs: bool) -> Response<Full<Bytes>> {
    match request.into_body().collect().await {
        Ok(_) if hangs => std::future::pending().await,
        Ok(_) => empty(StatusCode::OK),
        Err(_) => empty(StatusCode::BAD_REQUEST),
    }
}
