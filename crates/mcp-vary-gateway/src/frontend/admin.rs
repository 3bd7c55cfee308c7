//! The operator's listener, which shows the status of the gateway and changes nothing.

use std::io;
use std::sync::Arc;

use http::header::{ALLOW, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use tokio::net::TcpListener;

use super::listener_kind::ListenerKind;
use super::responses::typed_response;
use crate::frontend::sse_body::Body;
use crate::frontend::validation::{self, Rejection};
use crate::gateway::Gateway;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::status::Status;

/// The path of the status.
const STATUS: &str = "/status";

impl Gateway {
    /// Answers `GET /status` with the [`Status`](crate::Status) as JSON until `shutdown`.
    ///
    /// It is for the operator on this machine. Requests from pages of other origins, and under other names of the
    /// machine, are refused as they are on the MCP endpoint. The status contains no secrets.
    ///
    /// # Errors
    ///
    /// When `listener` is not on a loopback address.
    pub async fn serve_admin(
        self: &Arc<Self>,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        self.serve(ListenerKind::Admin, listener, shutdown, None)
            .await
    }
}

/// Answers a request to the operator's listener.
pub(super) fn respond(
    snapshot: &ConfigSnapshot,
    head: &Parts,
) -> Result<Response<Body>, Rejection> {
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
    let status = serde_json::to_string(&Status::of(snapshot)).unwrap_or_default();
    let body = Body::from(bytes::Bytes::from(status));
    Ok(typed_response(StatusCode::OK, "application/json", body))
}
