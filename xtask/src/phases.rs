//! The phases of `cargo xtask test`, and the run over them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::num::NonZero;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::LazyLock;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::outcome::Outcome;
use crate::workspace::Workspace;
use crate::{
    amplify, auth, book, cargo, check, dist, faults, guide, interop, layout, library, npm,
    official_suite, operator_page, python, requirements, rust_tests, soak, tokens,
};

/// A part of the tests that can run alone.
struct Phase {
    name: &'static str,
    run: fn(&Workspace) -> Outcome,
}

const fn phase(name: &'static str, run: fn(&Workspace) -> Outcome) -> Phase {
    Phase { name, run }
}

impl Phase {
    /// What it finds out.
    fn about(&self) -> &'static str {
        &ABOUT.test[self.name]
    }
}

/// What each phase finds out, by its name.
#[derive(Deserialize)]
pub(crate) struct About {
    test: BTreeMap<String, String>,
    pub(crate) extra: BTreeMap<String, String>,
}

pub(crate) static ABOUT: LazyLock<About> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("phases.yaml")).expect("the file has texts about phases")
});

/// The phase that waits for timers for most of its time: those after it run beside it.
const WAITING: &str = "soak";

/// Every phase in order: fast ones first.
const PHASES: &[Phase] = &[
    phase("format", cargo::format),
    phase("layout", layout::phase),
    phase("requirements", requirements::phase),
    phase("guide", guide::phase),
    phase("book", book::phase),
    phase("build", cargo::build),
    phase("tests", rust_tests::phase),
    phase(CHANGED, rust_tests::changed),
    phase("clippy", cargo::clippy),
    phase("doc", cargo::doc),
    phase("figures", |workspace| {
        Outcome::of(tokens::tokens(workspace, true))
    }),
    phase("soak", |workspace| soak::phase(workspace, soak::SOME)),
    phase("faults", faults::phase),
    phase("replicas", rust_tests::replicas),
    phase("check", check::phase),
    phase("amplify", amplify::phase),
    phase("dist", dist::phase),
    phase("packages", |workspace| {
        Outcome::of_all(&[
            ("npm", npm::installed(workspace)),
            ("PyPI", python::installed(workspace)),
        ])
    }),
    phase("library", library::phase),
    phase("conformance", official_suite::phase),
    phase("interop", interop::phase),
    phase("page", operator_page::phase),
    phase("auth", auth::phase),
];

/// The phase that runs a part of `tests`.
const CHANGED: &str = "changed";

/// A name for several phases.
const QUICK: &str = "quick";
const QUICK_PHASES: &[&str] = &["format", "layout", CHANGED, "clippy"];

/// The phases that need packages from npm and PyPI.
const NEED_PACKAGES: &[&str] = &[
    "dist",
    "packages",
    "library",
    "conformance",
    "interop",
    "page",
    "auth",
];

/// A phase that has run.
struct Row {
    name: &'static str,
    took: Duration,
    /// The processor time of all its processes; unknown if another phase ran beside it.
    cpu: Option<Duration>,
    outcome: Outcome,
}

/// The names that `cargo xtask test` accepts.
pub(crate) fn names() -> Vec<&'static str> {
    let names = PHASES.iter().map(|phase| phase.name);
    names.chain([QUICK]).collect()
}

/// A line for each phase.
pub(crate) fn help() -> String {
    let mut help = String::from("Phases:\n");
    for phase in PHASES {
        let _ = writeln!(help, "  {:<13} {}", phase.name, phase.about());
    }
    let _ = writeln!(help, "  {QUICK:<13} these: {}", QUICK_PHASES.join(", "));
    help
}

/// Runs the phases in `wanted`; all if it is empty.
///
/// The run continues after a failed phase.
pub(crate) fn run(workspace: &Workspace, wanted: &[String]) -> ExitCode {
    let chosen: Vec<&Phase> = PHASES
        .iter()
        .filter(|phase| is_chosen(phase.name, wanted))
        .collect();
    let started = Instant::now();
    let before = cpu();
    let rows = thread::scope(|scope| {
        if chosen
            .iter()
            .any(|phase| NEED_PACKAGES.contains(&phase.name))
        {
            // Downloads mostly wait for the network, so they do not slow the compiler down.
            scope.spawn(|| npm::installed(workspace));
            scope.spawn(|| python::installed(workspace));
        }
        all(workspace, &chosen)
    });
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    println!(
        "\n{}",
        table(&rows, started.elapsed(), cpu_since(before), cores)
    );
    if rows.iter().all(|row| row.outcome.failed() == 0) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn is_chosen(phase: &str, wanted: &[String]) -> bool {
    if wanted.is_empty() {
        return phase != CHANGED;
    }
    let is_quick = QUICK_PHASES.contains(&phase);
    wanted
        .iter()
        .any(|name| name == phase || name == QUICK && is_quick)
}

/// Runs the phases one after the other, and [`WAITING`] beside those that follow it.
fn all(workspace: &Workspace, phases: &[&Phase]) -> Vec<Row> {
    let of = phases.len();
    thread::scope(|scope| {
        let mut rows = Vec::new();
        let mut waiting: Option<(usize, ScopedJoinHandle<'_, Row>)> = None;
        for (phase, number) in phases.iter().zip(1..) {
            if phase.name == WAITING {
                let running = scope.spawn(move || one(workspace, phase, number, of));
                waiting = Some((rows.len(), running));
                continue;
            }
            let is_alone = waiting.as_ref().is_none_or(|(_, it)| it.is_finished());
            let before = cpu();
            let mut row = one(workspace, phase, number, of);
            if is_alone {
                row.cpu = cpu_since(before);
            }
            rows.push(row);
        }
        if let Some((at, running)) = waiting
            && let Ok(row) = running.join()
        {
            rows.insert(at, row);
        }
        rows
    })
}

fn one(workspace: &Workspace, phase: &Phase, number: usize, of: usize) -> Row {
    println!("[{number}/{of}] {}: {}", phase.name, phase.about());
    let started = Instant::now();
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| (phase.run)(workspace)))
        .unwrap_or_else(|_| Outcome::failure("the phase itself panicked, see above"));
    let took = started.elapsed();
    print!("{}", outcome.report());
    Row {
        name: phase.name,
        took,
        cpu: None,
        outcome,
    }
}

