//! What came of a run: a table, the raw numbers, and whether the bars were met.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::load::Sample;
use crate::machine::{Cores, Usage};
use crate::rows::Row;
use crate::subject::Subject;

/// One round of one program.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    requests: usize,
    per_second: f64,
    median: f64,
    p99: f64,
    /// Microseconds on a core for each request.
    cpu: f64,
    resident: u64,
    /// Bytes of an answer's body, in the mean.
    answer: f64,
    wrong: usize,
    complaint: Option<String>,
}

/// All rounds of one program in one row.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) subject: Subject,
    pub(crate) rounds: Vec<Measured>,
    /// Why it could not be measured.
    pub(crate) failure: Option<String>,
}

/// What sessions cost in memory: resident bytes of one process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) subject: Subject,
    pub(crate) sessions: usize,
    /// With none, with all of them idle, and with open streams besides.
    pub(crate) none: u64,
    pub(crate) idle: u64,
    pub(crate) streams: usize,
    pub(crate) listening: u64,
}

/// What it costs that one server's list changes: milliseconds of each time.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) variants: usize,
    /// Of the gateway's CPU, from the announcement to the first list that shows it.
    pub(crate) cpu: Vec<f64>,
    /// Of the clock.
    pub(crate) took: Vec<f64>,
}

/// What happens once: how long it took, time after time.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    name: &'static str,
    /// Milliseconds until it was done, and on a core.
    times: Vec<(f64, f64)>,
}

impl Moment {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            times: Vec::new(),
        }
    }

    /// Adds one that took so long, and so many nanoseconds on a core.
    #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
    pub(crate) fn add(&mut self, took: Duration, cpu: u64) {
        self.times
            .push((took.as_secs_f64() * 1e3, cpu as f64 / 1e6));
    }

    fn said(&self) -> String {
        let took = median(self.times.iter().map(|(took, _)| *took).collect());
        let cpu = median(self.times.iter().map(|(_, cpu)| *cpu).collect());
        format!(
            "{took:.1} ms, {cpu:.1} ms of CPU, median of {}",
            self.times.len()
        )
    }
}

/// What it costs to tell many listeners of one change.
#[derive(Clone, Debug)]
pub(crate) struct Fan {
    name: &'static str,
    subject: Subject,
    listeners: usize,
    /// Microseconds on a core for each listener, time after time.
    cpu: Vec<f64>,
    /// Milliseconds until each listener was told, of all times, in no order.
    heard: Vec<f64>,
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
            heard: Vec::new(),
        }
    }

    /// Adds one change: when each listener was told, and the nanoseconds on a core that it took.
    pub(crate) fn add(&mut self, heard: &[Duration], cpu: u64) {
        self.cpu.push(cpu as f64 / 1e3 / self.listeners as f64);
        self.heard
            .extend(heard.iter().map(|took| took.as_secs_f64() * 1e3));
    }

    fn percentile(&self, part: usize) -> f64 {
        let mut heard = self.heard.clone();
        heard.sort_by(f64::total_cmp);
        let last = heard.len().saturating_sub(1);
        heard.get(last * part / 100).copied().unwrap_or(f64::NAN)
    }

    /// What is said of it, beside its limit.
    fn said(&self, limit: Option<&Self>) -> String {
        let cpu = median(self.cpu.clone());
        let ratio = limit.map(|limit| cpu / median(limit.cpu.clone()));
        let ratio = ratio.map_or_else(String::new, |ratio| format!(" ({ratio:.2} × the limit)"));
        format!(
            "{cpu:.2} µs of CPU for each of {}{ratio} · told after {:.1} ms p50, {:.1} ms p99",
            self.listeners,
            self.percentile(50),
            self.percentile(99),
        )
    }
}

/// Everything that was measured.
#[derive(Debug)]
pub(crate) struct Report {
    cores: Cores,
    /// Whether there was a clock.
    timed: bool,
    rows: Vec<(Row, Vec<Cell>)>,
    memory: Vec<Memory>,
    changes: Vec<Change>,
    moments: Vec<Moment>,
    fans: Vec<Fan>,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts and bytes far below what a float holds"
)]
impl Measured {
    pub(crate) fn new(mut sample: Sample, took: Duration, before: Usage, after: Usage) -> Self {
        let requests = sample.latencies.len();
        let each = requests.max(1) as f64;
        Self {
            requests,
            per_second: requests as f64 / took.as_secs_f64(),
            median: sample.percentile(0.5),
            p99: sample.percentile(0.99),
            cpu: (after.cpu - before.cpu) as f64 / 1e3 / each,
            resident: after.resident,
            answer: sample.bytes as f64 / each,
            wrong: sample.wrong,
            complaint: sample.complaint,
        }
    }
}

