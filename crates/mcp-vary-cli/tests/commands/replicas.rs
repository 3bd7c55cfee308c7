//! Three gateways with the same keys share a `redis-server` of Debian. `cargo xtask test replicas` runs these tests alone:
//! they measure time.

mod drills;
mod experiments;
mod forwarding;
mod heirs;
mod limits;
mod programs;
mod property;
mod routing;
mod takeover;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mcp_vary_testkit::http_client::{HttpRequest, HttpResponse, RawHttp};
use mcp_vary_testkit::message::{initialize, modern, request};
use mcp_vary_testkit::wait::until;
use serde_json::json;

use crate::gateways::{Gateway, Proxy, free_port};
use crate::load::Load;
use crate::program::{VARY, signal};
use crate::text::{assert_contains, assert_lacks};

const PASSWORD: &str = "hunter2-hunter2-hunter2";

/// A `redis-server`, until this is dropped.
struct Redis(Child);

impl Redis {
    fn start(port: u16, folder: &Path) -> Self {
        Self::start_with(port, folder, &[])
    }

    fn start_with(port: u16, folder: &Path, options: &[&str]) -> Self {
        let port = port.to_string();
        let mut command = Command::new("redis-server");
        command
            .args(["--bind", "127.0.0.1", "--save", "", "--port", &port])
            .args([
                "--requirepass",
                PASSWORD,
                "--dbfilename",
                &format!("{port}.rdb"),
            ])
            .args(options)
            .arg("--dir")
            .arg(folder);
        Self::spawn(command)
    }

