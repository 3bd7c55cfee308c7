//! The settings of a variant.

use mcp_vary::feature::Features;
use mcp_vary::variant::Status;
use mcp_vary_catalog::variant_config::DEFAULT_SEARCH_ABOVE;
use mcp_vary_view::{ArgumentCheck, Description, Dialect, ResultFields, SchemaStyle};
use serde_json::json;

use super::deprecation::{DEPRECATION, Deprecation};
use super::draft::PartialVariant;
use super::{on_demand, overrides, selection};
use crate::key_spec::{KeySpec, ValueKind};
use crate::reader::{Located, Reader};
use crate::schema_builder::SchemaBuilder;

pub(super) const SETTINGS: &[KeySpec<PartialVariant>] = &[
    KeySpec {
        key: "from",
        about: "another variant, or one of the four, whose settings this one inherits. Your settings replace \
the inherited ones; overrides are merged, item by item and argument by argument. Without it: the one of the four \
that has the same name, otherwise everything",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::variant_id, |reader, field, draft| {
            draft.from = reader.word(field)
        }),
    },
    KeySpec {
        key: "description",
        about: "for people and models that choose: what it is good for, and what not. Without it, Vary describes what the \
variant shows, such as `Some of the tools: git_*.`",
        default: "",
        takes: ValueKind::Scalar(|draft| &mut draft.description),
    },
    KeySpec {
        key: "hints",
        about: "what it is made for, for ranking: `useCase`, `contextSize`, `modelFamily` and others. Without \
it: what the variant of `from` is made for; nothing, where there is no `from`",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::named_strings, |reader, field, draft| {
            draft.hints = Some(reader.named_strings(field))
        }),
    },
    KeySpec {
        key: "status",
        about: "`stable`, `experimental` or `deprecated`; at least one variant is stable",
        default: "stable",
        takes: ValueKind::Other(
            |schema| schema.choice(STATUSES),
            |reader, field, draft| draft.status = choice(reader, field, STATUSES),
        ),
    },
    KeySpec {
        key: "deprecation",
        about: "how to move on",
        default: "",
        takes: ValueKind::Other(
            |schema| {
                let mut deprecation = schema.table(&[DEPRECATION]);
                deprecation["required"] = json!(["message"]);
                deprecation
            },
            |reader, field, draft| {
                let mut info = Deprecation::default();
                reader.settings(
                    field,
                    &[DEPRECATION],
                    &mut info,
                    "{message: ..., replacement: ...}",
                );
                draft.deprecation = info.finish(reader, field);
            },
        ),
    },
    KeySpec {
        key: "priority",
        about: "decides between variants of equal score; the lower comes first",
        default: "0",
        takes: ValueKind::Other(
            |schema| schema.count(0..=1000),
            |reader, field, draft| {
                let mut priority = 0;
                reader.count(field, 0..=1000, &mut priority);
                draft.priority = u32::try_from(priority).ok();
            },
        ),
    },
    KeySpec {
        key: "tools",
        about: "which tools it shows: a list of patterns and conditions, one of which must hold, or \
`include` and `exclude`, each such a list. All without it",
        default: "",
        takes: ValueKind::Other(selection::shape, |reader, field, draft| {
            draft.tools = Some(selection::read(reader, field))
        }),
    },
    KeySpec {
        key: "resources",
        about: "which resources and templates, likewise, by URI",
        default: "",
        takes: ValueKind::Other(selection::shape, |reader, field, draft| {
            draft.resources = Some(selection::read(reader, field))
        }),
    },
    KeySpec {
        key: "prompts",
        about: "which prompts, likewise",
        default: "",
        takes: ValueKind::Other(selection::shape, |reader, field, draft| {
            draft.prompts = Some(selection::read(reader, field))
        }),
    },
    KeySpec {
        key: "descriptions",
        about: "`full`, or `first-sentence`",
        default: "full",
        takes: ValueKind::Other(
            |schema| schema.choice(DESCRIPTIONS),
            |reader, field, draft| draft.descriptions = choice(reader, field, DESCRIPTIONS),
        ),
    },
    KeySpec {
        key: "schemas",
        about: "`full`, or `compact`: what decides which arguments are accepted, and what callers need of the prose. `on-demand`: only the \
names and types of arguments, and first sentences of descriptions; `describe_tools` has the rest, and calls are \
checked. `on-demand-bare`: the names are in the description. Not with a `dialect`",
        default: "full",
        takes: ValueKind::Other(
            |schema| schema.choice(SCHEMAS),
            |reader, field, draft| draft.schemas = choice(reader, field, SCHEMAS),
        ),
    },
    KeySpec {
        key: "keep-schemas",
        about: "with `schemas: on-demand`: the tools whose compact schemas are listed all the same, a list of patterns and \
conditions. Those that declare `destructiveHint: true` or have a user interface are among them",
        default: "",
        takes: ValueKind::Other(selection::some_rules_shape, |reader, field, draft| {
            draft.keep_schemas = Some(on_demand::keep_schemas(reader, field))
        }),
    },
    KeySpec {
        key: "check",
        about: "with `schemas: on-demand`: `on` answers calls that do not fit the server's own schema, with what is wrong \
and the schema, and does not send them. `types-off` accepts a text where the number, boolean or `null` that it spells \
is; `off` sends everything",
        default: "on",
        takes: ValueKind::Other(
            |schema| schema.choice(CHECKS),
            |reader, field, draft| draft.check = choice(reader, field, CHECKS),
        ),
    },
    KeySpec {
        key: "search-above",
        about: "with `schemas: on-demand`: clients also get `search_tools` if there are more tools than this",
        default: "300",
        takes: ValueKind::Other(
            |schema| schema.count(SEARCH_ABOVE),
            |reader, field, draft| {
                let mut tools = DEFAULT_SEARCH_ABOVE;
                reader.count(field, SEARCH_ABOVE, &mut tools);
                draft.search_above = Some(tools);
            },
        ),
    },
    KeySpec {
        key: "dialect",
        about: "`gemini`, `openai-strict`: keywords that those models refuse are rewritten or taken out. \
A call's arguments are held against the server's own schema before they go on",
        default: "none",
        takes: ValueKind::Other(
            |schema| schema.choice(DIALECTS),
            |reader, field, draft| draft.dialect = choice(reader, field, DIALECTS),
        ),
    },
    KeySpec {
        key: "result",
        about: "which field of a tool's result clients get: `both`, `content`, `structured`. Images, \
links and errors stay, and so do the data of a user interface; `content` lists no `outputSchema`",
        default: "both",
        takes: ValueKind::Other(
            |schema| schema.choice(RESULTS),
            |reader, field, draft| draft.result = choice(reader, field, RESULTS),
        ),
    },
    KeySpec {
        key: "features",
        about: "the feature tags that clients are taken to have declared that declare none, such as \
`[human, format=markdown]`",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::strings, |reader, field, draft| {
            draft.features = Some(features(reader, field))
        }),
    },
    KeySpec {
        key: "overrides",
        about: "what it makes of single `tools`, `prompts` and `resources`",
        default: "",
        takes: ValueKind::Other(overrides::shape, |reader, field, draft| {
            overrides::read(reader, field, &mut draft.overrides)
        }),
    },
];

