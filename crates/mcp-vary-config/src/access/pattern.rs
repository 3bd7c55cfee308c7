//! The patterns of `allow` and `deny`.

use mcp_vary_access::{ItemPattern, MAX_ITEM_PATTERNS};
use mcp_vary_view::{Pattern, Rule};
use serde_json::json;

use crate::diagnostic::Position;
use crate::document::Value;
use crate::key_spec::ValueKind::Other;
use crate::key_spec::{KeySpec, keys};
use crate::reader::{Located, Reader, quoted};
use crate::schema_builder::SchemaBuilder;
use crate::variants::selection::{Conditions, pattern};

const EXAMPLE: &str = "[\"git_*\", {tools: \"*\", server: git}]";

/// A pattern and its place in the file.
#[derive(Clone)]
pub(super) struct PlacedPattern {
    pub(super) at: Position,
    pub(super) path: String,
    pub(super) pattern: ItemPattern,
    pub(super) server: Option<Pattern>,
    /// For the name; `None` if it is for all names, or for skills.
    pub(super) name: Option<Pattern>,
    /// Whether it is one of `deny`.
    pub(super) denies: bool,
    /// Whether it applies to servers with `trust-annotations` only.
    pub(super) needs_trust: bool,
}

/// A pattern with conditions while it is read.
#[derive(Default)]
struct PartialPattern {
    rule: Rule,
    /// The keys of [`KINDS`] that it has.
    kinds: Vec<&'static str>,
}

impl Conditions for PartialPattern {
    fn rule(&mut self) -> &mut Rule {
        &mut self.rule
    }
}

/// Reads the patterns of `allow` (`allows`) or `deny`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    allows: bool,
) -> Vec<PlacedPattern> {
    let items = reader.items(field, EXAMPLE);
    if items.is_empty() && matches!(field.node.value, Value::List(_)) {
        let fix = "leave it out, or write `[\"*\"]` for everything";
        reader.report(field, "is empty", fix);
    }
    let items = reader.at_most(MAX_ITEM_PATTERNS, field, items);
    let patterns = items
        .into_iter()
        .filter_map(|item| read_one(reader, &item, allows));
    patterns.collect()
}

fn read_one(reader: &mut Reader<'_>, item: &Located<'_>, allows: bool) -> Option<PlacedPattern> {
    let mut draft = PartialPattern::default();
    if let Value::Table(_) = item.node.value {
        let before = reader.diagnostics.len();
        let example = "{tools: \"git_*\", server: git}";
        reader.settings(item, &[KINDS, PartialPattern::KEYS], &mut draft, example);
        if reader.diagnostics.len() == before {
            draft.check(reader, item);
        }
    } else {
        draft.rule.name = Some(pattern(reader, item)?);
    }
    let server = draft.rule.server.clone();
    // No list that Vary keeps has skills.
    let name = match draft.kinds.first() {
        Some(&"skills") => None,
        _ => draft.rule.name.clone(),
    };
    let pattern = match draft.kinds.first() {
        Some(&"tools") => ItemPattern::tools(draft.rule),
        Some(&"prompts") => ItemPattern::prompts(draft.rule),
        Some(&"resources") => ItemPattern::resources(draft.rule),
        Some(&"skills") => ItemPattern::skills(draft.rule),
        _ => ItemPattern::any(draft.rule),
    };
    Some(PlacedPattern {
        at: item.node.at,
        path: item.path.clone(),
        needs_trust: allows && pattern.uses_annotations(),
        pattern,
        server,
        name,
        denies: !allows,
    })
}

impl PartialPattern {
    /// Reports conditions that contradict each other, and a table without conditions.
    fn check(&self, reader: &mut Reader<'_>, item: &Located<'_>) {
        if self.rule == Rule::default() {
            let fix = "write `\"*\"` for everything";
            return reader.report(item, "has no conditions", fix);
        }
        let first = item.keys().contains(&"name").then_some("name").into_iter();
        let names: Vec<&str> = first.chain(self.kinds.iter().copied()).collect();
        if names.len() > 1 {
            let what = format!("has {}, of which a pattern has one", quoted(&names));
            return reader.report(item, what, "write an entry for each");
        }
        let is_for_tools = matches!(self.kinds.as_slice(), [] | ["tools"]);
        if !is_for_tools && let Some(hint) = self.rule.hints.keys().next() {
            let what = format!(
                "has {}, but only tools have hints",
                quoted(&[hint.as_str()])
            );
            reader.report(item, what, "write `tools`, or leave the hint out");
        }
    }

    fn read_kind(&mut self, reader: &mut Reader<'_>, field: &Located<'_>, kind: &'static str) {
        self.kinds.push(kind);
        self.rule.name = pattern(reader, field);
    }
}

const KINDS: &[KeySpec<PartialPattern>] = keys![
    /// a pattern for the names of tools, in place of `name`
    "tools" => Other(SchemaBuilder::word, |reader, field, draft| draft.read_kind(reader, field, "tools")),
    /// a pattern for the names of prompts, in place of `name`
    "prompts" => Other(SchemaBuilder::word, |reader, field, draft| draft.read_kind(reader, field, "prompts")),
    /// a pattern for the URIs of resources and templates, in place of `name`
    "resources" => Other(SchemaBuilder::word, |reader, field, draft| draft.read_kind(reader, field, "resources")),
    /// a pattern for the paths of skills, such as `pdf` for `skill://pdf/SKILL.md`, in place of `name`
    "skills" => Other(SchemaBuilder::word, |reader, field, draft| draft.read_kind(reader, field, "skills")),
];

/// The schema of `allow` and `deny`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let pattern = schema.define("item-pattern", |schema| {
        let mut conditions = schema.table("an access pattern", &[KINDS, PartialPattern::KEYS]);
        let settings = KINDS.iter().chain(PartialPattern::KEYS);
        // The key may also come from a table that is merged into the pattern.
        let keys = settings.map(|setting| setting.key).chain(["<<"]);
        let some: Vec<_> = keys.map(|key| json!({"required": [key]})).collect();
        conditions["allOf"] = json!([{"anyOf": some}]);
        json!({"anyOf": [schema.word(), conditions]})
    });
    let mut patterns = schema.list(&pattern);
    patterns["minItems"] = json!(1);
    patterns["maxItems"] = json!(MAX_ITEM_PATTERNS);
    patterns
}
