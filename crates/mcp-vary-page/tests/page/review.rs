//! What should go.

use mcp_vary_testkit::credentials::{DIGEST_OF_CI, KEY_OF_CI, KEY_OF_NOBODY};

use crate::support::*;

#[tokio::test]
async fn what_should_go_is_shown() {
    let shown = Shown::with(
        "
variants:
  standard: {}
  old:
    description: Old.
    deprecation: {message: Use standard., replacement: standard, removal-date: 1970-01-20}
    tools: {exclude: [nothing_*]}
clients: [{name: robot, variant: old}]
",
    )
    .await;
    let before = shown.get("/api/review").await.json();
    assert_eq!(before["deprecated"], json!([]));
    for _ in 0..2 {
        shown.client_asks("tools/list", json!({})).await;
    }
    let review = shown.get("/api/review").await.json();
    let expected = json!([{
        "client": {"name": "robot", "version": "7"}, "variant": "old", "replacement": "standard",
        "removalDate": "1970-01-20", "daysLeft": 8, "requests": 2,
    }]);
    assert_eq!(review["deprecated"], expected);
    let unmatched = json!([{
        "place": "vary.yaml:9", "what": "`variants.old.tools.exclude[0]` matches nothing now: `nothing_*`",
        "fix": "it will exclude what the servers add later", "variant": "old", "kind": "note",
    }]);
    assert_eq!(review["setup"], unmatched);
    for empty in ["collisions", "limits"] {
        assert_eq!(review[empty], json!([]), "{empty}");
    }
    // Only metrics count them.
    assert_eq!(review["denials"], Value::Null);
    assert_eq!(review["credentials"], Value::Null);
    assert_eq!(review["refusedCredentials"], Value::Null);
    assert_eq!(review["failedResults"], 0);
}

#[tokio::test]
async fn a_tool_that_was_probably_meant_is_named_and_others_are_not() {
    let shown = Shown::with("").await;
    for name in ["ood", "nothing"] {
        let params = json!({"name": name, "arguments": {}});
        shown.client_asks("tools/call", params).await;
    }
    let review = shown.get("/api/review").await.json();
    assert_eq!(review["meant"], json!({"ood": "odd"}));
    assert_eq!(review["setup"], json!([]));
}

#[tokio::test]
async fn refused_credentials_are_counted_without_metrics_and_requests_without_one_are_not() {
    let shown = Shown::with(&format!(
        "auth:\n  keys: [{{name: ci, sha256: {DIGEST_OF_CI}}}]\n"
    ))
    .await;
    let list = || HttpRequest::modern_request("tools/list", json!({}));
    let with = |credential: String| list().with("Authorization", credential);
    for (request, status) in [
        (list(), 401),
        (with(format!("Bearer {KEY_OF_CI}")), 200),
        (with(format!("Bearer {KEY_OF_NOBODY}")), 401),
        (with("Basic YTpi".to_owned()), 400),
    ] {
        assert_eq!(shown.client(&request).await.status, status, "{request:?}");
    }
    let expected = json!({"count": 2, "lastSecondsAgo": 0});
    for path in ["/api/review", "/api/status", "/status"] {
        let answer = shown.get(path).await.json();
        assert_eq!(answer["refusedCredentials"], expected, "{path}");
    }
}
