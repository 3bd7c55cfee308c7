//! The operator's own listener: how the gateway stands, and nothing that changes it.

use std::io;
use std::sync::Arc;

use http::header::{ALLOW, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use tokio::net::TcpListener;

use super::http::{AddressKind, json_response};
use crate::frontend::sse_body::Body;
use crate::frontend::validation::{self, Rejection};
use crate::gateway::Gateway;
use crate::pipeline::snapshot::ConfigSnapshot;

/// Where the status is.
const STATUS: &str = "/status";

impl Gateway {
    /// Answers `GET /status` with the [`Status`](crate::Status) as JSON until `shutdown`.
    ///
    /// It is for the operator on this machine: requests from pages of other origins and by other names of
    /// the machine are refused, as they are for clients, and nothing secret is told.
    ///
    /// # Errors
    ///
    /// When `listener` is not on a loopback address.
    pub async fn serve_admin(
        self: &Arc<Self>,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        self.serve(AddressKind::Admin, listener, shutdown, None)
            .await
    }
}

impl ConfigSnapshot {
    pub(super) fn admin_response(&self, head: &Parts) -> Result<Response<Body>, Rejection> {
        validation::check_target(&head.uri)?;
        validation::check_origin(&head.headers)?;
        if head.uri.path() != STATUS {
            return Err(Rejection {
                status: StatusCode::NOT_FOUND,
                reason: format!("there is nothing here; the status is at {STATUS}"),
            });
        }
        if head.method != Method::GET {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            let allowed = HeaderValue::from_static("GET");
            response.headers_mut().insert(ALLOW, allowed);
            return Ok(response);
        }
        let status = serde_json::to_string(&self.status()).unwrap_or_default();
        let body = Body::from(bytes::Bytes::from(status));
        Ok(json_response(StatusCode::OK, "application/json", body))
    }
}
