//! Clients that connect while servers are starting: they get what is there, and notifications of the rest.

use mcp_vary_gateway::Naming;
use mcp_vary_upstream::{Target, UpstreamConfig};
use tokio::sync::Notify;

use crate::support::*;

/// A server that does not answer its handshake before the test says so.
#[derive(Clone)]
struct Late {
    era: Era,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    is_ready: bool,
    waiting: Vec<(UnboundedSender<Bytes>, ReceivedRequest)>,
}

impl Late {
    async fn start(era: Era) -> (Self, ScriptedServer) {
        let late = Self {
            era,
            state: Arc::default(),
        };
        let script = late.clone();
        let ready = server("late", era);
        let peer = ScriptedServer::start(move |seen| script.reply_to(seen, &ready)).await;
        (late, peer)
    }

    fn reply_to(&self, seen: &ReceivedRequest, ready: &Script) -> Option<Reply> {
        let mut state = self.state.lock().unwrap();
        if state.is_ready || seen.verb != "POST" {
            return ready.reply_to(seen);
        }
        let (sender, reply) = Reply::stream();
        state.waiting.push((sender, seen.clone()));
        Some(reply)
    }

    /// Answers nothing from now on.
    fn hold(&self) {
        self.state.lock().unwrap().is_ready = false;
    }

    /// Answers what waits, and from now on.
    fn release(&self) {
        let mut state = self.state.lock().unwrap();
        state.is_ready = true;
        for (sender, seen) in state.waiting.drain(..) {
            let error = json!({"code": -32601, "message": "no"});
            let message = match handshake("late", self.era, &seen) {
                Some(result) => seen.message(&result),
                None => json!({"jsonrpc": "2.0", "id": seen.id(), "error": error}),
            };
            let _ = sender.send(event(&message).into());
        }
    }
}

/// A server with tools and a resource.
fn server(name: &'static str, era: Era) -> Script {
    let script = Script::new(era, name)
        .tools(&["who", &format!("{name}-only")])
        .result("tools/call", json!({"by": name, "content": []}))
        .lists(json!({
            "resources": [{"uri": "same:1", "name": "same"}],
            "resourceTemplates": [],
        }))
        .result("resources/read", json!({"contents": [], "by": name}));
    match era {
        Era::Legacy => script,
        Era::Modern => script.reply("initialize", |seen| {
            seen.refuse(400, -32601, "Method not found")
        }),
    }
}

fn handshake(name: &str, era: Era, seen: &ReceivedRequest) -> Option<Value> {
    let capabilities = json!({"tools": {}, "resources": {}});
    match (seen.method(), era) {
        ("initialize", Era::Legacy) => Some(introduced(name, capabilities)),
        ("server/discover", Era::Modern) => Some(discovered(capabilities)),
        _ => None,
    }
}

/// A gateway before a server that starts and, after it, one that is there.
async fn beside(era: Era, naming: Naming) -> (Harness, Late) {
    let quick = server("quick", era).start().await;
    let (late, peer) = Late::start(era).await;
    let config = before(&[("late", &peer), ("quick", &quick)]).with_naming(naming);
    std::mem::forget(quick);
    let harness = Harness::behind(peer, waiting_little(config)).await;
    (harness, late)
}

fn waiting_little(config: Config) -> Config {
    config.allow_empty_start(Duration::from_millis(500))
}

/// Waits until the gateway lists what the server has that was released.
async fn arrived(harness: &Harness) {
    let gateway = &harness.gateway;
    let is_listed = || gateway.served().iter().any(|it| it.server == "late");
    until(async || gateway.servers()[0].counts.len() == 3 && is_listed()).await;
}

#[tokio::test]
async fn what_is_there_is_listed_while_a_server_starts() {
    for era in [Era::Legacy, Era::Modern] {
        let (harness, late) = beside(era, Naming::AsNeeded).await;
        assert_eq!(harness.gateway.status().servers[0].state, "starting");
        for way in ClientKind::ALL {
            let list = harness.ask(way, "tools/list", json!({})).await;
            assert_eq!(names(&list), ["quick_who", "quick_quick-only"], "{way:?}");
            let said = harness.ask(way, "tools/call", tool("quick_who")).await;
            assert_eq!(said["result"]["by"], "quick", "{way:?}");
        }
        late.release();
        arrived(&harness).await;
        for way in ClientKind::ALL {
            let list = harness.ask(way, "tools/list", json!({})).await;
            let all = "late_who late_late-only quick_who quick_quick-only";
            assert_eq!(names(&list).join(" "), all, "{way:?}");
        }
    }
}

