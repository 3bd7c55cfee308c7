//! How the arms of experiments compare, in the figures and sentences of `vary experiment`.

use std::iter::zip;

use mcp_vary_experiment::{Metric, Report};
use mcp_vary_gateway::{ExperimentStatus, Gateway};
use serde_json::{Value, json};

use crate::response::{PageAnswer, json as json_answer};

/// The response to `GET /api/experiments`.
pub(crate) fn respond(gateway: &Gateway) -> PageAnswer {
    let experiments = gateway.status().experiments;
    let experiments = experiments.iter().map(to_json);
    json_answer(&json!({"experiments": experiments.collect::<Value>()}))
}

fn to_json(experiment: &ExperimentStatus) -> Value {
    let ExperimentStatus { totals, effect, .. } = experiment;
    let report = Report::of(totals, experiment.metric, *effect);
    let arms = zip(&report.shares.arms, &totals.arms).map(|((variant, clients, planned), sums)| {
        json!({
            "variant": variant,
            "clients": clients,
            "planned": planned,
            "calls": sums.sums(Metric::Calls).x,
        })
    });
    json!({
        "name": report.name,
        "metric": report.metric,
        "effect": effect,
        "anonymous": experiment.anonymous,
        "uneven": report.shares.are_uneven(),
        "p": report.shares.p,
        "arms": arms.collect::<Value>(),
        "comparisons": report.comparisons,
        "verdicts": report.sentences(*effect),
    })
}
