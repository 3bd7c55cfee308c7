//! Resources under the URIs of a variant: in lists, requests, links and errors.

use mcp_vary_config::read_resources;
use mcp_vary_view::ResourceOverride;

use crate::support::*;

/// A modern server with files, whose tool `point` points to what its argument `to` says.
fn server() -> Script {
    let link = json!({"type": "resource_link", "uri": "doc:index", "name": "x"});
    Script::new(Era::Modern, "files")
        .declares(json!({"completions": {}}))
        .tools(&["point"])
        .lists(json!({
            "prompts": [{"name": "look"}],
            "resources": [
                {"uri": "doc:index", "name": "index", "mimeType": "text/plain"},
                {"uri": "file:///srv/app/README", "name": "readme", "mimeType": "text/plain"},
                {"uri": "file:///srv/app/src/main", "name": "main"},
            ],
            "resourceTemplates": [
                {"uriTemplate": "file:///srv/app/{+path}", "name": "file", "mimeType": "text/plain"},
                {"uriTemplate": "log:{day}", "name": "log"},
            ],
        }))
        .reply("resources/read", |seen| {
            content(seen, seen.body["params"]["uri"].as_str().unwrap())
        })
        .on_call(|params| pointed(params["arguments"]["to"].as_str().unwrap()))
        .result("prompts/get", json!({"messages": [{"role": "user", "content": link}]}))
        .on("completion/complete", |params| json!({"completion": {"values": ["one"]}, "said": params}))
}

/// What is at a URI; beside it another one, as a directory has it.
fn content(seen: &ReceivedRequest, uri: &str) -> Reply {
    if uri.ends_with("gone") {
        let error = json!({
            "code": -32602, "message": format!("Resource not found: {uri}."), "data": {"uri": uri},
        });
        let message = json!({"jsonrpc": "2.0", "id": seen.id(), "error": error});
        return Reply::json(400, &message);
    }
    let content = |uri: &str| json!({"uri": uri, "mimeType": "text/plain", "text": uri});
    seen.answer(&json!({
        "contents": [content(uri), content("doc:index"), content("log:1")], "said": seen.body["params"]["uri"],
        "name": seen.header("mcp-name"),
    }))
}

fn pointed(to: &str) -> Value {
    let text = json!({"type": "text", "text": format!("see {to}")});
    if to.ends_with("gone") {
        return json!({"content": [text], "isError": true});
    }
    let link = json!({"type": "resource_link", "uri": to, "name": "x"});
    let held = json!({"type": "resource", "resource": {"uri": to, "text": to}});
    json!({"content": [text, link, held]})
}

/// `all`, and `ours` that has URIs of its own.
fn variants() -> Vec<VariantConfig> {
    let mut ours = variant("ours");
    let markdown = Some("text/markdown");
    for (native, uri, mime_type) in [
        ("doc:index", "doc:start", None),
        ("file:///srv/app/{+path}", "app:/{+path}", markdown),
        ("file:///srv/app/README", "app:readme", markdown),
        ("log:{day}", "day:{day}/log", None),
    ] {
        let change = ResourceOverride {
            uri: Some(uri.to_owned()),
            mime_type: mime_type.map(str::to_owned),
            ..ResourceOverride::default()
        };
        ours.resource_overrides.insert(native.to_owned(), change);
    }
    let mut few = ours.clone();
    few.variant = ServerVariant::new("few".parse().unwrap(), "For tests.");
    few.resources = serde_json::from_value(json!({"exclude": ["log:*", "*secret*"]})).unwrap();
    vec![variant("all"), ours, few]
}

/// Before two servers of that kind, so that lists, templates and links decide what exists.
async fn two() -> (Harness, ScriptedServer) {
    let servers = [server().start().await, server().start().await];
    let adapt = |config: Config| config.with_variants_of(variants()).unwrap();
    Harness::behind_two(servers, adapt).await
}

async fn read(harness: &Harness, client_kind: ClientKind, variant: &str, uri: &str) -> Value {
    let uri = json!({"uri": uri});
    harness
        .ask(client_kind, "resources/read", under(variant, uri))
        .await
}

fn column(list: &Value, key: &str, members: [&str; 2]) -> Value {
    let items = list["result"][key].as_array().unwrap().iter();
    let items = items.map(|item| json!([item[members[0]], item[members[1]]]));
    items.collect()
}

