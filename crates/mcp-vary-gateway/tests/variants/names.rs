//! The names of a view and the names of the server: in requests, in results, and in headers.

use std::num::NonZeroUsize;

use mcp_vary::json::Json;
use mcp_vary_gateway::Base;
use mcp_vary_view::{ArgumentOverride, Dialect, PromptOverride, ToolOverride};

use crate::support::*;

/// A modern server whose tool `search` has arguments that travel as headers, and that fails on request.
fn server() -> Script {
    let echoed = |params: &Value| {
        json!({
            "content": [], "isError": false, "said": params, "messages": [], "contents": [],
            "completion": {"values": ["one"]},
        })
    };
    Script::new(Era::Modern, "names")
        .declares(json!({"completions": {}}))
        .lists(json!({"tools": tools()}))
        .lists(json!({
            "prompts": [
                {"name": "triage", "arguments": [
                    {"name": "repository", "required": true}, {"name": "owner"}, {"name": "tone"},
                ]},
                {"name": "secret", "arguments": [{"name": "x"}]},
            ],
            "resources": [{"uri": "doc:index", "name": "index"}],
            "resourceTemplates": [
                {"uriTemplate": "doc:{name}", "name": "doc"},
                {"uriTemplate": "log:{day}", "name": "log"},
            ],
        }))
        .on(
            "resources/read",
            |params| json!({"contents": [{"uri": "deep:1", "text": ""}], "said": params}),
        )
        .on_call(echoed)
        .may_reply("tools/call", |seen| called(seen, &seen.body["params"]))
        .on("prompts/get", echoed)
        .may_reply("prompts/get", |seen| {
            let is_rude = seen.body["params"]["arguments"]["tone"] == "rude";
            is_rude.then(|| seen.refuse(200, -32602, "prompt triage takes no 'repository'"))
        })
        .on("completion/complete", echoed)
}

fn tools() -> Value {
    let schema = json!({
        "type": "object", "required": ["query"],
        "properties": {
            "query": {"type": "string", "x-mcp-header": "Query"},
            "region": {"type": "string", "x-mcp-header": "Region"},
            "limit": {"type": "integer", "x-mcp-header": "Limit"},
            "deep": {"type": "object", "properties": {
                "flag": {"type": "boolean", "x-mcp-header": "Flag"},
            }},
        },
    });
    json!([
        {"name": "search", "description": "Searches. In ways.", "inputSchema": schema,
         "annotations": {"readOnlyHint": true}},
        {"name": "point", "description": "Points.", "inputSchema": {"type": "object"}},
    ])
}

/// What a call does that the arguments ask to go wrong, or to point somewhere.
fn called(seen: &ReceivedRequest, params: &Value) -> Option<Reply> {
    let arguments = &params["arguments"];
    let text = "Tool search failed: 'query' is 'short'; see \"limit\".\nquery\n  too short";
    let content =
        json!([{"type": "text", "text": text}, {"type": "image", "data": "", "mimeType": "i/p"}]);
    match arguments["query"].as_str().or(arguments["to"].as_str())? {
        "fail" => Some(seen.answer(&json!({"content": content, "isError": true}))),
        "tell" => Some(seen.answer(&json!({"content": content}))),
        "refuse" => Some(seen.refuse(200, -32602, "Tool search takes no `region`")),
        uri if params["name"] == "point" => Some(seen.answer(&json!({"content": [
            {"type": "resource_link", "uri": uri, "name": "x"},
        ]}))),
        _ => None,
    }
}

fn renamed(name: &str) -> ArgumentOverride {
    default_with::<ArgumentOverride>(|it| it.name = Some(name.into()))
}

fn fixed(value: &'static str) -> ArgumentOverride {
    default_with::<ArgumentOverride>(|it| it.fixed = json_text(value))
}

