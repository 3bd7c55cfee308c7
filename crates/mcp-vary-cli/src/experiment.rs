//! `vary experiment`: what came of the experiments of a running gateway.

use mcp_vary_experiment::{Comparison, Estimate, Metric, Report, Totals, Verdict as Decision};
use serde_json::Value;

use crate::args::Experiment;
use crate::failure::{Failure, Verdict};
use crate::print::table::table;
use crate::print::{self, sanitize, sanitize_json};
use crate::status::fetch;
use crate::stop::Stop;

/// An experiment as the status has it.
struct Counted {
    totals: Totals,
    metric: Metric,
    effect: f64,
    is_anonymous: bool,
}

/// Adds the counts of all replicas, and prints a report for each experiment.
pub(crate) async fn run(args: Experiment, mut stop: Stop) -> Result<Verdict, Failure> {
    let mut all: Vec<Counted> = Vec::new();
    for address in &args.addresses {
        let status = stop.unless_requested(fetch(Some(address))).await?;
        for counted in counted(&status, address)? {
            let name = &counted.totals.name;
            match all.iter_mut().find(|known| known.totals.name == *name) {
                None => all.push(counted),
                Some(known) => {
                    known.is_anonymous |= counted.is_anonymous;
                    let added = known.totals.add(&counted.totals);
                    added.map_err(|error| Failure::command(format!("{address}: {error}")))?;
                }
            }
        }
    }
    if let Some(name) = &args.name {
        let names: Vec<_> = all
            .iter()
            .map(|it| format!("`{}`", it.totals.name))
            .collect();
        all.retain(|it| it.totals.name == *name);
        if all.is_empty() {
            let known = match names.as_slice() {
                [] => "there is none".to_owned(),
                [one] => format!("there is {one}"),
                names => format!("there are {}", names.join(", ")),
            };
            return Err(Failure::command(format!("no experiment `{name}`; {known}")));
        }
    }
    let reports: Vec<_> = all
        .iter()
        .map(|it| (Report::of(&it.totals, it.metric, it.effect), it))
        .collect();
    print::data(&if args.json {
        let reports: Vec<_> = reports.iter().map(|(report, _)| report).collect();
        let json = serde_json::to_string_pretty(&reports);
        let json = json.map_err(|error| Failure::command(error.to_string()))?;
        sanitize_json(&format!("{json}\n"))
    } else if reports.is_empty() {
        "no experiment; add `experiments` to the configuration\n".to_owned()
    } else {
        let texts: Vec<_> = reports
            .iter()
            .map(|(report, counted)| text(report, counted))
            .collect();
        sanitize(&texts.join("\n"))
    })?;
    Ok(Verdict::Fine)
}

/// The experiments in a status; none if the gateway has none.
fn counted(status: &Value, address: &str) -> Result<Vec<Counted>, Failure> {
    let all = status["experiments"].as_array().into_iter().flatten();
    let read = |experiment: &Value| -> serde_json::Result<Counted> {
        Ok(Counted {
            totals: serde_json::from_value(experiment.clone())?,
            metric: serde_json::from_value(experiment["metric"].clone())?,
            effect: serde_json::from_value(experiment["effect"].clone())?,
            is_anonymous: experiment["anonymous"] == true,
        })
    };
    all.map(read).collect::<Result<_, _>>().map_err(|error| {
        Failure::command(format!(
            "{address}: its experiments cannot be read: {error}; is it another version of Vary?"
        ))
    })
}

fn text(report: &Report, counted: &Counted) -> String {
    let mut out = format!("{}\n\n", report.name);
    let heading = ["arm", "clients", "planned"].map(str::to_owned).to_vec();
    let arms = report.shares.arms.iter();
    let arms = arms
        .map(|(variant, clients, planned)| vec![variant.clone(), count(*clients), count(*planned)]);
    let rows: Vec<_> = std::iter::once(heading).chain(arms).collect();
    out.push_str(&table(&rows, 1));
    if !report.comparisons.is_empty() {
        out.push('\n');
        out.push_str(&comparisons(report));
    }
    out.push('\n');
    out.push_str(&verdicts(report, counted.effect));
    if counted.is_anonymous {
        out.push_str(ANONYMOUS);
    }
    out
}

