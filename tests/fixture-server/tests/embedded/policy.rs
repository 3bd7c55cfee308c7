//! What the operator's policy says of clients reaches them through the pipe: rules, limits, records, variants.

use std::time::{Duration, SystemTime};

use mcp_vary_testkit::message::{Has as _, texts};
use serde_json::{Value, json};

use crate::support::{Client, Embedded, KEYS, KINDS};

/// Everybody may read, the group `sre` may do everything, and nobody may crash the server.
const ACCESS: &str = "
access:
  - {when: {anyone: on}, allow: [{readOnlyHint: true}, {prompts: '*simple*'}, {resources: '*static*'}]}
  - {name: all, when: {groups: sre}, allow: ['*']}
  - {when: {anyone: on}, deny: [{tools: crash}]}
";

fn policy(more: &str) -> String {
    format!("{KEYS}{more}")
}

/// The error that answers a request with one of two names, without the name.
async fn error(client: &mut Client, method: &str, key: &str, name: &str) -> String {
    let mut answer = client.ask(method, json!({key: name})).await;
    assert!(answer["error"].is_object(), "{method} {name}: {answer}");
    answer["error"].take().to_string().replace(name, "NAME")
}

/// SV-20: what is hidden is in no list, and answered as what does not exist.
#[tokio::test]
async fn what_rules_hide_does_not_exist() {
    let embedded = Embedded::with(&policy(ACCESS)).await;
    for kind in KINDS {
        let mut guest = embedded.client(kind).await;
        let tools = guest.tools("").await;
        assert!(tools.contains(&"echo".to_owned()));
        for hidden in ["add_tool", "crash", "greet"] {
            assert!(!tools.contains(&hidden.to_owned()), "{tools:?}");
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
    let embedded = Embedded::with(&policy(ACCESS)).await;
    for kind in KINDS {
        let mut ci = embedded.client_of(kind, "ci").await;
        let tools = ci.tools("").await;
        assert!(tools.contains(&"add_tool".to_owned()));
        assert!(!tools.contains(&"crash".to_owned()));
        let added = ci.call("", "add_tool", json!({"name": "newcomer"})).await;
        added.has("/result/content/0/text", "added newcomer");
        let crashed = ci.call("", "crash", json!({})).await;
        crashed.fails(-32602, "Unknown tool: crash");
    }
}

/// SV-20: an expression is checked at the call, with its arguments, before the server.
#[tokio::test]
async fn a_call_needs_arguments_that_its_rule_allows() {
    let rules = "access: [{when: {anyone: on}, allow: [{tools: '{echo,cancelled_count}'}], if: 'has(args.a) && args.a == 1'}]";
    let embedded = Embedded::with(rules).await;
    for kind in KINDS {
        let mut client = embedded.client(kind).await;
        let allowed = client.call("", "echo", json!({"a": 1})).await;
        allowed.has("/result/structuredContent/a", 1);
        let refused = client.call("", "echo", json!({"a": 2})).await;
        refused.fails(-32602, "the access rules do not allow this call");
    }
}

/// SV-20: a pinned variant is the only one that exists.
#[tokio::test]
async fn rules_pin_a_variant() {
    let rules = "
access:
  - {when: {anyone: on}, allow: ['*']}
  - {when: {key: bob}, variant: read-only, pin: on}
";
    let embedded = Embedded::with(&policy(rules)).await;
    for kind in KINDS {
        let mut bob = embedded.client_of(kind, "bob").await;
        assert!(!bob.tools("").await.contains(&"add_tool".to_owned()));
        let other = bob.ask(
            "tools/list",
            json!({"_meta": {"io.modelcontextprotocol/server-variant": "standard"}}),
        );
        let other = other.await;
        other.fails(-32602, "Invalid server variant");
        other.has("/error/data/availableVariants", json!(["read-only"]));
        let mut ci = embedded.client_of(kind, "ci").await;
        assert!(ci.tools("standard").await.contains(&"add_tool".to_owned()));
    }
}

/// SV-21: each principal has its own rate of calls, in all variants together, and a refused call is not sent.
#[tokio::test]
async fn a_principal_may_call_so_often() {
    let rates = policy("rates: [{name: calls, rate: 2/h}]");
    for kind in KINDS {
        let embedded = Embedded::with(&rates).await;
        let mut ci = embedded.client_of(kind, "ci").await;
        ci.call("", "echo", json!({}))
            .await
            .has("/result/isError", false);
        let read = json!({"uri": "test://static-text"});
        ci.ask("resources/read", read).await;
        let refused = ci
            .call("compact", "add_tool", json!({"name": "newcomer"}))
            .await;
        refused.fails(-32005, "the limit `calls` is reached");
        refused.has("/error/data/limit", "calls");
        assert!(!ci.tools("").await.contains(&"newcomer".to_owned()));
        let unknown = ci.call("", "nothing", json!({})).await;
        unknown.fails(-32602, "Unknown tool: nothing");
        let mut bob = embedded.client_of(kind, "bob").await;
        bob.call("", "echo", json!({}))
            .await
            .has("/result/isError", false);
    }
}

/// SV-21: a tool has one rate under all of its names, and changes of the variant have one of their own.
#[tokio::test]
async fn tools_and_changes_of_the_variant_have_rates() {
    let rates = policy(
        "
variants:
  whole: {}
  renamed: {overrides: {tools: {echo: {name: say}}}}
rates:
  - {name: echoes, per: tool, tools: echo, rate: 1/h}
  - {name: switches, counts: variant-changes, rate: 1/h}
",
    );
    for kind in KINDS {
        let embedded = Embedded::with(&rates).await;
        let mut ci = embedded.client_of(kind, "ci").await;
        ci.call("whole", "echo", json!({}))
            .await
            .has("/result/isError", false);
        let refused = ci.call("renamed", "say", json!({})).await;
        refused.fails(-32005, "the limit `echoes` is reached");
        let refused = ci.call("whole", "add", json!({"a": 1, "b": 2})).await;
        refused.fails(-32000, "Too many switches of the server variant");
        refused.has("/error/data/activeVariant", "renamed");
        ci.call("renamed", "add", json!({"a": 1, "b": 2}))
            .await
            .has("/result/structuredContent/sum", 3.0);
    }
}

/// SV-22: a call is recorded with who, what, variant, rule, arguments and outcome, and so is a refusal.
#[tokio::test]
async fn calls_are_recorded_with_their_principal() {
    for kind in KINDS {
        let path = std::env::temp_dir().join(format!(
            "vary-embedded-{}-{kind:?}.jsonl",
            std::process::id()
        ));
        let audit = format!("audit: {{to: 'file {}', identities: full}}", path.display());
        let text = policy(&format!("{ACCESS}{audit}"));
        let embedded = Embedded::edited(&text, |config| {
            let settings = config.audit.take().expect("the file has it");
            let log = settings.start(microseconds, config.environment);
            config.audit_log = Some(log.expect("the folder is there"));
        });
        let embedded = embedded.await;
        let mut ci = embedded.client_of(kind, "ci").await;
        ci.call("compact", "add_tool", json!({"name": "secret"}))
            .await
            .has("/result/isError", false);
        ci.call("", "crash", json!({}))
            .await
            .fails(-32602, "Unknown tool");
        embedded.gateway.close().await;

        let records = records(&path).await;
        let [allowed, denied] = &records[..] else {
            panic!("{records:?}");
        };
        allowed.has("/outcome", "allowed");
        allowed.has("/principal/key", "ci");
        let target = json!({"kind": "tool", "name": "add_tool", "server": "fixture", "upstream_name": "add_tool"});
        allowed.has("/target", target);
        allowed.has("/variant", json!({"id": "compact", "reason": "selector"}));
        allowed.has("/rule", "all");
        allowed.has("/arguments/bytes", 17);
        allowed.has("/era", if kind.is_modern() { "modern" } else { "legacy" });
        assert!(!allowed.to_string().contains("secret"), "{allowed}");
        denied.has("/outcome", "denied");
        denied.has("/principal/key", "ci");
        denied.has("/code", -32602);
        denied.has("/rule", "access[2]");
    }
}

#[expect(clippy::disallowed_methods, reason = "the log has the time of a clock")]
fn microseconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(0))
}

