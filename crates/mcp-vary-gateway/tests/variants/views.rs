//! Variants as an operator configures them: what each shows, and how calls to it are sent.

use mcp_vary_config::Source;
use mcp_vary_gateway::Base;
use mcp_vary_view::{
    ArgumentOverride, Description, Dialect, PromptOverride, ResourceOverride, ResultFields,
    SchemaStyle, ToolOverride,
};

use crate::support::*;

/// A server with issues, that says what it was asked.
fn issues() -> Script {
    let schema = json!({
        "type": "object", "required": ["owner", "query"],
        "properties": {
            "owner": {"type": "string", "description": "Whose."},
            "query": {"type": "string", "minLength": 2, "description": "What to look for."},
            "limit": {"type": "integer"},
        },
    });
    let tool = |name: &str, reads: bool| {
        json!({"name": name, "title": "T", "description": format!("Does {name}. In many ways."),
            "inputSchema": schema, "annotations": {"readOnlyHint": reads},
            "outputSchema": {"type": "object"}})
    };
    let echoed =
        |params: &Value| json!({"messages": [], "completion": {"values": []}, "said": params});
    Script::legacy("issues")
        .declares(json!({"completions": {}}))
        .lists(json!({"tools": [
            tool("search_issues", true), tool("close_issue", false), tool("admin_purge", false),
        ]}))
        .on_call(|params| json!({
            "said": params,
            "content": [{"type": "text", "text": "two"}, {"type": "image", "data": "", "mimeType": "image/png"}],
            "structuredContent": {"found": 2},
        }))
        .lists(json!({
            "resources": [{"uri": "doc:a", "name": "a"}, {"uri": "log:b", "name": "b"}],
            "resourceTemplates": [
                {"uriTemplate": "doc:{name}", "name": "d"}, {"uriTemplate": "any:{name}", "name": "a"},
            ],
        }))
        .on("resources/read", |params| json!({"contents": [], "said": params}))
        .lists(json!({"prompts": [
            {"name": "triage", "arguments": [{"name": "repository", "required": true}, {"name": "tone"}]},
            {"name": "report"},
        ]}))
        .on("prompts/get", echoed)
        .on("completion/complete", echoed)
}

