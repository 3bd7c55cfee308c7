//! `results`: rules for the results of tools.

use std::ops::RangeInclusive;
use std::sync::Arc;

use mcp_vary::predicate::Predicate;
use mcp_vary::shape::Bounds;
use mcp_vary_results::rules::ResultRules;
use mcp_vary_results::{DeclaredOutput, Projection, ResultRule, ResultTransform};
use serde_json::json;

use super::{PartialRule, Section, audience, has_key, items, template, variants, when};
use crate::clients::Named;
use crate::diagnostic::Diagnostics;
use crate::json_value;
use crate::key_spec::ValueKind::{Other, Scalar};
use crate::key_spec::{KeySpec, count, keys, table, value};
use crate::reader::{Located, Reader};
use crate::schema_builder::SchemaBuilder;

/// Reads rules from YAML or JSON, as written under `results` in a configuration.
///
/// # Errors
///
/// If the rules are invalid. The error lists all problems at once.
///
/// # Examples
///
/// ```
/// use mcp_vary_config::read_results;
///
/// let rules = read_results(r#"
///   - tools: [list_issues]
///     project: map({number, title})
///     markdown: "{% for issue in value %}- #{{ issue.number }} {{ issue.title }}\n{% endfor %}"
///   - tools: [list_issues]
///     when: x-max-tokens=[-2000]
///     project: map(.title)
/// "#);
/// assert!(rules.is_ok());
///
/// // All mistakes are reported at once, with their places.
/// let mistakes = read_results("- {project: '.[', markdown: '{{'}").unwrap_err();
/// assert_eq!(mistakes.all.len(), 2);
/// ```
pub fn read_results(text: &str) -> Result<ResultRules, Diagnostics> {
    SECTION.read_text(text).map(ResultRules)
}

const SECTION: Section<ResultAction, ResultRule> = Section {
    name: "results",
    example: "[{tools: [\"list_*\"], project: \"map({id, title})\"}]",
    gist: "{tools: [...], markdown: ...}",
    keys: KEYS,
    rule: PartialRule::<ResultAction>::rule,
};

/// The keys of which a rule needs at least one.
const HOW: [&str; 5] = ["project", "markdown", "text", "hints", "limits"];

/// The keys that a rule with `output-schema` cannot have, because its value is the same for all clients.
const NOT_WITH_SCHEMA: [&str; 7] = [
    "when",
    "for",
    "markdown",
    "text",
    "hints",
    "hints-under",
    "limits",
];

/// Reads the list of rules. Adds the variants that they name to `named`.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    named: &mut Vec<Named>,
) -> ResultRules {
    ResultRules(SECTION.read(reader, field, named))
}

/// The schema of `results`.
pub(crate) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let mut rule = schema.table("a rule of `results`", &[KEYS]);
    rule["dependentSchemas"] = json!({"output-schema": {
        "required": ["project"],
        "not": {"anyOf": NOT_WITH_SCHEMA.map(|key| json!({"required": [key]}))},
    }});
    rule["anyOf"] = HOW.map(|key| json!({"required": [key]})).into();
    schema.list(&rule)
}

/// What a rule does, while it is read.
#[derive(Default)]
struct ResultAction {
    transform: ResultTransform,
    output_schema: Option<String>,
}

impl PartialRule<ResultAction> {
    fn rule(self, reader: &mut Reader<'_>, field: &Located<'_>) -> Option<ResultRule> {
        if !has_key(field, &HOW) {
            let fix = "add `project`, `markdown`, `text`, `hints` or `limits`";
            reader.report(field, "does not say how", fix);
            return None;
        }
        if has_key(field, &["output-schema"]) {
            return self.output_rule(reader, field);
        }
        if has_key(field, &["limits"]) && !has_key(field, &["for", "when"]) {
            let limits = field.deepest(&["limits"]);
            let what = "are only for clients that declare features";
            reader.note(&limits, what, "for all clients, add `for: everyone`");
        }
        let when = self.when.unwrap_or_default();
        Some(ResultRule {
            tools: self.items,
            variants: self.variants,
            output: None,
            transform: Arc::new(ResultTransform {
                verbosity: when.verbosity(),
                ..self.action.transform
            }),
            when,
            applies_to_all: self.everyone,
        })
    }

