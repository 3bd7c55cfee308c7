//! Contexts of callers: from `_meta` and headers, into `_meta` and headers.

use super::traced::{ask_with, before, only, sampling_all, sent_call, spans, traced};
use crate::support::*;
use mcp_vary_traces::Ratio;

const IN_META: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
const IN_HEADER: &str = "00-1bf7651916cd43dd8448eb211c80319c-11f067aa0ba902b7-01";

/// The server got the context of `inner` in `_meta`, with this state and baggage.
#[track_caller]
fn passes(sent: &ReceivedRequest, inner: &ReceivedSpan, state: &Value, baggage: &str) {
    let meta = &sent.body["params"]["_meta"];
    assert_eq!(meta["traceparent"], inner.traceparent());
    assert_eq!(
        (&meta["tracestate"], &meta["baggage"]),
        (state, &json!(baggage))
    );
}

/// OP-3
#[tokio::test]
async fn the_context_in_meta_is_the_parent_and_that_in_headers_a_link() {
    for era in [Era::Legacy, Era::Modern] {
        let (collector, harness) = before(era).await;
        let meta = json!({"traceparent": IN_META, "tracestate": "a=1", "baggage": "k=v"});
        ask_with(&harness, &[("traceparent", IN_HEADER)], &meta, "odd").await;
        let sent = sent_call(&harness).await;
        let spans = spans(&collector, &harness).await;
        let outer = only(&spans, 2, "tools/call odd");
        assert_eq!(
            (&*outer.trace, &*outer.parent, &*outer.state),
            (
                "0af7651916cd43dd8448eb211c80319c",
                "00f067aa0ba902b7",
                "a=1"
            )
        );
        let link = ("1bf7651916cd43dd8448eb211c80319c", "11f067aa0ba902b7");
        let linked = outer.links.iter().map(|(trace, id)| (&**trace, &**id));
        assert_eq!(linked.collect::<Vec<_>>(), [link]);
        let inner = only(&spans, 3, "tools/call odd");
        passes(&sent, inner, &json!("a=1"), "k=v");
        assert_eq!(sent.header("traceparent"), Some(&*inner.traceparent()));
        assert_eq!(sent.header("tracestate"), Some("a=1"));
        assert_eq!(sent.header("baggage"), Some("k=v"));
    }
}

/// OP-3
#[tokio::test]
async fn the_context_in_headers_alone_is_the_parent() {
    let (collector, harness) = before(Era::Legacy).await;
    let headers = [
        ("traceparent", IN_HEADER),
        ("tracestate", "b=2"),
        ("baggage", "c=3"),
    ];
    ask_with(&harness, &headers, &json!({}), "odd").await;
    let sent = sent_call(&harness).await;
    let spans = spans(&collector, &harness).await;
    let outer = only(&spans, 2, "tools/call odd");
    assert_eq!(outer.parent, "11f067aa0ba902b7");
    assert!(outer.links.is_empty());
    let inner = only(&spans, 3, "tools/call odd");
    passes(&sent, inner, &json!("b=2"), "c=3");
}

#[tokio::test]
async fn a_malformed_context_begins_a_new_trace_without_the_state_of_another() {
    let (collector, harness) = before(Era::Modern).await;
    let meta = json!({"traceparent": "00-0-0-01", "tracestate": "a=1", "baggage": "k=v"});
    ask_with(&harness, &[], &meta, "odd").await;
    let sent = sent_call(&harness).await;
    let spans = spans(&collector, &harness).await;
    let outer = only(&spans, 2, "tools/call odd");
    assert_eq!((&*outer.parent, &*outer.state), ("", ""));
    let inner = only(&spans, 3, "tools/call odd");
    passes(&sent, inner, &Value::Null, "k=v");
}

#[tokio::test]
async fn a_baggage_that_no_header_should_have_is_no_header() {
    let (_collector, harness) = before(Era::Modern).await;
    let meta = json!({"traceparent": IN_META, "baggage": "x".repeat(1_000_000)});
    ask_with(&harness, &[], &meta, "odd").await;
    let sent = sent_call(&harness).await;
    assert!(sent.header("traceparent").is_some());
    assert_eq!(sent.header("baggage"), None);
}

/// The bytes that a server of `era` gets for one call, without its number, and the headers with a context.
async fn upstream_bytes(
    era: Era,
    is_traced: bool,
    headers: &[(&str, &str)],
    meta: &Value,
) -> (String, Vec<String>) {
    let collector = TraceCollector::start(CollectorBehavior::Accepts).await;
    let mut settings = sampling_all(&collector);
    settings.sample = Ratio::NONE;
    settings.follow = mcp_vary_traces::Follow::Nobody;
    let harness = if is_traced {
        Harness::before(era, traced(&settings)).await
    } else {
        Harness::before(era, |config| config).await
    };
    ask_with(&harness, headers, meta, "say").await;
    let sent = sent_call(&harness).await;
    assert!(spans(&collector, &harness).await.is_empty());
    let names = ["traceparent", "tracestate", "baggage"];
    let context = names.iter().filter_map(|name| sent.header(name));
    (sent.text.clone(), context.map(str::to_owned).collect())
}

/// OP-4
#[tokio::test]
async fn without_a_sample_and_a_context_the_bytes_upstream_are_those_of_a_gateway_without_traces() {
    for era in [Era::Legacy, Era::Modern] {
        for meta in [
            json!({}),
            json!({"traceparent": IN_META, "tracestate": "a=1"}),
        ] {
            let without = upstream_bytes(era, false, &[], &meta).await;
            let unsampled = upstream_bytes(era, true, &[], &meta).await;
            assert_eq!(without, unsampled, "{era:?} {meta}");
            assert!(without.1.is_empty());
        }
    }
}

/// OP-4
#[tokio::test]
async fn a_context_in_headers_goes_on_unchanged_without_a_sample() {
    let headers = [("traceparent", IN_HEADER), ("baggage", "c=3")];
    let (body, context) = upstream_bytes(Era::Modern, true, &headers, &json!({})).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["params"]["_meta"]["traceparent"], IN_HEADER);
    assert_eq!(context, [IN_HEADER, "c=3"]);
}
