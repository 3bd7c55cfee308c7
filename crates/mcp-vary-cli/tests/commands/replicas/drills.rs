//! Three replicas behind HAProxy, which sends requests in turn, while parts of them and of the store die.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;

use mcp_vary_testkit::script::Script;
use mcp_vary_testkit::scripted_server::ScriptedServer;
use serde_json::Value;
use tokio::sync::Notify;

use super::*;
use crate::rolling::replace_under_load;

/// How often the server has got each call, by its argument.
type Received = Arc<Mutex<BTreeMap<String, usize>>>;

/// A server that counts calls, and answers each with its argument after this time.
async fn counting(time: Duration) -> (Received, ScriptedServer) {
    let received = Received::default();
    let count = Arc::clone(&received);
    let script = Script::legacy("counting")
        .tools(&["get_weather", "get_forecast"])
        .in_sessions(|_| "s-1".to_owned())
        .may_reply("tools/call", move |seen| {
            let place = seen.body["params"]["arguments"]["location"].as_str()?;
            *count.lock().unwrap().entry(place.to_owned()).or_default() += 1;
            let text = json!({"type": "text", "text": place});
            let reply = seen.answer(&json!({"content": [text]}));
            if time.is_zero() {
                return Some(reply);
            }
            let gate = Arc::new(Notify::new());
            let opens = Arc::clone(&gate);
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                opens.notify_one();
            });
            Some(reply.after(&gate))
        });
    (received, script.start().await)
}

/// Three replicas with these settings, and HAProxy as in the documentation, but in turn.
async fn behind_haproxy(
    server: &ScriptedServer,
    name: &str,
    settings: [&str; 3],
) -> (Replicas, Proxy) {
    let replicas = Replicas::before(&entry(server), name, &settings).await;
    let proxy = in_turn(&replicas).await;
    (replicas, proxy)
}

fn entry(server: &ScriptedServer) -> String {
    format!("{{url: \"{}\"}}", server.url)
}

/// HAProxy in front of these replicas as in the documentation, but in turn.
pub(super) async fn in_turn(replicas: &Replicas) -> Proxy {
    let file = replicas.addressed("haproxy.cfg");
    let lines = file
        .lines()
        .filter(|line| !line.trim().starts_with("stick"));
    let in_turn: String = lines.map(|line| format!("{line}\n")).collect();
    let in_turn = in_turn
        .replace("balance hdr(Mcp-Session-Id)", "balance roundrobin")
        .replace("  hash-type consistent\n", "");
    Proxy::haproxy(&in_turn, &replicas.folder).await
}

/// Clients of 2026-07-28, and as many with sessions: half of those sessions belong to one replica.
fn kinds() -> [Option<Value>; 4] {
    [None, Some(json!({})), None, Some(json!({"roots": {}}))]
}

/// What a client gets if the replica that another one has forwarded its request to does not answer.
const UNKNOWN: &str = "the replica that has what the request needs does not answer; the request may have been executed";

/// After this time, HAProxy and Redis have seen that the connections of a dead replica are closed. Until then, a request
/// may be sent on one of them.
const NOTICED: Duration = Duration::from_secs(1);

