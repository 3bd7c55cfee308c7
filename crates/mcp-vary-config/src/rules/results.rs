//! `results`: rules for the results of tools.

use std::ops::RangeInclusive;
use std::sync::Arc;

use mcp_vary::predicate::Predicate;
use mcp_vary::shape::Bounds;
use mcp_vary_results::rules::ResultRules;
use mcp_vary_results::{DeclaredOutput, Projection, ResultRule, ResultTransform};
use serde_json::json;

use super::{RuleDraft, RuleScope, ScopeDescriptions, Section, has_key, scope_keys, template};
use crate::clients::Named;
use crate::diagnostic::Diagnostics;
use crate::json_value;
use crate::key_spec::{KeySpec, ValueKind};
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

const SECTION: Section<PartialResultRule, ResultRule> = Section {
    name: "results",
    example: "[{tools: [\"list_*\"], project: \"map({id, title})\"}]",
    gist: "{tools: [...], markdown: ...}",
    keys: KEYS,
    rule: PartialResultRule::rule,
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
    let mut rule = schema.table(&KEYS);
    rule["dependentSchemas"] = json!({"output-schema": {
        "required": ["project"],
        "not": {"anyOf": NOT_WITH_SCHEMA.map(|key| json!({"required": [key]}))},
    }});
    rule["anyOf"] = HOW.map(|key| json!({"required": [key]})).into();
    schema.list(&rule)
}

/// A rule while it is read.
#[derive(Default)]
struct PartialResultRule {
    scope: RuleScope,
    recipe: ResultTransform,
    output_schema: Option<String>,
}

impl PartialResultRule {
    fn rule(self, reader: &mut Reader<'_>, field: &Located<'_>) -> Option<ResultRule> {
        if !has_key(field, &HOW) {
            let fix = "add `project`, `markdown`, `text`, `hints` or `limits`";
            reader.report(field, "does not say how", fix);
            return None;
        }
        if has_key(field, &["output-schema"]) {
            return self.output_rule(reader, field);
        }
        let when = self.scope.when.unwrap_or_default();
        Some(ResultRule {
            tools: self.scope.items,
            variants: self.scope.variants,
            output: None,
            transform: Arc::new(ResultTransform {
                verbosity: when.verbosity(),
                ..self.recipe
            }),
            when,
            applies_to_all: self.scope.everyone,
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
        match DeclaredOutput::new(self.recipe.projection?, &self.output_schema?) {
            Ok(output) => Some(ResultRule {
                tools: self.scope.items,
                variants: self.scope.variants,
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

impl RuleDraft for PartialResultRule {
    fn scope(&mut self) -> &mut RuleScope {
        &mut self.scope
    }
}

const KEYS: [&[KeySpec<PartialResultRule>]; 2] = [SCOPE_KEYS, OWN_KEYS];

const SCOPE_KEYS: &[KeySpec<PartialResultRule>] = &scope_keys(&ScopeDescriptions {
    items: (
        "tools",
        "the tools that the rule applies to: a list of patterns and conditions, or `include` and `exclude`, as in `variants`. All without it",
    ),
    when: (
        "the clients that the rule applies to: a condition over their feature tags, such as `agent & !interactive`. If several rules match, the most specific condition decides; ties go to the first rule",
        "*",
    ),
    for_clients: "`negotiating`: for clients that declared features, or whose variant has some. `everyone`: for all",
});

const OWN_KEYS: &[KeySpec<PartialResultRule>] = &[
    KeySpec {
        key: "project",
        about: "a jq filter that turns the tool's value into the one that clients receive",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::text, |reader, field, draft| {
            let Some(filter) = reader.text(field) else {
                return;
            };
            match Projection::new(&filter) {
                Ok(projection) => draft.recipe.projection = Some(projection),
                Err(why) => reader.report(field, why, "see https://jqlang.org/manual"),
            }
        }),
    },
    KeySpec {
        key: "output-schema",
        about: "the schema of what `project` makes, an object. It is listed as the tool's `outputSchema`, and all clients get the value; other rules start from it",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::any, |reader, field, draft| {
            draft.output_schema = json_value::read(reader, field).map(|schema| schema.to_json());
        }),
    },
    KeySpec {
        key: "markdown",
        about: "a template of the text for clients that read markdown, and for those that name no format",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::text, |reader, field, draft| {
            draft.recipe.markdown = template(reader, field);
        }),
    },
    KeySpec {
        key: "text",
        about: "a template of the text for clients that read plain text, and for those that read markdown if there is no template `markdown`",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::text, |reader, field, draft| {
            draft.recipe.text = template(reader, field);
        }),
    },
    KeySpec {
        key: "hints",
        about: "templates of reasoning hints, for clients that declared `sampling`; one that makes no text makes no hint",
        default: "",
        takes: ValueKind::Other(
            |schema| {
                let text = schema.text();
                schema.list(&text)
            },
            |reader, field, draft| {
                for item in reader.list(field) {
                    draft.recipe.hints.extend(template(reader, &item));
                }
            },
        ),
    },
    KeySpec {
        key: "hints-under",
        about: "the property that contains the hints, if the client reads JSON and the tool's `outputSchema` accepts it",
        default: "hints",
        takes: ValueKind::Scalar(|draft| &mut draft.recipe.hints_property),
    },
    KeySpec {
        key: "limits",
        about: "how much of a result is sent: `{elements: 50, depth: 4, tokens: 2000}`, or some of these. What is left out is counted, and linked",
        default: "",
        takes: ValueKind::Other(
            |schema| schema.table(&[BOUNDS]),
            |reader, field, draft| {
                let bounds = &mut draft.recipe.bounds;
                reader.settings(field, &[BOUNDS], bounds, "{elements: 50, tokens: 2000}");
            },
        ),
    },
];

/// The limits on how much of a result clients receive.
const BOUNDS: &[KeySpec<Bounds>] = &[
    KeySpec {
        key: "elements",
        about: "elements of any array; members of an object that has more than 64",
        default: "",
        takes: ValueKind::Other(
            |schema| schema.count(ELEMENTS),
            |reader, field, bounds| bound(reader, field, ELEMENTS, &mut bounds.elements),
        ),
    },
    KeySpec {
        key: "depth",
        about: "levels of arrays and objects; with 1 the value has scalars alone",
        default: "",
        takes: ValueKind::Other(
            |schema| schema.count(DEPTH),
            |reader, field, bounds| bound(reader, field, DEPTH, &mut bounds.depth),
        ),
    },
    KeySpec {
        key: "tokens",
        about: "tokens of the texts together, and of the structured value; they are estimated",
        default: "",
        takes: ValueKind::Other(
            |schema| schema.count(TOKENS),
            |reader, field, bounds| bound(reader, field, TOKENS, &mut bounds.tokens),
        ),
    },
];

const ELEMENTS: RangeInclusive<usize> = 1..=1_000_000;
const DEPTH: RangeInclusive<usize> = 1..=128;
/// The smallest limit leaves room for the notice about omitted parts.
const TOKENS: RangeInclusive<usize> = 200..=10_000_000;

fn bound(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    range: RangeInclusive<usize>,
    into: &mut Option<usize>,
) {
    let mut count = 0;
    reader.count(field, range, &mut count);
    *into = Some(count).filter(|count| *count > 0).or(*into);
}