const STATUSES: &[(&str, Status)] = &[
    ("stable", Status::Stable),
    ("experimental", Status::Experimental),
    ("deprecated", Status::Deprecated),
];

const DESCRIPTIONS: &[(&str, Description)] = &[
    ("full", Description::Full),
    ("first-sentence", Description::FirstSentence),
];

const SCHEMAS: &[(&str, SchemaStyle)] = &[
    ("full", SchemaStyle::Full),
    ("compact", SchemaStyle::Compact),
    ("on-demand", SchemaStyle::OnDemand),
    ("on-demand-bare", SchemaStyle::OnDemandBare),
];

const CHECKS: &[(&str, ArgumentCheck)] = &[
    ("on", ArgumentCheck::On),
    ("types-off", ArgumentCheck::TypesOff),
    ("off", ArgumentCheck::Off),
];

/// The values of `search-above`.
const SEARCH_ABOVE: std::ops::RangeInclusive<usize> = 0..=100_000;

pub(crate) const DIALECTS: &[(&str, Option<Dialect>)] = &[
    ("none", None),
    ("gemini", Some(Dialect::Gemini)),
    ("openai-strict", Some(Dialect::OpenaiStrict)),
];

pub(crate) const RESULTS: &[(&str, ResultFields)] = &[
    ("both", ResultFields::Both),
    ("content", ResultFields::Content),
    ("structured", ResultFields::Structured),
];

/// Reads a list of feature tags, and reports invalid tags.
pub(crate) fn features(reader: &mut Reader<'_>, field: &Located<'_>) -> Features {
    let mut tags = Vec::new();
    for item in reader.list(field) {
        let Some(tag) = reader.word(&item) else {
            continue;
        };
        let (_, ignored) = Features::from_tags([tag.as_str()]);
        for entry in ignored.entries() {
            let fix = "write tags such as `human` or `format=markdown`";
            reader.report(&item, format!("is not a tag: {}", entry.reason), fix);
        }
        tags.push(tag);
    }
    let (features, _) = Features::from_tags(tags.iter().map(String::as_str));
    features
}

/// Reads one of several words. Reports other words and returns `None`.
pub(crate) fn choice<T: Copy>(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    choices: &[(&str, T)],
) -> Option<T> {
    let mut chosen = choices.first()?.1;
    let before = reader.diagnostics.len();
    reader.choice(field, choices, &mut chosen);
    (reader.diagnostics.len() == before).then_some(chosen)
}