/// Kills one of three under the load of `rounds` times [`kinds`].
#[expect(
    clippy::print_stdout,
    reason = "the counts are for the person who runs the test"
)]
async fn killed_under_load(rounds: usize) {
    let (received, server) = counting(Duration::from_millis(20)).await;
    let (mut replicas, proxy) = behind_haproxy(&server, "killed", [""; 3]).await;
    let load = Arc::new(Load::default());
    let clients = load.start(proxy.address, rounds, &kinds()).await;
    let number = clients.len();
    until(async || load.requests() > 10 * number).await;
    let mut dead = replicas.all.remove(0);
    signal("KILL", dead.server.child.id());
    dead.server.child.wait().unwrap();
    let died = Instant::now();
    // All have answers again.
    until(async || load.all_succeeded_since(died, number)).await;
    let again = load.requests();
    until(async || load.requests() > again + 10 * number).await;
    let (answered, failures) = load.stop(clients).await;
    let answers: Vec<_> = failures.iter().map(|it| it.answer.as_str()).collect();
    println!(
        "{} requests of {number} clients; failed: {answers:?}",
        load.requests()
    );
    for failure in &failures {
        let is_clear = match failure.answer.split_once(": ") {
            None => failure.answer == "closed",
            Some((status, text)) => status == "502" || text.contains(UNKNOWN),
        };
        assert!(is_clear, "{failure:?}");
        let was_in_flight = failure.began < died + NOTICED;
        assert!(was_in_flight, "{:?}: {failure:?}", failure.began - died);
    }
    counted_once(&received, &answered);
    replicas.end();
}

/// The server has got each call at most once, and those that were answered.
fn counted_once(received: &Received, answered: &BTreeSet<String>) {
    let received = received.lock().unwrap();
    let twice: Vec<_> = received.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let invented: Vec<_> = answered
        .iter()
        .filter(|it| !received.contains_key(*it))
        .collect();
    assert!(invented.is_empty(), "{invented:?}");
}

/// Replaces the three one after the other under load, until this many requests have their answers.
async fn replaced_under_load(least: usize) {
    let (received, server) = counting(Duration::ZERO).await;
    let settings = "limits: {drain-delay: 2s, drain: 20s}";
    let (mut replicas, proxy) = behind_haproxy(&server, "replaced", [settings; 3]).await;
    let answered = replace_under_load(&mut replicas.all, &proxy, &kinds(), least).await;
    counted_once(&received, &answered);
    replicas.end();
}

/// Why a store is away, and how it comes back.
struct Outage {
    name: &'static str,
    begin: fn(&mut Replicas),
    end: fn(&mut Replicas),
}

const OUTAGES: [Outage; 4] = [
    Outage {
        name: "killed, and started empty",
        begin: |it| it.redis = None,
        end: Replicas::start_redis,
    },
    Outage {
        name: "paused",
        begin: |it| it.signal_redis("STOP"),
        end: |it| it.signal_redis("CONT"),
    },
    Outage {
        name: "read-only",
        begin: |it| it.command_redis("REPLICAOF 127.0.0.1 1"),
        end: |it| it.command_redis("REPLICAOF NO ONE"),
    },
    Outage {
        name: "out of memory",
        begin: |it| it.command_redis("CONFIG SET maxmemory 1"),
        end: |it| it.command_redis("CONFIG SET maxmemory 0"),
    },
];

impl Replicas {
    fn signal_redis(&self, name: &str) {
        signal(name, self.redis.as_ref().unwrap().0.id());
    }

    fn command_redis(&self, command: &str) {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(socket, "AUTH {PASSWORD}\r\n{command}\r\nQUIT\r\n").unwrap();
        let mut answers = String::new();
        socket.read_to_string(&mut answers).unwrap();
        assert_eq!(answers, "+OK\r\n".repeat(3), "{command}");
    }
}

