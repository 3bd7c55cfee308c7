//! How the arms of experiments compare, in the figures and sentences of `vary experiment`, now and until now.

use std::iter::zip;
use std::sync::{Arc, Weak};
use std::time::Duration;

use mcp_vary_experiment::{MIN_UNITS, Metric, Report};
use mcp_vary_gateway::{ExperimentStatus, Gateway};
use serde_json::{Value, json};

use crate::events::Clock;
use crate::history::{Histories, INTERVAL, Point};
use crate::response::{PageAnswer, json as json_answer};

/// The response to `GET /api/experiments`.
pub(crate) fn respond(gateway: &Gateway, histories: &Histories, clock: Clock) -> PageAnswer {
    let experiments = read(gateway, histories, clock).into_iter();
    let experiments =
        experiments.map(|(status, report, points)| to_json(&status, &report, &points));
    json_answer(&json!({"experiments": experiments.collect::<Value>()}))
}

/// Reads the experiments each minute until the gateway is gone, so that their histories have points of all times.
pub(crate) async fn record(gateway: Weak<Gateway>, histories: Arc<Histories>, clock: Clock) {
    while let Some(gateway) = gateway.upgrade() {
        read(&gateway, &histories, clock);
        drop(gateway);
        tokio::time::sleep(Duration::from_secs(INTERVAL)).await;
    }
}

/// Each experiment, what is known of it, and its history.
fn read(
    gateway: &Gateway,
    histories: &Histories,
    clock: Clock,
) -> Vec<(ExperimentStatus, Report, Vec<Point>)> {
    let now = clock() / 1_000_000;
    let experiments = gateway.status().experiments;
    histories.retain(|name| experiments.iter().any(|it| it.totals.name == name));
    let reported = experiments.into_iter().map(|experiment| {
        let ExperimentStatus { totals, effect, .. } = &experiment;
        let report = Report::of(totals, experiment.metric, *effect);
        let points = histories.add(totals, &report, now);
        (experiment, report, points)
    });
    reported.collect()
}

fn to_json(experiment: &ExperimentStatus, report: &Report, history: &[Point]) -> Value {
    let ExperimentStatus { totals, effect, .. } = experiment;
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
        "fewest": MIN_UNITS,
        "anonymous": experiment.anonymous,
        "hasAuth": experiment.has_auth,
        "isShared": totals.shared.is_some(),
        "uneven": report.shares.are_uneven(),
        "p": report.shares.p,
        "arms": arms.collect::<Value>(),
        "comparisons": report.comparisons,
        "verdicts": report.sentences(*effect),
        "history": history,
    })
}