fn comparisons(report: &Report) -> String {
    let heading = [
        "metric",
        "arm",
        "value",
        "95 % interval",
        "difference",
        "interval",
        "p",
        "power",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let control = report.shares.arms.first();
    let control = control.map_or("", |(variant, _, _)| variant);
    let mut shown = None;
    for compared in &report.comparisons {
        let metric = compared.metric;
        if shown != Some(metric) {
            let mut row = values(metric, control, &compared.control);
            row.resize(heading.len(), String::new());
            rows.push(row);
            shown = Some(metric);
        }
        let mut row = values(metric, &compared.variant, &compared.arm);
        let Estimate {
            value, from, to, ..
        } = compared.difference;
        row.extend([
            signed(metric, value),
            format!("{} to {}", signed(metric, from), signed(metric, to)),
            probability(compared.p),
            format!("{:.0} %", compared.power * 100.0),
        ]);
        rows.push(row);
    }
    table(&rows, 2)
}

fn values(metric: Metric, variant: &str, estimate: &Estimate) -> Vec<String> {
    vec![
        metric.name().to_owned(),
        variant.to_owned(),
        value(metric, estimate.value),
        format!(
            "{} to {}",
            value(metric, estimate.from),
            value(metric, estimate.to)
        ),
    ]
}

/// What is declared, a line for each arm.
fn verdicts(report: &Report, effect: f64) -> String {
    if report.shares.are_uneven() {
        return format!(
            "Nothing is declared: the arms do not have the clients that were planned (p {}). Look for what loses \
            clients of one arm.\n",
            match probability(report.shares.p) {
                small if small.starts_with('<') => small,
                p => format!("= {p}"),
            }
        );
    }
    let decided = report.comparisons.iter();
    let lines: String = decided
        .filter_map(|compared| Some(verdict(compared, compared.verdict?, effect)))
        .collect();
    if !lines.is_empty() {
        return lines;
    }
    let (have, need) = report.too_few().unwrap_or_default();
    format!(
        "Too early: {} clients in the smallest arm, and each needs {} or more.\n",
        count(have),
        count(need)
    )
}

fn verdict(compared: &Comparison, decision: Decision, effect: f64) -> String {
    let (variant, metric) = (&compared.variant, compared.metric.name());
    match decision {
        Decision::TooFew { have, need, .. } => format!(
            "{variant}: too early: {} clients in the smaller arm; to find a difference of {2} in `{metric}`, each arm needs {1}. \
            So far: {3}.\n",
            count(have),
            count(need),
            sought(compared.metric, effect),
            so_far(compared)
        ),
        Decision::NoDifference => format!(
            "{variant}: no difference of {} or more in `{metric}`.\n",
            sought(compared.metric, effect)
        ),
        Decision::Better => format!("{variant}: better than the control by `{metric}`.\n"),
        Decision::Worse => format!("{variant}: worse than the control by `{metric}`.\n"),
        Decision::Different => format!("{variant}: differs from the control in `{metric}`.\n"),
        _ => format!("{variant}: nothing is declared.\n"),
    }
}

/// What the interval of the difference shows and excludes.
fn so_far(compared: &Comparison) -> String {
    let signed = |difference: f64| signed(compared.metric, difference);
    let Estimate { from, to, .. } = compared.difference;
    let (least, most) = (signed(from), signed(to));
    if from > 0.0 || to < 0.0 {
        format!("a difference between {least} and {most}")
    } else {
        format!("no difference below {least} or above {most}")
    }
}

/// The difference that the experiment looks for.
fn sought(metric: Metric, effect: f64) -> String {
    let percent = effect * 100.0;
    if metric.is_share() {
        format!("{percent:.0} points")
    } else {
        format!("{percent:.0} %")
    }
}

fn value(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Duration => format!("{value:.1} ms"),
        _ if metric.is_share() => format!("{:.1} %", value * 100.0),
        _ => format!("{value:.1}"),
    }
}

/// A difference with its sign; of shares in percentage points.
fn signed(metric: Metric, difference: f64) -> String {
    match metric {
        Metric::Duration => format!("{difference:+.1} ms"),
        _ if metric.is_share() => format!("{:+.1}", difference * 100.0),
        _ => format!("{difference:+.1}"),
    }
}

fn probability(p: f64) -> String {
    if p < 0.001 {
        "<0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}

fn count(number: f64) -> String {
    format!("{number:.0}")
}

/// The note for an experiment in which sessions count as clients.
const ANONYMOUS: &str = "note: clients are not authenticated, and each session counts as a client, so anybody can decide this \
    experiment; add `auth` to count principals\n";
