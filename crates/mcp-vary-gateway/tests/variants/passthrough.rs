//! `passthrough`: the feature tags of clients reach servers that negotiate content themselves, and nothing is shaped twice.

use std::collections::BTreeSet;

use mcp_vary::extension::{
    CLIENT_CAPABILITIES_META, CONTENT_NEGOTIATION, SERVER_VARIANT_META, SERVER_VARIANTS,
};
use mcp_vary_upstream::Isolation;

use super::model_ranking::{everybody, key};
use super::rules_by_variant;
use super::upstream_variants::in_front_of;
use crate::support::*;

const TAGS: [&[&str]; 8] = [
    &["human"],
    &["agent"],
    &["agent", "format=json"],
    &["human", "format=markdown", "verbosity=compact"],
    &["format=text"],
    &["format=json", "!interactive", "x-acme=1"],
    &["verbosity=compact"],
    &[],
];

/// EXT-9, CN-19, a Vary behind a Vary, which selects a variant of the inner one: a client of either era and transport that
/// declares feature tags gets byte for byte what the inner one alone answers.
#[tokio::test]
async fn results_of_a_vary_behind_a_vary_are_shaped_by_the_inner_one() {
    let inner = Harness::configured(rules_by_variant::server(), rules_by_variant::RULES).await;
    let mut changed = 0;
    for variant in ["standard", "names"] {
        let mut config = in_front_of(&inner, Some(variant));
        config.servers[0].passthrough = true;
        // Each set of tags needs a session at a server that has sessions.
        config.servers[0].limits.connections = 2 * TAGS.len();
        config.limits.classes = 2 * TAGS.len();
        let outer = Harness::alone(config).await;
        for way in ClientKind::ALL {
            for tags in TAGS {
                let capabilities = features(tags);
                for (method, params) in [
                    ("tools/call", tool("list")),
                    ("resources/read", json!({"uri": "map://all"})),
                    ("prompts/get", json!({"name": "plan"})),
                ] {
                    let direct = under(variant, params.clone());
                    let direct = way.text(&inner, &capabilities, method, direct).await;
                    let passed = way.text(&outer, &capabilities, method, params).await;
                    assert_eq!(passed, direct, "{way:?} {tags:?} {variant} {method}");
                    changed += usize::from(direct.contains("vary/applied"));
                }
            }
        }
        if variant == "names" {
            // Rules of the inner one that depend on tags apply.
            let call = tool("list");
            let called = ask_modern_as(&outer, &features(&["human"]), "tools/call", call).await;
            assert_eq!(texts(&called["result"]), ["Bern and Thun"], "{called}");
        }
    }
    // So that the comparison is about shaped results, too.
    assert!(changed > 40, "{changed}");
}

/// The tags that a request reached a server with: those of its `_meta`, or of the handshake.
fn tags(capabilities: &Value) -> Option<Vec<&str>> {
    let tags = &capabilities["extensions"][CONTENT_NEGOTIATION]["features"];
    let tags = tags.as_array()?.iter().filter_map(Value::as_str);
    Some(tags.collect())
}

/// A server of either era with a variant of its own, which may negotiate content.
fn server(is_modern: bool, negotiates: bool) -> Script {
    let offered = json!({"availableVariants": [{"id": "agent", "description": "For agents."}]});
    let mut extensions = json!({SERVER_VARIANTS: offered});
    if negotiates {
        extensions[CONTENT_NEGOTIATION] = json!({});
    }
    let era = if is_modern { Era::Modern } else { Era::Legacy };
    Script::new(era, "crm")
        .declares(json!({"extensions": extensions}))
        .tools(&["list"])
        .results(json!({"tools/call": {
            "content": [{"type": "text", "text": "{\"n\":1}"}], "structuredContent": {"n": 1},
        }}))
}

/// A gateway in front of the variant `agent` of `servers`, with `passthrough` and further keys of the file.
async fn in_front(servers: &[(&str, &ScriptedServer)], more: &str) -> Harness {
    in_front_of_servers(servers, "", more).await
}

