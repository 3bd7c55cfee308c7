//! The page of the operator: what the listener asks the program that has one.

use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response};
use tokio::sync::mpsc;

/// Where a `POST` with the operator's token gets a code for the address of the page.
pub const PAGE_CODE: &str = "/api/code";
/// Where the page exchanges that code, which it sends instead of a token, for its token.
pub const PAGE_TOKEN: &str = "/api/token";

/// A page in the browser of the operator, at every path of the listener that is neither the status nor a command.
pub trait Page: Send + Sync {
    /// Answers a request whose `Host` and `Origin` were checked. Without access the page must tell nothing, and the body is
    /// empty.
    fn respond(&self, request: Request<Bytes>, access: PageAccess) -> PageResponse<'_>;
}

// As a supertrait, it would keep the code in the program that writes each type behind it.
mcp_vary_base::debug_by_name!(dyn Page);

/// What a request to the page may do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the page answers each")]
pub enum PageAccess {
    /// Nothing but to get the files of the page.
    None,
    /// Read, by an access token of somebody whom the operator lets read: the same number is the same principal.
    Read(u128),
    /// Everything that the page can do, by the token of the page or on the operator's own socket.
    Full,
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
