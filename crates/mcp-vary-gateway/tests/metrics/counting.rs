//! Counters are those of the clients.

use std::collections::BTreeMap;

use super::scraping::{measured, probes, scrape, series};
use crate::support::*;

/// Counts by the values of some labels.
pub(super) type Counts = BTreeMap<Vec<String>, u64>;

/// The labels of what clients count: those of requests, and those of calls that reach a server.
pub(super) const REQUEST_LABELS: [&str; 3] = ["method", "protocol", "code"];
pub(super) const CALL_LABELS: [&str; 2] = ["tool", "code"];

/// What clients counted.
#[derive(Default)]
pub(super) struct ClientCounts {
    pub(super) requests: Counts,
    pub(super) calls: Counts,
}

impl ClientCounts {
    /// One client of this kind for each request: calls that succeed, fail, are refused and are of no tool, lists, reads,
    /// and a method that nobody knows.
    pub(super) async fn send(&mut self, harness: &Harness, kind: ClientKind) {
        for (method, params) in [
            ("tools/call", tool("odd")),
            ("tools/call", tool("fail")),
            ("tools/call", tool("refuse")),
            ("tools/call", tool("nothing")),
            ("tools/list", json!({})),
            ("resources/read", json!({"uri": "place:bern"})),
            ("resources/read", json!({"uri": "place:nowhere"})),
            ("prompts/get", json!({"name": "greet"})),
            ("example/unknown", json!({})),
        ] {
            let name = params["name"].as_str().unwrap_or_default().to_owned();
            let response = harness.ask(kind, method, params).await;
            self.count(kind, method, &name, &response);
        }
    }

    fn count(&mut self, kind: ClientKind, method: &str, name: &str, response: &Value) {
        let code = match &response["error"]["code"] {
            Value::Null if response["result"]["isError"] == true => "tool_error".to_owned(),
            Value::Null => "ok".to_owned(),
            code => code.to_string(),
        };
        let protocols = ["before-2026-07-28", "2026-07-28"];
        let protocol = protocols[usize::from(kind.is_modern())];
        let labelled = match method {
            "example/unknown" => "_OTHER",
            known => known,
        };
        add(&mut self.requests, &[labelled, protocol, &code]);
        if !kind.is_modern() {
            add(&mut self.requests, &["initialize", protocol, "ok"]);
        }
        if method == "tools/call" && name != "nothing" {
            add(&mut self.calls, &[name, &code]);
        }
    }

    /// Adds what other clients counted.
    pub(super) fn add(&mut self, other: Self) {
        for (key, count) in other.requests {
            *self.requests.entry(key).or_default() += count;
        }
        for (key, count) in other.calls {
            *self.calls.entry(key).or_default() += count;
        }
    }
}

fn add(counts: &mut Counts, key: &[&str]) {
    let key = key.iter().map(|it| (*it).to_owned()).collect();
    *counts.entry(key).or_default() += 1;
}

/// The sums of the series of a counter by some of their labels.
fn sums(lines: &[String], family: &str, labels: &[&str]) -> Counts {
    let mut sums = Counts::new();
    for series in lines.iter().map(|line| series(line)) {
        if series.name == family {
            let key = labels.iter().map(|name| series.labels[*name].clone());
            *sums.entry(key.collect()).or_default() += series.value.parse::<u64>().unwrap();
        }
    }
    sums
}

/// OP-1
#[tokio::test]
async fn counters_equal_what_clients_count() {
    let harness = Harness::with(measured).await;
    let address = probes(&harness).await;
    let mut counted = ClientCounts::default();
    for _ in 0..5 {
        for kind in ClientKind::ALL {
            counted.send(&harness, kind).await;
        }
    }
    let lines = scrape(address).await;
    let sums = |family, labels: &[&str]| sums(&lines, family, labels);
    let requests = sums("vary_requests_total", &REQUEST_LABELS);
    assert_eq!(requests, counted.requests);
    assert_eq!(sums("vary_tool_calls_total", &CALL_LABELS), counted.calls);
    let all: u64 = counted.requests.values().sum();
    let operations = sums("mcp_server_operation_duration_seconds_count", &[]);
    assert_eq!(operations.values().sum::<u64>(), all);
}

/// OP-1
#[tokio::test]
async fn a_call_that_its_client_leaves_is_cancelled_once() {
    let harness = Harness::with(measured).await;
    let address = probes(&harness).await;
    drop(harness.unanswered(1).await);
    let mut cancelled = Counts::new();
    until(async || {
        let lines = scrape(address).await;
        cancelled = sums(&lines, "vary_requests_total", &["method", "code"]);
        !cancelled.is_empty()
    })
    .await;
    let once = [(["tools/call", "cancelled"].map(str::to_owned).into(), 1)];
    assert_eq!(cancelled, once.into());
}
