//! `passthrough`: clients select the variants that a server offers itself, as `<server>/<id>`.

use mcp_vary::extension::{SERVER_VARIANT_META, SERVER_VARIANTS};
use mcp_vary_gateway::Naming;
use mcp_vary_upstream::Passthrough;

use super::rules_by_variant;
use super::upstream_variants::in_front_of;
use crate::support::*;

/// A server of either era with the variants `agent`, `human` and `old`: each lists `list`, a tool that has its name, and
/// `delete`; without a selector only `list`. It says under which variant it was called.
pub(super) fn answer(seen: &ReceivedRequest, is_modern: bool, offered: &Value) -> Option<Reply> {
    let capabilities = json!({
        "tools": {}, "resources": {}, "extensions": {SERVER_VARIANTS: {"availableVariants": offered}},
    });
    let selected = seen.body["params"]["_meta"][SERVER_VARIANT_META].as_str();
    let tools = [Some("list"), selected, selected.map(|_| "delete")];
    let tools: Vec<_> = tools.into_iter().flatten().collect();
    let variant = selected.unwrap_or("none");
    let result = match seen.method() {
        "server/discover" if is_modern => discovered(capabilities),
        "initialize" if !is_modern => introduced("crm", capabilities),
        "tools/list" => tool_list(&tools),
        "tools/call" => json!({"content": [{"type": "text", "text": variant}]}),
        "resources/list" => json!({"resources": [{"uri": "map://all", "name": variant}]}),
        "resources/read" => {
            json!({"contents": [{"uri": seen.body["params"]["uri"], "text": variant}]})
        }
        _ => return None,
    };
    Some(seen.answer(&result))
}

fn offered() -> Value {
    json!([
        {"id": "agent", "description": "For agents.", "hints": {"useCase": "autonomous-agent"}, "status": "stable"},
        {"id": "human", "description": "For people.", "hints": {"useCase": "human-assistant"}, "status": "experimental"},
        {"id": "old", "description": "The first one.", "status": "deprecated",
         "deprecationInfo": {"message": "Use agent.", "replacement": "agent", "removalDate": "2027-01-31"}},
    ])
}

pub(super) async fn peer(is_modern: bool) -> ScriptedServer {
    ScriptedServer::start(move |seen| answer(seen, is_modern, &offered())).await
}

/// `config` with the variant `standard` only, and those of its servers.
pub(super) fn passed_through(mut config: Config, passthrough: Passthrough) -> Config {
    for server in &mut config.servers {
        server.passthrough = Some(passthrough);
    }
    config.with_variants_of(vec![variant("standard")]).unwrap()
}

/// A gateway in front of a process, `crm`, with the variants `agent` and `human`, whose tool says which hints the client
/// declared.
pub(super) async fn in_front_of_process(is_modern: bool, passthrough: Passthrough) -> Harness {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/hints.py");
    let revision = ["2025-11-25", "2026-07-28"][usize::from(is_modern)];
    let target = Target::command("python3", [script, revision].map(str::to_owned));
    let mut config = config(target);
    config.servers[0].name = "crm".to_owned();
    let config = passed_through(config, passthrough);
    Harness::behind(ScriptedServer::start(|_| None).await, config).await
}

/// A gateway in front of such a server, `crm`.
async fn harness(is_modern: bool) -> Harness {
    let peer = peer(is_modern).await;
    let config = passed_through(before(&[("crm", &peer)]), Passthrough::default());
    Harness::behind(peer, config).await
}

/// The variants that a modern client with these capabilities is offered.
async fn available(harness: &Harness, capabilities: &Value) -> Vec<Value> {
    let answer = ask_modern_as(harness, capabilities, "server/discover", json!({})).await;
    let settings = &answer["result"]["capabilities"]["extensions"][SERVER_VARIANTS];
    settings["availableVariants"].as_array().unwrap().clone()
}

pub(super) async fn available_ids(harness: &Harness, capabilities: &Value) -> Vec<String> {
    let all = available(harness, capabilities).await;
    let ids = all.iter().map(|it| it["id"].as_str().unwrap().to_owned());
    ids.collect()
}