    /// A Sentinel with this configuration.
    fn sentinel(file: &Path) -> Self {
        let mut command = Command::new("redis-server");
        command.arg(file).arg("--sentinel");
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let missing = "redis-server is missing; on Debian, type as root: apt-get update && apt-get install -y redis-server";
        Self(command.stdout(Stdio::null()).spawn().expect(missing))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A gateway with this store.
fn replica(configuration: &Path, store: &str) -> Gateway {
    Gateway::start(configuration, vec![("STORE", store.to_owned())])
}

impl Gateway {
    /// Waits until it is ready, and its store has this state.
    async fn is_ready_with_store(&self, state: &str) {
        let line = format!("store: {state}\n");
        until(async || {
            let ready = self.get("/readyz").await;
            ready.status == 200 && ready.text().contains(&line)
        })
        .await;
    }

    async fn connect(&self) -> RawHttp {
        RawHttp::connect(self.server.address).await
    }

    async fn ask(&self, request: &HttpRequest) -> HttpResponse {
        self.connect().await.ask(request).await
    }

    /// The session that it opens.
    async fn open_session(&self) -> String {
        let first = HttpRequest::new(initialize("2025-11-25", &json!({})).to_string());
        let opened = self.ask(&first).await;
        opened.header("mcp-session-id").unwrap().to_owned()
    }

    /// The status of a request in a session.
    async fn status_of(&self, session: &str) -> u16 {
        let ping = request(json!(1), "ping", json!({})).to_string();
        self.ask(&HttpRequest::of(session, ping)).await.status
    }

    async fn delete(&self, session: &str) {
        assert_eq!(self.ask(&deletion_of(session)).await.status, 200);
    }

    /// Ends it; what it has written does not have the password.
    fn end(self) {
        let (code, text) = self.server.end_with_said();
        assert_eq!(code, Some(0), "{text}");
        assert_lacks(&text, &["hunter2"]);
    }
}

/// A store with replicas.
struct Replicas {
    redis: Option<Redis>,
    port: u16,
    folder: PathBuf,
    all: Vec<Gateway>,
}

impl Replicas {
    /// One replica for each of these further settings, all ready.
    async fn start(name: &str, settings: &[&str]) -> Self {
        let server = format!("{{command: {VARY:?}, args: [weather]}}");
        Self::before(&server, name, settings).await
    }

    /// The same with this server, in which `NUMBER` is that of the replica.
    async fn before(server: &str, name: &str, settings: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("vary-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let port = free_port();
        let redis = Redis::start(port, &folder);
        let store = format!("redis://default:{PASSWORD}@127.0.0.1:{port}/2");
        Self::with_store(server, settings, redis, port, &store, folder).await
    }

    /// The same with a store that runs.
    async fn with_store(
        server: &str,
        settings: &[&str],
        redis: Redis,
        port: u16,
        store: &str,
        folder: PathBuf,
    ) -> Self {
        let start = |(number, settings): (usize, &&str)| {
            let configuration = folder.join(format!("{number}.yaml"));
            let server = server.replace("NUMBER", &number.to_string());
            let text = format!(
                "servers: {{sky: {server}}}\n\
                 keys: [a-key-for-all-gateways-0123456789abcdefg]\nstore: \"${{STORE}}\"\n{settings}\n"
            );
            fs::write(&configuration, text).unwrap();
            replica(&configuration, store)
        };
        let all = settings.iter().enumerate().map(start).collect();
        let replicas = Self {
            redis: Some(redis),
            port,
            folder,
            all,
        };
        for replica in &replicas.all {
            replica.is_ready_with_store("up").await;
        }
        replicas
    }

    fn store(&self) -> String {
        format!("redis://default:{PASSWORD}@127.0.0.1:{}/2", self.port)
    }

    fn start_redis(&mut self) {
        self.redis = Some(Redis::start(self.port, &self.folder));
    }

    fn end(mut self) {
        self.all.drain(..).for_each(Gateway::end);
    }
}

impl Drop for Replicas {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A call of a tool by a client of 2026-07-28.
fn call(tool: &str) -> HttpRequest {
    let params = json!({"name": tool, "arguments": {"location": "Bern"}});
    HttpRequest::modern(&modern(json!(1), "tools/call", params, &json!({})))
}

/// The request that ends a session.
fn deletion_of(session: &str) -> HttpRequest {
    HttpRequest::of(session, "")
        .line("DELETE /mcp HTTP/1.1")
        .with("MCP-Protocol-Version", "2025-11-25")
}

/// Waits until a session does not exist at a replica; returns how long that took.
async fn gone(replica: &Gateway, session: &str, since: Instant) -> Duration {
    until(async || replica.status_of(session).await == 404).await;
    since.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn a_session_that_is_deleted_at_one_replica_is_gone_at_all_also_after_its_death() {
    let mut replicas = Replicas::start("ended", &["", "", ""]).await;
    let [a, b, c] = replicas.all.as_slice() else {
        unreachable!("three were started")
    };
    let (first, second) = (a.open_session().await, a.open_session().await);
    for replica in [a, b, c] {
        assert_eq!(replica.status_of(&first).await, 200);
    }
    a.delete(&first).await;
    let deleted = Instant::now();
    for replica in [b, c] {
        assert!(gone(replica, &first, deleted).await < Duration::from_secs(1));
    }
    assert_eq!(b.status_of(&second).await, 200);
    // The next one is killed as soon as it has answered, and the last one starts after that.
    a.delete(&second).await;
    signal("KILL", a.server.child.id());
    let deleted = Instant::now();
    assert!(gone(b, &second, deleted).await < Duration::from_secs(1));
    drop(replicas.all.remove(0));
    let store = replicas.store();
    let late = replica(&replicas.folder.join("0.yaml"), &store);
    late.is_ready_with_store("up").await;
    for session in [&first, &second] {
        assert_eq!(late.status_of(session).await, 404);
    }
    replicas.all.push(late);
    // An empty store gets them back from those that know them.
    replicas.redis = None;
    replicas.all[0].is_ready_with_store("away").await;
    replicas.start_redis();
    for replica in &replicas.all {
        replica.is_ready_with_store("up").await;
    }
    let later = replica(&replicas.folder.join("0.yaml"), &store);
    later.is_ready_with_store("up").await;
    assert_eq!(later.status_of(&first).await, 404);
    replicas.all.push(later);
    replicas.end();
}

/// `600/min` with a burst of 60, for the forecast only.
const LIMITED: &str = "rates: [{name: forecasts, rate: 600/min, burst: 60, tools: get_forecast}]";

/// A key, and who has it.
const KEY: &str = "vary_0000000000000000000000000000000000000000000";
const KEYS: &str = "auth: {keys: [{name: ci, sha256: e877dbe9390178860c0dca550f574ce64bcdea8b7c3b6dd2953d63d807b38f42}]}";

/// A limited call with the key.
fn call_with_key() -> HttpRequest {
    call("get_forecast").with("Authorization", format!("Bearer {KEY}"))
}

/// A busy machine may keep the store from answering in time: then nobody counts, and nothing passes.
fn exact() -> String {
    format!("{KEYS}\n{LIMITED}\nstore-failure: closed")
}

/// The calls of one key that pass, those that one gateway would allow, and those that the store was too slow to count, when
/// three clients call as fast as they can.
async fn passed_and_allowed(replicas: &Replicas, time: Duration) -> [f64; 3] {
    let counts = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let began = Instant::now();
    let clients = replicas.all.iter().map(|replica| {
        let (address, counts) = (replica.server.address, Arc::clone(&counts));
        tokio::spawn(async move {
            let mut http = RawHttp::connect(address).await;
            let [passed, uncounted] = &*counts;
            while began.elapsed() < time {
                let answer = http.ask(&call_with_key()).await;
                match answer.status {
                    200 => passed.fetch_add(1, Ordering::Relaxed),
                    429 => usize::from(answer.header("retry-after") != Some("1")),
                    503 => uncounted.fetch_add(1, Ordering::Relaxed),
                    status => panic!("{status}: {}", answer.text()),
                };
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    let allowed = 60.0 + 10.0 * began.elapsed().as_secs_f64();
    let [passed, uncounted] = [0, 1].map(|it| counts[it].load(Ordering::Relaxed) as f64);
    [passed, allowed, uncounted]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn three_replicas_allow_a_client_what_one_would() {
    let replicas = Replicas::start("rates", &[exact().as_str(); 3]).await;
    let began = Instant::now();
    let [passed, allowed, _] = passed_and_allowed(&replicas, Duration::from_secs(4)).await;
    // Each for itself would allow three times as many.
    assert!(passed <= allowed + 2.0, "{passed} of {allowed}");
    assert!(passed >= 0.8 * allowed, "{passed} of {allowed}");
    let mut http = replicas.all[0].connect().await;
    let mut answer = http.ask(&call_with_key()).await;
    while answer.status != 429 && began.elapsed() < Duration::from_secs(30) {
        answer = http.ask(&call_with_key()).await;
    }
    let refused = answer.json();
    assert_eq!(refused["error"]["code"], -32005);
    assert_eq!(
        refused["error"]["message"],
        "the limit `forecasts` is reached; retry after 1 s"
    );
    replicas.end();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn without_its_store_a_replica_answers_plain_calls_and_limited_ones_as_configured() {
    let closed = format!("{LIMITED}\nstore-failure: closed");
    let mut replicas = Replicas::start("away", &[LIMITED, &closed]).await;
    let plain = Arc::new(AtomicUsize::new(0));
    let stops = Arc::new(AtomicBool::new(false));
    let clients = replicas.all.iter().map(|replica| {
        let (address, plain, stops) = (
            replica.server.address,
            Arc::clone(&plain),
            Arc::clone(&stops),
        );
        tokio::spawn(async move {
            let mut http = RawHttp::connect(address).await;
            while !stops.load(Ordering::Relaxed) {
                let answer = http.ask(&call("get_weather")).await;
                assert_eq!(answer.status, 200, "{}", answer.text());
                assert!(answer.json()["result"].is_object());
                plain.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    replicas.redis = None;
    let [open, refusing] = replicas.all.as_slice() else {
        unreachable!("two were started")
    };
    for replica in [open, refusing] {
        replica.is_ready_with_store("away").await;
        let metrics = replica.get("/metrics").await.text();
        assert_contains(&metrics, &["\nvary_store_up 0"]);
    }
    // A bucket of its own, which is full.
    let mut http = open.connect().await;
    let mut passed = 0;
    for _ in 0..300 {
        passed += usize::from(http.ask(&call("get_forecast")).await.status == 200);
    }
    assert!((60..300).contains(&passed), "{passed}");
    let refused = refusing.ask(&call("get_forecast")).await;
    assert_eq!(refused.status, 503);
    let error = &refused.json()["error"];
    assert_eq!(error["code"], -32006);
    let message = "the store that counts for rate limits is away; retry later";
    assert_eq!(error["message"], message);
    replicas.start_redis();
    for replica in &replicas.all {
        replica.is_ready_with_store("up").await;
        let answer = replica.ask(&call("get_forecast")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let metrics = replica.get("/metrics").await.text();
        let counted = "vary_store_operations_total{operation=\"count\",outcome=\"ok\"} 1\n";
        assert_contains(&metrics, &["\nvary_store_up 1", counted]);
    }
    stops.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    assert!(plain.load(Ordering::Relaxed) > 100, "{plain:?}");
    replicas.end();
}
