//! Processes of a server that left its group, as those in a session of their own do. They are known by a variable of their
//! environment, which they inherit.
//!
//! To find them, the environment of every process of the machine is read. One thread does that, for all servers that ended
//! at about the same time together.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mcp_vary_base::lock::Lock;
use tokio::sync::watch;

/// The variable; its value is that of one start of a server.
pub(super) const VARIABLE: &str = "VARY_SERVER_PROCESS";

/// The value for a new start of a server. If this Vary was itself started by one, it begins with `outer`, the value of that
/// start, so that the outer Vary ends what an inner one leaves.
pub(super) fn next_value(outer: Option<String>) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}{number}", own_prefix(outer))
}

/// What the values of all starts of this process begin with.
pub(super) fn own_prefix(outer: Option<String>) -> String {
    let id = std::process::id();
    match outer.filter(|outer| outer.len() <= MAX_OUTER) {
        Some(outer) => format!("{outer}/{id}-"),
        None => format!("{id}-"),
    }
}

/// How long the value of an outer Vary may be, in bytes; it stands in the environment of every process below.
const MAX_OUTER: usize = 256;

/// Kills the processes with this value or one below it soon, and those that they start meanwhile.
pub(super) fn kill(value: String) -> Sweep {
    SWEEPER.add(value)
}

/// Waits until a sweep is over.
pub(super) async fn swept(sweep: Sweep) {
    SWEEPER.swept(sweep).await;
}

static SWEEPER: Sweeper = Sweeper::new(|values| kill_all(|value| is_of_any(values, value)));

/// Kills the processes of which `is_wanted` holds for the value, and those that they start meanwhile.
pub(super) fn kill_all(is_wanted: impl Fn(&str) -> bool) {
    // A process that starts others without end is not worth more.
    for _ in 0..ROUNDS {
        if !kill_once(&is_wanted) {
            return;
        }
    }
}

const ROUNDS: usize = 8;

/// Whether `value` is one of `values`, or below one.
fn is_of_any(values: &BTreeSet<String>, value: &str) -> bool {
    let mut ends = value.match_indices('/').map(|(at, _)| at);
    values.contains(value) || ends.any(|end| values.contains(&value[..end]))
}

/// The number of a sweep.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Sweep(u64);

/// Searches for what several servers left, once for all that ended within a short time.
#[derive(Debug)]
struct Sweeper {
    search: fn(&BTreeSet<String>),
    queue: Lock<Queue>,
}

#[derive(Debug)]
struct Queue {
    values: BTreeSet<String>,
    /// The sweep that `values` wait for.
    next: Sweep,
    is_running: bool,
    /// The last sweep that is over.
    swept: Option<watch::Sender<Sweep>>,
}

impl Sweeper {
    const fn new(search: fn(&BTreeSet<String>)) -> Self {
        Self {
            search,
            queue: Lock::new(Queue {
                values: BTreeSet::new(),
                next: Sweep(1),
                is_running: false,
                swept: None,
            }),
        }
    }

    /// Adds a value to the next sweep.
    fn add(&'static self, value: String) -> Sweep {
        let mut queue = self.queue.lock();
        queue.values.insert(value);
        let sweep = queue.next;
        let is_running = std::mem::replace(&mut queue.is_running, true);
        drop(queue);
        let thread = || thread::Builder::new().name("sweep".to_owned());
        if !is_running && thread().spawn(|| self.run()).is_err() {
            self.run();
        }
        sweep
    }

    /// Sweeps until nothing is left to search for.
    fn run(&self) {
        loop {
            self.settle();
            let mut queue = self.queue.lock();
            let values = std::mem::take(&mut queue.values);
            let sweep = queue.next;
            queue.next.0 += 1;
            drop(queue);
            (self.search)(&values);
            let mut queue = self.queue.lock();
            queue.swept().send_replace(sweep);
            if queue.values.is_empty() {
                queue.is_running = false;
                return;
            }
        }
    }

    /// Waits while further servers end, but not for long.
    fn settle(&self) {
        let began = Instant::now();
        let mut count = 0;
        while began.elapsed() < LONGEST {
            thread::sleep(PAUSE);
            let known = std::mem::replace(&mut count, self.queue.lock().values.len());
            if known == count {
                return;
            }
        }
    }

    /// Waits until a sweep is over.
    async fn swept(&self, sweep: Sweep) {
        let mut swept = self.queue.lock().swept().subscribe();
        // The sender is never dropped.
        let _ = swept.wait_for(|last| *last >= sweep).await;
    }
}

impl Queue {
    fn swept(&mut self) -> &watch::Sender<Sweep> {
        self.swept.get_or_insert_default()
    }
}

/// How long no further server may have ended before a sweep.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest wait before a sweep.
const LONGEST: Duration = Duration::from_secs(1);

/// Kills the wanted processes that there are now. Returns whether there was one. Other systems than Linux do not tell the
/// environment of a process.
#[cfg(not(target_os = "linux"))]
const fn kill_once(_: &impl Fn(&str) -> bool) -> bool {
    false
}

/// Kills the wanted processes that there are now. Returns whether there was one.
#[cfg(target_os = "linux")]
fn kill_once(is_wanted: &impl Fn(&str) -> bool) -> bool {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    let mut is_found = false;
    let processes = std::fs::read_dir("/proc").into_iter().flatten();
    for process in processes.flatten() {
        let name = process.file_name();
        let parsed = name.to_str().and_then(|name| name.parse().ok());
        let Some(number) = parsed.and_then(Pid::from_raw) else {
            continue;
        };
        let is_its = || {
            // Those of other users cannot be read. Those that have ended have none.
            let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
            let mut variables = environment.split(|byte| *byte == 0);
            let value =
                variables.find_map(|it| it.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="));
            value.is_some_and(|value| str::from_utf8(value).is_ok_and(is_wanted))
        };
        if !is_its() {
            continue;
        }
        // Its number can be given to another process at any time, so it is looked at once more after it was opened.
        let Ok(opened) = pidfd_open(number, PidfdFlags::empty()) else {
            continue;
        };
        if is_its() {
            is_found |= pidfd_send_signal(opened, Signal::KILL).is_ok();
        }
    }
    is_found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_belongs_to_its_start_and_to_those_above_it() {
        let values = BTreeSet::from(["1-2".to_owned(), "7-1/8-3".to_owned()]);
        for (value, is_of_any) in [
            ("1-2", true),
            ("1-2/9-1", true),
            ("1-2/9-1/10-1", true),
            ("1-21", false),
            ("1-3", false),
            ("7-1", false),
            ("7-1/8-3/1-1", true),
            ("", false),
        ] {
            assert_eq!(super::is_of_any(&values, value), is_of_any, "{value}");
        }
    }

    #[tokio::test]
    async fn what_ends_at_once_is_searched_for_once() {
        static FOUND: Lock<Vec<usize>> = Lock::new(Vec::new());
        static SWEEPER: Sweeper = Sweeper::new(|values| FOUND.lock().push(values.len()));
        let sweeps: Vec<_> = (0..200)
            .map(|number| SWEEPER.add(number.to_string()))
            .collect();
        for sweep in sweeps {
            SWEEPER.swept(sweep).await;
        }
        assert_eq!(*FOUND.lock(), [200]);
        // One that ends later is searched for, too.
        SWEEPER.swept(SWEEPER.add("later".to_owned())).await;
        assert_eq!(*FOUND.lock(), [200, 1]);
    }
}
