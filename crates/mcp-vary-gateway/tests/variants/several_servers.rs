//! Several servers behind one gateway: which one gets a request, and what each learns.

use mcp_vary_gateway::{Collision, Naming};
use mcp_vary_upstream::{ConnectionState, Isolation, RetryPolicy};
use mcp_vary_view::Selection;

use crate::support::*;

const UI: &str = "io.modelcontextprotocol/ui";

/// A server that says who it is. Its session tells whether it was made for a client with a UI.
fn named(name: &'static str, era: Era) -> Script {
    let is_of_ui = |seen: &ReceivedRequest| {
        let session = seen.header("mcp-session-id");
        session.is_some_and(|id| id.starts_with("ui"))
    };
    let script = Script::new(era, name)
        .declares(capabilities())
        .reply("tools/list", move |seen| {
            let names = ["who", "show"];
            seen.answer(&tool_list(&names[..1 + usize::from(is_of_ui(seen))]))
        })
        .reply("tools/call", move |seen| {
            let params = &seen.body["params"];
            if params["arguments"]["stay"] == true {
                return Reply::silence();
            }
            seen.answer(
                &json!({"by": name, "ui": is_of_ui(seen), "said": params, "content": [
                    {"type": "resource_link", "uri": format!("linked:{name}"), "name": "x"},
                ]}),
            )
        })
        .lists(json!({
            "resources": [
                {"uri": format!("{name}:1"), "name": "one"}, {"uri": "same:1", "name": "same"},
            ],
            "resourceTemplates": [
                {"uriTemplate": format!("{name}://{{path}}/end"), "name": "t"},
            ],
        }))
        .result("resources/read", json!({"contents": [], "by": name}))
        .lists(json!({"prompts": [{"name": "greet"}]}))
        .on(
            "prompts/get",
            move |params| json!({"messages": [], "by": name, "said": params}),
        )
        .on(
            "completion/complete",
            move |params| json!({"completion": {"values": []}, "by": name, "said": params}),
        );
    match era {
        Era::Legacy => script.reply("initialize", move |seen| initialized(name, seen)),
        Era::Modern => script,
    }
}

fn capabilities() -> Value {
    json!({"tools": {}, "resources": {}, "prompts": {}, "completions": {}})
}

fn initialized(name: &str, seen: &ReceivedRequest) -> Reply {
    let result = json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities(),
        "serverInfo": {"name": name, "version": "1"}, "instructions": format!("Ask {name}."),
    });
    let declared = &seen.body["params"]["capabilities"]["extensions"][UI];
    let session = if declared.is_object() { "ui" } else { "plain" };
    static SESSIONS: AtomicUsize = AtomicUsize::new(0);
    let session = format!("{session}-{}", SESSIONS.fetch_add(1, Ordering::Relaxed));
    seen.answer(&result).with_header("Mcp-Session-Id", session)
}

/// A gateway before two servers, a legacy and a modern one; and the second of them.
async fn two(adapt: impl FnOnce(Config) -> Config) -> (Harness, ScriptedServer) {
    let (git, web) = (
        named("git", Era::Legacy).start().await,
        named("web", Era::Modern).start().await,
    );
    let config = adapt(before(&[("git", &git), ("web", &web)]));
    (Harness::behind(git, config).await, web)
}

#[tokio::test]
async fn tools_are_called_by_the_name_of_their_server() {
    let (harness, web) = two(|config| config).await;
    for way in ClientKind::ALL {
        let list = harness.ask(way, "tools/list", json!({})).await;
        assert_eq!(names(&list), ["git_who", "web_who"], "{way:?}");
        for name in ["git", "web"] {
            let call = tool(&format!("{name}_who"));
            let said = harness.ask(way, "tools/call", call).await;
            let said = &said["result"];
            said.has("/by", json!(name));
            said.has("/said/name", "who");
        }
        let bare = harness.ask(way, "tools/call", tool("who")).await;
        assert_eq!(bare["error"]["code"], -32602, "{way:?}");
        bare.has("/error/data/activeVariant", "standard");
    }
    for call in web.of("tools/call") {
        assert_eq!(call.header("mcp-name"), Some("who"));
    }
}

#[tokio::test]
async fn every_variant_shows_the_tools_of_all_servers() {
    let (harness, _web) = two(|config| config).await;
    let list = harness
        .ask_modern("tools/list", under("compact", json!({})))
        .await;
    assert_eq!(names(&list), ["git_who", "web_who"]);
    let list = harness
        .ask_modern("tools/list", under("read-only", json!({})))
        .await;
    assert!(names(&list).is_empty());
    let call = harness
        .ask_modern("tools/call", under("read-only", tool("web_who")))
        .await;
    call.has("/error/data/activeVariant", "read-only");
}

