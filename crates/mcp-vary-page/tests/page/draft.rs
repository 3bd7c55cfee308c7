//! Variants as they are written, and what a change of one would list.

use crate::support::*;

const VARIANTS: &str = "
variants:
  standard: {}
  reader:
    # Comments stay in the file.
    description: 'Only: reads'
    from: read-only
    overrides:
      tools: {odd: {name: strange, arguments: {n: {fixed: 3}}}}
  second: {from: reader}
";

#[tokio::test]
async fn a_variant_is_shown_as_it_is_written() {
    let shown = Shown::with(VARIANTS).await;
    let reader = shown.get("/api/variant?id=reader").await.json();
    let value = json!({
        "description": "Only: reads",
        "from": "read-only",
        "overrides": {"tools": {"odd": {"name": "strange", "arguments": {"n": {"fixed": 3}}}}},
    });
    let yaml = "reader:\n  description: \"Only: reads\"\n  from: read-only\n  overrides:\n    tools:\n      odd:\n        \
         name: strange\n        arguments:\n          \"n\":\n            fixed: 3\n";
    assert_eq!(reader["value"], value);
    let last_save = json!({"variant": "second", "at": 1_795_941_000, "isNew": true});
    assert_members(
        &reader,
        &json!({"id": "reader", "yaml": yaml, "lastSave": last_save}),
    );
    let none = shown.get("/api/variant?id=none").await;
    assert_eq!(none.status, 404);
    let why = none.json()["error"].as_str().unwrap().to_owned();
    assert!(why.contains("no variant `none`"), "{why}");
    let built_in = Shown::with("").await;
    let compact = built_in.get("/api/variant?id=compact").await.json();
    assert_eq!(compact["value"], json!({}));
    assert_eq!(compact["yaml"], "compact: {}\n");
}

#[tokio::test]
async fn a_variant_that_is_put_back_changes_nothing() {
    let shown = Shown::with(VARIANTS).await;
    let catalog = shown.get("/api/catalog").await.json();
    for id in ["standard", "reader", "second"] {
        let written = shown.get(&format!("/api/variant?id={id}")).await.json();
        let draft = json!({"id": id, "value": written["value"]});
        let draft = shown.post("/api/draft", &draft).await.json();
        assert_eq!(draft["diff"], "", "{draft}");
        assert_eq!(draft["yaml"], written["yaml"]);
        assert_eq!(draft["tokens"], draft["before"]);
        let mut variants = catalog["variants"].as_array().unwrap().iter();
        let listed = variants.find(|variant| variant["id"] == id).unwrap();
        assert_eq!(draft["tokens"], listed["tokens"], "{id}");
    }
}

