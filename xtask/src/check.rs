//! `vary check` against servers and clients that must pass, and against servers with one fault each.

mod jobs;
mod report;
mod small_servers;

use std::time::{Duration, Instant};

use jobs::{Expected, Job, Programs};
use report::Report;

use crate::outcome::Outcome;
use crate::workspace::Workspace;
use crate::{parallel, process};

/// Most of a job is the start of processes, and some only wait for a server that does not answer.
const AT_ONCE: usize = 16;

/// The time in which `vary check` promises a verdict.
const PROMISED: Duration = Duration::from_secs(60);

/// Only for runs that hang.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs all jobs.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    checked(workspace).into()
}

fn checked(workspace: &Workspace) -> Result<Outcome, String> {
    let programs = Programs::built(workspace)?;
    let mut jobs = jobs::all(&programs)?;
    jobs.extend(small_servers::jobs(&programs)?);
    let results = parallel::each(&jobs, AT_ONCE, |job| {
        (job.name.clone(), one(&programs, job))
    });
    Ok(Outcome::of_all(&results))
}

/// Runs `vary check` as `job` says, and compares its report with the expectation.
fn one(programs: &Programs<'_>, job: &Job) -> Result<(), String> {
    let mut command = process::command(&programs.vary);
    command
        .args(["check", "--format", "json"])
        .args(&job.arguments);
    let output = programs.log(&job.name)?;
    let started = Instant::now();
    let limit = match job.expected {
        Expected::ExitCodeInTime(_) => PROMISED,
        _ => LIMIT,
    };
    let status = process::status(&mut command, &output, limit)?;
    let took = started.elapsed();
    let code = status.code().ok_or("it was ended by a signal")?;
    let text = std::fs::read_to_string(&output).map_err(|error| error.to_string())?;
    let described = || format!("exit code {code} after {:.1} s: {text}", took.as_secs_f64());
    match job.expected {
        Expected::ExitCode(expected) | Expected::ExitCodeInTime(expected) => {
            if code == expected {
                Ok(())
            } else {
                Err(format!("instead of {expected}, {}", described()))
            }
        }
        Expected::Passes(known) if code == 0 => Report::parse(&text)?.has_only(known),
        Expected::Passes(_) => Err(described()),
        Expected::Fails(check) if code == 1 => Report::parse(&text)?.has("fail", check),
        Expected::Warns(check) if code == 0 => Report::parse(&text)?.has("warn", check),
        Expected::Fails(_) | Expected::Warns(_) => Err(described()),
        Expected::Fault if code <= 1 => Report::parse(&text)?.is_found_by(&job.name),
        Expected::Fault => Err(described()),
    }
}
