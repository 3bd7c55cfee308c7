//! Official clients with official servers through Vary, with the examples of the library, with the example
//! configurations, and with a server that returns every kind of result.

mod replicas;

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::client_jobs::{self, Job, NOTIFIED, SDKS, of_sdks};
use crate::fork_server::ForkServers;
use crate::official_servers::OfficialServer;
use crate::outcome::Outcome;
use crate::server::{Server, StartingServer, serve};
use crate::workspace::Workspace;
use crate::{capability_servers, cargo, npm, official_servers, python, shaped, verdicts};

pub(crate) use replicas::through_replicas;

/// The clients: their names and scripts, and the eras that they speak.
const CLIENTS: &[(&str, &str, &[&str])] = &[
    ("inspector", "inspector.mjs", &["legacy", "modern"]),
    ("typescript-1", "typescript.mjs", &["legacy"]),
    ("typescript-2", "typescript.mjs", &["legacy", "modern"]),
    ("python", "python.py", &["legacy", "modern"]),
];
/// The clients that are tested while another server never answers, and the eras that they speak.
const BESIDE_HANGING: &[(&str, &[&str])] =
    &[("inspector", &["legacy", "modern"]), SDKS[0], SDKS[1]];

/// The environment that also has the SDK of OpenTelemetry, with a client of the Python SDK.
const TRACED: &[(&str, &[&str])] = &[(python::FASTMCP, &["legacy", "modern"])];

/// What is asked of the servers with server requests, change notifications and tasks.
const OF_CAPABILITIES: [&str; 4] = ["server_requests", "eras", "notifications", "tasks"];

/// The folder of the example configurations.
const EXAMPLES: &str = "examples/configurations";

/// Every client against every server through Vary, over HTTP and over stdio.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    match prepare(workspace) {
        Ok(Prepared {
            jobs,
            forks,
            servers: _servers,
        }) => client_jobs::run_all(workspace, Vec::from(jobs).as_slice(), Some(&forks)),
        Err(error) => Outcome::failure(error),
    }
}

/// The jobs, and the servers that must run for as long as the jobs.
struct Prepared {
    jobs: VecDeque<Job>,
    servers: Vec<Server>,
    forks: ForkServers,
}

fn prepare(workspace: &Workspace) -> Result<Prepared, String> {
    npm::installed(workspace)?;
    python::installed(workspace)?;
    let forks = ForkServers::start(workspace)?;
    let vary = cargo::binary(workspace, "vary")?;
    let directory = official_servers::files(workspace)?;
    let mut jobs = VecDeque::new();
    let mut running = Vec::new();
    for OfficialServer { name, http, stdio } in
        official_servers::start(workspace, &vary, &forks, &directory)?
    {
        let transports = [
            ("http", json!({ "url": http.url })),
            ("stdio", json!({ "command": stdio })),
        ];
        for (transport, target) in transports {
            jobs.extend(of_transport(name, transport, &target, &directory));
        }
        running.push(http);
    }
    let programs = json!({"programs": vary.parent().unwrap_or(&vary)});
    jobs.extend(of_sdks("library", SDKS, &programs));
    let (targets, examples) = examples(workspace, &vary)?;
    running.extend(examples);
    jobs.extend(of_sdks("examples", SDKS, &json!({"targets": targets})));
    let (there, behind) = capability_servers::start(workspace, &vary, &forks, None)?;
    running.extend(behind);
    for what in OF_CAPABILITIES {
        jobs.extend(of_sdks(what, NOTIFIED, &there));
    }
    jobs.extend(of_sdks("traces", TRACED, &json!({"vary": vary})));
    let fixture = cargo::binary(workspace, "fixture-server")?;
    let programs = json!({"vary": vary, "fixture": fixture});
    let hanging = of_sdks("hanging", BESIDE_HANGING, &programs);
    jobs.push_back(Job {
        name: "bodies that are too large".to_owned(),
        script: "bodies.mjs".to_owned(),
        argument: json!({"url": there["fixture"]["url"]}),
    });
    jobs.push_back(sse_restart(workspace, &vary)?);
    jobs.push_back(broken_lists(workspace, &vary)?);
    let (there, server) = shaped::start(workspace, &vary)?;
    running.push(server);
    // The longest come first, so that none runs alone at the end.
    let mut longest: Vec<_> = shaped_jobs(&there).collect();
    longest.extend(hanging);
    longest.push(readme(workspace, &vary)?);
    for job in longest.into_iter().rev() {
        jobs.push_front(job);
    }
    jobs.push_front(Job {
        name: "examples page".to_owned(),
        script: "page.mjs".to_owned(),
        argument: json!({"targets": targets, "vary": vary, "root": workspace.path("")}),
    });
    jobs.extend(verdicts::jobs(workspace)?);
    Ok(Prepared {
        jobs,
        servers: running,
        forks,
    })
}

