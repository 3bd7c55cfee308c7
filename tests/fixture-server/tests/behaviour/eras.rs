//! What an rmcp client sees of the fixture, in both eras, on stdio and HTTP.

use std::collections::BTreeSet;

use crate::support::{Era, Told, WAYS, Wire, connect, finish, try_connect, within};
use rmcp::model::{ErrorCode, ProtocolVersion, SubscribeRequestParams, SubscriptionFilter};
use rmcp::service::ClientInitializeError;
use serde_json::{Value, json};

#[tokio::test]
async fn lists_are_whole_in_one_page_or_many() {
    for (era, wire) in WAYS {
        for options in [&[][..], &["--page-size", "2"]] {
            let connection = connect(era, wire, options).await;
            let client = &connection.client;
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
async fn a_page_holds_what_was_asked_for() {
    let connection = connect(Era::Legacy, Wire::Stdio, &["--page-size", "2"]).await;
    let client = &connection.client;
    let tools = client.list_tools(None).await.unwrap();
    let resources = client.list_resources(None).await.unwrap();
    let templates = client.list_resource_templates(None).await.unwrap();
    let prompts = client.list_prompts(None).await.unwrap();
    assert_eq!((tools.tools.len(), tools.next_cursor.is_some()), (2, true));
    assert_eq!(
        (resources.resources.len(), resources.next_cursor.is_some()),
        (2, true)
    );
    assert_eq!(
        (
            templates.resource_templates.len(),
            templates.next_cursor.is_some()
        ),
        (2, false)
    );
    assert_eq!(
        (prompts.prompts.len(), prompts.next_cursor.is_some()),
        (2, true)
    );
}

#[tokio::test]
async fn echo_returns_its_arguments_twice() {
    for (era, wire) in WAYS {
        let connection = connect(era, wire, &[]).await;
        let arguments = json!({ "z": 1, "a": [null, "ü"], "n": 1.5 });
        let result = connection.call("echo", arguments.clone()).await;
        assert_eq!(result["structuredContent"], arguments);
        assert_eq!(result["content"][0]["text"], arguments.to_string());
    }
}

#[tokio::test]
async fn every_step_is_reported_once() {
    for (era, wire) in WAYS {
        let mut connection = connect(era, wire, &[]).await;
        finish(connection.begin("progress", json!({ "steps": 3 })).await).await;
        let told = connection.hear(3).await;
        for step in [1.0, 2.0, 3.0] {
            assert!(told.contains(&Told::Progress(step)), "{step} in {told:?}");
        }
    }
}

#[tokio::test]
async fn every_message_is_logged_once() {
    for (era, wire) in WAYS {
        let mut connection = connect(era, wire, &[]).await;
        finish(connection.begin("log", json!({ "count": 10 })).await).await;
        let told = connection.hear(10).await;
        for number in 0..10 {
            let message = Told::Log(json!({ "number": number }));
            assert!(told.contains(&message), "{number} in {told:?}");
        }
    }
}

#[tokio::test]
async fn a_stateless_client_hears_no_log_unless_it_asks() {
    let mut connection = connect(Era::Modern, Wire::Stdio, &[]).await;
    connection.call("log", json!({ "count": 8 })).await;
    finish(connection.begin("progress", json!({ "steps": 1 })).await).await;
    assert_eq!(connection.hear(1).await, [Told::Progress(1.0)]);
}

#[tokio::test]
async fn a_cancelled_call_is_counted() {
    for (era, wire) in WAYS {
        let mut connection = connect(era, wire, &[]).await;
        let slow = connection.begin("slow", json!({ "ms": 3_600_000 })).await;
        assert_eq!(connection.hear(1).await, [Told::Progress(0.0)]);
        slow.cancel(None).await.unwrap();
        let count = connection.call("cancelled_count", json!({ "at_least": 1 }));
        let count = count.await["structuredContent"]["cancelled"].clone();
        assert_eq!(count, 1, "{era:?} {wire:?}");
    }
}

#[tokio::test]
async fn a_call_that_ends_by_itself_is_not_counted() {
    for (era, wire) in WAYS {
        let connection = connect(era, wire, &[]).await;
        connection.call("slow", json!({ "ms": 0 })).await;
        let count = connection.call("cancelled_count", json!({})).await;
        assert_eq!(count["structuredContent"], json!({ "cancelled": 0 }));
    }
}

#[tokio::test]
async fn an_added_tool_is_told_of_listed_and_called() {
    for (era, wire) in WAYS {
        let mut connection = connect(era, wire, &[]).await;
        let mut subscription = match era {
            Era::Legacy => None,
            Era::Modern => {
                let filter = SubscriptionFilter::builder().tools_list_changed().build();
                Some(connection.client.listen(filter).await.unwrap())
            }
        };
        let before = connection.client.list_all_tools().await.unwrap().len();
        for (change, length) in [("add_tool", before + 1), ("remove_tool", before)] {
            connection.call(change, json!({ "name": "extra" })).await;
            match &mut subscription {
                None => assert_eq!(connection.hear(1).await, [Told::ToolsChanged]),
                Some(subscription) => assert!(within(subscription.next()).await.unwrap().is_some()),
            }
            let tools = connection.client.list_all_tools().await.unwrap();
            assert_eq!(tools.len(), length, "{era:?} {wire:?} {change}");
            if change == "add_tool" {
                let result = connection.call("extra", json!({})).await;
                assert_eq!(result["content"][0]["text"], "extra");
            }
        }
        let error = connection.refused("extra", json!({})).await;
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
    }
}

#[tokio::test]
async fn a_resource_is_told_of_to_those_who_are_subscribed_to_it() {
    const WATCHED: &str = "test://watched-resource";
    for (era, wire) in WAYS {
        let mut connection = connect(era, wire, &[]).await;
        let mut subscription = match era {
            Era::Legacy => {
                let params = SubscribeRequestParams::new(WATCHED);
                connection.client.subscribe(params).await.unwrap();
                None
            }
            Era::Modern => {
                let filter = SubscriptionFilter::builder().resource_subscription(WATCHED);
                Some(connection.client.listen(filter.build()).await.unwrap())
            }
        };
        for uri in ["test://static-text", WATCHED] {
            connection
                .call("update_resource", json!({ "uri": uri }))
                .await;
        }
        match &mut subscription {
            None => {
                let told = Told::ResourceUpdated(WATCHED.to_owned());
                assert_eq!(connection.hear(1).await, [told], "{wire:?}");
            }
            Some(subscription) => {
                let told = within(subscription.next()).await.unwrap().unwrap();
                let told = serde_json::to_value(told).unwrap();
                assert_eq!(told["params"]["uri"], WATCHED, "{wire:?}");
            }
        }
    }
}

#[tokio::test]
async fn errors_are_as_asked() {
    for (era, wire) in WAYS {
        let connection = connect(era, wire, &[]).await;
        let result = connection.call("fail", json!({ "message": "no" })).await;
        assert_eq!(result["isError"], true);
        assert_eq!(result["content"][0]["text"], "no");

        let wanted = json!({ "code": -32099, "message": "odd", "data": { "a": 1 } });
        let error = connection.refused("rpc_error", wanted).await;
        assert_eq!(error.code.0, -32099);
        assert_eq!(error.message, "odd");
        assert_eq!(error.data, Some(json!({ "a": 1 })));
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
        assert_eq!(seen["arguments"], json!({ "a": 1 }));
        assert_eq!(seen["headers"].is_object(), wire == Wire::Http);
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