/// EXT-9, a Vary behind a Vary: all methods of clients of both eras run under the variant that the client selects.
#[tokio::test]
async fn every_method_runs_under_the_variant_of_a_vary_that_the_client_selects() {
    let inner = rules_by_variant::harness().await;
    let mut config = in_front_of(&inner, None);
    config.servers[0].passthrough = Some(Passthrough::default());
    let outer = Harness::behind(ScriptedServer::start(|_| None).await, config).await;
    let whole = json!({"stations": [{"id": 1, "name": "Bern"}, {"id": 2, "name": "Thun"}]});
    let short = json!({"names": ["Bern", "Thun"]});
    for (selected, required, value, read, prompt) in [
        ("standard", "stations", &whole, None, "Plan it."),
        ("peer/standard", "stations", &whole, None, "Plan it."),
        (
            "peer/names",
            "names",
            &short,
            Some("2 stations"),
            "Plan it. Briefly.",
        ),
    ] {
        for way in ClientKind::ALL {
            let ask = async |method: &str, params: Value| {
                let params = under(selected, params);
                outer.ask(way, method, params).await
            };
            let list = ask("tools/list", json!({})).await;
            assert_eq!(names(&list), ["list", "plain"], "{way:?} {selected}");
            let schema = &list["result"]["tools"][0]["outputSchema"];
            assert_eq!(schema["required"], json!([required]), "{way:?} {selected}");
            let called = ask("tools/call", tool("list")).await;
            let got = &called["result"]["structuredContent"];
            assert_eq!(got, value, "{way:?} {selected}");
            let got = ask("resources/read", json!({"uri": "map://all"})).await;
            let text = &got["result"]["contents"][0]["text"];
            if let Some(read) = read {
                assert_eq!(*text, read, "{way:?} {selected}");
            }
            let got = ask("prompts/get", json!({"name": "plan"})).await;
            let text = &got["result"]["messages"][0]["content"]["text"];
            assert_eq!(*text, prompt, "{way:?} {selected}");
        }
    }
}

/// EXT-9: clients get the hints, the status and the deprecation of each variant as the server declares them, with ids
/// that they can select. Without a selector, and by hints, they get the operator's variant.
#[tokio::test]
async fn variants_of_a_server_are_offered_last_with_what_it_declares() {
    for is_modern in [false, true] {
        let harness = harness(is_modern).await;
        let agent = hints(json!({"useCase": "autonomous-agent"}));
        let all = available(&harness, &agent).await;
        assert_eq!(all[0]["id"], "standard", "{all:?}");
        let expected = [
            json!({"id": "crm/agent", "description": "For agents.", "hints": {"useCase": "autonomous-agent"},
                "status": "stable"}),
            json!({"id": "crm/human", "description": "For people.", "hints": {"useCase": "human-assistant"},
                "status": "experimental"}),
            json!({"id": "crm/old", "description": "The first one.", "status": "deprecated", "deprecationInfo":
                {"message": "Use agent.", "replacement": "crm/agent", "removalDate": "2027-01-31"}}),
        ];
        assert_eq!(all[1..], expected, "{is_modern}");
        for way in ClientKind::ALL {
            let called = way.ask(&harness, &agent, "tools/call", tool("list")).await;
            assert_eq!(texts(&called["result"]), ["none"], "{way:?}");
        }
        let status = harness.status();
        assert_eq!(status["servers"][0].get("upstreamVariants"), None);
        status.has("/servers/1/name", "crm/agent");
        assert_eq!(harness.gateway.servers().len(), 1);
    }
}

/// EXT-9: in a file without `variants`, what is offered of a server can be selected: of the built-in variants only the
/// default comes before those of the server.
#[tokio::test]
async fn built_in_variants_leave_room_for_those_of_a_server() {
    for passthrough in [Passthrough::default(), Passthrough::ranked(true)] {
        let peer = peer(true).await;
        let mut config = before(&[("crm", &peer)]);
        config.servers[0].passthrough = Some(passthrough);
        let harness = Harness::behind(peer, config).await;
        let ids = available_ids(&harness, &json!({})).await;
        let expected = if passthrough.rank {
            // Deprecated and experimental ones have fewer points.
            ["standard", "crm/agent", "compact", "directory", "read-only"]
        } else {
            ["standard", "crm/agent", "crm/human", "crm/old", "compact"]
        };
        assert_eq!(ids, expected);
        let compact = hints(json!({"contextSize": "compact"}));
        let ids = available_ids(&harness, &compact).await;
        assert_eq!(ids[0], "compact", "{ids:?}");
        assert!(ids.contains(&"crm/agent".to_owned()), "{ids:?}");
    }
}

