//! `ranking`: the weights for ranking variants by a client's hints, and the model that ranks by its description.

pub(super) mod model;

use std::collections::BTreeMap;

use mcp_vary::rank::{Weight, Weights};
use mcp_vary::variant::VariantId;
use mcp_vary_gateway::settings::model_ranking::ModelRankingConfig;

use super::reader::{Located, Reader, did_you_mean, quoted};
use super::schema_builder::{self, SchemaBuilder};
use crate::diagnostic::{Diagnostic, Position, nearest};
use crate::document::Value;
use crate::key_spec::{KeySpec, ValueKind};

pub(super) const EXAMPLE: &str = "{weights: {useCase: 80, region: {first: 40, step: 5}}}";

/// A hint that has a weight: the position, the path of the key, and the hint.
#[derive(Debug)]
pub(super) struct Weighted {
    at: Position,
    path: String,
    key: String,
}

/// The section while it is read.
pub(super) struct PartialRanking {
    pub(super) weights: Weights,
    pub(super) advertised: usize,
    pub(super) model: Option<ModelRankingConfig>,
    pub(super) weighted: Vec<Weighted>,
}

impl PartialRanking {
    /// A draft that starts from these defaults.
    pub(super) fn of(weights: &Weights, advertised: usize) -> Self {
        Self {
            weights: weights.clone(),
            advertised,
            model: None,
            weighted: Vec::new(),
        }
    }
}

pub(super) const SETTINGS: &[KeySpec<PartialRanking>] = &[
    KeySpec {
        key: "weights",
        about: "points by hint. Without it: `modelFamily` 100, `useCase` 80 and `accessLevel` 80, each with a step of \
10, `contextSize` 40 with a step of 5. Others count nothing until they are given a weight, such as \
`renderingCapabilities` and `languageOptimization`; 0 turns one off",
        default: "",
        takes: ValueKind::Other(shape_of_weights, read_weights),
    },
    KeySpec {
        key: "any",
        about: "for a variant with `modelFamily: any`, where the client names a family; a variant of the family itself \
always gets more",
        default: "50",
        takes: ValueKind::Number(0..=MOST, |draft| &mut draft.weights.any),
    },
    KeySpec {
        key: "stable",
        about: "for a stable variant",
        default: "20",
        takes: ValueKind::Number(0..=MOST, |draft| &mut draft.weights.stable),
    },
    KeySpec {
        key: "deprecated",
        about: "for a deprecated variant; 0 or less",
        default: "-100",
        takes: ValueKind::Number(-MOST..=0, |draft| &mut draft.weights.deprecated),
    },
    KeySpec {
        key: "advertised",
        about: "how many variants are advertised to clients, 2 to 5; clients can still select the others by name",
        default: "5",
        takes: ValueKind::Count(2..=5, |draft| &mut draft.advertised),
    },
    KeySpec {
        key: "model",
        about: "a language model that orders the variants for clients that describe themselves, in the background",
        default: "",
        takes: ValueKind::Other(model::shape, |reader, field, draft| {
            draft.model = model::read(reader, field);
        }),
    },
];

fn shape_of_weights(schema: &mut SchemaBuilder) -> serde_json::Value {
    let weight = [schema.number(0..=MOST), schema.table(&[WEIGHT])];
    schema.named(
        schema_builder::ANYTHING,
        &serde_json::json!({ "anyOf": weight }),
    )
}

fn read_weights(reader: &mut Reader<'_>, field: &Located<'_>, draft: &mut PartialRanking) {
    let entries = reader.table(field, "{useCase: 80, region: {first: 40, step: 5}}");
    for entry in entries.unwrap_or_default() {
        let member = field.member(entry);
        let known = draft.weights.hints.get(&entry.key).copied();
        let mut weight = DraftWeight {
            first: known.map(|weight| weight.first),
            step: known.map_or(STEP, |weight| weight.step),
        };
        if let Value::Table(_) = member.node.value {
            reader.settings(&member, &[WEIGHT], &mut weight, "{first: 40, step: 5}");
        } else {
            weight.read_first(reader, &member);
        }
        let Some(first) = weight.first else {
            if !reader.was_meant(&member, &["first"]) {
                reader.report(&member, "has no points", "add `first: 40`");
            }
            continue;
        };
        let step = weight.step;
        let hints = &mut draft.weights.hints;
        hints.insert(entry.key.clone(), Weight { first, step });
        draft.weighted.push(Weighted {
            at: entry.at,
            path: member.path,
            key: entry.key.clone(),
        });
    }
}

/// Adds a note for each weight that has no effect because no variant declares the hint.
pub(super) fn check(
    reader: &mut Reader<'_>,
    weighted: &[Weighted],
    hints: &BTreeMap<String, VariantId>,
) {
    let known: Vec<_> = hints.keys().map(String::as_str).collect();
    for weighted in weighted.iter().filter(|it| !hints.contains_key(&it.key)) {
        let note = Diagnostic::new(
            weighted.at,
            weighted.path.as_str(),
            "counts nothing: no variant has such a hint",
        );
        let fix = match nearest(&weighted.key, &known) {
            Some(meant) => did_you_mean(meant),
            None if known.is_empty() => "give one `hints`".to_owned(),
            None => format!("there are {}", quoted(&known)),
        };
        reader.notes.push(note.with_fix(fix));
    }
}

/// Adds a note for each hint that variants declare but that has no weight, so that it does not affect the ranking.
/// There is one note for each key, at the first variant in the file `root` that has it.
pub(super) fn check_hints(
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
        let note = Diagnostic::new(
            field.node.at,
            field.path,
            "does not count in the ranking: the hint has no weight",
        );
        let fix = format!("add `ranking: {{weights: {{{key}: 60}}}}`");
        reader.notes.push(note.with_fix(fix));
    }
}

/// A weight while it is read.
struct DraftWeight {
    first: Option<i32>,
    step: i32,
}

impl DraftWeight {
    fn read_first(&mut self, reader: &mut Reader<'_>, field: &Located<'_>) {
        // An invalid weight is reported, but does not count as missing.
        let mut first = self.first.unwrap_or(0);
        reader.number(field, 0..=MOST, &mut first);
        self.first = Some(first);
    }
}

const WEIGHT: &[KeySpec<DraftWeight>] = &[
    KeySpec {
        key: "first",
        about: "for the client's first preference, 0 to 1000",
        default: "",
        takes: ValueKind::Other(
            |schema| schema.number(0..=MOST),
            |reader, field, weight| weight.read_first(reader, field),
        ),
    },
    KeySpec {
        key: "step",
        about: "less for each preference after it; 10 for hints that have no weight without this section",
        default: "",
        takes: ValueKind::Number(0..=MOST, |weight| &mut weight.step),
    },
];

/// The maximum number of points.
const MOST: i32 = 1000;

/// The default reduction of the weight for each preference after the first.
const STEP: i32 = 10;