/// The matrix of shaped results for each SDK, which declares other sets of tags over HTTP than on stdio.
fn shaped_jobs(there: &Value) -> impl Iterator<Item = Job> {
    let jobs = of_sdks("shaped", SDKS, there).into_iter();
    jobs.map(|mut job| {
        let transport = job.argument["way"].as_str().unwrap_or_default();
        job.argument["sets"] = shaped::sets(transport).into();
        job
    })
}

/// The job of servers with the transport of 2024-11-05 that end and start again.
fn sse_restart(workspace: &Workspace, vary: &Path) -> Result<Job, String> {
    let python = python::program(workspace, "python", "python")?;
    Ok(Job {
        name: "SSE servers that start again".to_owned(),
        script: "sse-restart.mjs".to_owned(),
        argument: json!({"vary": vary, "python": python}),
    })
}

/// The job of servers that list broken items beside good ones.
fn broken_lists(workspace: &Workspace, vary: &Path) -> Result<Job, String> {
    let python = python::program(workspace, "python", "python")?;
    Ok(Job {
        name: "lists with broken items".to_owned(),
        script: "broken-lists.mjs".to_owned(),
        argument: json!({"vary": vary, "python": python}),
    })
}

/// The job for the commands of the README and of the tutorial.
fn readme(workspace: &Workspace, vary: &Path) -> Result<Job, String> {
    let replay = cargo::binary(workspace, "replay-server")?;
    Ok(Job {
        name: "README and tutorial".to_owned(),
        script: "readme.mjs".to_owned(),
        argument: json!({"vary": vary, "replay": replay, "root": workspace.path("")}),
    })
}

/// The targets for the example configurations (the URL, and the command and directory for stdio), and the servers.
fn examples(workspace: &Workspace, vary: &Path) -> Result<(Value, Vec<Server>), String> {
    let mut starting = Vec::new();
    for file in workspace.files(EXAMPLES)? {
        let directory = file
            .strip_suffix(".yaml")
            .map(|path| path.rsplit('/').next());
        let Some(Some(name)) = directory else {
            continue;
        };
        let path = paged(workspace, name, &workspace.path(&file))?;
        let log = workspace.scratch(&format!("interop/examples-{name}.log"))?;
        let mut command = serve(vary);
        command.arg(&path);
        npm::with_packages(workspace, &mut command)?;
        // The directory in which a reader would start it, except for the one whose server npm has to find.
        let directory = match name {
            "files" => workspace.path(npm::DIRECTORY),
            _ => workspace.path(""),
        };
        let server = StartingServer::begin(command.current_dir(&directory), &log)?;
        starting.push((name.to_owned(), path, directory, server));
    }
    let mut targets = json!({});
    let mut running = Vec::new();
    for (name, path, directory, server) in starting {
        let server = server.ready()?;
        targets[name] = json!({
            "url": server.url,
            "command": [vary, "serve", "--stdio", path],
            "directory": directory,
        });
        running.push(server);
    }
    Ok((targets, running))
}

/// A copy of an example with a small page size, so that all its lists have cursors, and with more time for servers
/// that start slowly beside other jobs. Its servers are started without cargo, which clients would wait for
/// each time.
fn paged(workspace: &Workspace, name: &str, file: &Path) -> Result<PathBuf, String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let replay = cargo::binary(workspace, "replay-server")?;
    let mut text = text.replace(WITH_CARGO, &without_cargo(&replay));
    if text.contains("command: cargo") {
        let file = file.display();
        return Err(format!(
            "{file}: `cargo` runs something else than\n{WITH_CARGO}"
        ));
    }
    if !text.lines().any(|line| line.starts_with(PAGE_SIZE)) {
        text.push_str(&format!("{PAGE_SIZE} 2\n"));
    }
    text.push_str(&format!("start-wait: {}\n", capability_servers::START_WAIT));
    let copy = workspace.scratch(&format!("interop/examples/{name}.yaml"))?;
    fs::write(&copy, text).map_err(|error| error.to_string())?;
    Ok(copy)
}

const PAGE_SIZE: &str = "page-size:";

