//! Research within a budget.

use library_examples::research as example;
use mcp_vary_rmcp::client::TaskContext;
use serde_json::json;

use crate::support::{hinting, in_each_way, offered, plain, result_of, view};

/// SV-11: a variant can change default behaviours.
#[tokio::test]
async fn each_variant_keeps_to_its_budget_and_says_what_is_missing() {
    let server = example::server().unwrap();
    in_each_way(server, plain, async |client, way| {
        for (variant, lines, last) in [
            (
                "quick-lookup",
                2,
                "(left out: 3; `deep-research` has room for more)",
            ),
            (
                "synthesis",
                4,
                "(left out: 1; `deep-research` has room for more)",
            ),
            ("deep-research", 4, "[4]"),
        ] {
            let said = result_of(&view(client, variant), "search", json!({"topic": "Aare"})).await;
            let said = said["content"][0]["text"].as_str().unwrap();
            assert_eq!(said.lines().count(), lines, "{variant}, {way}: {said}");
            assert!(said.ends_with(last), "{variant}, {way}: {said}");
        }
    })
    .await;
}

/// SV-19: a client that runs out of tokens chooses by the hint `contextSize`.
#[tokio::test]
async fn a_client_with_few_tokens_left_looks_up_quickly() {
    let server = example::server().unwrap();
    in_each_way(server, plain, async |client, way| {
        let rich = client.choose(&TaskContext::new().with_remaining_tokens(100_000));
        let poor = client.choose(&TaskContext::new().with_remaining_tokens(4_000));
        assert_eq!(rich.variant().unwrap().as_str(), "synthesis", "{way}");
        assert_eq!(poor.variant().unwrap().as_str(), "quick-lookup", "{way}");
    })
    .await;
}

/// SV-5: `useCase` and `contextSize` are ranked.
#[tokio::test]
async fn a_researcher_is_offered_depth_first() {
    let server = example::server().unwrap();
    let declare = || hinting(&[("useCase", "research"), ("contextSize", "verbose")]);
    in_each_way(server, declare, async |client, way| {
        assert_eq!(offered(client)[0], "deep-research", "{way}");
    })
    .await;
}
