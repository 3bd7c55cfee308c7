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
        let answer = front.ask(Some(variant), "tools/call", params).await;
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
    let table = r#"
standard | get_pull_request | {"owner": "acme", "repo": "site", "pull_number": 7} | => | get_pull_request
code-review | get_diff | {"owner": "acme", "repo": "site", "number": 7} | => | get_pull_request_diff | {"owner": "acme", "repo": "site", "pull_number": 7}
code-review | merge_pull_request | {"owner": "acme", "repo": "site", "number": 7, "sha": "abc1234"} | => | merge_pull_request | {"owner": "acme", "repo": "site", "pull_number": 7, "sha": "abc1234", "method": "squash"}
code-review | merge_pull_request | {"owner": "acme", "repo": "site", "number": 7, "sha": "abc1234", "method": "rebase"} | refused | method
code-review | get_pull_request_diff | {"owner": "acme", "repo": "site", "pull_number": 7} | refused | -32602
code-review | create_issue | {"owner": "acme", "repo": "site", "title": "t"} | refused | -32602
project-management | merge_pull_request | {"owner": "acme", "repo": "site", "pull_number": 7} | refused | -32602
security-readonly | dismiss_code_scanning_alert | {} | refused | -32602
read-only | create_issue | {} | refused | -32602
lockdown | list_commits | {"sha": "main"} | => | list_commits | {"owner": "acme", "repo": "site", "sha": "main"}
lockdown | list_commits | {"owner": "evil"} | refused | owner
lockdown | search_code | {"query": "x"} | refused | -32602
lockdown | get_issue | {"issue_number": 1} | refused | -32602
triage | update_issue | {} | refused | -32602
"#;
    comes_to("github", table).await;
}

/// SV-27
#[tokio::test]
async fn a_trading_desk_keeps_its_limits() {
    let table = r#"
interactive-trading | place_order | {"symbol": "ACME", "side": "buy", "quantity": 5} | => | place_order | {"symbol": "ACME", "side": "buy", "quantity": 5, "confirm": true, "max_position": 100, "asset_class": "equity"}
interactive-trading | place_order | {"symbol": "ACME", "side": "buy", "quantity": 5, "confirm": false} | refused | confirm
interactive-trading | run_strategy | {"strategy": "s", "budget": 1} | refused | -32602
autonomous-trading | place_order | {"symbol": "ACME", "side": "buy", "quantity": 5, "limit_price": 3.5, "strategy": "s"} | => | place_order | {"symbol": "ACME", "side": "buy", "quantity": 5, "limit_price": 3.5, "strategy": "s", "confirm": false, "max_position": 1000, "asset_class": "equity"}
autonomous-trading | place_order | {"symbol": "ACME", "side": "buy", "quantity": 5} | refused | strategy
autonomous-trading | place_order | {"symbol": "ACME", "side": "buy", "quantity": 5, "limit_price": 1, "strategy": "s", "asset_class": "option"} | refused | asset_class
autonomous-trading | run_strategy | {"strategy": "s"} | => | run_strategy | {"strategy": "s", "budget": 50000}
autonomous-trading | paper_place_order | {"symbol": "ACME", "side": "buy", "quantity": 5} | refused | -32602
analysis-only | place_order | {"symbol": "ACME", "side": "buy", "quantity": 5} | refused | -32602
analysis-only | get_quote | {"symbol": "ACME"} | => | get_quote
"#;
    comes_to("trading", table).await;
}

