//! What happens to requests whose records cannot be written.

use std::time::Instant;

use mcp_vary_audit::{AuditConfig, AuditLog, FileSink, OnFull};

use super::recorded::{Recorded, settings};
use crate::support::*;

/// A gateway whose sink is blocked and whose queue has room for one record.
async fn blocked(on_full: OnFull) -> Recorded {
    let mut log: AuditConfig = settings();
    log.on_full = on_full;
    log.capacity = 1;
    let recorded = Recorded::with(log, |config| config.with_variants(false)).await;
    recorded.sink.wait_for("audit.started", 1).await;
    recorded.sink.block(true);
    // One record is at the sink, the next in the queue.
    let list = || recorded.harness.ask_modern("tools/list", json!({}));
    list().await;
    until(async || status(&recorded)["queued"] == 0).await;
    list().await;
    assert_eq!(status(&recorded)["queued"], 1);
    recorded
}

fn status(recorded: &Recorded) -> Value {
    let status = recorded.harness.status();
    status["audit"].clone()
}

const REFUSED: &str = "the request cannot be recorded in the audit log at the moment";

/// Three calls are refused, over HTTP with a status.
async fn is_refused(harness: &Harness) {
    for kind in [ClientKind::HttpModern, ClientKind::StdioModern] {
        let answer = harness.ask(kind, "tools/call", tool("odd")).await;
        let error = json!({"code": -32603, "message": REFUSED});
        assert_eq!(answer["error"], error, "{kind:?}");
    }
    let mut http = harness.connect().await;
    let answer = http.ask_modern("tools/call", tool("odd")).await;
    assert_eq!(answer.status, 503);
}

#[tokio::test]
async fn refuse_refuses_before_anything_happens() {
    let recorded = blocked(OnFull::Refuse).await;
    let before = recorded.harness.peer.received().len();
    is_refused(&recorded.harness).await;
    assert_eq!(recorded.harness.peer.received().len(), before);
    assert_eq!(status(&recorded)["refused"], 3);
    recorded.sink.block(false);
    let lost = recorded.sink.wait_for("audit.lost", 1).await;
    lost[0].has("/lost", 0);
    lost[0].has("/refused", 3);
    let answer = recorded.harness.ask_modern("tools/call", tool("odd")).await;
    assert!(answer["result"].is_object(), "{answer}");
}

/// The queue has room for thousands of records, but none of them would be written.
#[tokio::test]
async fn refuse_refuses_as_soon_as_the_disk_is_full() {
    let mut log: AuditConfig = settings();
    log.on_full = OnFull::Refuse;
    let disk = FileSink::open("/dev/full").unwrap();
    let log = AuditLog::start(&log, Box::new(disk)).unwrap();
    let harness = Harness::of(|config| config.audit_log = Some(log)).await;
    let status = || harness.status()["audit"].clone();
    until(async || !(status()["error"].is_null())).await;
    is_refused(&harness).await;
    assert_eq!(harness.peer.of("tools/call").len(), 0);
    let status = status();
    status.has("/refused", 3);
    status.has("/written", 0);
}

#[tokio::test]
async fn wait_waits_until_there_is_room() {
    let recorded = blocked(OnFull::Wait(Duration::from_secs(20))).await;
    let sink = recorded.sink.clone();
    let unblocking = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        sink.block(false);
    });
    let answer = recorded.harness.ask_modern("tools/call", tool("odd")).await;
    assert!(answer["result"].is_object(), "{answer}");
    unblocking.await.unwrap();
    recorded.sink.wait_for("request", 3).await;
    assert_eq!(recorded.sink.of("audit.lost").len(), 0);
}

#[tokio::test]
async fn wait_is_bounded() {
    let limit = Duration::from_millis(60);
    let recorded = blocked(OnFull::Wait(limit)).await;
    let before = Instant::now();
    let answer = recorded.harness.ask_modern("tools/call", tool("odd")).await;
    assert!(before.elapsed() >= limit);
    answer.has("/error/message", REFUSED);
    assert_eq!(recorded.harness.peer.of("tools/call").len(), 0);
    recorded.sink.block(false);
}

#[tokio::test]
async fn drop_delays_nobody_and_counts_what_is_lost() {
    let recorded = blocked(OnFull::Drop).await;
    for _ in 0..3 {
        let answer = recorded.harness.ask_modern("tools/call", tool("odd")).await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    assert_eq!(status(&recorded)["lost"], 3);
    recorded.sink.block(false);
    let lost = recorded.sink.wait_for("audit.lost", 1).await;
    lost[0].has("/lost", 3);
    lost[0].has("/refused", 0);
    recorded.sink.wait_for("request", 2).await;
}
