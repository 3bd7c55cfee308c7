//! The listener's metrics: their two forms, and what they may show.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use mcp_vary_catalog::selection::variant_selection::DecidedBy;
use mcp_vary_gateway::settings::metrics::MetricsSettings;
use mcp_vary_metrics::REASONS;
use mcp_vary_wire::counters::Counters;
use tokio::net::TcpListener;

use crate::support::*;

/// With metrics whose tokens are counted as bytes.
pub(super) fn measured(mut config: Config) -> Config {
    config.metrics = Some(MetricsSettings::new(str::len));
    config
}

/// Serves probes until the end of the test.
pub(super) async fn probes(harness: &Harness) -> SocketAddr {
    probes_of(&harness.gateway).await
}

/// The same without a harness.
pub(super) async fn probes_of(gateway: &Arc<Gateway>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let gateway = Arc::clone(gateway);
    let forever = std::future::pending();
    tokio::spawn(async move { gateway.serve_probes(listener, forever).await });
    address
}

pub(super) async fn get(address: SocketAddr, path: &str, accept: &str) -> HttpResponse {
    let request = HttpRequest::new("").line(&format!("GET {path} HTTP/1.1"));
    let mut http = RawHttp::connect(address).await;
    http.ask(&request.with("Accept", accept)).await
}

/// The lines of all series.
pub(super) async fn scrape(address: SocketAddr) -> Vec<String> {
    let response = get(address, "/metrics", "text/plain").await;
    assert_eq!(response.status, 200);
    let text = response.text();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// One series of a scrape.
pub(super) struct Series<'a> {
    pub(super) name: &'a str,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: &'a str,
}

/// The series of a line. Labels in these tests have no escapes.
pub(super) fn series(line: &str) -> Series<'_> {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let labels = labels.strip_suffix('}').unwrap().split("\",");
    let labels = labels.filter_map(|label| label.split_once("=\""));
    let labels =
        labels.map(|(name, value)| (name.to_owned(), value.trim_end_matches('"').to_owned()));
    Series {
        name,
        labels: labels.collect(),
        value,
    }
}

/// Calls tools with each kind of client.
async fn use_everything(harness: &Harness) {
    for kind in ClientKind::ALL {
        for name in ["odd", "fail", "nothing"] {
            harness.ask(kind, "tools/call", tool(name)).await;
        }
        harness.ask(kind, "tools/list", json!({})).await;
    }
}

/// OP-1
#[tokio::test]
async fn promtool_finds_nothing_to_complain_about() {
    let harness = Harness::with(measured).await;
    use_everything(&harness).await;
    let address = probes(&harness).await;
    promtool_finds_nothing(&get(address, "/metrics", "text/plain").await.text());
}

/// Checks the metrics with the program that their authors use.
#[track_caller]
pub(super) fn promtool_finds_nothing(text: &str) {
    let mut promtool = Command::new(program("promtool"))
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = promtool.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let output = promtool.wait_with_output().unwrap();
    let complaints = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(complaints, "", "{text}");
    assert!(output.status.success(), "{text}");
}

/// A program of Prometheus.
#[track_caller]
pub(super) fn program(name: &'static str) -> &'static str {
    let started = Command::new(name).arg("--version").output();
    assert!(
        started.is_ok(),
        "{name} is missing; on Debian, type as root: apt-get update && apt-get install -y prometheus"
    );
    name
}

#[tokio::test]
async fn the_client_chooses_the_form() {
    let harness = Harness::with(measured).await;
    let address = probes(&harness).await;
    let text = get(address, "/metrics", "*/*").await;
    let media = text.header("content-type").unwrap();
    assert_eq!(media, "text/plain; version=0.0.4; charset=utf-8");
    let reloads = "vary_config_reloads_total";
    let typed = format!("\n# TYPE {reloads} counter\n{reloads}{{outcome=\"ok\"}} 0\n");
    assert!(text.text().contains(&typed));
    let open = get(address, "/metrics", "application/openmetrics-text").await;
    let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(open.header("content-type"), Some(media));
    let open = open.text();
    let typed = format!("\n# TYPE vary_config_reloads counter\n{reloads}{{outcome=\"ok\"}} 0\n");
    assert!(open.contains(&typed));
    assert!(open.ends_with("# EOF\n"));
}

/// OP-2
#[tokio::test]
async fn gauges_are_read_when_scraped() {
    let harness = Harness::with(measured).await;
    let address = probes(&harness).await;
    let lines = scrape(address).await;
    for line in [
        r#"vary_upstream_up{server="peer"} 1.0"#,
        r#"vary_upstream_restarts_total{server="peer"} 0"#,
        r#"vary_upstream_tools{server="peer"} 10.0"#,
        "vary_sessions 0.0",
    ] {
        assert!(lines.iter().any(|it| it == line), "{line}: {lines:#?}");
    }
    let tokens = |variant: &str| {
        let start = format!("vary_list_tokens{{variant=\"{variant}\"}} ");
        let tokens = lines.iter().find_map(|line| line.strip_prefix(&start));
        tokens.unwrap().parse::<f64>().unwrap()
    };
    // Clients forward these members of a tool to a model.
    let list = harness.ask_modern("tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap().iter();
    let forwarded = tools.map(|tool| {
        let mut members = tool.as_object().unwrap().clone();
        members.retain(|key, _| ["name", "description", "inputSchema"].contains(&key.as_str()));
        Value::Object(members)
    });
    let standard = Value::Array(forwarded.collect()).to_string().len();
    assert_eq!(tokens("standard"), standard as f64);
    assert!((100.0..standard as f64).contains(&tokens("compact")));
}

/// OP-1: without the zero, the first refusal would be no increase.
#[tokio::test]
async fn every_reason_of_a_refusal_is_counted_from_zero() {
    let harness = Harness::with(measured).await;
    let lines = scrape(probes(&harness).await).await;
    let reasons = lines.iter().map(|line| series(line));
    let reasons = reasons.filter(|it| it.name == "vary_refused_messages_total");
    let shown = reasons.map(|it| (it.labels["reason"].clone(), it.value));
    let shown: Vec<_> = shown.collect();
    let counters = Counters::default();
    let expected = counters.all().map(|(reason, _)| (reason.to_owned(), "0"));
    assert_eq!(shown, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn reloads_are_counted_by_their_outcome() {
    let harness = Harness::with(measured).await;
    let address = probes(&harness).await;
    let target = || Target::http(harness.peer.url.clone());
    harness.reload(measured(config(target()))).await;
    let mut unreachable = config(target());
    let gone = Target::command("no-such-program", []);
    unreachable.servers = vec![UpstreamConfig::new("gone", gone)];
    assert!(harness.gateway.reload(unreachable).await.is_err());
    harness.gateway.count_unread_config();
    let lines = scrape(address).await;
    for (outcome, count) in [("ok", 1), ("failed", 2)] {
        let line = format!("vary_config_reloads_total{{outcome=\"{outcome}\"}} {count}");
        assert!(lines.contains(&line), "{lines:#?}");
    }
}

#[tokio::test]
async fn without_metrics_nothing_is_measured() {
    let harness = Harness::start().await;
    let address = probes(&harness).await;
    assert_eq!(get(address, "/metrics", "*/*").await.status, 404);
    assert_eq!(get(address, "/livez", "*/*").await.status, 200);
}

#[test]
fn every_reason_has_a_label() {
    for reason in DecidedBy::ALL {
        assert!(REASONS.values().contains(&reason.as_str()), "{reason:?}");
    }
}
