//! The listener for probes and metrics, which machines of the operator read. It changes nothing.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, HeaderValue};
use http::request::Parts;
use http::{Response, StatusCode};
use mcp_vary_metrics::Form;
use mcp_vary_operator::{GatewayState, Probe, ProbeResponse};
use mcp_vary_store::StoreState;

use super::responses::{Body, typed_response};
use crate::gateway::Gateway;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::readings;
use crate::status::{ServerStatus, Status};

/// Answers a request to the listener. `is_local`: whether it comes from this machine.
pub(super) async fn respond(
    gateway: &Gateway,
    snapshot: Arc<ConfigSnapshot>,
    head: &Parts,
    is_local: bool,
) -> Response<Body> {
    match Probe::of(&head.method, head.uri.path()) {
        Ok(Probe::Live) => text(ProbeResponse::live()),
        Ok(Probe::Ready) => {
            let is_verbose = is_local && head.uri.query() == Some("verbose");
            text(ready(gateway, &snapshot, is_verbose))
        }
        Ok(Probe::Metrics) => metrics(snapshot, head).await,
        Err(refusal) => text(refusal),
    }
}

/// Whether clients can be served. A server that is connected to for each user counts as up.
fn ready(gateway: &Gateway, snapshot: &ConfigSnapshot, is_verbose: bool) -> ProbeResponse {
    let servers = Status::of(snapshot).servers;
    let is_up = |server: &&ServerStatus| matches!(server.state, "up" | "per-user");
    let up = servers.iter().filter(is_up).count();
    let issuers = snapshot.authentication.iter();
    let keys = issuers.flat_map(|service| service.key_statuses().map(|(_, keys)| keys.age));
    let (loaded, missing): (Vec<_>, Vec<_>) = keys.partition(Option::is_some);
    let store = snapshot.services.store.as_ref().map(|store| store.state());
    let reasons = snapshot.config.ready.reasons(GatewayState {
        is_serving: gateway.is_serving(),
        is_stopping: gateway.is_stopping(),
        servers: (up, servers.len()),
        missing_keys: (missing.len(), loaded.len() + missing.len()),
        is_store_read: store.is_none_or(StoreState::is_settled),
    });
    let store_state = store.map(|state| ("store", state.as_str()));
    let listed = if is_verbose { &servers[..] } else { &[] };
    let shown = listed.iter().map(|server| (&*server.name, server.state));
    ProbeResponse::ready(&reasons, store_state.into_iter().chain(shown))
}

/// All series, in the form that the client prefers.
async fn metrics(snapshot: Arc<ConfigSnapshot>, head: &Parts) -> Response<Body> {
    let values = head.headers.get_all(ACCEPT).iter();
    let accept: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
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
        Ok(None) => text(ProbeResponse::new(
            StatusCode::NOT_FOUND,
            "the gateway was started without metrics\n",
        )),
        Ok(Some(Err(_))) | Err(_) => text(ProbeResponse::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the metrics could not be written\n",
        )),
    }
}

fn text(answer: ProbeResponse) -> Response<Body> {
    let body = Body::from(Bytes::from(answer.text));
    let mut response = typed_response(answer.status, "text/plain; charset=utf-8", body);
    if answer.status == StatusCode::METHOD_NOT_ALLOWED {
        let headers = response.headers_mut();
        headers.insert(ALLOW, HeaderValue::from_static("GET"));
    }
    response
}
