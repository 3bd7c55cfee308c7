//! Official clients with official servers through Vary, with the examples of the library, with the example
//! configurations, and with a server that returns every kind of result.

use std::collections::VecDeque;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::clients::{Came, Table};
use crate::fork_server::ForkServers;
use crate::official::Official;
use crate::outcome::Outcome;
use crate::server::{Server, StartingServer};
use crate::workspace::Workspace;
use crate::{behind, npm, official, process, python, shaped, verdicts};

/// The time limit of a job: the Inspector starts a process for each of its requests.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// A client: its name and script, and the eras that it speaks.
struct Client {
    name: &'static str,
    script: &'static str,
    eras: &'static [&'static str],
}

const CLIENTS: &[Client] = &[
    Client {
        name: "inspector",
        script: "inspector.mjs",
        eras: &["legacy", "modern"],
    },
    Client {
        name: "typescript-1",
        script: "typescript-1.mjs",
        eras: &["legacy"],
    },
    Client {
        name: "typescript-2",
        script: "typescript-2.mjs",
        eras: &["legacy", "modern"],
    },
    Client {
        name: "python",
        script: "python.py",
        eras: &["legacy", "modern"],
    },
];

/// The SDKs whose clients run additional checks, and the eras that they speak.
pub(crate) const SDKS: &[(&str, &[&str])] = &[
    ("typescript-1", &["legacy"]),
    ("typescript-2", &["legacy", "modern"]),
    ("python", &["legacy", "modern"]),
];

/// The SDKs for checks between one client and one server, such as notifications, and the eras that they speak: those
/// above, a widely used one with legacy tasks, and FastMCP.
pub(crate) const NOTIFIED: &[(&str, &[&str])] = &[
    SDKS[0],
    SDKS[1],
    (python::FIRST, &["legacy"]),
    SDKS[2],
    (python::FASTMCP, &["legacy", "modern"]),
];

/// The clients that are tested while another server never answers, and the eras that they speak.
const BESIDE_HANGING: &[(&str, &[&str])] =
    &[("inspector", &["legacy", "modern"]), SDKS[0], SDKS[1]];

/// The folder of the example configurations.
const EXAMPLES: &str = "examples/configurations";

/// One client with one server, in one era and over one transport.
#[derive(Debug)]
pub(crate) struct Job {
    /// Its name in the table.
    pub(crate) name: String,
    /// The script that it runs, in the directory of the npm packages.
    pub(crate) script: String,
    /// The argument of the script.
    pub(crate) argument: Value,
}

/// One line of a script's output.
#[derive(Debug, Deserialize)]
struct Check {
    name: String,
    /// The server, if the table of clients has a row for the check.
    #[serde(default)]
    server: Option<String>,
    #[serde(flatten)]
    came: Came,
}

/// Every client against every server through Vary, over HTTP and over stdio.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    match prepared(workspace) {
        Ok(Prepared {
            jobs,
            forks,
            servers: _servers,
        }) => run_all(workspace, jobs, Some(&forks)),
        Err(error) => Outcome::failure(error),
    }
}

/// The jobs, and the servers that must run for as long as the jobs.
struct Prepared {
    jobs: VecDeque<Job>,
    servers: Vec<Server>,
    forks: ForkServers,
}

fn prepared(workspace: &Workspace) -> Result<Prepared, String> {
    workspace.npm()?;
    workspace.python()?;
    let forks = ForkServers::start(workspace)?;
    let vary = workspace.binary("vary")?;
    let directory = official::files(workspace)?;
    let mut jobs = VecDeque::new();
    let mut running = Vec::new();
    for Official { name, http, stdio } in official::begun(workspace, &vary, &forks, &directory)? {
        let ways = [
            ("http", json!({ "url": http.url })),
            ("stdio", json!({ "command": stdio })),
        ];
        for (way, target) in ways {
            jobs.extend(of_way(name, way, &target, &directory));
        }
        running.push(http);
    }
    let programs = vary.parent().unwrap_or(&vary);
    jobs.extend(of_sdks("library", SDKS, &json!({"programs": programs})));
    let (targets, examples) = examples(workspace, &vary)?;
    running.extend(examples);
    jobs.extend(of_sdks("examples", SDKS, &json!({"targets": targets})));
    let (there, behind) = behind::begun(workspace, &vary, &forks)?;
    running.extend(behind);
    for what in ["server_requests", "eras", "notifications", "tasks"] {
        jobs.extend(of_sdks(what, NOTIFIED, &there));
    }
    let fixture = workspace.binary("fixture-server")?;
    let programs = json!({"vary": vary, "fixture": fixture});
    let hanging = of_sdks("hanging", BESIDE_HANGING, &programs);
    jobs.push_back(Job {
        name: "bodies that are too large".to_owned(),
        script: "bodies.mjs".to_owned(),
        argument: json!({"url": there["fixture"]["url"]}),
    });
    let (there, server) = shaped::begun(workspace, &vary)?;
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
        let way = job.argument["way"].as_str().unwrap_or_default();
        job.argument["sets"] = shaped::sets(way).into();
        job
    })
}

