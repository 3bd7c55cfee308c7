//! The servers and clients that are checked, and what must be found.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::faults::script::{Era, Script, Start};
use serde_json::json;

use crate::server::Server;
use crate::workspace::Workspace;
use crate::{cargo, process};

/// Seconds that a run may take whose time is not what is checked: the machine may be busy.
pub(super) const PATIENT: &str = "240";

/// One run of `vary check`.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) name: String,
    /// Its arguments.
    pub(super) arguments: Vec<String>,
    pub(super) expected: Expected,
    /// The servers that it needs.
    pub(super) _servers: Vec<Server>,
}

/// What a run must come to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected {
    /// Both eras are checked, without any objection but those of these checks, none of which is of a MUST: the exit code is 0.
    Passes(&'static [&'static str]),
    /// The check that has the job's name objects, and no other.
    Fault,
    /// This check objects, of a MUST: the exit code is 1.
    Fails(&'static str),
    /// This check objects, and no MUST is broken: the exit code is 0.
    Warns(&'static str),
    /// Whatever the report says, the exit code is this.
    ExitCode(i32),
    /// The same, within the time that `vary check` promises.
    ExitCodeInTime(i32),
}

/// The programs that are started.
#[derive(Debug)]
pub(super) struct Programs<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) vary: PathBuf,
    fixture: String,
    replay: String,
    fault_server: String,
    peer: String,
}

impl<'a> Programs<'a> {
    pub(super) fn built(workspace: &'a Workspace) -> Result<Self, String> {
        let binary = |name| Ok::<_, String>(cargo::binary(workspace, name)?.display().to_string());
        Ok(Self {
            workspace,
            vary: cargo::binary(workspace, "vary")?,
            fixture: binary("fixture-server")?,
            replay: binary("replay-server")?,
            fault_server: binary("fault-server")?,
            peer: binary("conformance-peer")?,
        })
    }

    /// The file for the output of a job or server.
    pub(super) fn log(&self, name: &str) -> Result<PathBuf, String> {
        let name = name.replace(['/', ' '], "-");
        self.workspace.scratch(&format!("check/{name}.log"))
    }

    pub(super) fn start(&self, name: &str, command: &[&str]) -> Result<Server, String> {
        let (program, arguments) = command.split_first().ok_or("no command")?;
        let mut process = process::command(program);
        Server::start(
            process.args(arguments),
            &self.log(&format!("{name} server"))?,
        )
    }
}

/// All jobs; those that wait longest first.
pub(super) fn all(programs: &Programs<'_>) -> Result<Vec<Job>, String> {
    let mut jobs = gateways(programs)?;
    jobs.extend(configurations(programs)?);
    jobs.extend(failing_servers(programs)?);
    jobs.extend(examples(programs)?);
    jobs.extend(clients(programs)?);
    jobs.extend(faults(programs)?);
    Ok(jobs)
}

/// The fault server in each of its modes. If it does not serve, there is a verdict in time.
fn failing_servers(programs: &Programs<'_>) -> Result<Vec<Job>, String> {
    const MODES: [(&str, Start, i32); 5] = [
        ("silence", Start::Silence, 2),
        ("garbage", Start::Garbage, 2),
        ("exit", Start::Exit, 2),
        ("leave", Start::Leave, 1),
        ("serve", Start::Serve, 0),
    ];
    let mut jobs = Vec::new();
    for (mode, start, code) in MODES {
        for era in Era::BOTH {
            for is_stubborn in [false, true] {
                let kind = if is_stubborn { "stubborn" } else { "ordinary" };
                let name = format!("{mode} {} {kind}", era.as_str());
                let mut script = Script::new("one", era);
                script.start = start;
                script.stubborn = is_stubborn;
                script.starts_child = is_stubborn;
                let directory = programs.log(&name)?.with_extension("directory");
                write(&script, &directory)?;
                let server = [&programs.fault_server, &*directory.display().to_string()];
                let (options, expected): (&[&str], fn(i32) -> Expected) = match start {
                    Start::Serve => (&["--time-limit", PATIENT], Expected::ExitCode),
                    _ => (&[], Expected::ExitCodeInTime),
                };
                let stdio = format!("{name} stdio");
                jobs.push(command(&stdio, options, &server, expected(code)));
                // A server that ends by itself has no address to connect to.
                if !is_stubborn && start != Start::Exit {
                    let name = format!("{name} http");
                    let listening = [&server[..], &["--http", "127.0.0.1:0"]].concat();
                    let server = programs.start(&name, &listening)?;
                    // It has no process for the second era.
                    let is_gone = start == Start::Leave && era == Era::Legacy;
                    let code = if is_gone { 2 } else { code };
                    jobs.push(url(&name, options, server, expected(code)));
                }
            }
        }
    }
    Ok(jobs)
}

