//! The official suite: its client with servers and with Vary in front of them, and a client with its servers.

mod client;
mod judge;
mod login;
mod page;
mod proof;
mod replicas;
mod skills;
mod suite;
mod target;

use std::thread;

use client::{MIXED, Route, SCENARIOS};
use judge::{EXPECTED, Entry, Results};
use page::Pair;
use suite::{Declares, SUITES};
use target::{BEHIND, DIRECT, Programs, Target};

use crate::outcome::Outcome;
use crate::workspace::Workspace;
use crate::{npm, parallel};

pub(crate) use replicas::through_replicas;

/// Runs every release of the official suite, and checks that the page is current.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    let checked = run(workspace).and_then(|found| {
        let mut outcome = found.outcome;
        let text = workspace.read(page::PAGE.path)?;
        outcome.add(Outcome::of(page::PAGE.is_current(&text, &found.table)));
        Ok(outcome)
    });
    checked.into()
}

/// Prints the official suite's results for each pair. With `write`, also updates the page.
///
/// # Errors
///
/// When a result is worse than expected.
pub(crate) fn official_suite(workspace: &Workspace, write: bool) -> Result<(), String> {
    let Found { outcome, table } = run(workspace)?;
    println!("{table}");
    if outcome.failed() > 0 {
        return Err(outcome.report());
    }
    println!("{} checks, all as they should be", outcome.passed);
    if write {
        page::PAGE.write(workspace, &table)?;
    }
    Ok(())
}

/// The results, and their table.
struct Found {
    outcome: Outcome,
    table: String,
}

fn run(workspace: &Workspace) -> Result<Found, String> {
    npm::installed(workspace)?;
    let entries = judge::entries(&workspace.read(EXPECTED)?)?;
    let suites: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
    judge::well_named(&entries, &behinds(), &suites)?;
    let programs = Programs::built(workspace)?;
    let (servers, clients, proofs) = thread::scope(|scope| {
        let clients = scope.spawn(|| {
            let logins = login::run(workspace, &programs)?;
            Ok((client::run(workspace, &programs)?, logins))
        });
        let proofs = scope.spawn(|| {
            let mut outcome = proof::careless(workspace, &programs)?;
            outcome.add(proof::declared(workspace, &programs)?);
            outcome.add(skills::run(workspace, &programs)?);
            Ok::<_, String>(outcome)
        });
        let servers = server_runs(workspace, &programs);
        (servers, joined(clients), joined(proofs))
    });
    let mut outcome = proofs?;
    let mut pairs = Vec::new();
    let OfServers { direct, through } = servers?;
    outcome.add(judge::single(DIRECT, &direct));
    for (name, results) in through {
        outcome.add(proof::refuses_foreign_hosts(name, &results));
        compare(
            &mut outcome,
            &mut pairs,
            &entries,
            (name, &direct, &results),
        );
    }
    let (clients, logins) = clients?;
    let by_route = |route| clients.get(&route).ok_or("no scenario of clients was run");
    let direct = by_route(Route::Direct)?;
    outcome.add(judge::single("client", direct));
    for (name, route) in [(SCENARIOS, Route::Through), (MIXED, Route::Mixed)] {
        compare(
            &mut outcome,
            &mut pairs,
            &entries,
            (name, direct, by_route(route)?),
        );
    }
    outcome.add(logins.outcome);
    let table = page::table(&pairs, &entries) + &logins.tables;
    Ok(Found { outcome, table })
}

/// The targets behind Vary, by their names in the file of expected failures.
fn behinds() -> Vec<&'static str> {
    let servers = BEHIND.iter().map(|behind| behind.name);
    servers.chain([SCENARIOS, MIXED]).collect()
}

fn compare(
    outcome: &mut Outcome,
    pairs: &mut Vec<Pair>,
    entries: &[Entry],
    (name, direct, through): (&'static str, &Results, &Results),
) {
    let expected = judge::expected(entries, name);
    outcome.add(judge::compare(name, direct, through, &expected));
    pairs.extend(page::pairs(name, direct, through));
}

/// The results of the fixture, and of each Vary in front of one, by name.
struct OfServers {
    direct: Results,
    through: Vec<(&'static str, Results)>,
}

/// Runs the suites against all servers concurrently, but only one suite at a time against each.
fn server_runs(workspace: &Workspace, programs: &Programs<'_>) -> Result<OfServers, String> {
    let mut targets = vec![programs.direct()?];
    for behind in BEHIND {
        targets.push(programs.through(behind)?);
    }
    let ended = parallel::each(&targets, targets.len(), |target| {
        all_suites(workspace, target).map_err(|error| format!("{}: {error}", target.name))
    });
    let ended: Result<Vec<Results>, String> = ended.into_iter().collect();
    let mut ended = ended?.into_iter();
    let direct = ended.next().unwrap_or_default();
    let names = BEHIND.iter().map(|behind| behind.name);
    Ok(OfServers {
        direct,
        through: names.zip(ended).collect(),
    })
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, String> {
    let panicked = |_| Err("the run panicked, see above".to_owned());
    thread.join().unwrap_or_else(panicked)
}

fn all_suites(workspace: &Workspace, target: &Target) -> Result<Results, String> {
    let Target { name, url, .. } = target;
    let declares = match *name {
        DIRECT => Declares::Nothing,
        _ => Declares::Both,
    };
    let mut results = Results::new();
    for suite in SUITES.iter() {
        results.extend(suite.server(workspace, name, url, declares)?);
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Entry> {
        judge::entries(&Workspace::here().read(EXPECTED).unwrap()).unwrap()
    }

    #[test]
    fn the_expected_failures_can_be_read() {
        let suites: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
        assert_eq!(judge::well_named(&entries(), &behinds(), &suites), Ok(()));
    }

    #[test]
    fn the_expected_failures_only_become_fewer() {
        let behinds = behinds();
        let in_each = behinds
            .iter()
            .map(|name| judge::expected(&entries(), name).len());
        assert_eq!(
            in_each.sum::<usize>(),
            MOST,
            "lower MOST with each entry that is removed; only a decision in docs/decisions raises it"
        );
    }

    /// How many checks are worse than without Vary, over all pairs: 2 by decision 0024, 4 by 0027, 12 by 0011's rounds.
    const MOST: usize = 18;
}
