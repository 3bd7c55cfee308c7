//! Runs a client before the mock server, once for each scenario, and the checks on what it did.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use tokio::net::TcpListener;
use tokio::time::Instant as Deadline;

use crate::check::{Check, Test};
use crate::client_command::ClientCommand;
use crate::client_process::ClientProcess;
use crate::era::Era;
use crate::limits::Limits;
use crate::member::Member;
use crate::mock_server::{self, MockServer};
use crate::objection::{ClientObjection, ClientVerdict, Objection};
use crate::observation::{Observation, Record, Scenario};
use crate::options::Options;
use crate::registry;
use crate::report::{Finding, Outcome, Report};
use crate::run::RunError;

/// How many runs there are at the same time.
const RUNS: usize = 4;

/// How long a client that is notified must stay until it must have reacted. It grows with the limit of silence, of which it
/// is a fifth by default.
const REACTION: Duration = Duration::from_secs(1);

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
    for (era, recorded) in options.eras().iter().zip(ordinary) {
        let ordinary = recorded.map_err(RunError::Transport)?;
        match refusal(&ordinary, *era) {
            Some(reason) => report.skip_era(*era, reason),
            None => {
                let runs = run.records(ordinary, *era, options).await;
                let records = runs.map_err(RunError::Transport)?;
                let observation = Observation {
                    era: *era,
                    records: &records,
                    reaction: REACTION.max(options.limits().request / 5),
                };
                judge(&observation, options, &mut report);
            }
        }
    }
    if report.skipped_eras().len() == options.eras().len() {
        let skipped = report.skipped_eras().iter();
        let reasons: Vec<String> = skipped
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
    for check in checks.filter(|check| check.eras.contains(&observation.era)) {
        let record = observation.of(check.scenario());
        let verdict = if observation.is_in(check.scope) {
            verdict(check, observation)
        } else {
            Err(out_of_scope(check, options).into())
        };
        report.add(finding(check, observation.era, record, verdict));
    }
}

fn verdict(check: &Check, observation: &Observation<'_>) -> ClientVerdict {
    match check.test {
        Test::Client(_, test) => test(observation),
        Test::ClientMember(member) => member_verdict(member, observation),
        _ => Ok(()),
    }
}

/// Objects unless a member that the client declares is right.
fn member_verdict(member: Member, observation: &Observation<'_>) -> ClientVerdict {
    let declared = match member.extension {
        Some(extension) => observation.settings(extension),
        None => observation.declaration(),
    };
    let Some((event, declared)) = declared else {
        return Ok(());
    };
    member
        .test(Some(declared))
        .map_err(|objection| ClientObjection {
            objection,
            last_event: Some(event),
        })
}

/// The objection to a client that a check does not apply to.
fn out_of_scope(check: &Check, options: &Options) -> Objection {
    let reason = check.scope.reason();
    if options.asks_for(check) {
        Objection::Violation(format!("{reason}, which this run asks for"))
    } else {
        Objection::NotApplicable(reason.to_owned())
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
            checks.any(|check| check.scenario() == *scenario)
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
        let bound = TcpListener::bind("127.0.0.1:0").await;
        let listener = bound.map_err(|error| format!("no port can be opened: {error}"))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let server = Arc::new(MockServer::new(scenario, era));
        let serving = if self.command.is_stdio() {
            tokio::spawn(mock_server::relay::serve(listener, Arc::clone(&server)))
        } else {
            tokio::spawn(mock_server::http::serve(listener, Arc::clone(&server)))
        };
        let command = self.command.command_for(&address.to_string());
        let mut client = ClientProcess::start(&command, scenario, era)?;
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
