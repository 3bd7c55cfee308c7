//! Which client gets what, and why.

use crate::support::*;

/// What is explained of a client.
async fn explained(shown: &Shown, question: Value) -> Value {
    let answer = shown.post("/api/explain", &question).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// The step that decides, and what it finds.
#[track_caller]
fn decided(explained: &Value) -> (&str, &str) {
    let mut steps = explained["steps"].as_array().unwrap().iter();
    let step = steps.find(|step| step["decided"] == true).unwrap();
    assert!(steps.all(|step| step["decided"] == false), "{explained}");
    (
        step["step"].as_str().unwrap(),
        step["detail"].as_str().unwrap(),
    )
}

fn tool<'e>(explained: &'e Value, name: &str) -> &'e Value {
    let mut tools = explained["tools"].as_array().unwrap().iter();
    tools.find(|tool| tool["name"] == name).unwrap()
}

fn robot() -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "robot", "version": "7"}})
}

const RULES: &str = "
clients:
  - {name: robot, variant: read-only}
  - {headers: {User-Agent: old*}, variant: compact}
";

#[tokio::test]
async fn a_rule_for_clients_decides() {
    let shown = Shown::with(RULES).await;
    for question in [
        json!({"initialize": robot()}),
        json!({"initialize": {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": robot()}}),
        json!({"meta": {"io.modelcontextprotocol/clientInfo": {"name": "robot", "version": "7"}}}),
        json!({"meta": {"params": {"_meta": {"io.modelcontextprotocol/clientInfo": {"name": "robot", "version": "7"}}}}}),
    ] {
        let explained = explained(&shown, question).await;
        let by_rule = ("rule", "`clients[0]` gives `read-only`");
        assert_eq!(decided(&explained), by_rule, "{explained}");
        let client = json!({"name": "robot", "version": "7"});
        assert_eq!(explained["client"], client);
        let expected = json!({"variant": "read-only", "reason": "rule"});
        assert_members(&explained, &expected);
        assert_eq!(tool(&explained, "odd")["shown"], "odd");
        let fail = tool(&explained, "fail");
        assert_eq!(fail["shown"], Value::Null);
        let hidden = &fail["hidden"][0];
        assert_members(hidden, &json!({"by": "variant", "rule": "read-only"}));
        let why = hidden["detail"].as_str().unwrap();
        assert!(why.contains("`readOnlyHint: true`"), "{why}");
    }
    // What is explained is what the client gets.
    let listed = shown.client_asks("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 2, "{listed}");
}

#[tokio::test]
async fn each_step_decides_in_its_order() {
    let shown = Shown::with(RULES).await;
    let selecting = json!({"io.modelcontextprotocol/server-variant": "compact"});
    let older = json!({"User-Agent": "older"});
    let header = json!({"MCP-Server-Variant": "compact"});
    let path = "/mcp/v/standard";
    for (question, step, variant) in [
        (json!({}), "ranking", json!("standard")),
        (json!({"headers": older}), "rule", json!("compact")),
        (
            json!({"initialize": robot(), "headers": older}),
            "rule",
            json!("read-only"),
        ),
        (
            json!({"initialize": robot(), "headers": header}),
            "header",
            json!("compact"),
        ),
        (
            json!({"path": path, "headers": header}),
            "address",
            json!("standard"),
        ),
        (
            json!({"path": path, "meta": selecting}),
            "selector",
            json!("compact"),
        ),
        (json!({"path": "/mcp/v/none"}), "refused", Value::Null),
    ] {
        let explained = explained(&shown, question.clone()).await;
        assert_eq!(decided(&explained).0, step, "{question}");
        assert_eq!(explained["variant"], variant, "{question}");
    }
}

#[tokio::test]
async fn an_access_rule_hides_a_tool() {
    let rules = "
access:
  - {when: {groups: dev}, allow: ['*'], deny: [fail]}
  - {name: guests, when: {anyone: on}, allow: [odd]}
auth:
  keys: [{name: ci, sha256: '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', claims: {groups: [dev]}}]
";
    let shown = Shown::with(rules).await;
    let developer = explained(&shown, json!({"claims": {"groups": ["dev"]}})).await;
    let hidden = &tool(&developer, "fail")["hidden"][0];
    assert_members(hidden, &json!({"by": "access", "rule": "access[0]"}));
    assert_eq!(tool(&developer, "say")["shown"], "say");
    let applied = developer["rules"].as_array().unwrap();
    assert_eq!(applied.len(), 2, "{developer}");
    let status = shown.get("/api/status").await.json();
    assert_eq!(status["keys"], json!(["ci"]));
    let key = explained(&shown, json!({"key": "ci"})).await;
    assert_eq!(key["tools"], developer["tools"]);
    let guest = explained(&shown, json!({"claims": {}})).await;
    let hidden = &tool(&guest, "say")["hidden"][0];
    assert_members(hidden, &json!({"by": "access", "rule": null}));
    assert_eq!(tool(&guest, "odd")["shown"], "odd");
}

#[tokio::test]
async fn all_that_hides_a_tool_is_said() {
    let rules = "access: [{when: {anyone: on}, allow: ['*'], deny: [fail]}]";
    let shown = Shown::with(rules).await;
    let explained = explained(&shown, json!({"path": "/mcp/v/read-only"})).await;
    let hidden = tool(&explained, "fail")["hidden"].as_array().unwrap();
    let causes = hidden
        .iter()
        .map(|cause| json!([cause["by"], cause["rule"]]));
    let expected = [
        json!(["access", "access[0]"]),
        json!(["variant", "read-only"]),
    ];
    assert_eq!(causes.collect::<Vec<_>>(), expected);
    assert_eq!(tool(&explained, "odd")["hidden"], json!([]));
}

/// People with keys, and access rules that differ for each of their groups.
fn people() -> String {
    let key = |number: usize, name: &str, group: &str| {
        let sha256 = format!("{number:02x}").repeat(32);
        format!("{{name: {name}, sha256: '{sha256}', claims: {{groups: [{group}]}}}}")
    };
    let people = [
        ("ann", "dev"),
        ("bob", "dev"),
        ("carol", "sre"),
        ("dave", "audit"),
        ("erin", "mail"),
        ("fred", "temp"),
        ("gina", "temp"),
    ];
    let keyed = people.iter().enumerate();
    let keys: Vec<_> = keyed
        .map(|(number, (name, group))| key(number, name, group))
        .collect();
    let keys = keys.join(", ");
    format!(
        "
variants:
  standard: {{}}
  read-only: {{from: read-only}}
variant: read-only
access:
  - {{name: all, when: {{groups: '{{dev,sre,audit}}'}}, allow: ['*']}}
  - {{name: no failures, when: {{groups: dev}}, deny: [fail]}}
  - {{name: auditors read, when: {{groups: audit}}, variant: read-only, pin: on}}
  - {{name: by mail, when: {{groups: mail}}, allow: [fail], if: 'args.draft == true'}}
  - {{name: by key, when: {{groups: temp}}, allow: [fail], if: 'principal.key == \"fred\"'}}
auth: {{anonymous: on, keys: [{keys}]}}
"
    )
}

#[tokio::test]
async fn each_person_and_client_has_the_answer_to_whether_it_may_call_a_tool() {
    let shown = Shown::with(&people()).await;
    let robot_of = |key: &str| json!({"initialize": robot(), "key": key});
    let elsewhere = json!({"key": "carol", "path": "/mcp/v/none"});
    let clients = [robot_of("carol"), robot_of("ann"), elsewhere];
    let asked = json!({"server": "places", "tool": "fail", "clients": clients});
    let answer = shown.post("/api/callers", &asked).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let cause = |by: &str, rule: Option<&str>, detail: &str| json!({"by": by, "rule": rule, "detail": detail, "isLocked": true});
    let why = "the rule `no failures` denies it: fail";
    let denied = cause("access", Some("no failures"), why);
    let why = "no access rule that applies to the client allows it";
    let by_default = cause("access", None, why);
    let why = "it starts from `read-only`, and the tool does not declare `readOnlyHint: true`";
    let by_variant = cause("variant", Some("read-only"), why);
    let by_key = r#"by key (allow fail, if principal.key == "fred")"#;
    let not_by_key = by_key.replace("(allow", "(does not apply: allow");
    let for_others = ["all", "by mail", "by key"].map(|rule| {
        let pattern = if rule == "all" { "*" } else { "fail" };
        format!("{rule} (does not apply: allow {pattern})")
    });
    let expected = json!([
        {"person": "ann", "hidden": [denied, by_variant], "rules": ["no failures (deny fail)"], "isAllowed": false},
        {"person": "bob", "hidden": [denied, by_variant], "rules": ["no failures (deny fail)"], "isAllowed": false},
        // The default variant hides it, and she may use another one.
        {"person": "carol", "hidden": [], "rules": ["all (allow *)"], "isAllowed": true},
        {"person": "dave", "hidden": [by_variant], "rules": ["all (allow *)"], "isAllowed": true},
        {"person": "erin", "hidden": [], "rules": ["by mail (allow fail, if args.draft == true)"], "isAllowed": null},
        // What an expression finds without the arguments is found.
        {"person": "fred", "hidden": [], "rules": [by_key], "isAllowed": true},
        {"person": "gina", "hidden": [], "rules": [not_by_key], "isAllowed": false},
        // Those that allow it to others.
        {"person": null, "hidden": [by_default, by_variant], "rules": for_others, "isAllowed": false},
    ]);
    assert_eq!(answer.json()["people"], expected);
    let clients = answer.json()["clients"].clone();
    assert_eq!(
        clients[0],
        json!({"hidden": [by_variant], "rules": ["all (allow *)"], "isAllowed": true})
    );
    assert_eq!(clients[1]["hidden"], json!([denied, by_variant]));
    assert_eq!(clients[2]["hidden"][0]["by"], "refused");
}

#[tokio::test]
async fn who_may_call_a_tool_without_a_key_depends_on_auth() {
    let shown = Shown::with("").await;
    let asked = json!({"server": "places", "tool": "fail", "clients": []});
    let open = shown.post("/api/callers", &asked).await.json();
    let anybody = json!({"person": null, "hidden": [], "rules": [], "isAllowed": null});
    assert_eq!(open, json!({"people": [anybody], "clients": []}));
    let sha256 = "01".repeat(32);
    let auth = format!("auth: {{keys: [{{name: ci, sha256: '{sha256}'}}]}}");
    let shown = Shown::with(&auth).await;
    let locked = shown.post("/api/callers", &asked).await.json();
    let detail = "Vary refuses clients without a key or a token";
    let refused = json!([{"by": "refused", "rule": null, "detail": detail}]);
    let expected = json!([
        {"person": "ci", "hidden": [], "rules": [], "isAllowed": null},
        {"person": null, "hidden": refused, "rules": []},
    ]);
    assert_eq!(locked["people"], expected);
    for (body, part) in [
        (
            json!({"server": "places"}),
            "the request: missing field `tool`",
        ),
        (
            json!({"server": "a", "tool": "b", "clients": [{"key": "none"}]}),
            "`key`",
        ),
        (
            json!({"server": "a", "tool": "b", "clients": vec![json!({}); 101]}),
            "`clients` has 101 entries; write at most 100",
        ),
    ] {
        shown.refuses("/api/callers", &body, 400, part).await;
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_named() {
    let shown = Shown::with("").await;
    let many: serde_json::Map<String, Value> = (0..40_000)
        .map(|number| (format!("x-{number}"), json!("1")))
        .collect();
    for (question, part) in [
        (json!({"initialize": 1}), "`initialize`"),
        (json!({"meta": []}), "`meta`"),
        (json!({"headers": {"a b": "x"}}), "`headers`"),
        (json!({"headers": {"a": 1}}), "`headers`"),
        (
            json!({"headers": many}),
            "`headers` has 40000 names; write at most 100",
        ),
        (json!({"path": "/nothing"}), "`path`"),
        (json!({"claims": 1}), "`claims`"),
        (json!({"key": "none"}), "`key`"),
        (json!({"other": 1}), "`other`"),
        (json!(1), "the request"),
    ] {
        shown.refuses("/api/explain", &question, 400, part).await;
    }
}
