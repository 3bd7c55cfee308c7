//! `resources`: how resources are told.

use std::sync::Arc;

use mcp_vary::predicate::Predicate;
use mcp_vary::shape::{MediaType, Rendering};
use mcp_vary::view::Selection;
use serde_json::json;

use super::mistake::Mistakes;
use super::reader::{Field, Reader};
use super::results::{listed, predicate, section, template};
use super::schema::Schema;
use super::setting::{Setting, Takes};
use super::tree::Value;
use super::variants::selection;
use crate::results::{Failures, ResourceRule, Template, ToldResource};

const EXAMPLE: &str = "[{uris: [\"map://*\"], as: geo-markdown}]";

/// How resources are told: the rules of a configuration's section `resources`.
///
/// # Examples
///
/// ```
/// use mcp_vary_gateway::config::ResourceRules;
///
/// let rules = ResourceRules::read(r#"
///   - {uris: ["map://*"], as: geo-markdown}
///   - {uris: ["map://*"], when: agent & mcp-capable, as: served}
///   - {uris: ["status://*"], template: "All of {{ value.services | length }} run.", type: text/plain}
/// "#);
/// assert!(rules.is_ok());
///
/// // Nobody could ask for it.
/// assert!(ResourceRules::read("- {as: served}").is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct ResourceRules(pub(crate) Arc<[ResourceRule]>);

impl ResourceRules {
    /// Reads rules from YAML or JSON, as they stand in a configuration under `resources`.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with them, at once.
    pub fn read(text: &str) -> Result<Self, Mistakes> {
        section("resources", text, read)
    }
}

/// Reads the list of rules.
pub(super) fn read(reader: &mut Reader<'_>, field: &Field<'_>) -> ResourceRules {
    let mut rules = Vec::new();
    for item in listed(reader, field, EXAMPLE) {
        let mut draft = Draft::default();
        reader.settings(
            &item,
            &[SETTINGS],
            &mut draft,
            "{uris: [...], as: markdown}",
        );
        if matches!(item.node.value, Value::Table(_)) {
            rules.extend(draft.rule(reader, &item));
        }
    }
    ResourceRules(rules.into())
}

/// What may stand under `resources`.
pub(super) fn shape(schema: &mut Schema) -> serde_json::Value {
    let mut rule = schema.table(&[SETTINGS]);
    rule["oneOf"] = json!([
        {"required": ["as"], "not": {"required": ["type"]}},
        {"required": ["template", "type"]},
    ]);
    rule["anyOf"] = json!([
        {"required": ["when"]},
        {"properties": {"as": {"not": {"const": "served"}}}},
    ]);
    schema.list(&rule)
}

/// A rule while it is read.
#[derive(Default)]
struct Draft {
    uris: Selection,
    when: Option<Predicate>,
    told: Option<As>,
    template: Option<Template>,
    media_type: Option<MediaType>,
    /// Which keys were given, whatever they were worth.
    says: Says,
}

#[derive(Default)]
struct Says {
    told: bool,
    template: bool,
    media_type: bool,
}

#[derive(Clone, Copy)]
enum As {
    Served,
    Rendered(Rendering),
}

impl Draft {
    fn rule(self, reader: &mut Reader<'_>, field: &Field<'_>) -> Option<ResourceRule> {
        let told = match (&self.says, self.told, self.template, self.media_type) {
            (
                Says {
                    told: false,
                    template: false,
                    ..
                },
                ..,
            ) => {
                reader.wrong(
                    field,
                    "says nothing of how",
                    "add `as`, or `template` and `type`",
                );
                return None;
            }
            (
                Says {
                    told: true,
                    template: true,
                    ..
                }
                | Says {
                    told: true,
                    media_type: true,
                    ..
                },
                ..,
            ) => {
                let fix = "leave `as` out, or `template` and `type`";
                reader.wrong(field, "is told in two ways", fix);
                return None;
            }
            (
                Says {
                    template: true,
                    media_type: false,
                    ..
                },
                ..,
            ) => {
                let fix = "add `type`, such as `text/markdown`";
                reader.wrong(field, "does not say what its `template` makes", fix);
                return None;
            }
            (_, Some(As::Served), ..) if self.when.is_none() => {
                let fix = "add `when`: without it everybody gets what is served";
                reader.wrong(field, "is for nobody", fix);
                return None;
            }
            (_, Some(As::Served), ..) => ToldResource::AsServed,
            (_, Some(As::Rendered(rendering)), ..) => ToldResource::Rendered(rendering),
            (_, None, Some(template), Some(media_type)) => {
                if self.when.is_none() && media_type.format().is_none() {
                    let fix =
                        "add `when`, or write `text/markdown`, `text/plain` or `application/json`";
                    reader.wrong(field, "has a `type` that no client can ask for", fix);
                    return None;
                }
                ToldResource::Words(template, media_type)
            }
            _ => return None,
        };
        Some(ResourceRule {
            uris: self.uris,
            when: self.when,
            told,
            failures: Failures::default(),
        })
    }
}

const AS: &[(&str, As)] = &[
    ("served", As::Served),
    ("markdown", As::Rendered(Rendering::Markdown)),
    ("text", As::Rendered(Rendering::Text)),
    ("geo-markdown", As::Rendered(Rendering::GeoMarkdown)),
    ("geo-text", As::Rendered(Rendering::GeoText)),
];

const SETTINGS: &[Setting<Draft>] = &[
    Setting {
        key: "uris",
        about: "the resources that it is about, by URI: a list of patterns and conditions, or `include` and `exclude`. All without it",
        default: "",
        takes: Takes::Other(selection::shape, |reader, field, draft| {
            draft.uris = selection::read(reader, field)
        }),
    },
    Setting {
        key: "when",
        about: "the clients that it is for, whatever format they ask for: a condition over their feature tags. Without it: those who ask for what it makes",
        default: "",
        takes: Takes::Other(Schema::word, |reader, field, draft| {
            draft.when = predicate(reader, field)
        }),
    },
    Setting {
        key: "as",
        about: "`markdown`, `text`: a resource in JSON rendered so. `geo-markdown`, `geo-text`: likewise, and GeoJSON as places and distances. `served`: as the server has it, for clients that meet `when`",
        default: "",
        takes: Takes::Other(
            |schema| schema.choice(AS),
            |reader, field, draft| {
                draft.says.told = true;
                let mut told = As::Served;
                let before = reader.mistakes.len();
                reader.choice(field, AS, &mut told);
                draft.told = (reader.mistakes.len() == before).then_some(told);
            },
        ),
    },
    Setting {
        key: "template",
        about: "a template of the text instead",
        default: "",
        takes: Takes::Other(Schema::text, |reader, field, draft| {
            draft.says.template = true;
            draft.template = template(reader, field);
        }),
    },
    Setting {
        key: "type",
        about: "the media type of what `template` makes, such as `text/markdown`",
        default: "",
        takes: Takes::Other(
            |_| json!({"type": "string", "pattern": "^[^/\\s]+/[^/\\s]+"}),
            |reader, field, draft| {
                draft.says.media_type = true;
                let Some(word) = reader.word(field) else {
                    return;
                };
                match word.parse() {
                    Ok(media_type) => draft.media_type = Some(media_type),
                    Err(_) => {
                        reader.wrong(field, "is no media type", "write one like `text/markdown`")
                    }
                }
            },
        ),
    },
];
