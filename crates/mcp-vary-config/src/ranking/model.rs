//! `ranking.model`: a language model that ranks variants for clients that describe themselves.

use std::fmt::Display;

use mcp_vary_settings::config::Config;
use mcp_vary_settings::model_ranking::ModelRankingConfig;

use crate::key_spec::ValueKind::{Count, Duration, Other, Switch};
use crate::key_spec::{KeySpec, keys, set};
use crate::rates;
use crate::reader::{Located, Reader};
use crate::schema_builder::SchemaBuilder;

const EXAMPLE: &str = "{url: https://models.example.com/v1, name: small, key: \"${MODEL_KEY}\"}";

/// The most requests at a time.
const MOST_IN_FLIGHT: usize = 64;

/// The most answers that are remembered.
const MOST_ANSWERS: usize = 100_000;

/// Reads the section.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<ModelRankingConfig> {
    let mut model = ModelRankingConfig::new("https://localhost", "").ok()?;
    reader.settings(field, &[SETTINGS], &mut model, EXAMPLE);
    reader.require(
        field,
        &[
            (
                "url",
                "add `url: https://host/v1`, the address of the endpoint",
            ),
            ("name", "add `name`, what the endpoint calls the model"),
        ],
    );
    Some(model)
}

/// Sets what an address or a key changes in the `model`.
fn change<E: Display>(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    model: &mut ModelRankingConfig,
    change: impl Fn(ModelRankingConfig, &str) -> Result<ModelRankingConfig, E>,
) {
    let before = model.clone();
    reader.parse(field, |text| change(before.clone(), text), model);
}

/// Notes a model that is never used.
pub(crate) fn check(reader: &mut Reader<'_>, root: &Located<'_>, config: &Config) {
    let Some(model) = &config.model_ranking else {
        return;
    };
    let field = root.deepest(&["ranking", "model"]);
    let has_principals = config.authentication.is_some() || config.stdio_principal.is_some();
    if !config.variants {
        let what = "is never used: there are no variants";
        reader.note(&field, what, "leave it out");
    } else if !has_principals && !model.anonymous {
        let what = "is never used: all clients are anonymous";
        let fix = "add `auth` to the file, or `anonymous: on` here";
        reader.note(&field, what, fix);
    }
}

/// The keys of the section.
const SETTINGS: &[KeySpec<ModelRankingConfig>] = keys![
    /// the address of an OpenAI-compatible endpoint, to which `/chat/completions` is added: `https://`, or on this
    /// machine; required
    "url" => Other(SchemaBuilder::url, |reader, field, model| {
        change(reader, field, model, ModelRankingConfig::with_url)
    }),
    /// what the endpoint calls the model; required
    "name" => Other(SchemaBuilder::word, |reader, field, model| {
        *model = model.clone().with_name(reader.word(field).unwrap_or_default())
    }),
    /// the key of the endpoint, sent as a bearer token: `${VARIABLE}`, `${file:PATH}` or `${credential:NAME}`
    "key" => Other(SchemaBuilder::word, |reader, field, model| {
        change(reader, field, model, ModelRankingConfig::with_key)
    }),
    /// the time in which an answer must arrive; no client waits for it
    "timeout" = "10s" => Duration(|model| &mut model.timeout),
    /// the most requests at a time
    "in-flight" = "2" => Count(1..=MOST_IN_FLIGHT, |model| &mut model.in_flight),
    /// how often the model is asked for the clients of one principal
    "per-principal" = "10/h" => set!(rates::rate_shape, rates::read_rate, |model| &mut model.per_principal),
    /// how often it is asked for all clients together
    "in-all" = "600/h" => set!(rates::rate_shape, rates::read_rate, |model| &mut model.in_all),
    /// the most answers that are remembered, each for a day; they are in memory, so a restart forgets them
    "cache" = "10000" => Count(1..=MOST_ANSWERS, |model| &mut model.cache),
    /// whether the model is also asked for clients without a principal
    "anonymous" = "off" => Switch(|model| &mut model.anonymous),
];

/// The schema of the section.
pub(super) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let model = schema.table("a model", &[SETTINGS]);
    schema.with_required(model, &["url", "name"])
}