/// The same, with further keys of each server.
async fn in_front_of_servers(
    servers: &[(&str, &ScriptedServer)],
    keys: &str,
    more: &str,
) -> Harness {
    let entry = |(name, server): &(&str, &ScriptedServer)| {
        let url = &server.url;
        format!("  {name}: {{url: \"{url}\", variant: agent, passthrough: on{keys}}}\n")
    };
    let entries: String = servers.iter().map(entry).collect();
    let text = format!("servers:\n{entries}{more}");
    let config = of_file(&text);
    Harness::alone(config).await
}

/// The tags with which `server` got its last call, under its variant `agent`.
fn tags_of_last_call(server: &ScriptedServer, is_modern: bool) -> Option<Vec<String>> {
    let owned = |tags: Vec<&str>| tags.into_iter().map(str::to_owned).collect();
    let calls = server.of("tools/call");
    let call = calls.last().unwrap();
    let meta = &call.body["params"]["_meta"];
    assert_eq!(meta[SERVER_VARIANT_META], "agent", "{}", call.body);
    if is_modern {
        return tags(&meta[CLIENT_CAPABILITIES_META]).map(owned);
    }
    // The session of the call is one of those that were opened with tags, or it was opened without.
    let opened = server.of("initialize");
    let opened = opened.last().unwrap();
    tags(&opened.body["params"]["capabilities"]).map(owned)
}

/// The tags with which sessions were opened, each once.
fn tags_of_sessions(opened: &[ReceivedRequest]) -> BTreeSet<Option<Vec<&str>>> {
    let declared = opened
        .iter()
        .map(|seen| tags(&seen.body["params"]["capabilities"]));
    declared.collect()
}

/// EXT-9: a server with `passthrough` gets the tags of each client, in `_meta` or by the session. If it negotiates content,
/// its results stay byte for byte; else they are shaped as those of any server. Both side by side.
#[tokio::test]
async fn results_of_servers_that_negotiate_content_stay_as_they_are() {
    for is_modern in [false, true] {
        let crm = server(is_modern, true).start().await;
        let web = server(is_modern, false).start().await;
        let harness = in_front(&[("crm", &crm), ("web", &web)], "").await;
        for declared in [&["agent", "format=json"][..], &["format=text", "human"]] {
            for way in ClientKind::ALL {
                let call = async |name: &str| {
                    let capabilities = features(declared);
                    let params = tool(name);
                    let called = way.ask(&harness, &capabilities, "tools/call", params).await;
                    assert!(called["result"].is_object(), "{way:?}: {called}");
                    called["result"].clone()
                };
                let result = call("crm_list").await;
                assert_eq!(texts(&result), ["{\"n\":1}"], "{way:?}: {result}");
                assert_eq!(result["structuredContent"], json!({"n": 1}), "{way:?}");
                assert_eq!(result.get("_meta"), None, "{way:?}: {result}");
                if is_modern {
                    let mut received = tags_of_last_call(&crm, is_modern).unwrap();
                    received.sort();
                    let mut expected = declared.to_vec();
                    expected.sort_unstable();
                    assert_eq!(received, expected, "{way:?}");
                }
                let result = call("web_list").await;
                assert!(result["_meta"]["vary/applied"].is_object(), "{way:?}");
            }
        }
        if !is_modern {
            let opened = crm.of("initialize");
            let declared = tags_of_sessions(&opened);
            // Sorted by key; one session of each for clients of each era.
            let expected = [vec!["agent", "format=json"], vec!["format=text", "human"]];
            assert_eq!(declared.into_iter().flatten().collect::<Vec<_>>(), expected);
        }
        let others = crm.received().into_iter().chain(web.received());
        let others = others.filter(|seen| seen.method().starts_with("tools/list"));
        for seen in others {
            let meta = &seen.body["params"]["_meta"][CLIENT_CAPABILITIES_META];
            assert_eq!(tags(meta), None, "lists do not depend on tags");
        }
    }
}

/// EXT-9, CN-16: clients that declare other tags share no session of a server that shapes by them.
#[tokio::test]
async fn sessions_of_a_server_are_not_shared_by_clients_with_other_tags() {
    let crm = server(false, true).start().await;
    let harness = in_front(&[("crm", &crm)], "").await;
    let way = ClientKind::HttpLegacy;
    for capabilities in [features(&["agent"]), json!({}), features(&["human"])] {
        let call = tool("list");
        way.ask(&harness, &capabilities, "tools/call", call).await;
    }
    let opened = crm.of("initialize");
    let expected = [None, Some(vec!["agent"]), Some(vec!["human"])];
    assert!(
        tags_of_sessions(&opened).into_iter().eq(expected),
        "{opened:?}"
    );
}

