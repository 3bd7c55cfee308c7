//! One HTTP request until the head of its response: with the cookies of the server, and through redirects of its origin.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::LOCATION;
use http::{Response, StatusCode, Uri};
use hyper_util::client::legacy::{Error, ResponseFuture};
use mcp_vary_base::tasks::try_spawn;
use mcp_vary_http_client::body::Incoming;

use super::address::resolve_within_origin;
use super::collect::drain;
use super::outgoing_request::OutgoingRequest;
use super::pool::Pool;

/// A request on its way, with the headers that it has.
///
/// 307 and 308 are followed within the origin, with method, headers and body (RFC 9110, sections 15.4.8 and 15.4.9). Every
/// other redirect is returned: whoever gets it would get the credentials of the server.
pub(super) struct Delivery {
    pool: Arc<Pool>,
    request: Box<OutgoingRequest>,
    response: ResponseFuture,
    redirects: usize,
}

impl Delivery {
    pub(super) fn send(pool: &Arc<Pool>, request: OutgoingRequest) -> Self {
        Self {
            response: pool.request(request.to_request()),
            pool: Arc::clone(pool),
            request: Box::new(request),
            redirects: 0,
        }
    }

    /// The request, as it was sent last.
    pub(super) fn request(&self) -> OutgoingRequest {
        OutgoingRequest::clone(&self.request)
    }

    /// The address to which `response` redirects, if it is followed.
    fn redirected<T>(&self, response: &Response<T>) -> Option<Uri> {
        let is_repeated = matches!(
            response.status(),
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        if !is_repeated || self.redirects == MAX_REDIRECTS {
            return None;
        }
        let location = response.headers().get(LOCATION)?.to_str().ok()?;
        resolve_within_origin(&self.request.uri, location.trim())
    }
}

impl Future for Delivery {
    type Output = Result<Response<Incoming>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            let response = ready!(Pin::new(&mut this.response).poll(context))?;
            this.pool.cookies.record(response.headers());
            let target = this.redirected(&response);
            let response = Incoming::of_response(response);
            let Some(target) = target else {
                return Poll::Ready(Ok(response));
            };
            let _ = try_spawn(drain(response.into_body()));
            this.request.uri = target;
            this.redirects += 1;
            this.response = this.pool.request(this.request.to_request());
        }
    }
}

/// How often one request is redirected.
const MAX_REDIRECTS: usize = 3;
