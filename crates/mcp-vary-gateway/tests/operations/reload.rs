//! A reload replaces the configuration while clients are served: what stays, what goes, and that nothing is lost.

mod load;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use mcp_vary_config::Source;
use mcp_vary_gateway::{Base, Naming, ReloadError, SelectionConfig};
use mcp_vary_upstream::Isolation;
use tokio::task::JoinSet;

use crate::support::*;

/// Where the servers of one test write down what they do; gone at its end.
struct Diary(PathBuf);

impl Diary {
    fn new() -> Self {
        static DIARIES: AtomicUsize = AtomicUsize::new(0);
        let number = DIARIES.fetch_add(1, Ordering::Relaxed);
        let name = format!("vary-reload-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn server(&self, name: &str) -> UpstreamConfig {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/turn.py");
        let args = [script.to_str().unwrap(), name, self.0.to_str().unwrap()];
        let target = Target::command("python3", args.map(str::to_owned));
        UpstreamConfig::new(name, target)
    }

    /// The same server by an entry that is another.
    fn changed(&self, name: &str, marker: usize) -> UpstreamConfig {
        let mut server = self.server(name);
        let Target::Command { env, .. } = &mut server.target else {
            panic!("no command");
        };
        env.insert("MARKER".to_owned(), marker.to_string());
        server
    }

    fn config(&self, servers: &[&str]) -> Config {
        self.config_of(servers.iter().map(|name| self.server(name)).collect())
    }

    fn config_of(&self, servers: Vec<UpstreamConfig>) -> Config {
        let mut config = config(Target::command("none", [])).with_naming(Naming::Always);
        config.servers = servers;
        config
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// How often a server did something: `start`, `list`, `call 7` or `end`.
    fn count(&self, server: &str, what: &str) -> usize {
        let lines = self.lines();
        let is_it = |line: &&String| {
            let mut terms = line.splitn(3, ' ');
            terms.next() == Some(server) && terms.nth(1) == Some(what)
        };
        lines.iter().filter(is_it).count()
    }

    /// The processes that were started and still run.
    fn running(&self) -> BTreeSet<u32> {
        let lines = self.lines();
        let processes = lines.iter().filter_map(|line| {
            let process: u32 = line.split(' ').nth(1)?.parse().ok()?;
            is_alive(process).then_some(process)
        });
        processes.collect()
    }

    /// Waits until so many processes run.
    async fn runs(&self, count: usize) {
        let reached = async {
            while self.running().len() != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(Duration::from_secs(60), reached)
            .await
            .is_err()
        {
            panic!("{:?} run, not {count}: {:#?}", self.running(), self.lines());
        }
    }

    /// A file that is not there yet; what waits for it ends when it is.
    fn gate(&self) -> PathBuf {
        self.0.with_extension("gate")
    }
}

impl Drop for Diary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_file(self.gate());
    }
}

async fn started(config: Config) -> Harness {
    let peer = ScriptedServer::start(|_| None).await;
    Harness::behind(peer, config).await
}

fn offering(config: Config, ids: &[&str]) -> Config {
    let variants = ids.iter().map(|id| variant(id)).collect();
    config.with_variants_of(variants).unwrap()
}

/// A gateway that offers these variants, and its configuration without them.
async fn offered(ids: &[&str]) -> (Config, Harness) {
    let peer = places_server::start(Era::Legacy).await;
    let base = config(Target::http(peer.url.clone()));
    let harness = Harness::behind(peer, offering(base.clone(), ids)).await;
    (base, harness)
}

async fn tools(harness: &Harness) -> Vec<String> {
    let list = harness.ask_modern("tools/list", json!({})).await;
    let listed = names(&list);
    listed.into_iter().map(|name| name.to_string()).collect()
}

async fn process(harness: &Harness, tool_name: &str) -> u64 {
    let answer = harness.ask_modern("tools/call", tool(tool_name)).await;
    let process = answer["result"]["pid"].as_u64();
    process.unwrap_or_else(|| panic!("no process: {answer}"))
}

