//! What an HTTP request to a server is written from.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;

use super::headers::Header;

/// What a request is written from, more than once if it must be.
#[derive(Clone)]
pub(super) struct OutgoingRequest {
    pub(super) method: Method,
    pub(super) uri: Uri,
    /// The headers of all requests in its session.
    pub(super) session: Arc<HeaderMap>,
    /// Its own headers.
    pub(super) more: Arc<[Header]>,
    /// The headers of sources; `None` removes a header.
    pub(super) credentials: Vec<(HeaderName, Option<HeaderValue>)>,
    pub(super) body: Bytes,
}

impl OutgoingRequest {
    pub(super) fn to_request(&self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        let mut headers = HeaderMap::clone(&self.session);
        for (name, value) in &*self.more {
            headers.insert(name, value.clone());
        }
        for (name, value) in &self.credentials {
            match value {
                Some(value) => headers.insert(name, value.clone()),
                None => headers.remove(name),
            };
        }
        *request.headers_mut() = headers;
        request
    }
}