/// SV-11: a variant has the tools, resources, prompts and instructions of its servers alone; capabilities are those of all.
#[tokio::test]
async fn a_variant_shows_nothing_of_servers_that_it_does_not_select() {
    for selected in [
        json!({"servers": ["web"]}),
        json!({"include": [{"server": "web"}]}),
    ] {
        let selection: Selection = serde_json::from_value(selected).unwrap();
        let mut few = variant("few");
        few.tools = selection.clone();
        few.resources = selection.clone();
        few.prompts = selection.clone();
        few.skills = selection;
        let git = named("git", Era::Legacy).start().await;
        let web = named("web", Era::Legacy).start().await;
        let config = before(&[("git", &git), ("web", &web)]);
        let variants = vec![few, variant("whole")];
        let harness = Harness::behind(git, config.with_variants_of(variants).unwrap()).await;
        for way in ClientKind::ALL {
            let introduction = way.introduction(&harness, &json!({})).await;
            introduction.has("/instructions", "# web\n\n> Ask web.");
            assert!(introduction["capabilities"]["prompts"].is_object());
            let list = harness.ask(way, "tools/list", json!({})).await;
            assert_eq!(names(&list), ["web_who"], "{way:?}");
            let list = harness.ask(way, "prompts/list", json!({})).await;
            let prompts = list["result"]["prompts"].as_array().unwrap();
            assert_eq!(prompts.len(), 1, "{list}");
            list.has("/result/prompts/0/name", "web_greet");
            let list = harness.ask(way, "resources/list", json!({})).await;
            assert_eq!(list["result"]["resources"].as_array().unwrap().len(), 2);
            list.has("/result/resources/0/uri", "web:1");
            let prompt = json!({"name": "git_greet"});
            let refused = harness.ask(way, "prompts/get", prompt).await;
            refused.has("/error/code", -32602);
            let read = json!({"uri": "git:1"});
            let refused = harness.ask(way, "resources/read", read).await;
            refused.has("/error/data/activeVariant", "few");
            let whole = harness
                .ask(way, "tools/list", under("whole", json!({})))
                .await;
            assert_eq!(names(&whole), ["git_who", "web_who"], "{way:?}");
        }
    }
}

/// SV-14: a URI leads to the server that lists it, has a template for it, or pointed to it.
#[tokio::test]
async fn a_resource_is_read_where_it_is_listed_templated_or_linked() {
    let (harness, _web) = two(|config| config).await;
    #[track_caller]
    fn was_read(answer: &Value, by: &str) {
        answer.has("/result/by", by);
    }
    for (uri, by) in [
        ("git:1", "git"),
        ("web:1", "web"),
        // Of two that list it the first.
        ("same:1", "git"),
        ("web://a/b/end", "web"),
    ] {
        let read = harness
            .ask_modern("resources/read", json!({"uri": uri}))
            .await;
        was_read(&read, by);
    }
    let linked = json!({"uri": "linked:web"});
    let unknown = harness.ask_modern("resources/read", linked.clone()).await;
    unknown.has("/error/code", -32602);
    unknown.has("/error/data/activeVariant", "standard");
    harness.ask_modern("tools/call", tool("web_who")).await;
    was_read(&harness.ask_modern("resources/read", linked).await, "web");
}

#[tokio::test]
async fn prompts_and_completions_reach_their_server_under_its_own_name() {
    let (harness, _web) = two(|config| config).await;
    let got = harness
        .ask_modern("prompts/get", json!({"name": "web_greet"}))
        .await;
    got.has("/result/by", "web");
    got.has("/result/said/name", "greet");
    let argument = json!({"name": "a", "value": "b"});
    for [reference, by, native] in rows(
        r#"
        {"type": "ref/prompt", "name": "web_greet"} | web | {"type": "ref/prompt", "name": "greet"}
        {"type": "ref/resource", "uri": "git://{path}/end"} | git | {"type": "ref/resource", "uri": "git://{path}/end"}
    "#,
    ) {
        let params = json!({"ref": cell(reference), "argument": argument});
        let completed = harness.ask_modern("completion/complete", params).await;
        completed.has("/result/by", by);
        completed.has("/result/said/ref", cell(native));
    }
    let params = json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": argument});
    let unknown = harness.ask_modern("completion/complete", params).await;
    unknown.has("/error/code", -32602);
}