#[tokio::test]
async fn servers_that_are_as_before_run_on_and_are_not_even_asked() {
    let diary = Diary::new();
    let harness = started(diary.config(&["one", "two"])).await;
    let one = process(&harness, "one_who").await;
    let two = process(&harness, "two_who").await;
    let mut servers = vec![diary.server("three"), diary.changed("two", 1)];
    servers.push(diary.server("one"));
    let reloaded = harness.reload(diary.config_of(servers)).await;
    assert_eq!(
        reloaded.to_string(),
        "servers: 1 added (three), 1 connected anew (two), 1 as before; variants: 4 as before"
    );
    let listed = "three_who three_change two_who two_change one_who one_change";
    assert_eq!(tools(&harness).await.join(" "), listed);
    assert_eq!(process(&harness, "one_who").await, one);
    assert_ne!(process(&harness, "two_who").await, two);
    let counts = ["start", "list"].map(|what| diary.count("one", what));
    assert_eq!(counts, [1, 1]);
    diary.runs(3).await;
    let reloaded = harness.reload(diary.config(&["one"])).await;
    assert_eq!(reloaded.servers.removed, ["three", "two"]);
    assert_eq!(tools(&harness).await, ["one_who", "one_change"]);
    diary.runs(1).await;
    assert_eq!(process(&harness, "one_who").await, one);
    harness.gateway.close().await;
    diary.runs(0).await;
}

/// Whatever differs in an entry makes it another; what is only written differently does not.
#[tokio::test]
async fn an_entry_is_another_when_what_it_comes_to_is() {
    let diary = Diary::new();
    let harness = started(diary.config(&["one"])).await;
    for (step, change) in [
        (0, (|_| {}) as fn(&mut UpstreamConfig)),
        (1, |server| {
            server.limits.ready_timeout = Duration::from_secs(9)
        }),
        (2, |server| server.isolation = Isolation::Session),
        (3, |server| server.forwarded_extensions.clear()),
    ] {
        let mut server = diary.server("one");
        change(&mut server);
        let reloaded = harness.reload(diary.config_of(vec![server])).await;
        let replaced = reloaded.servers.replaced.len();
        assert_eq!(replaced, usize::from(step > 0), "{step}");
        assert_eq!(diary.count("one", "start"), 1 + step, "{step}");
    }
}

/// Of a variable counts what it stands for.
#[tokio::test]
async fn a_variable_in_an_entry_is_what_it_stands_for() {
    let diary = Diary::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/turn.py");
    let read = |mode: &str, value: &str| {
        let entry = json!({
            "command": "python3", "args": [&script, "one", &diary.0], "env": {"MODE": mode},
        });
        let text = json!({"servers": {"one": entry}}).to_string();
        let variable = |name: &str| (name == "MODE").then(|| value.to_owned());
        let file = Source::new("vary.json", &text).read(&variable).unwrap();
        diary.config_of(file.servers)
    };
    let harness = started(read("${MODE}", "quick")).await;
    for (mode, value, replaced) in [
        ("quick", "", 0),
        ("${MODE:-quick}", "quick", 0),
        ("${MODE}", "slow", 1),
        ("${MODE}", "slow", 0),
    ] {
        let reloaded = harness.reload(read(mode, value)).await;
        assert_eq!(reloaded.servers.replaced.len(), replaced, "{mode} {value}");
    }
    assert_eq!(diary.count("one", "start"), 2);
}

#[tokio::test]
async fn what_a_server_announces_later_is_seen() {
    let diary = Diary::new();
    let harness = started(diary.config(&["one"])).await;
    for round in 0..3 {
        let other = offering(diary.config(&["one"]), &["a", "b", "c"][round..]);
        harness.reload(other).await;
        let grown = format!("grown{round}");
        let grow = json!({"name": "one_who", "arguments": {"grow": grown}});
        harness.ask_modern("tools/call", grow).await;
        let listed = tools(&harness).await;
        assert_eq!(listed.len(), 3 + round, "{listed:?}");
        assert_eq!(listed.last(), Some(&format!("one_{grown}")));
    }
    // Once at the start, and once for each announcement.
    assert_eq!(diary.count("one", "list"), 1 + 3);
}

