//! The status for operators: servers, uses of deprecated variants, rankings.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;

use mcp_vary::variant::DeprecationInfo;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::*;

/// Noon of 1970-01-12.
const START: u64 = 11 * DAY + DAY / 2;
const DAY: u64 = 86_400;

/// `standard`, and `old`, which goes on 1970-01-20.
fn variants(config: Config) -> Config {
    let variant = |id: &str| ServerVariant::new(id.parse().unwrap(), "For tests.");
    let mut info = DeprecationInfo::new("Use standard.");
    info.replacement = Some("standard".parse().unwrap());
    info.removal_date = Some("1970-01-20".to_owned());
    let old = variant("old").deprecated(info);
    let all = [variant("standard"), old].map(VariantConfig::new);
    config.with_variants_of(all.into()).unwrap()
}

/// A gateway with this clock.
async fn with_clock(now: fn() -> u64, adapt: fn(Config) -> Config) -> Harness {
    let environment = Environment::new(now, |bytes| getrandom::fill(bytes).unwrap());
    Harness::with(|config| edited(|config| config.environment = environment)(adapt(config))).await
}

/// What a client that calls itself `test` is answered under `old`.
async fn list(harness: &Harness, client_kind: ClientKind, variant: &str) {
    let info =
        json!({"_meta": {"io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"}}});
    let params = under(variant, info);
    let list = harness.ask(client_kind, "tools/list", params).await;
    assert!(list["result"].is_object(), "{client_kind:?}: {list}");
}

/// SV-25: each use counts for its client, whichever way it comes, and is said once a day.
#[tokio::test]
async fn the_use_of_a_deprecated_variant_is_counted_and_said_once_a_day() {
    static NOW: AtomicU64 = AtomicU64::new(START);
    let harness = with_clock(|| NOW.load(Ordering::Relaxed), variants).await;
    let (log, _listening) = CapturedLog::listen("mcp_vary_session::deprecation", Level::WARN);
    for way in ClientKind::ALL {
        list(&harness, way, "standard").await;
    }
    assert_eq!(harness.gateway.status().deprecated_use, []);
    for way in ClientKind::ALL {
        list(&harness, way, "old").await;
        list(&harness, way, "old").await;
    }
    let uses = harness.gateway.status().deprecated_use;
    let [used] = &uses[..] else {
        panic!("{uses:?}")
    };
    let client = used.client.clone().unwrap();
    let expected = ("test", "1");
    assert_eq!((client.name.as_str(), client.version.as_str()), expected);
    let expected = ("old", 8, START);
    assert_eq!((used.variant.as_str(), used.requests, used.last), expected);
    let said = log.take();
    assert_eq!(said.len(), 1, "{said:?}");
    let parts = r#"client="test"; variant=old; replacement=standard; days_left=8;"#;
    for part in parts.split(' ') {
        assert!(said[0].contains(part), "{part}: {}", said[0]);
    }
    for (hours, days) in [
        (11, None),
        (13, Some("days_left=7;")),
        (24, None),
        (12 + 24 * 10, Some("days_left=-3;")),
    ] {
        NOW.store(START + hours * 3600, Ordering::Relaxed);
        list(&harness, ClientKind::HttpModern, "old").await;
        let said = log.take();
        assert_eq!(said.len(), usize::from(days.is_some()), "{hours}: {said:?}");
        let days = days.unwrap_or_default();
        assert!(said.iter().all(|line| line.contains(days)), "{said:?}");
    }
    assert_eq!(harness.gateway.status().deprecated_use[0].requests, 12);
}

/// SV-22: the operator sees which variant each client got, and what selected it.
#[tokio::test]
async fn the_status_shows_the_variant_of_each_client_and_its_reason() {
    let harness = Harness::with(variants).await;
    for way in ClientKind::ALL {
        list(&harness, way, "old").await;
    }
    let info = json!({"name": "evil\u{1b}[2J", "version": "9"});
    let meta = json!({"_meta": {"io.modelcontextprotocol/clientInfo": info}});
    let list = harness.ask_modern("tools/list", meta).await;
    assert!(list["result"].is_object(), "{list}");
    let status = harness.status();
    let mut clients = status["clients"].clone();
    for client in clients.as_array_mut().unwrap() {
        assert!(client.as_object_mut().unwrap().remove("last").is_some());
    }
    let client = |name: &str, version: &str| json!({"name": name, "version": version});
    let expected = json!([
        {"client": client("evil\u{fffd}[2J", "9"), "variant": "standard", "reason": "ranking", "requests": 1, "calls": 0},
        {"client": client("test", "1"), "variant": "old", "reason": "selector", "requests": 4, "calls": 0},
    ]);
    assert_eq!(clients, expected);
}

