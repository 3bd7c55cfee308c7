//! MCP Apps (SEP-1865) behind several servers: user interfaces call tools by the names of their server.

use crate::support::*;

const UI: &str = "io.modelcontextprotocol/ui";

/// A server with tools for models and for its app, whose interface is in no list.
async fn clock(name: &'static str, only: &[&str]) -> ScriptedServer {
    let tools = [
        ("get-time", json!(["model", "app"])),
        ("refresh", json!(["app"])),
        ("secret", json!(["model"])),
    ];
    let tools = tools.into_iter().filter(|(tool, _)| only.contains(tool));
    let tools = tools.map(|(tool, visibility)| {
        let ui = json!({"resourceUri": format!("ui://{name}"), "visibility": visibility});
        json!({"name": tool, "inputSchema": {"type": "object"}, "_meta": {"ui": ui}})
    });
    let script = Script::legacy(name)
        .lists(json!({"tools": tools.collect::<Vec<_>>()}))
        .lists(json!({"resources": []}))
        .in_sessions(|_| "s-1".to_owned())
        .lists(json!({"resourceTemplates": []}))
        .on("resources/read", move |params| {
            json!({"contents": [{"uri": params["uri"], "text": name}]})
        })
        .on_call(move |params| {
            json!({"content": [], "structuredContent": {"of": name, "called": params["name"]}})
        });
    script.start().await
}

async fn clocks() -> [ScriptedServer; 2] {
    let one = clock("one", &["get-time", "refresh", "secret"]);
    [one.await, clock("two", &["get-time"]).await]
}

fn has_apps() -> Value {
    json!({"extensions": {UI: {"mimeTypes": ["text/html;profile=mcp-app"]}}})
}

/// SV-12: what the variant does not list does not exist for apps either.
///
/// > Tool is callable by the app from the same server connection only (MCP Apps, 2026-01-26)
#[tokio::test]
async fn an_app_calls_a_tool_by_its_servers_name() {
    let (harness, _two) = Harness::behind_two(clocks().await, |config| config).await;
    for way in ClientKind::ALL {
        let call = |name: &'static str, capabilities: Value| {
            let harness = &harness;
            async move { ask_as(harness, way, &capabilities, "tools/call", tool(name)).await }
        };
        let called = call("refresh", has_apps()).await;
        let expected = json!({"of": "one", "called": "refresh"});
        let found = &called["result"]["structuredContent"];
        assert_eq!(*found, expected, "{way:?} {called}");
        let called = call("one_refresh", json!({})).await;
        let found = &called["result"]["structuredContent"];
        assert_eq!(*found, expected, "{way:?} {called}");
        // It is not for apps; and who has none knows the name that was listed.
        for (name, capabilities) in [("secret", has_apps()), ("refresh", json!({}))] {
            let refused = call(name, capabilities).await;
            assert_eq!(refused["error"]["code"], -32602, "{way:?} {name} {refused}");
        }
        let unclear = call("get-time", has_apps()).await;
        let why =
            "several servers have a tool `get-time`; call one of `one_get-time`, `two_get-time`";
        assert_eq!(unclear["error"]["message"], why, "{way:?}");
        // What the variant does not list does not exist for its apps either.
        let hidden = under("read-only", tool("refresh"));
        let hidden = way.ask(&harness, &has_apps(), "tools/call", hidden).await;
        assert_eq!(hidden["error"]["code"], -32602, "{way:?} {hidden}");
    }
}

/// SV-14: an interface exists where a tool that has it is visible.
///
/// > Servers MAY omit UI-only resources from `resources/list` (MCP Apps, 2026-01-26)
#[tokio::test]
async fn the_interface_of_a_tool_is_read_from_its_server() {
    let (harness, _two) = Harness::behind_two(clocks().await, |config| config).await;
    for way in ClientKind::ALL {
        for name in ["one", "two"] {
            let uri = json!({"uri": format!("ui://{name}")});
            let read = ask_as(&harness, way, &has_apps(), "resources/read", uri.clone()).await;
            let found = &read["result"]["contents"][0]["text"];
            assert_eq!(*found, name, "{way:?} {read}");
            // The tool that has it is not in this variant, and neither is it.
            let hidden = way
                .ask(
                    &harness,
                    &has_apps(),
                    "resources/read",
                    under("read-only", uri),
                )
                .await;
            let code = if way.is_modern() { -32602 } else { -32002 };
            assert_eq!(hidden["error"]["code"], code, "{way:?} {hidden}");
            let found = &hidden["error"]["data"]["activeVariant"];
            assert_eq!(*found, "read-only", "{way:?} {hidden}");
        }
    }
}