/// SV-14: on a collision the server that was configured first wins, and that is said.
#[tokio::test]
async fn of_two_with_one_name_the_first_is_reached_and_that_is_said() {
    let (harness, _web) = two(|config| config.with_naming(Naming::Never)).await;
    let list = harness.ask_modern("tools/list", json!({})).await;
    assert_eq!(names(&list), ["who"]);
    let call = harness.ask_modern("tools/call", tool("who")).await;
    call.has("/result/by", "git");
    let collisions = harness.gateway.collisions().into_iter();
    let told = collisions.map(|it: Collision| json!([it.list, it.id, it.reachable, it.hidden]));
    let expected = json!([
        ["tools/list", "who", "git", "web"],
        ["resources/list", "same:1", "git", "web"],
        ["prompts/list", "greet", "git", "web"],
    ]);
    assert_eq!(told.collect::<Value>(), expected);
    let served = harness.gateway.served();
    let who: Vec<_> = served.iter().filter(|it| it.list == "tools/list").collect();
    assert_eq!((&*who[0].server, &*who[0].upstream_name), ("git", "who"));
    assert_eq!(who.len(), 1);
}

/// SV-11, SV-12: names and URIs are those of the variant: what it hides takes none from what it shows.
#[tokio::test]
async fn what_a_variant_hides_takes_no_name() {
    let (harness, _web) = two(|config| {
        let mut of_web = variant("web");
        for list in [
            &mut of_web.tools,
            &mut of_web.resources,
            &mut of_web.prompts,
        ] {
            *list = serde_json::from_str(r#"{"include": [{"server": "web"}]}"#).unwrap();
        }
        let config = config.with_naming(Naming::Never);
        config
            .with_variants_of(vec![variant("both"), of_web])
            .unwrap()
    })
    .await;
    for (id, by) in [("both", "git"), ("web", "web")] {
        for way in ClientKind::ALL {
            let list = harness.ask(way, "tools/list", under(id, json!({}))).await;
            assert_eq!(names(&list), ["who"], "{id}");
            for (method, params) in [
                ("tools/call", tool("who")),
                ("resources/read", json!({"uri": "same:1"})),
                ("prompts/get", json!({"name": "greet"})),
            ] {
                let answer = harness.ask(way, method, under(id, params)).await;
                answer.has("/result/by", by);
            }
        }
    }
    let list = harness
        .ask_modern("resources/list", under("web", json!({})))
        .await;
    let uris = list["result"]["resources"].as_array().unwrap().iter();
    let uris: Vec<_> = uris.map(|resource| &resource["uri"]).collect();
    assert_eq!(uris, ["web:1", "same:1"]);
}

#[tokio::test]
async fn a_client_meets_all_servers_as_one() {
    let (harness, _web) = two(|config| config).await;
    let client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let told = &client.initialized;
    told.has("/serverInfo/name", "vary");
    told.has("/instructions", "# git\n\n> Ask git.");
    let offered = told["capabilities"].as_object().unwrap();
    for capability in ["tools", "resources", "prompts", "completions"] {
        assert!(offered.contains_key(capability), "{told}");
    }
    assert!(!offered.contains_key("logging"));
}

/// A server that cannot be reached: nobody listens where it should be.
async fn nobody() -> Target {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    Target::http(url.parse().unwrap())
}

#[tokio::test]
async fn a_server_that_is_down_stops_nobody() {
    let web = named("web", Era::Modern).start().await;
    let mut config = before(&[("git", &web), ("web", &web)]);
    config.servers[0].target = nobody().await;
    let harness = Harness::behind(web, config).await;
    let list = harness.ask_modern("tools/list", json!({})).await;
    assert_eq!(names(&list), ["web_who"]);
    let call = harness.ask_modern("tools/call", tool("web_who")).await;
    call.has("/result/by", "web");
    let servers = harness.gateway.servers();
    let is_down = matches!(servers[0].state, ConnectionState::Disconnected { .. });
    assert!(is_down, "{servers:?}");
    assert!(matches!(servers[1].state, ConnectionState::Connected(_)));
    assert_eq!(servers[1].counts[0], ("tools/list", 1));
}

#[tokio::test]
async fn a_gateway_without_any_server_starts_only_if_it_may() {
    let down = config(nobody().await);
    let error = Gateway::start(down.clone()).await;
    assert!(error.unwrap_err().to_string().contains("server `peer`"));
    let waiting = down.allow_empty_start(Duration::ZERO);
    let gateway = Gateway::start(waiting).await.unwrap();
    assert_eq!(gateway.servers()[0].counts, []);
    gateway.close().await;
}

/// The capabilities of a client that can show a UI, with something that no server needs to know.
fn with_ui() -> Value {
    json!({"sampling": {}, "extensions": {"x/secret": {"key": "k"}, UI: {"mimeTypes": ["text/html"]}}})
}

#[tokio::test]
async fn a_server_learns_what_a_client_can_do_and_lists_accordingly() {
    let harness = Harness::of_server(named("git", Era::Legacy)).await;
    for way in ClientKind::ALL {
        let list = harness.ask(way, "tools/list", json!({})).await;
        assert_eq!(names(&list), ["who"], "{way:?}");
        let list = way.ask(&harness, &with_ui(), "tools/list", json!({})).await;
        assert_eq!(names(&list), ["who", "show"], "{way:?}");
        let call = ask_as(&harness, way, &with_ui(), "tools/call", tool("show")).await;
        call.has("/result/ui", true);
        let call = harness.ask(way, "tools/call", tool("show")).await;
        call.has("/error/code", -32602);
    }
    // All clients that can do the same share one connection; for the calls of those that can be asked something
    // there is one for each session, and one for requests without.
    let opened = harness.peer.of("initialize");
    let told = opened
        .iter()
        .map(|seen| &seen.body["params"]["capabilities"]);
    let told: Vec<_> = told.collect();
    let mirrored = json!({"sampling": {}, "extensions": {UI: {"mimeTypes": ["text/html"]}}});
    let own = [&mirrored; 3];
    assert_eq!(told, [&[&json!({}), &mirrored][..], &own].concat());
}

#[tokio::test]
async fn classes_are_few_and_closed_when_nobody_uses_them() {
    let peer = named("git", Era::Legacy).start().await;
    let harness = Harness::edited(peer, |config| {
        config.servers[0].limits.idle_timeout = Duration::from_millis(1);
        config.servers[0].limits.connections = 3;
    })
    .await;
    for n in 0..10 {
        let capabilities = json!({"extensions": {UI: {"n": n}}});
        let list = ask_modern_as(&harness, &capabilities, "tools/list", json!({})).await;
        assert!(names(&list).contains(&"who"), "{list}");
    }
    soon(harness.peer.wait_for("DELETE", 2)).await;
    // There is room again.
    until(async || {
        let list = ask_modern_as(&harness, &with_ui(), "tools/list", json!({})).await;
        names(&list) == ["who", "show"]
    })
    .await;
}

#[tokio::test]
async fn the_calls_of_all_classes_count_together() {
    let peer = named("git", Era::Legacy).start().await;
    let harness = Harness::edited(peer, |config| {
        config.servers[0].limits.concurrency = 1;
        config.servers[0].limits.ready_timeout = Duration::from_millis(20);
    })
    .await;
    let mut busy = harness.connect().await;
    let stay = json!({"name": "who", "arguments": {"stay": true}});
    let post = HttpRequest::modern_request("tools/call", stay);
    busy.send(&post.bytes()).await;
    soon(harness.peer.wait_for("tools/call", 1)).await;
    let answer = ask_modern_as(&harness, &with_ui(), "tools/call", tool("show")).await;
    answer.contains("/error/message", "server `peer`");
    // Who leaves makes room.
    drop(busy);
    soon(harness.peer.wait_for_abandoned(1)).await;
    let answer = ask_modern_as(&harness, &with_ui(), "tools/call", tool("show")).await;
    answer.has("/result/ui", true);
}

#[tokio::test]
async fn a_server_may_have_a_connection_for_each_session() {
    let peer = named("git", Era::Legacy).start().await;
    let harness = Harness::edited(peer, |config| {
        config.servers[0].isolation = Isolation::Session;
        // One for clients without sessions, two for sessions.
        config.servers[0].limits.connections = 3;
    })
    .await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(LegacyClient::open(&harness, "2025-11-25", &json!({})).await);
    }
    for client in clients.iter_mut().take(2) {
        for _ in 0..2 {
            let answer = client.answer("tools/call", tool("who")).await;
            answer.has("/result/by", "git");
        }
    }
    let calls = harness.peer.of("tools/call");
    let ids: Vec<_> = calls
        .iter()
        .map(|call| call.header("mcp-session-id"))
        .collect();
    let is_apart = ids[0] == ids[1] && ids[2] == ids[3] && ids[0] != ids[2];
    assert!(is_apart && ids[0].is_some() && ids[2].is_some(), "{ids:?}");
    for _ in 0..3 {
        let again = clients[2].ask("tools/call", tool("who")).await.json();
        let found = &again["error"]["code"];
        assert_eq!(*found, -32603, "never on a connection of others");
    }
    let refused = clients[2].ask("tools/call", tool("who")).await.json();
    let expected = "server `peer` serves each session or user on a connection of its own";
    refused.starts("/error/message", expected);
    // A session that ends makes room.
    clients[0].delete().await;
    soon(harness.peer.wait_for("DELETE", 1)).await;
    let answer = clients[2].ask("tools/call", tool("who")).await.json();
    answer.has("/result/by", "git");
}

