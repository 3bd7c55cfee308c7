//! All scenarios with all kinds of servers, several at once.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::case::{Case, short_settings};
use crate::report::{Report, Row, Seen};
use crate::scenarios::{SCENARIOS, Scenario};
use crate::script::Era;
use crate::server::{Server, Transport};

/// Where things are.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "whoever runs the tests names all of them"
)]
pub struct Programs {
    /// The binary `vary`.
    pub vary: PathBuf,
    /// The binary `fault-server`.
    pub server: PathBuf,
    /// A directory for what the cases write.
    pub scratch: PathBuf,
}

/// One scenario with one kind of server.
#[derive(Clone, Copy)]
struct Job {
    scenario: usize,
    transport: Transport,
    era: Era,
}

/// Runs the scenarios whose names hold `wanted`, with each kind of server, `at_once` of these cases at a time.
///
/// Most of a case is waiting for processes; but those of other cases make its times longer.
///
/// # Errors
///
/// When no runtime can be started.
pub fn run(programs: &Programs, wanted: &str, at_once: usize) -> Result<Report, String> {
    // One thread: the processes under test need the others, and those it starts die with it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    Ok(runtime.block_on(all(programs, wanted, at_once)))
}

/// What each scenario is called.
pub fn titles() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|scenario| scenario.name)
}

async fn all(programs: &Programs, wanted: &str, at_once: usize) -> Report {
    let places = Arc::new(Semaphore::new(at_once.max(1)));
    let mut running = JoinSet::new();
    for (number, job) in jobs(wanted).into_iter().enumerate() {
        let (programs, places) = (programs.clone(), Arc::clone(&places));
        running.spawn(async move {
            let _place = places.acquire_owned().await;
            let (rows, result) = one(&programs, number, job).await;
            (number, job, rows, result)
        });
    }
    let mut done = running.join_all().await;
    done.sort_by_key(|(number, ..)| *number);
    let mut report = Report::default();
    for (_, job, rows, result) in done {
        let Scenario { name, means, .. } = &SCENARIOS[job.scenario];
        match report.seen.last_mut() {
            Some(last) if last.name == *name => last.rows.extend(rows),
            _ => report.seen.push(Seen { name, means, rows }),
        }
        match result {
            Ok(()) => report.passed += 1,
            Err(why) => report.failed.push(format!(
                "{name} ({} {}): {why}",
                job.transport.as_str(),
                job.era.as_str()
            )),
        }
    }
    report
}

fn jobs(wanted: &str) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (scenario, Scenario { name, servers, .. }) in SCENARIOS.iter().enumerate() {
        if !name.contains(wanted) {
            continue;
        }
        for &transport in servers {
            jobs.extend(Era::BOTH.map(|era| Job {
                scenario,
                transport,
                era,
            }));
        }
    }
    jobs
}

async fn one(programs: &Programs, number: usize, job: Job) -> (Vec<Row>, Result<(), String>) {
    let directory = programs.scratch.join(format!("case-{number}"));
    let (transport, era) = (job.transport, job.era);
    let server = Server::new(
        &programs.server,
        directory.clone(),
        host(number),
        transport,
        era,
    );
    let mut case = match server {
        Ok(server) => Case {
            server,
            vary: programs.vary.clone(),
            directory,
            beside: None,
            settings: short_settings(),
            limits: json!({}),
            rows: Vec::new(),
        },
        Err(why) => return (Vec::new(), Err(why)),
    };
    let result = SCENARIOS[job.scenario].run(&mut case).await;
    (std::mem::take(&mut case.rows), result)
}

/// A loopback address of its own, where there are several.
fn host(number: usize) -> Ipv4Addr {
    match u16::try_from(number + 2) {
        Ok(number) if cfg!(target_os = "linux") => {
            let [high, low] = number.to_be_bytes();
            Ipv4Addr::new(127, 20, high, low)
        }
        _ => Ipv4Addr::LOCALHOST,
    }
}
