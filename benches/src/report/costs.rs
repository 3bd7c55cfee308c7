//! Costs that are measured outside the rows: memory of sessions, changes of lists, reloads and fan-out.

use std::time::Duration;

use serde_json::{Value, json};

use crate::subject::Subject;

use super::median;

/// The memory of sessions: resident bytes of one process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) subject: Subject,
    pub(crate) sessions: usize,
    /// Without sessions, with all of them idle, and with additional open streams.
    pub(crate) none: u64,
    pub(crate) idle: u64,
    pub(crate) streams: usize,
    pub(crate) listening: u64,
}

/// The cost of a change of one server's list: milliseconds for each change.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) variants: usize,
    /// The gateway's CPU time, from the notification to the first list that shows the change.
    pub(crate) cpu: Vec<f64>,
    /// The elapsed time.
    pub(crate) took: Vec<f64>,
}

/// Calls that another replica has to answer, and the same ones at that replica.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forwarding {
    pub(crate) direct: Vec<Duration>,
    pub(crate) through: Vec<Duration>,
    /// The CPU time of both replicas for all calls, direct and forwarded.
    pub(crate) cpu: [Duration; 2],
    /// The times of a call with a large result, direct and forwarded.
    pub(crate) large: [Duration; 2],
    /// How many bytes more the store has in use at the end.
    pub(crate) stored: u64,
}

impl Forwarding {
    /// The medians of both, in µs.
    fn medians(&self) -> [f64; 2] {
        [&self.direct, &self.through].map(|times| {
            let times = times.iter().map(|took| took.as_secs_f64() * 1e6);
            median(times.collect())
        })
    }

    /// The CPU time of one call, direct and forwarded, in µs.
    fn cpu_each(&self) -> [f64; 2] {
        let calls = f64::from(u32::try_from(self.through.len()).unwrap_or(u32::MAX));
        self.cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / calls)
    }

    pub(super) fn summary(&self) -> String {
        let [direct, through] = self.medians();
        let [whole, forwarded] = self.large.map(|took| took.as_secs_f64() * 1e3);
        let [directly, both] = self.cpu_each();
        format!(
            "{:+.0} µs at p50 ({direct:.0} to {through:.0}), {both:.0} µs CPU at both replicas ({directly:.0} direct), \
             1 MB in {forwarded:.1} ms ({whole:.1} direct), {} KB more in the store after {} calls",
            through - direct,
            self.stored / 1000,
            self.through.len()
        )
    }

    /// That forwarding takes too long.
    pub(super) fn over_the_bar(&self, name: &str) -> Option<String> {
        let [direct, through] = self.medians();
        let more = through - direct;
        (more > FORWARDED).then(|| format!("{name}: {more:+.0} µs at p50; at most {FORWARDED:+}"))
    }

    pub(super) fn to_json(&self) -> Value {
        let [direct, through] = self.medians();
        let [whole, forwarded] = self.large.map(|took| took.as_secs_f64() * 1e3);
        json!({
            "directP50": direct, "forwardedP50": through, "cpu": self.cpu_each(), "calls": self.through.len(),
            "largeMs": whole, "largeForwardedMs": forwarded, "storedBytes": self.stored,
        })
    }
}

/// The most µs that forwarding may add to a call.
const FORWARDED: f64 = 400.0;

/// The duration of a single operation, such as a start, measured several times.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(super) name: &'static str,
    /// The elapsed time and the CPU time, in milliseconds.
    pub(super) times: Vec<(f64, f64)>,
}

impl Moment {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            times: Vec::new(),
        }
    }

    /// Adds a measurement: the elapsed time, and the CPU time in nanoseconds.
    #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
    pub(crate) fn add(&mut self, took: Duration, cpu: u64) {
        self.times
            .push((took.as_secs_f64() * 1e3, cpu as f64 / 1e6));
    }

    pub(super) fn summary(&self) -> String {
        let took = median(self.times.iter().map(|(took, _)| *took).collect());
        let cpu = median(self.times.iter().map(|(_, cpu)| *cpu).collect());
        format!(
            "{took:.1} ms, {cpu:.1} ms of CPU, median of {}",
            self.times.len()
        )
    }
}

/// The cost of notifying many listeners of one change.
#[derive(Clone, Debug)]
pub(crate) struct Fan {
    pub(super) name: &'static str,
    pub(super) subject: Subject,
    pub(super) listeners: usize,
    /// Microseconds of CPU time per listener, for each change.
    pub(super) cpu: Vec<f64>,
    /// Milliseconds until each listener was notified, for all changes, unordered.
    delays: Vec<f64>,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a few seconds, a thousand listeners"
)]
impl Fan {
    pub(crate) fn new(name: &'static str, subject: Subject, listeners: usize) -> Self {
        Self {
            name,
            subject,
            listeners,
            cpu: Vec::new(),
            delays: Vec::new(),
        }
    }

    /// Adds one change: the delay for each listener, and its CPU time in nanoseconds.
    pub(crate) fn add(&mut self, delays: &[Duration], cpu: u64) {
        self.cpu.push(cpu as f64 / 1e3 / self.listeners as f64);
        self.delays
            .extend(delays.iter().map(|took| took.as_secs_f64() * 1e3));
    }

    pub(super) fn percentile(&self, part: usize) -> f64 {
        let mut sorted = self.delays.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        sorted.get(last * part / 100).copied().unwrap_or(f64::NAN)
    }

    /// The summary, compared with the limit.
    pub(super) fn summary(&self, limit: Option<&Self>) -> String {
        let cpu = median(self.cpu.clone());
        let ratio = limit.map(|limit| cpu / median(limit.cpu.clone()));
        let ratio = ratio.map_or_else(String::new, |ratio| format!(" ({ratio:.2} × the limit)"));
        format!(
            "{cpu:.2} µs of CPU for each of {}{ratio} · notified after {:.1} ms p50, {:.1} ms p99",
            self.listeners,
            self.percentile(50),
            self.percentile(99),
        )
    }
}

impl Fan {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "name": self.name, "program": self.subject.name(), "listeners": self.listeners,
            "cpu": self.cpu, "p50Ms": self.percentile(50), "p99Ms": self.percentile(99),
        })
    }
}

impl Change {
    pub(super) fn name(&self) -> String {
        match self.variants {
            1 => Subject::Alone.to_string(),
            many => format!("vary, {many} variants"),
        }
    }

    pub(super) fn summary(&self) -> String {
        format!(
            "{:.2} ms of CPU · {:.2} ms until a list shows it",
            median(self.cpu.clone()),
            median(self.took.clone())
        )
    }
}

impl Memory {
    #[expect(clippy::cast_precision_loss, reason = "bytes of one process")]
    fn each(before: u64, after: u64, count: usize) -> f64 {
        (after as f64 - before as f64) / count as f64
    }

    pub(super) fn summary(&self) -> String {
        format!(
            "{:.0} B for each of {} idle sessions · {:.0} B for each of {} open streams with its \
             connection",
            Self::each(self.none, self.idle, self.sessions),
            self.sessions,
            Self::each(self.idle, self.listening, self.streams),
            self.streams,
        )
    }

    pub(super) fn over_the_bar(&self) -> Option<String> {
        let each = Self::each(self.none, self.idle, self.sessions);
        (self.subject == Subject::Vary && each > 1024.0)
            .then(|| format!("{each:.0} B for each idle session; at most 1024"))
    }
}