    /// A rule with `output-schema`.
    fn output_rule(self, reader: &mut Reader<'_>, field: &Located<'_>) -> Option<ResultRule> {
        let at = field.deepest(&["output-schema"]);
        if !has_key(field, &["project"]) {
            let fix = "add `project`, a filter that makes such a value";
            reader.report(&at, "describes a value that nothing makes", fix);
            return None;
        }
        if let Some(key) = NOT_WITH_SCHEMA.iter().find(|key| has_key(field, &[key])) {
            let what =
                format!("is in a rule with `{key}`, but the list has one schema for all clients");
            let fix =
                format!("move `{key}` to a rule of its own, which gets the value of this one");
            reader.report(&at, what, &fix);
            return None;
        }
        match DeclaredOutput::new(
            self.action.transform.projection?,
            &self.action.output_schema?,
        ) {
            Ok(output) => Some(ResultRule {
                tools: self.items,
                variants: self.variants,
                when: Predicate::default(),
                applies_to_all: true,
                transform: Arc::default(),
                output: Some(Arc::new(output)),
            }),
            Err(why) => {
                let fix = "write a JSON Schema with `type: object`";
                reader.report(&at, why, fix);
                None
            }
        }
    }
}

const KEYS: &[KeySpec<PartialRule<ResultAction>>] = keys![
    /// the tools that it applies to: a list of patterns and conditions, or `include` and `exclude`. All without it
    "tools" => items(),
    /// the ids of its variants; all without it
    "variants" => variants(),
    /// a condition over the feature tags of clients, such as `agent & !interactive`. The most specific one decides,
    /// then the first rule
    "when" = "*" => when(),
    /// `negotiating`: clients that declared features, or whose variant has some. `everyone`: all
    "for" = "negotiating" => audience(),
    /// a jq filter that turns the tool's value into the one that clients receive
    "project" => Other(SchemaBuilder::text, |reader, field, rule| {
        let Some(filter) = reader.text(field) else { return };
        match Projection::new(&filter) {
            Ok(projection) => rule.action.transform.projection = Some(projection),
            Err(why) => reader.report(field, why, "see https://jqlang.org/manual"),
        }
    }),
    /// the schema of what `project` makes, an object. It is listed as the tool's `outputSchema`, and all clients get
    /// the value; other rules start from it
    "output-schema" => Other(SchemaBuilder::any, |reader, field, rule| {
        rule.action.output_schema = json_value::read(reader, field).map(|schema| schema.to_json());
    }),
    /// a template of the text for clients that read markdown, or name no format
    "markdown" => value!(SchemaBuilder::text, template, |rule| rule.action.transform.markdown),
    /// a template of the text for clients that read plain text; without `markdown` also for those that read markdown
    "text" => value!(SchemaBuilder::text, template, |rule| rule.action.transform.text),
    /// templates of reasoning hints, for clients that declared `sampling`; empty ones are left out
    "hints" => Other(
        |schema| {
            let text = schema.text();
            schema.list(&text)
        },
        |reader, field, rule| {
            for item in reader.list(field) {
                rule.action.transform.hints.extend(template(reader, &item));
            }
        },
    ),
    /// the property that contains the hints, if the client reads JSON and the tool's `outputSchema` accepts it
    "hints-under" = "hints" => Scalar(|rule| &mut rule.action.transform.hints_property),
    /// how much of a result is sent: `{elements: 50, depth: 4, tokens: 2000}`, or some of these
    "limits" => table!(
        "`limits` of a rule", &[BOUNDS], "{elements: 50, tokens: 2000}", |rule| &mut rule.action.transform.bounds
    ),
];

/// The limits on how much of a result clients receive.
const BOUNDS: &[KeySpec<Bounds>] = keys![
    /// elements of any array; members of an object that has more than 64
    "elements" => count!(ELEMENTS, |bounds| &mut bounds.elements),
    /// levels of arrays and objects; with 1 the value has scalars alone
    "depth" => count!(DEPTH, |bounds| &mut bounds.depth),
    /// tokens of the texts together, and of the structured value
    "tokens" => count!(TOKENS, |bounds| &mut bounds.tokens),
];

const ELEMENTS: RangeInclusive<usize> = 1..=1_000_000;
const DEPTH: RangeInclusive<usize> = 1..=128;
/// The smallest limit leaves room for the notice about omitted parts.
const TOKENS: RangeInclusive<usize> = 200..=10_000_000;