/// EXT-9: if no further session can be opened for the tags of a client, it uses a session without tags, and the gateway
/// shapes its results.
#[tokio::test]
async fn without_a_session_for_its_tags_a_client_gets_results_that_the_gateway_shapes() {
    let crm = server(false, true).start().await;
    let harness = in_front_of_servers(&[("crm", &crm)], ", connections: 1", "").await;
    for way in ClientKind::ALL {
        for (tag, text) in [("human", "**n**"), ("format=text", "n: 1")] {
            let call = tool("list");
            let capabilities = features(&[tag]);
            let called = way.ask(&harness, &capabilities, "tools/call", call).await;
            let result = &called["result"];
            assert!(result["_meta"]["vary/applied"].is_object(), "{called}");
            assert!(texts(result)[0].contains(text), "{way:?} {tag}: {called}");
        }
    }
}

/// EXT-9: the feature tags of a client of 2026-07-28 reach a server of that revision, whatever clients with sessions have
/// declared before.
#[tokio::test]
async fn tags_of_modern_clients_do_not_depend_on_clients_before_them() {
    let modern = server(true, true);
    let both = server(false, true).may_reply("server/discover", move |seen| modern.reply_to(seen));
    let crm = both.start().await;
    let harness = in_front(&[("crm", &crm)], "").await;
    let is_shaped_here = async |way: ClientKind, n: usize| {
        let call = tool("list");
        let capabilities = features(&["human", &format!("x-n={n}")]);
        let called = way.ask(&harness, &capabilities, "tools/call", call).await;
        assert!(called["result"].is_object(), "{way:?} {n}: {called}");
        called["result"].get("_meta").is_some()
    };
    let mut legacy = Vec::new();
    for n in 0..12 {
        legacy.push(is_shaped_here(ClientKind::HttpLegacy, n).await);
    }
    // Their number is bounded.
    assert_eq!((legacy[0], legacy[11]), (false, true), "{legacy:?}");
    for way in [ClientKind::HttpModern, ClientKind::StdioModern] {
        for n in 0..12 {
            assert!(!is_shaped_here(way, n).await, "{way:?} {n}");
            let received = tags_of_last_call(&crm, true);
            let expected = Some(vec!["human".to_owned(), format!("x-n={n}")]);
            assert_eq!(received, expected, "{way:?}");
        }
    }
}

/// EXT-9: a server that negotiates content and offers no variants shapes its results with `passthrough: on`, under each
/// variant of the file; not without it, and not if rules of the file shape them.
#[tokio::test]
async fn tags_reach_a_server_without_variants_that_negotiates_content() {
    let rules = "\nresults: [{variants: [compact], project: '{m: .n}'}]";
    for (is_modern, keys, rules, arrives) in [
        (true, ", passthrough: on", "", true),
        (false, ", passthrough: on", "", true),
        (true, ", passthrough: on", rules, false),
        (true, "", "", false),
    ] {
        let without_variants = json!({"extensions": {CONTENT_NEGOTIATION: {}}});
        let crm = server(is_modern, true)
            .declares(without_variants)
            .start()
            .await;
        let url = &crm.url;
        let config = of_file(&format!(
            "servers: {{crm: {{url: \"{url}\"{keys}}}}}{rules}"
        ));
        let harness = Harness::alone(config).await;
        for way in ClientKind::ALL {
            for (variant, tag) in [("standard", "human"), ("compact", "format=text")] {
                let call = under(variant, tool("list"));
                let called = ask_as(&harness, way, &features(&[tag]), "tools/call", call).await;
                let shaped = &called["result"]["_meta"]["vary/applied"];
                let found = shaped.is_null();
                assert_eq!(found, arrives, "{way:?} {keys} {rules}: {called}");
                let requests = crm.received().into_iter();
                let declared = requests.map(|seen| {
                    if is_modern {
                        seen.body["params"]["_meta"][CLIENT_CAPABILITIES_META].clone()
                    } else {
                        seen.body["params"]["capabilities"].clone()
                    }
                });
                let arrived = declared.filter(|it| tags(it) == Some(vec![tag])).count() > 0;
                assert_eq!(arrived, arrives, "{way:?} {keys} {rules}");
            }
        }
    }
}

