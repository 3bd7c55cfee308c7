//! What clients may cache when variants are off and the server lets everybody cache everything.

use mcp_vary_config::read_resources;
use mcp_vary_gateway::{ClientPattern, ClientRule};
use mcp_vary_view::Dialect;

use crate::support::*;

/// What the server says of each list and each resource.
const SAID: (u64, &str) = (60_000, "public");
/// What is said of what depends on the client (SV-17).
const OWN: (u64, &str) = (0, "private");
const MODERN: [ClientKind; 2] = [ClientKind::HttpModern, ClientKind::StdioModern];
const LISTS: [&str; 4] = [
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
];

fn server() -> Script {
    let cached = |mut result: Value| {
        result["resultType"] = json!("complete");
        result["ttlMs"] = json!(SAID.0);
        result["cacheScope"] = json!(SAID.1);
        result
    };
    let content = |uri: &str| {
        let is_note = uri.starts_with("note:");
        let media_type = if is_note {
            "text/plain"
        } else {
            "application/json"
        };
        let point = json!({"type": "Point", "coordinates": [7.5, 45.5]}).to_string();
        json!({"uri": uri, "mimeType": media_type, "text": point})
    };
    Script::new(Era::Modern, "caching")
        .declares(json!({"tools": {}, "resources": {}, "prompts": {}}))
        .result("tools/list", cached(tool_list(&["t"])))
        .result("resources/list", cached(json!({"resources": []})))
        .result(
            "resources/templates/list",
            cached(json!({"resourceTemplates": []})),
        )
        .result("prompts/list", cached(json!({"prompts": []})))
        .on("resources/read", move |params| {
            cached(match params["uri"].as_str().unwrap() {
                "dir:all" => json!({"contents": [content("note:a"), content("map:a")]}),
                uri => json!({"contents": [content(uri)]}),
            })
        })
}

/// A gateway without variants in front of that server, after `edit`.
async fn alike(edit: impl FnOnce(&mut Config)) -> Harness {
    let peer = server().start().await;
    Harness::edited(peer, |config| {
        config.variants = false;
        edit(config);
    })
    .await
}

/// What each kind of client may do with an answer.
async fn may_cache(harness: &Harness, method: &str, params: Value, expected: (u64, &str)) {
    for client_kind in MODERN {
        for capabilities in [json!({}), features(&["human", "format=markdown"])] {
            let answer = ask_as(harness, client_kind, &capabilities, method, params.clone()).await;
            let result = &answer["result"];
            let sent = (result["ttlMs"].as_u64(), result["cacheScope"].as_str());
            let expected = (Some(expected.0), Some(expected.1));
            assert_eq!(
                sent, expected,
                "{client_kind:?} {method} {params} {capabilities}"
            );
        }
    }
}

async fn may_cache_all(harness: &Harness, expected: (u64, &str)) {
    for list in LISTS {
        may_cache(harness, list, json!({}), expected).await;
    }
    for uri in ["map:a", "note:a", "dir:all"] {
        may_cache(harness, "resources/read", json!({"uri": uri}), expected).await;
    }
}

/// SV-17: where nothing depends on the client, what the server says stands.
#[tokio::test]
async fn where_all_clients_are_served_alike_the_servers_word_stands() {
    may_cache_all(&alike(|config| config.negotiation = false).await, SAID).await;
}

/// Checks that nobody keeps what is made of JSON, and that caches keep the rest.
async fn only_maps_are_for_one_client(harness: &Harness) {
    for uri in ["map:a", "dir:all"] {
        may_cache(harness, "resources/read", json!({"uri": uri}), OWN).await;
    }
    may_cache(harness, "resources/read", json!({"uri": "note:a"}), SAID).await;
    for list in LISTS {
        may_cache(harness, list, json!({}), SAID).await;
    }
}

/// SV-17: JSON is rendered for clients that ask for it, so that nobody keeps it; what is the same for all is kept.
#[tokio::test]
async fn json_that_some_clients_get_rendered_is_kept_by_nobody() {
    let harness = alike(|_| {}).await;
    only_maps_are_for_one_client(&harness).await;
}

/// SV-17: whether a client gets a resource as served depends on its features, also for the one that does.
#[tokio::test]
async fn a_resource_that_a_rule_is_about_is_kept_by_nobody() {
    let harness = alike(|config| {
        let rules = "- {uris: [\"map:*\"], as: geo-markdown}";
        config.resource_results = read_resources(rules).unwrap();
    })
    .await;
    only_maps_are_for_one_client(&harness).await;
}

/// SV-17: rules look at the name that a client gives itself, which caches ignore.
#[tokio::test]
async fn where_rules_tell_clients_apart_nothing_is_kept() {
    let mut rule = ClientRule::default().with_name(ClientPattern::new("gemini*").unwrap());
    rule.dialect = Some(Some(Dialect::Gemini));
    may_cache_all(
        &alike(|config| config.selection.rules = vec![rule]).await,
        OWN,
    )
    .await;
    may_cache_all(
        &alike(|config| config.selection.known_clients = true).await,
        OWN,
    )
    .await;
}

/// SV-17: the tool that reads what was left out is listed to clients that may get less.
#[tokio::test]
async fn where_a_tool_is_listed_to_some_nothing_is_kept() {
    may_cache_all(&alike(|config| config.read_result = true).await, OWN).await;
}

/// A server of 2025-11-25 says nothing, so that its lists are not cached at all.
#[tokio::test]
async fn of_a_legacy_server_nothing_is_kept() {
    let harness = Harness::before(Era::Legacy, |config| config.with_variants(false)).await;
    may_cache(&harness, "tools/list", json!({}), OWN).await;
}
