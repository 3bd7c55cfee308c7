//! The limit of a list: an HTTP server whose answer is fixed.

use std::io;

use bytes::Bytes;
use clap::Parser;
use http_body_util::Full;

use super::{json, serve_http};

/// The limit of a list.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// How many bytes the answer has
    #[arg(long)]
    size: usize,
}

/// Serves until standard input closes. Ignores the requests.
pub(crate) fn serve(options: &Options) -> io::Result<()> {
    let body = Bytes::from(body(options.size));
    serve_http("/mcp", move |_| {
        let response = json(Full::new(body.clone()));
        async move { response }
    })
}

/// The answer to all requests.
pub(crate) fn body(size: usize) -> String {
    let (start, end) = (r#"{"jsonrpc":"2.0","id":0,"result":{"fixed":""#, r#""}}"#);
    let filler = size.saturating_sub(start.len() + end.len());
    format!("{start}{}{end}", "x".repeat(filler))
}
