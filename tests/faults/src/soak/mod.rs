//! Connects and disconnects clients in every way, and measures what remains of them in the gateway.
//!
//! The real `vary serve` stands in front of the fixture server four times: of either era, as a child and over HTTP.
//! Some clients come first, so that everything that is created once exists. Then the gateway is measured from outside,
//! many clients come, and it is measured again.

mod coming;
mod ground;
mod http;
mod look;
mod memory;
mod visit;
mod ways;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub use self::ground::SoakPrograms;

use self::coming::{AT_ONCE, Coming, Until};
use self::look::Look;
use self::ways::Ways;

/// The clients of a soak.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "whoever runs the soak names all of them"
)]
pub struct Crowd {
    /// How many.
    pub clients: usize,
    /// Only in the ways whose names hold this; empty: in every way.
    pub only: String,
}

/// The result of a soak.
#[derive(Debug)]
#[non_exhaustive]
pub struct Soak {
    /// The table of the page.
    pub table: String,
    /// What was left, or went otherwise than it should; nothing when all is well.
    pub failed: Vec<String>,
}

/// So many come as often before the first look, and no more of them.
const FEW: usize = 500;

/// Lets clients come and go.
///
/// # Errors
///
/// When the gateway cannot be started or looked at.
pub fn soak(programs: &SoakPrograms, crowd: &Crowd) -> Result<Soak, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(run(programs, crowd))
}

async fn run(programs: &SoakPrograms, crowd: &Crowd) -> Result<Soak, String> {
    let (ground, watched) = ground::start(programs).await?;
    let coming = Arc::new(Coming::new(ground, Ways::of(&crowd.only)?));
    let look = || Look::at(&watched);
    let (until, calm) = match crowd.clients > FEW {
        true => (Until::Level(Instant::now()), look::POOLED),
        false => (Until::All(crowd.clients), Duration::ZERO),
    };
    let mut failed = coming.come(until).await;
    let first = coming.gone();
    let is_level = coming.course().is_level();
    let before = look::settled_for(calm, look).await?;
    let begun = Instant::now();
    failed.extend(coming.come(Until::All(first + crowd.clients)).await);
    let took = begun.elapsed();
    let after = look::settled_as(&before, look).await?;
    failed.extend(after.left_since(&before));
    failed.extend(memory::left(before.memory, after.memory));
    let mut table = looks(crowd.clients, took, [&before, &after]);
    if crowd.clients > FEW {
        table.push_str(&course(&coming, first, is_level));
    }
    table.push_str(&ways(&coming, first));
    Ok(Soak { table, failed })
}

fn looks(clients: usize, took: Duration, [before, after]: [&Look; 2]) -> String {
    let mut table = format!(
        "{clients} clients in {} s, {AT_ONCE} at once.\n\n| of `vary` | before | after |\n|---|---|---|\n",
        took.as_secs()
    );
    for (name, before, after) in before.rows(after) {
        table.push_str(&format!("| {name} | {before} | {after} |\n"));
    }
    table
}

fn course(coming: &Coming, first: usize, is_level: bool) -> String {
    let memory = match is_level {
        true => "until memory was level",
        false => "and memory was not level",
    };
    let mut table = format!(
        "\n{first} clients came before these, {memory}. While all of them came:\n\n\
         | clients that had gone | memory (RSS) |\n|---|---|\n"
    );
    for (clients, memory) in coming.course().rows() {
        table.push_str(&format!("| {clients} | {memory} |\n"));
    }
    table
}

fn ways(coming: &Coming, first: usize) -> String {
    let mut table = "\n| how they come and go | clients |\n|---|---|\n".to_owned();
    for (way, clients) in coming.ways(first) {
        table.push_str(&format!("| {way} | {clients} |\n"));
    }
    table
}
