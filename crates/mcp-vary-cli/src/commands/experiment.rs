//! `vary experiment`: what came of the experiments of a running gateway.

use clap::Parser;
use mcp_vary_experiment::{Estimate, Metric, Report, Totals, probability};
use serde_json::Value;

use crate::commands::status::fetch_json;
use crate::failure::{Failure, Verdict};
use crate::print::table::table;
use crate::print::{self, sanitize, sanitize_json};
use crate::stop::Stop;

/// Show the results of the experiments of a running gateway
///
/// Compares each arm with the first one, the control, by the clients that took part: values, 95 % intervals, and whether
/// the difference is real. An arm with too few clients has no result yet.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    vary experiment 8801\n  \
    vary experiment --name words 8801 8811\n\n\
    With --json, a list: {name, metric, shares: {arms: [[variant, clients, planned]], p}, comparisons: [{metric, \
    variant, control, arm, difference: {value, from, to}, p, power, verdict}]}. Shares are between 0 and 1, durations \
    milliseconds.")]
pub(crate) struct Experiment {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Only the experiment of this name
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The `--admin` addresses of the gateway and its replicas: HOST:PORT, a port, or the URL
    #[arg(value_name = "ADDR", default_value = "127.0.0.1:8801")]
    pub(crate) addresses: Vec<String>,
}

/// An experiment as the status has it.
struct Counted {
    totals: Totals,
    metric: Metric,
    effect: f64,
    is_anonymous: bool,
}

/// Adds the counts of all replicas, and prints a report for each experiment.
pub(crate) async fn run(args: Experiment, mut stop: Stop) -> Result<Verdict, Failure> {
    let mut merged = Vec::new();
    let mut groups = Vec::new();
    for address in &args.addresses {
        let status = stop.unless_requested(fetch_json(Some(address))).await?;
        for counted in counted(&status, address)? {
            // Replicas that share their counts are one, before others are added.
            let shared = counted.totals.shared.clone();
            let is_same = |it: &Totals| shared.is_some() && it.shared == shared;
            add(&mut groups, (address, counted), is_same)?;
        }
    }
    for (address, counted) in groups {
        let name = counted.totals.name.clone();
        let is_same = |totals: &Totals| totals.name == name;
        add(&mut merged, (address, counted), is_same)?;
    }
    let mut all: Vec<_> = merged.into_iter().map(|(_, counted)| counted).collect();
    if let Some(name) = &args.name {
        let names: Vec<_> = all
            .iter()
            .map(|counted| format!("`{}`", counted.totals.name))
            .collect();
        all.retain(|counted| counted.totals.name == *name);
        if all.is_empty() {
            let known = match names.as_slice() {
                [] => "there is none".to_owned(),
                [one] => format!("there is {one}"),
                names => format!("there are {}", names.join(", ")),
            };
            return Err(Failure::command(format!("no experiment `{name}`; {known}")));
        }
    }
    let report = |counted: &Counted| Report::of(&counted.totals, counted.metric, counted.effect);
    let reports: Vec<_> = all.iter().map(|found| (report(found), found)).collect();
    print::data(&if args.json {
        let documents: Vec<_> = reports.iter().map(|(report, _)| report).collect();
        let written = serde_json::to_string_pretty(&documents);
        let json = written.map_err(|error| Failure::command(error.to_string()))?;
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

/// Adds what the gateway at `address` counted to the first experiment that `is_same`, if there is one.
fn add<'a>(
    all: &mut Vec<(&'a String, Counted)>,
    (address, counted): (&'a String, Counted),
    is_same: impl Fn(&Totals) -> bool,
) -> Result<(), Failure> {
    let Some((_, known)) = all.iter_mut().find(|(_, known)| is_same(&known.totals)) else {
        all.push((address, counted));
        return Ok(());
    };
    known.is_anonymous |= counted.is_anonymous;
    let added = known.totals.add(&counted.totals);
    added.map_err(|error| Failure::command(format!("{address}: {error}")))
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
    let shares = report.shares.arms.iter();
    let arms = shares
        .map(|(variant, clients, planned)| vec![variant.clone(), count(*clients), count(*planned)]);
    let rows: Vec<_> = std::iter::once(heading).chain(arms).collect();
    out.push_str(&table(&rows, 1));
    if !report.comparisons.is_empty() {
        out.push('\n');
        out.push_str(&comparisons(report));
    }
    out.push('\n');
    for sentence in report.sentences(counted.effect) {
        out.push_str(&sentence);
        out.push('\n');
    }
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
    let first = report.shares.arms.first();
    let control = first.map_or("", |(variant, _, _)| variant);
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
            metric.show_difference(value),
            format!(
                "{} to {}",
                metric.show_difference(from),
                metric.show_difference(to)
            ),
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
        metric.show(estimate.value),
        format!(
            "{} to {}",
            metric.show(estimate.from),
            metric.show(estimate.to)
        ),
    ]
}

fn count(number: f64) -> String {
    format!("{number:.0}")
}

/// The note for an experiment in which sessions count as clients.
const ANONYMOUS: &str = "note: clients are not authenticated, and each session counts as a client, so anybody can decide this \
    experiment; add `auth` to count principals\n";