/// EXT-9, SV-5: with `rank: on` hints rank these variants among the operator's, so that one can be the default.
#[tokio::test]
async fn ranked_variants_of_a_server_can_be_the_default() {
    let peer = peer(true).await;
    let config = passed_through(before(&[("crm", &peer)]), Passthrough::ranked(true));
    let harness = Harness::behind(peer, config).await;
    let agent = hints(json!({"useCase": "autonomous-agent"}));
    let ids = available_ids(&harness, &agent).await;
    assert_eq!(ids, ["crm/agent", "standard", "crm/human", "crm/old"]);
    for way in ClientKind::ALL {
        let called = way.ask(&harness, &agent, "tools/call", tool("list")).await;
        assert_eq!(texts(&called["result"]), ["agent"], "{way:?}");
    }
}

/// EXT-9, SV-9: an address has two segments for such a variant; one that does not exist is an error that names all.
#[tokio::test]
async fn an_address_names_a_variant_of_a_server() {
    let harness = harness(false).await;
    let call = modern(json!(1), "tools/call", tool("list"), &json!({}));
    for (path, expected) in [
        ("/mcp/v/crm/agent", "agent"),
        ("/mcp/v/crm%2Fhuman", "human"),
        ("/mcp/v/standard", "none"),
    ] {
        let post = HttpRequest::modern(&call).line(&format!("POST {path} HTTP/1.1"));
        let answer = RawHttp::connect(harness.address()).await.ask(&post).await;
        assert_eq!(texts(&answer.json()["result"]), [expected], "{path}");
    }
    for way in ClientKind::ALL {
        let list = under("crm/nix", json!({}));
        let refused = harness.ask(way, "tools/list", list).await;
        assert_eq!(refused["error"]["code"], -32602, "{way:?}: {refused}");
        let all = &refused["error"]["data"]["availableVariants"];
        let expected = json!(["standard", "crm/agent", "crm/human", "crm/old"]);
        assert_eq!(*all, expected, "{way:?}");
    }
}

/// EXT-9: two servers with the same variants and names side by side. Each variant lists the items of its server alone, with
/// the names that they would have in `standard`, and no other server is reached under it.
#[tokio::test]
async fn variants_of_two_servers_are_kept_apart() {
    for naming in [Naming::AsNeeded, Naming::OnCollision] {
        let (crm, web) = (peer(false).await, peer(true).await);
        let mut config = before(&[("crm", &crm), ("web", &web)]);
        config.naming = naming;
        let config = passed_through(config, Passthrough::default());
        let harness = Harness::behind(crm, config).await;
        let (agent, delete) = match naming {
            Naming::AsNeeded => ("crm_agent", "crm_delete"),
            _ => ("agent", "delete"),
        };
        for way in ClientKind::ALL {
            let ask = async |id: &str, method: &str, params: Value| {
                let params = under(id, params);
                harness.ask(way, method, params).await
            };
            let list = ask("standard", "tools/list", json!({})).await;
            assert_eq!(names(&list), ["crm_list", "web_list"], "{way:?} {naming:?}");
            let list = ask("crm/agent", "tools/list", json!({})).await;
            let expected = ["crm_list", agent, delete];
            assert_eq!(names(&list), expected, "{way:?} {naming:?}");
            let called = ask("crm/agent", "tools/call", tool(agent)).await;
            assert_eq!(texts(&called["result"]), ["agent"], "{way:?}");
            let refused = ask("crm/agent", "tools/call", tool("web_list")).await;
            assert_eq!(refused["error"]["code"], -32602, "{way:?}: {refused}");
            let refused = ask("standard", "tools/call", tool(agent)).await;
            assert_eq!(refused["error"]["code"], -32602, "{way:?}: {refused}");
            for (id, expected) in [
                ("crm/human", "human"),
                ("web/agent", "agent"),
                ("standard", "none"),
            ] {
                // A resource that nobody lists is one of the only server of such a variant.
                let uris = match id {
                    "standard" => &["map://all"][..],
                    _ => &["map://all", "map://unlisted"],
                };
                for uri in uris {
                    let read = ask(id, "resources/read", json!({"uri": uri})).await;
                    let text = &read["result"]["contents"][0]["text"];
                    assert_eq!(*text, expected, "{way:?} {id} {uri}: {read}");
                }
            }
        }
        for seen in web.received() {
            let selector = &seen.body["params"]["_meta"][SERVER_VARIANT_META];
            assert_ne!(*selector, "web/agent", "clients' ids stay here");
        }
    }
}

