//! The page of the operator: what the listener asks the program that has one.

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response};
use tokio::sync::mpsc;

/// A page in the browser of the operator, at every path of the listener that is neither the status nor a command.
pub trait Page: fmt::Debug + Send + Sync {
    /// Answers a request whose `Host` and `Origin` were checked. `is_admitted`: whether it has a token for the page, or comes
    /// from the operator's own socket. Without that the page must tell nothing, and the body is empty.
    fn respond(&self, request: Request<Bytes>, is_admitted: bool) -> PageResponse<'_>;
}

/// The response to a request for the page.
pub type PageResponse<'a> = Pin<Box<dyn Future<Output = Response<PageBody>> + Send + 'a>>;

/// The body of a response.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "the gateway writes each")]
pub enum PageBody {
    /// The whole body.
    Whole(Bytes),
    /// Server-sent events as they come, until the sender is dropped or the listener stops. The gateway adds comments where
    /// there are none for a while.
    Events(mpsc::Receiver<Bytes>),
}