fn write(script: &Script, directory: &Path) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    script.write(directory)
}

/// The gateway in front of the fixture: over HTTP on both sides, and on standard input and output on both.
fn gateways(programs: &Programs<'_>) -> Result<Vec<Job>, String> {
    const ECHO: &[&str] = &[
        "--tool",
        "echo",
        "--arguments",
        r#"{"city": "Bern", "days": 3}"#,
    ];
    const EXPECT: &[&str] = &["--expect", "variants,negotiation", "--time-limit", PATIENT];
    let options = [EXPECT, ECHO].concat();
    let vary = programs.vary.display().to_string();
    let mut jobs = Vec::new();
    for era in ["legacy", "modern"] {
        let expected = Expected::Passes(&[]);
        let fixture = [&*programs.fixture, "--era", era];
        let listening = [&fixture[..], &["--http", "127.0.0.1:0"]].concat();
        let behind = programs.start(&format!("fixture {era}"), &listening)?;
        let front = ["serve", "--listen", "127.0.0.1:0", &behind.url];
        let name = format!("gateway {era} http");
        let front = programs.start(&name, &[&[&*vary], &front[..]].concat())?;
        let mut job = url(&name, &options, front, expected);
        job._servers.push(behind);
        jobs.push(job);
        let front = [
            &[&*vary, "serve", "--stdio", "--"],
            &fixture[..],
            &["--stdio"],
        ]
        .concat();
        jobs.push(command(
            &format!("gateway {era} stdio"),
            &options,
            &front,
            expected,
        ));
    }
    Ok(jobs)
}

/// Vary with configurations that give two clients different answers by chance, or refuse some: it passes all the same.
fn configurations(programs: &Programs<'_>) -> Result<Vec<Job>, String> {
    const CONFIGURATIONS: [(&str, &str); 2] = [
        (
            "experiments",
            "variants: {standard: {}, short: {descriptions: first-sentence}}\n\
             experiments: [{name: s, arms: {standard: 50, short: 50}, salt: any text}]\n",
        ),
        (
            "rates",
            "rates: [{name: variants, counts: variant-changes, rate: 10/min}]\n",
        ),
    ];
    let server = json!({"weather": {"command": programs.vary, "args": ["weather"]}});
    let recording = programs
        .log("gateway without resources")?
        .with_extension("json");
    fs::write(&recording, TOOLS_ALONE).map_err(|error| error.to_string())?;
    let tools_alone = json!({"weather": {"command": programs.replay, "args": [recording]}});
    let others = CONFIGURATIONS.map(|(name, configuration)| (name, &server, configuration));
    let mut jobs = Vec::new();
    for (name, server, configuration) in
        others
            .into_iter()
            .chain([("without resources", &tools_alone, "")])
    {
        let name = format!("gateway {name}");
        let file = programs.log(&name)?.with_extension("yaml");
        let text = format!("servers: {server}\n{configuration}");
        fs::write(&file, text).map_err(|error| error.to_string())?;
        let file = file.display().to_string();
        let expect = ["--expect", "variants,negotiation", "--time-limit", PATIENT];
        let expect = [&expect[..], BERN].concat();
        jobs.push(job(
            &name,
            &[&expect[..], &[&*file]].concat(),
            Expected::Passes(&[]),
        ));
    }
    Ok(jobs)
}

/// A recorded server with a tool and no resources, which Vary has itself for results that it cuts.
const TOOLS_ALONE: &str = r#"{
    "tools": [{"name": "get_weather", "inputSchema": {"type": "object", "properties": {"location": {"type": "string"}}}}],
    "results": {"tools": {"get_weather": {
        "content": [{"type": "text", "text": "{\"location\":\"Bern\",\"degrees\":7}"}],
        "structuredContent": {"location": "Bern", "degrees": 7}
    }}}
}"#;

/// The weather, of a place that the servers know.
const BERN: &[&str] = &[
    "--tool",
    "get_weather",
    "--arguments",
    r#"{"location": "Bern"}"#,
];