impl Cell {
    pub(crate) fn new(subject: Subject) -> Self {
        Self {
            subject,
            rounds: Vec::new(),
            failure: None,
        }
    }

    pub(crate) fn failed(subject: Subject, error: &std::io::Error) -> Self {
        Self {
            failure: Some(error.to_string()),
            ..Self::new(subject)
        }
    }

    fn median(&self, of: impl Fn(&Measured) -> f64) -> f64 {
        median(self.rounds.iter().map(of).collect())
    }

    pub(crate) fn cpu(&self) -> f64 {
        self.median(|round| round.cpu)
    }

    fn wrong(&self) -> usize {
        self.rounds.iter().map(|round| round.wrong).sum()
    }

    /// Why it is not to be compared.
    fn fault(&self) -> Option<String> {
        let complaint = self
            .rounds
            .iter()
            .find_map(|round| round.complaint.as_ref());
        let complaint = complaint.map(|first| format!("{} wrong answers: {first}", self.wrong()));
        self.failure.clone().or(complaint)
    }

    /// How much more than `other` this costs, round by round, in µs of CPU: the mean, and how far it may be
    /// off (95 %, by Student's t).
    #[expect(clippy::cast_precision_loss, reason = "a few rounds")]
    fn difference(&self, other: &Self) -> Option<(f64, f64)> {
        let pairs = self.rounds.iter().zip(&other.rounds);
        let all: Vec<f64> = pairs.map(|(one, two)| one.cpu - two.cpu).collect();
        let count = all.len() as f64;
        let t = T_95.get(all.len().checked_sub(2)?).unwrap_or(&1.96);
        let mean = all.iter().sum::<f64>() / count;
        let squares: f64 = all.iter().map(|one| (one - mean).powi(2)).sum();
        Some((mean, t * (squares / (count - 1.0) / count).sqrt()))
    }

    /// How this compares with `other`, round by round.
    fn ratio(&self, other: &Self, of: impl Fn(&Measured) -> f64) -> f64 {
        let pairs = self.rounds.iter().zip(&other.rounds);
        median(pairs.map(|(one, two)| of(one) / of(two)).collect())
    }
}

/// Student's t for an interval of 95 %, from two rounds on.
const T_95: [f64; 19] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093,
];

/// The middle of `numbers`; not a number when there are none.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match (numbers.get(middle), numbers.len() % 2) {
        (None, _) => f64::NAN,
        (Some(middle), 1) => *middle,
        (Some(upper), _) => f64::midpoint(numbers[middle - 1], *upper),
    }
}

impl Report {
    pub(crate) fn new(cores: Cores, timed: bool) -> Self {
        Self {
            cores,
            timed,
            rows: Vec::new(),
            memory: Vec::new(),
            changes: Vec::new(),
            moments: Vec::new(),
            fans: Vec::new(),
        }
    }

    /// What is said before the first row.
    pub(crate) fn head(&self) -> String {
        let Cores { subject, rest } = self.cores;
        let place = if self.cores.are_two() {
            format!("measured on core {subject}; load and server behind on core {rest}")
        } else {
            format!(
                "everything on core {subject}, the only one: requests/s and latencies are of all \
                 together, CPU is still the measured process's own"
            )
        };
        format!(
            "{place}\nCPU is the measured process's own, in µs per request; ratios are medians of \
             those of each round\n"
        )
    }

    /// Adds a row and says it.
    pub(crate) fn add(&mut self, row: Row, cells: Vec<Cell>) -> String {
        let mut text = table(&row, &cells);
        if !self.timed {
            text.truncate(text.find('\n').unwrap_or(text.len()));
            for cell in &cells {
                let fine = cell.fault().unwrap_or_else(|| "right".to_owned());
                let _ = write!(text, "\n  {:<18}{fine}", cell.subject);
            }
        }
        self.rows.push((row, cells));
        text
    }

    pub(crate) fn add_memory(&mut self, memory: Vec<Memory>) -> String {
        let mut text = format!("{}\n", crate::sessions::NAME);
        for memory in &memory {
            let _ = writeln!(text, "  {:<18}{}", memory.subject, memory.said());
        }
        self.memory = memory;
        text
    }