/// The job for the commands of the README and of the tutorial.
fn readme(workspace: &Workspace, vary: &Path) -> Result<Job, String> {
    let replay = workspace.binary("replay-server")?;
    Ok(Job {
        name: "README and tutorial".to_owned(),
        script: "readme.mjs".to_owned(),
        argument: json!({"vary": vary, "replay": replay, "root": workspace.path("")}),
    })
}

/// A job for each SDK, era and transport with this `argument`, run by the scripts that are named after `what`.
pub(crate) fn of_sdks(what: &str, sdks: &[(&str, &[&str])], argument: &Value) -> Vec<Job> {
    let mut jobs = Vec::new();
    for way in ["http", "stdio"] {
        for (name, eras) in sdks {
            let kind = match *name {
                "python" | python::FIRST | python::FASTMCP => "py",
                _ => "mjs",
            };
            for era in *eras {
                let mut argument = argument.clone();
                argument["way"] = json!(way);
                argument["era"] = json!(era);
                argument["client"] = json!(name);
                jobs.push(Job {
                    name: format!("{what} {way} {name} {era}"),
                    script: format!("{what}.{kind}"),
                    argument,
                });
            }
        }
    }
    jobs
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
        let mut command = process::command(vary);
        command.args(["serve", "--listen", "127.0.0.1:0"]);
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
    let replay = workspace.binary("replay-server")?;
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
    text.push_str(&format!("start-wait: {}\n", behind::START_WAIT));
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
fn of_way(server: &str, way: &str, target: &Value, directory: &str) -> Vec<Job> {
    let mut jobs = Vec::new();
    for client in CLIENTS {
        for era in client.eras {
            let mut argument = target.clone();
            argument["server"] = json!(server);
            argument["era"] = json!(era);
            argument["vary"] = json!(true);
            argument["directory"] = json!(directory);
            jobs.push(Job {
                name: format!("{server} {way} {} {era}", client.name),
                script: client.script.to_owned(),
                argument,
            });
        }
    }
    jobs
}

/// Runs the jobs, several at once, and prints each when it is done. Scripts in Python run in `forks`, if there are any.
pub(crate) fn run_all(
    workspace: &Workspace,
    jobs: VecDeque<Job>,
    forks: Option<&ForkServers>,
) -> Outcome {
    let jobs = Mutex::new(jobs);
    let found = Mutex::new((Outcome::default(), Table::default()));
    thread::scope(|scope| {
        for _ in 0..at_once() {
            scope.spawn(|| {
                while let Some(job) = next(&jobs) {
                    let started = Instant::now();
                    let (done, checks) = run(workspace, &job, forks);
                    let took = started.elapsed().as_secs_f64();
                    println!("  {took:>5.1} s  {}", row(&job.name, &done));
                    if let Ok(mut found) = found.lock() {
                        found.0.add(done);
                        for Check { name, server, came } in &checks {
                            found.1.note(&job.name, (name, server.as_deref()), came);
                        }
                    }
                }
            });
        }
    });
    let Ok((mut outcome, table)) = found.into_inner() else {
        return Outcome::failure("a worker panicked, see above");
    };
    let documented = table.held_against_the_document(workspace);
    outcome.add(documented.unwrap_or_else(Outcome::failure));
    outcome
}

/// The number of concurrent jobs: a job needs half a second to six seconds of a core to start its programs, and waits for
/// their answers for longer than that.
fn at_once() -> usize {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    (3 * cores).clamp(6, 12)
}

fn next(jobs: &Mutex<VecDeque<Job>>) -> Option<Job> {
    jobs.lock().ok()?.pop_front()
}

fn row(name: &str, done: &Outcome) -> String {
    let words: Vec<&str> = name.split(' ').collect();
    let verdict = if done.failed() == 0 { "ok" } else { "FAILED" };
    let passed = done.passed;
    let of = passed + done.failed();
    match words[..] {
        [server, way, client, era] => {
            format!(
                "{server:<10}  {way:<5}  {client:<12}  {era:<6}  {passed:>2} of {of:>2}  {verdict}"
            )
        }
        _ => format!("{name}  {passed} of {of}  {verdict}"),
    }
}

/// Runs one job; its checks are the lines it prints.
fn run(workspace: &Workspace, job: &Job, forks: Option<&ForkServers>) -> (Outcome, Vec<Check>) {
    let name = &job.name;
    let (text, end) = match output(workspace, job, forks) {
        Ok(ended) => ended,
        Err(error) => return (Outcome::failure(format!("{name}: {error}")), Vec::new()),
    };
    let checks: Vec<Check> = text.lines().filter_map(parsed).collect();
    let mut outcome = Outcome::default();
    for check in &checks {
        match &check.came {
            Came::To { ok: true, .. } => outcome.passed += 1,
            Came::To { ok: false, detail } => {
                let server = check.server.as_deref().unwrap_or("it");
                let what = &check.name;
                outcome.fail(format!("{name}: {what}, with {server}: {detail}"));
            }
            Came::Lacks { .. } => {}
        }
    }
    if let Err(error) = end {
        outcome.fail(format!("{name}: {error}"));
    }
    if outcome.passed + outcome.failed() == 0 {
        outcome.fail(format!("{name}: not one check ran"));
    }
    (outcome, checks)
}

/// The script's output, and whether it succeeded.
fn output(
    workspace: &Workspace,
    job: &Job,
    forks: Option<&ForkServers>,
) -> Result<(String, Result<(), String>), String> {
    let log = workspace.scratch(&format!("interop/{}.log", job.name.replace(' ', "-")))?;
    let mut command = command(workspace, job, forks)?;
    command.arg(job.argument.to_string());
    let end = process::run(&mut command, &log, LIMIT);
    let text = fs::read_to_string(&log).map_err(|error| error.to_string())?;
    Ok((text, end))
}

/// The command that runs the script.
fn command(
    workspace: &Workspace,
    job: &Job,
    forks: Option<&ForkServers>,
) -> Result<Command, String> {
    let script = workspace.path(npm::DIRECTORY).join(&job.script);
    if job.script.ends_with(".mjs") {
        let mut node = npm::node(workspace)?;
        node.arg(script);
        return Ok(node);
    }
    let environment = job.argument["client"].as_str().unwrap_or("python");
    let script = script.display().to_string();
    let words = match forks {
        Some(forks) => forks.command(workspace, environment, &script)?,
        None => {
            let python = python::program(workspace, environment, "python")?;
            vec![python.display().to_string(), script]
        }
    };
    let mut python = process::command(&words[0]);
    npm::with_packages(workspace, python.args(&words[1..]))?;
    Ok(python)
}

/// Parses a line that is a check. Servers and SDKs may write other lines to the same log.
fn parsed(line: &str) -> Option<Check> {
    let mut values = serde_json::Deserializer::from_str(line).into_iter();
    values.next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_meets_every_server_in_every_era_it_speaks() {
        let names: Vec<String> = of_way("time", "http", &json!({"url": "u"}), "d")
            .into_iter()
            .map(|job| job.name)
            .collect();
        assert_eq!(
            names,
            [
                "time http inspector legacy",
                "time http inspector modern",
                "time http typescript-1 legacy",
                "time http typescript-2 legacy",
                "time http typescript-2 modern",
                "time http python legacy",
                "time http python modern",
            ]
        );
    }

    #[test]
    fn what_a_script_asks_is_asked_in_each_way_and_era() {
        let jobs = of_sdks("library", SDKS, &json!({"programs": "p"}));
        assert_eq!(jobs.len(), 10);
        assert_eq!(jobs[0].name, "library http typescript-1 legacy");
        assert_eq!(jobs[4].name, "library http python modern");
        assert_eq!(jobs[4].script, "library.py");
        assert_eq!(
            jobs[4].argument,
            json!({"programs": "p", "way": "http", "era": "modern", "client": "python"})
        );
    }

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

    #[test]
    fn the_examples_start_without_cargo() {
        let workspace = Workspace::here();
        let text = workspace
            .read("examples/configurations/weather.yaml")
            .unwrap();
        assert!(text.contains(WITH_CARGO), "{text}");
        let replaced = text.replace(WITH_CARGO, &without_cargo(Path::new("/a b/replay-server")));
        let example: Value = serde_saphyr::from_str(&replaced).unwrap();
        let server = &example["servers"]["weather"];
        assert_eq!(server["command"], "/a b/replay-server");
        let file = "examples/configurations/servers/weather.json";
        assert_eq!(server["args"], json!([file]));
    }

    #[test]
    fn what_is_no_check_is_not_counted() {
        assert!(parsed("Starting default (STDIO) server...").is_none());
        assert!(parsed(r#"{"jsonrpc": "2.0"}"#).is_none());
        assert!(parsed(r#"{"name": "connects", "ok": true}"#).is_some());
    }

    /// Another program that writes to the same log can come between a line and its end.
    #[test]
    fn a_check_is_counted_whatever_follows_in_its_line() {
        let line = r#"{"name": "connects", "ok": false}in front of python-sdk"#;
        assert!(parsed(line).is_some());
    }
}
