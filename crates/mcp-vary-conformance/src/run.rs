//! Runs the checks within the time limits.

use std::pin::pin;
use std::sync::OnceLock;
use std::time::Instant;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use tokio::time::{Instant as Deadline, timeout_at};

use crate::answer::ErrorAnswer;
use crate::check::{Check, Test};
use crate::connections::Connections;
use crate::era::Era;
use crate::extension::Extension;
use crate::objection::{Verdict, not_applicable};
use crate::options::{LONGEST_RUN, Options};
use crate::probe::Probe;
use crate::registry;
use crate::report::{Finding, Outcome, Report};
use crate::scope::Scope;
use crate::survey::Survey;
use crate::target::Target;
use crate::transport::{NO_RESPONSE, REPEATED_REQUEST, Transport};

/// Why there is no report.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The server answers in none of the eras.
    #[error("{before}{reasons}", before = before_reasons(.reasons))]
    NoEra {
        /// The reason for each era.
        reasons: String,
        /// The HTTP statuses that refused clients without a message of JSON-RPC.
        http_statuses: Vec<u16>,
    },
    /// The time of the run was over before the server had answered the first requests.
    #[error("its first answers need more than the {0} s of this run, so no check was reached; give it more time, as with `--time-limit {more}`", more = more_time(*.0))]
    TooSlow(u64),
    /// The client speaks in none of the eras. The text has the reason for each.
    #[error("the client opens no connection as it should: {0}")]
    NoClient(String),
    /// The options are for the other kind of run.
    #[error("{0}")]
    WrongOptions(&'static str),
    /// A tool that the options name cannot be called. The text has the reason.
    #[error("{0}")]
    Tool(String),
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
/// If the server answers in no era, or a tool that the options name cannot be called. Everything else is in the report.
pub async fn run(target: &Target, options: &Options) -> Result<Report, RunError> {
    if options.is_for_clients() {
        let error = "these options are for a client; use `Options::default()` for a server";
        return Err(RunError::WrongOptions(error));
    }
    let transport = Transport::new(target, options.limits()).map_err(RunError::Transport)?;
    let deadline = Deadline::now() + options.whole();
    let started = Instant::now();
    let mut report = Report::new(target.to_string());
    // At the same time: a server that does not answer uses up the limit in each.
    let eras = options.eras().iter();
    let pending = eras.map(|era| survey(&transport, *era, options, deadline));
    let surveys = join_all(pending).await;
    let mut answered = surveys.iter().flatten();
    if let Some(reason) = answered.find_map(|survey| survey.unusable_tool.clone()) {
        transport.shut_down().await;
        return Err(RunError::Tool(reason));
    }
    let failed = surveys.iter().filter_map(|survey| survey.as_ref().err());
    let http_statuses = failed.filter_map(|it| it.http_status).collect();
    for (era, survey) in options.eras().iter().zip(surveys) {
        match survey {
            Ok(survey) => {
                if options.selects_all() {
                    report.record_declarations(&survey);
                }
                let run = EraRun {
                    transport: &transport,
                    era: *era,
                    survey: &survey,
                    options,
                    deadline,
                };
                run.check_all(&mut report).await;
            }
            Err(unanswered) => report.skip_era(*era, unanswered.reason),
        }
    }
    transport.shut_down().await;
    if report.findings().is_empty() && report.skipped_eras().len() == options.eras().len() {
        if Deadline::now() >= deadline {
            return Err(RunError::TooSlow(options.whole().as_secs()));
        }
        return Err(RunError::NoEra {
            reasons: both_reasons(report.skipped_eras()),
            http_statuses,
        });
    }
    report.time = started.elapsed();
    Ok(report)
}

/// The seconds that a run of `seconds`, which was too short to show a pace, should have next.
fn more_time(seconds: u64) -> u64 {
    seconds.saturating_mul(5).clamp(300, LONGEST_RUN)
}

/// The text before the reasons why no era can be checked; empty if the server sent nothing at all.
fn before_reasons(reasons: &str) -> &'static str {
    if reasons.starts_with(NO_RESPONSE) {
        ""
    } else {
        "the server answers neither `initialize` nor `server/discover` as it should: "
    }
}

/// Why no era can be checked: once, if it is the same for all.
fn both_reasons(eras: &[(Era, String)]) -> String {
    let cause = |reason: &str| reason.split(STDERR).next().map(str::to_owned);
    let mut causes: Vec<_> = eras.iter().map(|(_, reason)| cause(reason)).collect();
    causes.dedup();
    let named = eras.iter().map(|(era, reason)| match causes.len() {
        1 => reason.clone(),
        _ => format!("{era}: {reason}"),
    });
    let reasons: Vec<String> = named.take(causes.len()).collect();
    reasons.join("; ")
}

/// Between a reason and the end of standard error.
const STDERR: &str = "; its standard error ends with: ";

/// Why an era cannot be checked.
struct Unanswered {
    reason: String,
    /// The HTTP status that refused the client, without a message of JSON-RPC.
    http_status: Option<u16>,
}

async fn survey(
    transport: &Transport,
    era: Era,
    options: &Options,
    deadline: Deadline,
) -> Result<Survey, Unanswered> {
    let limit = OnceLock::new();
    let connections = Connections::new(transport, era, &limit);
    let survey = Survey::of_server(&connections, options.tools());
    let survey = timeout_at(deadline, survey).await;
    let stderr = connections.stderr();
    _ = timeout_at(deadline, connections.close()).await;
    let mut http_status = None;
    let mut reason = match survey {
        Ok(Ok(Ok(mut survey))) => {
            survey.limit = limit;
            return Ok(survey);
        }
        Ok(Ok(Err(refusal))) => {
            http_status = refusal.http_status;
            explain(&refusal)
        }
        Ok(Err(objection)) => objection.into_text(),
        Err(_) => format!(
            "the time limit passed; give it more time, as with `--time-limit {}`",
            more_time(options.whole().as_secs())
        ),
    };
    if !stderr.is_empty() {
        reason = format!("{reason}{STDERR}{stderr}");
    }
    Err(Unanswered {
        reason,
        http_status,
    })
}