#[tokio::test]
async fn a_call_that_a_server_works_on_ends_where_it_began() {
    for goes in [true, false] {
        let diary = Diary::new();
        let harness = Arc::new(started(diary.config(&["one", "two"])).await);
        let gate = diary.gate();
        let slow = json!({"name": "two_who", "arguments": {"until": gate, "n": 7}});
        let mut calls = JoinSet::new();
        for way in ClientKind::ALL {
            let (harness, slow) = (Arc::clone(&harness), slow.clone());
            calls.spawn(async move { harness.ask(way, "tools/call", slow).await });
        }
        until(async || diary.count("two", "call 7") >= ClientKind::ALL.len()).await;
        let mut servers = vec![diary.server("one")];
        if !goes {
            servers.push(diary.changed("two", 1));
        }
        let count = servers.len();
        harness.reload(diary.config_of(servers)).await;
        // What is asked from now on is asked of what there is now.
        let params = json!({"name": "two_who", "arguments": {"n": 8}});
        let now = harness.ask_modern("tools/call", params).await;
        assert_eq!(now["error"].is_object(), goes, "{now}");
        assert_eq!(diary.running().len(), count + 1);
        std::fs::write(&gate, "").unwrap();
        while let Some(answer) = soon(calls.join_next()).await {
            let answer = answer.unwrap();
            answer.has("/result/n", 7);
            assert_ne!(answer["result"]["pid"], now["result"]["pid"]);
        }
        diary.runs(count).await;
        assert_eq!(diary.count("two", "call 7"), ClientKind::ALL.len());
    }
}

/// The connections of single sessions, and of clients that can do something particular, are servers' too.
#[tokio::test]
async fn what_belongs_to_a_session_is_still_its_own() {
    const UI: &str = "io.modelcontextprotocol/ui";
    let diary = Diary::new();
    let own = || {
        let server = diary.server("own").with_isolation(Isolation::Session);
        vec![server, diary.server("shared")]
    };
    let harness = started(diary.config_of(own())).await;
    let with_ui = json!({"extensions": {UI: {"mimeTypes": ["text/html"]}}});
    let mut clients = Vec::new();
    for capabilities in [json!({}), with_ui] {
        clients.push(LegacyClient::open(&harness, "2025-11-25", &capabilities).await);
    }
    let mut before = Vec::new();
    for round in 0..4 {
        let mut now = Vec::new();
        for client in &mut clients {
            for name in ["own_who", "shared_who"] {
                let answer = client.answer("tools/call", tool(name)).await;
                now.push(answer["result"]["pid"].as_u64().expect("a process"));
            }
        }
        if round == 0 {
            before = now;
        } else {
            assert_eq!(now, before, "{round}");
        }
        let mut servers = own();
        servers.push(diary.changed("other", round));
        harness.reload(diary.config_of(servers)).await;
    }
    // The first connection to either server, that of each session to its own, that of clients with a UI to the
    // shared one, and the server that changes.
    diary.runs(6).await;
    for mut client in clients {
        client.delete().await;
    }
    harness.gateway.close().await;
    diary.runs(0).await;
}

