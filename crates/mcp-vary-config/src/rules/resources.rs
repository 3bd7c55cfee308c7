//! `resources`: rules for resources.

use mcp_vary::shape::{MediaType, Rendering};
use mcp_vary_results::rules::ResourceRules;
use mcp_vary_results::{ResourceFormat, ResourceRule, RuleFailures, Template};
use serde_json::json;

use super::{PartialRule, Section, audience, has_key, items, template, variants, when};
use crate::clients::Named;
use crate::diagnostic::Diagnostics;
use crate::key_spec::{KeySpec, choice, keys, value};
use crate::reader::{Located, Reader};
use crate::schema_builder::SchemaBuilder;

/// Reads rules from YAML or JSON, as written under `resources` in a configuration.
///
/// # Errors
///
/// If the rules are invalid. The error lists all problems at once.
///
/// # Examples
///
/// ```
/// use mcp_vary_config::read_resources;
///
/// let rules = read_resources(r#"
///   - {uris: ["map://*"], as: geo-markdown}
///   - {uris: ["map://*"], when: agent & mcp-capable, as: served}
///   - {uris: ["status://*"], template: "All of {{ value.services | length }} run.", type: text/plain}
/// "#);
/// assert!(rules.is_ok());
///
/// // Nobody could ask for it.
/// assert!(read_resources("- {as: served}").is_err());
/// ```
pub fn read_resources(text: &str) -> Result<ResourceRules, Diagnostics> {
    SECTION.read_text(text).map(ResourceRules)
}

const SECTION: Section<ResourceAction, ResourceRule> = Section {
    name: "resources",
    example: "[{uris: [\"map://*\"], as: geo-markdown}]",
    gist: "{uris: [...], as: markdown}",
    keys: KEYS,
    rule: PartialRule::<ResourceAction>::rule,
};

/// Reads the list of rules. Adds the variants that they name to `named`.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    named: &mut Vec<Named>,
) -> ResourceRules {
    ResourceRules(SECTION.read(reader, field, named))
}

/// The schema of `resources`.
pub(crate) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let mut rule = schema.table("a rule of `resources`", &[KEYS]);
    rule["oneOf"] = json!([
        {"required": ["as"], "not": {"required": ["type"]}},
        {"required": ["template", "type"]},
    ]);
    rule["anyOf"] = json!([
        {"required": ["when"]},
        {"required": ["for"], "properties": {"for": {"const": "everyone"}}},
        {"properties": {"as": {"not": {"const": "served"}}}},
    ]);
    schema.list(&rule)
}

/// What a rule does, while it is read.
#[derive(Default)]
struct ResourceAction {
    format: Option<As>,
    template: Option<Template>,
    media_type: Option<MediaType>,
}

#[derive(Clone, Copy)]
enum As {
    Served,
    Rendered(Rendering),
}

impl PartialRule<ResourceAction> {
    fn rule(mut self, reader: &mut Reader<'_>, field: &Located<'_>) -> Option<ResourceRule> {
        match self.format(field) {
            Ok(format) => Some(ResourceRule {
                uris: self.items,
                variants: self.variants,
                when: self.when,
                applies_to_all: self.everyone,
                format: format?,
                failures: RuleFailures::default(),
            }),
            Err((what, fix)) => {
                reader.report(field, what, fix);
                None
            }
        }
    }

    /// The format of the resource; `None` if one of its keys is invalid, which was reported.
    fn format(&mut self, field: &Located<'_>) -> Result<Option<ResourceFormat>, Problem> {
        let has_key = |key| has_key(field, &[key]);
        match (has_key("as"), has_key("template"), has_key("type")) {
            (false, false, _) => Err(("does not say how", "add `as`, or `template` and `type`")),
            (true, false, false) => self.by_name(),
            (false, true, true) => self.by_template(),
            (false, true, false) => Err((
                "does not say what its `template` makes",
                "add `type`, such as `text/markdown`",
            )),
            (true, ..) => Err((
                "is defined in two ways",
                "leave `as` out, or `template` and `type`",
            )),
        }
    }

    /// Whether the rule is for the clients that ask for the format that it makes.
    fn goes_by_format(&self) -> bool {
        self.when.is_none() && !self.everyone
    }

    fn by_name(&self) -> Result<Option<ResourceFormat>, Problem> {
        match self.action.format {
            Some(As::Served) if self.goes_by_format() => Err((
                "applies to no client",
                "add `when`: without it everybody gets what is served",
            )),
            Some(As::Served) => Ok(Some(ResourceFormat::AsServed)),
            Some(As::Rendered(rendering)) => Ok(Some(ResourceFormat::Rendered(rendering))),
            None => Ok(None),
        }
    }

    fn by_template(&mut self) -> Result<Option<ResourceFormat>, Problem> {
        let (Some(template), Some(media_type)) =
            (self.action.template.take(), self.action.media_type.take())
        else {
            return Ok(None);
        };
        if self.goes_by_format() && media_type.format().is_none() {
            return Err((
                "has a `type` that no client can ask for",
                "add `when`, or write `text/markdown`, `text/plain` or `application/json`",
            ));
        }
        Ok(Some(ResourceFormat::Template(template, media_type)))
    }
}

/// An invalid combination of keys in a rule, and the fix.
type Problem = (&'static str, &'static str);

const AS: &[(&str, As)] = &[
    ("served", As::Served),
    ("markdown", As::Rendered(Rendering::Markdown)),
    ("text", As::Rendered(Rendering::Text)),
    ("geo-markdown", As::Rendered(Rendering::GeoMarkdown)),
    ("geo-text", As::Rendered(Rendering::GeoText)),
];

const KEYS: &[KeySpec<PartialRule<ResourceAction>>] = keys![
    /// the resources that it applies to, by URI: a list of patterns and conditions, or `include` and `exclude`. All
    /// without it
    "uris" => items(),
    /// the ids of its variants; all without it
    "variants" => variants(),
    /// a condition over the feature tags of clients, whatever format they ask for. Without it: those who ask for what
    /// the rule makes
    "when" => when(),
    /// `negotiating`: clients that declared features, or whose variant has some. `everyone`: all, whatever format they
    /// ask for
    "for" = "negotiating" => audience(),
    /// `markdown`, `text`: a resource in JSON rendered so. `geo-markdown`, `geo-text`: likewise, and GeoJSON as places
    /// and distances. `served`: as the server has it, for clients that meet `when`
    "as" => choice!(AS, |rule| &mut rule.action.format),
    /// a template of the text instead
    "template" => value!(SchemaBuilder::text, template, |rule| rule.action.template),
    /// the media type of what `template` makes, such as `text/markdown`
    "type" => value!(
        |_| json!({"type": "string", "pattern": "^[^/\\s]+/[^/\\s]+"}),
        Reader::media_type, |rule| rule.action.media_type
    ),
];
