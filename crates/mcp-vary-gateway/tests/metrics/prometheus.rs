//! A real Prometheus scrapes a gateway under a mixed load of both eras.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use futures_util::future::join_all;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::counting::{CALL_LABELS, ClientCounts, Counts, REQUEST_LABELS};
use super::scraping::{get, measured, probes, program, promtool_finds_nothing};
use crate::support::*;

/// A Prometheus that scrapes one target twice a second, until it is dropped.
struct Prometheus {
    process: Child,
    address: SocketAddr,
    folder: PathBuf,
}

impl Prometheus {
    async fn scraping(target: SocketAddr) -> Self {
        let name = format!("vary-prometheus-{}-{}", std::process::id(), target.port());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let config = folder.join("prometheus.yml");
        let scrape = format!("[{{job_name: vary, static_configs: [{{targets: [\"{target}\"]}}]}}]");
        let text = format!("global: {{scrape_interval: 500ms}}\nscrape_configs: {scrape}\n");
        fs::write(&config, text).unwrap();
        let mut process = Command::new(program("prometheus"))
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.join("data").display()
            ))
            .arg("--web.listen-address=127.0.0.1:0")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = soon(async {
            loop {
                let line = lines.next_line().await.unwrap();
                let line = line.expect("Prometheus listens before it ends");
                if let Some((_, address)) = line.split_once("\"Listening on\" address=") {
                    return address.trim().parse().unwrap();
                }
            }
        });
        let address = address.await;
        // Without a reader it could not write.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self {
            process,
            address,
            folder,
        }
    }

    /// The answer to a query, at this moment.
    async fn query(&self, query: &str) -> Vec<Value> {
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let path = format!("/api/v1/query?query={escaped}");
        let answer = get(self.address, &path, "*/*").await.json();
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].as_array().unwrap().clone()
    }

    /// The sums of the latest samples of `family` by some of their labels.
    async fn sums(&self, family: &str, labels: &[&str]) -> Counts {
        let mut sums = Counts::new();
        for sample in self.query(family).await {
            let label = |name: &&str| sample["metric"][*name].as_str().unwrap().to_owned();
            let value = sample["value"][1].as_str().unwrap();
            *sums.entry(labels.iter().map(label).collect()).or_default() +=
                value.parse::<u64>().unwrap();
        }
        sums
    }

    /// Waits for a scrape that has these counts, which are final.
    async fn shows(&self, family: &str, labels: &[&str], expected: &Counts) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let sums = self.sums(family, labels).await;
            if sums == *expected {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{family}: {sums:?}, and clients counted {expected:?}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended already, and the folder is temporary anyway.
        let _ = self.process.start_kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Puts load on a gateway for this long, and compares what Prometheus read with what the clients counted.
async fn scraped_under_load(duration: Duration) {
    let harness = Harness::with(measured).await;
    let address = probes(&harness).await;
    let prometheus = Prometheus::scraping(address).await;
    let until = Instant::now() + duration;
    let clients = ClientKind::ALL.map(async |kind| {
        let mut counted = ClientCounts::default();
        while Instant::now() < until {
            counted.send(&harness, kind).await;
        }
        counted
    });
    let mut counted = ClientCounts::default();
    for client in join_all(clients).await {
        counted.add(client);
    }
    prometheus
        .shows("vary_requests_total", &REQUEST_LABELS, &counted.requests)
        .await;
    prometheus
        .shows("vary_tool_calls_total", &CALL_LABELS, &counted.calls)
        .await;
    let all = Counts::from([(Vec::new(), counted.requests.values().sum())]);
    let operations = "mcp_server_operation_duration_seconds_count";
    prometheus.shows(operations, &[], &all).await;
    let native = prometheus
        .sums("vary_own_duration_seconds_count", &[])
        .await;
    assert_eq!(native, all, "each request has a time of the gateway");
    for query in queries_of_the_page() {
        prometheus.query(query).await;
    }
    promtool_finds_nothing(&get(address, "/metrics", "text/plain").await.text());
}

/// The queries that the page of metrics has.
fn queries_of_the_page() -> Vec<&'static str> {
    let page = include_str!("../../../../docs/how-to/metrics.md");
    let (_, rows) = page.split_once("| question | query |").unwrap();
    let queries = rows
        .lines()
        .filter_map(|row| Some(row.split_once(" | `")?.1.split_once('`')?.0));
    let queries: Vec<_> = queries.collect();
    assert!(queries.len() >= 7, "{queries:?}");
    queries
}

/// OP-1
#[tokio::test]
async fn prometheus_reads_what_clients_count() {
    scraped_under_load(Duration::from_secs(3)).await;
}

#[tokio::test]
#[ignore = "it takes half a minute"]
async fn prometheus_reads_what_clients_count_in_half_a_minute() {
    scraped_under_load(Duration::from_secs(30)).await;
}
