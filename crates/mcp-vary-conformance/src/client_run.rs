//! Runs a client before the mock server, once for each scenario, and the checks on what it did.

use std::collections::{BTreeMap, VecDeque};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::process::{ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant as Deadline, sleep, timeout};

use crate::check::{Check, ClientObjection, ClientVerdict, Era, Objection, Test};
use crate::client_command::ClientCommand;
use crate::limits::Limits;
use crate::mock_server::{self, MockServer};
use crate::observation::{End, Observation, Record, Scenario};
use crate::options::Options;
use crate::process::{Group, last_lines, read_stderr};
use crate::registry;
use crate::report::{Finding, Outcome, Report};
use crate::run::RunError;

/// How many runs there are at the same time.
const RUNS: usize = 4;

/// How long one run may take in any case. A sixth of it is the limit of silence by default; it grows with that.
const LONGEST: Duration = Duration::from_secs(30);

/// How long a client that is notified must stay until it must have reacted. It grows with the limit of silence, of which it
/// is a fifth by default.
const REACTION: Duration = Duration::from_secs(1);

/// How often a run is looked at.
const TICK: Duration = Duration::from_millis(20);

/// How long the end of standard output and standard error is waited for after the client has ended.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// The most bytes of standard output that are read for the checks.
const OUTPUT: usize = 64 << 10;

/// Checks the client that `command` starts, with options of [`Options::for_clients`].
///
/// It is started once for each scenario of the mock server and each era, with the name of the scenario in the environment
/// variable `MCP_CONFORMANCE_SCENARIO`, and the revision of the protocol in `MCP_CONFORMANCE_PROTOCOL_VERSION`, as the
/// official conformance suite does it.
///
/// # Errors
///
/// If the client cannot be started, or connects in no era. Everything else is in the report.
pub async fn run_client(command: &ClientCommand, options: &Options) -> Result<Report, RunError> {
    if !options.is_for_clients() {
        let error = "these options are for a server; use `Options::for_clients()` for a client";
        return Err(RunError::WrongOptions(error));
    }
    let run = ClientRun {
        command,
        limits: options.limits(),
        deadline: Deadline::now() + options.whole(),
    };
    let ordinary = options.eras().iter();
    let ordinary = join_all(ordinary.map(|era| run.record(Scenario::Ordinary, *era))).await;
    let mut report = Report::new(command.to_string());
    for (era, ordinary) in options.eras().iter().zip(ordinary) {
        let ordinary = ordinary.map_err(RunError::Transport)?;
        match refusal(&ordinary, *era) {
            Some(reason) => report.skip_era(*era, reason),
            None => {
                let records = run.records(ordinary, *era, options).await;
                let records = records.map_err(RunError::Transport)?;
                let era = *era;
                let observation = Observation {
                    era,
                    records: &records,
                    reaction: REACTION.max(options.limits().request / 5),
                };
                judge(&observation, options, &mut report);
            }
        }
    }
    if report.skipped_eras().len() == options.eras().len() {
        let reasons = report.skipped_eras().iter();
        let reasons: Vec<String> = reasons
            .map(|(era, reason)| format!("{era}: {reason}"))
            .collect();
        return Err(RunError::NoClient(reasons.join("; ")));
    }
    Ok(report)
}

/// Why the client does not speak `era`, if it does not.
fn refusal(ordinary: &Record, era: Era) -> Option<String> {
    let handshake = ["initialize", "server/discover"];
    let mut answered = ordinary
        .messages()
        .filter(|(_, event)| event.result().is_some());
    let speaks = match era {
        Era::Legacy => ordinary.has_result("initialize"),
        // A request without the metadata of this revision is not one of it.
        Era::Modern => answered.any(|(_, event)| event.capabilities().is_some()),
    };
    if speaks {
        return None;
    }
    let sent = ordinary.messages().count();
    let others = ordinary
        .messages()
        .filter(|(_, event)| !handshake.contains(&event.method()))
        .count();
    let end = ordinary.describe_end();
    let mut reason = match (sent, others) {
        (0, _) => format!("it sent nothing; {end}"),
        (_, 0) => format!("its handshake is of the other era; {end}"),
        _ => format!("it sent {sent} messages, but none as this revision has it; {end}"),
    };
    if !ordinary.stderr.is_empty() {
        reason = format!(
            "{reason}; its standard error ends with: {}",
            ordinary.stderr
        );
    }
    Some(reason)
}

fn judge(observation: &Observation<'_>, options: &Options, report: &mut Report) {
    let checks = registry::client_checks().filter(|check| options.selects(check));
    for check in checks.filter(|check| check.eras().contains(&observation.era)) {
        if let Test::Client(scenario, test) = check.test {
            let verdict = match observation.is_in(check.scope) {
                true => test(observation),
                false => Err(out_of_scope(check, options)),
            };
            let record = observation.of(scenario);
            report.add(finding(check, observation.era, record, verdict));
        }
    }
}

/// The objection to a client that a check does not apply to.
fn out_of_scope(check: &Check, options: &Options) -> ClientObjection {
    let reason = check.scope.reason();
    let objection = match options.asks_for(check) {
        true => Objection::Violation(format!("{reason}, which this run asks for")),
        false => Objection::NotApplicable(reason.to_owned()),
    };
    ClientObjection {
        objection,
        last_event: None,
    }
}