/// The statuses of limited calls at a replica, until a condition holds. Each has its answer soon.
async fn limited_calls(replica: &Gateway, done: &AtomicBool) -> BTreeSet<u16> {
    let mut http = replica.connect().await;
    let mut statuses = BTreeSet::new();
    while !done.load(Ordering::Relaxed) {
        let answer = http.ask(&call("get_forecast")).await;
        if answer.status == 503 {
            let error = &answer.json()["error"];
            assert_eq!(error["code"], -32006);
            let message = "the store that counts for rate limits is away; retry later";
            assert_eq!(error["message"], message);
        }
        statuses.insert(answer.status);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    statuses
}

/// Takes the store away in each way, for this many plain requests each, while clients send plain and limited ones.
async fn store_away_under_load(least: usize) {
    let (_, server) = counting(Duration::ZERO).await;
    let closed = format!("{LIMITED}\nstore-failure: closed");
    let settings = [LIMITED, LIMITED, &closed];
    let (mut replicas, proxy) = behind_haproxy(&server, "outages", settings).await;
    let load = Arc::new(Load::default());
    let clients = load.start(proxy.address, 4, &[None, Some(json!({}))]).await;
    for outage in OUTAGES {
        outage_under_load(&outage, &mut replicas, &load, least).await;
    }
    let (_, failures) = load.stop(clients).await;
    assert!(failures.is_empty(), "{failures:?}");
    replicas.end();
}

#[expect(
    clippy::print_stdout,
    reason = "the times are for the person who runs the test"
)]
async fn outage_under_load(outage: &Outage, replicas: &mut Replicas, load: &Load, least: usize) {
    let began = Instant::now();
    let before = load.requests();
    (outage.begin)(replicas);
    let [open, _, closed] = replicas.all.as_slice() else {
        unreachable!("three were started")
    };
    let is_over = AtomicBool::new(false);
    let lasts = async {
        for replica in &replicas.all {
            replica.is_ready_with_store("away").await;
        }
        let noticed = began.elapsed();
        let refused = closed.ask(&call("get_forecast")).await;
        assert_eq!(refused.status, 503, "{}", outage.name);
        until(async || load.requests() >= before + least).await;
        is_over.store(true, Ordering::Relaxed);
        noticed
    };
    let (at_open, at_closed) = (
        limited_calls(open, &is_over),
        limited_calls(closed, &is_over),
    );
    let (noticed, at_open, at_closed) = tokio::join!(lasts, at_open, at_closed);
    assert!(
        at_open.is_subset(&[200, 429].into()),
        "{}: {at_open:?}",
        outage.name
    );
    assert!(at_open.contains(&200), "{}: {at_open:?}", outage.name);
    assert!(
        at_closed.is_subset(&[200, 429, 503].into()),
        "{}: {at_closed:?}",
        outage.name
    );
    let requests = load.requests() - before;
    (outage.end)(replicas);
    let ended = Instant::now();
    for replica in &replicas.all {
        replica.is_ready_with_store("up").await;
        until(async || replica.ask(&call("get_forecast")).await.status == 200).await;
    }
    println!(
        "{}: noticed after {noticed:.1?}, {requests} requests, back after {:.1?}",
        outage.name,
        ended.elapsed()
    );
}

/// A Sentinel that watches a `redis-server`, with a copy of that to fail over to.
struct Failover {
    sentinel: Redis,
    copy: Redis,
    port: u16,
}

impl Failover {
    fn start(watched: u16, folder: &Path) -> Self {
        let (port, copy_port) = (free_port(), free_port());
        let copy = Redis::start_with(
            copy_port,
            folder,
            &[
                "--masterauth",
                PASSWORD,
                "--replicaof",
                "127.0.0.1",
                &watched.to_string(),
            ],
        );
        let file = folder.join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor main 127.0.0.1 {watched} 1\n\
             sentinel auth-pass main {PASSWORD}\nsentinel down-after-milliseconds main 1000\n\
             sentinel failover-timeout main 5000\n",
            folder.display()
        );
        fs::write(&file, text).unwrap();
        Self {
            sentinel: Redis::sentinel(&file),
            copy,
            port,
        }
    }

    /// Waits until the Sentinel knows the copy.
    async fn is_ready(&self) {
        until(async || {
            let Ok(mut socket) = TcpStream::connect(("127.0.0.1", self.port)) else {
                return false;
            };
            socket.write_all(b"SENTINEL REPLICAS main\r\n").unwrap();
            socket.shutdown(Shutdown::Write).unwrap();
            let mut answer = String::new();
            socket.read_to_string(&mut answer).unwrap();
            answer.contains("master-link-status\r\n$2\r\nok\r\n")
        })
        .await;
    }
}