pub(super) fn from_file(text: &str) -> Config {
    of_file(text)
}

/// EXT-9, SV-20: a rule that denies a tool of a server denies it in each of the server's variants.
#[tokio::test]
async fn access_rules_for_a_server_apply_to_its_variants() {
    for rule in ["delete", "{server: crm, name: delete}"] {
        let peer = peer(false).await;
        let text = format!(
            "servers: {{crm: {{url: \"{}\", passthrough: on}}}}\n\
             access: [{{when: {{anyone: on}}, allow: [\"*\"], deny: [{rule}]}}]",
            peer.url
        );
        let harness = Harness::behind(peer, from_file(&text)).await;
        for way in ClientKind::ALL {
            let list = under("crm/agent", json!({}));
            let list = harness.ask(way, "tools/list", list).await;
            assert_eq!(names(&list), ["list", "agent"], "{way:?} {rule}");
            for (name, is_allowed) in [("agent", true), ("delete", false)] {
                let call = under("crm/agent", tool(name));
                let called = harness.ask(way, "tools/call", call).await;
                let found = called["result"].is_object();
                assert_eq!(found, is_allowed, "{way:?}: {called}");
            }
        }
        assert_eq!(harness.peer.of("tools/call").len(), ClientKind::ALL.len());
    }
}

/// EXT-9, SV-13: a cursor of one variant continues no list of another one of the same server.
#[tokio::test]
async fn cursors_belong_to_the_variant_of_a_server() {
    let peer = peer(false).await;
    let config = passed_through(before(&[("crm", &peer)]), Passthrough::default());
    let config = config.with_page_size(1.try_into().unwrap());
    let harness = Harness::behind(peer, config).await;
    for way in ClientKind::ALL {
        let list = async |id: &str, params: Value| {
            let params = under(id, params);
            harness.ask(way, "tools/list", params).await
        };
        let first = list("crm/agent", json!({})).await;
        let cursor = json!({"cursor": first["result"]["nextCursor"]});
        let refused = list("crm/human", cursor.clone()).await;
        assert_eq!(refused["error"]["code"], -32602, "{way:?}: {refused}");
        let next = list("crm/agent", cursor).await;
        assert_eq!(names(&next), ["agent"], "{way:?}");
    }
}

/// Before the server `crm`, which offers these variants, and `agent` and `new` as soon as the flag is set.
async fn with_changing_offers(offered: Value) -> (Harness, Arc<AtomicBool>) {
    let is_new = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_new);
    let peer = ScriptedServer::start(move |seen| {
        let new = json!([{"id": "agent"}, {"id": "new"}]);
        let has_changed = flag.load(Ordering::SeqCst);
        answer(seen, true, if has_changed { &new } else { &offered })
    });
    let peer = peer.await;
    let mut config = passed_through(before(&[("crm", &peer)]), Passthrough::default());
    // A modern server is asked for its capabilities whenever its health is checked.
    config.servers[0].limits.ping = Duration::from_millis(50);
    config.servers[0].limits.backoff = Duration::from_millis(10);
    (Harness::behind(peer, config).await, is_new)
}

