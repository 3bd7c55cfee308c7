//! Servers that have no connection left: who makes room, who waits, and what the others see.

use mcp_vary_gateway::ConnectionStatus;
use mcp_vary_upstream::Isolation;

use super::clients::{Session, bearer, key, keys};
use crate::support::*;

/// The kinds of clients that one person may have.
fn kinds() -> [Value; 7] {
    [
        json!({"elicitation": {}}),
        json!({"sampling": {}}),
        json!({"roots": {}}),
        json!({"elicitation": {}, "sampling": {}}),
        json!({"elicitation": {}, "roots": {}}),
        json!({"sampling": {}, "roots": {}}),
        json!({"elicitation": {}, "sampling": {}, "roots": {}}),
    ]
}

/// A legacy server with a session for each `initialize`. Its tools are others once `has_changed`.
pub(super) async fn with_sessions(has_changed: &Arc<AtomicBool>) -> ScriptedServer {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let has_changed = Arc::clone(has_changed);
    let script = places_server::script(Era::Legacy)
        .declares(places_server::capabilities())
        .in_sessions(|_| format!("s-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
        .may_reply("tools/list", move |seen| {
            let has_changed = has_changed.load(Ordering::Relaxed);
            has_changed.then(|| seen.answer(&tool_list(&["odd"])))
        });
    script.start().await
}

/// A gateway with this many connections for people to a server, besides its own.
async fn with_room_for(count: usize, has_changed: &Arc<AtomicBool>) -> Harness {
    let adapt = |config| team(config, count);
    Harness::behind_one(with_sessions(has_changed).await, adapt).await
}

fn team(mut config: Config, count: usize) -> Config {
    config.authentication = Some(keys(&["ann", "bob", "eve"]));
    config.servers[0].limits.connections = count + 1;
    // Newcomers wait for a connection that was idle for a second.
    config.start_wait = Duration::from_secs(2);
    config
}

async fn with_room(count: usize) -> Harness {
    with_room_for(count, &Arc::default()).await
}

async fn open(harness: &Harness, who: &str) -> Session {
    Session::open(harness, &key(who), &json!({})).await
}

async fn call(session: &mut Session, who: &str) {
    let answer = session.ask(&key(who), "tools/call", tool("odd")).await;
    let found = &answer.json()["result"];
    assert!(found.is_object(), "{who}: {}", answer.text());
}

async fn end(session: &mut Session, who: &str) {
    let delete = HttpRequest::delete(&session.id);
    let answer = session.http.ask(&bearer(delete, &key(who))).await;
    assert_eq!(answer.status, 200);
}

/// The session at the server of each call.
fn sessions_of_calls(harness: &Harness) -> Vec<String> {
    let calls = harness.peer.of("tools/call");
    let sessions = calls.iter().map(|call| call.header("mcp-session-id"));
    sessions.map(|it| it.unwrap().to_owned()).collect()
}

fn connections(harness: &Harness) -> ConnectionStatus {
    harness.gateway.status().servers[0].connections.unwrap()
}

#[tokio::test]
async fn the_least_recently_used_connection_makes_room_for_another_person() {
    let harness = with_room(2).await;
    let mut ann = open(&harness, "ann").await;
    call(&mut ann, "ann").await;
    let mut bob = open(&harness, "bob").await;
    call(&mut bob, "bob").await;
    let mut eve = open(&harness, "eve").await;
    call(&mut eve, "eve").await;
    soon(harness.peer.wait_for("DELETE", 1)).await;
    call(&mut bob, "bob").await;
    // A session whose connection was closed continues on another one.
    call(&mut ann, "ann").await;
    let sessions = sessions_of_calls(&harness);
    assert_eq!(sessions[1], sessions[3], "bob's: {sessions:?}");
    assert_ne!(sessions[0], sessions[4], "ann's: {sessions:?}");
    let status = connections(&harness);
    assert_eq!((status.open, status.limit, status.evicted), (3, 3, 2));
}

#[tokio::test]
async fn a_person_with_many_kinds_of_clients_leaves_room_to_others() {
    let harness = with_room(7).await;
    for capabilities in kinds() {
        let mut session = Session::open(&harness, &key("eve"), &capabilities).await;
        call(&mut session, "eve").await;
    }
    let opened = harness.peer.of("initialize").len();
    for who in ["ann", "bob"] {
        let mut session = open(&harness, who).await;
        call(&mut session, who).await;
    }
    let both = harness.peer.of("initialize").len() - opened;
    assert_eq!(both, 2, "there was room for both");
    // The first, two, and one each.
    assert_eq!(connections(&harness).open, 5);
}

/// Where connections belong to principals, none is closed for another client, so what one person has open decides.
#[tokio::test]
async fn where_principals_are_isolated_a_person_with_many_kinds_of_clients_leaves_room_to_others() {
    let adapt = |config| {
        let mut config = team(config, 7);
        config.servers[0].isolation = Isolation::Principal;
        config
    };
    let harness = Harness::behind_one(with_sessions(&Arc::default()).await, adapt).await;
    for capabilities in kinds() {
        let mut session = Session::open(&harness, &key("eve"), &capabilities).await;
        let answer = session.ask(&key("eve"), "tools/call", tool("odd")).await;
        let answer = answer.json();
        // The others share one that declares no more than they do, and for this one there is none.
        if capabilities == json!({"roots": {}}) {
            let message = "server `peer` serves each session or user on a connection of its own, and the 2 of 8 that one \
                           user may have are in use; end one of your other sessions, or raise its `connections`";
            answer.has("/error", json!({"code": -32603, "message": message}));
        } else {
            assert!(answer["result"].is_object(), "{capabilities}: {answer}");
        }
    }
    let opened = connections(&harness).open;
    assert_eq!(opened, 3, "the first, and two of eve");
    for who in ["ann", "bob"] {
        let mut session = open(&harness, who).await;
        call(&mut session, who).await;
    }
    let status = connections(&harness);
    assert_eq!((status.open, status.evicted), (5, 0), "one more each");
}

/// The server that asks its clients on a connection of each one alone.
async fn with_dedicated_connections(count: usize) -> Harness {
    let mut config = config(of_script("asks.py"));
    config.authentication = Some(keys(&["ann", "eve"]));
    config.servers[0].limits.dedicated_connections = count;
    Harness::alone(config).await
}

/// Sends a call during which the server asks; its answer is read from the connection that is returned.
async fn call_that_asks(harness: &Harness, session: &Session, who: &str) -> RawHttp {
    let mut params = tool("ask");
    params["arguments"] = json!({"method": "elicitation/create", "params": {"message": "m"}});
    let call = request(json!(9), "tools/call", params);
    let mut http = harness.connect().await;
    let post = HttpRequest::of(&session.id, call.to_string());
    http.send(&bearer(post, &key(who)).bytes()).await;
    http
}

/// Each call that waits for its client keeps a connection, and a person may have as many sessions as they want.
#[tokio::test]
async fn a_person_with_many_calls_that_ask_leaves_connections_to_others() {
    let harness = with_dedicated_connections(8).await;
    let asking = json!({"elicitation": {}});
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let session = Session::open(&harness, &key("eve"), &asking).await;
        let mut call = call_that_asks(&harness, &session, "eve").await;
        assert_eq!(soon(call.head()).await.status, 200);
        let question = soon(call.event()).await.unwrap();
        question.has("/method", "elicitation/create");
        waiting.push((session, call, question));
    }
    for _ in 2..8 {
        let mut session = Session::open(&harness, &key("eve"), &asking).await;
        let refused = session.ask(&key("eve"), "tools/call", tool("state")).await;
        let refused = refused.json();
        let message = "server `peer` needs a dedicated connection for each client that accepts server requests, and the 2 \
                       of 8 that one user may have are in use; end one of your calls or sessions that use them, or raise its \
                       `dedicated-connections`";
        refused.has("/error", json!({"code": -32603, "message": message}));
    }
    assert_eq!(harness.gateway.status().dedicated_connections, 2);
    let mut ann = Session::open(&harness, &key("ann"), &asking).await;
    let answer = ann.ask(&key("ann"), "tools/call", tool("state")).await;
    assert_eq!(answer.json()["result"]["client"], asking);
    // A connection of hers that no longer waits makes room for her next one.
    let (session, mut call, question) = waiting.remove(0);
    let reply = response(&question, json!({"action": "decline"}));
    let post = HttpRequest::of(&session.id, reply.to_string());
    let mut http = harness.connect().await;
    let told = http.ask(&bearer(post, &key("eve"))).await;
    assert_eq!(told.status, 202);
    let answer = soon(call.event()).await.unwrap();
    assert_eq!(answer["result"]["reply"]["result"], reply["result"]);
    let mut next = Session::open(&harness, &key("eve"), &asking).await;
    let answer = until_some(async || {
        let answer = next.ask(&key("eve"), "tools/call", tool("state")).await;
        let answer = answer.json();
        answer["result"].is_object().then_some(answer)
    });
    answer.await.has("/result/client", asking);
    assert_eq!(harness.gateway.status().dedicated_connections, 3);
}

#[tokio::test]
async fn a_call_in_flight_keeps_its_connection_and_a_newcomer_waits_for_it() {
    let adapt = |config| {
        let mut config = team(config, 1);
        config.start_wait = Duration::from_secs(60);
        config
    };
    let harness = Harness::behind_one(with_sessions(&Arc::default()).await, adapt).await;
    let mut ann = open(&harness, "ann").await;
    let waiting = request(json!(7), "tools/call", tool("wait"));
    let post = HttpRequest::of(&ann.id, waiting.to_string());
    ann.http.send(&bearer(post, &key("ann")).bytes()).await;
    soon(harness.peer.wait_for("tools/call", 1)).await;
    let cancel = async {
        let cancelled = notification("notifications/cancelled", json!({"requestId": 7}));
        let post = HttpRequest::of(&ann.id, cancelled.to_string());
        let mut http = RawHttp::connect(harness.address).await;
        let answer = http.ask(&bearer(post, &key("ann"))).await;
        assert_eq!(answer.status, 202);
    };
    let (mut eve, ()) = soon(async { tokio::join!(open(&harness, "eve"), cancel) }).await;
    call(&mut eve, "eve").await;
    let received = harness.peer.received();
    let position = |method: &str| received.iter().position(|it| it.method() == method);
    assert!(position("notifications/cancelled") < position("DELETE"));
    assert_eq!(connections(&harness).evicted, 1);
}

#[tokio::test]
async fn the_end_of_a_session_frees_its_connection() {
    let harness = with_room(7).await;
    let mut first = open(&harness, "ann").await;
    let mut second = open(&harness, "ann").await;
    call(&mut first, "ann").await;
    call(&mut second, "ann").await;
    end(&mut first, "ann").await;
    call(&mut second, "ann").await;
    let sessions = sessions_of_calls(&harness);
    assert_eq!(sessions[0], sessions[2], "the other session still uses it");
    end(&mut second, "ann").await;
    soon(harness.peer.wait_for("DELETE", 1)).await;
    assert_eq!(connections(&harness).open, 1);
}

/// The client hears of what changed meanwhile as soon as its connection is opened again.
#[tokio::test]
async fn a_session_that_only_reads_its_stream_makes_room() {
    let has_changed = Arc::default();
    let harness = with_room_for(1, &has_changed).await;
    let mut ann = open(&harness, "ann").await;
    let mut stream = RawHttp::connect(harness.address).await;
    let get = HttpRequest::get(&ann.id);
    let get = get.with("Accept", "text/event-stream");
    stream.send(&bearer(get, &key("ann")).bytes()).await;
    assert_eq!(soon(stream.head()).await.status, 200);
    let mut eve = open(&harness, "eve").await;
    call(&mut eve, "eve").await;
    has_changed.store(true, Ordering::Relaxed);
    call(&mut ann, "ann").await;
    let event = soon(stream.event()).await.unwrap();
    let expected = notification("notifications/tools/list_changed", json!({}));
    assert_eq!(event["method"], expected["method"]);
}

/// Two servers, of which the first has one connection for people and keeps it for its owner.
async fn beside_another() -> Harness {
    let full = with_sessions(&Arc::default()).await;
    let free = places_server::start(Era::Modern).await;
    let mut config: Config = before(&[("full", &full), ("free", &free)]);
    config.authentication = Some(keys(&["ann", "eve"]));
    config.servers[0].limits.connections = 2;
    config.servers[0].isolation = Isolation::Principal;
    // It lives as long as the harness.
    std::mem::forget(free);
    Harness::behind(full, config).await
}

#[tokio::test]
async fn a_full_server_is_left_out_and_the_others_work() {
    let harness = beside_another().await;
    let (log, _guard) = CapturedLog::listen("mcp_vary", Level::WARN);
    let mut ann = open(&harness, "ann").await;
    let mut eve = open(&harness, "eve").await;
    let warnings = log.take().concat();
    for part in [
        "all connections are in use; the server is left out for a client",
        "server=\"full\"; connections=2; left_out=1;",
    ] {
        assert!(warnings.contains(part), "{warnings}");
    }
    let list = eve.ask(&key("eve"), "tools/list", json!({})).await.json();
    assert!(names(&list).contains(&"free_odd"), "{list}");
    let answer = eve.ask(&key("eve"), "tools/call", tool("free_odd")).await;
    assert!(answer.json()["result"].is_object(), "{}", answer.text());
    let answer = eve.ask(&key("eve"), "tools/call", tool("full_odd")).await;
    let expected = json!({
        "code": -32603,
        "message": "server `full` serves each session or user on a connection of its own, and all 2 are in use; try again later",
    });
    answer.json().has("/error", expected);
    // A session that ends makes room at once.
    let answer = ann.ask(&key("ann"), "tools/call", tool("full_odd")).await;
    assert!(answer.json()["result"].is_object(), "{}", answer.text());
    end(&mut ann, "ann").await;
    let answer = eve.ask(&key("eve"), "tools/call", tool("full_odd")).await;
    assert!(answer.json()["result"].is_object(), "{}", answer.text());
}

#[tokio::test]
async fn a_team_of_fifty_with_four_clients_each_has_room() {
    let limits = UpstreamConfig::new("git", Target::command("none", [])).limits;
    assert!(limits.connections > 50 * 4, "{}", limits.connections);
}