/// `all`, and `ours` that calls most things otherwise.
fn variants(prefix: &str) -> Vec<VariantConfig> {
    let mut ours = variant("ours");
    let mut search = default_with::<ToolOverride>(|it| it.name = Some("find".into()));
    search.arguments.insert("query".into(), renamed("q"));
    search.arguments.insert("region".into(), fixed("eu"));
    let limit =
        default_with::<ArgumentOverride>(|it| it.default = Some(Json::parse("10").unwrap()));
    search.arguments.insert("limit".into(), limit);
    ours.tool_overrides
        .insert(format!("{prefix}search"), search);
    let mut triage = default_with::<PromptOverride>(|it| it.name = Some("sort".into()));
    triage
        .arguments
        .insert("repository".into(), renamed("repo"));
    triage.arguments.insert("owner".into(), fixed("acme"));
    ours.prompt_overrides
        .insert(format!("{prefix}triage"), triage);
    ours.prompts = serde_json::from_str(r#"{"exclude": ["*secret"]}"#).unwrap();
    ours.resources = serde_json::from_str(r#"{"exclude": ["log:*"]}"#).unwrap();
    ours.tools = serde_json::from_str(r#"{"exclude": ["*point"]}"#).unwrap();
    let mut hiding = variant("hiding");
    let mut search = ToolOverride::default();
    let hidden = default_with::<ArgumentOverride>(|it| it.hidden = true);
    search.arguments.insert("region".into(), hidden);
    hiding
        .tool_overrides
        .insert(format!("{prefix}search"), search);
    let mut gemini = variant("gemini");
    gemini.style.dialect = Some(Dialect::Gemini);
    let compact = variant("compact").with_base(Base::Compact);
    vec![variant("all"), ours, hiding, gemini, compact]
}

const HEADERS: [&str; 4] = [
    "mcp-param-query",
    "mcp-param-region",
    "mcp-param-limit",
    "mcp-param-flag",
];

/// Calls a tool with these headers. What the server got: the arguments, and its own headers.
async fn call(
    harness: &Harness,
    variant: &str,
    params: Value,
    headers: &[(&str, &str)],
) -> Result<(Value, Vec<String>), (u16, Value)> {
    let before = harness.peer.of("tools/call").len();
    let params = under(variant, params);
    let mut post = HttpRequest::modern_request("tools/call", params);
    for (name, value) in headers {
        post = post.with(&format!("Mcp-Param-{name}"), *value);
    }
    let answer = harness.connect().await.ask(&post).await;
    let message = answer.json();
    if message.get("error").is_some() {
        let found = harness.peer.of("tools/call").len();
        assert_eq!(found, before, "nothing is sent on");
        return Err((answer.status, message["error"].clone()));
    }
    let seen = soon(harness.peer.wait_for("tools/call", before + 1)).await;
    let seen = &seen[before];
    let headers = HEADERS.iter().filter_map(|name| {
        let value = seen.header(name)?;
        Some(format!("{}={value}", name.trim_start_matches("mcp-param-")))
    });
    Ok((seen.body["params"]["arguments"].clone(), headers.collect()))
}

/// The arguments and headers that reached the server, or the status and the error of the refusal.
type Outcome = Result<(Value, Vec<String>), (u16, Value)>;

#[track_caller]
fn reached(outcome: Outcome, arguments: Value, headers: &[&str]) {
    let (got, sent) = outcome.unwrap();
    assert_eq!(got, arguments);
    assert_eq!(sent, headers);
}

/// SV-11, SV-12: what a client sends is held against the view's schema; what goes on is made from the
/// server's own.
#[tokio::test]
async fn headers_are_those_of_the_view_in_front_and_of_the_server_behind() {
    let harness = Harness::of_variants(server(), variants("")).await;
    let find = |arguments: Value| json!({"name": "find", "arguments": arguments});
    // The header of a renamed argument says what it says by its new name; what is fixed or left out has
    // no header in front, and its own behind.
    let header = [("Query", "=?base64?w6k=?=")];
    reached(
        call(&harness, "ours", find(json!({"q": "é"})), &header).await,
        json!({"query": "é", "region": "eu", "limit": 10}),
        &["query==?base64?w6k=?=", "region=eu", "limit=10"],
    );
    let all = [("Query", "x"), ("Limit", "7.0"), ("Flag", "true")];
    let given = json!({"q": "x", "limit": 7, "deep": {"flag": true}});
    reached(
        call(&harness, "ours", find(given), &all).await,
        json!({"query": "x", "limit": 7, "deep": {"flag": true}, "region": "eu"}),
        &["query=x", "region=eu", "limit=7", "flag=true"],
    );
    let search = |arguments: Value| json!({"name": "search", "arguments": arguments});
    let (given, header) = (json!({"query": "x"}), [("Query", "x")]);
    let outcome = call(&harness, "hiding", search(given.clone()), &header).await;
    reached(outcome, given, &["query=x"]);
    for variant in ["all", "compact"] {
        let headers = [("Query", "x"), ("Region", "us")];
        let given = json!({"query": "x", "region": "us"});
        let outcome = call(&harness, variant, search(given.clone()), &headers).await;
        reached(outcome, given, &["query=x", "region=us"]);
    }
    // Whatever the dialect lists of the annotations, the server gets its headers.
    let list = harness.ask_under("gemini", "tools/list", json!({})).await;
    let is_listed = list.to_string().contains("x-mcp-header");
    let headers: &[_] = if is_listed { &[("Query", "x")] } else { &[] };
    let given = json!({"query": "x"});
    let outcome = call(&harness, "gemini", search(given.clone()), headers).await;
    reached(outcome, given, &["query=x"]);
}

/// SV-11: a header that does not say what the view's argument says is refused in the view's words.
#[tokio::test]
async fn headers_that_contradict_the_views_arguments_are_refused() {
    let harness = Harness::of_variants(server(), variants("")).await;
    let find = json!({"name": "find", "arguments": {"q": "x"}});
    for (headers, named) in [
        (&[][..], "`q`"),
        (&[("Query", "y")], "`q`"),
        (&[("Query", "x"), ("Limit", "10")], "`limit`"),
        (&[("Query", "x"), ("Flag", "true")], "`deep.flag`"),
    ] {
        let outcome = call(&harness, "ours", find.clone(), headers).await;
        let (status, error) = outcome.unwrap_err();
        let expected = (400, &json!(-32020));
        assert_eq!((status, &error["code"]), expected, "{headers:?}");
        let why = error["message"].as_str().unwrap();
        assert!(why.contains(named), "{headers:?}: {why}");
        assert!(!why.contains("argument `query`"), "{why}");
    }
    // A header that belongs to nothing in the view is nobody's business, and is not sent on.
    let headers = [("Query", "x"), ("Region", "us")];
    reached(
        call(&harness, "ours", find, &headers).await,
        json!({"query": "x", "region": "eu", "limit": 10}),
        &["query=x", "region=eu", "limit=10"],
    );
}

/// SV-12: what goes wrong is said in the view's names, where they are sure to be meant.
#[tokio::test]
async fn errors_speak_of_what_the_view_lists() {
    let harness = Harness::of_variants(server(), variants("")).await;
    let ask_for = async |variant: &str, name: &str, key: &str, what: &str| {
        let call = under(variant, json!({"name": name, "arguments": {key: what}}));
        harness
            .ask(ClientKind::StdioModern, "tools/call", call)
            .await
    };
    let failed = ask_for("ours", "find", "q", "fail").await;
    let said = &failed["result"]["content"][0]["text"];
    let expected = "Tool find failed: 'q' is 'short'; see \"limit\".\nq\n  too short";
    assert_eq!(said, expected);
    failed.has("/result/content/1/type", "image");
    let refused = ask_for("ours", "find", "q", "refuse").await;
    refused.has("/error/message", "Tool find takes no `region`");
    // What is no error is the server's word, and so is everything where nothing is renamed.
    let told = ask_for("ours", "find", "q", "tell").await;
    let own = "Tool search failed: 'query' is 'short'; see \"limit\".\nquery\n  too short";
    told.has("/result/content/0/text", own);
    let failed = ask_for("all", "search", "query", "fail").await;
    failed.has("/result/content/0/text", own);
    let get = json!({"name": "sort", "arguments": {"repo": "r", "tone": "rude"}});
    let refused = harness.ask_under("ours", "prompts/get", get).await;
    refused.has("/error/message", "prompt sort takes no 'repo'");
}

fn complete(reference: Value, name: &str, context: Option<Value>) -> Value {
    let mut params = json!({"ref": reference, "argument": {"name": name, "value": "v"}});
    if let Some(context) = context {
        params["context"] = json!({"arguments": context, "x": 1.0});
    }
    params
}

fn prompt(name: &str) -> Value {
    json!({"type": "ref/prompt", "name": name})
}

/// SV-11: a completion is asked for in the view's names, and what was completed before is, too.
#[tokio::test]
async fn completions_are_those_of_the_view() {
    let harness = Harness::of_variants(server(), variants("")).await;
    for way in ClientKind::ALL {
        let ask = async |params: Value| {
            let arguments = under("ours", params);
            let answer = harness.ask(way, "completion/complete", arguments).await;
            answer.has("/result/completion/values", json!(["one"]));
            answer["result"]["said"].clone()
        };
        let arguments = complete(prompt("sort"), "repo", Some(json!({"tone": "mild"})));
        let said = ask(arguments).await;
        assert_eq!(said["ref"]["name"], "triage", "{way:?}");
        said.has("/argument", json!({"name": "repository", "value": "v"}));
        let context = json!({"arguments": {"tone": "mild", "owner": "acme"}, "x": 1.0});
        let found = &said["context"];
        assert_eq!(*found, context, "what is fixed is known to the server");
        let said = ask(complete(prompt("sort"), "tone", Some(json!({"repo": "r"})))).await;
        let context = json!({"repository": "r", "owner": "acme"});
        said.has("/context/arguments", context);
        let said = ask(complete(prompt("sort"), "tone", None)).await;
        said.has("/context/arguments", json!({"owner": "acme"}));
    }
    let arguments = complete(prompt("triage"), "tone", None);
    let unchanged = harness
        .ask_under("all", "completion/complete", arguments)
        .await;
    // Nothing is added to what is not changed.
    assert_eq!(unchanged["result"]["said"].get("context"), None);
}

/// SV-12: what a view hides or calls otherwise cannot be completed in it.
#[tokio::test]
async fn what_a_view_does_not_show_has_no_completions() {
    let harness = Harness::of_variants(server(), variants("")).await;
    let template = |uri: &str| json!({"type": "ref/resource", "uri": uri});
    for params in [
        complete(prompt("triage"), "tone", None),
        complete(prompt("secret"), "x", None),
        complete(prompt("nobody"), "x", None),
        complete(prompt("sort"), "repository", None),
        complete(prompt("sort"), "owner", None),
        complete(prompt("sort"), "tone", Some(json!({"owner": "evil"}))),
        complete(prompt("sort"), "tone", Some(json!({"repository": "r"}))),
        complete(template("log:{day}"), "day", None),
        complete(template("no:{x}"), "x", None),
    ] {
        let before = harness.peer.of("completion/complete").len();
        let answer = harness
            .ask_under("ours", "completion/complete", params.clone())
            .await;
        let error = &answer["error"];
        assert_eq!(error["code"], -32602, "{params} {answer}");
        assert_eq!(error["data"]["activeVariant"], "ours", "{params} {answer}");
        let found = harness.peer.of("completion/complete").len();
        assert_eq!(found, before, "{params}");
    }
    let shown = complete(template("doc:{name}"), "name", None);
    let answer = harness
        .ask_under("ours", "completion/complete", shown)
        .await;
    assert!(answer["result"].is_object(), "{answer}");
    let hidden_elsewhere = complete(template("log:{day}"), "day", None);
    let answer = harness
        .ask_under("all", "completion/complete", hidden_elsewhere)
        .await;
    assert!(answer["result"].is_object(), "{answer}");
}

/// Before two servers of that kind, so that links decide what exists.
async fn two() -> (Harness, ScriptedServer) {
    let mut all = variants("*");
    let mut no_prompts = variant("no-prompts");
    no_prompts.prompts = serde_json::from_str(r#"{"exclude": ["*"]}"#).unwrap();
    all.push(no_prompts);
    let servers = [server().start().await, server().start().await];
    let adapt = |config: Config| config.with_variants_of(all).unwrap();
    Harness::behind_two(servers, adapt).await
}

async fn can_read(harness: &Harness, variant: &str, uri: &str) -> bool {
    let answer = harness
        .ask_under(variant, "resources/read", json!({"uri": uri}))
        .await;
    if answer["result"].is_object() {
        return true;
    }
    answer.has("/error/code", -32602);
    answer.has("/error/data/activeVariant", variant);
    false
}

/// SV-14: what a tool pointed to exists where that tool does, whoever called it.
#[tokio::test]
async fn a_link_exists_where_the_tool_that_gave_it_is_visible() {
    let (harness, two) = two().await;
    assert!(!can_read(&harness, "all", "see:1").await);
    let point = json!({"name": "two_point", "arguments": {"to": "see:1"}});
    let answer = harness.ask_under("all", "tools/call", point).await;
    answer.has("/result/content/0/uri", "see:1");
    for (variant, exists) in [("all", true), ("no-prompts", true), ("ours", false)] {
        let found = can_read(&harness, variant, "see:1").await;
        assert_eq!(found, exists, "{variant}");
    }
    assert!(two.of("resources/read").len() == 2 && harness.peer.of("resources/read").is_empty());
    // What was read there points on.
    assert!(can_read(&harness, "all", "deep:1").await);
    assert!(!can_read(&harness, "ours", "deep:1").await);
}

/// SV-14: what a view lists, has a template for, or neither.
#[tokio::test]
async fn a_resource_exists_where_it_is_listed_or_has_a_template() {
    let (harness, _two) = two().await;
    for (variant, uri, exists) in [
        ("all", "doc:index", true),
        ("all", "doc:other", true),
        ("all", "log:monday", true),
        ("ours", "doc:index", true),
        ("ours", "doc:other", true),
        ("ours", "log:monday", false),
        ("ours", "see:2", false),
        ("all", "see:2", false),
    ] {
        let found = can_read(&harness, variant, uri).await;
        assert_eq!(found, exists, "{variant} {uri}");
    }
}

/// SV-14: a tool that points to many things makes none be forgotten that another pointed to.
#[tokio::test]
async fn a_loud_tool_does_not_end_the_links_of_another() {
    let loud = server().may_reply("tools/call", |seen| {
        let arguments = &seen.body["params"]["arguments"];
        let turn = &arguments["turn"];
        let link = |n: u32| json!({"type": "resource_link", "uri": format!("many:{turn}:{n}"), "name": "x"});
        let content: Vec<_> = (0..250).map(link).collect();
        (arguments["to"] == "many").then(|| seen.answer(&json!({"content": content})))
    });
    let servers = [loud.start().await, server().start().await];
    let adapt = |config: Config| config.with_page_size(NonZeroUsize::MAX);
    let (harness, _two) = Harness::behind_two(servers, adapt).await;
    for name in ["one_point", "two_point"] {
        let call = json!({"name": name, "arguments": {"to": format!("see:{name}")}});
        harness.ask_under("standard", "tools/call", call).await;
    }
    let mut http = harness.connect().await;
    for turn in 0..40 {
        // The same tool under the name that a call of the other gives it would be the same one.
        let arguments = json!({"query": "x", "to": "many", "turn": turn});
        let params = json!({"name": "one_search", "arguments": arguments});
        let post = HttpRequest::modern_request("tools/call", params);
        let answer = http.ask(&post.with("Mcp-Param-Query", "x")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    assert!(can_read(&harness, "standard", "see:one_point").await);
    assert!(can_read(&harness, "standard", "see:two_point").await);
    assert!(can_read(&harness, "standard", "many:39:249").await);
    // Memory has a bound.
    assert!(!can_read(&harness, "standard", "many:0:0").await);
}

/// SV-12: a call of what another view shows says what one of nothing says.
#[tokio::test]
async fn what_is_hidden_is_as_unknown_as_what_is_not() {
    let harness = Harness::of_variants(server(), variants("")).await;
    for (method, key, hidden, unknown) in [
        ("tools/call", "name", "point", "nobody"),
        ("prompts/get", "name", "secret", "nobody"),
        ("resources/read", "uri", "log:x", "nil:x"),
    ] {
        let error = async |id: &str| {
            let answer = harness.ask_under("ours", method, json!({key: id})).await;
            answer["error"].to_string()
        };
        let of_hidden = error(hidden).await.replace(hidden, unknown);
        assert_eq!(of_hidden, error(unknown).await, "{method}");
    }
}