fn finding(check: &'static Check, era: Era, record: &Record, verdict: ClientVerdict) -> Finding {
    let last_event = verdict.as_ref().err().and_then(|error| error.last_event);
    let outcome = Outcome::from(verdict.map_err(|error| error.objection));
    let (exchanges, stderr) = match outcome {
        Outcome::Violated(_) | Outcome::Unanswered(_) => {
            (record.exchanges(last_event), record.stderr.clone())
        }
        _ => (Vec::new(), String::new()),
    };
    Finding {
        check,
        era,
        outcome,
        exchanges,
        stderr,
        duration: record.duration,
    }
}

/// The runs of one client.
#[derive(Clone, Copy, Debug)]
struct ClientRun<'a> {
    command: &'a ClientCommand,
    limits: Limits,
    deadline: Deadline,
}

impl ClientRun<'_> {
    /// The records of all scenarios that the checks need, with that of the ordinary one.
    async fn records(
        self,
        ordinary: Record,
        era: Era,
        options: &Options,
    ) -> Result<BTreeMap<Scenario, Record>, String> {
        let is_needed = |scenario: &Scenario| {
            let mut checks = registry::client_checks().filter(|check| options.selects(check));
            checks.any(|check| matches!(check.test, Test::Client(of, _) if of == *scenario))
        };
        let scenarios = Scenario::ALL.into_iter().skip(1).filter(is_needed);
        let records = stream::iter(scenarios.map(async |scenario| {
            let record = self.record(scenario, era).await?;
            Ok::<_, String>((scenario, record))
        }));
        let mut all = BTreeMap::from([(Scenario::Ordinary, ordinary)]);
        let mut records = std::pin::pin!(records.buffered(RUNS));
        while let Some(record) = records.next().await {
            let (scenario, record) = record?;
            all.insert(scenario, record);
        }
        Ok(all)
    }

    /// One run of the client.
    async fn record(self, scenario: Scenario, era: Era) -> Result<Record, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.map_err(|error| format!("no port can be opened: {error}"))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let server = Arc::new(MockServer::new(scenario, era));
        let serving = match self.command.is_stdio() {
            true => tokio::spawn(mock_server::relay::serve(listener, Arc::clone(&server))),
            false => tokio::spawn(mock_server::http::serve(listener, Arc::clone(&server))),
        };
        let words = self.command.command_for(&address.to_string());
        let mut client = RunningClient::start(&words, scenario, era)?;
        let started = Instant::now();
        let end = client.wait(&server, self.limits, self.deadline).await;
        let duration = started.elapsed();
        client.close().await;
        serving.abort();
        Ok(Record {
            events: server.take_events(),
            end,
            duration,
            stdout: client.stdout(),
            stderr: client.stderr(),
        })
    }
}

/// The process of the client.
#[derive(Debug)]
struct RunningClient {
    group: Group,
    stdout: Arc<Mutex<Vec<u8>>>,
    stderr: Arc<Mutex<VecDeque<String>>>,
    readers: Vec<JoinHandle<()>>,
}

impl RunningClient {
    fn start(words: &[String], scenario: Scenario, era: Era) -> Result<Self, String> {
        let (program, arguments) = words.split_first().ok_or("the command is empty")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("MCP_CONFORMANCE_SCENARIO", scenario.name())
            .env("MCP_CONFORMANCE_PROTOCOL_VERSION", era.revision())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group = Group::start(program, command)?;
        let (stdout, stderr) = (Arc::default(), Arc::default());
        let mut readers = Vec::new();
        if let Some(output) = group.child.stdout().take() {
            readers.push(tokio::spawn(read_stdout(output, Arc::clone(&stdout))));
        }
        if let Some(errors) = group.child.stderr().take() {
            readers.push(tokio::spawn(read_stderr(errors, Arc::clone(&stderr))));
        }
        Ok(Self {
            group,
            stdout,
            stderr,
            readers,
        })
    }

    /// Waits until the client has ended, or has been silent or there for too long.
    async fn wait(&mut self, server: &MockServer, limits: Limits, deadline: Deadline) -> End {
        let started = Instant::now();
        let longest = LONGEST.max(limits.request * 6);
        loop {
            match self.group.child.try_wait() {
                Ok(Some(status)) if status.success() => return End::Success,
                Ok(Some(status)) => return End::Failure(status.to_string()),
                Ok(None) => {}
                Err(error) => return End::Failure(error.to_string()),
            }
            let is_silent = match server.silence() {
                Some(silence) => silence >= limits.request,
                None => started.elapsed() >= limits.start,
            };
            if is_silent {
                return End::Silence;
            }
            if server.is_full() || started.elapsed() >= longest || Deadline::now() >= deadline {
                return End::Limit;
            }
            sleep(TICK).await;
        }
    }

    /// Ends the client with all that it started, and reads what it wrote last.
    async fn close(&mut self) {
        self.group.terminate();
        _ = self.group.wait().await;
        self.group.kill();
        // A process that left the group may still have the streams.
        _ = timeout(LAST_OUTPUT, join_all(self.readers.drain(..))).await;
    }

    fn stdout(&self) -> String {
        let bytes = self.stdout.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn stderr(&self) -> String {
        last_lines(&self.stderr)
    }
}

/// Keeps the beginning of standard output, and reads the rest, so that the client can go on.
async fn read_stdout(mut stdout: ChildStdout, kept: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(count @ 1..) = stdout.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = OUTPUT.saturating_sub(kept.len());
        kept.extend_from_slice(buffer.get(..count.min(room)).unwrap_or_default());
    }
}