/// Tries to connect as a client that gives up after `patience`, until it is in. Returns how often it tried.
async fn tries(harness: &Harness, era: Era, number: usize, patience: Duration) -> usize {
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/ui": {"n": number}}});
    for tried in 1..=500 {
        let connecting = async {
            match era {
                Era::Legacy => {
                    LegacyClient::open(harness, "2025-11-25", &capabilities).await;
                }
                Era::Modern => {
                    ask_modern_as(harness, &capabilities, "server/discover", json!({})).await;
                }
            }
        };
        if tokio::time::timeout(patience, connecting).await.is_ok() {
            return tried;
        }
        tokio::time::sleep(patience / 6).await;
    }
    panic!("{era:?}, {patience:?}: never connected");
}

/// The processes that its capabilities need are started once, and go on starting without it.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_gives_up_gets_in_at_a_later_try_which_starts_nothing_anew() {
    let starts = Starts::new("tries");
    let servers = [("slow", "2"), ("a", "0"), ("b", "0"), ("c", "0")];
    let mut config = config(Target::command("none", []));
    config.servers = servers
        .map(|(name, waits)| starts.server(name, waits, "0"))
        .to_vec();
    let harness = Harness::behind(places_server::start(Era::Legacy).await, config).await;
    let clients = [
        (Era::Legacy, 100),
        (Era::Legacy, 300),
        (Era::Legacy, 700),
        (Era::Modern, 100),
        (Era::Modern, 300),
        (Era::Modern, 700),
    ];
    let tries = clients.iter().enumerate().map(|(number, (era, patience))| {
        tries(&harness, *era, number, Duration::from_millis(*patience))
    });
    let tries = futures_util::future::join_all(tries).await;
    assert!(tries.iter().all(|tried| *tried > 1), "{tries:?}");
    let expected = 4 + 6 * 4;
    until(async || starts.count() >= expected).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(
        starts.count(),
        expected,
        "those of each class, and no other"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn a_program_that_still_computes_when_its_time_is_over_is_not_ended() {
    let starts = Starts::new("computes");
    let mut config = config(Target::command("none", []));
    // It needs 20 ms of each second and a half: so much it gets beside forty others, too.
    config.servers = vec![starts.server("slow", "8", "0")];
    config.servers[0].limits.handshake = Duration::from_secs(6);
    let gateway = Gateway::open(waiting_little(config)).await;
    until(async || gateway.status().servers[0].state == "up").await;
    assert_eq!(starts.count(), 1);
    gateway.close().await;
}

/// Work for one core, until it is dropped.
struct Load(std::process::Child);

impl Load {
    fn begin(_: usize) -> Self {
        let mut command = std::process::Command::new("python3");
        Self(command.args(["-c", "while True: pass"]).spawn().unwrap())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// They start in turns, so that each is ready before its time is over.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes, with a load of twenty"]
async fn fifty_programs_are_ready_after_their_first_start_beside_a_load_of_twenty() {
    let load: Vec<_> = (0..20).map(Load::begin).collect();
    let starts = Starts::new("load");
    let mut config = config(Target::command("none", []));
    let names = (0..50).map(|number| format!("s{number}"));
    config.servers = names.map(|name| starts.server(&name, "0", "1")).collect();
    let began = std::time::Instant::now();
    let gateway = Gateway::open(waiting_little(config)).await;
    let is_waiting = || {
        gateway
            .status()
            .servers
            .iter()
            .any(|it| it.state == "waiting")
    };
    let up = || {
        gateway
            .status()
            .servers
            .iter()
            .filter(|it| it.state == "up")
            .count()
    };
    let mut was_waiting = false;
    while up() < 50 {
        assert!(
            began.elapsed() < Duration::from_secs(600),
            "{} are up",
            up()
        );
        was_waiting |= is_waiting();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    drop(load);
    assert!(
        was_waiting,
        "the status says which programs wait for their turn"
    );
    assert_eq!(starts.count(), 50, "none was ended and started again");
    gateway.close().await;
}

/// The starts of the processes of a test.
struct Starts(std::path::PathBuf);

impl Starts {
    fn new(test: &str) -> Self {
        let name = format!("vary-starts-{test}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    /// A program that computes a little while it waits, and then nothing else, for these seconds.
    fn server(&self, name: &str, waits: &str, computes: &str) -> UpstreamConfig {
        let mut target = of_script("who.py");
        if let Target::Command { args, .. } = &mut target {
            args.extend([self.0.to_str().unwrap(), waits, computes].map(str::to_owned));
        }
        UpstreamConfig::new(name, target)
    }

    fn count(&self) -> usize {
        std::fs::read(&self.0).unwrap_or_default().len()
    }
}

impl Drop for Starts {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn the_log_says_once_what_to_set_if_a_list_lacks_a_server_that_starts() {
    let (log, _listening) = CapturedLog::listen("mcp_vary_gateway", Level::WARN);
    let (harness, _late) = beside(Era::Legacy, Naming::AsNeeded).await;
    for way in ClientKind::ALL {
        harness.ask(way, "tools/list", json!({})).await;
    }
    let said = log.take();
    let lacks = "a client got a list without the tools of this server, which is still starting; if clients list only once, raise `start-wait`";
    let said: Vec<_> = said.iter().filter(|line| line.contains(lacks)).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("late") && said[0].contains("500ms"),
        "{said:?}"
    );
}

/// A name that no list has yet may be one of a server that starts.
#[tokio::test]
async fn a_call_waits_for_a_server_that_starts_and_then_says_so() {
    let (harness, late) = beside(Era::Legacy, Naming::AsNeeded).await;
    let said =
        "`late_who` is not known yet: server `late` is still starting; try again in a moment";
    for way in ClientKind::ALL {
        let answer = harness.ask(way, "tools/call", tool("late_who")).await;
        let expected = json!({"code": -32603, "message": said});
        assert_eq!(answer["error"], expected, "{way:?}");
    }
    late.release();
    arrived(&harness).await;
    let answer = harness.ask_modern("tools/call", tool("nix")).await;
    answer.has("/error/message", "Unknown tool: nix");
}

/// So may the name of a prompt and the URI of a resource.
#[tokio::test]
async fn a_prompt_and_a_resource_wait_for_a_server_that_starts_and_then_say_so() {
    let (harness, late) = beside(Era::Legacy, Naming::AsNeeded).await;
    let asked = [
        ("prompts/get", "name", "late_greet", -32602),
        ("resources/read", "uri", "late:1", -32002),
    ];
    for (method, key, name, _) in asked {
        let said = format!(
            "`{name}` is not known yet: server `late` is still starting; try again in a moment"
        );
        for way in ClientKind::ALL {
            let params = json!({key: name});
            let answer = harness.ask(way, method, params).await;
            let expected = json!({"code": -32603, "message": said});
            assert_eq!(answer["error"], expected, "{way:?} {method}");
        }
    }
    late.release();
    arrived(&harness).await;
    for (method, key, name, unknown) in asked {
        let params = json!({key: name});
        let answer = harness.ask(ClientKind::HttpLegacy, method, params).await;
        answer.has("/error/code", unknown);
    }
}

/// They are found as soon as their server is ready.
#[tokio::test]
async fn a_prompt_and_a_resource_are_answered_as_soon_as_their_server_is_ready() {
    for (method, params, member) in [
        ("prompts/get", json!({"name": "greet"}), "messages"),
        ("resources/read", json!({"uri": "place:bern"}), "contents"),
    ] {
        for is_modern in [false, true] {
            let ready = Arc::new(Notify::new());
            let gate = Arc::clone(&ready);
            let result = introduced("places", places_server::capabilities());
            let script = places_server::script(Era::Legacy)
                .reply("initialize", move |seen| seen.answer(&result).after(&gate));
            let peer = script.start().await;
            let gateway = Gateway::open(before(&[("late", &peer)])).await;
            gateway.serve_now().await;
            let (address, _stop) = serve(&gateway).await;
            let asking = async {
                if is_modern {
                    let post = HttpRequest::modern_request(method, params.clone());
                    RawHttp::connect(address).await.ask(&post).await
                } else {
                    let mut client = LegacyClient::at(address, "2025-11-25", &json!({})).await;
                    client.ask(method, params.clone()).await
                }
            };
            let release = async {
                // The request is there by then, most likely.
                tokio::time::sleep(Duration::from_millis(100)).await;
                ready.notify_one();
            };
            let (answer, ()) = tokio::join!(asking, release);
            let answer = answer.answer();
            let found = &answer["result"][member];
            assert!(found.is_array(), "{method} {is_modern}: {answer}");
        }
    }
}

#[track_caller]
fn is_down(answer: &Value) {
    answer.has("/error/code", -32603);
    let expected = "server `gone` is down: its program was not found";
    answer.starts("/error/message", expected);
}

/// Its names are not known, but its prefix is.
#[tokio::test]
async fn a_call_to_a_server_that_was_never_reached_says_that_it_is_down() {
    let quick = server("quick", Era::Legacy).start().await;
    let mut config = before(&[("quick", &quick)]);
    let gone = Target::command("no-such-program", []);
    config.servers.push(UpstreamConfig::new("gone", gone));
    let gateway = Gateway::open(config).await;
    gateway.connected().await.unwrap();
    let (address, _stop) = serve(&gateway).await;
    let mut client = LegacyClient::at(address, "2025-11-25", &json!({})).await;
    let said = client.answer("tools/call", tool("gone_x")).await;
    is_down(&said);
    let said = client.answer("tools/call", tool("quick_x")).await;
    said.has("/error/message", "Unknown tool: quick_x");
}

/// No name has a prefix, so that each unknown one may be its.
#[tokio::test]
async fn a_call_of_an_unknown_name_says_that_a_server_was_never_reached_where_names_have_no_prefix()
{
    let quick = server("quick", Era::Legacy).start().await;
    let gone = || UpstreamConfig::new("gone", Target::command("no-such-program", []));
    let mut beside = before(&[("quick", &quick)]).with_naming(Naming::OnCollision);
    beside.servers.push(gone());
    let mut alone = before(&[("quick", &quick)]);
    alone.servers = vec![gone()];
    for config in [beside, waiting_little(alone)] {
        let gateway = Gateway::open(config).await;
        let _ = gateway.connected().await;
        let (address, _stop) = serve(&gateway).await;
        let mut client = LegacyClient::at(address, "2025-11-25", &json!({})).await;
        // On a busy machine a program waits for its turn to be started, longer than `start-wait` here.
        let said = until_some(async || {
            let said = client.answer("tools/call", tool("hello")).await;
            (!said.to_string().contains("is not known yet")).then_some(said)
        });
        is_down(&said.await);
    }
}

#[tokio::test]
async fn a_call_is_answered_as_soon_as_its_server_is_ready() {
    let (late, peer) = Late::start(Era::Legacy).await;
    let gateway = Gateway::open(before(&[("late", &peer)])).await;
    gateway.serve_now().await;
    let (address, _stop) = serve(&gateway).await;
    let mut client = LegacyClient::at(address, "2025-11-25", &json!({})).await;
    let release = async { late.release() };
    let (answer, ()) = tokio::join!(client.ask("tools/call", tool("who")), release);
    answer.json().has("/result/by", "late");
}

#[tokio::test]
async fn what_a_server_may_turn_out_to_have_is_declared_and_stays() {
    let (harness, late) = beside(Era::Legacy, Naming::AsNeeded).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let discovered = harness.ask_modern("server/discover", json!({})).await;
    let result = &discovered["result"];
    for declared in [&client.initialized["capabilities"], &result["capabilities"]] {
        for list in ["tools", "resources", "prompts"] {
            declared[list].has("/listChanged", true);
        }
        assert!(declared["completions"].is_object(), "{declared}");
        assert!(declared["logging"].is_object(), "{declared}");
    }
    let level = json!({"level": "info"});
    let set = client.ask("logging/setLevel", level.clone()).await;
    set.json().has("/result", json!({}));
    late.release();
    arrived(&harness).await;
    // It has none, and the client was told that there may be some.
    let prompts = client.ask("prompts/list", json!({})).await;
    prompts.json().has("/result/prompts", json!([]));
    let set = client.ask("logging/setLevel", level).await;
    set.json().has("/result", json!({}));
}

/// The list is announced to a session on its stream, and to a client of standard streams.
#[tokio::test]
async fn what_arrives_late_is_announced() {
    for era in [Era::Legacy, Era::Modern] {
        let (harness, late) = beside(era, Naming::AsNeeded).await;
        let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        client.ask("tools/list", json!({})).await;
        let mut stream = harness.connect().await;
        stream.open_stream(&HttpRequest::get(&client.session)).await;
        let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
        let list = pipe.ask(&request(json!(1), "tools/list", json!({}))).await;
        assert_eq!(names(&list).len(), 2);
        late.release();
        let changed = "notifications/tools/list_changed";
        soon(async { while stream.event().await.unwrap()["method"] != changed {} }).await;
        soon(async { while pipe.receive().await["method"] != changed {} }).await;
    }
}

/// Where nothing is there yet, the first list is empty, and what comes is announced.
#[tokio::test]
async fn before_servers_that_all_start_the_first_list_is_empty() {
    let (late, peer) = Late::start(Era::Legacy).await;
    let config = waiting_little(before(&[("late", &peer)]));
    let gateway = Gateway::open(config).await;
    assert_eq!(gateway.status().servers[0].state, "starting");
    // Requests that come before the wait is over are answered when it is.
    let mut pipe = legacy_pipe(&gateway, "2025-11-25", &json!({})).await;
    let list = pipe.ask(&request(json!(1), "tools/list", json!({}))).await;
    assert!(names(&list).is_empty());
    let (address, _stop) = serve(&gateway).await;
    let mut client = LegacyClient::at(address, "2025-11-25", &json!({})).await;
    let list = client.ask("tools/list", json!({})).await;
    assert!(names(&list.json()).is_empty());
    let set = client.answer("logging/setLevel", json!({"level": "info"}));
    set.await.has("/result", json!({}));
    late.release();
    let changed = "notifications/tools/list_changed";
    soon(async { while pipe.receive().await["method"] != changed {} }).await;
    let list = pipe.ask(&request(json!(2), "tools/list", json!({}))).await;
    assert_eq!(names(&list), ["who", "late-only"]);
}

/// Clients that declare something else need another connection to the server. While it is made they see what the
/// server lists for the clients before them, and their calls wait for it.
#[tokio::test]
async fn clients_of_another_kind_see_the_known_lists_while_their_connection_is_made() {
    for era in [Era::Legacy, Era::Modern] {
        let (late, peer) = Late::start(era).await;
        late.release();
        let config = waiting_little(before(&[("late", &peer)]));
        let harness = Harness::behind(peer, config).await;
        let list = harness.ask_modern("tools/list", json!({})).await;
        assert_eq!(names(&list), ["who", "late-only"], "{era:?}");
        late.hold();
        let asked = json!({"elicitation": {"form": {}}});
        let mut client = LegacyClient::open(&harness, "2025-11-25", &asked).await;
        let list = client.ask("tools/list", json!({})).await;
        assert_eq!(names(&list.json()), ["who", "late-only"], "{era:?}");
        let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &asked).await;
        let list = pipe.ask(&request(json!(1), "tools/list", json!({}))).await;
        assert_eq!(names(&list), ["who", "late-only"], "{era:?}");
        let released = async { late.release() };
        let (said, ()) = tokio::join!(client.ask("tools/call", tool("who")), released);
        assert_eq!(said.json()["result"]["by"], "late", "{era:?}");
    }
}

/// SV-14: a name that a client saw listed keeps its meaning, in any order in which servers become ready.
#[tokio::test]
async fn a_listed_name_never_comes_to_mean_the_tool_of_a_server_that_is_late() {
    for era in [Era::Legacy, Era::Modern] {
        let (harness, late) = beside(era, Naming::Never).await;
        let ask = async |method: &str, params: Value| harness.ask_modern(method, params).await;
        let expected = ["who", "quick-only"];
        assert_eq!(names(&ask("tools/list", json!({})).await), expected);
        late.release();
        arrived(&harness).await;
        let list = ask("tools/list", json!({})).await;
        assert_eq!(names(&list), ["late-only", "who", "quick-only"]);
        for (method, params) in [
            ("tools/call", tool("who")),
            ("resources/read", json!({"uri": "same:1"})),
            ("tools/call", under("compact", tool("who"))),
        ] {
            let answer = ask(method, params).await;
            answer.has("/result/by", "quick");
        }
        let collisions = harness.gateway.collisions();
        let who = collisions.iter().find(|it| it.id == "who").unwrap();
        assert_eq!((&*who.reachable, &*who.hidden), ("quick", "late"));
    }
}

#[tokio::test]
async fn a_name_that_collides_late_means_nobodys_tool() {
    let (harness, late) = beside(Era::Legacy, Naming::OnCollision).await;
    let call = async |name: &str| harness.ask_modern("tools/call", tool(name)).await;
    call("who").await.has("/result/by", "quick");
    late.release();
    arrived(&harness).await;
    call("late_who").await.has("/result/by", "late");
    call("quick_who").await.has("/result/by", "quick");
    call("who").await.has("/error/code", -32602);
}
