//! The same tool for each family of models.

use library_examples::model_optimised as example;
use serde_json::{Value, json};

use crate::support::{hinting, in_each_way, offered, result_of, view};

/// Asserts which variant is the default of a client with these hints, and how it describes the
/// tool.
async fn suits(hints: &[(&str, &str)], variant: &str, description: &str) {
    let server = example::server().unwrap();
    in_each_way(
        server,
        || hinting(hints),
        async |client, kind| {
            assert_eq!(offered(client)[0], variant, "{kind}");
            // A client that sends no selector gets it too.
            let tools = client.default_variant().tools().await.unwrap();
            let reported = tools[0].description.as_deref().unwrap();
            assert!(reported.starts_with(description), "{kind}: {reported}");
        },
    )
    .await;
}

/// SV-5: a matching `modelFamily` comes first.
#[tokio::test]
async fn a_model_gets_the_descriptions_of_its_family() {
    let claude = "Searches the documents of the library";
    suits(&[("modelFamily", "anthropic")], "claude-optimized", claude).await;
    suits(
        &[("modelFamily", "openai")],
        "gpt-optimized",
        "Search documents.",
    )
    .await;
    suits(
        &[("modelFamily", "local")],
        "local-friendly",
        "Finds documents.",
    )
    .await;
}

/// SV-4, SV-5: values of one hint are in order of preference.
#[tokio::test]
async fn the_family_that_is_named_first_counts_most() {
    let both = [("modelFamily", "local"), ("modelFamily", "openai")];
    suits(&both, "local-friendly", "Finds documents.").await;
}

/// SV-11: a variant can change input schemas and default behaviours.
#[tokio::test]
async fn a_local_model_need_not_name_a_limit() {
    let server = example::server().unwrap();
    in_each_way(
        server,
        || hinting(&[]),
        async |client, way| {
            let local = view(client, "local-friendly");
            let tools = local.tools().await.unwrap();
            let properties = tools[0].input_schema["properties"].as_object().unwrap();
            assert!(properties.keys().eq(["query"]), "{way}");
            let found = result_of(&local, "search", json!({"query": "rain"})).await;
            assert_eq!(titles(&found), 3, "{way}");
            let claude = view(client, "claude-optimized");
            let found = result_of(&claude, "search", json!({"query": "rain", "limit": 4})).await;
            assert_eq!(titles(&found), 4, "{way}");
        },
    )
    .await;
}

fn titles(result: &Value) -> usize {
    result["content"][0]["text"]
        .as_str()
        .unwrap()
        .lines()
        .count()
}