/// The processor time of this process and of all that it started and that have ended, where the system is Linux.
fn cpu() -> Option<Duration> {
    cpu_of(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// The processor time since `before`. Cargo becomes this process, so the time of its compilers would count, too.
fn cpu_since(before: Option<Duration>) -> Option<Duration> {
    cpu().zip(before).map(|(after, before)| after - before)
}

/// The sum of the processor times in a line of `/proc/PID/stat`.
fn cpu_of(stat: &str) -> Option<Duration> {
    /// The times are in hundredths of a second on all architectures.
    const TICK: Duration = Duration::from_millis(10);
    // The second field, the name in parentheses, may have spaces. `utime` is the fourteenth, `cstime` the seventeenth.
    let (_, fields) = stat.rsplit_once(')')?;
    let times = fields.split_ascii_whitespace().skip(11).take(4);
    let ticks: Vec<u32> = times.map(str::parse).collect::<Result<_, _>>().ok()?;
    (ticks.len() == 4).then(|| TICK * ticks.iter().sum())
}

/// A line for each phase with the share of all cores that it used, the total time, the first failures, and the sums on the last line.
fn table(rows: &[Row], took: Duration, cpu: Option<Duration>, cores: usize) -> String {
    let mut table = String::new();
    for row in rows {
        let verdict = row.outcome.verdict();
        let cpu = row.cpu.map(|cpu| share(cpu, row.took, cores));
        let _ = writeln!(
            table,
            "{:<13} {:>7.1} s  {:>8}  {:>5} passed  {:>3} failed  {verdict}",
            row.name,
            row.took.as_secs_f64(),
            cpu.unwrap_or_default(),
            row.outcome.passed,
            row.outcome.failed(),
        );
    }
    let cpu = cpu.map(|cpu| share(cpu, took, cores)).unwrap_or_default();
    let took = took.as_secs_f64();
    let line = format!("{:<13} {took:>7.1} s  {cpu:>8}", "in all");
    let _ = writeln!(table, "{}\n", line.trim_end());
    table.push_str(&first_failures(rows));
    let passed: usize = rows.iter().map(|row| row.outcome.passed).sum();
    let failed: usize = rows.iter().map(|row| row.outcome.failed()).sum();
    let _ = write!(table, "{passed} passed, {failed} failed");
    table
}

/// The share of the cores' time that a part of the run used.
fn share(cpu: Duration, took: Duration, cores: usize) -> String {
    let all = took.as_secs_f64() * cores as f64;
    format!("{:.0} % cpu", 100.0 * cpu.as_secs_f64() / all)
}

/// The first failures of each failed phase, shortened: of a long run, a reader may have the last lines only.
fn first_failures(rows: &[Row]) -> String {
    let shown = |per_phase: usize| -> usize {
        let shown = rows.iter().map(|row| row.outcome.failed().min(per_phase));
        shown.sum()
    };
    // No phase hides those of another one.
    let mut numbers = (1..=MOST_FAILURES).rev();
    let per_phase = numbers.find(|most| shown(*most) <= MOST_FAILURES);
    let per_phase = per_phase.unwrap_or(1);
    let mut text = String::new();
    for Row { name, outcome, .. } in rows {
        for failure in outcome.failures.iter().take(per_phase) {
            let _ = writeln!(text, "{name}: {}", shortened(failure.trim_end()));
        }
        let more = outcome.failed().saturating_sub(per_phase);
        if more > 0 {
            let _ = writeln!(text, "{name}: and {more} more, see above");
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// The first characters of a failure.
fn shortened(failure: &str) -> String {
    match failure.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{} ...", failure[..end].trim_end()),
        None => failure.to_owned(),
    }
}

/// The number of failures under the table.
const MOST_FAILURES: usize = 20;

/// The characters of a failure under the table.
const MOST_CHARACTERS: usize = 400;
