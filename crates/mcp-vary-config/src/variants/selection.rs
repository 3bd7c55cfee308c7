//! Which items a variant shows.

use mcp_vary_view::ToolHint::{DestructiveHint, IdempotentHint, OpenWorldHint, ReadOnlyHint};
use mcp_vary_view::{HintCondition, Pattern, Rule, Selection, ToolHint};
use serde_json::json;

use crate::document::Value;
use crate::key_spec::ValueKind::Other;
use crate::key_spec::{KeySpec, keys, value};
use crate::reader::{Located, Placed, Reader};
use crate::schema_builder::SchemaBuilder;

/// Reads which items are shown: a list of patterns and conditions, or `include` and `exclude`.
pub(crate) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> Selection {
    let mut selection = Selection::default();
    match &field.node.value {
        Value::List(_) => selection.include = some_rules(reader, field),
        Value::Text(name) if !name.contains([':', ',', ' ', '"']) => {
            let key = field.path.rsplit('.').next().unwrap_or_default();
            let fix = format!("write `{key}: [\"{name}\"]`");
            reader.report(field, "is not a list", &fix);
        }
        _ => {
            let example = "[\"git_*\"], or {include: [...], exclude: [...]}";
            reader.settings(field, &[SELECTION], &mut selection, example);
        }
    }
    selection
}

/// Reads the names of the servers of a variant. An empty list would show everything.
pub(super) fn servers(reader: &mut Reader<'_>, field: &Located<'_>) -> Vec<Placed<String>> {
    if matches!(&field.node.value, Value::List(items) if items.is_empty()) {
        reader.report(field, "is empty", "leave it out for all servers");
    }
    let items = reader.items(field, "[memory, git]").into_iter();
    let names = items.filter_map(|item| Some(item.placed(reader.word(&item)?)));
    names.collect()
}

pub(super) fn servers_shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let mut servers = schema.strings();
    servers["minItems"] = json!(1);
    servers
}

const SELECTION: &[KeySpec<Selection>] = keys![
    /// what is shown: patterns and conditions, one of which must hold; everything without it
    "include" => value!(some_rules_shape, some_rules, |selection| selection.include),
    /// what is not shown, although it is included, by name or by the server's own name
    "exclude" => value!(rules_shape, rules, |selection| selection.exclude),
];

/// Reads at least one rule. An empty list shows nothing in other programs, but would show everything here.
fn some_rules(reader: &mut Reader<'_>, field: &Located<'_>) -> Vec<Rule> {
    if matches!(&field.node.value, Value::List(items) if items.is_empty()) {
        let fix = "leave it out for all, or write {exclude: [\"*\"]} for none";
        reader.report(field, "is empty", fix);
    }
    rules(reader, field)
}

pub(super) fn rules(reader: &mut Reader<'_>, field: &Located<'_>) -> Vec<Rule> {
    if !matches!(field.node.value, Value::List(_)) {
        reader.report(
            field,
            "is not a list",
            "write [\"git_*\", {readOnlyHint: true}]",
        );
        return Vec::new();
    }
    let mut rules = Vec::new();
    for item in field.items() {
        if let Value::Table(_) = item.node.value {
            let mut rule = Rule::default();
            let example = "{server: git, readOnlyHint: true}";
            reader.settings(&item, &[Rule::KEYS], &mut rule, example);
            rules.push(rule);
        } else {
            rules.extend(pattern(reader, &item).map(Rule::by_name));
        }
    }
    rules
}

/// What is read as the conditions of a rule: the rule itself, or a draft that has one.
pub(crate) trait Conditions: Sized + 'static {
    /// The rule.
    fn rule(&mut self) -> &mut Rule;

    /// The keys of the conditions.
    const KEYS: &'static [KeySpec<Self>] = keys![
        /// a pattern for the name or URI; together with `server`, also for the server's own name of it
        "name" => value!(SchemaBuilder::word, pattern, |rule| rule.rule().name),
        /// a pattern on the server's name in this file
        "server" => value!(SchemaBuilder::word, pattern, |rule| rule.rule().server),
        /// the tool's own hint: `true`, `false`, or `absent`. Without one, MCP's defaults apply: it writes, is
        /// destructive, and is open to the world
        "readOnlyHint" => Other(hint_shape, |reader, field, rule| read_hint(reader, field, ReadOnlyHint, rule)),
        /// likewise
        "destructiveHint" => Other(hint_shape, |reader, field, rule| read_hint(reader, field, DestructiveHint, rule)),
        /// likewise
        "idempotentHint" => Other(hint_shape, |reader, field, rule| read_hint(reader, field, IdempotentHint, rule)),
        /// likewise
        "openWorldHint" => Other(hint_shape, |reader, field, rule| read_hint(reader, field, OpenWorldHint, rule)),
    ];
}

impl Conditions for Rule {
    fn rule(&mut self) -> &mut Rule {
        self
    }
}

fn hint_shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    schema.choice(CONDITIONS)
}

fn read_hint(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    hint: ToolHint,
    conditions: &mut impl Conditions,
) {
    let mut condition = None;
    reader.choice(field, CONDITIONS, &mut condition);
    let read = condition.map(|condition: HintCondition| (hint, condition));
    conditions.rule().hints.extend(read);
}

/// Reads a pattern.
pub(crate) fn pattern(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<Pattern> {
    let word = reader.word(field)?;
    if word.starts_with('!') {
        let fix = "to leave something out, write `{exclude: [...]}`, and `deny` in `access`";
        reader.report(field, "begins with `!`, which patterns do not have", fix);
        return None;
    }
    match word.parse() {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let fix = "write `*` for anything, `{a,b}` for one of several";
            reader.report(field, format!("is not a pattern: {error}"), fix);
            None
        }
    }
}

const CONDITIONS: &[(&str, HintCondition)] = &[
    ("true", HintCondition::True),
    ("false", HintCondition::False),
    ("absent", HintCondition::Absent),
];

/// The schema of `tools`, `resources`, `prompts` and `skills`.
pub(crate) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    schema.define(
        "selection",
        |schema| json!({"anyOf": [some_rules_shape(schema), schema.table("a selection", &[SELECTION])]}),
    )
}

fn rules_shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let rule = schema.define(
        "rule",
        |schema| json!({"anyOf": [schema.word(), schema.table("a condition", &[Rule::KEYS])]}),
    );
    schema.list(&rule)
}

pub(super) fn some_rules_shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let mut rules = rules_shape(schema);
    rules["minItems"] = json!(1);
    rules
}
