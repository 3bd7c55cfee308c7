//! `access`: rules are read whole, and every mistake is at its place.

use mcp_vary_access::{Claims, Item, Principal};
use mcp_vary_settings::access::AccessSettings;
use mcp_vary_view::ToolHints;

use super::reference::blocks;
use super::*;

const SERVERS: &str = "servers: {git: {command: x, trust-annotations: on}, web: {command: y}}\n\
    stdio-principal: {name: ann}\n";

#[track_caller]
fn settings(remaining: &str) -> AccessSettings {
    let file = read("vary.yaml", &format!("{SERVERS}{remaining}"));
    assert_eq!(notes(&file), Vec::<String>::new(), "{remaining}");
    let config = file.into_config(Environment::new(|| 0, |_| {}));
    config.access.unwrap()
}

/// Checks what is wrong with rules, which begin in line 3.
#[track_caller]
fn refuses_access(remaining: &str, expected: &str) {
    refuses("vary.yaml", &format!("{SERVERS}{remaining}"), expected);
}

/// Checks what is wrong with one rule, which begins at 3:10.
#[track_caller]
fn refuses_rule(rule: &str, expected: &str) {
    refuses_access(&format!("access: [{rule}]"), expected);
}

/// Checks what is noted of rules.
#[track_caller]
fn notes_of(remaining: &str, expected: &str) {
    let file = read("vary.yaml", &format!("{SERVERS}{remaining}"));
    assert_eq!(
        notes(&file),
        expected.lines().collect::<Vec<_>>(),
        "{remaining}"
    );
}

fn person(claims: &str) -> Principal {
    Principal::token("i", "s", Claims::from_json(claims).unwrap()).unwrap()
}

/// What a principal may use of some tools, as the report has it.
fn report(access: &AccessSettings, principal: &Principal) -> String {
    let class = access.policy.class_of(principal);
    let annotated = ToolHints::from_tool(r#"{"annotations": {"readOnlyHint": true}}"#);
    let tool = |name, server: &'static str, hints| {
        let is_trusted = access.trusted_annotations.contains(server);
        Item::tool(name, name, server, hints, is_trusted)
    };
    let items = [
        tool("log", "git", annotated),
        tool("push", "git", ToolHints::default()),
        tool("search", "web", annotated),
        Item::prompt("review", "review", "git"),
        Item::resource("file:///a", "file:///a", "git"),
        Item::skill("skill://pdf/SKILL.md", "git"),
    ];
    access.policy.explain(&class, &items).to_string()
}

