//! Processes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_vary_gateway::revision::Era;
use mcp_vary_gateway::upstream::{Line, State, Target, UpstreamConfig, UpstreamError};
use serde_json::json;

use crate::support::{call, limits, next, pauses, result, says};

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
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstream/peer.py");
    let args = std::iter::once(script).chain(tempers.iter().copied());
    let mut target = Target::command("python3", args.map(str::to_owned));
    if let Target::Command { env, .. } = &mut target {
        let starts = place.file("starts");
        env.insert("STARTS".to_owned(), starts.to_str().unwrap().to_owned());
    }
    UpstreamConfig::new("peer", target).with_limits(limits())
}

#[tokio::test]
async fn a_child_that_dies_is_started_again() {
    let place = Place::new();
    let line = Line::open(peer(&place, &["legacy"]));
    let mut events = line.events();
    let upstream = line.tried().await.unwrap();
    let waiting = upstream.request(call("hang", &json!({}))).await.unwrap();
    let dying = upstream.request(call("die", &json!({}))).await.unwrap();
    for exchange in [waiting, dying] {
        let error = exchange.answer().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "server `peer` ended (signal: 9 (SIGKILL))"
        );
    }
    assert_eq!(next(&mut events).await, "connected");
    assert_eq!(
        next(&mut events).await,
        "lost: server `peer` ended (signal: 9 (SIGKILL))"
    );
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
    limits.longest_backoff = Duration::from_millis(100);
    let line = Line::open(UpstreamConfig::new("tools", target).with_limits(limits));
    let error = line.tried().await.unwrap_err();
    says(&error, &["`tools`", "was not found", "install it"]);
    let error = line.ready().await.unwrap_err();
    // Where it is looked for is for the operator alone.
    let told = error.to_string();
    assert!(told.starts_with("server `tools` is down: its program was not found; it is"));
    says(
        &error.details(),
        &["is down: the program `/", "put its directory on `PATH`"],
    );
    assert!(matches!(error, UpstreamError::Down { .. }));
    install(&place, "server");
    let up = |state: &State| matches!(state, State::Up(_));
    line.state().wait_for(up).await.unwrap();
    result(&line.ready().await.unwrap(), "echo", &json!({})).await;
    line.close().await;
}

/// Puts a program in place in one step.
fn install(place: &Place, name: &str) {
    let peer = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstream/peer.py");
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
    let line = Line::open(peer(&place, &["flapping"]));
    assert_eq!(pauses(&line, 3).await, [40, 80, 160]);
    assert_eq!(place.starts().len(), 4);
    line.close().await;
}

#[tokio::test]
async fn a_connection_that_held_as_long_as_the_longest_pause_is_made_again_soon() {
    let place = Place::new();
    let mut config = peer(&place, &["legacy"]);
    config.limits.longest_backoff = config.limits.backoff;
    let line = Line::open(config);
    for _ in 0..3 {
        // An error would say that the line is down.
        let upstream = line.ready().await.unwrap();
        tokio::time::sleep(line.config().limits.backoff).await;
        let dying = upstream.request(call("die", &json!({}))).await.unwrap();
        dying.answer().await.unwrap_err();
    }
    line.ready().await.unwrap();
    assert_eq!(place.starts().len(), 4);
    line.close().await;
}

#[tokio::test]
async fn another_server_may_take_the_place_of_one_that_ended() {
    let place = Place::new();
    let line = Line::open(peer(&place, &["legacy", "modern"]));
    let upstream = line.tried().await.unwrap();
    assert_eq!(upstream.hello().era(), Era::Legacy);
    let exit = result(&upstream, "exit", &json!({})).await;
    assert_eq!(exit, json!({"content": []}));
    let mut events = line.events();
    if next(&mut events).await.starts_with("lost") {
        assert_eq!(next(&mut events).await, "connected");
    }
    assert_eq!(line.ready().await.unwrap().hello().era(), Era::Modern);
    line.close().await;
}
