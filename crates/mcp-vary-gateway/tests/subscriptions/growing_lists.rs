//! Servers whose lists grow when a tool is called, and clients that accept requests of servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use futures_util::future::join_all;
use mcp_vary_testkit::scripted_server::discover;
use tokio::sync::Notify;

use crate::support::*;

/// What clients with a person and a model declare.
pub(crate) fn can_be_asked() -> Value {
    json!({"roots": {"listChanged": true}, "sampling": {}, "elicitation": {}})
}

/// The ways by which a client can be told from others.
pub(crate) const RECOGNISED: [ClientKind; 3] = [
    ClientKind::HttpLegacy,
    ClientKind::StdioLegacy,
    ClientKind::StdioModern,
];

/// Where the server says that its list has grown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Announcement {
    /// On the stream of the call.
    Call,
    /// On the stream of a `GET` of the same session.
    Get,
    /// By a process, which has one stream for everything.
    Pipe,
    /// On the stream of the call, by a server of 2026-07-28.
    ModernCall,
}

/// An endpoint of 2025-11-25 with sessions, whose lists grow by session or for all.
#[derive(Clone)]
pub(crate) struct Growing {
    announcement: Announcement,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    sessions: usize,
    /// What each session lists beside the rest.
    alone: BTreeMap<String, Vec<String>>,
    shared: Vec<String>,
    streams: BTreeMap<String, UnboundedSender<Bytes>>,
    /// How often each session was asked for its tools.
    listed: BTreeMap<String, usize>,
}

impl Growing {
    pub(crate) fn new(announcement: Announcement) -> Self {
        let state = Arc::default();
        Self {
            announcement,
            state,
        }
    }

    pub(crate) async fn start(&self) -> ScriptedServer {
        let growing = self.clone();
        ScriptedServer::start(move |seen| growing.reply_to(seen)).await
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap())
    }

    fn reply_to(&self, seen: &ReceivedRequest) -> Option<Reply> {
        let session = seen.header("mcp-session-id").unwrap_or_default().to_owned();
        match seen.method() {
            "initialize" if self.announcement == Announcement::ModernCall => {
                Some(seen.refuse(400, -32601, "Method not found"))
            }
            "server/discover" if self.announcement == Announcement::ModernCall => {
                Some(discover(seen))
            }
            "subscriptions/listen" => {
                let filter = &seen.body["params"]["notifications"];
                let (sender, reply) = Reply::subscription(seen.id(), filter);
                self.with(|state| state.streams.insert(seen.id().to_string(), sender));
                Some(reply)
            }
            "initialize" => {
                let number = self.with(|state| {
                    state.sessions += 1;
                    state.sessions
                });
                let result = introduced("growing", json!({"tools": {"listChanged": true}}));
                Some(seen.open(format!("s-{number}"), &result))
            }
            "GET" => {
                let (sender, reply) = Reply::stream();
                self.with(|state| state.streams.insert(session, sender));
                Some(reply)
            }
            "tools/list" => {
                let names = self.with(|state| {
                    *state.listed.entry(session.clone()).or_default() += 1;
                    state.names(&session)
                });
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                Some(seen.answer(&tool_list(&names)))
            }
            "tools/call" => Some(self.call(seen, &session)),
            _ => None,
        }
    }

    fn call(&self, seen: &ReceivedRequest, session: &str) -> Reply {
        let name = seen.body["params"]["name"].as_str().unwrap();
        let result = json!({"content": [{"type": "text", "text": name}]});
        if name != "enable" {
            let is_there = self.with(|state| state.names(session).iter().any(|it| it == name));
            return if is_there {
                seen.answer(&result)
            } else {
                seen.refuse(200, -32602, "the server has no such tool")
            };
        }
        let arguments = &seen.body["params"]["arguments"];
        let tool = arguments["tool"].as_str().unwrap().to_owned();
        let grown = event(&notification("notifications/tools/list_changed", json!({})));
        let grown = grown.repeat(arguments["times"].as_u64().unwrap_or(1).try_into().unwrap());
        self.with(|state| {
            let list = match arguments["everywhere"].as_bool() {
                Some(true) => &mut state.shared,
                _ => state.alone.entry(session.to_owned()).or_default(),
            };
            list.push(tool);
            if self.announcement == Announcement::Get {
                let stream = &state.streams[session];
                let _ = stream.send(grown.clone().into());
                if arguments["asks"] == true {
                    let roots = json!({"jsonrpc": "2.0", "id": "roots", "method": "roots/list"});
                    let _ = stream.send(event(&roots).into());
                }
            }
        });
        match self.announcement {
            Announcement::Call | Announcement::ModernCall => {
                Reply::events(format!("{grown}{}", event(&seen.message(&result))))
            }
            _ => seen.answer(&result),
        }
    }
}