    pub(crate) fn add_changes(&mut self, changes: Vec<Change>) -> String {
        let mut text = format!("{}\n", crate::changes::NAME);
        for change in &changes {
            let said = if self.timed {
                change.said()
            } else {
                "right".to_owned()
            };
            let _ = writeln!(text, "  {:<18}{said}", change.name());
        }
        self.changes = changes;
        text
    }

    pub(crate) fn add_moments(&mut self, moments: Vec<Moment>) -> String {
        let mut text = String::new();
        for moment in &moments {
            let said = if self.timed {
                moment.said()
            } else {
                "right".to_owned()
            };
            let _ = writeln!(text, "{}\n  {:<18}{said}", moment.name, Subject::Vary);
        }
        self.moments.extend(moments);
        text
    }

    pub(crate) fn add_fans(&mut self, fans: Vec<Fan>) -> String {
        let mut text = String::new();
        let mut limit: Option<&Fan> = None;
        for fan in &fans {
            if fan.subject.is_limit() {
                let _ = writeln!(text, "{}", fan.name);
                limit = None;
            }
            let said = match self.timed {
                true => fan.said(limit),
                false => "right".to_owned(),
            };
            let _ = writeln!(text, "  {:<18}{said}", fan.subject);
            limit = Some(fan);
        }
        self.fans = fans;
        text
    }

    /// Whether all holds, and what does not.
    pub(crate) fn verdict(&self) -> (String, bool) {
        let mut missed = Vec::new();
        for (row, cells) in &self.rows {
            missed.extend(faults(row, cells));
            if self.timed {
                missed.extend(over_the_bar(row, cells));
            }
        }
        if self.timed {
            missed.extend(growth::missed(&self.rows));
            missed.extend(self.memory.iter().filter_map(Memory::over_the_bar));
        }
        match missed.is_empty() {
            true if self.timed => ("every answer was right, every bar is met".to_owned(), true),
            true => ("every answer was right".to_owned(), true),
            false => (format!("missed:\n  {}", missed.join("\n  ")), false),
        }
    }

    /// The numbers of every round.
    pub(crate) fn to_json(&self) -> String {
        let rows = self.rows.iter().map(|(row, cells)| {
            let cells = cells.iter().map(Cell::to_json);
            json!({
                "name": row.name, "connections": row.connections,
                "programs": cells.collect::<Vec<_>>(),
            })
        });
        let memory = self.memory.iter().map(|memory| {
            json!({
                "program": memory.subject.name(), "sessions": memory.sessions, "none": memory.none,
                "idle": memory.idle, "streams": memory.streams, "listening": memory.listening,
            })
        });
        let changes = self.changes.iter().map(|change| {
            json!({"variants": change.variants, "cpuMs": change.cpu, "wallMs": change.took})
        });
        let moments = self.moments.iter().map(|moment| {
            let times = moment.times.iter();
            let times = times.map(|(took, cpu)| json!({"ms": took, "cpuMs": cpu}));
            json!({"name": moment.name, "rounds": times.collect::<Vec<_>>()})
        });
        let value = json!({
            "changes": changes.collect::<Vec<_>>(),
            "cores": {"measured": self.cores.subject, "rest": self.cores.rest},
            "rows": rows.collect::<Vec<_>>(),
            "memory": memory.collect::<Vec<_>>(),
            "moments": moments.collect::<Vec<_>>(),
            "fans": self.fans.iter().map(Fan::to_json).collect::<Vec<_>>(),
        });
        format!("{value:#}\n")
    }
}

impl Fan {
    fn to_json(&self) -> Value {
        json!({
            "name": self.name, "program": self.subject.name(), "listeners": self.listeners,
            "cpu": self.cpu, "p50Ms": self.percentile(50), "p99Ms": self.percentile(99),
        })
    }
}

impl Cell {
    fn to_json(&self) -> Value {
        let rounds = self.rounds.iter().map(|round| {
            json!({
                "requests": round.requests, "perSecond": round.per_second, "p50": round.median,
                "p99": round.p99, "cpu": round.cpu, "resident": round.resident,
                "answerBytes": round.answer, "wrong": round.wrong, "complaint": round.complaint,
            })
        });
        json!({
            "program": self.subject.name(), "failure": self.failure,
            "rounds": rounds.collect::<Vec<_>>(),
        })
    }
}

