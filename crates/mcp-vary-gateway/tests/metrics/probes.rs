//! Probes: whether the gateway lives, and whether it is ready.

use mcp_vary_gateway::settings::metrics::Readiness;
use mcp_vary_gateway::{Target, UpstreamConfig};
use mcp_vary_testkit::era::Era;
use mcp_vary_testkit::http_client::{HttpRequest, RawHttp};
use mcp_vary_testkit::places_server;

use super::scraping::{get, probes};
use crate::support::{Harness, before};

/// The answers of a gateway with one server that is up and one that is down.
#[track_caller]
fn shows(ready: Readiness, status: u16, body: &str) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let answer = runtime.block_on(async {
        let peer = places_server::start(Era::Modern).await;
        let mut config = before(&[("up", &peer)]);
        let target = Target::command("no-such-program", []);
        config.servers.push(UpstreamConfig::new("down", target));
        config.ready = ready;
        let harness = Harness::behind(peer, config).await;
        let address = probes(&harness).await;
        for path in ["/livez", "/readyz", "/healthz"] {
            let answer = get(address, path, "*/*").await;
            let expected = match path {
                "/livez" => (200, "ok\n".to_owned()),
                _ => (status, body.to_owned()),
            };
            assert_eq!((answer.status, answer.text()), expected, "{path}");
        }
        get(address, "/readyz?verbose", "*/*").await.text()
    });
    assert_eq!(answer, format!("{body}up: up\ndown: down\n"));
}

#[test]
fn the_operator_decides_how_many_servers_must_be_up() {
    shows(Readiness::Any, 200, "ok\n");
    shows(Readiness::None, 200, "ok\n");
    shows(Readiness::All, 503, "servers: 1 of 2 up\n");
}

#[tokio::test]
async fn a_gateway_that_stops_is_not_ready() {
    let harness = Harness::start().await;
    let address = probes(&harness).await;
    assert_eq!(get(address, "/readyz", "*/*").await.status, 200);
    harness.gateway.close().await;
    let answer = get(address, "/readyz", "*/*").await;
    assert_eq!(answer.status, 503);
    let reasons = answer.text();
    assert!(
        reasons.starts_with("stopping: new clients must connect elsewhere\n"),
        "{reasons}"
    );
    assert_eq!(get(address, "/livez", "*/*").await.status, 200);
}

#[tokio::test]
async fn only_get_on_known_paths_is_answered() {
    let harness = Harness::start().await;
    let address = probes(&harness).await;
    for (line, status) in [
        ("POST /readyz HTTP/1.1", 405),
        ("DELETE /metrics HTTP/1.1", 405),
        ("GET / HTTP/1.1", 404),
        ("GET /status HTTP/1.1", 404),
        ("POST /mcp HTTP/1.1", 404),
    ] {
        let mut http = RawHttp::connect(address).await;
        let answer = http.ask(&HttpRequest::new("").line(line)).await;
        assert_eq!(answer.status, status, "{line}");
    }
}