/// Kills the server that takes writes, under load; Sentinel lets its copy take them.
#[expect(
    clippy::print_stdout,
    reason = "the times are for the person who runs the test"
)]
async fn failed_over_under_load(least: usize) {
    let (_, server) = counting(Duration::ZERO).await;
    let folder = std::env::temp_dir().join(format!("vary-failover-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let port = free_port();
    let redis = Redis::start(port, &folder);
    let failover = Failover::start(port, &folder);
    failover.is_ready().await;
    let store = format!(
        "redis+sentinel://default:{PASSWORD}@127.0.0.1:{}/main/2",
        failover.port
    );
    let closed = format!("{LIMITED}\nstore-failure: closed");
    let settings = [LIMITED, LIMITED, &closed];
    let mut replicas =
        Replicas::with_store(&entry(&server), &settings, redis, port, &store, folder).await;
    let proxy = in_turn(&replicas).await;
    let load = Arc::new(Load::default());
    let clients = load.start(proxy.address, 4, &[None, Some(json!({}))]).await;
    let session = replicas.all[0].open_session().await;
    replicas.all[1].delete(&session).await;
    let (before, began) = (load.requests(), Instant::now());
    replicas.redis = None;
    for replica in &replicas.all {
        replica.is_ready_with_store("away").await;
    }
    let noticed = began.elapsed();
    for replica in &replicas.all {
        replica.is_ready_with_store("up").await;
    }
    let back = began.elapsed();
    until(async || load.requests() >= before + least).await;
    for replica in &replicas.all {
        assert_eq!(replica.ask(&call("get_forecast")).await.status, 200);
        assert_eq!(replica.status_of(&session).await, 404);
    }
    println!(
        "failed over: noticed after {noticed:.1?}, back after {back:.1?}, {} requests",
        load.requests() - before
    );
    let (_, failures) = load.stop(clients).await;
    assert!(failures.is_empty(), "{failures:?}");
    let Failover { sentinel, copy, .. } = failover;
    replicas.end();
    drop((sentinel, copy));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn of_a_killed_replica_only_what_was_in_flight_fails_and_nothing_is_executed_twice() {
    killed_under_load(4).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn no_request_fails_while_three_replicas_are_replaced() {
    replaced_under_load(2_000).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn however_the_store_fails_no_plain_call_does() {
    store_away_under_load(500).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn no_plain_call_fails_while_sentinel_gives_the_store_to_another_server() {
    failed_over_under_load(500).await;
}

/// The same at length: `cargo xtask test-extra replicas`.
mod at_length {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "`cargo xtask test-extra replicas` runs it"]
    async fn a_replica_is_killed_under_64_clients_of_each_revision() {
        killed_under_load(32).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "`cargo xtask test-extra replicas` runs it"]
    async fn no_request_of_100_000_fails_while_three_replicas_are_replaced() {
        replaced_under_load(100_000).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "`cargo xtask test-extra replicas` runs it"]
    async fn no_plain_call_of_20_000_fails_however_the_store_does() {
        store_away_under_load(20_000).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "`cargo xtask test-extra replicas` runs it"]
    async fn no_plain_call_of_20_000_fails_while_the_store_fails_over() {
        failed_over_under_load(20_000).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "`cargo xtask test-extra replicas` runs it"]
    #[expect(
        clippy::print_stdout,
        reason = "the counts are for the person who runs the test"
    )]
    async fn in_30_seconds_360_calls_of_a_key_pass() {
        let replicas = Replicas::start("exact", &[exact().as_str(); 3]).await;
        let [passed, allowed, uncounted] =
            passed_and_allowed(&replicas, Duration::from_secs(30)).await;
        println!("{passed} passed, {allowed:.1} are allowed, {uncounted} were not counted in time");
        assert!(passed <= allowed + 2.0, "{passed} of {allowed}");
        // The store may have counted those, too.
        let known = passed + uncounted;
        assert!(known >= allowed - 2.0, "{known} of {allowed}");
        replicas.end();
    }
}