/// How the examples start a server that replays recorded results.
const WITH_CARGO: &str = "    command: cargo
    args: [run, --quiet, --package, replay-server, --, ";

/// The same with the compiled program.
fn without_cargo(replay: &Path) -> String {
    let replay = json!(replay.display().to_string());
    format!("    command: {replay}\n    args: [")
}

/// A job for every client and era with one server over one transport.
fn of_transport(server: &str, transport: &str, target: &Value, directory: &str) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (client, script, eras) in CLIENTS {
        for era in *eras {
            let mut argument = target.clone();
            argument["server"] = json!(server);
            argument["era"] = json!(era);
            argument["client"] = json!(client);
            argument["vary"] = json!(true);
            argument["directory"] = json!(directory);
            jobs.push(Job {
                name: format!("{server} {transport} {client} {era}"),
                script: (*script).to_owned(),
                argument,
            });
        }
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six things are asked of an example: each variant's list, a call, a renamed argument where there is one, no
    /// variant, the cursor of another variant, and no tool.
    fn lacking(name: &str, example: &Value, cases: &[&Value]) -> Vec<String> {
        let variants = example["variants"].as_object().unwrap();
        let lists = |variant: &str| {
            cases
                .iter()
                .any(|it| it["lists"].is_array() && it["variant"] == variant)
        };
        // Hints choose it.
        let unlisted = variants
            .keys()
            .filter(|it| *it != "quick-lookup" && !lists(it));
        let mut lacking: Vec<_> = unlisted.map(|it| format!("the list of {it}")).collect();
        let is_call = |case: &&Value| case["method"] == "tools/call";
        let calls: Vec<_> = cases.iter().copied().filter(is_call).collect();
        let is_renamed = |case: &&Value| {
            let own = case["finds"]["/_meta/replay-server~1arrived"].as_str();
            let own = own.and_then(|own| serde_json::from_str::<Value>(own).ok());
            let given = case["params"]["arguments"].as_object().unwrap();
            own.is_some_and(|own| given.keys().any(|key| own["arguments"].get(key).is_none()))
        };
        // The official file server does not say what arrived, but that it knows what did.
        let is_taken =
            |case: &&Value| name == "files" && case["name"] == "an argument has another name";
        let renames = variants.values().any(renames_an_argument);
        let there = [
            ("a call", calls.iter().any(|it| it["finds"].is_object())),
            (
                "a renamed argument",
                !renames || calls.iter().any(|it| is_renamed(it) || is_taken(it)),
            ),
            (
                "no tool",
                calls
                    .iter()
                    .any(|it| it["fails"]["/data/activeVariant"].is_string()),
            ),
            (
                "no variant",
                cases
                    .iter()
                    .any(|it| it["fails"]["/message"] == "Invalid server variant"),
            ),
            (
                "the cursor of another variant",
                cases.iter().any(|it| it["cursorOf"].is_string()),
            ),
        ];
        lacking.extend(
            there
                .iter()
                .filter(|(_, is)| !is)
                .map(|(what, _)| (*what).to_owned()),
        );
        lacking
    }

    fn renames_an_argument(variant: &Value) -> bool {
        let tools = variant["overrides"]["tools"]
            .as_object()
            .into_iter()
            .flatten();
        let mut arguments =
            tools.flat_map(|(_, tool)| tool["arguments"].as_object().into_iter().flatten());
        arguments.any(|(_, argument)| argument["name"].is_string())
    }

    #[test]
    fn every_example_is_asked_for_everything() {
        let workspace = Workspace::here();
        let asked = workspace.read("tests/interop/examples.json").unwrap();
        let asked: Vec<Value> = serde_json::from_str(&asked).unwrap();
        let files = workspace.files(EXAMPLES).unwrap().into_iter();
        let files: Vec<_> = files.filter(|file| file.ends_with(".yaml")).collect();
        assert!(files.len() >= 8, "{files:?}");
        for file in files {
            let name = file.rsplit('/').next().unwrap().trim_end_matches(".yaml");
            let example: Value = serde_saphyr::from_str(&workspace.read(&file).unwrap()).unwrap();
            let cases = asked.iter().filter(|it| it["example"] == name);
            let cases: Vec<_> = cases
                .flat_map(|it| it["cases"].as_array().unwrap())
                .collect();
            if example.get("variants").is_some() {
                assert_eq!(lacking(name, &example, &cases), [""; 0], "{name}");
            } else {
                // It is about features: each of its clients is told something else.
                assert!(cases.len() > 2, "{name}: {} cases", cases.len());
            }
        }
    }
}
