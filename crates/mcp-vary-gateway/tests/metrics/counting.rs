//! Counters are those of the clients.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_vary_testkit::client::ClientKind;
use mcp_vary_testkit::http_client::HttpRequest;
use mcp_vary_testkit::message::{modern, tool};
use mcp_vary_testkit::wait::soon;
use serde_json::{Value, json};

use super::scraping::{measured, probes, scrape};
use crate::support::Harness;

/// The outcome that a client sees, as a label.
fn code(response: &Value) -> String {
    match &response["error"]["code"] {
        Value::Null if response["result"]["isError"] == true => "tool_error".to_owned(),
        Value::Null => "ok".to_owned(),
        code => code.to_string(),
    }
}

/// The value of a label of a series.
fn label<'l>(line: &'l str, name: &str) -> &'l str {
    let start = format!("{name}=\"");
    let (_, after) = line.split_once(&start).unwrap();
    after.split('"').next().unwrap()
}

/// The sums of a counter's series by some of their labels.
fn sums(lines: &[String], family: &str, labels: &[&str]) -> BTreeMap<Vec<String>, u64> {
    let mut sums = BTreeMap::new();
    for line in lines {
        if let Some(series) = line.strip_prefix(family) {
            let key = labels.iter().map(|name| label(series, name).to_owned());
            let (_, value) = series.rsplit_once(' ').unwrap();
            *sums.entry(key.collect()).or_default() += value.parse::<u64>().unwrap();
        }
    }
    sums
}

#[tokio::test]
async fn counters_equal_what_clients_count() {
    let harness = Harness::with(measured).await;
    let address = probes(&harness).await;
    let (mut requests, mut calls) = (BTreeMap::new(), BTreeMap::new());
    let load = [
        ("tools/call", tool("odd")),
        ("tools/call", tool("fail")),
        ("tools/call", tool("refuse")),
        ("tools/call", tool("nothing")),
        ("tools/list", json!({})),
        ("resources/read", json!({"uri": "place:bern"})),
        ("resources/read", json!({"uri": "place:nowhere"})),
        ("prompts/get", json!({"name": "greet"})),
        ("example/unknown", json!({})),
    ];
    for _ in 0..5 {
        for kind in ClientKind::ALL {
            let era = if kind.is_modern() { "modern" } else { "legacy" };
            for (method, params) in &load {
                let response = kind.ask(&harness, &json!({}), method, params.clone()).await;
                let code = code(&response);
                let method = match *method {
                    "example/unknown" => "_OTHER",
                    known => known,
                };
                let key = [method, era, &code].map(str::to_owned).to_vec();
                *requests.entry(key).or_default() += 1;
                if era == "legacy" {
                    let key = ["initialize", era, "ok"].map(str::to_owned).to_vec();
                    *requests.entry(key).or_default() += 1;
                }
                let name = params["name"].as_str().unwrap_or_default();
                if method == "tools/call" && name != "nothing" {
                    let key = [name, &code].map(str::to_owned).to_vec();
                    *calls.entry(key).or_default() += 1;
                }
            }
        }
    }
    let lines = scrape(address).await;
    let labels = ["method", "era", "code"];
    assert_eq!(sums(&lines, "vary_requests_total", &labels), requests);
    assert_eq!(
        sums(&lines, "vary_tool_calls_total", &["tool", "code"]),
        calls
    );
    let operations = sums(
        &lines,
        "mcp_server_operation_duration_seconds_count",
        &["mcp_method_name"],
    );
    assert_eq!(
        operations.values().sum::<u64>(),
        requests.values().sum::<u64>()
    );
}

#[tokio::test]
async fn a_call_that_its_client_leaves_is_cancelled_once() {
    let harness = Harness::with(measured).await;
    let address = probes(&harness).await;
    let mut http = harness.connect().await;
    let call = modern(json!(1), "tools/call", tool("wait"), &json!({}));
    let request = HttpRequest::modern(&call);
    http.send(&request.bytes()).await;
    harness.peer.wait_for("tools/call", 1).await;
    drop(http);
    let cancelled = soon(async {
        loop {
            let lines = scrape(address).await;
            let sums = sums(&lines, "vary_requests_total", &["method", "code"]);
            if let Some(count) = sums.get(&["tools/call", "cancelled"].map(str::to_owned).to_vec())
            {
                return *count;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    assert_eq!(cancelled.await, 1);
}
