//! What an rmcp client sees of the fixture, in both eras, on stdio and HTTP. The table of `pairs` has what clients see of its
//! calls, notifications and errors.

use std::collections::BTreeSet;

use crate::support::{Era, WAYS, Wire, connect, try_connect};
use rmcp::model::ProtocolVersion;
use rmcp::service::ClientInitializeError;
use serde_json::{Value, json};

#[tokio::test]
async fn lists_are_whole_in_one_page_or_many() {
    for (era, wire) in WAYS {
        for options in [&[][..], &["--page-size", "2"]] {
            let connection = connect(era, wire, options).await;
            let client = &connection.client;
            let first = client.list_tools(None).await.unwrap();
            assert_eq!(first.next_cursor.is_some(), !options.is_empty());
            let tools = client.list_all_tools().await.unwrap();
            let names: BTreeSet<_> = tools.iter().map(|tool| &tool.name).collect();
            assert_eq!((tools.len(), names.len()), (53, 53), "{era:?} {wire:?}");
            assert_eq!(client.list_all_resources().await.unwrap().len(), 3);
            assert_eq!(client.list_all_resource_templates().await.unwrap().len(), 2);
            assert_eq!(client.list_all_prompts().await.unwrap().len(), 5);
        }
    }
}

#[tokio::test]
async fn seen_is_what_the_client_sent() {
    for (era, wire) in WAYS {
        let connection = connect(era, wire, &[]).await;
        let seen = connection.call("seen", json!({ "a": 1 })).await;
        let seen = &seen["structuredContent"];
        let version = match era {
            Era::Legacy => "2025-11-25",
            Era::Modern => "2026-07-28",
        };
        assert_eq!(seen["protocolVersion"], version, "{era:?} {wire:?}");
        assert_eq!(seen["clientInfo"]["name"], "rmcp");
        assert_eq!(seen["headers"].is_object(), wire == Wire::Http);
    }
}

#[tokio::test]
async fn odd_results_arrive_as_they_are() {
    let connection = connect(Era::Modern, Wire::Http, &[]).await;
    let kinds = |result: &Value| -> Vec<String> {
        let blocks = result["content"].as_array().unwrap();
        let kind = |block: &Value| block["type"].as_str().unwrap().to_owned();
        blocks.iter().map(kind).collect()
    };
    let items = json!({ "items": [{ "id": 1 }, { "id": 2 }] });
    let expected: [(&str, &[&str], Value); 8] = [
        (
            "mixed",
            &[
                "text",
                "image",
                "audio",
                "resource_link",
                "resource",
                "text",
            ],
            items.clone(),
        ),
        ("structured_only", &[], items.clone()),
        ("prose", &["text"], items),
        ("array", &["text"], json!([1, 2])),
        ("string", &["text"], json!("hello")),
        ("json_text", &["text"], Value::Null),
        ("empty", &[], Value::Null),
        ("meta", &["text"], Value::Null),
    ];
    for (kind, blocks, structured) in expected {
        let result = connection.call("raw", json!({ "kind": kind })).await;
        assert_eq!(kinds(&result), blocks, "{kind}");
        assert_eq!(result["structuredContent"], structured, "{kind}");
    }
}

#[tokio::test]
async fn a_big_result_is_as_big_as_asked() {
    for (era, wire) in WAYS {
        let connection = connect(era, wire, &[]).await;
        let result = connection.call("big", json!({ "bytes": 1_000_000 })).await;
        assert_eq!(
            result["content"][0]["text"].as_str().unwrap().len(),
            1_000_000
        );
    }
}

#[tokio::test]
async fn a_pinned_era_refuses_the_other_and_names_its_own() {
    for wire in [Wire::Stdio, Wire::Http] {
        connect(Era::Legacy, wire, &["--era", "legacy"]).await;
        connect(Era::Modern, wire, &["--era", "modern"]).await;

        let Err(error) = try_connect(Era::Modern, wire, &["--era", "legacy"]).await else {
            panic!("a modern client is served on {wire:?} by a legacy server");
        };
        let ClientInitializeError::NoCompatibleProtocolVersion {
            server_supported, ..
        } = error
        else {
            panic!("expected the versions that {wire:?} supports, got {error}");
        };
        assert_eq!(
            server_supported.last(),
            Some(&ProtocolVersion::V_2025_11_25)
        );

        let Err(error) = try_connect(Era::Legacy, wire, &["--era", "modern"]).await else {
            panic!("a legacy client is served on {wire:?} by a modern server");
        };
        assert!(error.to_string().contains("-32022"), "{wire:?}: {error}");
    }
}
