//! What becomes of calls in the variants of the examples: what reaches the server, and what is refused.

use replay_server::ARRIVED;
use serde_json::{Value, json};

use crate::front::Front;

/// What a call under a variant comes to: the tool and arguments that arrive, or a part of the error.
struct Case {
    variant: &'static str,
    tool: &'static str,
    arguments: Value,
    expected: Result<(&'static str, Value), &'static str>,
}

fn arrives(
    variant: &'static str,
    tool: &'static str,
    arguments: Value,
    name: &'static str,
    arrived: Value,
) -> Case {
    Case {
        variant,
        tool,
        arguments,
        expected: Ok((name, arrived)),
    }
}

fn refused(variant: &'static str, tool: &'static str, arguments: Value, why: &'static str) -> Case {
    Case {
        variant,
        tool,
        arguments,
        expected: Err(why),
    }
}

/// Asserts what the calls under the variants of an example come to.
async fn comes_to(example: &str, cases: Vec<Case>) {
    let mut front = Front::of(example).await;
    for case in cases {
        let Case {
            variant,
            tool,
            arguments,
            expected,
        } = case;
        let params = json!({"name": tool, "arguments": arguments});
        let answer = front.ask(Some(variant), "tools/call", params).await;
        let arrived = match &answer {
            Ok(result) => result["_meta"][ARRIVED].as_str(),
            Err(_) => None,
        };
        match expected {
            Ok((name, arguments)) => {
                let arrived = arrived.unwrap_or_else(|| panic!("{variant} {tool}: {answer:?}"));
                let arrived: Value = serde_json::from_str(arrived).unwrap();
                let expected = json!({"name": name, "arguments": arguments});
                assert_eq!(arrived, expected, "{variant} {tool}");
            }
            Err(why) => {
                assert_eq!(arrived, None, "{variant} {tool}");
                let said = format!("{answer:?}");
                assert!(said.contains(why), "{variant} {tool}: {said}");
            }
        }
    }
    front.gateway.close().await;
}

/// SV-27
#[tokio::test]
async fn the_developer_platform_is_cut_into_sets_of_tools() {
    let there = json!({"owner": "acme", "repo": "site", "pull_number": 7});
    comes_to("github", vec![
        arrives("standard", "get_pull_request", there.clone(), "get_pull_request", there.clone()),
        arrives("code-review", "get_diff", json!({"owner": "acme", "repo": "site", "number": 7}), "get_pull_request_diff", there.clone()),
        arrives("code-review", "merge_pull_request", json!({"owner": "acme", "repo": "site", "number": 7, "sha": "abc1234"}), "merge_pull_request",
            json!({"owner": "acme", "repo": "site", "pull_number": 7, "sha": "abc1234", "method": "squash"})),
        refused("code-review", "merge_pull_request", json!({"owner": "acme", "repo": "site", "number": 7, "sha": "abc1234", "method": "rebase"}), "method"),
        refused("code-review", "get_pull_request_diff", there.clone(), "-32602"),
        refused("code-review", "create_issue", json!({"owner": "acme", "repo": "site", "title": "t"}), "-32602"),
        refused("project-management", "merge_pull_request", there.clone(), "-32602"),
        refused("security-readonly", "dismiss_code_scanning_alert", json!({}), "-32602"),
        refused("read-only", "create_issue", json!({}), "-32602"),
        arrives("lockdown", "list_commits", json!({"sha": "main"}), "list_commits", json!({"owner": "acme", "repo": "site", "sha": "main"})),
        refused("lockdown", "list_commits", json!({"owner": "evil"}), "owner"),
        refused("lockdown", "search_code", json!({"query": "x"}), "-32602"),
        refused("lockdown", "get_issue", json!({"issue_number": 1}), "-32602"),
        refused("triage", "update_issue", json!({}), "-32602"),
    ])
    .await;
}

/// SV-27
#[tokio::test]
async fn a_trading_desk_keeps_its_limits() {
    let order = json!({"symbol": "ACME", "side": "buy", "quantity": 5});
    let with = |more: Value| {
        let mut order = order.clone();
        order
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        order
    };
    comes_to("trading", vec![
        arrives("interactive-trading", "place_order", order.clone(), "place_order",
            with(json!({"confirm": true, "max_position": 100, "asset_class": "equity"}))),
        refused("interactive-trading", "place_order", with(json!({"confirm": false})), "confirm"),
        refused("interactive-trading", "run_strategy", json!({"strategy": "s", "budget": 1}), "-32602"),
        arrives("autonomous-trading", "place_order", with(json!({"limit_price": 3.5, "strategy": "s"})), "place_order",
            with(json!({"limit_price": 3.5, "strategy": "s", "confirm": false, "max_position": 1000, "asset_class": "equity"}))),
        refused("autonomous-trading", "place_order", order.clone(), "strategy"),
        refused("autonomous-trading", "place_order", with(json!({"limit_price": 1, "strategy": "s", "asset_class": "option"})), "asset_class"),
        arrives("autonomous-trading", "run_strategy", json!({"strategy": "s"}), "run_strategy", json!({"strategy": "s", "budget": 50000})),
        refused("autonomous-trading", "paper_place_order", order.clone(), "-32602"),
        refused("analysis-only", "place_order", order.clone(), "-32602"),
        arrives("analysis-only", "get_quote", json!({"symbol": "ACME"}), "get_quote", json!({"symbol": "ACME"})),
    ])
    .await;
}

/// SV-27
#[tokio::test]
async fn research_is_as_deep_as_asked() {
    let question = "How long is the Aare?";
    comes_to("research", vec![
        arrives("deep-research", "search", json!({"question": question}), "search",
            json!({"question": question, "depth": "comprehensive", "citations": true, "max_sources": 50})),
        arrives("deep-research", "search", json!({"question": question, "max_sources": 9}), "search",
            json!({"question": question, "max_sources": 9, "depth": "comprehensive", "citations": true})),
        arrives("quick-lookup", "look_up", json!({"question": question}), "search",
            json!({"question": question, "depth": "shallow", "max_sources": 1, "citations": false})),
        refused("quick-lookup", "search", json!({"question": question}), "-32602"),
        arrives("synthesis", "search", json!({"topic": question}), "search", json!({"question": question, "depth": "moderate"})),
        arrives("synthesis", "write_briefing", json!({"sources": ["a"]}), "summarise", json!({"source_ids": ["a"], "words": 800})),
        refused("synthesis", "verify_claim", json!({"claim": "c"}), "-32602"),
    ])
    .await;
}

/// SV-27
#[tokio::test]
async fn a_practice_shows_each_of_its_people_their_part() {
    comes_to(
        "healthcare",
        vec![
            arrives(
                "clinical-decision-support",
                "check_drug_interactions",
                json!({"drugs": ["a", "b"], "patient_id": "P000001"}),
                "check_drug_interactions",
                json!({"drugs": ["a", "b"], "patient_id": "P000001"}),
            ),
            refused(
                "clinical-decision-support",
                "check_drug_interactions",
                json!({"drugs": ["a", "b"]}),
                "patient_id",
            ),
            refused(
                "clinical-decision-support",
                "create_invoice",
                json!({}),
                "-32602",
            ),
            arrives(
                "patient-facing",
                "explain_condition",
                json!({"illness": "flu"}),
                "explain_condition",
                json!({"condition": "flu", "reading_level": "plain"}),
            ),
            arrives(
                "patient-facing",
                "book_appointment",
                json!({"patient_id": "P000001", "appointment": "s1"}),
                "book_appointment",
                json!({"patient_id": "P000001", "slot_id": "s1", "channel": "portal"}),
            ),
            refused("patient-facing", "suggest_diagnoses", json!({}), "-32602"),
            arrives(
                "administrative",
                "book_appointment",
                json!({"patient_id": "P000001", "slot_id": "s1"}),
                "book_appointment",
                json!({"patient_id": "P000001", "slot_id": "s1", "channel": "desk"}),
            ),
            refused("administrative", "plan_treatment", json!({}), "-32602"),
        ],
    )
    .await;
}

/// SV-27
#[tokio::test]
async fn an_old_generation_goes_on_before_a_new_server() {
    let id = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
    let order = json!({"customer": "c1", "lines": [{"sku": "umbrella", "quantity": 2}]});
    comes_to("api-generations", vec![
        arrives("v1-legacy", "getOrders", json!({"customerId": "c1"}), "list_orders", json!({"customer": "c1", "limit": 500})),
        arrives("v1-legacy", "getOrder", json!({"id": id}), "get_order", json!({"order_id": id, "expand": ["customer", "lines"]})),
        arrives("v1-legacy", "newOrder", json!({"customerId": "c1", "lines": [{"sku": "umbrella", "quantity": 2}]}), "create_order",
            json!({"customer": "c1", "lines": [{"sku": "umbrella", "quantity": 2}], "error_format": "text"})),
        refused("v1-legacy", "list_orders", json!({}), "-32602"),
        refused("v2-stable", "getOrders", json!({}), "-32602"),
        refused("v2-stable", "batch_orders", json!({}), "-32602"),
        refused("v2-stable", "list_orders", json!({"filter": "total > 1"}), "filter"),
        arrives("v3-preview", "list_orders", json!({"filter": "total > 1"}), "list_orders", json!({"filter": "total > 1"})),
        refused("v3-preview", "create_order", order.clone(), "idempotency_key"),
    ])
    .await;
}

/// SV-27: arguments in the words of a dialect arrive in the server's, and what the server does not take is said.
#[tokio::test]
async fn each_family_of_models_speaks_its_dialect() {
    let null = Value::Null;
    comes_to("models", vec![
        arrives("gpt-optimized", "search_documents",
            json!({"query": "rain", "limit": null, "kind": "page", "changed_after": null, "site": null, "owner": null, "labels": "{\"a\": \"b\"}"}),
            "search_documents", json!({"query": "rain", "kind": "page", "labels": {"a": "b"}})),
        refused("gpt-optimized", "search_documents", json!({"query": "rain", "limit": 0}), "/limit"),
        arrives("gemini-optimized", "search_documents", json!({"query": "rain", "kind": "mail", "changed_after": null}),
            "search_documents", json!({"query": "rain", "kind": "mail", "changed_after": null})),
        refused("gemini-optimized", "search_documents", json!({"query": "rain", "kind": "note"}), "/kind"),
        arrives("local-friendly", "search", json!({"query": "rain"}), "search_documents", json!({"query": "rain", "limit": 3})),
        arrives("local-friendly", "open", json!({"id": "D1"}), "get_document", json!({"document_id": "D1", "format": "text"})),
        refused("local-friendly", "share_document", null, "-32602"),
    ])
    .await;
}

/// SV-27
#[tokio::test]
async fn a_small_window_fixes_what_it_does_not_show() {
    comes_to(
        "context-budgets",
        vec![
            arrives(
                "edge",
                "find",
                json!({"q": "rain"}),
                "search_issues",
                json!({"query": "rain", "owner": "acme", "repo": "site", "per_page": 3}),
            ),
            arrives(
                "edge",
                "open",
                json!({"n": 3}),
                "get_issue",
                json!({"issue_number": 3, "owner": "acme", "repo": "site"}),
            ),
            arrives(
                "minimal",
                "search_issues",
                json!({"query": "rain"}),
                "search_issues",
                json!({"query": "rain", "per_page": 10}),
            ),
            refused("minimal", "merge_pull_request", json!({}), "-32602"),
            arrives("compact", "get_me", json!({}), "get_me", json!({})),
        ],
    )
    .await;
}

/// SV-27
#[tokio::test]
async fn a_file_server_has_three_faces() {
    let edits = json!([{"oldText": "a", "newText": "b"}]);
    comes_to(
        "files",
        vec![
            arrives(
                "coding-assistant",
                "edit_file",
                json!({"path": "a", "edits": edits}),
                "edit_file",
                json!({"path": "a", "edits": edits, "dryRun": true}),
            ),
            arrives(
                "coding-assistant",
                "edit_file",
                json!({"path": "a", "edits": edits, "preview": false}),
                "edit_file",
                json!({"path": "a", "edits": edits, "dryRun": false}),
            ),
            arrives(
                "automation-agent",
                "read",
                json!({"path": "a"}),
                "read_text_file",
                json!({"path": "a"}),
            ),
            refused(
                "automation-agent",
                "edit_file",
                json!({"path": "a", "edits": edits}),
                "-32602",
            ),
            arrives(
                "conversational",
                "propose_change",
                json!({"path": "a", "edits": edits}),
                "edit_file",
                json!({"path": "a", "edits": edits, "dryRun": true}),
            ),
            arrives(
                "conversational",
                "find_file",
                json!({"path": ".", "name": "*.md"}),
                "search_files",
                json!({"path": ".", "pattern": "*.md"}),
            ),
            refused(
                "conversational",
                "write_file",
                json!({"path": "a", "content": ""}),
                "-32602",
            ),
        ],
    )
    .await;
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