impl State {
    fn names(&self, session: &str) -> Vec<String> {
        let alone = self.alone.get(session).into_iter().flatten();
        let all = ["enable".to_owned()].into_iter().chain(alone.cloned());
        all.chain(self.shared.iter().cloned()).collect()
    }
}

/// The file in which the processes of one test have what all of them list.
pub(crate) struct Shared(PathBuf);

impl Shared {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("vary-growing-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, "").unwrap();
        Self(path)
    }

    pub(crate) fn config(&self) -> Config {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/growing.py");
        let arguments = [script.to_str().unwrap(), self.0.to_str().unwrap()].map(str::to_owned);
        config(Target::command("python3", arguments))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A gateway before a server that grows, and what the server is made of.
async fn harness(announcement: Announcement) -> (Harness, Growing, Shared) {
    let (growing, shared) = (Growing::new(announcement), Shared::new());
    let harness = match announcement {
        Announcement::Pipe => Harness::alone(shared.config()).await,
        _ => Harness::behind_one(growing.start().await, |config| config).await,
    };
    (harness, growing, shared)
}

async fn listening(harness: &Harness, kind: ClientKind) -> NotificationClient {
    let what = (everything(&[]), None);
    NotificationClient::listening_as(harness, kind, what, &can_be_asked()).await
}

fn enable(arguments: Value) -> Value {
    json!({"name": "enable", "arguments": arguments})
}

async fn calls(client: &mut NotificationClient, params: Value) -> Value {
    soon(client.ask("tools/call", params)).await
}

#[track_caller]
fn is_answered(answer: &Value, text: &str) {
    answer.has("/result/content/0/text", text);
}

/// SV-12: it is not there, and the server is not asked.
#[track_caller]
fn is_unknown(answer: &Value) {
    answer.has("/error/code", -32602);
    answer.has("/error/data/activeVariant", "standard");
}

/// The client has its server add a tool.
async fn enables(client: &mut NotificationClient, name: &str) {
    let answer = calls(client, enable(json!({"tool": name}))).await;
    is_answered(&answer, "enable");
}

async fn is_notified_of_a_tool(client: &mut NotificationClient, kind: ClientKind) {
    let sent = soon(client.change()).await;
    assert_eq!(sent, changed("tools", "standard"), "{kind:?}");
}

async fn lists(client: &mut NotificationClient) -> Vec<String> {
    let list = soon(client.ask("tools/list", json!({}))).await;
    names(&list).into_iter().map(str::to_owned).collect()
}

/// A tool that a server lists to one session is listed to the client of that session alone.
async fn what_one_session_enables_is_there_for_it_alone(
    announcement: Announcement,
    kind: ClientKind,
) {
    let (harness, _growing, _shared) = harness(announcement).await;
    let mut client = listening(&harness, kind).await;
    let mut other = listening(&harness, ClientKind::HttpLegacy).await;
    enables(&mut other, "its own").await;
    is_notified_of_a_tool(&mut other, kind).await;
    is_unknown(&calls(&mut client, tool("its own")).await);
    enables(&mut client, "new").await;
    is_notified_of_a_tool(&mut client, kind).await;
    let listed = lists(&mut client).await;
    assert_eq!(listed, ["enable", "new"], "{announcement:?} {kind:?}");
    is_answered(&calls(&mut client, tool("new")).await, "new");
    is_unknown(&calls(&mut client, tool("its own")).await);
    is_unknown(&calls(&mut other, tool("new")).await);
    assert_eq!(lists(&mut other).await, ["enable", "its own"]);
}

/// The same for each kind of client.
async fn each_way_alone(announcement: Announcement) {
    let alone = |kind| what_one_session_enables_is_there_for_it_alone(announcement, kind);
    join_all(RECOGNISED.map(alone)).await;
}

#[tokio::test]
async fn what_one_session_enables_on_the_stream_of_its_call_is_there_for_it_alone() {
    each_way_alone(Announcement::Call).await;
}

#[tokio::test]
async fn what_one_session_enables_on_its_other_stream_is_there_for_it_alone() {
    each_way_alone(Announcement::Get).await;
}

/// SV-12.
#[tokio::test]
async fn what_one_process_enables_is_there_for_its_client_alone() {
    each_way_alone(Announcement::Pipe).await;
}

/// A client that calls or lists at once need not have received the notification.
#[tokio::test]
async fn what_was_enabled_is_there_for_the_next_request() {
    let check = async |announcement: Announcement| {
        let (harness, _growing, _shared) = harness(announcement).await;
        let check = async |way: ClientKind| {
            let mut client = listening(&harness, way).await;
            enables(&mut client, "new").await;
            is_answered(&calls(&mut client, tool("new")).await, "new");
            let mut client = listening(&harness, way).await;
            enables(&mut client, "new").await;
            let listed = lists(&mut client).await;
            assert_eq!(listed, ["enable", "new"], "{announcement:?} {way:?}");
        };
        join_all(RECOGNISED.map(check)).await;
    };
    join_all([Announcement::Call, Announcement::Pipe].map(check)).await;
}

/// The server says it in one session, and it is so for all.
async fn what_a_server_enables_for_all_reaches_every_client(
    announcement: Announcement,
    kind: ClientKind,
) {
    let (harness, _growing, _shared) = harness(announcement).await;
    let mut client = listening(&harness, kind).await;
    let mut other = Vec::new();
    for kind in ClientKind::ALL {
        other.push((kind, listening(&harness, kind).await));
    }
    let arguments = json!({"tool": "new", "everywhere": true});
    is_answered(&calls(&mut client, enable(arguments)).await, "enable");
    is_notified_of_a_tool(&mut client, kind).await;
    let listed = lists(&mut client).await;
    assert_eq!(listed, ["enable", "new"], "{announcement:?} {kind:?}");
    is_answered(&calls(&mut client, tool("new")).await, "new");
    for (kind, mut other) in other {
        is_notified_of_a_tool(&mut other, kind).await;
        let listed = lists(&mut other).await;
        assert_eq!(listed, ["enable", "new"], "{announcement:?} {kind:?}");
        is_answered(&calls(&mut other, tool("new")).await, "new");
    }
}

/// The same for each kind of client.
async fn each_way_for_all(announcement: Announcement) {
    let for_all = |kind| what_a_server_enables_for_all_reaches_every_client(announcement, kind);
    join_all(ClientKind::ALL.map(for_all)).await;
}

/// SV-16.
#[tokio::test]
async fn what_a_session_enables_for_all_reaches_every_client() {
    each_way_for_all(Announcement::Call).await;
    each_way_for_all(Announcement::Get).await;
    each_way_for_all(Announcement::ModernCall).await;
}

#[tokio::test]
async fn what_a_process_enables_for_all_reaches_every_client() {
    each_way_for_all(Announcement::Pipe).await;
}

/// Nothing tells clients over HTTP without a session apart: what a call of one did in a session of the server is there
/// for all with the same capabilities, and for no others (SV-12).
#[tokio::test]
async fn what_a_client_without_a_session_enables_is_there_for_its_like() {
    for announcement in [Announcement::Call, Announcement::Get, Announcement::Pipe] {
        let (harness, _growing, _shared) = harness(announcement).await;
        let mut client = listening(&harness, ClientKind::HttpModern).await;
        enables(&mut client, "new").await;
        is_notified_of_a_tool(&mut client, ClientKind::HttpModern).await;
        let listed = lists(&mut client).await;
        assert_eq!(listed, ["enable", "new"], "{announcement:?}");
        is_answered(&calls(&mut client, tool("new")).await, "new");
        let mut like = listening(&harness, ClientKind::HttpModern).await;
        let listed = lists(&mut like).await;
        assert_eq!(listed, ["enable", "new"], "{announcement:?}");
        let what = (everything(&[]), None);
        let kind = ClientKind::HttpModern;
        let plain = NotificationClient::listening_as(&harness, kind, what, &json!({})).await;
        let other = listening(&harness, ClientKind::StdioModern).await;
        for mut client in [plain, other] {
            assert_eq!(lists(&mut client).await, ["enable"], "{announcement:?}");
            is_unknown(&calls(&mut client, tool("new")).await);
        }
    }
}

/// A server that announces without end is asked again a few times, then at most once a second, in each of its sessions.
#[tokio::test]
async fn a_storm_of_announcements_is_one_reading() {
    let (harness, growing, _shared) = harness(Announcement::Call).await;
    let mut client = listening(&harness, ClientKind::HttpLegacy).await;
    let before = growing.with(|state| state.listed.values().sum::<usize>());
    let began = Instant::now();
    for number in 0..10 {
        let arguments = json!({"tool": format!("new {number}"), "times": 50});
        is_answered(&calls(&mut client, enable(arguments)).await, "enable");
    }
    assert_eq!(lists(&mut client).await.len(), 11);
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap();
    let read = growing.with(|state| state.listed.values().sum::<usize>()) - before;
    // Of two sessions, that of the lists and that of the client: five at once, then one a second.
    assert!(read <= 2 * (seconds + 6), "{read} readings in {seconds} s");
}

/// A server whose tools change without a word, and which may be slow to list them.
#[derive(Clone)]
struct Silent {
    era: Era,
    /// What it says of its tools beside them: `ttlMs`.
    says: Value,
    declares: Value,
    tools: Arc<Mutex<Vec<&'static str>>>,
    is_stuck: Arc<AtomicBool>,
    /// Lets a server that is stuck answer.
    gate: Arc<Notify>,
}

impl Silent {
    fn new(era: Era, declares: Value, says: Value) -> Self {
        Self {
            era,
            says,
            declares,
            tools: Arc::new(Mutex::new(vec!["old"])),
            is_stuck: Arc::default(),
            gate: Arc::default(),
        }
    }

    fn script(&self) -> Script {
        let (listing, calling) = (self.clone(), self.clone());
        Script::new(self.era, "silent")
            .declares(self.declares.clone())
            .reply("tools/list", move |seen| {
                let reply = seen.answer(&listing.list());
                if listing.is_stuck.load(Ordering::SeqCst) {
                    return reply.after(&listing.gate);
                }
                reply
            })
            .on_call(move |params| {
                let name = params["name"].as_str().unwrap();
                let is_there = calling.tools.lock().unwrap().contains(&name);
                assert!(is_there, "{name} is sent on");
                json!({"content": [{"type": "text", "text": name}]})
            })
    }

    async fn harness(&self, list_ttl: Duration) -> Harness {
        Harness::edited(self.script().start().await, |config| {
            config.servers[0].limits.list_ttl = list_ttl;
        })
        .await
    }

    fn grow(&self) {
        self.tools.lock().unwrap().push("new");
    }

    fn list(&self) -> Value {
        let mut result = self.says.clone();
        result["tools"] = tool_list(&self.tools.lock().unwrap())["tools"].take();
        result
    }
}

/// Servers of both eras that announce nothing, with what bounds the life of their lists.
fn silent() -> [(Silent, Duration); 3] {
    let (short, long) = (Duration::from_millis(1), Duration::from_secs(3_600));
    let legacy = |tools: Value| Silent::new(Era::Legacy, json!({"tools": tools}), json!({}));
    let says = json!({"resultType": "complete", "ttlMs": 5, "cacheScope": "public"});
    [
        (legacy(json!({})), short),
        (legacy(json!({"listChanged": false})), short),
        (Silent::new(Era::Modern, json!({"tools": {}}), says), long),
    ]
}

/// A list that has expired is shown while it is read again, and who was shown it is notified.
#[tokio::test]
async fn a_list_that_changes_silently_is_read_again_when_its_time_is_over() {
    let check = async |way: ClientKind| {
        for (server, list_ttl) in silent() {
            let harness = server.harness(list_ttl).await;
            let mut client = crate::support::listening(&harness, way, &[]).await;
            assert_eq!(lists(&mut client).await, ["old"]);
            server.grow();
            until(async || lists(&mut client).await == ["old", "new"]).await;
            is_notified_of_a_tool(&mut client, way).await;
        }
    };
    join_all(ClientKind::ALL.map(check)).await;
}

/// No request waits for a list that was read before.
#[tokio::test]
async fn a_server_that_is_slow_to_list_again_holds_nobody_up() {
    for (server, list_ttl) in silent() {
        let harness = server.harness(list_ttl).await;
        let mut client = crate::support::listening(&harness, ClientKind::HttpLegacy, &[]).await;
        assert_eq!(lists(&mut client).await, ["old"]);
        server.is_stuck.store(true, Ordering::SeqCst);
        let before = harness.peer.of("tools/list").len();
        let began = Instant::now();
        soon(async {
            while harness.peer.of("tools/list").len() == before {
                assert_eq!(lists(&mut client).await, ["old"]);
            }
        })
        .await;
        for _ in 0..10 {
            assert_eq!(lists(&mut client).await, ["old"]);
        }
        // Less than the wait for a server that is slow to list.
        let elapsed = began.elapsed();
        assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
    }
}

/// A call of a tool that is not listed has the list read again, and waits for that only so long.
#[tokio::test]
async fn a_list_that_takes_longer_than_a_request_waits_is_read_all_the_same() {
    let server = Silent::new(Era::Legacy, json!({"tools": {}}), json!({}));
    let harness = Harness::edited(server.script().start().await, |config| {
        let limits = &mut config.servers[0].limits;
        (limits.list_ttl, limits.ready_timeout) = (Duration::ZERO, Duration::from_millis(200));
    })
    .await;
    let way = ClientKind::HttpLegacy;
    until(async || {
        let list = harness.ask(way, "tools/list", json!({})).await;
        names(&list) == ["old"]
    })
    .await;
    server.grow();
    server.is_stuck.store(true, Ordering::SeqCst);
    let before = harness.peer.of("tools/list").len();
    until(async || {
        let refused = harness.ask(way, "tools/call", tool("new")).await;
        refused.has("/error/code", -32602);
        harness.peer.of("tools/list").len() > before
    })
    .await;
    // The call has given up; the list is asked for once more.
    harness.peer.wait_for("tools/list", before + 2).await;
    server.is_stuck.store(false, Ordering::SeqCst);
    until(async || {
        server.gate.notify_waiters();
        let call = harness.ask(way, "tools/call", tool("new")).await;
        call["result"]["content"][0]["text"] == "new"
    })
    .await;
}

/// The list of a server that announces its changes is read when it does.
#[tokio::test]
async fn a_list_whose_changes_are_announced_does_not_expire() {
    let capabilities = json!({"tools": {"listChanged": true}});
    let announces = Silent::new(Era::Legacy, capabilities, json!({}));
    let silent = Silent::new(Era::Legacy, json!({"tools": {}}), json!({}));
    let expiring = Duration::from_millis(1);
    let houses = [
        announces.harness(expiring).await,
        silent.harness(expiring).await,
        silent.harness(Duration::ZERO).await,
    ];
    let before = houses
        .each_ref()
        .map(|harness| harness.peer.of("tools/list").len());
    soon(async {
        while houses[1].peer.of("tools/list").len() < before[1] + 2 {
            for harness in &houses {
                let mut client = listening(harness, ClientKind::HttpLegacy).await;
                assert_eq!(lists(&mut client).await, ["old"]);
            }
        }
    })
    .await;
    for at in [0, 2] {
        // One more, since a client that can be asked is of another class.
        let read = houses[at].peer.of("tools/list").len() - before[at];
        assert!(read <= 2, "{read} readings of harness {at}");
    }
}

/// SV-12: what is not listed is looked for once more, whatever the server declares; what is hidden and what does not
/// exist are refused alike, and never sent on.
#[tokio::test]
async fn a_name_that_is_not_listed_is_looked_for_once_more() {
    let announces = json!({"tools": {"listChanged": true}});
    let modern = json!({"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "public"});
    let check = async |way: ClientKind| {
        for server in [
            Silent::new(Era::Legacy, announces.clone(), json!({})),
            Silent::new(Era::Legacy, json!({"tools": {}}), json!({})),
            Silent::new(Era::Modern, announces.clone(), modern.clone()),
            Silent::new(Era::Modern, json!({"tools": {}}), modern.clone()),
        ] {
            let harness = server.harness(Duration::ZERO).await;
            let mut client = listening(&harness, way).await;
            assert_eq!(lists(&mut client).await, ["old"]);
            server.grow();
            soon(async {
                // A list that was read a moment ago is not read again.
                while calls(&mut client, tool("new")).await["error"]["code"] == -32602 {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            })
            .await;
            is_answered(&calls(&mut client, tool("new")).await, "new");
            is_unknown(&calls(&mut client, tool("none")).await);
        }
    };
    join_all(ClientKind::ALL.map(check)).await;
}

/// A tool that a session enables without an announcement is found by a call of that session.
#[tokio::test]
async fn what_one_session_enables_silently_is_there_for_its_calls() {
    for way in RECOGNISED {
        let (harness, _growing, _shared) = harness(Announcement::Call).await;
        let mut client = listening(&harness, way).await;
        let arguments = json!({"tool": "new", "times": 0});
        is_answered(&calls(&mut client, enable(arguments)).await, "enable");
        is_answered(&calls(&mut client, tool("new")).await, "new");
        is_notified_of_a_tool(&mut client, way).await;
        assert_eq!(lists(&mut client).await, ["enable", "new"], "{way:?}");
        let mut other = listening(&harness, ClientKind::StdioLegacy).await;
        is_unknown(&calls(&mut other, tool("new")).await);
    }
}

/// The connection to a server that is configured as before stays, and so does what it lists to its client.
#[tokio::test]
async fn what_one_session_enabled_outlasts_a_configuration() {
    for announcement in [Announcement::Call, Announcement::Pipe] {
        let (harness, _growing, shared) = harness(announcement).await;
        let mut clients = Vec::new();
        for way in RECOGNISED {
            let mut client = listening(&harness, way).await;
            enables(&mut client, "new").await;
            is_notified_of_a_tool(&mut client, way).await;
            clients.push((way, client));
        }
        let next = match announcement {
            Announcement::Pipe => shared.config(),
            _ => config(Target::http(harness.peer.url.clone())),
        };
        harness.reload(next.with_read_result(true)).await;
        for (way, client) in &mut clients {
            let expected = ["enable", "new", "read_result"];
            assert_eq!(lists(client).await, expected, "{announcement:?} {way:?}");
            is_answered(&calls(client, tool("new")).await, "new");
            enables(client, "newer").await;
            until_it_lists(client, "newer").await;
            is_answered(&calls(client, tool("newer")).await, "newer");
        }
    }
}

async fn until_it_lists(client: &mut NotificationClient, name: &str) {
    until(async || lists(client).await.iter().any(|listed| listed == name)).await;
}

/// No other message on the connection makes a request wait: official servers ask for roots at the same time.
#[tokio::test]
async fn a_question_beside_an_announcement_holds_no_request_up() {
    let peer = Growing::new(Announcement::Get).start().await;
    // Longer than any test.
    let long = Duration::from_secs(3600);
    let edit = |config: &mut Config| config.servers[0].limits.ready_timeout = long;
    let harness = Harness::edited(peer, edit).await;
    let mut client = listening(&harness, ClientKind::HttpLegacy).await;
    for number in 0..3 {
        let arguments = json!({"tool": format!("more-{number}"), "everywhere": true, "asks": true});
        let answer = calls(&mut client, enable(arguments)).await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    let list = soon(client.ask("tools/list", json!({}))).await;
    assert!(list["result"]["tools"].is_array(), "{list}");
}
