//! Processes of a server that left its group, as those in a session of their own do. They are known by a variable of their
//! environment, which they inherit.

use std::sync::atomic::{AtomicU64, Ordering};

/// The variable; its value is that of one start of a server.
pub(super) const VARIABLE: &str = "VARY_SERVER_PROCESS";

/// The value for a new start of a server. If this Vary was itself started by one, it begins with `outer`, the value of that
/// start, so that the outer Vary ends what an inner one leaves.
pub(super) fn next_value(outer: Option<String>) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let start = format!("{}-{number}", std::process::id());
    match outer.filter(|outer| outer.len() <= MAX_OUTER) {
        Some(outer) => format!("{outer}/{start}"),
        None => start,
    }
}

/// How long the value of an outer Vary may be, in bytes; it stands in the environment of every process below.
const MAX_OUTER: usize = 256;

/// Kills the processes with this value, and those that they start meanwhile. Other systems than Linux do not tell the
/// environment of a process.
#[cfg(not(target_os = "linux"))]
pub(super) const fn kill(_: &str) {}

/// Kills the processes with this value or one below it, and those that they start meanwhile.
#[cfg(target_os = "linux")]
pub(super) fn kill(value: &str) {
    let variable = format!("{VARIABLE}={value}");
    // A process that starts others without end is not worth more.
    for _ in 0..ROUNDS {
        if !kill_once(variable.as_bytes()) {
            return;
        }
    }
}

#[cfg(target_os = "linux")]
const ROUNDS: usize = 8;

/// Kills the processes with this variable that there are now. Returns whether there was one.
#[cfg(target_os = "linux")]
fn kill_once(variable: &[u8]) -> bool {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    let mut is_found = false;
    let processes = std::fs::read_dir("/proc").into_iter().flatten();
    for process in processes.flatten() {
        let number = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(number) = number.and_then(Pid::from_raw) else {
            continue;
        };
        // Opened first: its number can be given to another process at any time.
        let Ok(opened) = pidfd_open(number, PidfdFlags::empty()) else {
            continue;
        };
        // Those of other users cannot be read. Those that have ended have none.
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let is_below = |it: &[u8]| {
            let end = it.strip_prefix(variable);
            end.is_some_and(|end| matches!(end.first(), None | Some(b'/')))
        };
        if environment.split(|byte| *byte == 0).any(is_below) {
            is_found |= pidfd_send_signal(opened, Signal::KILL).is_ok();
        }
    }
    is_found
}
