//! Runs the checks within the time limits.

use std::pin::pin;
use std::time::Instant;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use tokio::time::{Instant as Deadline, timeout_at};

use crate::check::{Check, Era, Objection, Scope, Test};
use crate::options::Options;
use crate::probe::Probe;
use crate::registry;
use crate::report::{Finding, Outcome, Report};
use crate::survey::Survey;
use crate::target::Target;
use crate::transport::Transport;

/// Why there is no report.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The server answers in none of the eras. The text has the reason for each.
    #[error("the server answers neither `initialize` nor `server/discover` as it should: {0}")]
    NoEra(String),
    /// The client speaks in none of the eras. The text has the reason for each.
    #[error("the client opens no connection as it should: {0}")]
    NoClient(String),
    /// The options are for the other kind of run.
    #[error("{0}")]
    WrongOptions(&'static str),
    /// Nothing was sent. The text has the reason.
    #[error("nothing can be sent: {0}")]
    Transport(String),
}

/// Checks the server at `target`.
///
/// First each era is tried; the checks run in those in which the server answers, each with clients of its own. They run one
/// after the other, but for legacy clients of a command: those have processes of their own.
///
/// # Errors
///
/// If the server answers in no era. Everything else is in the report.
pub async fn run(target: &Target, options: &Options) -> Result<Report, RunError> {
    if options.is_for_clients() {
        let error = "these options are for a client; use `Options::default()` for a server";
        return Err(RunError::WrongOptions(error));
    }
    let transport = Transport::new(target, options.limits()).map_err(RunError::Transport)?;
    let deadline = Deadline::now() + options.whole();
    let mut report = Report::new(target.to_string());
    // At the same time: a server that does not answer uses up the limit in each.
    let surveys = options.eras().iter();
    let surveys = surveys.map(|era| survey(&transport, *era, deadline));
    for (era, survey) in options.eras().iter().zip(join_all(surveys).await) {
        match survey {
            Ok(survey) => {
                let run = EraRun {
                    transport: &transport,
                    era: *era,
                    survey: &survey,
                    options,
                    deadline,
                };
                run.check_all(&mut report).await;
            }
            Err(reason) => report.skip_era(*era, reason),
        }
    }
    transport.finish().await;
    if report.findings().is_empty() && report.skipped_eras().len() == options.eras().len() {
        let reasons = report.skipped_eras().iter();
        let reasons: Vec<String> = reasons
            .map(|(era, reason)| format!("{era}: {reason}"))
            .collect();
        return Err(RunError::NoEra(reasons.join("; ")));
    }
    Ok(report)
}

async fn survey(transport: &Transport, era: Era, deadline: Deadline) -> Result<Survey, String> {
    let nothing = Survey::default();
    let probe = Probe::new(transport, era, &nothing);
    let survey = timeout_at(deadline, Survey::take(&probe)).await;
    let stderr = probe.stderr();
    _ = timeout_at(deadline, probe.close()).await;
    let reason = match survey {
        Ok(Ok(survey)) => return Ok(survey),
        Ok(Err(objection)) => objection.into_text(),
        Err(_) => "the time limit passed".to_owned(),
    };
    match stderr.is_empty() {
        true => Err(reason),
        false => Err(format!("{reason}; its standard error ends with: {stderr}")),
    }
}

/// One era of a run.
#[derive(Clone, Copy)]
struct EraRun<'a> {
    transport: &'a Transport,
    era: Era,
    survey: &'a Survey,
    options: &'a Options,
    deadline: Deadline,
}

impl EraRun<'_> {
    async fn check_all(self, report: &mut Report) {
        let checks = registry::checks().filter(|check| self.options.selects(check));
        let checks = checks.filter(|check| check.eras().contains(&self.era));
        let findings = stream::iter(checks.map(|check| self.check(check)));
        let mut findings = pin!(findings.buffered(self.transport.concurrency(self.era)));
        while let Some(finding) = findings.next().await {
            report.add(finding);
        }
    }

    async fn check(self, check: &'static Check) -> Finding {
        let started = Instant::now();
        let probe = Probe::new(self.transport, self.era, self.survey);
        let outcome = match inapplicable(check, self.survey, self.options) {
            Some(outcome) => outcome,
            None if Deadline::now() >= self.deadline => out_of_time(),
            None => outcome(check, &probe, self.deadline).await,
        };
        let stderr = probe.stderr();
        _ = timeout_at(self.deadline, probe.close()).await;
        let (exchanges, stderr) = match outcome {
            Outcome::Violated(_) | Outcome::Unanswered(_) => (probe.into_exchanges(), stderr),
            _ => (Vec::new(), String::new()),
        };
        Finding {
            check,
            era: self.era,
            outcome,
            exchanges,
            stderr,
            duration: started.elapsed(),
        }
    }
}

fn out_of_time() -> Outcome {
    Outcome::Unanswered("the time limit of the run passed".to_owned())
}

/// The outcome of a check that is not run, if it is not.
fn inapplicable(check: &Check, survey: &Survey, options: &Options) -> Option<Outcome> {
    let is_asked_for = options.asks_for(check);
    if survey.is_in(check.scope) {
        let needs_question = check.scope == Scope::NoVariants && !is_asked_for;
        let reason =
            "the server declares no variants; `--only SV-10` checks that it refuses selectors";
        return needs_question.then(|| Outcome::NotApplicable(reason.to_owned()));
    }
    let reason = check.scope.reason();
    Some(match is_asked_for && check.scope != Scope::NoVariants {
        true => Outcome::Violated(format!("{reason}, which this run asks for")),
        false => Outcome::NotApplicable(reason.to_owned()),
    })
}

async fn outcome(check: &Check, probe: &Probe<'_>, deadline: Deadline) -> Outcome {
    let Test::Server(test) = check.test else {
        return Outcome::NotApplicable("it is a check of clients".to_owned());
    };
    match timeout_at(deadline, test(probe)).await {
        Ok(Ok(())) => Outcome::Passed,
        Ok(Err(Objection::Violation(finding))) => Outcome::Violated(finding),
        Ok(Err(Objection::NotApplicable(reason))) => Outcome::NotApplicable(reason),
        Ok(Err(Objection::NoAnswer(reason))) => Outcome::Unanswered(reason),
        Err(_) => out_of_time(),
    }
}
