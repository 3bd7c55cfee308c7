//! The listener for probes and metrics, which machines of the operator read. It changes nothing.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use mcp_vary_metrics::Form;
use mcp_vary_operator::GatewayState;

use super::responses::{Body, typed_response};
use crate::gateway::Gateway;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::readings;
use crate::status::{ServerStatus, Status};

/// The answer to a path.
#[derive(Clone, Copy, Debug)]
enum Probe {
    /// The process answers.
    Live,
    /// Clients can be served.
    Ready,
    Metrics,
}

const PATHS: &[(&str, Probe)] = &[
    ("/livez", Probe::Live),
    ("/readyz", Probe::Ready),
    ("/healthz", Probe::Ready),
    ("/metrics", Probe::Metrics),
];

/// Answers a request to the listener. `is_local`: whether it comes from this machine.
pub(super) async fn respond(
    gateway: &Gateway,
    snapshot: Arc<ConfigSnapshot>,
    head: &Parts,
    is_local: bool,
) -> Response<Body> {
    let Some((_, probe)) = PATHS.iter().find(|(path, _)| *path == head.uri.path()) else {
        let why = "there is nothing here; there are /livez, /readyz, /healthz and /metrics\n";
        return text(StatusCode::NOT_FOUND, why.to_owned());
    };
    if head.method != Method::GET {
        let mut response = text(
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET is allowed\n".to_owned(),
        );
        let headers = response.headers_mut();
        headers.insert(ALLOW, HeaderValue::from_static("GET"));
        return response;
    }
    match probe {
        Probe::Live => text(StatusCode::OK, "ok\n".to_owned()),
        Probe::Ready => {
            let is_verbose = is_local && head.uri.query() == Some("verbose");
            ready(gateway, &snapshot, is_verbose)
        }
        Probe::Metrics => metrics(snapshot, head).await,
    }
}

/// Whether clients can be served; else why not, a line for each reason. A server that is connected to for each user counts as
/// up.
fn ready(gateway: &Gateway, snapshot: &ConfigSnapshot, is_verbose: bool) -> Response<Body> {
    let servers = Status::of(snapshot).servers;
    let is_up = |server: &&ServerStatus| matches!(server.state, "up" | "per-user");
    let up = servers.iter().filter(is_up).count();
    let issuers = snapshot.authentication.iter();
    let keys = issuers.flat_map(|it| it.key_statuses().map(|(_, keys)| keys.age));
    let (loaded, missing): (Vec<_>, Vec<_>) = keys.partition(Option::is_some);
    let reasons = snapshot.config.ready.reasons(GatewayState {
        is_serving: gateway.is_serving(),
        is_stopping: gateway.is_stopping(),
        servers: (up, servers.len()),
        missing_keys: (missing.len(), loaded.len() + missing.len()),
    });
    let is_ready = reasons.is_empty();
    let mut body = if is_ready {
        "ok\n".to_owned()
    } else {
        reasons.join("\n") + "\n"
    };
    if is_verbose {
        for server in &servers {
            // Writing to memory does not fail.
            let _ = writeln!(body, "{}: {}", server.name.escape_default(), server.state);
        }
    }
    let status = if is_ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    text(status, body)
}

/// All series, in the form that the client prefers.
async fn metrics(snapshot: Arc<ConfigSnapshot>, head: &Parts) -> Response<Body> {
    let accept = head.headers.get_all(ACCEPT).iter();
    let accept: Vec<&str> = accept.filter_map(|value| value.to_str().ok()).collect();
    let form = Form::preferred(&accept.join(","));
    // Tokens of lists that have changed are counted, which would hold up other requests.
    let written = tokio::task::spawn_blocking(move || {
        let exposition = readings::exposition(&snapshot);
        exposition.map(|exposition| exposition.write(form))
    });
    match written.await {
        Ok(Some(Ok(written))) => {
            let body = Body::from(Bytes::from(written));
            let mut response = typed_response(StatusCode::OK, form.media_type(), body);
            let headers = response.headers_mut();
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        Ok(None) => text(
            StatusCode::NOT_FOUND,
            "the gateway was started without metrics\n".to_owned(),
        ),
        Ok(Some(Err(_))) | Err(_) => text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the metrics could not be written\n".to_owned(),
        ),
    }
}

fn text(status: StatusCode, body: String) -> Response<Body> {
    let body = Body::from(Bytes::from(body));
    typed_response(status, "text/plain; charset=utf-8", body)
}