/// Serves the operator until the token is cancelled.
async fn administered(harness: &Harness) -> (SocketAddr, CancellationToken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let (gateway, stopped) = (Arc::clone(&harness.gateway), stop.clone().cancelled_owned());
    tokio::spawn(async move { gateway.serve_admin(listener, stopped).await.unwrap() });
    (address, stop)
}

async fn status(address: SocketAddr) -> Value {
    let ask = HttpRequest::new("").line("GET /status HTTP/1.1");
    let answer = RawHttp::connect(address).await.ask(&ask).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.json()
}

/// SV-25: the operator reads how the gateway stands, and who uses what is deprecated.
#[tokio::test]
async fn the_status_says_how_the_gateway_stands() {
    static NOW: AtomicU64 = AtomicU64::new(START);
    let harness = with_clock(|| NOW.load(Ordering::Relaxed), variants).await;
    let (address, stop) = administered(&harness).await;
    NOW.store(START + 90, Ordering::Relaxed);
    list(&harness, ClientKind::HttpLegacy, "old").await;
    let status = status(address).await;
    status.has("/uptime", 90);
    status.has("/sessions", 1);
    status.has("/version", env!("CARGO_PKG_VERSION"));
    let server = &status["servers"][0];
    server.has("/name", "peer");
    server.has("/state", "up");
    server.has("/tools", 10);
    assert!(server["since"].is_u64() && server.get("reason").is_none());
    let old = json!({
        "id": "old", "status": "deprecated", "replacement": "standard", "removalDate": "1970-01-20", "daysLeft": 8,
        "default": false, "tools": 10,
    });
    let standard = json!({"id": "standard", "status": "stable", "default": true, "tools": 10});
    let expected = json!([standard, old]);
    status.has("/variants", expected);
    let used = json!({
        "variant": "old", "client": {"name": "test", "version": "1"}, "requests": 1, "last": START + 90,
    });
    status.has("/deprecatedUse", json!([used]));
    stop.cancel();
}

/// The operator's listener answers this machine only, and nothing but the status.
#[tokio::test]
async fn the_status_is_for_this_machine_only() {
    let harness = Harness::start().await;
    let (address, stop) = administered(&harness).await;
    let get = || HttpRequest::new("").line("GET /status HTTP/1.1");
    for (post, expected) in [
        (get().with("Host", "evil.example"), 403),
        (get().without("Host"), 403),
        (get().with("Origin", "http://evil.example"), 403),
        (get().line("GET http://evil.example/status HTTP/1.1"), 403),
        (get().line("GET /mcp HTTP/1.1"), 404),
        (get().line("POST /mcp HTTP/1.1"), 404),
        (get().line("POST /status HTTP/1.1"), 405),
    ] {
        let answer = RawHttp::connect(address).await.ask(&post).await;
        assert_eq!(answer.status, expected, "{post:?}");
        assert!(!answer.text().contains("uptime"));
    }
    // Clients do not find it at theirs.
    let answer = harness.connect().await.ask(&get()).await;
    assert_eq!(answer.status, 404);
    stop.cancel();
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = harness.gateway.serve_admin(listener, async {}).await;
    assert!(refused.unwrap_err().to_string().contains("127.0.0.1"));
}

/// SV-7: requests with hints that were ranked before are not ranked again, in either era.
#[tokio::test]
async fn hints_are_ranked_once() {
    static NOW: AtomicU64 = AtomicU64::new(START);
    let harness = with_clock(|| NOW.load(Ordering::Relaxed), |config| config).await;
    let ask = async |wanted: Value, way: ClientKind| {
        let list = ask_as(&harness, way, &hints(wanted), "tools/list", json!({})).await;
        list["result"]["tools"].as_array().unwrap().len()
    };
    for _ in 0..3 {
        for way in ClientKind::ALL {
            assert_eq!(ask(json!({"accessLevel": "readonly"}), way).await, 2);
            let found = ask(json!({"accessLevel": ["readonly"], "a": "b"}), way).await;
            assert_eq!(found, 2);
            assert_eq!(ask(json!({}), way).await, 10);
        }
    }
    assert_eq!(harness.gateway.status().rankings, 3);
    // What was remembered is forgotten after a while.
    NOW.store(START + 3600, Ordering::Relaxed);
    let found = ask(json!({"accessLevel": "readonly"}), ClientKind::HttpModern).await;
    assert_eq!(found, 2);
    assert_eq!(harness.gateway.status().rankings, 4);
}

