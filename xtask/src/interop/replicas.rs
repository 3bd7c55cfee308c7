//! The clients over HTTP with three replicas where they have one gateway else.

use serde_json::json;

use super::{OF_CAPABILITIES, of_transport};
use crate::client_jobs::{self, Job, NOTIFIED, of_sdks};
use crate::fork_server::ForkServers;
use crate::outcome::Outcome;
use crate::replicas::Store;
use crate::workspace::Workspace;
use crate::{capability_servers, cargo, npm, official_servers, python};

/// Checks that the clients find what they find with one gateway.
///
/// # Errors
///
/// When a program is missing, or does not start.
pub(crate) fn through_replicas(workspace: &Workspace, store: &Store) -> Result<Outcome, String> {
    npm::installed(workspace)?;
    python::installed(workspace)?;
    let forks = ForkServers::start(workspace)?;
    let vary = cargo::binary(workspace, "vary")?;
    let directory = official_servers::files(workspace)?;
    let mut jobs = Vec::new();
    let mut running = Vec::new();
    for (name, command) in official_servers::commands(workspace, &directory)? {
        let server = json!({"command": command[0], "args": command[1..]});
        let configuration =
            json!({"servers": {name: server}, "start-wait": capability_servers::START_WAIT});
        // One of the servers below is called `everything`, too.
        let name_of_set = format!("official-{name}");
        let replicas = store.replicas(workspace, &vary, &name_of_set, configuration)?;
        let target = json!({"url": replicas.url});
        jobs.extend(of_transport(name, "http", &target, &directory));
        running.extend(replicas.servers);
    }
    let (mut there, behind) = capability_servers::start(workspace, &vary, &forks, Some(store))?;
    running.extend(behind);
    there["replicas"] = true.into();
    for what in OF_CAPABILITIES {
        let over_http = |job: &Job| job.argument["way"] == "http";
        jobs.extend(
            of_sdks(what, NOTIFIED, &there)
                .into_iter()
                .filter(over_http),
        );
    }
    let (outcome, _) = client_jobs::run_each(workspace, &jobs, Some(&forks));
    drop(running);
    Ok(outcome)
}
