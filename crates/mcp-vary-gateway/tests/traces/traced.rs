//! A gateway whose requests are traced.

use std::time::{SystemTime, UNIX_EPOCH};

use mcp_vary_traces::{Follow, Ratio, Tracer, TracesSettings};

use crate::support::*;

/// Microseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "spans have real times")]
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_micros().try_into().unwrap()
}

/// Settings for `collector` that sample every request about which no caller decides.
pub(super) fn sampling_all(collector: &TraceCollector) -> TracesSettings {
    let mut settings = TracesSettings::to(collector.url());
    settings.sample = Ratio::ALL;
    settings.follow = Follow::All;
    settings
}

/// With these traces.
pub(super) fn traced(settings: &TracesSettings) -> impl FnOnce(Config) -> Config {
    let settings = settings.clone();
    move |mut config| {
        let tracer = Tracer::start(&settings, now, config.environment);
        config.tracer = Some(tracer.unwrap());
        config.traces = Some(settings);
        config
    }
}

/// A collector, and a gateway in front of a server of `era` that samples every request.
pub(super) async fn before(era: Era) -> (TraceCollector, Harness) {
    let collector = TraceCollector::start(CollectorBehavior::Accepts).await;
    let harness = Harness::before(era, traced(&sampling_all(&collector))).await;
    (collector, harness)
}

/// The spans of all requests, after the gateway was closed.
pub(super) async fn spans(collector: &TraceCollector, harness: &Harness) -> Vec<ReceivedSpan> {
    harness.gateway.close().await;
    collector.spans()
}

/// The only span with this kind and name.
#[track_caller]
pub(super) fn only<'a>(spans: &'a [ReceivedSpan], kind: u64, name: &str) -> &'a ReceivedSpan {
    let found = spans.iter();
    let found = found.filter(|span| span.kind == kind && span.name == name);
    let found: Vec<_> = found.collect();
    assert_eq!(found.len(), 1, "{kind} {name} in {spans:#?}");
    found[0]
}

/// A client's request with this text in its header `traceparent`, and its members of `_meta`.
pub(super) async fn ask_with(
    harness: &Harness,
    headers: &[(&str, &str)],
    meta: &Value,
    name: &str,
) -> Value {
    let mut call = modern(json!(7), "tools/call", tool(name), &json!({}));
    for (key, value) in meta.as_object().unwrap() {
        call["params"]["_meta"][key] = value.clone();
    }
    let mut request = HttpRequest::modern(&call);
    for (header, value) in headers {
        request = request.with(header, *value);
    }
    harness.connect().await.ask(&request).await.json()
}

/// What the server was last sent for `tools/call`.
pub(super) async fn sent_call(harness: &Harness) -> ReceivedRequest {
    let mut calls = harness.peer.wait_for("tools/call", 1).await;
    calls.pop().unwrap()
}
