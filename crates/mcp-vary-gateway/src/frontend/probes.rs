//! The listener for probes and metrics, which machines of the operator read. It changes nothing.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use mcp_vary_metrics::Form;

use super::responses::{Body, typed_response};
use crate::gateway::Gateway;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::readings;
use crate::settings::metrics::Readiness;
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

/// Whether clients can be served; else why not, a line for each reason.
fn ready(gateway: &Gateway, snapshot: &ConfigSnapshot, is_verbose: bool) -> Response<Body> {
    let servers = Status::of(snapshot).servers;
    let mut reasons = Vec::new();
    if !gateway.is_serving() {
        reasons.push("starting: the servers are being connected to".to_owned());
    }
    if gateway.is_stopping() {
        reasons.push("stopping: new clients must connect elsewhere".to_owned());
    }
    reasons.extend(missing_servers(&servers, snapshot.config.ready));
    reasons.extend(missing_keys(snapshot));
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

/// Why the servers that are up are too few. A server that is connected to for each user counts as up.
fn missing_servers(servers: &[ServerStatus], readiness: Readiness) -> Option<String> {
    let is_up = |server: &&ServerStatus| matches!(server.state, "up" | "per-user");
    let (up, all) = (servers.iter().filter(is_up).count(), servers.len());
    let is_enough = match readiness {
        Readiness::Any => up > 0,
        Readiness::All => up == all,
        Readiness::None => true,
    };
    (!is_enough).then(|| format!("servers: {up} of {all} up"))
}

/// Why tokens cannot be verified.
fn missing_keys(snapshot: &ConfigSnapshot) -> Option<String> {
    let issuers = snapshot.authentication.iter();
    let ages = issuers.flat_map(|it| it.key_statuses().map(|(_, keys)| keys.age));
    let (loaded, missing): (Vec<_>, Vec<_>) = ages.partition(Option::is_some);
    let (missing, all) = (missing.len(), loaded.len() + missing.len());
    (missing > 0).then(|| format!("keys: those of {missing} of {all} issuers were never loaded"))
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