/// The calls of the only server, except their durations.
fn calls(harness: &Harness) -> [u64; 3] {
    let status = harness.gateway.status();
    let calls = status.servers[0].calls.as_ref().unwrap();
    [calls.count, calls.errors, calls.cancelled]
}

#[tokio::test]
async fn the_calls_of_each_server_are_counted() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::before(era, |config| config).await;
        let none = harness.gateway.status().servers[0].calls.clone().unwrap();
        assert_eq!((none.count, none.p50, none.p95), (0, None, None));
        for kind in ClientKind::ALL {
            for name in ["odd", "odd", "fail", "refuse", "no-such-tool"] {
                let call = tool(name);
                harness.ask(kind, "tools/call", call).await;
            }
        }
        assert_eq!(calls(&harness), [16, 8, 0], "{era:?}");
        let all = harness.gateway.status().servers[0].calls.clone().unwrap();
        let (p50, p95) = (all.p50.unwrap(), all.p95.unwrap());
        assert!(0.0 < p50 && p50 <= p95 && p95 < 60_000.0, "{all:?}");
        drop(harness.unanswered(17).await);
        until(async || calls(&harness) == [17, 8, 1]).await;
    }
}

/// A slow call is in the percentiles with the time that its client waited.
#[tokio::test]
async fn percentiles_are_those_of_what_clients_waited() {
    const SLOW: Duration = Duration::from_millis(300);
    let script = places_server::script(Era::Legacy).may_reply("tools/call", |_| {
        std::thread::sleep(SLOW);
        None
    });
    let harness = Harness::of_server(script).await;
    harness.ask_modern("tools/call", tool("odd")).await;
    let calls = harness.gateway.status().servers[0].calls.clone().unwrap();
    let least = 0.95 * SLOW.as_millis() as f64;
    assert!(calls.p50.unwrap() > least, "{calls:?}");
    assert_eq!(calls.p50, calls.p95);
}

#[tokio::test]
async fn a_call_whose_server_breaks_the_connection_is_an_error() {
    let script = places_server::script(Era::Legacy);
    let script = script.reply("tools/call", |_| Reply::broken());
    let harness = Harness::of_server(script).await;
    let answer = harness.ask_modern("tools/call", tool("say")).await;
    assert!(answer["error"].is_object(), "{answer}");
    assert_eq!(calls(&harness), [1, 1, 0]);
}

/// The counters belong to the name of the server, not to its entry.
#[tokio::test]
async fn calls_are_counted_on_over_a_reload() {
    let harness = Harness::start().await;
    harness.ask_modern("tools/call", tool("odd")).await;
    let mut config = config(Target::http(harness.peer.url.clone()));
    config.servers[0].limits.concurrency = 7;
    let reloaded = harness.reload(config).await;
    assert_eq!(reloaded.servers.replaced, ["peer"]);
    harness.ask_modern("tools/call", tool("odd")).await;
    assert_eq!(calls(&harness), [2, 0, 0]);
}

/// `resources` declares both lists of resources; many servers have only one.
#[tokio::test]
async fn a_server_without_templates_is_healthy() {
    let (log, _listening) = CapturedLog::listen("mcp_vary_gateway::pool", Level::WARN);
    let harness = Harness::of_server(Script::legacy("plain").lists(json!({"resources": []}))).await;
    for way in ClientKind::ALL {
        let params = json!({});
        let list = harness.ask(way, "resources/templates/list", params).await;
        assert_eq!(list["error"]["code"], -32601, "{way:?}: {list}");
        let list = harness.ask(way, "resources/list", json!({})).await;
        assert_eq!(list["result"]["resources"], json!([]), "{way:?}: {list}");
    }
    assert_eq!(log.take(), Vec::<String>::new());
    let status = harness.gateway.status();
    assert_eq!(status.servers[0].failed_lists, BTreeMap::new());
}

#[tokio::test]
async fn prompts_that_are_declared_and_missing_are_no_failure_and_such_tools_are() {
    let answer = |seen: &ReceivedRequest| match seen.method() {
        "initialize" => {
            let capabilities = json!({"tools": {}, "prompts": {}});
            Some(seen.answer(&introduced("plain", capabilities)))
        }
        _ => Some(seen.refuse(200, -32601, "not here")),
    };
    let harness = Harness::scripted(answer).await;
    let failed = BTreeMap::from([("tools/list", "not here".to_owned())]);
    assert_eq!(harness.gateway.status().servers[0].failed_lists, failed);
    assert_eq!(harness.gateway.servers()[0].failed_lists, failed);
}