/// SV-11: URIs and MIME types are listed as the variant has them; what a template stands for moves with it.
#[tokio::test]
async fn a_variant_lists_uris_and_mime_types_of_its_own() {
    let harness = Harness::of_variants(server(), variants()).await;
    for way in ClientKind::ALL {
        let list = harness
            .ask(way, "resources/list", under("ours", json!({})))
            .await;
        let listed = column(&list, "resources", ["uri", "mimeType"]);
        let expected = json!([
            ["doc:start", "text/plain"],
            ["app:readme", "text/markdown"],
            ["app:/src/main", null],
        ]);
        assert_eq!(listed, expected, "{way:?}");
        let list = harness
            .ask(way, "resources/templates/list", under("ours", json!({})))
            .await;
        let listed = column(&list, "resourceTemplates", ["uriTemplate", "mimeType"]);
        let expected = json!([["app:/{+path}", "text/markdown"], ["day:{day}/log", null]]);
        assert_eq!(listed, expected, "{way:?}");
    }
    let kind = ClientKind::HttpModern;
    let list = harness
        .ask(kind, "resources/list", under("all", json!({})))
        .await;
    list.has("/result/resources/1/uri", "file:///srv/app/README");
}

/// What is read as `uri`, and what the server was asked for.
async fn is_read(
    harness: &Harness,
    client_kind: ClientKind,
    variant: &str,
    uri: &str,
    native: &str,
) {
    let answer = read(harness, client_kind, variant, uri).await;
    let result = &answer["result"];
    let at = format!("{variant} {uri} {client_kind:?} {answer}");
    assert_eq!(result["said"], native, "{at}");
    // The header that a modern server checks.
    assert_eq!(result["name"], native, "{at}");
    assert_eq!(result["contents"][0]["uri"], uri, "{at}");
    // What is read says what the server has, whatever is listed.
    result.has("/contents/0/mimeType", "text/plain");
    result.has("/contents/0/text", native);
}

/// SV-11, SV-12, SV-14: a resource is read by the variant's URI, and by no other.
#[tokio::test]
async fn a_resource_is_read_by_the_uri_of_its_variant() {
    let (alone, (together, _two)) = (
        Harness::of_variants(server(), variants()).await,
        two().await,
    );
    for harness in [&alone, &together] {
        for way in ClientKind::ALL {
            is_read(harness, way, "ours", "doc:start", "doc:index").await;
        }
        let way = ClientKind::HttpModern;
        is_read(harness, way, "ours", "app:readme", "file:///srv/app/README").await;
        is_read(harness, way, "ours", "app:/a/b c", "file:///srv/app/a/b c").await;
        is_read(harness, way, "few", "app:/a", "file:///srv/app/a").await;
        is_read(harness, way, "ours", "day:1/log", "log:1").await;
        let readme = "file:///srv/app/README";
        is_read(harness, way, "all", readme, readme).await;
        let answer = read(harness, way, "ours", "app:/a").await;
        for (at, uri) in ["app:/a", "doc:start", "day:1/log"].into_iter().enumerate() {
            answer.has(&format!("/result/contents/{at}/uri"), uri);
        }
        for (variant, uri) in [
            ("ours", "doc:index"),
            ("ours", "file:///srv/app/README"),
            ("ours", "file:///srv/app/a"),
            ("ours", "log:1"),
            // It is `app:readme`.
            ("ours", "app:/README"),
            ("few", "day:1/log"),
            ("few", "app:/secret"),
        ] {
            let answer = read(harness, way, variant, uri).await;
            let error = &answer["error"];
            assert_eq!(error["code"], -32602, "{variant} {uri} {answer}");
            assert_eq!(error["data"]["activeVariant"], variant, "{uri}");
        }
    }
}

/// SV-12: that there is something of that URI in another variant is not told.
#[tokio::test]
async fn what_moved_is_as_unknown_as_what_is_not() {
    let (harness, _two) = two().await;
    let error = async |uri: &str| {
        let answer = read(&harness, ClientKind::HttpModern, "ours", uri).await;
        answer["error"].to_string()
    };
    let moved = error("doc:index").await;
    assert_eq!(moved.replace("index", "nobody"), error("doc:nobody").await);
}

/// SV-11, SV-14: what a result points to is what the variant's clients can read.
#[tokio::test]
async fn links_lead_to_the_variants_own_resources() {
    let (harness, _two) = two().await;
    let way = ClientKind::StdioModern;
    for (to, shown) in [
        ("doc:index", "doc:start"),
        ("file:///srv/app/x", "app:/x"),
        ("see:1", "see:1"),
        ("file:///srv/app/README", "app:readme"),
    ] {
        let call = json!({"name": "one_point", "arguments": {"to": to}});
        let answer = harness.ask(way, "tools/call", under("ours", call)).await;
        let content = &answer["result"]["content"];
        assert_eq!(content[1]["uri"], shown, "{answer}");
        assert_eq!(content[2]["resource"]["uri"], shown, "{answer}");
        let expected = format!("see {to}");
        assert_eq!(content[0]["text"], expected, "what a tool says stays");
        is_read(&harness, ClientKind::HttpModern, "ours", shown, to).await;
    }
    let look = json!({"name": "one_look"});
    let answer = harness.ask(way, "prompts/get", under("ours", look)).await;
    let link = &answer["result"]["messages"][0]["content"];
    assert_eq!(link["uri"], "doc:start", "{answer}");
}