/// EXT-9: a server that shows other variants at its next handshake has these from then on. A session keeps its own variant,
/// and its order.
#[tokio::test]
async fn variants_follow_the_handshake_of_the_server() {
    let offered = json!([{"id": "agent"}, {"id": "gone"}]);
    let (harness, is_new) = with_changing_offers(offered).await;
    let none = json!({});
    let ids = available_ids(&harness, &none).await;
    assert_eq!(ids, ["standard", "crm/agent", "crm/gone"]);
    let at = |path: &'static str| {
        let harness = &harness;
        async move {
            let post = HttpRequest::modern_request("tools/call", tool("list"))
                .line(&format!("POST {path} HTTP/1.1"));
            let mut http = RawHttp::connect(harness.address()).await;
            http.ask(&post).await.json()
        }
    };
    assert!(at("/mcp/v/crm/gone").await["result"].is_object());
    is_new.store(true, Ordering::SeqCst);
    until(async || available_ids(&harness, &none).await[2] == "crm/new").await;
    let expected = ["standard", "crm/agent", "crm/new"];
    assert_eq!(available_ids(&harness, &none).await, expected);
    assert_eq!(texts(&at("/mcp/v/crm/new").await["result"]), ["new"]);
    assert_eq!(at("/mcp/v/crm/gone").await["error"]["code"], -32602);
}

/// EXT-9: a session keeps its order when its server gets another variant, and can select that one.
#[tokio::test]
async fn a_session_continues_when_a_server_gets_another_variant() {
    let (harness, is_new) = with_changing_offers(json!([{"id": "agent"}])).await;
    let none = json!({});
    let mut session = LegacyClient::open(&harness, "2025-11-25", &none).await;
    is_new.store(true, Ordering::SeqCst);
    until(async || available_ids(&harness, &none).await.len() >= 3).await;
    let expected = ["standard", "crm/agent", "crm/new"];
    assert_eq!(available_ids(&harness, &none).await, expected);
    for (selected, expected) in [("crm/agent", "agent"), ("crm/new", "new")] {
        let call = under(selected, tool(expected));
        let called = session.answer("tools/call", call).await;
        assert_eq!(texts(&called["result"]), [expected], "{called}");
    }
    let called = session.answer("tools/call", tool("list")).await;
    assert_eq!(texts(&called["result"]), ["none"], "{called}");
}

/// EXT-9: a server that is slow to start holds up no other; its variants are offered when it is there.
#[tokio::test]
async fn variants_of_a_slow_server_are_offered_later() {
    let is_slow = Arc::new(AtomicBool::new(true));
    let slow = {
        let is_slow = Arc::clone(&is_slow);
        let serve = move |seen: &ReceivedRequest| {
            if is_slow.load(Ordering::SeqCst) {
                Some(Reply::silence())
            } else {
                answer(seen, false, &json!([{"id": "late"}]))
            }
        };
        ScriptedServer::start(serve).await
    };
    let crm = peer(false).await;
    let mut config = passed_through(
        before(&[("crm", &crm), ("slow", &slow)]),
        Passthrough::default(),
    );
    config.start_wait = Duration::from_secs(2);
    let limits = &mut config.servers[1].limits;
    (limits.handshake, limits.backoff) = (Duration::from_secs(1), Duration::from_millis(10));
    let harness = Harness::behind(crm, config).await;
    let none = json!({});
    let ids = available_ids(&harness, &none).await;
    assert_eq!(ids, ["standard", "crm/agent", "crm/human", "crm/old"]);
    is_slow.store(false, Ordering::SeqCst);
    let call = under("slow/late", tool("slow_late"));
    let called = until_some(async || {
        let called = ask_modern_as(&harness, &none, "tools/call", call.clone()).await;
        called["result"].is_object().then_some(called)
    })
    .await;
    assert_eq!(texts(&called["result"]), ["late"]);
}

/// EXT-9, EXT-3: nothing is passed through where variants are off.
#[tokio::test]
async fn without_variants_nothing_is_passed_through() {
    let peer = peer(false).await;
    let config = passed_through(before(&[("crm", &peer)]), Passthrough::default());
    let harness = Harness::behind(peer, config.with_variants(false)).await;
    let status = harness.status();
    let expected = json!(["agent", "human", "old"]);
    status.has("/servers/0/upstreamVariants", expected);
    assert_eq!(status["servers"].as_array().unwrap().len(), 1);
    assert_eq!(harness.peer.of("initialize").len(), 1);
}
