//! The end of a gateway: not ready, then no more connections, and streams that end one after the other.

use std::time::Instant;

use futures_util::future::join_all;
use tokio::net::TcpStream;

use super::scraping::{get, probes};
use crate::support::*;

/// OP-7
#[tokio::test]
async fn while_the_drain_is_delayed_clients_are_served_and_the_gateway_is_not_ready() {
    let delay = Duration::from_secs(3);
    let harness = Harness::of(|config| config.limits.drain_delay = delay).await;
    let address = probes(&harness).await;
    assert_eq!(get(address, "/readyz", "*/*").await.status, 200);
    harness.stop();
    until(async || get(address, "/readyz", "*/*").await.status == 503).await;
    harness.still_serves("the delay began").await;
    until(async || TcpStream::connect(harness.address).await.is_err()).await;
    assert_eq!(get(address, "/readyz", "*/*").await.status, 503);
    assert_eq!(get(address, "/livez", "*/*").await.status, 200);
}

/// OP-7
#[tokio::test]
async fn streams_that_listen_end_one_after_the_other() {
    let drain = Duration::from_secs(10);
    let harness = Harness::of(|config| config.limits.drain = drain).await;
    let params = json!({"notifications": {"toolsListChanged": true}});
    let listen = HttpRequest::modern_request("subscriptions/listen", params);
    let mut streams = Vec::new();
    for _ in 0..30 {
        let mut http = harness.connect().await;
        http.open_stream(&listen).await;
        http.event().await.expect("it is acknowledged");
        streams.push(http);
    }
    let stopped = Instant::now();
    harness.stop();
    let mut ends = join_all(streams.into_iter().map(async |mut http| {
        http.events().await;
        stopped.elapsed()
    }))
    .await;
    ends.sort();
    let (first, last) = (ends[0], ends[29]);
    assert!(last - first >= Duration::from_millis(250), "{ends:?}");
    assert!(last < drain, "{ends:?}");
}
