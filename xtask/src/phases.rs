//! The phases of `cargo xtask test`, and the run over them.

use std::fmt::Write as _;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use crate::outcome::Outcome;
use crate::workspace::Workspace;
use crate::{
    amplify, auth, book, cargo, check, conformance, dist, faults, guide, interop, layout, library,
    names, requirements, soak, tokens,
};

/// A part of the tests that can run alone.
struct Phase {
    name: &'static str,
    about: &'static str,
    run: fn(&Workspace) -> Outcome,
}

/// Every phase in order: fast ones first.
const PHASES: &[Phase] = &[
    Phase {
        name: "format",
        about: "the code is formatted",
        run: cargo::format,
    },
    Phase {
        name: "layout",
        about: "packages and folders use only what they may; no file or function is too long, or contains a path of one machine",
        run: layout::phase,
    },
    Phase {
        name: "names",
        about: "no name is, or contains, a word that CONTRIBUTING.md replaces by a standard term",
        run: names::phase,
    },
    Phase {
        name: "requirements",
        about: "every requirement names its tests, or why it has none yet",
        run: requirements::phase,
    },
    Phase {
        name: "guide",
        about: "the examples of the guide are compiled, and the tests that it names exist",
        run: guide::phase,
    },
    Phase {
        name: "book",
        about: "the documentation builds as a book, and every link leads somewhere",
        run: book::phase,
    },
    Phase {
        name: "build",
        about: "everything compiles",
        run: cargo::build,
    },
    Phase {
        name: "tests",
        about: "all Rust tests and doctests, fuzz corpora replayed",
        run: cargo::tests,
    },
    Phase {
        name: "clippy",
        about: "no warnings from the lints",
        run: cargo::clippy,
    },
    Phase {
        name: "fuzz",
        about: "the fuzz targets, which are not part of the workspace, compile",
        run: cargo::fuzz,
    },
    Phase {
        name: "doc",
        about: "the reference builds without warnings",
        run: cargo::doc,
    },
    Phase {
        name: "figures",
        about: "the figures in the docs are up to date",
        run: |workspace| Outcome::of(tokens::tokens(workspace, true)),
    },
    Phase {
        name: "faults",
        about: "clients receive the right errors when a server fails",
        run: faults::phase,
    },
    Phase {
        name: "check",
        about: "`vary check` passes Vary and the library's examples, and finds each fault of other servers",
        run: check::phase,
    },
    Phase {
        name: "soak",
        about: "hundreds of clients that connect and disconnect leave nothing in the gateway",
        run: |workspace| soak::phase(workspace, soak::SOME),
    },
    Phase {
        name: "amplify",
        about: "small messages make the gateway use at most three times their bounds of memory",
        run: amplify::phase,
    },
    Phase {
        name: "dist",
        about: "the archive, the npm package, the wheel, the Debian package and the image run where nothing else is, two of them as in the tutorial",
        run: dist::phase,
    },
    Phase {
        name: "packages",
        about: "the npm and PyPI packages of the next phases are installed",
        run: |workspace| Outcome::of_all(&[("npm", workspace.npm()), ("PyPI", workspace.python())]),
    },
    Phase {
        name: "library",
        about: "the program of the library's tutorial compiles as printed, and the Inspector calls its tool",
        run: library::phase,
    },
    Phase {
        name: "conformance",
        about: "the official suite reports no new failures through Vary",
        run: conformance::phase,
    },
    Phase {
        name: "interop",
        about: "official clients reach official servers through Vary",
        run: interop::phase,
    },
    Phase {
        name: "auth",
        about: "official clients log in with a real authorization server, whose keys change and which dies",
        run: auth::phase,
    },
];

/// The phases that need packages from npm and PyPI.
const NEED_PACKAGES: &[&str] = &[
    "dist",
    "packages",
    "library",
    "conformance",
    "interop",
    "auth",
];

/// A phase that has run.
struct Row {
    name: &'static str,
    took: Duration,
    outcome: Outcome,
}

/// The names that `cargo xtask test` accepts.
pub(crate) fn names() -> Vec<&'static str> {
    PHASES.iter().map(|phase| phase.name).collect()
}

/// A line for each phase.
pub(crate) fn help() -> String {
    let mut help = String::from("Phases:\n");
    for phase in PHASES {
        let _ = writeln!(help, "  {:<13} {}", phase.name, phase.about);
    }
    help
}

/// Runs the phases in `wanted`; all if it is empty.
///
/// The run continues after a failed phase.
pub(crate) fn run(workspace: &Workspace, wanted: &[String]) -> ExitCode {
    let chosen: Vec<&Phase> = PHASES
        .iter()
        .filter(|phase| wanted.is_empty() || wanted.iter().any(|name| name == phase.name))
        .collect();
    let started = Instant::now();
    let rows = thread::scope(|scope| {
        if chosen
            .iter()
            .any(|phase| NEED_PACKAGES.contains(&phase.name))
        {
            // Downloads mostly wait for the network, so they do not slow the compiler down.
            scope.spawn(|| workspace.npm());
            scope.spawn(|| workspace.python());
        }
        all(workspace, &chosen)
    });
    println!("\n{}", table(&rows, started.elapsed()));
    if rows.iter().all(|row| row.outcome.failed == 0) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn all(workspace: &Workspace, phases: &[&Phase]) -> Vec<Row> {
    let numbered = phases.iter().zip(1..);
    numbered
        .map(|(phase, number)| one(workspace, phase, number, phases.len()))
        .collect()
}

fn one(workspace: &Workspace, phase: &Phase, number: usize, of: usize) -> Row {
    println!("[{number}/{of}] {}: {}", phase.name, phase.about);
    let started = Instant::now();
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| (phase.run)(workspace)))
        .unwrap_or_else(|_| Outcome::failure("the phase itself panicked, see above"));
    let took = started.elapsed();
    if !outcome.report.is_empty() {
        println!("{}", outcome.report.trim_end());
    }
    Row {
        name: phase.name,
        took,
        outcome,
    }
}

/// A line for each phase, the total time, and the sums on the last line.
fn table(rows: &[Row], took: Duration) -> String {
    let mut table = String::new();
    for row in rows {
        let verdict = if row.outcome.failed == 0 {
            "ok"
        } else {
            "FAILED"
        };
        let _ = writeln!(
            table,
            "{:<13} {:>7.1} s  {:>5} passed  {:>3} failed  {verdict}",
            row.name,
            row.took.as_secs_f64(),
            row.outcome.passed,
            row.outcome.failed,
        );
    }
    let _ = writeln!(table, "{:<13} {:>7.1} s\n", "in all", took.as_secs_f64());
    let passed: usize = rows.iter().map(|row| row.outcome.passed).sum();
    let failed: usize = rows.iter().map(|row| row.outcome.failed).sum();
    let _ = write!(table, "{passed} passed, {failed} failed");
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, passed: usize, failed: usize) -> Row {
        Row {
            name,
            took: Duration::from_millis(1500),
            outcome: Outcome {
                passed,
                failed,
                report: String::new(),
            },
        }
    }

    #[test]
    fn the_sums_stand_alone_on_the_last_line() {
        let rows = [row("format", 1, 0), row("tests", 40, 2)];
        let table = table(&rows, Duration::from_secs(3));
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(
            lines,
            [
                "format            1.5 s      1 passed    0 failed  ok",
                "tests             1.5 s     40 passed    2 failed  FAILED",
                "in all            3.0 s",
                "",
                "41 passed, 2 failed",
            ]
        );
    }
}