/// SV-27
#[tokio::test]
async fn research_is_as_deep_as_asked() {
    let table = r#"
deep-research | search | {"question": "q"} | => | search | {"question": "q", "depth": "comprehensive", "citations": true, "max_sources": 50}
deep-research | search | {"question": "q", "max_sources": 9} | => | search | {"question": "q", "max_sources": 9, "depth": "comprehensive", "citations": true}
quick-lookup | look_up | {"question": "q"} | => | search | {"question": "q", "depth": "shallow", "max_sources": 1, "citations": false}
quick-lookup | search | {"question": "q"} | refused | -32602
synthesis | search | {"topic": "q"} | => | search | {"question": "q", "depth": "moderate"}
synthesis | write_briefing | {"sources": ["a"]} | => | summarise | {"source_ids": ["a"], "words": 800}
synthesis | verify_claim | {"claim": "c"} | refused | -32602
"#;
    comes_to(
        "research",
        &table.replace(r#""q""#, r#""How long is the Aare?""#),
    )
    .await;
}

/// SV-27
#[tokio::test]
async fn a_practice_shows_each_of_its_people_their_part() {
    let table = r#"
clinical-decision-support | check_drug_interactions | {"drugs": ["a", "b"], "patient_id": "P000001"} | => | check_drug_interactions
clinical-decision-support | check_drug_interactions | {"drugs": ["a", "b"]} | refused | patient_id
clinical-decision-support | create_invoice | {} | refused | -32602
patient-facing | explain_condition | {"illness": "flu"} | => | explain_condition | {"condition": "flu", "reading_level": "plain"}
patient-facing | book_appointment | {"patient_id": "P000001", "appointment": "s1"} | => | book_appointment | {"patient_id": "P000001", "slot_id": "s1", "channel": "portal"}
patient-facing | suggest_diagnoses | {} | refused | -32602
administrative | book_appointment | {"patient_id": "P000001", "slot_id": "s1"} | => | book_appointment | {"patient_id": "P000001", "slot_id": "s1", "channel": "desk"}
administrative | plan_treatment | {} | refused | -32602
"#;
    comes_to("healthcare", table).await;
}

/// SV-27
#[tokio::test]
async fn an_old_generation_goes_on_before_a_new_server() {
    let table = r#"
v1-legacy | getOrders | {"customerId": "c1"} | => | list_orders | {"customer": "c1", "limit": 500}
v1-legacy | getOrder | {"id": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"} | => | get_order | {"order_id": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff", "expand": ["customer", "lines"]}
v1-legacy | newOrder | {"customerId": "c1", "lines": [{"sku": "umbrella", "quantity": 2}]} | => | create_order | {"customer": "c1", "lines": [{"sku": "umbrella", "quantity": 2}], "error_format": "text"}
v1-legacy | list_orders | {} | refused | -32602
v2-stable | getOrders | {} | refused | -32602
v2-stable | batch_orders | {} | refused | -32602
v2-stable | list_orders | {"filter": "total > 1"} | refused | filter
v3-preview | list_orders | {"filter": "total > 1"} | => | list_orders
v3-preview | create_order | {"customer": "c1", "lines": [{"sku": "umbrella", "quantity": 2}]} | refused | idempotency_key
"#;
    comes_to("api-generations", table).await;
}

/// SV-27: arguments in the words of a dialect arrive in the server's, and what the server does not take is said.
#[tokio::test]
async fn each_family_of_models_speaks_its_dialect() {
    let table = r#"
gpt-optimized | search_documents | {"query": "rain", "limit": null, "kind": "page", "changed_after": null, "site": null, "owner": null, "labels": "{\"a\": \"b\"}"} | => | search_documents | {"query": "rain", "kind": "page", "labels": {"a": "b"}}
gpt-optimized | search_documents | {"query": "rain", "limit": 0} | refused | /limit
gemini-optimized | search_documents | {"query": "rain", "kind": "mail", "changed_after": null} | => | search_documents
gemini-optimized | search_documents | {"query": "rain", "kind": "note"} | refused | /kind
local-friendly | search | {"query": "rain"} | => | search_documents | {"query": "rain", "limit": 3}
local-friendly | open | {"id": "D1"} | => | get_document | {"document_id": "D1", "format": "text"}
local-friendly | share_document | null | refused | -32602
"#;
    comes_to("models", table).await;
}

/// SV-27
#[tokio::test]
async fn a_small_window_fixes_what_it_does_not_show() {
    let table = r#"
edge | find | {"q": "rain"} | => | search_issues | {"query": "rain", "owner": "acme", "repo": "site", "per_page": 3}
edge | open | {"n": 3} | => | get_issue | {"issue_number": 3, "owner": "acme", "repo": "site"}
minimal | search_issues | {"query": "rain"} | => | search_issues | {"query": "rain", "per_page": 10}
minimal | merge_pull_request | {} | refused | -32602
compact | get_me | {} | => | get_me
"#;
    comes_to("context-budgets", table).await;
}

/// SV-27
#[tokio::test]
async fn a_file_server_has_three_faces() {
    let table = r#"
coding-assistant | edit_file | {"path": "a", "edits": EDITS} | => | edit_file | {"path": "a", "edits": EDITS, "dryRun": true}
coding-assistant | edit_file | {"path": "a", "edits": EDITS, "preview": false} | => | edit_file | {"path": "a", "edits": EDITS, "dryRun": false}
automation-agent | read | {"path": "a"} | => | read_text_file
automation-agent | edit_file | {"path": "a", "edits": EDITS} | refused | -32602
conversational | propose_change | {"path": "a", "edits": EDITS} | => | edit_file | {"path": "a", "edits": EDITS, "dryRun": true}
conversational | find_file | {"path": ".", "name": "*.md"} | => | search_files | {"path": ".", "pattern": "*.md"}
conversational | write_file | {"path": "a", "content": ""} | refused | -32602
"#;
    let edits = r#"[{"oldText": "a", "newText": "b"}]"#;
    comes_to("files", &table.replace("EDITS", edits)).await;
}

/// SV-27: what is wrong is said with what would be right.
#[tokio::test]
async fn a_wrong_variant_or_tool_is_told_what_there_is() {
    let mut front = Front::of("trading").await;
    let error = front
        .ask(Some("gambling"), "tools/list", json!({}))
        .await
        .unwrap_err();
    assert_eq!(error["code"], -32602);
    assert_eq!(error["data"]["requestedVariant"], "gambling");
    let available = error["data"]["availableVariants"].to_string();
    assert!(available.contains("analysis-only"), "{available}");
    let call = json!({"name": "place_order", "arguments": {}});
    let error = front
        .ask(Some("analysis-only"), "tools/call", call)
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
        .ask(Some("code-review"), "prompts/get", params)
        .await
        .unwrap();
    let arrived: Value = serde_json::from_str(result["_meta"][ARRIVED].as_str().unwrap()).unwrap();
    assert_eq!(
        arrived["arguments"],
        json!({"owner": "acme", "repo": "site", "pull_number": "7"})
    );
    front.gateway.close().await;
}