/// A server that ends the connection instead of answering a call, `times` times.
async fn faint(times: usize, annotations: Value) -> ScriptedServer {
    let calls = AtomicUsize::new(0);
    let is_faint = move || calls.fetch_add(1, Ordering::Relaxed) < times;
    let schema = json!({"type": "object"});
    let tools = json!([{"name": "who", "inputSchema": schema, "annotations": annotations}]);
    let script = named("git", Era::Legacy).lists(json!({ "tools": tools }));
    let script = script.may_reply("tools/call", move |_| is_faint().then(Reply::broken));
    script.start().await
}

/// How often a call reached a server that broke the first of them off, and what the client got.
async fn called(repeat: RetryPolicy, annotations: Value) -> (usize, Value) {
    let peer = faint(1, annotations).await;
    let harness = Harness::edited(peer, |config| config.servers[0].retry = repeat).await;
    let answer = harness.ask_modern("tools/call", tool("who")).await;
    (harness.peer.of("tools/call").len(), answer)
}

#[tokio::test]
async fn a_call_is_repeated_only_where_tool_and_operator_say_so() {
    let (times, answer) = called(RetryPolicy::Idempotent, json!({"idempotentHint": true})).await;
    let expected = (2, &json!("git"));
    assert_eq!((times, &answer["result"]["by"]), expected, "{answer}");
    for (repeat, annotations) in [
        (RetryPolicy::Never, json!({"idempotentHint": true})),
        (RetryPolicy::Idempotent, json!({"idempotentHint": false})),
        (RetryPolicy::Idempotent, json!({})),
    ] {
        let (times, answer) = called(repeat, annotations).await;
        assert_eq!(times, 1, "{answer}");
        answer.contains("/error/message", "server `peer`");
    }
}

