//! Probes: whether the gateway lives, and whether it is ready.

use std::net::SocketAddr;

use mcp_vary_auth::key::KeyTable;
use mcp_vary_gateway::settings::authentication::Authentication;
use mcp_vary_gateway::settings::metrics::Readiness;

use super::scraping::{get, probes, probes_of};
use crate::support::people::{token_config, trusted};
use crate::support::*;

/// A gateway in one of the states of the page, what it serves, and the address of its probes.
async fn in_state(state: &str, ready: Readiness) -> (Arc<Gateway>, SocketAddr, impl Sized) {
    let peer = places_server::start(Era::Modern).await;
    let issuer = AuthorizationServer::start().await;
    let mut config = before(&[("first", &peer), ("second", &peer)]);
    let unreachable = || Target::command("no-such-program", []);
    let mut wait = Duration::from_secs(60);
    match state {
        "no server is up" => {
            for server in &mut config.servers {
                server.target = unreachable();
            }
        }
        "some servers are up" => config.servers[1].target = unreachable(),
        "every server is up" => {}
        "Vary starts" => config.servers[1].target = Target::command("sleep", ["60".to_owned()]),
        "Vary stops" => config.limits.drain_delay = wait,
        "the keys of an issuer were never loaded" => {
            issuer.respond("/keys", "500 Internal Server Error", "");
            let tokens = token_config(trusted(&issuer, &[], &[]));
            let keys = KeyTable::new(Vec::new()).unwrap();
            config.authentication = Some(Authentication::new(keys, Some(tokens), false).unwrap());
        }
        other => panic!("`{other}` is not a state"),
    }
    if state == "Vary starts" {
        wait = Duration::from_secs(3_600);
    }
    config.ready = ready;
    let gateway = Gateway::open(config.allow_empty_start(wait)).await;
    let (_, stop) = serve(&gateway).await;
    if state != "Vary starts" {
        gateway.connected().await.unwrap();
    }
    if state == "Vary stops" {
        stop.cancel();
    }
    let address = probes_of(&gateway).await;
    (gateway, address, (peer, issuer, stop))
}

/// Checks a row of the table: the answers in a state, with each of some values of `ready`.
async fn answers(row: &[&str]) {
    let [state, ready, live, readiness, health, reason] = row else {
        panic!("{row:?}")
    };
    for (name, ready_value) in [
        ("`any`", Readiness::Any),
        ("`all`", Readiness::All),
        ("`none`", Readiness::None),
    ] {
        if *ready != name && *ready != "each" {
            continue;
        }
        let (gateway, address, _served) = in_state(state, ready_value).await;
        for (path, expected) in [
            ("/livez", live),
            ("/readyz", readiness),
            ("/healthz", health),
        ] {
            let line = match *expected {
                "503" => reason.trim_matches('`'),
                _ => "ok",
            };
            let row = format!("{state}, {name}, {path}: {expected} {line}");
            let is_shown = async || {
                let answer = get(address, path, "*/*").await;
                let text = answer.text();
                answer.status.to_string() == *expected && text.lines().any(|it| it == line)
            };
            // The end of a gateway begins a moment after its signal, and keys are fetched when it starts.
            let shown = tokio::time::timeout(Duration::from_secs(20), until(is_shown));
            assert!(shown.await.is_ok(), "{row}");
        }
        gateway.close().await;
    }
}

/// OP-6: the table of the page is what a gateway answers.
#[tokio::test]
async fn probes_answer_as_the_page_says() {
    let page = include_str!("../../../../docs/internals/probes.md");
    let (_, table) = page.split_once("| state | `ready` |").unwrap();
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let rows = rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect());
    let rows: Vec<Vec<_>> = rows.collect();
    assert_eq!(rows.len(), 12);
    futures_util::future::join_all(rows.iter().map(|row| answers(row))).await;
}

/// OP-6
#[tokio::test]
async fn a_verbose_probe_names_the_servers() {
    let (_gateway, address, _served) = in_state("some servers are up", Readiness::Any).await;
    let text = get(address, "/readyz?verbose", "*/*").await.text();
    assert_eq!(text, "ok\nfirst: up\nsecond: down\n");
}

/// OP-6
#[tokio::test]
async fn a_gateway_that_stops_is_not_ready() {
    let harness = Harness::start().await;
    let address = probes(&harness).await;
    assert_eq!(get(address, "/readyz", "*/*").await.status, 200);
    harness.gateway.close().await;
    let answer = get(address, "/readyz", "*/*").await;
    assert_eq!(answer.status, 503);
    let reasons = answer.text();
    let expected = "stopping: new clients must connect elsewhere\n";
    assert!(reasons.starts_with(expected), "{reasons}");
    assert_eq!(get(address, "/livez", "*/*").await.status, 200);
}

/// OP-6
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
