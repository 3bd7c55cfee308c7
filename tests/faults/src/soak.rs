//! Connects and disconnects clients in every scenario, and measures what remains of them in the gateway.
//!
//! The real `vary serve` stands in front of the fixture server four times: in both eras, over stdio and over HTTP.
//! Some clients run first, so that everything that is created once exists. Then the gateway is measured from outside,
//! many clients run, and it is measured again.

mod client_run;
mod deployment;
mod http;
mod load;
mod measurement;
mod memory;
mod scenarios;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub use self::deployment::SoakPrograms;

use self::load::{AT_ONCE, ClientLoad, Until};
use self::measurement::Measurement;
use self::scenarios::Scenarios;

/// The clients of a soak.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the caller names all fields")]
pub struct SoakOptions {
    /// Their number.
    pub clients: usize,
    /// Only the scenarios whose names contain this.
    pub only: String,
}

/// The result of a soak.
#[derive(Debug)]
#[non_exhaustive]
pub struct Soak {
    /// The table of the page.
    pub table: String,
    /// What remained in the gateway, and clients that received wrong answers.
    pub failed: Vec<String>,
}

/// With more clients than these, memory must be level before the first measurement.
const FEW: usize = 500;

/// Runs the clients, and measures the gateway before and after.
///
/// # Errors
///
/// When the gateway cannot be started or measured.
pub fn soak(programs: &SoakPrograms, options: &SoakOptions) -> Result<Soak, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(run(programs, options))
}

async fn run(programs: &SoakPrograms, options: &SoakOptions) -> Result<Soak, String> {
    let (deployment, observed) = deployment::start(programs).await?;
    let load = Arc::new(ClientLoad::new(deployment, Scenarios::of(&options.only)?));
    let measure = || Measurement::take(&observed);
    let (until, calm) = if options.clients > FEW {
        (Until::Level(Instant::now()), measurement::POOLED)
    } else {
        (Until::All(options.clients), Duration::ZERO)
    };
    let mut failed = load.run(until).await;
    let first = load.ended();
    let is_level = load.memory_series().is_level();
    let before = measurement::settled_for(calm, measure).await?;
    let started = Instant::now();
    failed.extend(load.run(Until::All(first + options.clients)).await);
    let took = started.elapsed();
    let after = measurement::settled_as(&before, measure).await?;
    failed.extend(after.left_since(&before));
    failed.extend(memory::left(before.memory, after.memory));
    let mut table = measurement_table(options.clients, took, [&before, &after]);
    if options.clients > FEW {
        table.push_str(&memory_table(&load, first, is_level));
    }
    table.push_str(&scenario_table(&load, first));
    Ok(Soak { table, failed })
}

fn measurement_table(clients: usize, took: Duration, [before, after]: [&Measurement; 2]) -> String {
    let mut table = format!(
        "{clients} clients in {} s, {AT_ONCE} at once.\n\n| of `vary` | before | after |\n|---|---|---|\n",
        took.as_secs()
    );
    for (name, before, after) in before.rows(after) {
        table.push_str(&format!("| {name} | {before} | {after} |\n"));
    }
    table
}

fn memory_table(load: &ClientLoad, first: usize, is_level: bool) -> String {
    let memory = if is_level {
        "until memory was level"
    } else {
        "and memory was not level"
    };
    let mut table = format!(
        "\n{first} clients came before these, {memory}. While all of them came:\n\n\
         | clients that had gone | memory (RSS) |\n|---|---|\n"
    );
    for (clients, memory) in load.memory_series().rows() {
        table.push_str(&format!("| {clients} | {memory} |\n"));
    }
    table
}

fn scenario_table(load: &ClientLoad, first: usize) -> String {
    let mut table = "\n| how they come and go | clients |\n|---|---|\n".to_owned();
    for (scenario, clients) in load.scenarios(first) {
        table.push_str(&format!("| {scenario} | {clients} |\n"));
    }
    table
}
