//! Runs the checks, one after the other, within the time limits.

use std::time::Instant;

use tokio::time::{Instant as Deadline, timeout_at};

use crate::check::{Check, Era, Objection};
use crate::http::Http;
use crate::options::Options;
use crate::probe::Probe;
use crate::registry;
use crate::report::{Finding, Outcome, Report};
use crate::survey::Survey;
use crate::target::Target;

/// Why there is no report.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The server answers in none of the eras. The text has the reason for each.
    #[error("the server answers neither `initialize` nor `server/discover` as it should: {0}")]
    NoEra(String),
}

/// Checks the server at `target`.
///
/// First each era is tried; the checks run in those in which the server answers. They run one after the other, each with
/// clients of its own.
///
/// # Errors
///
/// If the server answers in no era. Everything else is in the report.
pub async fn run(target: &Target, options: &Options) -> Result<Report, RunError> {
    let (request_limit, run_limit) = options.limits();
    let http = Http::new(target, request_limit);
    let deadline = Deadline::now() + run_limit;
    let mut report = Report::new(target.to_string());
    for era in options.eras() {
        match survey(&http, *era, deadline).await {
            Ok(survey) => check_era(&http, *era, &survey, options, deadline, &mut report).await,
            Err(reason) => report.skip_era(*era, reason),
        }
    }
    if report.findings().is_empty() && report.skipped_eras().len() == options.eras().len() {
        let reasons = report.skipped_eras().iter();
        let reasons: Vec<String> = reasons
            .map(|(era, reason)| format!("{era}: {reason}"))
            .collect();
        return Err(RunError::NoEra(reasons.join("; ")));
    }
    Ok(report)
}

async fn survey(http: &Http, era: Era, deadline: Deadline) -> Result<Survey, String> {
    let nothing = Survey::default();
    let probe = Probe::new(http, era, &nothing);
    let survey = timeout_at(deadline, Survey::take(&probe)).await;
    _ = timeout_at(deadline, probe.end_sessions()).await;
    match survey {
        Ok(Ok(survey)) => Ok(survey),
        Ok(Err(objection)) => Err(objection.into_text()),
        Err(_) => Err("the time limit passed".to_owned()),
    }
}

async fn check_era(
    http: &Http,
    era: Era,
    survey: &Survey,
    options: &Options,
    deadline: Deadline,
    report: &mut Report,
) {
    let selected = registry::checks().filter(|check| options.selects(check));
    for check in selected.filter(|check| check.eras().contains(&era)) {
        let started = Instant::now();
        let probe = Probe::new(http, era, survey);
        let outcome = outcome(check, &probe, deadline).await;
        _ = timeout_at(deadline, probe.end_sessions()).await;
        let exchanges = match outcome {
            Outcome::Violated(_) | Outcome::Unanswered(_) => probe.into_exchanges(),
            _ => Vec::new(),
        };
        report.add(Finding {
            check,
            era,
            outcome,
            exchanges,
            duration: started.elapsed(),
        });
    }
}

async fn outcome(check: &Check, probe: &Probe<'_>, deadline: Deadline) -> Outcome {
    if !probe.survey().is_in(check.scope) {
        return Outcome::NotApplicable(check.scope.reason().to_owned());
    }
    match timeout_at(deadline, (check.test)(probe)).await {
        Ok(Ok(())) => Outcome::Passed,
        Ok(Err(Objection::Violation(finding))) => Outcome::Violated(finding),
        Ok(Err(Objection::NotApplicable(reason))) => Outcome::NotApplicable(reason),
        Ok(Err(Objection::NoAnswer(reason))) => Outcome::Unanswered(reason),
        Err(_) => Outcome::Unanswered("the time limit of the run passed".to_owned()),
    }
}
