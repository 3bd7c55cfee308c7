//! Access rules hold for a server in this process, too, whose other tests are those of every gateway.

use mcp_vary_testkit::client::Client;
use mcp_vary_testkit::message::{Has as _, names};
use serde_json::json;

use crate::support::{Embedded, KEYS, KINDS};

/// Everybody may read, the group `sre` may do everything, and nobody may crash the server.
const ACCESS: &str = "
access:
  - {when: {anyone: on}, allow: [{readOnlyHint: true}, {prompts: '*simple*'}, {resources: '*static*'}]}
  - {name: all, when: {groups: sre}, allow: ['*']}
  - {when: {anyone: on}, deny: [{tools: crash}]}
";

/// The error that answers a request with one of two names, without the name.
async fn error(client: &mut Client, method: &str, key: &str, name: &str) -> String {
    let mut answer = client.ask(method, json!({key: name})).await;
    assert!(answer["error"].is_object(), "{method} {name}: {answer}");
    answer["error"].take().to_string().replace(name, "NAME")
}

/// SV-20: what is hidden is in no list, and answered as what does not exist.
#[tokio::test]
async fn what_rules_hide_does_not_exist() {
    let embedded = Embedded::with(&format!("{KEYS}{ACCESS}")).await;
    for kind in KINDS {
        let mut guest = embedded.client(kind).await;
        let list = guest.ask("tools/list", json!({})).await;
        let tools = names(&list);
        assert!(tools.contains(&"echo"));
        for hidden in ["add_tool", "crash", "greet"] {
            assert!(!tools.contains(&hidden), "{tools:?}");
        }
        for (method, key, hidden, unknown) in [
            ("tools/call", "name", "add_tool", "nothing"),
            ("prompts/get", "name", "test_prompt_with_image", "nothing"),
            (
                "resources/read",
                "uri",
                "test://watched-resource",
                "test://nothing",
            ),
        ] {
            let of_hidden = error(&mut guest, method, key, hidden).await;
            let of_unknown = error(&mut guest, method, key, unknown).await;
            assert_eq!(of_hidden, of_unknown, "{kind:?}");
        }
        let read = json!({"uri": "test://static-text"});
        let read = guest.ask("resources/read", read).await;
        read.has("/result/contents/0/uri", "test://static-text");
    }
}

/// SV-20: what one rule denies is denied, whatever another allows.
#[tokio::test]
async fn a_member_of_a_group_gets_what_its_rules_allow() {
    let embedded = Embedded::with(&format!("{KEYS}{ACCESS}")).await;
    for kind in KINDS {
        let mut ci = embedded.client_of(kind, "ci").await;
        let list = ci.ask("tools/list", json!({})).await;
        assert!(names(&list).contains(&"add_tool"));
        assert!(!names(&list).contains(&"crash"));
        let added = ci.call("add_tool", json!({"name": "newcomer"})).await;
        added.has("/result/content/0/text", "added newcomer");
        let crashed = ci.call("crash", json!({})).await;
        crashed.fails(-32602, "Unknown tool: crash");
    }
}

/// SV-20: what rules hide is neither found nor described.
#[tokio::test]
async fn a_hidden_tool_is_not_found() {
    let variants = "variants: {directory: {search-above: 1}}\naccess: [{when: {anyone: on}, allow: [{tools: '{echo,seen}'}]}]";
    let embedded = Embedded::with(variants).await;
    for kind in KINDS {
        let mut client = embedded.client(kind).await;
        let found = client
            .call("search_tools", json!({"query": "add two numbers"}))
            .await;
        assert!(!found.to_string().contains("add\\\""), "{found}");
        let described = client
            .call("describe_tools", json!({"names": ["add"]}))
            .await;
        assert!(!described.to_string().contains("number"), "{described}");
    }
}
