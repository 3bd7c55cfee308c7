//! The results of a run: a table, the raw numbers, and whether the bars were met.

mod chart;
mod costs;
mod growth;
mod many;
mod numbers;

use std::fmt::Write as _;
use std::time::Duration;

use crate::load::Sample;
use crate::machine::{Cores, Usage};
use crate::rows::{CHANGES, FORWARDED, MEMORY, Row};
use crate::subject::Subject;

pub(crate) use costs::{Change, Fan, Forwarding, Memory, Moment};

/// One round of one program.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    requests: usize,
    per_second: f64,
    median: f64,
    p99: f64,
    /// Microseconds of CPU time per request.
    cpu: f64,
    resident: u64,
    /// The mean number of bytes of an answer's body.
    answer: f64,
    wrong: usize,
    complaint: Option<String>,
}

/// All rounds of one program in one row.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) subject: Subject,
    pub(crate) rounds: Vec<Measured>,
    /// Nanoseconds of CPU time until its first answer, each time that it was started.
    pub(crate) starts: Vec<u64>,
    /// The reason why it could not be measured.
    pub(crate) failure: Option<String>,
}

/// Everything that was measured.
#[derive(Debug)]
pub(crate) struct Report {
    cores: Cores,
    /// Whether times were measured.
    timed: bool,
    rows: Vec<(Row, Vec<Cell>)>,
    memory: Vec<Memory>,
    changes: Vec<Change>,
    moments: Vec<Moment>,
    fans: Vec<Fan>,
    forwarding: Option<Forwarding>,
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
            starts: Vec::new(),
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

    /// The reason why it must not be compared.
    fn fault(&self) -> Option<String> {
        let complaint = self
            .rounds
            .iter()
            .find_map(|round| round.complaint.as_ref());
        let complaint = complaint.map(|first| format!("{} wrong answers: {first}", self.wrong()));
        self.failure.clone().or(complaint)
    }

    /// The additional cost over `other`, round by round, in µs of CPU time: the mean, and half its 95 % confidence
    /// interval (Student's t).
    fn difference(&self, other: &Self) -> Option<(f64, f64)> {
        self.paired(other, |one, two| one - two)
    }

    /// Like [`difference`](Self::difference), in percent of what `other` costs.
    fn difference_in_percent(&self, other: &Self) -> Option<(f64, f64)> {
        self.paired(other, |one, two| (one / two - 1.0) * 100.0)
    }

    #[expect(clippy::cast_precision_loss, reason = "a few rounds")]
    fn paired(&self, other: &Self, of: impl Fn(f64, f64) -> f64) -> Option<(f64, f64)> {
        let pairs = self.rounds.iter().zip(&other.rounds);
        let all: Vec<f64> = pairs.map(|(one, two)| of(one.cpu, two.cpu)).collect();
        let count = all.len() as f64;
        let t = T_95.get(all.len().checked_sub(2)?).unwrap_or(&1.96);
        let mean = all.iter().sum::<f64>() / count;
        let squares: f64 = all.iter().map(|one| (one - mean).powi(2)).sum();
        Some((mean, t * (squares / (count - 1.0) / count).sqrt()))
    }

