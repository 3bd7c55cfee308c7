//! Servers of a Vary that could not end them: it was killed, or interrupted twice.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::program::{command, file, signal};

/// A server that starts for ever and ignores that its input ends, with a process in a session of its own.
const SERVER: &str = "trap '' TERM; setsid sleep 1000 & while :; do sleep 1000; done";
const SERVERS: usize = 10;

/// How many processes have this variable.
fn count(variable: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let environments = processes.filter_map(|it| std::fs::read(it.path().join("environ")).ok());
    let has_variable = |it: &Vec<u8>| {
        it.split(|byte| *byte == 0)
            .any(|it| it == variable.as_bytes())
    };
    environments.filter(has_variable).count()
}

#[track_caller]
fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_there() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whatever `end` does to Vary, no process of its servers is left.
#[track_caller]
fn nothing_is_left(name: &str, least: usize, end: impl Fn(&Child)) {
    let variable = format!("KILLED_TEST={name}-{}", std::process::id());
    let (key, value) = variable.split_once('=').unwrap();
    let server = |number| {
        format!("  s{number}: {{command: sh, args: [-c, {SERVER:?}], env: {{{key}: '{value}'}}}}\n")
    };
    let servers: String = (0..SERVERS).map(server).collect();
    let file = file(
        &format!("killed-{name}.yaml"),
        &format!("servers:\n{servers}"),
    );
    let mut vary = command(&["serve", "--listen", "0", &file])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("its servers are started", || count(&variable) >= least);
    end(&vary);
    vary.wait().unwrap();
    wait_for("all are ended", || count(&variable) == 0);
    // None was about to be started.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(count(&variable), 0, "{name}");
}

#[test]
fn a_vary_that_is_killed_leaves_no_process() {
    nothing_is_left("kill", 2 * SERVERS, |vary| signal("KILL", vary.id()));
}

#[test]
fn a_vary_that_is_interrupted_twice_while_servers_start_leaves_no_process() {
    nothing_is_left("interrupted", 1, |vary| {
        signal("INT", vary.id());
        std::thread::sleep(Duration::from_millis(20));
        signal("INT", vary.id());
    });
}
