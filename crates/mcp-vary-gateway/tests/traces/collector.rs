//! Collectors that hang, refuse and are slow. Calls do not notice.

use std::time::Instant;

use super::traced::{sampling_all, traced};
use crate::support::*;

/// Sends `calls` calls on one connection while the collector behaves like this. Returns the gateway.
async fn calls_beside(behavior: CollectorBehavior, calls: usize) -> (TraceCollector, Harness) {
    let collector = TraceCollector::start(behavior).await;
    let harness = Harness::with(traced(&sampling_all(&collector))).await;
    let mut http = harness.connect().await;
    for id in 0..calls {
        let call = modern(json!(id), "tools/call", tool("odd"), &json!({}));
        let response = http.ask(&HttpRequest::modern(&call)).await;
        let response = response.json();
        assert_eq!(response["id"], id);
        assert!(response["result"].is_object(), "{response}");
    }
    (collector, harness)
}

/// OP-5
#[tokio::test]
async fn ten_thousand_calls_beside_a_collector_that_hangs_lose_nothing_but_spans() {
    let (collector, harness) = calls_beside(CollectorBehavior::Hangs, 10_000).await;
    let stats = harness.gateway.trace_stats().unwrap();
    // What is not lost yet waits: a full queue, and the batch that hangs.
    let spans = 20_000;
    assert_eq!(stats.exported, 0);
    assert!(stats.lost >= spans - 2048 - 512, "{stats:?}");
    let closing = Instant::now();
    harness.gateway.close().await;
    assert!(closing.elapsed() < Duration::from_secs(5));
    assert_eq!(harness.gateway.trace_stats().unwrap().lost, spans);
    assert!(collector.spans().is_empty());
}

/// OP-5
#[tokio::test]
async fn what_a_collector_refuses_is_lost_and_counted() {
    for behavior in [
        CollectorBehavior::Refuses(400),
        CollectorBehavior::Refuses(503),
        CollectorBehavior::Rejects(20),
    ] {
        let (_collector, harness) = calls_beside(behavior, 10).await;
        harness.gateway.close().await;
        let stats = harness.gateway.trace_stats().unwrap();
        assert_eq!((stats.exported, stats.lost), (0, 20), "{behavior:?}");
    }
}

/// OP-5
#[tokio::test]
async fn a_slow_collector_gets_every_span_before_the_end() {
    let slow = CollectorBehavior::Delays(Duration::from_millis(300));
    let (collector, harness) = calls_beside(slow, 300).await;
    harness.gateway.close().await;
    let stats = harness.gateway.trace_stats().unwrap();
    assert_eq!((stats.exported, stats.lost), (600, 0));
    assert_eq!(collector.spans().len(), 600);
    let (path, headers) = &collector.heads()[0];
    assert_eq!(path, "/v1/traces");
    assert_eq!(headers["content-type"], "application/x-protobuf");
}
