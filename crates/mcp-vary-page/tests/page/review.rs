//! What should go.

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
    assert_eq!(review["unmatched"][0]["variant"], "old");
    let problem = review["unmatched"][0]["problem"].as_str().unwrap();
    assert!(problem.contains("nothing_*"), "{problem}");
    for empty in ["collisions", "limits"] {
        assert_eq!(review[empty], json!([]), "{empty}");
    }
    // Only metrics count them.
    assert_eq!(review["denials"], Value::Null);
    assert_eq!(review["credentials"], Value::Null);
    assert_eq!(review["failedResults"], 0);
}
