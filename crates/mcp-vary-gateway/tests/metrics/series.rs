//! The number of series is bounded, whatever clients send and servers list.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use mcp_vary_gateway::Environment;
use mcp_vary_metrics::families;

use super::scraping::{measured, probes, scrape, series};
use crate::support::*;

/// OP-1
#[tokio::test]
async fn names_that_clients_invent_make_no_series() {
    let harness = Harness::with(measured).await;
    let address = probes(&harness).await;
    let mut http = harness.connect().await;
    let mut before = 0;
    for number in 0..10_000 {
        let (method, mut params) = match number % 3 {
            0 => ("tools/call".to_owned(), tool(&format!("tool{number}"))),
            1 => (format!("example/method{number}"), json!({})),
            _ => (
                "resources/read".to_owned(),
                json!({"uri": format!("place:{number}")}),
            ),
        };
        let client = json!({"name": format!("client{number}"), "version": "1"});
        params["_meta"]["io.modelcontextprotocol/clientInfo"] = client;
        let message = modern(json!(number), &method, params, &json!({}));
        let response = http.ask(&HttpRequest::modern(&message)).await;
        assert!(response.json()["error"].is_object() || response.status == 200);
        if number == 100 {
            before = scrape(address).await.len();
        }
    }
    assert_eq!(scrape(address).await.len(), before);
}

/// Seconds since 1970-01-01 UTC, for the gateway with tools that are renamed.
static NOW: AtomicU64 = AtomicU64::new(1_000_000);

/// Calls 200 tools, whose server then renames them, and so on.
async fn renamed(rounds: usize) {
    let server = ChangingServer::new(Era::Modern);
    let harness = Harness::changing_edited(&server, |config| {
        *config = measured(config.clone());
        config.environment = Environment::new(
            || NOW.load(Ordering::Relaxed),
            |bytes| getrandom::fill(bytes).unwrap(),
        );
    })
    .await;
    let address = probes(&harness).await;
    let mut http = harness.connect().await;
    let (mut saturated, mut last) = (0, Vec::new());
    for round in 0..rounds {
        let names: Vec<_> = (0..200)
            .map(|number| format!("tool_{round}_{number}"))
            .collect();
        server.set_tools(&names.iter().map(String::as_str).collect::<Vec<_>>());
        server.notify_list_changed("tools");
        until(async || {
            let list = harness.ask_modern("tools/list", json!({})).await;
            list["result"]["tools"][0]["name"] == *names[0]
        })
        .await;
        for name in &names {
            http.ask_modern("tools/call", tool(name)).await;
        }
        last = scrape(address).await;
        if round == 12 {
            saturated = last.len();
        }
    }
    assert_eq!(last.len(), saturated);
    assert_eq!(own_tools(&last), "2000.0");
    // A scrape notes what is listed and used, and one an hour later ends the rest.
    NOW.fetch_add(3_600, Ordering::Relaxed);
    let later = scrape(address).await;
    assert_eq!(own_tools(&later), "0.0");
    assert!(later.len() < saturated - 2_000);
}

/// How many tools have series of their own.
fn own_tools(lines: &[String]) -> String {
    let mut all = lines.iter().map(|line| series(line));
    let tools = all.find(|series| series.name == "vary_tools_with_series");
    tools.unwrap().value.to_owned()
}

/// OP-1
#[tokio::test]
async fn a_server_that_renames_its_tools_leaves_the_number_of_series_bounded() {
    renamed(30).await;
}

#[tokio::test]
#[ignore = "it takes some minutes"]
async fn a_server_that_renames_its_tools_a_thousand_times_leaves_the_number_of_series_bounded() {
    renamed(1_000).await;
}

/// The page of metrics is compared with the families in their own crate.
#[tokio::test]
async fn series_have_the_labels_of_their_families() {
    let harness = Harness::with(measured).await;
    let address = probes(&harness).await;
    for kind in ClientKind::ALL {
        for name in ["odd", "fail", "nothing"] {
            harness.ask(kind, "tools/call", tool(name)).await;
        }
    }
    for line in scrape(address).await {
        let series = series(&line);
        let parts = ["_total", "_sum", "_count", "_bucket"];
        let name = parts.iter().find_map(|part| series.name.strip_suffix(part));
        let name = name.unwrap_or(series.name);
        let family = families::ALL.iter().find(|family| family.name == name);
        let family = family.unwrap_or_else(|| panic!("{name} is not a family"));
        let found: BTreeSet<&str> = series.labels.keys().map(String::as_str).collect();
        let mut known: BTreeSet<&str> = family.labels.iter().copied().collect();
        known.insert("le");
        assert!(found.is_subset(&known), "{line}");
    }
}