/// SV-11: completions are asked for by the variant's template, and of no other.
#[tokio::test]
async fn completions_are_those_of_the_variants_template() {
    let (alone, (together, _two)) = (
        Harness::of_variants(server(), variants()).await,
        two().await,
    );
    for harness in [&alone, &together] {
        let complete = async |variant: &str, uri: &str| {
            let params = json!({
                "ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "path", "value": "a"},
            });
            let params = under(variant, params);
            harness.ask_modern("completion/complete", params).await
        };
        let answer = complete("ours", "app:/{+path}").await;
        let reference = &answer["result"]["said"]["ref"];
        assert_eq!(reference["uri"], "file:///srv/app/{+path}", "{answer}");
        let answer = complete("ours", "file:///srv/app/{+path}").await;
        answer.has("/error/code", -32602);
        answer.has("/error/data/activeVariant", "ours");
    }
}

/// SV-12: what a server says of its own URI is told of the variant's.
#[tokio::test]
async fn failures_speak_of_the_variants_uris() {
    let harness = Harness::of_variants(server(), variants()).await;
    for way in ClientKind::ALL {
        let answer = read(&harness, way, "ours", "app:/gone").await;
        let error = &answer["error"];
        let expected = "Resource not found: app:/gone.";
        assert_eq!(error["message"], expected, "{way:?}");
        let data = json!({"uri": "app:/gone", "activeVariant": "ours"});
        assert_eq!(error["data"], data, "{way:?}");
        let call = json!({"name": "point", "arguments": {"to": "file:///srv/app/gone"}});
        let answer = harness.ask(way, "tools/call", under("ours", call)).await;
        answer.has("/result/content/0/text", "see app:/gone");
    }
}

/// CN-15: the operator's rules are about the server's URIs, and what they make says the variant's.
#[tokio::test]
async fn what_is_told_otherwise_has_the_variants_uri() {
    let rules = "- {uris: ['doc:index'], template: 'at {{ uri }}', type: text/markdown}";
    let told = read_resources(rules).unwrap();
    let harness = Harness::with_server(server(), |mut config| {
        config.resource_results = told;
        config.with_variants_of(variants()).unwrap()
    })
    .await;
    let read = under("ours", json!({"uri": "doc:start"}));
    let wishes = features(&["format=markdown"]);
    let answer = ask_modern_as(&harness, &wishes, "resources/read", read).await;
    let content = &answer["result"]["contents"][0];
    assert_eq!(content["uri"], "doc:start", "{answer}");
    content.has("/mimeType", "text/markdown");
    content.has("/text", "at doc:start");
}

/// What is wrong with a variant that calls these so.
async fn mistakes(moves: &[(&str, &str)]) -> Vec<String> {
    let mut variant = VariantConfig::new(ServerVariant::new("v".parse().unwrap(), "d"));
    for (native, uri) in moves {
        let uri = Some((*uri).to_owned());
        let change = default_with::<ResourceOverride>(|it| it.uri = uri);
        let native = (*native).to_owned();
        variant.resource_overrides.insert(native, change);
    }
    let adapt = |config: Config| config.with_variants_of(vec![variant]).unwrap();
    let harness = Harness::with_server(server(), adapt).await;
    let mistakes = harness.gateway.unmatched_overrides().into_iter();
    mistakes.map(|(_, mistake)| mistake.to_string()).collect()
}

/// SV-11: two resources under one URI, one that there is not, and what is no URI are mistakes.
#[tokio::test]
async fn what_a_variant_calls_wrongly_is_a_slip() {
    assert_eq!(mistakes(&[("doc:index", "doc:start")]).await, [""; 0]);
    let said = mistakes(&[("doc:index", "file:///srv/app/README")]).await;
    let taken = "`resources.doc:index.uri` leaves no URI for `file:///srv/app/README`: another item has `file:///srv/app/README` in this \
                 view; give one of them another `uri`";
    assert_eq!(said, [taken]);
    let said = mistakes(&[("doc:index", "a:1"), ("file:///srv/app/README", "a:1")]).await;
    let taken = "`resources.file:///srv/app/README.uri` leaves no URI for `file:///srv/app/README`: another item has `a:1` in this view; give \
                 one of them another `uri`";
    assert_eq!(said, [taken]);
    let said = mistakes(&[("doc:indxe", "a:1")]).await;
    let unknown =
        "`resources.doc:indxe` names no resource that a server has; did you mean `doc:index`?";
    assert_eq!(said, [unknown]);
    let said = mistakes(&[("log:{day}", "day:{date}"), ("doc:index", "index")]).await;
    let unfit = [
        "`resources.doc:index.uri` is not a URI; begin with a scheme, such as `docs:`, and leave out white space",
        "`resources.log:{day}.uri` has `{date}` instead of `{day}` of the server's template; write the same expressions in \
         the same order, and change only the text around them",
    ];
    assert_eq!(said, unfit);
}
