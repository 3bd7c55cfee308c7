//! The suite with servers behind three replicas of Vary.

use super::judge::{self, EXPECTED, Key, Results};
use super::target::{BEHIND, Programs};
use super::{all_suites, proof};
use crate::outcome::Outcome;
use crate::replicas::Store;
use crate::workspace::Workspace;
use crate::{npm, parallel};

/// Checks that nothing is worse than with one gateway.
///
/// # Errors
///
/// When a program does not start, or a suite leaves no results.
pub(crate) fn through_replicas(workspace: &Workspace, store: &Store) -> Result<Outcome, String> {
    npm::installed(workspace)?;
    let entries = judge::entries(&workspace.read(EXPECTED)?)?;
    let programs = Programs::built(workspace)?;
    let mut targets = vec![programs.direct()?];
    for behind in BEHIND {
        targets.push(programs.through_replicas(store, behind)?);
    }
    let ended = parallel::each(&targets, targets.len(), |target| {
        all_suites(workspace, target).map_err(|error| format!("{}: {error}", target.name))
    });
    let ended: Result<Vec<Results>, String> = ended.into_iter().collect();
    let mut outcome = Outcome::default();
    let ended = ended?;
    let Some((direct, through)) = ended.split_first() else {
        return Err("no suite was run".to_owned());
    };
    for (behind, results) in BEHIND.iter().zip(through) {
        let mut expected = judge::expected(&entries, behind.name);
        // What is worse through one gateway may be better through three: they share no connection.
        expected.retain(|key| judge::is_worse(key, direct, results));
        if behind.name.ends_with("-stdio") {
            let is_of_one = |(_, check): &&Key| OF_ONE_REPLICA.contains(&check.as_str());
            let of_one = direct.keys().filter(is_of_one);
            expected.extend(
                of_one
                    .filter(|key| judge::is_worse(key, direct, results))
                    .cloned(),
            );
        }
        outcome.add(judge::compare(behind.name, direct, results, &expected));
        outcome.add(proof::refuses_foreign_hosts(behind.name, results));
    }
    Ok(outcome)
}

/// What needs all requests of a client at one replica, as the documentation says: a program that a replica has started may
/// change its lists, and those of the other replicas are another program's.
const OF_ONE_REPLICA: [&str; 2] = [
    "server-stateless/sep-2575-server-sends-prompts-list-changed-on-subscription",
    "server-stateless/sep-2575-server-sends-tools-list-changed-on-subscription",
];