/// The two records of calls, once they are written.
async fn records(path: &std::path::Path) -> Vec<Value> {
    let written = mcp_vary_testkit::wait::until_some(async || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let calls: Vec<Value> = lines
            .filter(|line: &Value| line["event"] == "request" && line["method"] == "tools/call")
            .collect();
        (calls.len() == 2).then_some(calls)
    });
    let records = tokio::time::timeout(Duration::from_secs(60), written).await;
    std::fs::remove_file(path).expect("the log wrote it");
    records.expect("two calls were made")
}

/// SV-11: a long list is read on demand: it has a search, descriptions, and calls that are checked before the server.
#[tokio::test]
async fn a_directory_is_searched_and_described() {
    let variants = "variants: {directory: {search-above: 10}}";
    let embedded = Embedded::with(variants).await;
    for kind in KINDS {
        let mut client = embedded.client(kind).await;
        let tools = client.tools("").await;
        assert!(
            tools.ends_with(&["describe_tools".to_owned(), "search_tools".to_owned()]),
            "{tools:?}"
        );
        let query = json!({"query": "add two numbers", "limit": 1});
        let found = client.call("", "search_tools", query).await;
        let text = texts(&found["result"])[0];
        assert!(text.contains(r#""name":"add""#), "{text}");
        let described = client
            .call("", "describe_tools", json!({"names": ["add", "nothing"]}))
            .await;
        let text = texts(&described["result"])[0];
        assert!(text.contains(r#""required":["a","b"]"#), "{text}");
        assert!(text.contains(r#""unknown":["nothing"]"#), "{text}");
        let wrong = client.call("", "add", json!({"a": "one", "b": 2})).await;
        wrong.has("/result/isError", true);
        wrong.contains("/result/content/0/text", "invalid arguments: `/a`");
        let right = client.call("", "add", json!({"a": 1, "b": 2})).await;
        right.has("/result/structuredContent/sum", 3.0);
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
            .call("", "search_tools", json!({"query": "add two numbers"}))
            .await;
        assert!(!found.to_string().contains("add\\\""), "{found}");
        let described = client
            .call("", "describe_tools", json!({"names": ["add"]}))
            .await;
        assert!(!described.to_string().contains("number"), "{described}");
    }
}

/// SV-2: a variant hides, renames and fixes, and the server gets its own names and arguments.
#[tokio::test]
async fn a_variant_shows_the_server_in_its_own_way() {
    let variants = "
variants:
  whole: {}
  team:
    tools: [echo]
    overrides: {tools: {echo: {name: say, arguments: {owner: {fixed: acme}}}}}
";
    let embedded = Embedded::with(variants).await;
    for kind in KINDS {
        let mut client = embedded.client(kind).await;
        let offered = client.introduction.to_string();
        assert!(
            offered.contains(r#""team""#) && offered.contains(r#""whole""#),
            "{offered}"
        );
        assert_eq!(client.tools("team").await, ["say"]);
        let said = client.call("team", "say", json!({"a": 1})).await;
        said.has(
            "/result/structuredContent",
            json!({"a": 1, "owner": "acme"}),
        );
        let hidden = client.call("team", "echo", json!({})).await;
        hidden.fails(-32602, "Unknown tool: echo");
        assert!(client.tools("whole").await.len() > 30);
    }
}
