//! The size of the future of a request.

use crate::prelude::*;
use rmcp::service::Service as _;

struct Bare;

impl ServerHandler for Bare {}

/// The size of the future that `request` returns. It is not called.
fn size_of_future<A, B, F>(_request: impl Fn(A, B) -> F) -> usize {
    size_of::<F>()
}

/// rmcp moves the future of each request several times, and the future has room for that of the largest method.
#[test]
fn rmcp_moves_hardly_more_than_for_the_bare_handler() {
    let server = VaryServer::new(Bare);
    let bare = size_of_future(|request, context| Bare.handle_request(request, context));
    let size = size_of_future(|request, context| server.handle_request(request, context));
    assert!(size <= bare + 1024, "{size} bytes instead of {bare}");
}