/// What the refusal of a client means.
fn explain(refusal: &ErrorAnswer) -> String {
    if refusal.message == REPEATED_REQUEST {
        return format!("{REPEATED_REQUEST}, as `cat` does");
    }
    let reason = format!("a client was refused with {}", refusal.describe());
    match (refusal.code, refusal.http_status) {
        // As servers of one revision answer the first request of another.
        (Some(-32601 | -32022), _) => format!("the server does not speak it: {reason}"),
        (_, Some(404 | 405)) => format!(
            "{reason}; check the path of the address; a server that has only the transport of 2024-11-05 (SSE) cannot be \
             checked"
        ),
        _ => reason,
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
    /// How often `check` may be tried.
    fn attempts(self, check: &Check) -> usize {
        let compares_sessions = COMPARE_SESSIONS.contains(&check.requirement());
        let has_cohorts = self.era == Era::Legacy && self.survey.two_variants().is_ok();
        if compares_sessions && has_cohorts {
            ATTEMPTS
        } else {
            1
        }
    }

    async fn check_all(self, report: &mut Report) {
        let selected = registry::checks().filter(|check| self.options.selects(check));
        let checks = selected.filter(|check| check.eras.contains(&self.era));
        let findings = stream::iter(checks.map(|check| self.check(check)));
        let mut findings = pin!(findings.buffered(self.transport.concurrency(self.era)));
        while let Some(finding) = findings.next().await {
            report.add(finding);
        }
    }

    async fn check(self, check: &'static Check) -> Finding {
        let started = Instant::now();
        let mut probe = Probe::new(self.transport, self.era, self.survey);
        let mut attempts = self.attempts(check);
        let outcome = loop {
            attempts -= 1;
            let outcome = match inapplicable(check, self.survey, self.options) {
                Some(outcome) => outcome,
                None if Deadline::now() >= self.deadline => Outcome::NotReached,
                None => outcome(check, &probe, self.deadline).await,
            };
            if attempts == 0 || !matches!(outcome, Outcome::Violated(_)) {
                break outcome;
            }
            _ = timeout_at(self.deadline, probe.connections.discard()).await;
            probe = Probe::new(self.transport, self.era, self.survey);
        };
        let stderr = probe.connections.stderr();
        _ = timeout_at(self.deadline, probe.connections.close()).await;
        let (exchanges, stderr) = match outcome {
            Outcome::Violated(_) | Outcome::Unanswered(_) => {
                (probe.connections.into_exchanges(), stderr)
            }
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

/// How often a check that compares sessions is repeated before it objects: a server may assign each session to a cohort, so
/// that two sessions differ by chance.
const ATTEMPTS: usize = 10;

/// The requirements whose checks compare what different sessions get.
const COMPARE_SESSIONS: &[&str] = &["SV-4", "SV-5", "CN-1", "CN-2", "CN-7", "EXT-5", "EXT-7"];

/// The outcome of a check that is not run, if it is not.
fn inapplicable(check: &Check, survey: &Survey, options: &Options) -> Option<Outcome> {
    if survey.requires_hints && check.id != "SV-4/hints-are-optional" {
        let reason = "the server refuses clients without hints";
        return Some(Outcome::NotApplicable(reason.to_owned()));
    }
    let is_asked_for = options.asks_for(check);
    if survey.is_in(check.scope) {
        if let Some(reason) = unmet_expectation(check, survey, options) {
            return Some(Outcome::Missing(reason));
        }
        let needs_question = check.scope == Scope::NoVariants && !is_asked_for;
        let reason =
            "the server declares no variants; `--only SV-10` checks that it refuses selectors";
        return needs_question.then(|| Outcome::NotApplicable(reason.to_owned()));
    }
    let reason = check.scope.reason();
    let is_for_others = matches!(check.scope, Scope::NoVariants | Scope::NoNegotiation);
    Some(if is_asked_for && !is_for_others {
        Outcome::Missing(format!("{reason}, which this run asks for"))
    } else {
        Outcome::NotApplicable(reason.to_owned())
    })
}

/// Why a run that expects an extension shows nothing about it. The first check of results objects.
fn unmet_expectation(check: &Check, survey: &Survey, options: &Options) -> Option<String> {
    let extension = match check.id {
        "CN-9/agent-json-is-structured" => Extension::Negotiation,
        "SV-8/default-is-the-first" => Extension::Variants,
        _ => return None,
    };
    let reason = survey.uncheckable(extension)?;
    let is_expected = options.expects(extension);
    is_expected.then(|| format!("no result was checked, which this run expects: {reason}"))
}

async fn outcome(check: &Check, probe: &Probe<'_>, deadline: Deadline) -> Outcome {
    match timeout_at(deadline, verdict(check, probe)).await {
        Ok(verdict) => Outcome::from(verdict),
        Err(_) => Outcome::NotReached,
    }
}

async fn verdict(check: &Check, probe: &Probe<'_>) -> Verdict {
    let survey = probe.survey();
    match check.test {
        Test::Server(test) => test(probe).await,
        Test::Survey(test) => test(survey),
        Test::Member(member) => member.test(survey.declared(member.extension)),
        Test::EachVariant(is_right) => survey.each_variant(is_right),
        Test::Client(..) | Test::ClientMember(_) => not_applicable("it is a check of clients"),
    }
}
