//! Clients that make tool objects of what is listed, with the variant `directory`: do all arguments arrive?
//!
//! Without a model: each client calls the tools of `tests/interop/directory/tools.json` through its own objects. The
//! replay server answers with the arguments that arrived.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::outcome::Outcome;
use crate::server::{Server, serve};
use crate::workspace::Workspace;
use crate::{cargo, npm, process, python};

/// A client: its name, and the function of `clients.py` or `clients.mjs` that uses it.
#[derive(Debug, Default, Deserialize)]
struct Client {
    name: String,
    function: String,
    /// The list of requirements of its environment, if it is in Python; others are among the npm packages.
    #[serde(default)]
    requirements: Option<String>,
    /// The client gives `null` for every argument that the caller omits. Vary takes it as left out, and sends it as it came.
    #[serde(default)]
    fills_in_null: bool,
}

impl Client {
    /// Installs the client, and returns the command that runs it.
    fn command(&self, workspace: &Workspace, url: &str) -> Result<Command, String> {
        let (mut command, script) = match &self.requirements {
            Some(list) => {
                // The first list is that of the environment `python`.
                let environment = match list.split_once("/requirements-") {
                    Some((_, name)) => format!("directory-{name}"),
                    None => "python".to_owned(),
                };
                let list = format!("{}/{list}.txt", npm::DIRECTORY);
                python::install_into(workspace, &environment, &list)?;
                let python = python::program(workspace, &environment, "python")?;
                (process::command(python), "clients.py")
            }
            None => (npm::node(workspace)?, "clients.mjs"),
        };
        command.arg(workspace.path(DIRECTORY).join(script));
        command.args([&*self.function, url]);
        Ok(command)
    }
}

/// A call of `calls.json`.
#[derive(Debug, Deserialize)]
struct Call {
    call: String,
    name: String,
    arguments: Value,
}

/// What a client reports of a call.
#[derive(Debug, Deserialize)]
struct Report {
    call: String,
    text: Option<String>,
    error: Option<String>,
}

/// Every client with a `directory`.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    let prepared = || {
        npm::installed(workspace)?;
        npm::install_from(workspace, DIRECTORY)?;
        let calls: Vec<Call> = read(workspace, "calls.json")?;
        let clients: Vec<Client> = read(workspace, "clients.json")?;
        Ok::<_, String>((calls, clients, served(workspace)?))
    };
    let (calls, clients, server) = match prepared() {
        Ok(prepared) => prepared,
        Err(error) => return Outcome::failure(error),
    };
    let url = format!("{}/v/directory", server.url);
    let mut outcome = Outcome::default();
    for client in &clients {
        let reports = reports(workspace, client, &url);
        let checks: Vec<_> = calls
            .iter()
            .map(|call| {
                let reports = reports.as_ref().map_err(Clone::clone);
                let checked = reports.and_then(|reports| check(client, call, reports));
                (format!("{}: {}", client.name, call.call), checked)
            })
            .collect();
        let checked = Outcome::of_all(&checks);
        println!(
            "  {:<24} {} of {}",
            client.name,
            checked.passed,
            calls.len()
        );
        outcome.add(checked);
    }
    outcome
}

/// A file of the directory with the scripts of the clients.
fn read<T: DeserializeOwned>(workspace: &Workspace, name: &str) -> Result<T, String> {
    let text = workspace.read(&format!("{DIRECTORY}/{name}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))
}

/// Vary in front of the replay server.
fn served(workspace: &Workspace) -> Result<Server, String> {
    let binary = |package, name| cargo::binary_of(workspace, package, name);
    let mut command = serve(binary("mcp-vary-cli", "vary")?);
    command
        .arg("--")
        .arg(binary("replay-server", "replay-server")?);
    command.arg(workspace.path(DIRECTORY).join("tools.json"));
    let log: PathBuf = workspace.scratch("directory/vary.log")?;
    Server::start(&mut command, &log)
}

/// What the client reports of all calls.
fn reports(workspace: &Workspace, client: &Client, url: &str) -> Result<Vec<Report>, String> {
    let mut command = client.command(workspace, url)?;
    let log = workspace.scratch(&format!("directory/{}.log", client.function))?;
    process::run(&mut command, &log, LIMIT)?;
    let text = std::fs::read_to_string(&log).map_err(|error| error.to_string())?;
    // Clients write other lines as well.
    let lines = text.lines();
    Ok(lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}

/// Whether the arguments of `call` arrived, or what happened instead.
fn check(client: &Client, call: &Call, reports: &[Report]) -> Result<(), String> {
    let report = reports.iter().find(|report| report.call == call.call);
    let report = report.ok_or("the client reported nothing")?;
    let text = match (&report.text, &report.error) {
        (Some(text), _) => text,
        (None, error) => return Err(error.clone().unwrap_or_default()),
    };
    let arrived: Option<Value> = serde_json::from_str(text).ok();
    let is_expected = match call.name.as_str() {
        "describe_tools" => arrived
            .is_some_and(|answer| answer["tools"][0]["inputSchema"]["properties"].is_object()),
        _ => arrived.is_some_and(|mut arrived| {
            if client.fills_in_null && call.call == "required only" {
                let arguments = arrived.get_mut("arguments");
                let arguments = arguments.and_then(Value::as_object_mut).into_iter();
                arguments.for_each(|given| given.retain(|_, value| !value.is_null()));
            }
            arrived["arguments"] == call.arguments
        }),
    };
    if is_expected {
        Ok(())
    } else {
        Err(format!("{text:.400}"))
    }
}

const DIRECTORY: &str = "tests/interop/directory";

/// Of one client, its calls together.
const LIMIT: Duration = Duration::from_secs(3 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the documentation has each client.
    #[test]
    fn every_client_is_documented() {
        let workspace = Workspace::here();
        let page = workspace.read("docs/internals/clients.md").unwrap();
        for client in read::<Vec<Client>>(&workspace, "clients.json").unwrap() {
            assert!(
                page.contains(&format!("| {} ", client.name)),
                "{}",
                client.name
            );
        }
    }
}