#[test]
fn rules_are_read_with_all_their_keys() {
    let access = settings(
        "access:
  - {name: readers, when: {groups: \"*\"}, allow: [{readOnlyHint: true, server: git}]}
  - when: {groups: [dev, sre], key: absent}
    allow: [search, {tools: \"p*\"}, {prompts: \"*\"}, {resources: \"file:///*\"}, {skills: \"{pdf,xls}\"}]
    deny: [{name: push, server: git}]
    scopes: [\"b:write\", a]
    if: args.draft == true && claims.level > 3
    variants: [standard, compact]
    variant: compact
  - {when: {client: \"CN=ci-*\"}, variant: read-only, pin: on}
",
    );
    insta::assert_snapshot!(report(&access, &person(r#"{"groups": ["dev"]}"#)), @r"
    rules that apply: readers (when groups: *), access[1] (when groups: [dev, sre], key: absent)
    variants: compact, standard; default compact
    tool log: allowed by readers (allow server: git, readOnlyHint: true)
    tool push: decided at each call by access[1] (deny push, server: git, if args.draft == true && claims.level > 3), access[1] (allow tools p*, scopes a b:write, if args.draft == true && claims.level > 3)
    tool search: decided at each call by access[1] (allow search, scopes a b:write, if args.draft == true && claims.level > 3)
    prompt review: decided at each call by access[1] (allow prompts *, scopes a b:write, if args.draft == true && claims.level > 3)
    resource file:///a: decided at each call by access[1] (allow resources file:///*, scopes a b:write, if args.draft == true && claims.level > 3)
    skill skill://pdf/SKILL.md: decided at each call by access[1] (allow skills {pdf,xls}, scopes a b:write, if args.draft == true && claims.level > 3)
    ");
    let machine = Principal::certificate("CN=ci-7", Claims::default()).unwrap();
    let class = access.policy.class_of(&machine);
    assert_eq!(class.variants().to_string(), "read-only, pinned");
}

#[test]
fn without_access_everything_is_allowed() {
    let file = read("vary.yaml", SERVERS);
    let config = file.into_config(Environment::new(|| 0, |_| {}));
    assert!(config.access.is_none());
}

#[test]
fn hints_of_a_server_allow_only_with_trust_annotations() {
    let rule = "access: [{when: {anyone: on}, allow: [{readOnlyHint: true}]}]";
    let access = settings(rule);
    assert_eq!(*access.trusted_annotations, ["git".to_owned()].into());
    let report = report(&access, &Principal::anonymous());
    assert!(report.contains("tool log: allowed by"), "{report}");
    assert!(report.contains("tool search: hidden"), "{report}");
}

#[test]
fn a_rule_says_to_whom_it_applies() {
    refuses_rule(
        "{allow: [\"*\"]}",
        "3:10: `access[0]` has no `when`; add `when: {groups: ...}`, or `when: {anyone: on}` for everyone",
    );
    refuses_rule(
        "{whne: {groups: a}, allow: [\"*\"]}",
        "3:11: `access[0].whne` is not a known key; did you mean `when`?",
    );
    let nobody = "`access[0].when` names nobody; write `anyone: on` for everyone";
    refuses_rule("{when: {}, allow: [a]}", &format!("3:17: {nobody}"));
    refuses_rule(
        "{when: {anyone: off}, allow: [a]}",
        &format!("3:17: {nobody}"),
    );
    refuses_rule(
        "{when: {anyone: on, groups: a}, allow: [a]}",
        "3:17: `access[0].when` has `anyone` and other conditions; keep `anyone: on`, or the others",
    );
    refuses_rule(
        "{when: {groups: []}, allow: [a]}",
        "3:26: `access[0].when.groups` is empty, so it matches no client; write `absent`, or at least one pattern",
    );
    refuses_rule(
        "{when: {groups: [a, absent]}, allow: [a]}",
        "3:30: `access[0].when.groups[1]` is not a pattern: `absent` in a list; write it alone, in a rule of its own; `[a]bsent` is the text",
    );
    refuses_rule(
        "{when: {\"\": a}, allow: [a]}",
        "3:22: `access[0].when.` cannot be used: the name of a claim is empty, too long, or contains a control character",
    );
}

#[test]
fn a_rule_does_something() {
    let when = "when: {anyone: on}";
    refuses_rule(
        &format!("{{{when}}}"),
        "3:10: `access[0]` does nothing; add `allow`, `deny`, `variants` or `variant`",
    );
    refuses_rule(
        &format!("{{{when}, deny: [a], scopes: [b]}}"),
        "3:50: `access[0].scopes` needs `allow`: only what a rule allows can need a scope; add it",
    );
    refuses_rule(
        &format!("{{{when}, variant: compact, if: 'true'}}"),
        "3:53: `access[0].if` needs `allow` or `deny`, on which it decides; add one of them",
    );
    refuses_rule(
        &format!("{{{when}, allow: [a], pin: on}}"),
        "3:48: `access[0].pin` needs `variant`, the variant to pin; add it",
    );
    refuses_rule(
        &format!("{{{when}, variants: [standard], variant: compact}}"),
        "3:62: `access[0].variant` is not among `variants` of the rule; add it there",
    );
    refuses_rule(
        &format!("{{{when}, allow: [a], name: \"a\\nb\"}}"),
        "3:49: `access[0].name` is empty, longer than 128 bytes, or contains a control character; write a short name",
    );
}

#[test]
fn patterns_are_checked_one_by_one() {
    #[track_caller]
    fn allow(patterns: &str, expected: &str) {
        refuses_rule(
            &format!("{{when: {{anyone: on}}, allow: {patterns}}}"),
            expected,
        );
    }
    allow(
        "\"*\"",
        "3:38: `access[0].allow` is not a list; write [\"git_*\", {tools: \"*\", server: git}]",
    );
    allow(
        "[]",
        "3:38: `access[0].allow` is empty; leave it out, or write `[\"*\"]` for everything",
    );
    allow(
        "[{}]",
        "3:39: `access[0].allow[0]` has no conditions; write `\"*\"` for everything",
    );
    allow(
        "[{tools: a, prompts: b}, {name: a, tools: b}]",
        "3:39: `access[0].allow[0]` has `tools`, `prompts`, of which a pattern has one; write an entry for each\n\
         3:63: `access[0].allow[1]` has `name`, `tools`, of which a pattern has one; write an entry for each",
    );
    allow(
        "[{prompts: a, readOnlyHint: true}]",
        "3:39: `access[0].allow[0]` has `readOnlyHint`, but only tools have hints; write `tools`, or leave the hint out",
    );
    allow(
        "[{tool: a, readOnlyHint: maybe}, \"{a\"]",
        "3:40: `access[0].allow[0].tool` is not a known key; did you mean `tools`?\n\
         3:63: `access[0].allow[0].readOnlyHint` is `maybe`; there are `true`, `false`, `absent`\n\
         3:71: `access[0].allow[1]` is not a pattern: the pattern `{a` cannot be read: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?); write `*` for anything, `{a,b}` for one of several",
    );
}

#[test]
fn an_expression_is_compiled_when_the_file_is_read() {
    #[track_caller]
    fn condition(text: &str, expected: &str) {
        let rule = format!("{{when: {{anyone: on}}, allow: [a], if: {text}}}");
        refuses_rule(&rule, expected);
    }
    condition(
        "'arg.x == 1'",
        "3:47: `access[0].if` cannot be used: it uses `arg`, which does not exist; there are args, claims, kind, name, principal, server, tool, variant",
    );
    condition(
        "'args.x.map(y, y) == []'",
        "3:47: `access[0].if` cannot be used: it uses `map` or `filter`; use `exists`, `exists_one` or `all`",
    );
    // What a variable stands for is not shown.
    condition(
        "'${SECRET}.x'",
        "3:47: `access[0].if` cannot be used: it is not an expression in CEL; see what its variable stands for",
    );
}

#[test]
fn scopes_are_those_that_tokens_can_have() {
    refuses_rule(
        "{when: {anyone: on}, allow: [a], scopes: [\"a b\", c]}",
        "3:52: `access[0].scopes[0]` cannot be used: a scope is 1 to 256 visible ASCII characters without spaces, quotation marks and backslashes",
    );
}

#[test]
fn a_rule_names_variants_that_exist() {
    refuses_access(
        "variants: {reviewer: {description: d}}\naccess: [{when: {anyone: on}, variants: [reviwer, reviewer], variant: compact}]",
        "4:42: `access[0].variants[0]` is not a variant: `reviwer`; did you mean `reviewer`?\n\
         4:71: `access[0].variant` is not among `variants` of the rule; add it there\n\
         4:71: `access[0].variant` is not a variant: `compact`; there is only `reviewer`",
    );
}

#[test]
fn the_list_has_rules_with_different_names() {
    refuses_access(
        "access: []",
        "3:9: `access` is empty, so that nothing is allowed; write a rule, or leave it out to allow everything",
    );
    refuses_access(
        "access: {when: {anyone: on}}",
        "3:9: `access` is not a list; write [{when: {groups: dev}, allow: [\"git_*\"]}]",
    );
    let rule = "{name: a, when: {anyone: on}, allow: [b]}";
    refuses_access(
        &format!("access:\n  - {rule}\n  - {rule}"),
        "5:12: `access[1].name` is the name of the rule in line 4; give each rule its own name, or none",
    );
    let many = vec!["{when: {anyone: on}, allow: [b]}"; 257].join(", ");
    refuses_rule(&many, "3:9: `access` has 257 entries; 256 is the most");
}

#[test]
fn prefixes_that_show_hidden_items_are_noted() {
    let rules = "naming: on-collision\naccess: [{when: {anyone: on}, allow: [b]}]";
    notes_of(
        rules,
        "3:9: `naming` is `on-collision`: the prefix of a name shows that another server has an item of this name, even if rules hide that item; if clients must not learn that, write `always`",
    );
    notes_of(&rules.replace("on-collision", "always"), "");
}

#[test]
fn rules_that_cannot_do_what_they_say_are_noted() {
    let rule = "when: {anyone: on}, allow";
    notes_of(
        &format!("access: [{{{rule}: [{{server: gti}}], deny: [{{server: \"w*\"}}]}}]"),
        "3:39: `access[0].allow[0]` matches no server; did you mean `git`?",
    );
    notes_of(
        &format!(
            "access: [{{{rule}: [{{server: web, readOnlyHint: true}}], deny: [{{destructiveHint: true, server: web}}]}}]"
        ),
        "3:39: `access[0].allow[0]` allows nothing: hints count only where `trust-annotations` is on; add `trust-annotations: on` to each server whose hints you trust",
    );
    notes_of(
        "access: [{when: {keys: absent}, allow: [a]}]",
        "3:24: `access[0].when.keys` is read as a claim; did you mean `key`?",
    );
}

/// SV-3: their clients have no default as it should be.
#[test]
fn rules_without_a_stable_variant_are_noted() {
    let rules = "variants: {a: {}, old: {status: deprecated}, new: {status: experimental}}\n\
        access: [{when: {anyone: on}, variants: [old, new]}]";
    notes_of(
        rules,
        "4:41: `access[0].variants` has no stable variant, which clients that choose none should get; add one",
    );
    notes_of(&rules.replace("[old, new]", "[old, a]"), "");
}

#[test]
fn rules_that_cannot_tell_clients_apart_are_noted() {
    let rules = "servers: {a: {command: x}}\naccess: [{when: {anyone: on}, allow: [b]}]\n";
    let note = "2:9: `access` treats all clients alike: without `auth` and `stdio-principal` they are anonymous; add `auth`, so that rules can tell clients apart";
    assert_eq!(notes(&read("vary.yaml", rules)), [note]);
    let with_auth = read("vary.yaml", &format!("{rules}auth: {{anonymous: on}}\n"));
    assert_eq!(notes(&with_auth), Vec::<String>::new());
}

#[test]
fn rules_that_apply_to_nobody_are_noted_where_every_claim_is_known() {
    let digest = "0".repeat(64);
    let keys = format!("keys: [{{name: ann, sha256: {digest}, claims: {{groups: [dev]}}}}]");
    let noted = |auth: &str, when: &str| {
        let rules = format!("access: [{{when: {{{when}}}, allow: [a]}}]");
        let text = format!("{SERVERS}auth: {{{auth}}}\n{rules}\npublic-url: https://mcp.example\n");
        notes(&read("vary.yaml", &text)).join("\n")
    };
    let nobody = |when: &str| {
        format!(
            "4:17: `access[0].when` applies to nobody: no key of `auth.keys` has `{when}`; give it to the `claims` of a key, or \
             remove the rule"
        )
    };
    for when in ["groups: qa", "groups: dev, key: bob", "client: CN=ci"] {
        assert_eq!(noted(&keys, when), nobody(when));
    }
    for when in [
        "groups: d*",
        "groups: dev, key: ann",
        "key: absent",
        "anyone: on",
    ] {
        assert_eq!(noted(&keys, when), "", "{when}");
    }
    // Tokens of an issuer can have every claim.
    let with_login = format!("{keys}, issuers: [{{issuer: https://idp.example, audiences: [x]}}]");
    assert_eq!(noted(&with_login, "groups: qa"), "");
}

/// Rules would see no group if the operator had to name each claim twice.
#[test]
fn the_claims_that_rules_use_are_read_from_tokens() {
    let mapping = |issuer: &str| {
        let file = read(
            "vary.yaml",
            &format!(
                "{SERVERS}public-url: https://mcp.example\nauth: {{issuers: [{{issuer: https://idp.example{issuer}}}]}}\n\
                 access: [{{when: {{groups: a}}, allow: [b], if: claims.level > 3 && 'x' in claims.scope}}]\n"
            ),
        );
        let config = file.into_config(Environment::new(|| 0, |_| {}));
        let authenticator = config.authentication.unwrap().authenticator;
        format!("{:?}", authenticator.tokens().unwrap())
    };
    let plain = mapping("");
    assert!(
        plain.contains("groups") && plain.contains("level"),
        "{plain}"
    );
    let elsewhere = mapping(", claims: {groups: realm.roles}");
    assert!(elsewhere.contains("realm"), "{elsewhere}");
}

/// An issuer can map 64 claims, and those of rules are among them.
#[test]
fn claims_of_rules_that_an_issuer_has_no_room_for_are_reported() {
    let claims: Vec<String> = (0..64).map(|at| format!("c{at}: c{at}")).collect();
    refuses_access(
        &format!(
            "public-url: https://mcp.example\nauth: {{issuers: [{{issuer: https://idp.example, claims: {{{}}}}}]}}\n\
             access: [{{when: {{groups: a}}, allow: [b]}}]\n",
            claims.join(", ")
        ),
        "4:18: `auth.issuers[0].claims` cannot be used: there are more than 64 claims",
    );
}

#[test]
fn every_example_of_the_guide_can_be_read() {
    let examples = blocks(include_str!("../../../../docs/reference/access.md"), "yaml");
    assert_eq!(examples.len(), 2);
    for text in examples {
        let file = read("x.yaml", text);
        assert_eq!(notes(&file), Vec::<String>::new(), "{text}");
    }
}
