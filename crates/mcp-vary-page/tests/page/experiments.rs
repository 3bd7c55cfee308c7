//! How the arms of experiments compare.

use crate::support::*;

const WORDS: &str = "
variants:
  standard: {}
  compact: {}
experiments:
  - {name: words, arms: {standard: 50, compact: 50}, salt: any}
";

#[tokio::test]
async fn an_experiment_has_its_arms_and_what_is_declared() {
    let shown = Shown::with(WORDS).await;
    let answer = shown.get("/api/experiments").await.json();
    let words = &answer["experiments"][0];
    let early = "Too early: 0 clients in the smallest arm, and each needs 100 or more.";
    let expected = json!({
        "name": "words", "metric": "failed", "uneven": false, "comparisons": [], "verdicts": [early],
        "arms": [
            {"variant": "standard", "clients": 0.0, "planned": 0.0, "calls": 0.0},
            {"variant": "compact", "clients": 0.0, "planned": 0.0, "calls": 0.0},
        ],
    });
    assert_members(words, &expected);
}

/// As long as nothing is counted, there is one point.
#[tokio::test]
async fn an_experiment_has_its_history_until_now() {
    let shown = Shown::with(WORDS).await;
    for _ in 0..2 {
        let answer = shown.get("/api/experiments").await.json();
        let arm = json!({"clients": 0.0, "calls": 0.0, "difference": null});
        let expected = json!([{"at": 1_000_000, "arms": [arm, arm]}]);
        assert_eq!(answer["experiments"][0]["history"], expected);
    }
}

#[tokio::test]
async fn without_experiments_there_are_none() {
    let shown = Shown::with("").await;
    let answer = shown.get("/api/experiments").await.json();
    assert_eq!(answer, json!({"experiments": []}));
}