fn table(row: &Row, cells: &[Cell]) -> String {
    let mut text = format!("{}\n", row.name);
    let _ = writeln!(
        text,
        "  {:<18}{:>10}{:>10}{:>10}{:>9}{:>9}{:>9}{:>10}{:>11}",
        "", "req/s", "p50 µs", "p99 µs", "CPU µs", "× limit", "RSS MiB", "answer B", "vary is ×"
    );
    let limit = cells.iter().find(|cell| cell.subject.is_limit());
    let vary = cells.iter().find(|cell| cell.subject == Subject::Vary);
    for cell in cells {
        if let Some(fault) = cell.fault() {
            let _ = writeln!(text, "  {:<18}not compared: {fault}", cell.subject);
            continue;
        }
        let against = |other: Option<&Cell>, turned: bool| match other {
            Some(other) if other.subject != cell.subject && turned => {
                format!("{:.2}", other.ratio(cell, |round| round.cpu))
            }
            Some(other) if !turned => format!("{:.2}", cell.ratio(other, |round| round.cpu)),
            _ => String::new(),
        };
        #[expect(clippy::cast_precision_loss, reason = "mebibytes")]
        let resident = cell.median(|round| round.resident as f64 / f64::from(1 << 20));
        let _ = writeln!(
            text,
            "  {:<18}{:>10.0}{:>10.0}{:>10.0}{:>9.1}{:>9}{resident:>9.1}{:>10.0}{:>11}",
            cell.subject,
            cell.median(|round| round.per_second),
            cell.median(|round| round.median),
            cell.median(|round| round.p99),
            cell.cpu(),
            against(limit, false),
            cell.median(|round| round.answer),
            against(vary, true),
        );
    }
    text.push_str(&differences(row, cells));
    text
}

/// What the library adds to what it wraps.
fn differences(row: &Row, cells: &[Cell]) -> String {
    let mut text = String::new();
    let Some(bare) = cells.first().filter(|_| row.pairs > 0) else {
        return text;
    };
    for cell in &cells[1..] {
        if let Some((mean, off)) = cell.difference(bare) {
            let rounds = cell.rounds.len();
            let _ = writeln!(
                text,
                "  {:<18}{mean:+.1} µs of CPU, ± {off:.1} (95 %, {rounds} pairs)",
                cell.subject
            );
        }
    }
    text
}

/// The library may cost so many µs more than what it wraps.
const LIBRARY: f64 = 5.0;

/// Wrong answers of Vary or of a limit; a peer's are its own affair, and it is not compared then.
fn faults(row: &Row, cells: &[Cell]) -> Vec<String> {
    let ours = cells.iter().filter(|cell| !cell.subject.is_peer());
    ours.filter_map(|cell| {
        let fault = cell.fault()?;
        Some(format!("{}: {}: {fault}", row.name, cell.subject))
    })
    .collect()
}

fn over_the_bar(row: &Row, cells: &[Cell]) -> Vec<String> {
    let mut missed = Vec::new();
    let find = |wanted: fn(Subject) -> bool| {
        let fine = cells.iter().filter(|cell| cell.fault().is_none());
        fine.filter(move |cell| wanted(cell.subject))
    };
    for cell in cells.iter().filter(|_| row.pairs > 0) {
        if let Some((mean, _)) = cell
            .difference(&cells[0])
            .filter(|(mean, _)| *mean > LIBRARY)
        {
            let name = &row.name;
            missed.push(format!(
                "{name}: {}: {mean:.1} µs more than the {}; at most {LIBRARY}",
                cell.subject, cells[0].subject
            ));
        }
    }
    let Some(vary) = find(|subject| subject == Subject::Vary).next() else {
        return missed;
    };
    if let (Some(bar), Some(limit)) = (row.bar, find(Subject::is_limit).next()) {
        let ratio = vary.ratio(limit, |round| round.cpu);
        if ratio > bar.most {
            missed.push(format!(
                "{}: {ratio:.2} × the CPU of the {}; at most {} (goal {})",
                row.name, limit.subject, bar.most, bar.goal
            ));
        }
    }
    for peer in find(Subject::is_peer) {
        let ratio = vary.ratio(peer, |round| round.cpu);
        if ratio > 1.0 {
            let name = &row.name;
            missed.push(format!("{name}: {ratio:.2} × the CPU of {}", peer.subject));
        }
        let ratio = vary.ratio(peer, |round| round.per_second);
        if ratio < SLOWER {
            let name = &row.name;
            missed.push(format!(
                "{name}: {ratio:.2} × the requests/s of {}",
                peer.subject
            ));
        }
    }
    missed
}