#[tokio::test]
async fn rules_are_shown_as_they_are_written_with_their_lines_and_without_secrets() {
    let rules = "
clients:
  - {headers: {X-Team: \"${TEAM:-secret}\"}, variant: reader}
access:
  - {when: {anyone: on}, allow: [\"*\"], deny: [\"delete_*\"]}
  - {name: readers, when: {anyone: on}, allow: [{readOnlyHint: true}]}
";
    let shown = Shown::with(&format!("{VARIANTS}{rules}")).await;
    let answer = shown.get("/api/rules").await.json();
    let expected = json!({"directory": "/srv/vary", "rules": [
        {"rule": "clients[0]", "file": "vary.yaml", "line": 15, "text": "{headers: {X-Team: \"…\"}, variant: reader}"},
        {"rule": "access[0]", "file": "vary.yaml", "line": 17, "text": "{when: {anyone: \"on\"}, allow: [\"*\"], deny: [\"delete_*\"]}"},
        {"rule": "readers", "file": "vary.yaml", "line": 18, "text": "{name: readers, when: {anyone: \"on\"}, allow: [{readOnlyHint: true}]}"},
    ]});
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn a_draft_shows_what_it_would_list() {
    let shown = Shown::with(VARIANTS).await;
    let value = json!({
        "from": "read-only",
        "tools": {"exclude": ["bound"]},
        "overrides": {"tools": {"odd": {"name": "peculiar"}}},
    });
    let draft = json!({"id": "reader", "value": value});
    let draft = shown.post("/api/draft", &draft).await.json();
    let tools = draft["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 10, "{draft}");
    let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    let odd = json!({"shown": "peculiar", "server": "places"});
    assert_members(tool("odd"), &odd);
    let bound = json!({
        "server": "places", "name": "bound", "shown": null, "tokens": 0,
        "hidden": "`tools.exclude[0]` (`bound`) matches the tool", "isLocked": false,
    });
    assert_eq!(tool("bound"), &bound);
    let (tokens, before) = (draft["tokens"].as_u64(), draft["before"].as_u64());
    assert!(tokens < before && tokens > Some(0), "{draft}");
    // The file in its own style, without what is beside its variants.
    let diff = "\
--- vary.yaml
+++ vary.yaml
@@ -5,8 +5,9 @@
   standard: {}
   reader:
     # Comments stay in the file.
-    description: 'Only: reads'
     from: read-only
     overrides:
-      tools: {odd: {name: strange, arguments: {n: {fixed: 3}}}}
+      tools: {odd: {name: peculiar}}
+    tools:
+      exclude: [bound]
   second: {from: reader}
";
    assert_eq!(draft["diff"], diff);
    assert_eq!(draft["unsavable"], Value::Null);
    // Nothing that a client sees has changed.
    let catalog = shown.get("/api/catalog").await.json();
    let mut odd = catalog["tools"].as_array().unwrap().iter();
    let odd = odd.find(|tool| tool["name"] == "odd").unwrap();
    assert_eq!(odd["variants"]["reader"]["name"], "strange");
}

#[tokio::test]
async fn a_draft_says_what_hides_a_tool_and_whether_its_box_can_list_it() {
    let other = places_server::start(Era::Modern).await;
    let second = format!("  other: {{url: {:?}}}\n", other.url);
    let shown = Shown::with(&second).await;
    let hidden = async |value: Value, server: &str, name: &str| {
        let draft = json!({"id": "mine", "value": value});
        let draft = shown.post("/api/draft", &draft).await.json();
        let mut tools = draft["tools"].as_array().unwrap().iter();
        let found = tools.find(|tool| tool["server"] == server && tool["name"] == name);
        let tool = found.unwrap();
        (tool["hidden"].clone(), tool["isLocked"].clone())
    };
    let some = json!({"servers": ["places"], "tools": ["places_odd"]});
    let by_servers = json!("its `servers` do not have `other`");
    let in_other = hidden(some.clone(), "other", "odd").await;
    assert_eq!(in_other, (by_servers, json!(true)));
    let by_tools = json!("no entry of its `tools.include` matches the tool");
    let not_included = hidden(some.clone(), "places", "say").await;
    assert_eq!(not_included, (by_tools, json!(false)));
    let listed = hidden(some, "places", "odd").await;
    assert_eq!(listed, (Value::Null, json!(false)));
    for (rule, is_locked) in [
        (json!("sa*"), true),
        (json!({"name": "say", "server": "places"}), false),
        (json!({"name": "say", "readOnlyHint": false}), true),
        (json!("*"), false),
    ] {
        let value = json!({"tools": {"exclude": [rule]}});
        let (_, locked) = hidden(value, "places", "say").await;
        assert_eq!(locked, json!(is_locked), "{rule}");
    }
}

#[tokio::test]
async fn a_draft_of_another_variant_and_of_a_built_in_one_is_listed() {
    let shown = Shown::with("").await;
    let draft = json!({"id": "mine", "value": {"tools": ["say"]}});
    let draft = shown.post("/api/draft", &draft).await.json();
    let expected = json!({"before": 0, "yaml": "mine:\n  tools: [say]\n"});
    assert_members(&draft, &expected);
    let tools = draft["tools"].as_array().unwrap().iter();
    assert_eq!(tools.filter(|tool| tool["shown"] != Value::Null).count(), 1);
    let compact = json!({"id": "compact", "value": {"descriptions": "full"}});
    let compact = shown.post("/api/draft", &compact).await.json();
    let (tokens, before) = (compact["tokens"].as_u64(), compact["before"].as_u64());
    assert!(tokens > before, "{compact}");
}

/// A second server puts prefixes before the names in lists, which are those that `include` matches.
#[tokio::test]
async fn a_draft_has_the_warnings_of_config_check_for_parts_that_match_nothing() {
    let other = places_server::start(Era::Modern).await;
    let second = format!("  other: {{url: {:?}}}\n", other.url);
    let shown = Shown::with(&second).await;
    let draft = async |tools: Value| {
        let draft = json!({"id": "mine", "value": {"tools": tools}});
        shown.post("/api/draft", &draft).await.json()
    };
    let listed = |draft: &Value| {
        let tools = draft["tools"].as_array().unwrap().iter();
        tools.filter(|tool| tool["shown"] != Value::Null).count()
    };
    let right = draft(json!(["places_say"])).await;
    assert_eq!((listed(&right), &right["warnings"]), (1, &json!([])));
    let wrong = draft(json!({"include": ["say"], "exclude": ["later_*"]})).await;
    assert_eq!(listed(&wrong), 0, "{wrong}");
    let warnings = wrong["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{wrong}");
    let expected =
        "`tools.include[0]` matches nothing that clients see: the item is `say` on server `";
    let warning = warnings[0].as_str().unwrap();
    assert!(warning.starts_with(expected), "{warning}");
}

#[tokio::test]
async fn a_draft_warns_of_two_tools_with_one_name() {
    let shown = Shown::with(VARIANTS).await;
    let overrides = json!({"tools": {"odd": {"name": "say"}}});
    let draft = json!({"id": "mine", "value": {"overrides": overrides}});
    let draft = shown.post("/api/draft", &draft).await.json();
    let warnings = draft["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{draft}");
    let warning = warnings[0].as_str().unwrap();
    let expected = "is called `say` in this view, like `tools.";
    assert!(warning.contains(expected), "{warning}");
}

#[tokio::test]
async fn a_draft_shows_the_rules_of_its_clients() {
    let rules = "clients:\n  - {name: cursor, variant: reader}\n";
    let shown = Shown::with(&format!("{VARIANTS}{rules}")).await;
    let reader = shown.get("/api/variant?id=reader").await.json();
    assert_eq!(reader["clients"], json!(["cursor"]));
    let value = &reader["value"];
    let draft = json!({"id": "reader", "value": value, "clients": ["cursor", "claude*"]});
    let draft = shown.post("/api/draft", &draft).await.json();
    let diff = draft["diff"].as_str().unwrap();
    let added = "\n clients:\n+  - {name: \"claude*\", variant: reader}\n   - {name: cursor, variant: reader}\n";
    assert!(diff.ends_with(added), "{draft}");
    let same = json!({"id": "reader", "value": value, "clients": ["cursor"]});
    let draft = shown.post("/api/draft", &same).await.json();
    assert_eq!(draft["diff"], "", "{draft}");
}

#[tokio::test]
async fn a_draft_names_the_callers_who_keep_another_variant() {
    const CLIENTS: &str =
        "clients:\n  - {name: \"rob*\", variant: second}\n  - {name: robot, variant: reader}\n";
    const PIN: &str = "access:\n  - {name: all, when: {anyone: on}, allow: [\"*\"]}\n  - {name: auditors, when: {anyone: on}, variant: second, pin: on}\n";
    let by_rule = |rule: &str| json!({"variant": "second", "by": "rule", "rule": rule});
    let by_pin = json!({"variant": "second", "by": "pin", "rule": "auditors"});
    for (rules, id, clients, now, stays) in [
        (CLIENTS, "reader", None, by_rule("clients[0]"), true),
        (
            CLIENTS,
            "reader",
            Some(json!(["R?bot"])),
            by_rule("clients[0]"),
            false,
        ),
        (CLIENTS, "second", None, by_rule("clients[0]"), false),
        (PIN, "reader", Some(json!(["robot"])), by_pin, true),
    ] {
        let shown = Shown::with(&format!("{VARIANTS}{rules}")).await;
        let call = json!({"name": "odd", "arguments": {"n": 1}});
        shown.client_asks("tools/call", call).await;
        until(async || {
            let calls = shown.get("/api/last-calls").await.json();
            calls["calls"].as_array().unwrap().len() == 1
        })
        .await;
        let written = shown.get(&format!("/api/variant?id={id}")).await.json();
        let mut draft = json!({"id": id, "value": written["value"]});
        if let Some(clients) = clients {
            draft["clients"] = clients;
        }
        let callers = shown.post("/api/draft", &draft).await.json()["callers"].clone();
        assert_eq!(callers.as_array().unwrap().len(), 1, "{rules}: {callers}");
        let client = json!({"name": "robot", "version": "7"});
        let expected = json!({"client": client, "now": now, "stays": stays});
        assert_members(&callers[0], &expected);
        draft["clients"] = json!(["other*"]);
        let others = shown.post("/api/draft", &draft).await.json()["callers"].clone();
        // Who has the variant now is there in any case.
        let expected = usize::from(id == "second");
        assert_eq!(others.as_array().unwrap().len(), expected, "{rules}");
    }
}

#[tokio::test]
async fn a_draft_names_the_callers_whom_its_rules_take_out_of_an_experiment() {
    let arms = "experiments:\n  - {name: words, arms: {standard: 50, second: 50}}\n";
    let shown = Shown::with(&format!("{VARIANTS}{arms}")).await;
    // An experiment knows a client without a key by its session.
    let opened = shown.client(&HttpRequest::initialize(&json!({}))).await;
    let session = opened.header("mcp-session-id").unwrap();
    let call = json!({"name": "odd", "arguments": {"n": 1}});
    let call = request(json!(1), "tools/call", call).to_string();
    shown.client(&HttpRequest::of(session, call)).await;
    until(async || {
        let calls = shown.get("/api/last-calls").await.json();
        calls["calls"].as_array().unwrap().len() == 1
    })
    .await;
    let calls = shown.get("/api/last-calls").await.json();
    assert_eq!(calls["calls"][0]["reason"], "experiment", "{calls}");
    for (clients, leaves) in [("test", json!(true)), ("other", Value::Null)] {
        let draft = json!({"id": "mine", "value": {}, "clients": [clients]});
        let draft = shown.post("/api/draft", &draft).await.json();
        assert_eq!(draft["callers"][0]["leaves"], leaves, "{draft}");
    }
}

/// OP-9: the token of the page does not let its holder read environment variables or files of the gateway.
#[tokio::test]
async fn a_draft_reads_no_variable() {
    let shown = Shown::with(VARIANTS).await;
    let value = json!({"overrides": {"tools": {"odd": {"name": "${PATH}"}}}});
    let draft = json!({"id": "mine", "value": value});
    let draft = shown.post("/api/draft", &draft).await.json();
    let mut tools = draft["tools"].as_array().unwrap().iter();
    let odd = tools.find(|tool| tool["name"] == "odd").unwrap();
    assert_eq!(odd["shown"], "${PATH}", "{draft}");
    let value = json!({"description": "${file:/etc/hostname}"});
    let draft = json!({"id": "mine", "value": value});
    let answer = shown.post("/api/draft", &draft).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
}

/// OP-9
#[tokio::test]
async fn saving_needs_the_configuration() {
    let save = json!({"id": "reader", "value": {}, "digest": "d"});
    let off = Shown::with(VARIANTS).await;
    let advice = "write `admin-writes: on`";
    off.refuses("/api/save", &save, 403, advice).await;
    off.refuses("/api/undo", &json!({}), 403, advice).await;
    assert_eq!(off.get("/api/status").await.json()["writes"], false);

    let on = Shown::with(&format!("admin-writes: on\n{VARIANTS}")).await;
    assert_eq!(on.get("/api/status").await.json()["writes"], true);
    let why = "nothing writes `reader` to d";
    on.refuses("/api/save", &save, 409, why).await;
    let why = "nothing was written";
    on.refuses("/api/undo", &json!({}), 409, why).await;
    let servers = json!({"id": "reader", "value": {}, "digest": "d", "servers": {}});
    let why = "unknown field `servers`";
    on.refuses("/api/save", &servers, 400, why).await;
    let rule = json!({"id": "reader", "value": {}, "digest": "d", "clients": [{"headers": {}}]});
    let why = "expected a string";
    on.refuses("/api/save", &rule, 400, why).await;
}

#[tokio::test]
async fn what_is_wrong_with_a_draft_is_named_as_config_check_does() {
    let shown = Shown::with(VARIANTS).await;
    let unknown = "`variants.reader.tols` is not a known key; did you mean `tools`?";
    let priority = json!({"status": "experimental", "priority": -1});
    for (id, value, why) in [
        ("reader", json!({"tols": []}), unknown),
        (
            "reader",
            json!({"from": "second"}),
            "leads back to the variant itself",
        ),
        ("reader", json!(5), "`variants.reader`"),
        ("", json!({}), "is not a variant id"),
        ("standard", priority, "`variants.standard.priority`"),
    ] {
        let draft = json!({"id": id, "value": value});
        shown.refuses("/api/draft", &draft, 400, why).await;
    }
    let answer = shown.post("/api/draft", &json!({"id": "a"})).await;
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn a_variant_is_suggested_from_what_a_client_called() {
    let shown = Shown::with("").await;
    let suggest = async || shown.get("/api/suggest?client=Robot").await;
    let none = suggest().await;
    assert_eq!(none.status, 404);
    let why = "none of the calls that Vary still has is of a client `Robot`";
    assert_eq!(none.json()["error"], why);
    let call = json!({"name": "odd", "arguments": {"n": 1}});
    shown.client_asks("tools/call", call.clone()).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    shown.client_asks("tools/call", call).await;
    until(async || suggest().await.json()["calls"] == 2).await;
    let last = shown.get("/api/last-calls").await.json();
    let suggested = suggest().await.json();
    let [newest, since] = [&last["calls"][0]["at"], &suggested["since"]];
    let passed = newest.as_f64().unwrap() - since.as_f64().unwrap();
    assert!(passed > 0.04, "it is the time of the first call: {passed}");
    let expected = json!({
        "id": "robot", "calls": 2, "tools": 1, "value": {"from": "standard", "tools": ["odd"]},
        "yaml": "robot:\n  from: standard\n  tools: [odd]\n", "clients": [],
    });
    assert_members(&suggested, &expected);
    let used = json!([{"server": "places", "name": "odd", "calls": 2, "people": 0}]);
    assert_eq!(suggested["used"], used);
    let draft = json!({"id": "robot", "value": suggested["value"]});
    let draft = shown.post("/api/draft", &draft).await.json();
    assert_eq!(draft["tokens"], suggested["tokens"]);
}