/// The library's servers.
fn examples(programs: &Programs<'_>) -> Result<Vec<Job>, String> {
    const SERVERS: [(&str, &str); 7] = [
        ("weather-negotiated", "negotiation"),
        ("mapping", "negotiation"),
        ("model-optimised", "variants"),
        ("research", "variants"),
        ("toolsets", "variants"),
        ("trading", "variants"),
        ("phases", "variants"),
    ];
    let mut jobs = Vec::new();
    for (server, extension) in SERVERS {
        let program = cargo::binary(programs.workspace, server)?
            .display()
            .to_string();
        let tool = match server {
            "weather-negotiated" => BERN,
            _ => &[],
        };
        let expect = ["--expect", extension, "--time-limit", PATIENT];
        let expect = [&expect[..], tool].concat();
        let name = format!("example {server}");
        let front = programs.start(&name, &[&*program, "--http", "127.0.0.1:0"])?;
        jobs.push(url(
            &format!("{name} http"),
            &expect,
            front,
            Expected::Passes(&[]),
        ));
        let stdio = [&*program, "--stdio"];
        jobs.push(command(
            &format!("{name} stdio"),
            &expect,
            &stdio,
            Expected::Passes(&[]),
        ));
    }
    Ok(jobs)
}

/// Our clients, over HTTP and on standard input and output: the one of the library, and a command of Vary.
fn clients(programs: &Programs<'_>) -> Result<Vec<Job>, String> {
    let library = cargo::binary(programs.workspace, "weather-client")?;
    let library = library.display().to_string();
    // It begins as a modern client unless it is told otherwise.
    let by_revision = format!(
        "case $MCP_CONFORMANCE_PROTOCOL_VERSION in 2025-*) exec {library} --legacy \"$@\";; esac; exec {library} \"$@\""
    );
    let vary = programs.vary.display().to_string();
    let mut jobs = Vec::new();
    for (transport, options, dashes) in
        [("http", &[][..], &[][..]), ("stdio", &["--stdio"], &["--"])]
    {
        let options = [&["--client", "--time-limit", PATIENT], options].concat();
        let tools = [&[&*vary, "tools"], dashes].concat();
        let inspect = [&[&*vary, "inspect"], dashes].concat();
        // How long it stays for notifications depends on the machine, so only its declaration is checked.
        let declaration = ["--only", "SV-2/client-declares-variants"];
        let clients: [Client<'_>; 3] = [
            (
                "weather-client",
                &["--expect", "variants,negotiation"],
                &["sh", "-c", &by_revision, "sh"],
                ONE_CALL,
            ),
            ("vary tools", &[], &tools, &[]),
            ("vary inspect", &declaration, &inspect, &[]),
        ];
        for (name, more, client, known) in clients {
            let name = format!("client {name} {transport}");
            let options = [&options[..], more].concat();
            jobs.push(command(&name, &options, client, Expected::Passes(known)));
        }
    }
    Ok(jobs)
}

/// A client's name, its options, its command, and what it is known to fail.
type Client<'a> = (
    &'a str,
    &'a [&'a str],
    &'a [&'a str],
    &'static [&'static str],
);

/// The library repeats what only reads, and this client calls a tool and nothing else.
const ONE_CALL: &[&str] = &["SV-19/client-falls-back-to-the-default"];

/// The scripted server with each fault that it can have.
fn faults(programs: &Programs<'_>) -> Result<Vec<Job>, String> {
    let mut list = process::command(&programs.vary);
    let list = process::output(list.args(["check", "--list"]), Duration::from_secs(60))?;
    let faults = list.lines().filter_map(|line| line.split(' ').next());
    let faults = faults.filter(|fault| !OF_HEADERS.contains(fault));
    let jobs = faults.map(|fault| {
        let options: &[&str] = match fault {
            // Only who asks for it gets the check of servers without variants.
            "SV-10/unsupported-selector" => &["--only", fault],
            _ if BETWEEN_CLIENTS.contains(&fault) => &["--revision", "2026-07-28"],
            _ => &[],
        };
        let options = &[options, &["--time-limit", PATIENT]].concat();
        command(fault, options, &[&*programs.peer, fault], Expected::Fault)
    });
    Ok(jobs.collect())
}

/// Faults that show only between two clients of one server. Legacy clients have a process each; the tests of the crate
/// have them over HTTP.
const BETWEEN_CLIENTS: &[&str] = &[
    "CN-7/undeclared-gets-the-default",
    "SV-7/same-hints-same-order",
];

/// Faults that show only with headers, which a command has not. The tests of the crate have them over HTTP.
const OF_HEADERS: &[&str] = &[
    "SV-18/meta-wins-over-the-header",
    "SV-20/variants-of-another-are-refused",
    "SV-20/variants-open-no-tools",
];

fn url(name: &str, options: &[&str], server: Server, expected: Expected) -> Job {
    let mut job = job(name, &[options, &[&*server.url]].concat(), expected);
    job._servers.push(server);
    job
}

fn command(name: &str, options: &[&str], server: &[&str], expected: Expected) -> Job {
    job(name, &[options, &["--"], server].concat(), expected)
}

pub(super) fn job(name: &str, arguments: &[&str], expected: Expected) -> Job {
    Job {
        name: name.to_owned(),
        arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
        expected,
        _servers: Vec::new(),
    }
}
