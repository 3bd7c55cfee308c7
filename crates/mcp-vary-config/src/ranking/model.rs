//! `ranking.model`: a language model that ranks variants for clients that describe themselves.

use mcp_vary_gateway::settings::config::Config;
use mcp_vary_gateway::settings::model_ranking::ModelRankingConfig;
use mcp_vary_rates::Rate;

use crate::diagnostic::Diagnostic;
use crate::document::Value;
use crate::key_spec::{KeySpec, ValueKind};
use crate::rates;
use crate::reader::{Located, Reader, unusable};
use crate::schema_builder::SchemaBuilder;

const EXAMPLE: &str = "{url: https://models.example.com/v1, name: small, key: \"${MODEL_KEY}\"}";

/// The most requests at a time.
const MOST_IN_FLIGHT: usize = 64;

/// The most answers that are remembered.
const MOST_ANSWERS: usize = 100_000;

/// The section while it is read. A value that the file does not have keeps the default.
struct PartialModel {
    url: Option<ModelRankingConfig>,
    name: Option<String>,
    key: Option<String>,
    /// The defaults, and what the file has instead.
    settings: Option<ModelRankingConfig>,
}

/// Reads the section.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<ModelRankingConfig> {
    let before = reader.diagnostics.len();
    let mut partial = PartialModel {
        url: None,
        name: None,
        key: None,
        settings: ModelRankingConfig::new("https://localhost", "").ok(),
    };
    reader.settings(field, &[SETTINGS], &mut partial, EXAMPLE);
    if matches!(field.node.value, Value::Table(_)) {
        for (key, fix) in [
            (
                "url",
                "add `url: https://host/v1`, the address of the endpoint",
            ),
            ("name", "add `name`, what the endpoint calls the model"),
        ] {
            if !field.keys().contains(&key) && !reader.was_meant(field, &[key]) {
                reader.report(field, format!("has no `{key}`"), fix);
            }
        }
    }
    let model = partial.finish(reader, field)?;
    (reader.diagnostics.len() == before).then_some(model)
}

impl PartialModel {
    fn finish(self, reader: &mut Reader<'_>, field: &Located<'_>) -> Option<ModelRankingConfig> {
        let (url, settings) = (self.url?, self.settings?);
        let mut model = url.with_name(self.name?);
        model.timeout = settings.timeout;
        model.in_flight = settings.in_flight;
        model.cache = settings.cache;
        model.per_principal = settings.per_principal;
        model.in_all = settings.in_all;
        model.anonymous = settings.anonymous;
        match self.key {
            None => Some(model),
            Some(key) => model
                .with_key(&key)
                .map_err(|error| {
                    let (what, fix) = unusable(&error);
                    reader.report(&field.deepest(&["key"]), what, &fix);
                })
                .ok(),
        }
    }
}

/// Notes a model that is never used.
pub(crate) fn check(reader: &mut Reader<'_>, root: &Located<'_>, config: &Config) {
    let Some(model) = &config.model_ranking else {
        return;
    };
    let field = root.deepest(&["ranking", "model"]);
    let mut note = |what: &str, fix: &str| {
        let note = Diagnostic::new(field.node.at, field.path.as_str(), what);
        reader.notes.push(note.with_fix(fix));
    };
    if !config.variants {
        note("is never used: there are no variants", "leave it out");
    } else if config.authentication.is_none()
        && config.stdio_principal.is_none()
        && !model.anonymous
    {
        note(
            "is never used: all clients are anonymous",
            "add `auth` to the file, or `anonymous: on` here",
        );
    }
}

fn set(partial: &mut PartialModel, set: impl FnOnce(&mut ModelRankingConfig)) {
    if let Some(settings) = &mut partial.settings {
        set(settings);
    }
}

fn read_rate(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    into: fn(&mut ModelRankingConfig) -> &mut Rate,
    partial: &mut PartialModel,
) {
    if let Some(rate) = rates::read_rate(reader, field) {
        set(partial, |settings| *into(settings) = rate);
    }
}

/// The keys of the section.
const SETTINGS: &[KeySpec<PartialModel>] = &[
    KeySpec {
        key: "url",
        about: "the address of an OpenAI-compatible endpoint, to which `/chat/completions` is added: `https://`, or on this machine; required",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::url, |reader, field, partial| {
            partial.url = reader.value(field, |url| ModelRankingConfig::new(url, ""));
        }),
    },
    KeySpec {
        key: "name",
        about: "what the endpoint calls the model; required",
        default: "",
        takes: ValueKind::Scalar(|partial| &mut partial.name),
    },
    KeySpec {
        key: "key",
        about: "the key of the endpoint, sent as a bearer token: `${VARIABLE}`, `${file:PATH}` or `${credential:NAME}`",
        default: "",
        takes: ValueKind::Scalar(|partial| &mut partial.key),
    },
    KeySpec {
        key: "timeout",
        about: "the time in which an answer must arrive; no client waits for it",
        default: "10s",
        takes: ValueKind::Other(SchemaBuilder::duration, |reader, field, partial| {
            set(partial, |settings| {
                reader.duration(field, &mut settings.timeout);
            });
        }),
    },
    KeySpec {
        key: "in-flight",
        about: "the most requests at a time",
        default: "2",
        takes: ValueKind::Other(
            |schema| schema.count(1..=MOST_IN_FLIGHT),
            |reader, field, partial| {
                set(partial, |settings| {
                    reader.count(field, 1..=MOST_IN_FLIGHT, &mut settings.in_flight);
                });
            },
        ),
    },
    KeySpec {
        key: "per-principal",
        about: "how often the model is asked for the clients of one principal",
        default: "10/h",
        takes: ValueKind::Other(rates::rate_shape, |reader, field, partial| {
            read_rate(
                reader,
                field,
                |settings| &mut settings.per_principal,
                partial,
            );
        }),
    },
    KeySpec {
        key: "in-all",
        about: "how often it is asked for all clients together",
        default: "600/h",
        takes: ValueKind::Other(rates::rate_shape, |reader, field, partial| {
            read_rate(reader, field, |settings| &mut settings.in_all, partial);
        }),
    },
    KeySpec {
        key: "cache",
        about: "the most answers that are remembered, each for a day; they are in memory, so a restart forgets them",
        default: "10000",
        takes: ValueKind::Other(
            |schema| schema.count(1..=MOST_ANSWERS),
            |reader, field, partial| {
                set(partial, |settings| {
                    reader.count(field, 1..=MOST_ANSWERS, &mut settings.cache);
                });
            },
        ),
    },
    KeySpec {
        key: "anonymous",
        about: "whether the model is also asked for clients without a principal",
        default: "off",
        takes: ValueKind::Other(SchemaBuilder::switch, |reader, field, partial| {
            set(partial, |settings| {
                reader.switch(field, &mut settings.anonymous);
            });
        }),
    },
];

/// The schema of the section.
pub(super) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let model = schema.table(&[SETTINGS]);
    schema.with_required(model, &["url", "name"])
}
