//! The settings of a variant.

use mcp_vary::feature::Features;
use mcp_vary::variant::Status;
use mcp_vary_view::{
    ArgumentCheck, Description, Dialect, ListedArguments, ResultFields, SchemaStyle,
};
use serde_json::json;

use super::deprecation::{DEPRECATION, Deprecation};
use super::draft::PartialVariant;
use super::{on_demand, overrides, selection};
use crate::key_spec::ValueKind::{Other, Scalar};
use crate::key_spec::{KeySpec, choice, count, keys, table, value};
use crate::reader::{Located, Reader};
use crate::schema_builder::SchemaBuilder;

pub(super) const SETTINGS: &[KeySpec<PartialVariant>] = keys![
    /// another variant, or one of the four, whose settings this one inherits. Yours replace them; overrides are merged,
    /// item by item and argument by argument. Without it: the one of the four with the same name, otherwise everything
    "from" => value!(SchemaBuilder::variant_id, Reader::word, |draft| draft.from),
    /// for people and models that choose: what it is good for, and what not. By default Vary describes what it shows,
    /// such as `Some of the tools: git_*.`
    "description" => Scalar(|draft| &mut draft.description),
    /// what it is made for, for [ranking](ranking.md): `useCase`, `contextSize`, `modelFamily` and others. By default
    /// those of `from`
    "hints" => value!(SchemaBuilder::named_strings, Reader::named_strings, |draft| draft.hints),
    /// `stable`, `experimental` or `deprecated`; at least one variant is stable
    "status" = "stable" => choice!(STATUSES, |draft| &mut draft.status),
    /// how to move on
    "deprecation" => Other(
        |schema| {
            let mut deprecation = schema.table("`deprecation`", &[DEPRECATION]);
            deprecation["required"] = json!(["message"]);
            deprecation
        },
        |reader, field, draft| {
            let mut info = Deprecation::default();
            reader.settings(field, &[DEPRECATION], &mut info, "{message: ..., replacement: ...}");
            draft.deprecation = info.finish(reader, field);
        },
    ),
    /// decides between variants of equal score; the lower comes first
    "priority" = "0" => count!(0..=1000_u32, |draft| &mut draft.priority),
    /// the servers whose tools, resources, prompts, skills and instructions it shows, such as `[memory, git]`. All without
    /// it
    "servers" => value!(selection::servers_shape, selection::servers, |draft| draft.servers),
    /// which tools it shows: a list of patterns and conditions, one of which must match, or `include` and `exclude`,
    /// each such a list. All without it
    "tools" => value!(selection::shape, selection::read, |draft| draft.tools),
    /// which resources and templates, likewise, by URI
    "resources" => value!(selection::shape, selection::read, |draft| draft.resources),
    /// which prompts, likewise
    "prompts" => value!(selection::shape, selection::read, |draft| draft.prompts),
    /// which [skills](../extensions.md#skills), likewise, by their paths: `pdf` for `skill://pdf/SKILL.md`. Without it,
    /// those whose URIs `resources` selects
    "skills" => value!(selection::shape, selection::read, |draft| draft.skills),
    /// `full`, or `first-sentence`
    "descriptions" = "full" => choice!(DESCRIPTIONS, |draft| &mut draft.descriptions),
    /// `full`, or `compact`: what decides which arguments are accepted, and of the prose what callers need.
    /// `on-demand`: names and types of arguments, and first sentences; `describe_tools` has the rest, and calls are
    /// checked. `on-demand-bare`: the names are in the description. Not with a `dialect`
    "schemas" = "full" => choice!(SCHEMAS, |draft| &mut draft.schemas),
    /// with `schemas: on-demand`: the tools whose compact schemas are listed, a list of patterns and conditions, such
    /// as `[{destructiveHint: true}]`; also those that have a user interface
    "keep-schemas" => value!(selection::some_rules_shape, on_demand::keep_schemas, |draft| draft.keep_schemas),
    /// with `schemas: on-demand`: `required` lists only the arguments that a tool requires. Calls may give the others
    "arguments" = "all" => choice!(ARGUMENTS, |draft| &mut draft.arguments),
    /// with `schemas: on-demand`: `on` answers calls that do not fit the server's own schema with what is wrong and the
    /// schema, and does not send them. `types-off` accepts a text that spells a number, boolean or `null`; `off` sends
    /// everything
    "check" = "on" => choice!(CHECKS, |draft| &mut draft.check),
    /// with `schemas: on-demand`: clients get `search_tools` if there are more tools than this
    "search-above" = "300" => count!(0..=100_000_usize, |draft| &mut draft.search_above),
    /// `gemini`, `openai-strict`: keywords that those [models refuse](../dialects.md) are rewritten or taken out, and
    /// arguments are checked against the server's own schema
    "dialect" = "none" => choice!(DIALECTS, |draft| &mut draft.dialect),
    /// which field of a tool's result clients get: `both`, `content`, `structured`. Images, links, errors and the data
    /// of a user interface stay; `content` lists no `outputSchema`
    "result" = "both" => choice!(RESULTS, |draft| &mut draft.result),
    /// the feature tags of clients that declare none, such as `[human, format=markdown]`
    "features" => value!(SchemaBuilder::strings, features, |draft| draft.features),
    /// what it makes of single `tools`, `prompts` and `resources`
    "overrides" => table!(
        "`overrides`", &[overrides::SETTINGS], "{tools: {NAME: {description: ...}}}", |draft| &mut draft.overrides
    ),
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

const ARGUMENTS: &[(&str, ListedArguments)] = &[
    ("all", ListedArguments::All),
    ("required", ListedArguments::Required),
];

const CHECKS: &[(&str, ArgumentCheck)] = &[
    ("on", ArgumentCheck::On),
    ("types-off", ArgumentCheck::TypesOff),
    ("off", ArgumentCheck::Off),
];

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
