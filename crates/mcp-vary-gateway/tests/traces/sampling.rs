//! Whose decision about sampling counts.

use mcp_vary_access::{Claims, Principal};
use mcp_vary_traces::{Follow, Ratio};

use super::traced::{sampling_all, spans, traced};
use crate::support::*;

const SAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00";

/// How many spans there are of one call with this context.
async fn recorded(kind: ClientKind, follow: Follow, sample: Ratio, traceparent: &str) -> usize {
    let collector = TraceCollector::start(CollectorBehavior::Accepts).await;
    let mut settings = sampling_all(&collector);
    (settings.follow, settings.sample) = (follow, sample);
    let harness = Harness::with(|config| {
        let mut config = traced(&settings)(config);
        let principal = Principal::stdio("me", Claims::default()).unwrap();
        config.stdio_principal = Some(Arc::new(principal));
        config
    })
    .await;
    let mut params = tool("odd");
    params["_meta"] = json!({"traceparent": traceparent});
    harness.ask(kind, "tools/call", params).await;
    let spans = spans(&collector, &harness).await;
    spans
        .iter()
        .filter(|span| span.name == "tools/call odd")
        .count()
}

/// OP-4
#[tokio::test]
async fn a_stranger_does_not_choose_what_is_recorded() {
    use ClientKind::{HttpModern, StdioModern};
    for (kind, follow, sample, traceparent, expected) in [
        (HttpModern, Follow::Principals, Ratio::NONE, SAMPLED, 0),
        (HttpModern, Follow::Principals, Ratio::ALL, UNSAMPLED, 2),
        (StdioModern, Follow::Principals, Ratio::NONE, SAMPLED, 2),
        (StdioModern, Follow::Principals, Ratio::ALL, UNSAMPLED, 0),
        (StdioModern, Follow::Nobody, Ratio::NONE, SAMPLED, 0),
        (HttpModern, Follow::All, Ratio::NONE, SAMPLED, 2),
        (HttpModern, Follow::All, Ratio::ALL, UNSAMPLED, 0),
    ] {
        let found = recorded(kind, follow, sample, traceparent).await;
        assert_eq!(
            found, expected,
            "{kind:?} {follow:?} {sample:?} {traceparent}"
        );
    }
}
