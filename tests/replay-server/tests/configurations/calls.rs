//! What becomes of calls in the variants of the examples: what reaches the server, and what is refused.

use replay_server::ARRIVED;
use serde_json::{Value, json};

use crate::front::Front;

/// Asserts what the calls of a table come to: `variant | tool | arguments | => | tool | arguments` for those that arrive, and
/// `variant | tool | arguments | refused | a part of the error`. Without arguments behind the tool, they arrive as they are.
async fn comes_to(example: &str, table: &str) {
    let mut front = Front::of(example).await;
    for row in table.trim().lines() {
        let cells: Vec<&str> = row.split(" | ").map(str::trim).collect();
        let [variant, tool, arguments, outcome, ref expected @ ..] = cells[..] else {
            panic!("{row}: too few cells");
        };
        let parse = |json: &str| serde_json::from_str::<Value>(json).unwrap();
        let params = json!({"name": tool, "arguments": parse(arguments)});
        let answer = front.ask_under(Some(variant), "tools/call", params).await;
        let arrived = answer.as_ref().ok();
        let arrived = arrived.and_then(|result| result["_meta"][ARRIVED].as_str());
        if outcome == "=>" {
            let arrived = arrived.unwrap_or_else(|| panic!("{row}: {answer:?}"));
            let arguments = parse(expected.get(1).unwrap_or(&arguments));
            let expected = json!({"name": expected[0], "arguments": arguments});
            assert_eq!(parse(arrived), expected, "{row}");
        } else {
            assert_eq!((outcome, arrived), ("refused", None), "{row}");
            let error = format!("{answer:?}");
            assert!(error.contains(expected[0]), "{row}: {error}");
        }
    }
    front.gateway.close().await;
}

/// SV-27
#[tokio::test]
async fn the_developer_platform_is_cut_into_sets_of_tools() {
    comes_to("github", include_str!("calls/github.txt")).await;
}

/// SV-27
#[tokio::test]
async fn a_trading_desk_keeps_its_limits() {
    comes_to("trading", include_str!("calls/trading.txt")).await;
}

/// SV-27
#[tokio::test]
async fn research_is_as_deep_as_asked() {
    comes_to(
        "research",
        &include_str!("calls/research.txt").replace(r#""q""#, r#""How long is the Aare?""#),
    )
    .await;
}

/// SV-27
#[tokio::test]
async fn a_practice_shows_each_of_its_people_their_part() {
    comes_to("healthcare", include_str!("calls/healthcare.txt")).await;
}

/// SV-27
#[tokio::test]
async fn an_old_generation_goes_on_before_a_new_server() {
    comes_to("api-generations", include_str!("calls/api-generations.txt")).await;
}

/// SV-27: arguments in the words of a dialect arrive in the server's, and what the server does not take is said.
#[tokio::test]
async fn each_family_of_models_speaks_its_dialect() {
    comes_to("models", include_str!("calls/models.txt")).await;
}

/// SV-27
#[tokio::test]
async fn a_small_window_fixes_what_it_does_not_show() {
    comes_to("context-budgets", include_str!("calls/context-budgets.txt")).await;
}

/// SV-27
#[tokio::test]
async fn a_file_server_has_three_faces() {
    let edits = r#"[{"oldText": "a", "newText": "b"}]"#;
    comes_to(
        "files",
        &include_str!("calls/files.txt").replace("EDITS", edits),
    )
    .await;
}

/// SV-27: what is wrong is said with what would be right.
#[tokio::test]
async fn a_wrong_variant_or_tool_is_told_what_there_is() {
    let mut front = Front::of("trading").await;
    let error = front
        .ask_under(Some("gambling"), "tools/list", json!({}))
        .await
        .unwrap_err();
    assert_eq!(error["code"], -32602);
    assert_eq!(error["data"]["requestedVariant"], "gambling");
    let available = error["data"]["availableVariants"].to_string();
    assert!(available.contains("analysis-only"), "{available}");
    let call = json!({"name": "place_order", "arguments": {}});
    let error = front
        .ask_under(Some("analysis-only"), "tools/call", call)
        .await
        .unwrap_err();
    assert_eq!(error["code"], -32602);
    assert_eq!(error["data"]["activeVariant"], "analysis-only");
    front.gateway.close().await;
}

/// SV-27: a prompt asks for its arguments by the view's names.
#[tokio::test]
async fn a_prompt_is_asked_for_in_the_words_of_its_variant() {
    let mut front = Front::of("github").await;
    let params = json!({"name": "review_pull_request", "arguments": {"owner": "acme", "repo": "site", "number": "7"}});
    let result = front
        .ask_under(Some("code-review"), "prompts/get", params)
        .await
        .unwrap();
    let arrived: Value = serde_json::from_str(result["_meta"][ARRIVED].as_str().unwrap()).unwrap();
    assert_eq!(
        arrived["arguments"],
        json!({"owner": "acme", "repo": "site", "pull_number": "7"})
    );
    front.gateway.close().await;
}
