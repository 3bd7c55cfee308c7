//! Three generations of one interface.

use library_examples::trading as example;
use mcp_vary::variant::Status;
use serde_json::json;

use crate::support::{hinting, in_each_way, offered, plain, result_of, tools, view};

const TODAY: &str = "2026-11-20";

fn server() -> mcp_vary_rmcp::server::VaryServer {
    example::server(TODAY.parse().unwrap()).unwrap()
}

/// SV-1, SV-3: the default is stable, and a deprecated variant comes last with its migration
/// message.
#[tokio::test]
async fn the_legacy_generation_is_last_and_says_where_to_go() {
    in_each_way(server(), plain, async |client, way| {
        let expected = ["v2-stable", "v3-preview", "v1-legacy"];
        assert_eq!(offered(client), expected, "{way}");
        let offers = client.offers();
        let legacy = offers.get("v1-legacy").unwrap();
        let info = legacy.deprecation_info.as_ref().unwrap();
        assert_eq!(legacy.status, Status::Deprecated, "{way}");
        let found = info.replacement.as_ref().unwrap().as_str();
        assert_eq!(found, "v2-stable", "{way}");
        assert_eq!(info.removal_date.as_deref(), Some("2027-06-01"), "{way}");
    })
    .await;
}

/// SV-3: an experimental variant is the default only of clients that ask for one.
#[tokio::test]
async fn the_preview_is_the_default_of_who_asks_for_it() {
    let declare = || hinting(&[("status", "experimental"), ("com.acme/apiGeneration", "v3")]);
    in_each_way(server(), declare, async |client, way| {
        assert_eq!(offered(client)[0], "v3-preview", "{way}");
    })
    .await;
    // A client that prefers the generation without asking for experimental variants gets the stable
    // one first.
    let declare = || hinting(&[("com.acme/apiGeneration", "v3")]);
    in_each_way(server(), declare, async |client, way| {
        assert_eq!(offered(client)[0], "v2-stable", "{way}");
    })
    .await;
}

/// SV-11: tools, names and results can differ, by handlers and by views.
#[tokio::test]
async fn each_generation_answers_as_it_always_did() {
    in_each_way(server(), plain, async |client, way| {
        let [v1, v2, v3] = ["v1-legacy", "v2-stable", "v3-preview"].map(|id| view(client, id));
        assert_eq!(tools(&v1).await, ["trade"], "{way}");
        assert_eq!(tools(&v2).await, ["place_order"], "{way}");
        assert_eq!(tools(&v3).await, ["place_order", "place_orders"], "{way}");

        let nothing = json!({"symbol": "UMBRELLA", "quantity": 0});
        let error = result_of(&v1, "trade", nothing.clone()).await;
        assert_eq!(error["content"][0]["text"], "E_QUANTITY", "{way}");
        let error = result_of(&v2, "place_order", nothing.clone()).await;
        assert_eq!(error["structuredContent"]["code"], 1001, "{way}");
        let error = result_of(&v3, "place_orders", json!({"orders": [nothing]})).await;
        assert_eq!(error["structuredContent"]["order"], 0, "{way}");
    })
    .await;
}

/// SV-1: a removal date that is past warns, and the variant is still served.
#[test]
fn after_its_removal_date_the_legacy_generation_warns() {
    assert!(server().warnings().is_empty());
    let late = example::server("2027-06-02".parse().unwrap()).unwrap();
    let warnings: Vec<_> = late.warnings().iter().map(ToString::to_string).collect();
    let expected = "variant `v1-legacy` was to be removed on 2027-06-01; it is still served";
    assert_eq!(warnings, [expected]);
}