#[tokio::test]
async fn a_call_is_repeated_once() {
    let peer = faint(9, json!({"readOnlyHint": true})).await;
    let edit = |config: &mut Config| config.servers[0].retry = RetryPolicy::Idempotent;
    let harness = Harness::edited(peer, edit).await;
    let answer = harness.ask_modern("tools/call", tool("who")).await;
    assert!(answer["error"]["message"].is_string(), "{answer}");
    assert_eq!(harness.peer.of("tools/call").len(), 2);
}

/// One that answers the first `tools/list` and no other.
async fn slow_to_list() -> ScriptedServer {
    let lists = AtomicUsize::new(0);
    let is_slow = move || lists.fetch_add(1, Ordering::Relaxed) > 0;
    let script = named("slow", Era::Modern);
    let script = script.may_reply("tools/list", move |_| is_slow().then(Reply::silence));
    script.start().await
}

#[tokio::test]
async fn a_server_that_is_slow_to_list_is_shown_as_it_was() {
    let (slow, web) = (
        slow_to_list().await,
        named("web", Era::Modern).start().await,
    );
    let mut config = before(&[("slow", &slow), ("web", &web)]);
    config.servers[0].limits.ready_timeout = Duration::from_millis(20);
    config.servers[0].limits.list_ttl = Duration::from_millis(1);
    let harness = Harness::behind(slow, config).await;
    // A list that has expired is read again in the background, and the old one is shown meanwhile.
    soon(async {
        while harness.peer.of("tools/list").len() < 2 {
            let list = harness.ask_modern("tools/list", json!({})).await;
            assert_eq!(names(&list), ["slow_who", "web_who"]);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    for _ in 0..3 {
        let list = harness.ask_modern("tools/list", json!({})).await;
        assert_eq!(names(&list), ["slow_who", "web_who"]);
    }
    let call = harness.ask_modern("tools/call", tool("slow_who")).await;
    call.has("/result/by", "slow");
}