/// Who has no session is offered what there is now (SV-2).
#[tokio::test]
async fn variants_change_and_no_server_hears_of_it() {
    let (base, harness) = offered(&["a", "b"]).await;
    let seen = harness.peer.received().len();
    let mut second = variant("c").with_base(Base::ReadOnly);
    second.tools = serde_json::from_str(r#"{"exclude": ["bound"]}"#).unwrap();
    let all = vec![variant("b"), second];
    let other = base.clone().with_variants_of(all).unwrap();
    let reloaded = harness.reload(other).await;
    let expected = "servers: 1 as before; variants: 1 added (c), 1 removed (a), 1 as before";
    assert_eq!(reloaded.to_string(), expected);
    let list = harness
        .ask_modern("tools/list", under("c", json!({})))
        .await;
    assert_eq!(names(&list), ["odd"]);
    let gone = harness
        .ask_modern("tools/list", under("a", json!({})))
        .await;
    gone.has("/error/data/availableVariants", json!(["b", "c"]));
    let discovered = harness.ask_modern("server/discover", json!({})).await;
    let offers = &discovered["result"]["capabilities"]["extensions"]["io.modelcontextprotocol/server-variants"]
        ["availableVariants"];
    assert_eq!(offers[0]["id"], "b", "{discovered}");
    assert_eq!(harness.peer.received().len(), seen);
    let mut none = base;
    none.variants = false;
    let reloaded = harness.reload(none).await;
    let found = reloaded.to_string();
    assert_eq!(found, "servers: 1 as before; variants: 2 removed (b, c)");
}

/// Ids and ranking are the session's, contents are the configuration's (SV-2).
#[tokio::test]
async fn a_session_keeps_its_variants_and_sees_what_they_show_now() {
    let (base, harness) = offered(&["a", "b"]).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
    let mut less = variant("a");
    less.tools = serde_json::from_str(r#"{"include": ["odd"]}"#).unwrap();
    let order = vec![variant("new"), variant("b"), less];
    let other = base.clone().with_variants_of(order).unwrap();
    harness.reload(other).await;
    let list = client.answer("tools/list", json!({})).await;
    assert_eq!(names(&list), ["odd"]);
    let list = pipe.ask(&request(json!(1), "tools/list", json!({}))).await;
    assert_eq!(names(&list), ["odd"]);
    // Who comes now is offered what there is now.
    let discovered = harness.ask_modern("tools/list", json!({})).await;
    assert!(names(&discovered).len() > 1);
}

/// SV-2, SV-9: it was not offered to the session, and can be selected like every other one, unless only those that were
/// offered can be.
#[tokio::test]
async fn a_variant_that_is_added_can_be_selected_in_an_open_session() {
    for advertised_only in [false, true] {
        let peer = places_server::start(Era::Legacy).await;
        let mut base = config(Target::http(peer.url.clone()));
        base.advertised_only = advertised_only;
        let harness = Harness::behind(peer, offering(base.clone(), &["a", "b"])).await;
        let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
        let list = |id: &str| request(json!(1), "tools/list", under(id, json!({})));
        let mut ask = async |id: &str| {
            let over_http = client.post(&list(id));
            let over_http = client.http.ask(&over_http).await.json();
            assert_eq!(over_http, pipe.ask(&list(id)).await, "{id}");
            over_http
        };
        let invalid = |id: &str, available: &[&str]| {
            let data = json!({"requestedVariant": id, "availableVariants": available});
            json!({"code": -32602, "message": "Invalid server variant", "data": data})
        };
        let refused = ask("new").await;
        refused.has("/error", invalid("new", &["a", "b"]));
        let mut new = variant("new");
        new.tools = serde_json::from_str(r#"{"include": ["odd"]}"#).unwrap();
        let variants = vec![new, variant("b"), variant("a")];
        let other = base.with_variants_of(variants).unwrap();
        harness.reload(other).await;
        let (added, unknown) = (ask("new").await, ask("nix").await);
        if advertised_only {
            added.has("/error", invalid("new", &["a", "b"]));
            unknown.has("/error", invalid("nix", &["a", "b"]));
        } else {
            assert_eq!(names(&added), ["odd"]);
            unknown.has("/error", invalid("nix", &["a", "b", "new"]));
        }
    }
}

/// What was frozen is not exchanged for something else (SV-2).
#[tokio::test]
async fn a_session_of_which_a_variant_is_gone_begins_anew() {
    for without_variants in [false, true] {
        let (base, harness) = offered(&["a", "b"]).await;
        let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
        let mut stream = stream_of(&harness, &client).await;
        let declaring = LegacyClient::open(&harness, "2025-11-25", &declaring_variants()).await;
        let mut stream_of_declaring = stream_of(&harness, &declaring).await;
        let mut other = offering(base.clone(), &["b", "c"]);
        other.variants = !without_variants;
        harness.reload(other).await;
        assert_eq!(soon(stream.event()).await, None);
        assert_eq!(soon(stream_of_declaring.event()).await, None);
        assert_eq!(client.ask("tools/list", json!({})).await.status, 404);
        let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        assert_eq!(client.ask("tools/list", json!({})).await.status, 200);
        // On stdio there is no other session to begin: it is told once.
        let list = request(json!(1), "tools/list", json!({}));
        let told = pipe.ask(&list).await;
        told.contains("/error/message", "list what there is now");
        assert!(pipe.ask(&list).await["result"].is_object());
        let under_new = request(json!(2), "tools/list", under("c", json!({})));
        let answer = pipe.ask(&under_new).await;
        assert_eq!(answer["error"].is_object(), without_variants, "{answer}");
    }
}

/// What runs when a stdio session begins anew can be cancelled all the same, and its level stays.
#[tokio::test]
async fn what_is_in_flight_when_a_session_begins_anew_is_still_the_clients() {
    let (base, harness) = offered(&["a"]).await;
    let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
    let wait = request(json!("w"), "tools/call", tool("wait"));
    pipe.send(wait.to_string()).await;
    harness.peer.wait_for("tools/call", 1).await;
    harness.reload(offering(base, &["b"])).await;
    let told = pipe.ask(&request(json!(1), "tools/list", json!({}))).await;
    assert!(told["error"].is_object());
    let cancel = notification("notifications/cancelled", json!({"requestId": "w"}));
    pipe.send(cancel.to_string()).await;
    harness.peer.wait_for("notifications/cancelled", 1).await;
}

#[tokio::test]
async fn links_that_a_client_was_given_lead_where_they_led() {
    let diary = Diary::new();
    let peer = |name: &'static str| async move {
        ScriptedServer::start(move |seen| {
            let result = match seen.method() {
                "tools/list" => tool_list(&["who"]),
                "tools/call" => json!({"content": [
                    {"type": "resource_link", "uri": "linked:1", "name": "x"},
                ]}),
                "resources/list" | "resources/templates/list" => {
                    json!({"resources": [], "resourceTemplates": []})
                }
                "resources/read" => json!({"contents": [], "by": name}),
                "initialize" => introduced(name, json!({"tools": {}, "resources": {}})),
                _ => return None,
            };
            Some(seen.answer(&result))
        })
        .await
    };
    let (one, two) = (peer("one").await, peer("two").await);
    let [first, second] = [("one", &one), ("two", &two)]
        .map(|(name, peer)| UpstreamConfig::new(name, Target::http(peer.url.clone())));
    let harness = started(diary.config_of(vec![first.clone(), second.clone()])).await;
    harness.ask_modern("tools/call", tool("two_who")).await;
    harness.reload(diary.config_of(vec![second, first])).await;
    let read = harness
        .ask_modern("resources/read", json!({"uri": "linked:1"}))
        .await;
    read.has("/result/by", "two");
}

#[tokio::test]
async fn what_cannot_be_connected_to_changes_nothing() {
    let diary = Diary::new();
    let harness = started(diary.config(&["one"])).await;
    let process_before = process(&harness, "one_who").await;
    let missing = || UpstreamConfig::new("one", Target::command("no-such-program", []));
    let without = diary.config_of(vec![missing()]);
    let error = harness.gateway.reload(without).await.unwrap_err();
    assert!(error.to_string().contains("no-such-program"), "{error}");
    assert_eq!(process(&harness, "one_who").await, process_before);
    // One of several is no reason to keep the others from clients.
    let servers = vec![diary.server("two"), missing()];
    let reloaded = harness.reload(diary.config_of(servers)).await;
    assert_eq!(reloaded.servers.replaced, ["one"]);
    assert_eq!(tools(&harness).await, ["two_who", "two_change"]);
    // And where there is nothing new to connect to, nothing can fail.
    diary.runs(1).await;
}

#[tokio::test]
async fn a_reload_that_is_given_up_leaves_nothing_behind() {
    let diary = Diary::new();
    let harness = started(diary.config(&["one"])).await;
    let silent = ScriptedServer::start(|_| Some(Reply::silence())).await;
    let mut servers = vec![diary.server("one"), diary.server("two")];
    let silent = Target::http(silent.url.clone());
    servers.push(UpstreamConfig::new("silent", silent));
    {
        let reload = harness.gateway.reload(diary.config_of(servers));
        let mut reload = std::pin::pin!(reload);
        tokio::select! {
            _ = &mut reload => panic!("the silent server was not waited for"),
            () = until(async || diary.count("two", "list") != 0) => {}
        }
    }
    assert_eq!(tools(&harness).await, ["one_who", "one_change"]);
    diary.runs(1).await;
}

#[tokio::test]
async fn a_closed_gateway_is_not_configured_anew() {
    let diary = Diary::new();
    let harness = started(diary.config(&["one"])).await;
    harness.gateway.close().await;
    let refused = harness.gateway.reload(diary.config(&["one", "two"])).await;
    assert!(matches!(refused, Err(ReloadError::Closed)));
    assert_eq!(diary.count("two", "start"), 0);
}

/// A server that hangs in a call would otherwise keep its process for as long as a call may take.
#[tokio::test]
async fn the_end_of_the_gateway_is_the_end_of_what_it_gave_up() {
    let diary = Diary::new();
    let harness = started(diary.config(&["one", "two"])).await;
    let slow = json!({"name": "two_who", "arguments": {"until": diary.gate(), "n": 1}});
    let mut http = harness.connect().await;
    let slow = HttpRequest::modern_request("tools/call", slow);
    http.send(&slow.bytes()).await;
    until(async || diary.count("two", "call 1") != 0).await;
    harness.reload(diary.config(&["one"])).await;
    assert_eq!(diary.running().len(), 2);
    soon(harness.gateway.close()).await;
    diary.runs(0).await;
}

#[tokio::test]
async fn what_takes_effect_at_the_next_start_is_named() {
    let diary = Diary::new();
    let harness = started(diary.config(&["one"])).await;
    let narrow = limits().with_sessions(7).with_body(64);
    let mut other = diary.config(&["one"]).with_limits(narrow);
    other.limits.orphaned_requests = 1;
    other.selection = SelectionConfig::default();
    let reloaded = harness.reload(other).await;
    let expected = ["limits.sessions", "limits.orphaned-requests"];
    assert_eq!(reloaded.at_next_start, expected);
    let expected = "; at the next start: limits.sessions, limits.orphaned-requests";
    assert!(reloaded.to_string().ends_with(expected));
    // What needs no new start holds at once.
    let long = HttpRequest::new("x".repeat(65));
    assert_eq!(harness.connect().await.ask(&long).await.status, 413);
}

/// Two listeners of one gateway are configured by one reload.
#[tokio::test]
async fn every_listener_serves_what_is_configured_now() {
    let diary = Diary::new();
    let harness = started(diary.config(&["one"])).await;
    let (second, stop) = serve(&harness.gateway).await;
    let mut http = RawHttp::connect(second).await;
    harness.reload(diary.config(&["two"])).await;
    let list = modern(json!(1), "tools/list", json!({}), &json!({}));
    let list = http.ask(&HttpRequest::modern(&list)).await.json();
    assert_eq!(names(&list), ["two_who", "two_change"]);
    stop.cancel();
}