/// Requests per second depend on what else runs; below this part of a peer's they are fewer.
const SLOWER: f64 = 0.9;

impl Change {
    fn name(&self) -> String {
        match self.variants {
            1 => Subject::Alone.to_string(),
            many => format!("vary, {many} variants"),
        }
    }

    fn said(&self) -> String {
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

    fn said(&self) -> String {
        format!(
            "{:.0} B for each of {} idle sessions · {:.0} B for each of {} open streams with its \
             connection",
            Self::each(self.none, self.idle, self.sessions),
            self.sessions,
            Self::each(self.idle, self.listening, self.streams),
            self.streams,
        )
    }

    fn over_the_bar(&self) -> Option<String> {
        let each = Self::each(self.none, self.idle, self.sessions);
        (self.subject == Subject::Vary && each > 1024.0)
            .then(|| format!("{each:.0} B for each idle session; at most 1024"))
    }
}

/// What grows with what, from the rows that were measured.
mod growth {
    use super::{Cell, Row};
    use crate::load::{Era, Method};
    use crate::rows::FORMS;
    use crate::subject::Subject;

    /// A cost that is flat may differ by so much from row to row.
    const FLAT: f64 = 1.25;

    /// The row that others differ from in one respect.
    const USUAL: &str = "call, legacy client, HTTP upstream with sessions";

    pub(super) fn missed(rows: &[(Row, Vec<Cell>)]) -> Vec<String> {
        let tools = flat(rows, "number of tools", |row| {
            row.name.ends_with(" tools") || row.name.ends_with(" 1 tool")
        });
        let sessions = flat(rows, "number of sessions", |row| {
            row.sessions > 0 || row.name == USUAL
        });
        let variants = flat(rows, "number of variants", |row| {
            row.name.starts_with(USUAL) && row.behind.variants > 0 || row.name == USUAL
        });
        let both_ways = linear(rows, |row| row.name.ends_with("both ways"));
        let told = FORMS.iter().map(|(told, _)| {
            linear(rows, |row| {
                row.era == Era::Legacy && row.told.is_some_and(|it| it.name == told.name)
            })
        });
        let told: Vec<_> = told.collect();
        [tools, sessions, variants, both_ways]
            .into_iter()
            .chain(told)
            .flatten()
            .collect()
    }

    /// The rows of calls that `wanted` chooses, by Vary's CPU.
    fn costs(rows: &[(Row, Vec<Cell>)], wanted: impl Fn(&Row) -> bool) -> Vec<(&Row, f64)> {
        let calls = rows
            .iter()
            .filter(|(row, _)| row.method == Method::Call && wanted(row));
        calls
            .filter_map(|(row, cells)| {
                let vary = cells.iter().find(|cell| cell.subject == Subject::Vary)?;
                Some((row, vary.cpu()))
            })
            .collect()
    }

    fn flat(
        rows: &[(Row, Vec<Cell>)],
        what: &str,
        wanted: impl Fn(&Row) -> bool,
    ) -> Option<String> {
        let costs = costs(rows, wanted);
        let (_, least) = costs.first()?;
        let (row, most) = costs.last()?;
        let ratio = most / least;
        (ratio > FLAT).then(|| format!("{}: {ratio:.2} × with the {what}", row.name))
    }

    /// What a kilobyte costs must not grow with their number.
    fn linear(rows: &[(Row, Vec<Cell>)], wanted: impl Fn(&Row) -> bool) -> Option<String> {
        let costs = costs(rows, wanted);
        let each = |two: &[(&Row, f64)]| (two[1].1 - two[0].1) / (size(two[1].0) - size(two[0].0));
        let first = each(costs.get(..2)?);
        let grown = costs.windows(2).skip(1).find_map(|two| {
            let then = each(two);
            (then > 2.0 * first.max(0.0)).then_some((two[1].0, then))
        });
        let (row, then) = grown?;
        Some(format!(
            "{}: a kilobyte costs {then:.2} µs, {first:.2} µs up to ten",
            row.name
        ))
    }

    /// Kilobytes of a result.
    #[expect(clippy::cast_precision_loss, reason = "kilobytes")]
    fn size(row: &Row) -> f64 {
        row.arguments.data.max(row.arguments.size) as f64 / 1024.0
    }
}
