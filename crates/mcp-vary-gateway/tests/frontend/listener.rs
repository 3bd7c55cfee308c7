//! Names, origins and proxies of the configuration.

use mcp_vary_gateway::settings::listener::{ListenerConfig, TrustedProxies};
use tokio::net::TcpListener;

use crate::support::*;

const ORIGIN: &str = "https://app.example";

fn with_listener(adapt: impl FnOnce(&mut ListenerConfig)) -> impl FnOnce(Config) -> Config {
    |mut config: Config| {
        config.listener.hosts = vec!["mcp.example".parse().unwrap()];
        config.listener.origins = vec![ORIGIN.parse().unwrap()];
        adapt(&mut config.listener);
        config
    }
}

fn proxies(networks: &[&str]) -> TrustedProxies {
    let networks = networks.iter().map(|network| network.parse().unwrap());
    TrustedProxies::new(networks.collect())
}

fn list() -> HttpRequest {
    HttpRequest::modern_request("tools/list", json!({}))
}

fn preflight() -> HttpRequest {
    HttpRequest::new("")
        .line("OPTIONS /mcp HTTP/1.1")
        .with("Host", "mcp.example")
        .with("Origin", ORIGIN)
        .with("Access-Control-Request-Method", "POST")
        .with(
            "Access-Control-Request-Headers",
            "authorization,content-type, mcp-param-city,Last-Event-ID,x-other,MCP-Protocol-Version,bad header",
        )
}

#[tokio::test]
async fn the_names_of_the_configuration_and_those_of_the_machine_are_accepted() {
    let harness = Harness::with(with_listener(|_| {})).await;
    let mut http = harness.connect().await;
    for (host, expected) in [
        ("mcp.example", 200),
        ("MCP.example:8443", 200),
        ("localhost", 200),
        ("other.example", 403),
        ("mcp.example.other.example", 403),
    ] {
        let answer = http.ask(&list().with("Host", host)).await;
        assert_eq!(answer.status, expected, "{host}");
    }
    let absolute = list().line("POST http://other.example/mcp HTTP/1.1");
    let found = http.ask(&absolute.with("Host", "mcp.example")).await.status;
    assert_eq!(found, 403);
}

#[tokio::test]
async fn a_page_of_a_listed_origin_may_send_what_it_needs() {
    let harness = Harness::with(with_listener(|_| {})).await;
    let mut http = harness.connect().await;
    let answer = http.ask(&preflight()).await;
    assert_eq!(answer.status, 204);
    for (name, expected) in [
        ("access-control-allow-origin", ORIGIN),
        ("access-control-allow-methods", "GET, POST, DELETE"),
        (
            "access-control-allow-headers",
            "authorization, content-type, mcp-param-city, Last-Event-ID, MCP-Protocol-Version",
        ),
        ("access-control-max-age", "600"),
    ] {
        assert_eq!(answer.header(name), Some(expected), "{name}");
    }
}

#[tokio::test]
async fn a_page_of_a_listed_origin_reads_answers_and_refusals() {
    let harness = Harness::with(with_listener(|_| {})).await;
    let mut http = harness.connect().await;
    let from_page = list().with("Host", "mcp.example").with("Origin", ORIGIN);
    let elsewhere = from_page.clone().line("POST /nothing HTTP/1.1");
    let misnamed = from_page.clone().with("Host", "other.example");
    for (request, status) in [(from_page, 200), (elsewhere, 404), (misnamed, 403)] {
        let answer = http.ask(&request).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("access-control-allow-origin"), Some(ORIGIN));
        let exposed = answer.header("access-control-expose-headers");
        let expected = Some("WWW-Authenticate, Mcp-Session-Id, Retry-After");
        assert_eq!(exposed, expected);
        assert_eq!(answer.header("vary"), Some("origin"));
    }
}

#[tokio::test]
async fn a_page_of_another_origin_gets_nothing() {
    let harness = Harness::with(with_listener(|_| {})).await;
    let mut http = harness.connect().await;
    for origin in ["https://other.example", "http://app.example", "null"] {
        for request in [list().with("Host", "mcp.example"), preflight()] {
            let answer = http.ask(&request.with("Origin", origin)).await;
            assert_eq!(answer.status, 403, "{origin}");
            assert_eq!(
                answer.header("access-control-allow-origin"),
                None,
                "{origin}"
            );
        }
    }
    // Two origins are none.
    let two = format!("POST /mcp HTTP/1.1\r\nOrigin: {ORIGIN}\r\nOrigin: https://other.example");
    let answer = http.ask(&list().line(&two)).await;
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (403, None)
    );
}

#[tokio::test]
async fn without_origins_a_page_of_this_machine_gets_no_cors() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let post = list().with("Origin", "http://localhost:6274");
    let answer = http.ask(&post).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), None);
    let asked = preflight()
        .with("Host", "localhost")
        .with("Origin", "http://localhost:6274");
    assert_eq!(http.ask(&asked).await.status, 405);
}

#[tokio::test]
async fn a_peer_that_is_not_a_trusted_proxy_is_disconnected() {
    let untrusted = Harness::with(with_listener(|listener| {
        listener.trusted_proxies = Some(proxies(&["192.0.2.1", "10.0.0.0/8"]));
    }))
    .await;
    let mut http = untrusted.connect().await;
    http.send(&list().bytes()).await;
    assert!(http.is_closed().await);
    // A header does not make it one.
    let mut http = untrusted.connect().await;
    http.send(&list().with("X-Forwarded-For", "192.0.2.1").bytes())
        .await;
    assert!(http.is_closed().await);

    let trusted = Harness::with(with_listener(|listener| {
        listener.trusted_proxies = Some(proxies(&["127.0.0.1"]));
    }))
    .await;
    let mut http = trusted.connect().await;
    let found = http.ask(&list().with("Host", "mcp.example")).await.status;
    assert_eq!(found, 200);
}

#[tokio::test]
async fn a_connection_ends_to_be_served_when_a_reload_distrusts_its_proxy() {
    let config = with_listener(|listener| {
        listener.trusted_proxies = Some(proxies(&["127.0.0.1"]));
    });
    let mut next = None;
    let harness = Harness::with(|before| {
        let config = config(before);
        let mut changed = config.clone();
        changed.listener.trusted_proxies = Some(proxies(&["192.0.2.1"]));
        next = Some(changed);
        config
    })
    .await;
    let mut http = harness.connect().await;
    assert_eq!(http.ask(&list()).await.status, 200);
    harness.reload(next.unwrap()).await;
    let answer = http.ask(&list()).await;
    assert_eq!(answer.status, 403);
    let expected = "does not serve this connection any more";
    assert!(answer.text().contains(expected), "{}", answer.text());
}

#[tokio::test]
async fn the_status_stays_on_this_machine_whatever_is_configured() {
    let harness = Harness::with(with_listener(|listener| {
        listener.trusted_proxies = Some(proxies(&["192.0.2.1"]));
    }))
    .await;
    let open = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = harness
        .gateway
        .serve_admin(open, std::future::pending())
        .await;
    let expected = "the status is for this one";
    assert!(refused.unwrap_err().to_string().contains(expected));

    let address = harness.operators().await;
    let mut http = RawHttp::connect(address).await;
    let status = |host: &str| {
        HttpRequest::new("")
            .line("GET /status HTTP/1.1")
            .with("Host", host)
    };
    assert_eq!(http.ask(&status("localhost")).await.status, 200);
    assert_eq!(http.ask(&status("mcp.example")).await.status, 403);
}
