//! What is decided at the call: scopes, and expressions over the arguments.

use mcp_vary_access::Expression;

use super::groups::{ask_both, ask_modern, for_group, named, with_rules};
use crate::support::*;

fn call(arguments: Value) -> Value {
    json!({"name": "say", "arguments": arguments})
}

#[tokio::test]
async fn an_expression_decides_on_each_call() {
    let condition =
        Expression::compile("args.environment != 'production' || 'sre' in claims.groups");
    let rule = |group: &str| {
        let rule = for_group(group).with_allow([named("say")]);
        rule.with_condition(condition.clone().unwrap())
    };
    let rules = [rule("dev"), rule("sre")];
    let harness = Harness::before(Era::Modern, |config| with_rules(config, rules)).await;
    for list in ask_both(&harness, "dev", "tools/list", json!({})).await {
        assert_eq!(names(&list), ["say"], "it is listed");
    }
    for (who, arguments, is_allowed) in [
        ("dev", json!({"environment": "test"}), true),
        ("dev", json!({"environment": "production"}), false),
        ("sre", json!({"environment": "production"}), true),
        // An expression that fails allows nothing.
        ("dev", json!({}), false),
    ] {
        for answer in ask_both(&harness, who, "tools/call", call(arguments.clone())).await {
            if is_allowed {
                assert!(answer["result"].is_object(), "{who} {arguments} {answer}")
            } else {
                let found = &answer["error"]["code"];
                assert_eq!(*found, -32602, "{who} {arguments} {answer}");
                let why = "the access rules do not allow this call with these arguments";
                answer.has("/error/message", why);
            }
        }
    }
    let found = harness.peer.of("tools/call").len();
    assert_eq!(found, 4, "two calls in each era");
    let counters = harness.gateway.status().counters;
    assert_eq!(counters.get("refused-by-access-rules"), Some(&4));
}

/// A call that a rule refuses, and one of a tool that rules hide.
#[tokio::test]
async fn a_call_that_rules_refuse_is_one_line_in_the_log() {
    let rules = [for_group("dev")
        .with_allow([named("say")])
        .with_scopes(["repo:write"])];
    let harness = Harness::before(Era::Modern, |config| with_rules(config, rules)).await;
    for name in ["say", "odd"] {
        let (log, _listening) = CapturedLog::listen("mcp_vary_gateway::requests", Level::INFO);
        let params = json!({"name": name, "arguments": {}});
        ask_modern(&harness, "dev", "tools/call", params).await;
        let lines = log.take();
        let [line] = &lines[..] else {
            panic!("{lines:?}");
        };
        let tool = format!(r#"tool="{name}";"#);
        for part in [tool.as_str(), r#"outcome="denied"; code=-32"#] {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(!line.contains("server="), "{line}");
    }
}

#[tokio::test]
async fn a_call_without_its_scopes_is_403_with_a_challenge() {
    let rules = [for_group("dev")
        .with_allow([named("say")])
        .with_scopes(["repo:write"])];
    let harness = Harness::before(Era::Modern, |config| with_rules(config, rules)).await;
    for list in ask_both(&harness, "dev", "tools/list", json!({})).await {
        assert_eq!(names(&list), ["say"], "it is listed");
    }
    let answer = ask_modern(&harness, "dev", "tools/call", call(json!({}))).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    let challenge = answer.header("www-authenticate").unwrap();
    let expected = r#"error="insufficient_scope""#;
    assert!(challenge.contains(expected), "{challenge}");
    assert!(challenge.contains(r#"scope="repo:write""#), "{challenge}");
    let error = &answer.json()["error"];
    error.has("/code", -32003);
    error.has("/data/scopes", json!(["repo:write"]));
    assert_eq!(harness.peer.of("tools/call").len(), 0);
}