/// EXT-9: users with a connection each: one who declares ever new tags leaves half of the connections to others. Their
/// results are shaped by the gateway.
#[tokio::test]
async fn a_user_cannot_take_all_connections_with_tags() {
    let crm = server(false, true).start().await;
    let mut config = before(&[("crm", &crm)]);
    config.servers[0].passthrough = true;
    config.servers[0].isolation = Isolation::Principal;
    config.servers[0].limits.connections = 6;
    config.authentication = Some(everybody());
    let harness = Harness::behind(crm, config).await;
    let call = async |person: u8, tag: &str| {
        let params = tool("list");
        let post = HttpRequest::modern_request_as("tools/call", params, &features(&[tag]));
        let post = post.with("Authorization", format!("Bearer {}", key(person)));
        let mut http = RawHttp::connect(harness.address()).await;
        let called = http.ask(&post).await.json();
        assert!(called["result"].is_object(), "{person} {tag}: {called}");
        called["result"].get("_meta").is_some()
    };
    let mut shaped_here = Vec::new();
    for n in 0..8 {
        shaped_here.push(call(0, &format!("x-n={n}")).await);
    }
    assert!(!shaped_here[0], "{shaped_here:?}");
    assert!(!call(0, "x-n=0").await, "{shaped_here:?}");
    // Others have their connection, and their format.
    assert!(call(1, "human").await);
    assert!(call(2, "human").await);
}

/// EXT-9: rules of the file win. A server whose results they shape gets no tags, so that no client can avoid a rule by
/// its tags.
#[tokio::test]
async fn a_server_whose_results_the_file_shapes_gets_no_tags() {
    for (about, is_shaped_here) in [
        ("", true),
        ("tools: [{server: crm}], ", true),
        ("tools: [{server: web}], ", false),
        ("variants: [compact], tools: [{server: web}], ", false),
    ] {
        let rules = format!("results: [{{{about}for: everyone, project: '{{m: .n}}'}}]");
        let crm = server(true, true).start().await;
        let web = server(true, false).start().await;
        let harness = in_front(&[("crm", &crm), ("web", &web)], &rules).await;
        for way in ClientKind::ALL {
            let call = tool("crm_list");
            let tags = features(&["agent", "format=json"]);
            let called = way.ask(&harness, &tags, "tools/call", call).await;
            let value = &called["result"]["structuredContent"];
            let key = if is_shaped_here { "m" } else { "n" };
            let expected = json!({key: 1});
            assert_eq!(*value, expected, "{way:?} {rules}: {called}");
            let received = tags_of_last_call(&crm, true);
            assert_eq!(received.is_none(), is_shaped_here, "{way:?} {rules}");
        }
    }
}

/// CN-9, EXT-9: what the operator sets about the fields that clients read applies to results that a server has shaped.
#[tokio::test]
async fn fields_that_clients_read_are_set_by_the_operator() {
    let result = json!({"content": [], "structuredContent": {"n": 1}});
    let crm = server(true, true)
        .result("tools/call", result)
        .start()
        .await;
    let tags = features(&["agent", "format=json"]);
    for (more, texts_of_result, has_structure) in [
        ("", &[][..], true),
        ("json-content: both\n", &["{\"n\":1}"], true),
        ("clients: [{result: content}]\n", &["{\"n\":1}"], false),
    ] {
        let harness = in_front(&[("crm", &crm)], more).await;
        for way in ClientKind::ALL {
            let call = tool("list");
            let called = way.ask(&harness, &tags, "tools/call", call).await;
            let result = &called["result"];
            assert_eq!(texts(result), texts_of_result, "{way:?} {more}: {called}");
            let structure = result.get("structuredContent");
            assert_eq!(structure.is_some(), has_structure, "{way:?} {more}");
        }
    }
}
