//! Broken items in the lists of servers: what is left out or repaired, and that it is named.

use crate::support::*;

/// Lists with one item that is right, one that is repaired, and one that is left out.
fn lists() -> Script {
    let tool = json!({"name": "good", "inputSchema": {"type": "object"}});
    Script::legacy("odd")
        .declares(json!({"tools": {}, "prompts": {}, "resources": {}}))
        .results(json!({
            "tools/list": {"tools": [
                tool, {"name": "repaired", "description": null}, {"name": "odd", "inputSchema": {"type": "string"}}, tool,
            ], "nextCursor": null},
            "prompts/list": {"prompts": [
                {"name": "good"}, {"name": "repaired", "arguments": {}}, 7,
            ], "_meta": null},
        }))
        .lists(json!({"resources": [
            {"uri": "a:good", "name": "good"}, {"uri": "a:repaired", "name": "b", "size": "3"}, {"name": "odd"},
        ]}))
        .result("resources/templates/list", json!({"resourceTemplates": null}))
}

#[tokio::test]
async fn one_bad_item_harms_no_other_and_is_named() {
    let (log, _listening) = CapturedLog::listen("mcp_vary_catalog::server_changes", Level::WARN);
    let harness = Harness::of_server(lists()).await;
    for kind in ClientKind::ALL {
        let tools = harness.ask(kind, "tools/list", json!({})).await;
        let any = json!({"type": "object"});
        tools.has(
            "/result/tools",
            json!([{"name": "good", "inputSchema": any}, {"name": "repaired", "inputSchema": any}]),
        );
        assert_eq!(tools["result"].get("nextCursor"), None);
        let prompts = harness.ask(kind, "prompts/list", json!({})).await;
        prompts.has(
            "/result/prompts",
            json!([{"name": "good"}, {"name": "repaired"}]),
        );
        assert_ne!(prompts["result"].get("_meta"), Some(&Value::Null));
        let resources = harness.ask(kind, "resources/list", json!({})).await;
        resources.has(
            "/result/resources/1",
            json!({"uri": "a:repaired", "name": "b"}),
        );
        let templates = harness
            .ask(kind, "resources/templates/list", json!({}))
            .await;
        templates.has("/result/resourceTemplates", json!([]));
    }
    let expected = [
        "tool `odd` is left out: `inputSchema` has the type `string`",
        "tool `good` is left out: an item before it has the same name or URI",
        "tool `repaired` is repaired: `description` cannot be null",
        "tool `repaired` is repaired: `inputSchema` is missing",
        "resource `#3` is left out: its `uri` is not a text, or empty",
        "resource `a:repaired` is repaired: `size` cannot be \"3\"",
        "prompt `#3` is left out: it is not an object",
        "prompt `repaired` is repaired: `arguments` cannot be {}",
    ];
    assert_eq!(harness.gateway.status().servers[0].list_faults, expected);
    assert_eq!(harness.gateway.servers()[0].list_faults, expected);
    // Once for the server, not for each class of clients.
    let lines = log.take();
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for problem in ["`odd`", "`#3`", "`a:repaired`"] {
        assert!(
            lines.iter().any(|line| line.contains(problem)),
            "{problem}: {lines:#?}"
        );
    }
}
