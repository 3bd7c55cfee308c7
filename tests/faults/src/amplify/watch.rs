//! A process that is ended when it takes too much memory or too much time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process;

/// What a process may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Resident memory, in KiB.
    pub(super) memory: usize,
    pub(super) time: Duration,
}

/// Why a process was ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Exceeded {
    Memory,
    Time,
}

/// Does `what`, and kills the process when it exceeds its allowance meanwhile, so that `what` ends with an error.
/// Returns why, and its peak in KiB.
pub(super) fn watched<T>(
    process: u32,
    allowance: Allowance,
    what: impl FnOnce() -> T,
) -> (T, Option<(Exceeded, usize)>) {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(process, allowance, &is_done));
        let result = what();
        is_done.store(true, Ordering::Relaxed);
        (result, watcher.join().unwrap_or_default())
    })
}

fn watch(process: u32, allowance: Allowance, is_done: &AtomicBool) -> Option<(Exceeded, usize)> {
    let begun = Instant::now();
    while !is_done.load(Ordering::Relaxed) {
        let memory = process::memory(process).unwrap_or_default();
        let exceeded = match (memory > allowance.memory, begun.elapsed() > allowance.time) {
            (true, _) => Some(Exceeded::Memory),
            (false, true) => Some(Exceeded::Time),
            (false, false) => None,
        };
        if let Some(exceeded) = exceeded {
            let peak = process::peak(process).unwrap_or(memory);
            let _ = process::signal(process, Signal::KILL);
            return Some((exceeded, peak));
        }
        thread::sleep(POLL);
    }
    None
}

/// A process that allocates as fast as it can takes some hundred MiB meanwhile.
const POLL: Duration = Duration::from_millis(20);