    /// The median ratio to `other`, round by round.
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

/// The median of `numbers`; NaN if there are none.
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
            forwarding: None,
        }
    }

    /// The text before the first row.
    pub(crate) fn head(&self) -> String {
        let Cores { subject, load, .. } = self.cores;
        let place = if self.cores.are_two() {
            format!("measured on core {subject}; load and server behind on core {load}")
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

    /// The summary of measured times. Without times, all that is known is that the answers were right.
    fn shown(&self, summary: String) -> String {
        if self.timed {
            summary
        } else {
            "right".to_owned()
        }
    }

    /// Adds a row and returns its text.
    pub(crate) fn add(&mut self, row: Row, cells: Vec<Cell>) -> String {
        let mut text = table(&row, &cells);
        if row.behind.workers > 1 {
            text.push_str(&workers_note(self.cores, &cells));
        }
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
        let mut text = format!("{}\n", MEMORY);
        for memory in &memory {
            let _ = writeln!(text, "  {:<18}{}", memory.subject, memory.summary());
        }
        self.memory = memory;
        text
    }

    pub(crate) fn add_changes(&mut self, changes: Vec<Change>) -> String {
        let mut text = format!("{}\n", CHANGES);
        for change in &changes {
            let reported = self.shown(change.summary());
            let _ = writeln!(text, "  {:<18}{reported}", change.name());
        }
        self.changes = changes;
        text
    }

    pub(crate) fn add_moments(&mut self, moments: Vec<Moment>) -> String {
        let mut text = String::new();
        for moment in &moments {
            let reported = self.shown(moment.summary());
            let _ = writeln!(text, "{}\n  {:<18}{reported}", moment.name, Subject::Vary);
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
            let reported = self.shown(fan.summary(limit));
            let _ = writeln!(text, "  {:<18}{reported}", fan.subject);
            limit = Some(fan);
        }
        self.fans = fans;
        text
    }

    pub(crate) fn add_forwarding(&mut self, forwarding: Forwarding) -> String {
        let reported = self.shown(forwarding.summary());
        self.forwarding = Some(forwarding);
        format!("{FORWARDED}\n  {:<18}{reported}\n", Subject::Vary)
    }

    /// Whether every bar is met, and those that are not.
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
            missed.extend(many::missed(&self.rows));
            missed.extend(self.memory.iter().filter_map(Memory::over_the_bar));
            let forwarding = self.forwarding.as_ref();
            missed.extend(forwarding.and_then(|it| it.over_the_bar(FORWARDED)));
        }
        match missed.is_empty() {
            true if self.timed => ("every answer was right, every bar is met".to_owned(), true),
            true => ("every answer was right".to_owned(), true),
            false => (format!("missed:\n  {}", missed.join("\n  ")), false),
        }
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
        let resident = cell.resident();
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

/// Where two worker threads run, and their throughput where it can be measured.
fn workers_note(cores: Cores, cells: &[Cell]) -> String {
    let Cores {
        subject,
        load,
        second,
        count,
    } = cores;
    let shared = if second == load {
        ", which they share with a worker"
    } else {
        ""
    };
    let throughput = match cells {
        [one, .., two] if count >= CORES => {
            let ratio = two.ratio(one, |round| round.per_second);
            format!("{ratio:.2} × that of one, with one thread of load")
        }
        _ => format!("not measured: the machine has {count} cores"),
    };
    format!(
        "  two workers on cores {subject} and {second}; load and server behind on core {load}{shared}\n  \
         throughput of two workers: {throughput}\n"
    )
}

/// The cores of a machine on which two workers, the load and the server do not share any.
const CORES: usize = 6;

/// The overhead over the first program, in rows that report it.
fn differences(row: &Row, cells: &[Cell]) -> String {
    let mut text = String::new();
    let Some(bare) = cells.first().filter(|_| row.pairs > 0) else {
        return text;
    };
    for cell in &cells[1..] {
        if bare.subject == Subject::Before
            && let Some((mean, off)) = cell.difference_in_percent(bare)
        {
            let (from, to, rounds) = (mean - off, mean + off, cell.rounds.len());
            let _ = writeln!(
                text,
                "  {:<18}{mean:+.1} % of CPU, {from:+.1} to {to:+.1} (95 %, {rounds} pairs)",
                cell.subject
            );
        } else if let Some((mean, off)) = cell.difference(bare) {
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

/// The allowed overhead of the library over the bare handler, in µs.
const LIBRARY: f64 = 5.0;

/// The additional CPU time of a build that counts as slower, in percent: the whole interval must be above.
const SLOWER_BUILD: f64 = 2.0;

/// Whether the section of the configuration that the row measures costs more than it may.
fn too_expensive(row: &Row, cells: &[Cell], vary: &Cell) -> Option<String> {
    let most = row.behind.section?.most()?;
    let without = cells.iter().find(|cell| cell.subject == Subject::Without)?;
    let (mean, off) = vary.difference(without)?;
    let name = &row.name;
    (mean > most).then(|| format!("{name}: {mean:+.1} µs of CPU, ± {off:.1}; at most {most:+}"))
}

/// Whether the row is slower than in the other build, or with the page open than without.
fn slower(row: &Row, cells: &[Cell], vary: &Cell) -> Option<String> {
    let before = cells.iter().find(|cell| cell.subject == row.before())?;
    let (mean, off) = vary.difference_in_percent(before)?;
    (mean - off > SLOWER_BUILD).then(|| {
        format!(
            "{}: {mean:+.1} % of CPU, at least {:+.1} %; at most {SLOWER_BUILD:+} %",
            row.name,
            mean - off
        )
    })
}

/// The wrong answers of Vary or a limit. A peer with wrong answers is not a fault: it is only not compared.
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
    let of_library =
        |cell: &&Cell| matches!(cell.subject, Subject::Negotiating | Subject::Variants);
    for cell in cells.iter().filter(of_library) {
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
    missed.extend(slower(row, cells, vary));
    missed.extend(too_expensive(row, cells, vary));
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

/// The part of a peer's requests per second below which Vary counts as slower: the rate depends on the machine's load.
const SLOWER: f64 = 0.9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::two_builds;

    pub(super) fn cell(subject: Subject, costs: [f64; 4]) -> Cell {
        let round = |cpu| Measured {
            requests: 1,
            per_second: 1.0,
            median: 1.0,
            p99: 1.0,
            cpu,
            resident: 1,
            answer: 1.0,
            wrong: 0,
            complaint: None,
        };
        Cell {
            rounds: costs.map(round).into(),
            ..Cell::new(subject)
        }
    }

    #[test]
    fn a_row_is_slower_if_the_whole_interval_is_above_two_percent() {
        let rows = two_builds::rows();
        let row = &rows[0];
        let before = cell(Subject::Before, [100.0, 200.0, 100.0, 200.0]);
        let missed = |costs| {
            let cells = [before.clone(), cell(Subject::Vary, costs)];
            over_the_bar(row, &cells)
        };
        assert_eq!(missed([101.0, 202.0, 101.0, 202.0]), [""; 0]);
        assert_eq!(missed([90.0, 230.0, 120.0, 220.0]), [""; 0]);
        let name = &row.name;
        assert_eq!(
            missed([103.0, 208.0, 105.0, 208.0]),
            [format!(
                "{name}: +4.0 % of CPU, at least +2.7 %; at most +2 %"
            )]
        );
        let slower = cell(Subject::Vary, [103.0, 208.0, 105.0, 208.0]);
        let cells = [before.clone(), slower];
        assert_eq!(
            differences(row, &cells),
            "  vary              +4.0 % of CPU, +2.7 to +5.3 (95 %, 4 pairs)\n"
        );
    }

    #[test]
    fn a_section_costs_no_more_than_its_bar() {
        let rows = crate::rows::all();
        let missed = |name: &str, costs| {
            let row = rows.iter().find(|row| row.name.contains(name)).unwrap();
            let without = cell(Subject::Without, [20.0, 21.0, 20.0, 21.0]);
            over_the_bar(row, &[without, cell(Subject::Vary, costs)])
        };
        assert_eq!(missed("with metrics", [20.4, 21.5, 20.4, 21.5]), [""; 0]);
        let name = "call with metrics, legacy client, HTTP upstream with sessions";
        assert_eq!(
            missed("with metrics", [20.6, 21.7, 20.6, 21.7]),
            [format!("{name}: +0.7 µs of CPU, ± 0.1; at most +0.5")]
        );
        assert_eq!(missed("traces, sampled", [22.9, 23.9, 22.9, 23.9]), [""; 0]);
        let name = "call with the page open, legacy client, HTTP upstream with sessions";
        assert_eq!(missed(name, [19.0, 25.0, 20.0, 22.0]), [""; 0]);
        assert_eq!(
            missed(name, [21.0, 22.0, 21.0, 22.0]),
            [format!(
                "{name}: +4.9 % of CPU, at least +4.7 %; at most +2 %"
            )]
        );
    }

    #[test]
    fn a_forwarded_call_takes_no_longer_than_its_bar() {
        let times = |all: [u64; 3]| all.map(Duration::from_micros).to_vec();
        let missed = |through| {
            let direct = times([90, 100, 900]);
            let through = times(through);
            let forwarding = Forwarding {
                direct,
                through,
                ..Forwarding::default()
            };
            forwarding.over_the_bar("x")
        };
        assert_eq!(missed([400, 500, 9000]), None);
        let why = "x: +401 µs at p50; at most +400".to_owned();
        assert_eq!(missed([400, 501, 9000]), Some(why));
    }

    #[test]
    fn throughput_of_two_workers_needs_cores_for_them_and_the_load() {
        let cells = [Subject::OneWorker, Subject::Vary].map(|it| cell(it, [1.0; 4]));
        let note = |second, count| {
            let cores = Cores {
                subject: 0,
                load: 1,
                second,
                count,
            };
            workers_note(cores, &cells)
        };
        assert!(note(1, 2).contains("core 1, which they share with a worker\n"));
        assert!(note(1, 2).ends_with("not measured: the machine has 2 cores\n"));
        assert!(note(2, 6).ends_with("1.00 × that of one, with one thread of load\n"));
    }

    #[test]
    fn the_bar_of_a_slow_peer_is_cut_in_the_chart() {
        let cores = Cores {
            subject: 0,
            load: 1,
            second: 1,
            count: 2,
        };
        let mut report = Report::new(cores, true);
        let row = crate::rows::all().swap_remove(0);
        let cells = [(Subject::Vary, 20.0), (Subject::FastMcp, 9000.0)];
        let cells = cells.map(|(subject, cost)| cell(subject, [cost; 4]));
        report.add(row, cells.into());
        let chart = report.to_chart().unwrap();
        assert!(chart.contains(">9000.0, not to scale<"), "{chart}");
        assert!(chart.contains("width=\"35\""), "{chart}");
    }

    #[test]
    fn two_builds_are_compared_in_six_rows_of_ten_pairs() {
        let rows = two_builds::rows();
        let names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "call, legacy client, HTTP upstream with sessions",
                "list, legacy client, HTTP upstream with sessions",
                "call, modern client, HTTP upstream modern",
                "list, modern client, HTTP upstream modern",
                "shaped as structuredContent only, 10 KB, legacy client",
                "call, legacy client, HTTP upstream with sessions, 25 KB argument",
            ]
        );
        assert!(rows.iter().all(|row| row.pairs == 10 && row.bar.is_none()));
    }
}
