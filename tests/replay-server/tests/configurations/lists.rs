//! What each example lists in each of its variants.

use serde_json::{Value, json};

use crate::front::{Front, examples, variants};

#[test]
fn there_are_these_examples() {
    let expected = [
        "agents",
        "api-generations",
        "claims",
        "context-budgets",
        "experiment",
        "files",
        "github",
        "healthcare",
        "journeys",
        "mapping",
        "models",
        "reports",
        "research",
        "trading",
        "weather",
    ];
    assert_eq!(examples(), expected);
}

/// SV-27: no example says anything of a tool, prompt or resource that is not there, and no two have one name.
#[tokio::test]
async fn every_example_means_what_it_says() {
    for example in examples() {
        let front = Front::of(&example).await;
        assert_eq!(front.gateway.unmatched_overrides(), [], "{example}");
        assert!(front.gateway.collisions().is_empty(), "{example}");
        front.gateway.close().await;
    }
}

fn called(items: &[Value], key: &str) -> String {
    let names: Vec<&str> = items
        .iter()
        .map(|item| item[key].as_str().unwrap())
        .collect();
    names.join(" ")
}

/// SV-27: what each variant of each example shows.
#[tokio::test]
async fn every_variant_lists_what_it_is_for() {
    for example in examples() {
        let mut front = Front::of(&example).await;
        let mut shown = String::new();
        for variant in variants(&example) {
            shown.push_str(&format!("{variant}\n"));
            for (list, key) in [
                ("tools", "name"),
                ("prompts", "name"),
                ("resources", "uri"),
                ("templates", "uriTemplate"),
            ] {
                let items = front.list(&variant, list).await;
                if !items.is_empty() {
                    shown.push_str(&format!("  {list}: {}\n", called(&items, key)));
                }
            }
        }
        insta::assert_snapshot!(example, shown);
        front.gateway.close().await;
    }
}

/// SV-27, SV-13: a page of one variant does not lead into another.
#[tokio::test]
async fn a_cursor_of_another_variant_is_refused() {
    for (example, one, other) in [
        ("github", "standard", "read-only"),
        ("context-budgets", "compact", "standard"),
    ] {
        let mut front = Front::of(example).await;
        let page = front
            .ask_under(Some(one), "tools/list", json!({}))
            .await
            .unwrap();
        let params = json!({"cursor": page["nextCursor"]});
        let next = front
            .ask_under(Some(one), "tools/list", params.clone())
            .await
            .unwrap();
        assert_ne!(next["tools"], page["tools"]);
        let error = front
            .ask_under(Some(other), "tools/list", params)
            .await
            .unwrap_err();
        assert_eq!(error["code"], -32602, "{error}");
        assert_eq!(error["data"]["cursorVariant"], one, "{error}");
        assert_eq!(error["data"]["requestedVariant"], other, "{error}");
        front.gateway.close().await;
    }
}

/// The characters of a variant's list of tools.
async fn length(front: &mut Front, variant: &str) -> usize {
    let tools = front.list(variant, "tools").await;
    serde_json::to_string(&tools).unwrap().len()
}

/// SV-27: the budgets are what their descriptions promise.
#[tokio::test]
async fn a_smaller_budget_is_smaller() {
    let mut front = Front::of("context-budgets").await;
    let mut lengths = Vec::new();
    for variant in ["standard", "compact", "minimal", "edge"] {
        lengths.push(length(&mut front, variant).await);
    }
    // This server says little that a caller does not need, so that `compact` saves least.
    assert!(lengths[1] * 10 < lengths[0] * 9, "{lengths:?}");
    assert!(
        lengths
            .windows(2)
            .skip(1)
            .all(|pair| pair[1] * 3 < pair[0] * 2),
        "{lengths:?}"
    );
    front.gateway.close().await;
}
