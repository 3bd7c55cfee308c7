//! `ranking`: the weights for ranking variants by a client's hints, and the model that ranks by its description.

pub(super) mod model;

use std::collections::BTreeMap;

use mcp_vary::rank::{Weight, Weights};
use mcp_vary::variant::VariantId;
use mcp_vary_settings::config::Config;

use super::reader::{Located, Reader, did_you_mean, quoted};
use super::schema_builder::{self, SchemaBuilder};
use crate::diagnostic::nearest;
use crate::document::Value;
use crate::key_spec::ValueKind::{Count, Number, Other};
use crate::key_spec::{KeySpec, keys, value};

pub(super) const EXAMPLE: &str = "{weights: {useCase: 80, region: {first: 40, step: 5}}}";

pub(super) const SETTINGS: &[KeySpec<Config>] = keys![
    /// points by hint. Without it: `modelFamily` 100, `useCase` 80 and `accessLevel` 80, each with a step of 10,
    /// `contextSize` 40 with a step of 5. Others count nothing until they are given a weight, such as
    /// `renderingCapabilities` and `languageOptimization`; 0 turns one off
    "weights" => Other(shape_of_weights, read_weights),
    /// for a variant with `modelFamily: any`, where the client names a family; a variant of the family itself always
    /// gets more
    "any" = "50" => Number(0..=MOST, |config| &mut config.weights.any),
    /// for a stable variant
    "stable" = "20" => Number(0..=MOST, |config| &mut config.weights.stable),
    /// for a deprecated variant; 0 or less
    "deprecated" = "-100" => Number(-MOST..=0, |config| &mut config.weights.deprecated),
    /// how many variants are advertised to clients, 2 to 5; clients can still select the others by name
    "advertised" = "5" => Count(2..=5, |config| &mut config.advertised),
    /// a language model that [orders the variants](#a-model-that-ranks) for clients that describe themselves, in the
    /// background
    "model" => value!(model::shape, model::read, |config| config.model_ranking),
];

fn shape_of_weights(schema: &mut SchemaBuilder) -> serde_json::Value {
    let weight = [schema.number(0..=MOST), schema.table("a weight", &[WEIGHT])];
    schema.named(
        schema_builder::ANYTHING,
        &serde_json::json!({ "anyOf": weight }),
    )
}

fn read_weights(reader: &mut Reader<'_>, field: &Located<'_>, config: &mut Config) {
    let entries = reader.table(field, "{useCase: 80, region: {first: 40, step: 5}}");
    for entry in entries.unwrap_or_default() {
        let member = field.member(entry);
        let default = config.weights.hints.get(&entry.key).copied();
        let mut weight = default.unwrap_or(Weight {
            first: 0,
            step: STEP,
        });
        if let Value::Table(_) = member.node.value {
            reader.settings(&member, &[WEIGHT], &mut weight, "{first: 40, step: 5}");
            let has_points = default.is_some() || member.keys().contains(&"first");
            if !has_points && !reader.was_meant(&member, &["first"]) {
                reader.report(&member, "has no points", "add `first: 40`");
            }
        } else {
            reader.number(&member, 0..=MOST, &mut weight.first);
        }
        config.weights.hints.insert(entry.key.clone(), weight);
    }
}

/// Adds a note for each weight in the file `root` that no variant has a hint for, and for each hint that has no weight.
pub(super) fn check(
    reader: &mut Reader<'_>,
    root: &Located<'_>,
    weights: &Weights,
    hints: &BTreeMap<String, VariantId>,
) {
    let known: Vec<_> = hints.keys().map(String::as_str).collect();
    let field = root.deepest(&["ranking", "weights"]);
    let is_there = field.path == "ranking.weights";
    let entries = field.node.entries().iter();
    for entry in entries.filter(|entry| is_there && !hints.contains_key(&entry.key)) {
        let what = "counts nothing: no variant has such a hint";
        let fix = match nearest(&entry.key, &known) {
            Some(meant) => did_you_mean(meant),
            None if known.is_empty() => "give one `hints`".to_owned(),
            None => format!("there are {}", quoted(&known)),
        };
        reader.note_at(entry.at, &field.member(entry).path, what, fix);
    }
    check_hints(reader, root, weights, hints);
}

/// Adds a note for each hint that variants declare but that has no weight, so that it does not affect the ranking.
/// There is one note for each key, at the first variant in the file `root` that has it.
fn check_hints(
    reader: &mut Reader<'_>,
    root: &Located<'_>,
    weights: &Weights,
    hints: &BTreeMap<String, VariantId>,
) {
    let unweighted = hints
        .iter()
        .filter(|(key, _)| !weights.hints.contains_key(*key));
    for (key, variant) in unweighted {
        let keys = ["variants", variant.as_str(), "hints", key];
        let field = root.deepest(&keys);
        // The variant inherits this hint, so it has no position here.
        if !field.path.ends_with(key.as_str()) {
            continue;
        }
        let what = "does not count in the ranking: the hint has no weight";
        let fix = format!("add `ranking: {{weights: {{{key}: 60}}}}`");
        reader.note(&field, what, fix);
    }
}

const WEIGHT: &[KeySpec<Weight>] = keys![
    /// for the client's first preference, 0 to 1000
    "first" => Number(0..=MOST, |weight| &mut weight.first),
    /// less for each preference after it; 10 for hints that have no weight without this section
    "step" => Number(0..=MOST, |weight| &mut weight.step),
];

/// The maximum number of points.
const MOST: i32 = 1000;

/// The default reduction of the weight for each preference after the first.
const STEP: i32 = 10;
