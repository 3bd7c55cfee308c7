//! `experiments`: variants that are compared with each other.

use std::collections::BTreeMap;

use mcp_vary::variant::VariantId;
use mcp_vary_experiment::{Arm, Experiment, MAX_WEIGHT, Metric};
use mcp_vary_settings::experiments::ExperimentConfig;

use crate::clients::Named;
use crate::diagnostic::Position;
use crate::document::Value;
use crate::key_spec::ValueKind::{Number, Other, Scalar};
use crate::key_spec::{KeySpec, choice, keys};
use crate::reader::{Located, Reader};
use crate::schema_builder::{self, SchemaBuilder};

const EXAMPLE: &str = "{name: words, arms: {standard: 50, verbose: 50}}";

/// The most experiments.
const MOST: usize = 16;

/// The difference that is looked for, in percent.
const EFFECT: i32 = 5;

/// An experiment while it is read.
#[derive(Default)]
struct PartialExperiment {
    name: Option<String>,
    arms: Vec<Arm>,
    named: Vec<Named>,
    salt: Option<String>,
    opt_in: Option<String>,
    opt_out: Option<String>,
    kind: Option<String>,
    metric: Option<Metric>,
    effect: i32,
}

/// Reads the list.
pub(super) fn read(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    into: &mut Vec<ExperimentConfig>,
    named: &mut Vec<Named>,
) {
    let items = reader.items(field, &format!("[{EXAMPLE}]"));
    let items = reader.at_most(MOST, field, items);
    let mut names = BTreeMap::<String, Position>::new();
    for item in items {
        let before = reader.diagnostics.len();
        let mut partial = PartialExperiment {
            effect: EFFECT,
            ..PartialExperiment::default()
        };
        reader.settings(&item, &[SETTINGS], &mut partial, EXAMPLE);
        named.append(&mut partial.named);
        if reader.diagnostics.len() > before {
            continue;
        }
        let Some(experiment) = partial.finish(reader, &item) else {
            continue;
        };
        let name = experiment.experiment.name().to_owned();
        if let Some(first) = names.insert(name, item.node.at) {
            let what = format!("is the name of the experiment in line {}", first.line);
            let fix = "give each experiment its own name";
            reader.report(&item.deepest(&["name"]), what, fix);
            continue;
        }
        into.push(experiment);
    }
}

/// Reports what would keep experiments from ever having a client, and notes what would move clients between arms.
pub(super) fn check(reader: &mut Reader<'_>, root: &Located<'_>, read: &[ExperimentConfig]) {
    let has = |key| root.keys().contains(&key);
    if read.is_empty() {
        return;
    }
    if has("variant") {
        let what = "decides for every client, so that no experiment has one";
        let fix =
            "leave it out; a client outside experiments gets the variant that its hints rank first";
        reader.report(&root.deepest(&["variant"]), what, fix);
    }
    let items = reader.items(&root.deepest(&["experiments"]), EXAMPLE);
    let unsalted = std::iter::zip(items, read).filter(|(_, it)| it.salt.is_none());
    for (field, experiment) in unsalted {
        let what = if has("keys") {
            "has no `salt`: if the first of `keys` changes, clients change their arms"
        } else {
            "has no `salt`: each start and each replica assigns clients to other arms"
        };
        let name = serde_json::Value::from(experiment.experiment.name());
        let fix = format!("add `salt: {name}`, or any other text");
        reader.note(&field, what, fix);
    }
}

impl PartialExperiment {
    fn finish(self, reader: &mut Reader<'_>, item: &Located<'_>) -> Option<ExperimentConfig> {
        if !matches!(item.node.value, Value::Table(_)) {
            return None;
        }
        let fix = "add `arms: {standard: 50, verbose: 50}`: variants with their weights, the control first";
        let name = ("name", "add `name: words`, any text; reports show it");
        reader.require(item, &[name, ("arms", fix)]);
        match Experiment::new(&self.name?, self.arms) {
            Ok(experiment) => Some(ExperimentConfig {
                experiment,
                salt: self.salt,
                opt_in: self.opt_in,
                opt_out: self.opt_out,
                kind: self.kind,
                metric: self.metric.unwrap_or(Metric::Failed),
                effect: f64::from(self.effect) / 100.0,
            }),
            Err(error) if item.keys().contains(&"arms") => {
                reader.refuse(&item.deepest(&["arms"]), &error);
                None
            }
            Err(_) => None,
        }
    }
}

fn read_arms(reader: &mut Reader<'_>, field: &Located<'_>, partial: &mut PartialExperiment) {
    let entries = reader.table(field, "{standard: 50, verbose: 50}");
    for entry in entries.unwrap_or_default() {
        let member = field.member(entry);
        match entry.key.parse::<VariantId>() {
            Ok(id) => partial.named.push(Named {
                at: entry.at,
                path: member.path.clone(),
                written: entry.key.clone(),
                value: id,
            }),
            Err(error) => {
                reader.refuse(&member, &error);
                continue;
            }
        }
        let mut weight = 0;
        reader.number(&member, 0..=MAX_WEIGHT, &mut weight);
        partial.arms.push(Arm {
            variant: entry.key.clone(),
            weight,
        });
    }
}

const METRICS: &[(&str, Metric)] = &[
    (Metric::Failed.name(), Metric::Failed),
    (Metric::InvalidArguments.name(), Metric::InvalidArguments),
    (Metric::Repaired.name(), Metric::Repaired),
    (Metric::Duration.name(), Metric::Duration),
    (Metric::Tokens.name(), Metric::Tokens),
    (Metric::Calls.name(), Metric::Calls),
];

/// The keys of one entry.
const SETTINGS: &[KeySpec<PartialExperiment>] = keys![
    /// its name in reports, and a part of what assigns clients to arms; required
    "name" => Scalar(|partial| &mut partial.name),
    /// the variants that are compared, each with its weight, the control first: `{standard: 50, verbose: 50}`; required
    "arms" => Other(
        |schema| {
            let weight = schema.count(0..=MAX_WEIGHT);
            schema.named(schema_builder::ANYTHING, &weight)
        },
        read_arms,
    ),
    /// text that assigns clients to arms, together with `name`; the same on all replicas. Without it, clients change
    /// their arms when the first of `keys` changes; without `keys`, at each start
    "salt" = "the first of `keys`" => Scalar(|partial| &mut partial.salt),
    /// the hint by which a client takes part, with the value `true` or the experiment's name. By default, everybody
    /// takes part if all arms are stable, else clients with the hint `status: experimental`
    "opt-in" => Scalar(|partial| &mut partial.opt_in),
    /// the hint by which a client stays out, with the value `true`, the experiment's name or its `kind`
    "opt-out" => Scalar(|partial| &mut partial.opt_out),
    /// a word for what clients may want to stay out of, such as `latency-sensitive`
    "kind" => Scalar(|partial| &mut partial.kind),
    /// what decides: the share of calls that `failed`, had `invalid-arguments` or were `repaired`, the mean `duration`,
    /// the mean `tokens` of a result, or the `calls` of a client
    "metric" = "failed" => choice!(METRICS, |partial| &mut partial.metric),
    /// the difference worth finding, in percent: of shares in percentage points, of other metrics as a part of the
    /// control's value. A smaller one needs more clients
    "effect" = "5" => Number(1..=100, |partial| &mut partial.effect),
];

/// The schema of the list.
pub(super) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let experiment = schema.table("an experiment", &[SETTINGS]);
    let experiment = schema.with_required(experiment, &["name", "arms"]);
    schema.list(&experiment)
}