/// The variants of these tests.
fn variants() -> Vec<VariantConfig> {
    let mut finder = variant("finder");
    finder.tools =
        serde_json::from_str(r#"{"include": ["*_issue*"], "exclude": ["close*"]}"#).unwrap();
    finder.prompts = serde_json::from_str(r#"{"include": ["triage"]}"#).unwrap();
    finder.resources =
        serde_json::from_str(r#"{"exclude": ["log:*", "any:x*", "see:secret"]}"#).unwrap();
    let mut change = ToolOverride {
        name: Some("find".into()),
        description: Some("Finds issues of ours.".into()),
        ..ToolOverride::default()
    };
    let argument = |name: Option<&str>, fixed, default| ArgumentOverride {
        name: name.map(str::to_owned),
        fixed,
        default,
        ..ArgumentOverride::default()
    };
    change
        .arguments
        .insert("query".into(), argument(Some("q"), None, None));
    change
        .arguments
        .insert("owner".into(), argument(None, json_text("acme"), None));
    finder.tool_overrides.insert("search_issues".into(), change);
    let mut triage = PromptOverride::default();
    triage
        .arguments
        .insert("repository".into(), argument(Some("repo"), None, None));
    finder.prompt_overrides.insert("triage".into(), triage);

    let mut terms = variant("words").with_base(Base::ReadOnly);
    terms.style.description = Description::FirstSentence;
    terms.style.result = ResultFields::Content;

    let mut program = variant("program");
    program.style.schema = SchemaStyle::Compact;
    program.style.result = ResultFields::Structured;

    let mut gemini = variant("gemini");
    gemini.style.dialect = Some(Dialect::Gemini);

    let mut casual = variant("casual");
    casual.features = Some(
        mcp_vary::feature::Features::from_tags(["human", "format=markdown"])
            .0
            .into(),
    );
    vec![variant("all"), finder, terms, program, gemini, casual]
}

/// SV-11: a variant chooses what it shows, and how.
#[tokio::test]
async fn a_variant_shows_what_it_selects() {
    let harness = Harness::of_variants(issues(), variants()).await;
    for (variant, tools) in [
        ("all", &["search_issues", "close_issue", "admin_purge"][..]),
        ("finder", &["find"]),
        ("words", &["search_issues"]),
    ] {
        for way in ClientKind::ALL {
            let params = under(variant, json!({}));
            let list = harness.ask(way, "tools/list", params).await;
            assert_eq!(names(&list), tools, "{variant} {way:?}");
        }
    }
    let list = harness
        .ask_under("finder", "resources/list", json!({}))
        .await;
    list.has("/result/resources", json!([{"uri": "doc:a", "name": "a"}]));
    let list = harness.ask_under("finder", "prompts/list", json!({})).await;
    assert_eq!(list["result"]["prompts"].as_array().unwrap().len(), 1);
    let list = harness.ask_under("words", "tools/list", json!({})).await;
    list.has("/result/tools/0/description", "Does search_issues.");
}

/// SV-14: a URI exists in a view that lists it or has a template for it.
#[tokio::test]
async fn a_resource_that_a_variant_does_not_show_cannot_be_read_in_it() {
    let harness = Harness::of_variants(issues(), variants()).await;
    for (variant, uri, exists) in [
        ("finder", "doc:a", true),
        ("finder", "doc:z", true),
        ("finder", "any:y", true),
        ("finder", "any:x1", false),
        ("finder", "log:b", false),
        ("finder", "no:where", false),
        ("all", "log:b", true),
        ("all", "no:where", true),
    ] {
        let answer = harness
            .ask_under(variant, "resources/read", json!({"uri": uri}))
            .await;
        let found = answer["result"].is_object();
        assert_eq!(found, exists, "{variant} {uri} {answer}");
        if !exists {
            answer.has("/error/code", -32602);
            answer.has("/error/data/activeVariant", "finder");
        }
    }
}

/// SV-12: the names of another view lead nowhere.
#[tokio::test]
async fn what_a_variant_calls_otherwise_exists_only_so() {
    let harness = Harness::of_variants(issues(), variants()).await;
    for (variant, name) in [
        ("finder", "search_issues"),
        ("all", "find"),
        ("words", "close_issue"),
    ] {
        let answer = harness.ask_under(variant, "tools/call", tool(name)).await;
        assert_eq!(answer["error"]["code"], -32602, "{variant} {name}");
        answer.has("/error/data/activeVariant", variant);
    }
}

#[tokio::test]
async fn a_call_reaches_the_server_in_its_own_words() {
    let harness = Harness::of_variants(issues(), variants()).await;
    let list = harness.ask_under("finder", "tools/list", json!({})).await;
    let listed = &list["result"]["tools"][0];
    listed.has("/description", "Finds issues of ours.");
    let schema = &listed["inputSchema"];
    let properties: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(properties, ["q", "limit"]);
    schema.has("/required", json!(["q"]));
    for way in ClientKind::ALL {
        let params = json!({"name": "find", "arguments": {"q": "é", "limit": 1.0}});
        let call = under("finder", params);
        let answer = harness.ask(way, "tools/call", call).await;
        let said = &answer["result"]["said"];
        assert_eq!(said["name"], "search_issues", "{way:?} {answer}");
        let expected = json!({"query": "é", "limit": 1.0, "owner": "acme"});
        said.has("/arguments", expected);
    }
}

#[tokio::test]
async fn an_argument_that_a_view_does_not_have_is_an_error_that_a_model_can_act_on() {
    let harness = Harness::of_variants(issues(), variants()).await;
    let call = json!({"name": "find", "arguments": {"q": "x", "owner": "evil"}});
    let answer = harness.ask_under("finder", "tools/call", call).await;
    let result = &answer["result"];
    assert_eq!(result["isError"], true, "{answer}");
    let expected = "invalid arguments: there is no argument `owner`; leave it out";
    result.has("/content/0/text", expected);
    assert!(harness.peer.of("tools/call").is_empty());
}

#[tokio::test]
async fn prompts_and_their_completions_are_asked_in_the_servers_words() {
    let harness = Harness::of_variants(issues(), variants()).await;
    let get = json!({"name": "triage", "arguments": {"repo": "x"}});
    let answer = harness.ask_under("finder", "prompts/get", get).await;
    answer.has("/result/said/arguments", json!({"repository": "x"}));
    let get = json!({"name": "triage", "arguments": {"repository": "x"}});
    let answer = harness.ask_under("finder", "prompts/get", get).await;
    answer.has("/error/code", -32602);
    let reference = json!({"type": "ref/prompt", "name": "triage"});
    let complete = json!({"ref": reference, "argument": {"name": "repo", "value": "v"}});
    let answer = harness
        .ask_under("finder", "completion/complete", complete)
        .await;
    let expected = json!({"name": "repository", "value": "v"});
    answer.has("/result/said/argument", expected);
}

/// A dialect's arguments are held against the server's own schema before they go on.
#[tokio::test]
async fn a_dialect_lists_what_its_models_take_and_checks_what_the_server_takes() {
    let harness = Harness::of_variants(issues(), variants()).await;
    let good = json!({"name": "close_issue", "arguments": {"owner": "o", "query": "long"}});
    let answer = harness.ask_under("gemini", "tools/call", good).await;
    let expected = json!({"owner": "o", "query": "long"});
    answer.has("/result/said/arguments", expected);
    let bad = json!({"name": "close_issue", "arguments": {"owner": "o", "query": "x"}});
    let answer = harness.ask_under("gemini", "tools/call", bad).await;
    answer.has("/result/isError", true);
    answer.contains("/result/content/0/text", "query");
}

#[tokio::test]
async fn a_variant_decides_which_field_its_clients_read() {
    let harness = Harness::of_variants(issues(), variants()).await;
    let call = json!({"name": "search_issues", "arguments": {}});
    let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
    let words = harness.ask_under("words", "tools/call", call.clone()).await;
    assert_eq!(words["result"].get("structuredContent"), None);
    assert_eq!(words["result"]["content"].as_array().unwrap().len(), 2);
    let program = harness.ask_under("program", "tools/call", call).await;
    program.has("/result/structuredContent", json!({"found": 2}));
    program.has("/result/content", json!([image]));
    for (variant, has) in [("words", false), ("program", true)] {
        let list = harness.ask_under(variant, "tools/list", json!({})).await;
        let tool = &list["result"]["tools"][0];
        assert_eq!(tool.get("outputSchema").is_some(), has, "{variant}");
    }
}

#[tokio::test]
async fn a_variants_features_are_for_clients_that_declare_none() {
    let harness = Harness::of_variants(issues(), variants()).await;
    let call = || under("casual", json!({"name": "search_issues", "arguments": {}}));
    let plain = harness.ask_modern("tools/call", call()).await;
    let text = plain["result"]["content"][0]["text"].as_str().unwrap();
    assert_ne!(text, "{\"found\":2}");
    // CN-19: only who declared something is told what became of it.
    assert_eq!(plain["result"].get("_meta"), None, "{plain}");
    let declared = features(&["agent", "format=json"]);
    let json = ask_modern_as(&harness, &declared, "tools/call", call()).await;
    let found = &json["result"]["_meta"]["vary/applied"];
    assert!(found.is_object(), "{json}");
}

/// The server of [`issues`] as one that refuses requests with this method.
async fn refusing(method: &'static str, code: i32) -> ScriptedServer {
    let script = issues().reply(method, move |seen| seen.refuse(200, code, "no"));
    script.start().await
}

/// What is said of a variant that shows `resources` and overrides them.
async fn resource_slips(
    peer: ScriptedServer,
    include: &[&str],
    overridden: &[&str],
) -> Vec<String> {
    let mut variant = VariantConfig::new(ServerVariant::new("v".parse().unwrap(), "d"));
    variant.resources = serde_json::from_value(json!({"include": include})).unwrap();
    for uri in overridden {
        let change = ResourceOverride::default();
        variant.resource_overrides.insert((*uri).to_owned(), change);
    }
    let adapt = |config: Config| config.with_variants_of(vec![variant]).unwrap();
    let harness = Harness::behind_one(peer, adapt).await;
    let mistakes = harness.gateway.unmatched_overrides().into_iter();
    mistakes.map(|(_, mistake)| mistake.to_string()).collect()
}

/// Resources and templates are one part of a configuration: what is in either list is there.
#[tokio::test]
async fn a_resource_that_no_server_lists_is_a_slip() {
    // A template stands for URIs that are in no list: `any:x`.
    let fine = (["doc:*", "any:x*"], ["log:b", "doc:{name}"]);
    let slipped = (["doc:*", "dok:*", "a*"], ["log:c", "doc:{name}"]);
    let said = resource_slips(issues().start().await, &fine.0, &fine.1).await;
    assert_eq!(said, [""; 0]);
    let said = resource_slips(issues().start().await, &slipped.0, &slipped.1).await;
    assert_eq!(said.len(), 2, "{said:?}");
    let expected = "`resources.log:c` names no resource that a server has";
    assert!(said[0].starts_with(expected), "{said:?}");
    assert!(said[0].contains("did you mean `log:b`?"), "{said:?}");
    assert!(said[1].contains("matches nothing: `dok:*`"), "{said:?}");
    let without = refusing("resources/templates/list", -32601).await;
    let said = resource_slips(without, &["doc:*"], &["doc:{name}"]).await;
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("`resources.doc:{name}`"), "{said:?}");
    // What cannot be listed may be there.
    let silent = refusing("resources/list", -32603).await;
    let said = resource_slips(silent, &["dok:*"], &["log:c"]).await;
    assert_eq!(said, [""; 0]);
}

#[tokio::test]
async fn slips_of_a_configuration_are_found_when_the_lists_are_there() {
    let mut slipped = variants();
    let pattern = serde_json::from_str(r#""serch_*""#).unwrap();
    slipped[1].tools.include.push(pattern);
    let overrides = &mut slipped[1].tool_overrides;
    overrides.insert("close_isue".into(), ToolOverride::default());
    let renamed = default_with::<ToolOverride>(|it| it.name = Some("search_issues".into()));
    let overrides = &mut slipped[0].tool_overrides;
    overrides.insert("close_issue".into(), renamed);
    let adapt = |config: Config| config.with_variants_of(slipped).unwrap();
    let harness = Harness::with_server(issues(), adapt).await;
    let slips = harness.gateway.unmatched_overrides().into_iter();
    let said: Value = slips.map(|(id, slip)| format!("{id}: {slip}")).collect();
    said.starts("/0", "all: ");
    said.contains("/0", "is called `search_issues` in this view, like");
    said.contains("/1", "did you mean `close_issue`?");
    said.contains("/2", "matches nothing: `serch_*`");
    // What is only ever linked is in no list, so that it looks like a slip.
    said.contains("/3", "matches nothing now: `see:secret`");
    said.has("/4", Value::Null);
    // Of two with one name the first is shown and reached.
    let list = harness.ask_under("all", "tools/list", json!({})).await;
    assert_eq!(names(&list), ["search_issues", "admin_purge"]);
}

/// What the file's `variants` make of two servers with issues: the names of the tools in `v`, and the slips.
async fn behind_two(variants: &str) -> ((Harness, ScriptedServer), Vec<String>, Vec<String>) {
    let text =
        format!("servers: {{a: {{command: x}}, b: {{command: x}}}}\nvariants:\n  v: {variants}\n");
    let file = Source::new("vary.yaml", &text).read(&|_| None).unwrap();
    let (one, two) = (issues().start().await, issues().start().await);
    let outside = config(Target::command("none", [])).environment;
    let mut config = file.clone().into_config(outside).with_limits(limits());
    let targets = [("a", &one), ("b", &two)];
    config.servers = targets
        .map(|(name, peer)| UpstreamConfig::new(name, Target::http(peer.url.clone())))
        .into();
    let harness = Harness::behind(one, config).await;
    let list = harness.ask_under("v", "tools/list", json!({})).await;
    let names = names(&list).into_iter().map(str::to_owned).collect();
    let mistakes = harness.gateway.unmatched_overrides().into_iter();
    let mistakes = mistakes.map(|(id, mistake)| file.places.diagnostic(&id, &mistake).to_string());
    let mistakes = mistakes.collect();
    ((harness, two), names, mistakes)
}

/// SV-11: what a variant takes away or fixes holds for the servers' own names; what it shows is meant by the
/// names that clients see, and a pattern that is not says so with its line and the fix.
#[tokio::test]
async fn names_of_the_servers_narrow_and_never_widen() {
    let (_servers, shown, slips) = behind_two("{tools: [search_*]}").await;
    assert_eq!(shown, [""; 0]);
    let said = "3:15: `variants.v.tools[0]` matches nothing that clients see: the item is `search_issues` on server `a`, and clients see \
                `a_search_issues`; name the server, as in `{server: a, name: search_*}`, or write `server: \"*\"` for all servers";
    assert_eq!(slips, [said]);
    let all = "{tools: [{name: search_*, server: \"*\"}]}";
    let (_servers, shown, slips) = behind_two(all).await;
    assert_eq!(shown, ["a_search_issues", "b_search_issues"]);
    assert_eq!(slips, [""; 0]);
    let (_servers, shown, slips) = behind_two("{tools: {exclude: [\"*_issue*\"]}}").await;
    assert_eq!(shown, ["a_admin_purge", "b_admin_purge"]);
    assert_eq!(slips, [""; 0]);

    let fixed =
        "{overrides: {tools: {search_issues: {arguments: {owner: {fixed: acme}, ownr: {}}}}}}";
    let ((harness, _two), shown, slips) = behind_two(fixed).await;
    assert_eq!(shown.len(), 6);
    let said = "3:77: `variants.v.overrides.tools.search_issues.arguments.ownr` is not an argument; did you mean `owner`?";
    assert_eq!(slips, [said, said]);
    for name in ["a_search_issues", "b_search_issues"] {
        let call = |arguments: Value| json!({"name": name, "arguments": arguments});
        let given = call(json!({"query": "xy"}));
        let answer = harness.ask_under("v", "tools/call", given).await;
        let sent = &answer["result"]["said"]["arguments"];
        assert_eq!(sent, &json!({"query": "xy", "owner": "acme"}), "{answer}");
        let given = call(json!({"query": "xy", "owner": "evil"}));
        let answer = harness.ask_under("v", "tools/call", given).await;
        answer.has("/result/isError", true);
    }
}
