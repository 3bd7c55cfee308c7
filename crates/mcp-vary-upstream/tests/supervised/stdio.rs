//! Processes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_vary_testkit::process::{is_alive, is_gone};
use mcp_vary_testkit::wait::soon;
use mcp_vary_upstream::{
    ConnectionState, SupervisedConnection, Target, UpstreamConfig, UpstreamError,
};
use mcp_vary_wire::revision::Era;
use serde_json::json;

use crate::support::{call, limits, next, open, pauses, result, says};

const KILLED: &str = "server `peer` ended (signal: 9 (SIGKILL))";

/// A directory of its own for each test.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("vary-line-{}-{number}", std::process::id());
        let place = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&place).unwrap();
        Self(place)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// The process of each start so far.
    fn starts(&self) -> Vec<u32> {
        let starts = self.read("starts");
        starts.lines().map(|pid| pid.parse().unwrap()).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn peer(place: &Place, tempers: &[&str]) -> UpstreamConfig {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/peer.py");
    let args = std::iter::once(script).chain(tempers.iter().copied());
    let mut target = Target::command("python3", args.map(str::to_owned));
    if let Target::Command { env, .. } = &mut target {
        let starts = place.file("starts");
        env.insert("STARTS".to_owned(), starts.to_str().unwrap().to_owned());
    }
    UpstreamConfig::new("peer", target).with_limits(limits())
}

/// It would never be ready otherwise.
#[tokio::test]
async fn a_program_that_was_late_has_twice_the_time_at_its_next_start() {
    let place = Place::new();
    let mut config = peer(&place, &["late-deaf"]);
    config.limits.handshake = Duration::from_millis(900);
    let line = SupervisedConnection::open(config);
    let error = soon(line.first_attempt()).await.unwrap_err().to_string();
    assert!(error.contains("was not ready within 900ms"), "{error}");
    let mut state = line.state();
    let is_second = |state: &ConnectionState| matches!(state, ConnectionState::Disconnected { error, .. } if error.to_string().contains("within 1.8s"));
    soon(state.wait_for(is_second)).await.unwrap();
    let is_connected = |state: &ConnectionState| matches!(state, ConnectionState::Connected(_));
    soon(state.wait_for(is_connected)).await.unwrap();
}

#[tokio::test]
async fn a_child_that_dies_is_started_again() {
    let place = Place::new();
    let line = SupervisedConnection::open(peer(&place, &["legacy"]));
    let mut events = line.events();
    let upstream = line.first_attempt().await.unwrap();
    let waiting = upstream.request(call("hang", &json!({}))).await.unwrap();
    let dying = upstream.request(call("die", &json!({}))).await.unwrap();
    for exchange in [waiting, dying] {
        let error = exchange.answer().await.unwrap_err();
        assert_eq!(error.to_string(), KILLED);
    }
    assert_eq!(next(&mut events).await, "connected");
    let lost = next(&mut events).await;
    assert_eq!(lost, format!("lost: {KILLED}"));
    // The first loss is made good while a call waits.
    let again = line.ready().await.unwrap();
    assert_eq!(next(&mut events).await, "connected");
    // What failed was not repeated.
    let seen = result(&again, "seen", &json!({})).await;
    let calls = seen["seen"].as_array().unwrap().iter();
    let calls = calls.filter(|message| message["method"] == "tools/call");
    assert_eq!(calls.count(), 1);
    assert_eq!(place.starts().len(), 2);
    line.close().await;
    let closed = next(&mut events).await;
    assert_eq!(closed, "closed: server `peer` was closed by the gateway");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_waited_for() {
    let place = Place::new();
    let program = place.file("server");
    let target = Target::command(program.to_str().unwrap(), []);
    let mut limits = limits();
    limits.max_backoff = Duration::from_millis(100);
    let line = SupervisedConnection::open(UpstreamConfig::new("tools", target).with_limits(limits));
    let error = line.first_attempt().await.unwrap_err();
    says(&error, &["`tools`", "was not found", "check it"]);
    let error = line.ready().await.unwrap_err();
    // Where it is looked for is for the operator alone.
    let told = error.to_string();
    assert!(told.starts_with("server `tools` is down: its program was not found; it is"));
    says(
        &error.details(),
        &["is down: the program `/", "there is no file with this path"],
    );
    assert!(matches!(error, UpstreamError::Unavailable { .. }));
    install(&place, "server");
    let up = |state: &ConnectionState| matches!(state, ConnectionState::Connected(_));
    line.state().wait_for(up).await.unwrap();
    result(&line.ready().await.unwrap(), "echo", &json!({})).await;
    line.close().await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_tried_at_once_on_request() {
    let place = Place::new();
    let program = place.file("server");
    let target = Target::command(program.to_str().unwrap(), []);
    let mut limits = limits();
    limits.max_backoff = Duration::from_secs(3600);
    let line = SupervisedConnection::open(UpstreamConfig::new("tools", target).with_limits(limits));
    line.first_attempt().await.unwrap_err();
    install(&place, "server");
    line.retry_now();
    let up = |state: &ConnectionState| matches!(state, ConnectionState::Connected(_));
    soon(line.state().wait_for(up)).await.unwrap();
    line.close().await;
}

/// Puts a program in place in one step.
fn install(place: &Place, name: &str) {
    let peer = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/peer.py");
    let script = format!("#!/bin/sh\nexec python3 '{peer}' legacy\n");
    let half = place.file("half");
    std::fs::write(&half, script).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&half, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(half, place.file(name)).unwrap();
}

#[tokio::test]
async fn a_child_that_dies_after_each_handshake_is_started_ever_more_rarely() {
    let place = Place::new();
    let line = SupervisedConnection::open(peer(&place, &["flapping"]));
    assert_eq!(pauses(&line, 3).await, [40, 80, 160]);
    assert_eq!(place.starts().len(), 4);
    line.close().await;
}

#[tokio::test]
async fn a_connection_that_held_as_long_as_the_longest_pause_is_made_again_soon() {
    let place = Place::new();
    let mut config = peer(&place, &["legacy"]);
    config.limits.max_backoff = config.limits.backoff;
    let line = SupervisedConnection::open(config);
    for _ in 0..3 {
        // An error would say that the line is down.
        let upstream = line.ready().await.unwrap();
        tokio::time::sleep(2 * line.config().limits.backoff).await;
        let dying = upstream.request(call("die", &json!({}))).await.unwrap();
        let error = dying.answer().await.unwrap_err();
        assert_eq!(error.to_string(), KILLED);
    }
    line.ready().await.unwrap();
    assert_eq!(place.starts().len(), 4);
    line.close().await;
}

#[tokio::test]
async fn a_modern_child_that_died_at_its_start_is_still_recognized() {
    let place = Place::new();
    let (line, upstream) = open(peer(&place, &["crashing", "modern"])).await;
    assert_eq!(upstream.handshake().era(), Era::Modern);
    assert_eq!(place.starts().len(), 2);
    line.close().await;
}

#[tokio::test]
async fn another_server_may_take_the_place_of_one_that_ended() {
    let place = Place::new();
    let (line, upstream) = open(peer(&place, &["legacy", "modern"])).await;
    assert_eq!(upstream.handshake().era(), Era::Legacy);
    let exit = result(&upstream, "exit", &json!({})).await;
    assert_eq!(exit, json!({"content": []}));
    let mut events = line.events();
    if next(&mut events).await.starts_with("lost") {
        assert_eq!(next(&mut events).await, "connected");
    }
    assert_eq!(line.ready().await.unwrap().handshake().era(), Era::Modern);
    line.close().await;
}

/// A client of 2025-11-25 does not wait until the process that refused `initialize` has ended, which may take long.
#[tokio::test]
async fn a_process_that_refused_initialize_ends_in_the_background() {
    let place = Place::new();
    let mut config = peer(&place, &["modern"]);
    if let Target::Command { env, .. } = &mut config.target {
        env.insert("STAY".to_owned(), "1".to_owned());
    }
    config.limits.grace = Duration::from_secs(600);
    let line = SupervisedConnection::open(config);
    line.first_attempt().await.unwrap();
    line.prefer_era(Era::Legacy);
    soon(line.wait_for_preferred_era()).await;
    assert_eq!(line.current().unwrap().handshake().era(), Era::Modern);
    let starts = place.starts();
    assert_eq!(starts.len(), 2);
    for process in starts {
        let mut kill = std::process::Command::new("kill");
        let killed = kill.args(["-KILL", &process.to_string()]).status();
        assert!(killed.unwrap().success());
    }
    line.close().await;
}

/// Asks soon, and does not wait long.
fn suspicious(place: &Place, tempers: &[&str]) -> UpstreamConfig {
    let mut config = peer(place, tempers);
    config.limits.ping = Duration::from_millis(50);
    config.limits.hang_timeout = Duration::from_secs(1);
    config
}

async fn is_found_hung(era: &str) {
    let place = Place::new();
    let (line, upstream) = open(suspicious(&place, &[era])).await;
    let mut events = line.events();
    drop(upstream.request(call("stop", &json!({}))).await.unwrap());
    let lost = next(&mut events).await;
    let hung = "lost: server `peer` hung";
    says(&lost, &[hung, "1s after a health check"]);
    assert_eq!(next(&mut events).await, "connected");
    // A process that is stopped hears no polite request.
    is_gone(place.starts()[0]).await;
    result(&line.ready().await.unwrap(), "echo", &json!({})).await;
    line.close().await;
}

#[tokio::test]
async fn a_stopped_child_is_killed_and_started_again() {
    is_found_hung("legacy").await;
    is_found_hung("modern").await;
}

#[tokio::test]
async fn a_call_in_flight_at_a_child_that_hangs_is_told() {
    let place = Place::new();
    let mut config = suspicious(&place, &["legacy"]);
    config.limits.idle = Duration::from_secs(3);
    let (line, upstream) = open(config).await;
    let first = upstream.request(call("stop", &json!({}))).await.unwrap();
    // The question is asked in the meantime.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let second = upstream.request(call("echo", &json!({}))).await.unwrap();
    let (first, second) = tokio::join!(first.answer(), second.answer());
    // The first one may have had its own time before.
    assert!(first.is_err());
    let error = second.unwrap_err();
    says(&error, &["`peer` hung", "3s after a health check"]);
    line.ready().await.unwrap();
    line.close().await;
}

#[tokio::test]
async fn a_child_that_works_at_one_thing_at_a_time_is_left_alone() {
    let place = Place::new();
    let mut config = suspicious(&place, &["legacy"]);
    config.limits.hang_timeout = Duration::from_millis(100);
    let (line, upstream) = open(config).await;
    result(&upstream, "work", &json!({"seconds": 1})).await;
    assert_eq!(place.starts().len(), 1);
    line.close().await;
}

#[tokio::test]
async fn a_silent_child_that_answers_when_asked_is_left_alone() {
    for (era, question) in [("legacy", "ping"), ("modern", "server/discover")] {
        let place = Place::new();
        let mut config = suspicious(&place, &[era]);
        config.limits.hang_timeout = Duration::from_secs(30);
        let (line, upstream) = open(config).await;
        loop {
            let seen = result(&upstream, "seen", &json!({})).await;
            let seen = seen["seen"].as_array().unwrap().iter();
            // One of them belongs to the handshake.
            if seen.filter(|message| message["method"] == question).count() > 3 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
        assert_eq!(place.starts().len(), 1);
        line.close().await;
    }
}

#[tokio::test]
async fn a_child_that_never_answers_ping_does_not_count_as_hung() {
    let place = Place::new();
    let mut config = suspicious(&place, &["deaf"]);
    config.limits.probe = Duration::from_secs(1);
    config.limits.hang_timeout = Duration::from_millis(50);
    let (line, upstream) = open(config).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let pid = result(&upstream, "who", &json!({})).await["pid"].clone();
    assert_eq!(json!(place.starts()), json!([pid]));
    line.close().await;
}

/// A child with one of its own that is deaf to polite requests.
async fn family(line: &SupervisedConnection) -> [u64; 2] {
    let upstream = line.first_attempt().await.unwrap();
    let started = result(&upstream, "spawn", &json!({})).await;
    ["own", "pid"].map(|member| started[member].as_u64().unwrap())
}

#[tokio::test]
async fn a_closed_line_leaves_nothing() {
    let place = Place::new();
    let line = SupervisedConnection::open(peer(&place, &["legacy"]));
    let family = family(&line).await;
    assert!(family.into_iter().all(is_alive));
    line.close().await;
    assert!(!is_alive(family[0]));
    // Its own child is killed, and collected by whoever does that.
    is_gone(family[1]).await;
    assert!(matches!(*line.state().borrow(), ConnectionState::Closed));
    let error = line.ready().await.unwrap_err();
    says(&error, &["was closed by the gateway"]);
    leaves_no_task(line).await;
    assert_eq!(place.starts().len(), 1);
}

#[tokio::test]
async fn a_dropped_line_leaves_nothing() {
    let place = Place::new();
    let line = SupervisedConnection::open(peer(&place, &["legacy"]));
    let family = family(&line).await;
    leaves_no_task(line).await;
    for pid in family {
        is_gone(pid).await;
    }
    assert_eq!(place.starts().len(), 1);
}

/// Whoever still held a part of the line would keep its events open.
async fn leaves_no_task(line: std::sync::Arc<SupervisedConnection>) {
    let mut events = line.events();
    drop(line);
    while soon(events.recv()).await.is_ok() {}
}

#[tokio::test]
async fn a_line_that_is_closed_while_it_waits_to_try_again_ends_at_once() {
    let mut limits = limits();
    limits.max_backoff = Duration::from_secs(3600);
    let target = Target::command("/no/such/program", []);
    let line = SupervisedConnection::open(UpstreamConfig::new("x", target).with_limits(limits));
    let error = line.first_attempt().await.unwrap_err().to_string();
    assert!(error.contains("/no/such/program"), "{error}");
    line.close().await;
    leaves_no_task(line).await;
}

/// A program that says nothing, and notes how it ended.
fn half_started(place: &Place) -> Target {
    let script = r#"trap 'echo term >>"$0/end"' TERM; echo >"$0/began"; cat >/dev/null; echo bye >>"$0/end""#;
    let place = place.0.to_str().unwrap();
    Target::command("sh", ["-c", script, place].map(str::to_owned))
}

async fn has_begun(place: &Place) {
    while place.read("began").is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_child_that_is_still_starting_ends_in_order() {
    let mut limits = limits();
    limits.grace = Duration::from_secs(30);
    let place = Place::new();
    let config = UpstreamConfig::new("x", half_started(&place)).with_limits(limits.clone());
    let line = SupervisedConnection::open(config);
    has_begun(&place).await;
    line.close().await;
    assert_eq!(place.read("end"), "bye\n");
    // And so does one whose handshake fails, before that is told.
    let place = Place::new();
    limits.handshake = Duration::from_secs(1);
    limits.max_backoff = Duration::from_secs(3600);
    limits.backoff = limits.max_backoff;
    let config = UpstreamConfig::new("x", half_started(&place)).with_limits(limits);
    let line = SupervisedConnection::open(config);
    let error = line.first_attempt().await.unwrap_err();
    says(&error, &["not ready within 1s"]);
    assert_eq!(place.read("end"), "bye\n");
    line.close().await;
}
