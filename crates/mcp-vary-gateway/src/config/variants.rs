//! `variants`: what each shows, and as what.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_vary::feature::Features;
use mcp_vary::json::Json;
use mcp_vary::variant::{Date, DeprecationInfo, ServerVariant, Status, VariantId, Variants};
use mcp_vary::view::{
    ArgumentOverride, Description, Dialect, Hint, Pattern, PromptOverride, ResourceOverride,
    ResultFields, Rule, SchemaStyle, Selection, ToolOverride, Wanted,
};

use super::mistake::nearest;
use super::reader::{Field, Reader, Setting, did_you_mean, quoted};
use super::tree::{Node, Value};
use crate::catalog::face::{Faces, VariantConfig};

const EXAMPLE: &str = "{reviewer: {description: \"For code review\", tools: [\"git_*\"]}}, or off";

/// The variants of a file: whether there are any, and which.
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) on: bool,
    /// `None` leaves those that exist without any configuration.
    pub(super) faces: Option<Arc<Faces>>,
}

impl Default for Declared {
    fn default() -> Self {
        Self {
            on: true,
            faces: None,
        }
    }
}

impl Declared {
    /// The ids of the variants.
    pub(super) fn ids(&self) -> Vec<VariantId> {
        match &self.faces {
            Some(faces) => faces.ids().collect(),
            None => Faces::built_in().ids().collect(),
        }
    }
}

/// Reads a switch, or a table of variants.
pub(super) fn read(reader: &mut Reader<'_>, field: &Field<'_>, into: &mut Declared) {
    if !matches!(field.node.value, Value::Table(_)) {
        return reader.switch(field, &mut into.on);
    }
    let before = reader.mistakes.len();
    let entries = reader.table(field, EXAMPLE).unwrap_or_default();
    let mut all: Vec<(Field<'_>, Draft)> = Vec::new();
    for entry in entries {
        let member = field.member(entry);
        let mut draft = Draft::default();
        reader.settings(
            &member,
            &[SETTINGS],
            &mut draft,
            "{description: ..., tools: [...]}",
        );
        match entry.key.parse::<VariantId>() {
            Ok(id) => draft.id = Some(id),
            Err(error) => reader.wrong(
                &member,
                format!("is no id of a variant: {error}"),
                "rename it",
            ),
        }
        all.push((member, draft));
    }
    if entries.is_empty() {
        return reader.wrong(field, "is empty", &format!("write {EXAMPLE}"));
    }
    let faces = resolved(reader, &all);
    if reader.mistakes.len() > before {
        return;
    }
    // Whether a removal date is past is said when the gateway starts.
    let declared = faces.iter().map(|face| face.variant.clone()).collect();
    match Variants::new(declared, Date::from_unix(0)) {
        Ok(_) => into.faces = Faces::new(faces, Date::from_unix(0)).ok().map(Arc::new),
        Err(mistakes) => {
            for mistake in mistakes.all() {
                reader.wrong(
                    field,
                    format!("cannot be offered: {mistake}"),
                    "see the variants above",
                );
            }
        }
    }
}

/// Each variant on what it starts from.
fn resolved(reader: &mut Reader<'_>, all: &[(Field<'_>, Draft)]) -> Vec<VariantConfig> {
    let built_in = Faces::built_in();
    let mut done: BTreeMap<&str, VariantConfig> = BTreeMap::new();
    let mut names: Vec<&str> = all.iter().filter_map(|(_, draft)| draft.id()).collect();
    names.extend(built_in.all.iter().map(|face| face.variant.id.as_str()));
    // Each round settles at least one variant whose start is settled; the rest goes round in circles.
    loop {
        let settled = done.len();
        for (_, draft) in all {
            let Some(id) = draft.id().filter(|id| !done.contains_key(id)) else {
                continue;
            };
            let start = match draft.from.as_deref() {
                Some(from)
                    if from != id && all.iter().any(|(_, other)| other.id() == Some(from)) =>
                {
                    done.get(from).cloned()
                }
                from => Some(start(from.unwrap_or(id), &built_in)),
            };
            if let Some(start) = start {
                done.insert(id, draft.on(start));
            }
        }
        if done.len() == settled {
            break;
        }
    }
    for (field, draft) in all {
        let Some(id) = draft.id() else { continue };
        let unknown = draft.from.as_deref().filter(|from| !names.contains(from));
        if let Some(from) = unknown {
            let fix = match nearest(from, &names) {
                Some(meant) => did_you_mean(meant),
                None => format!("there are {}", quoted(&names)),
            };
            reader.wrong(
                field,
                format!("starts from `{from}`, which is no variant"),
                &fix,
            );
        } else if !done.contains_key(id) {
            reader.wrong(
                field,
                "starts from itself, by way of others",
                "take out one `from`",
            );
        }
    }
    let ids = all.iter().filter_map(|(_, draft)| draft.id());
    ids.filter_map(|id| done.remove(id)).collect()
}

/// The built-in variant `id`, or one that shows everything as it is.
fn start(id: &str, built_in: &Faces) -> VariantConfig {
    let known = built_in
        .all
        .iter()
        .find(|face| face.variant.id.as_str() == id);
    known.cloned().unwrap_or_else(|| built_in.all[0].clone())
}

/// A variant while it is read: what it says, on top of what it starts from.
#[derive(Default)]
struct Draft {
    id: Option<VariantId>,
    from: Option<String>,
    description: Option<String>,
    hints: Option<BTreeMap<String, String>>,
    status: Option<Status>,
    deprecation: Option<DeprecationInfo>,
    priority: Option<u32>,
    tools: Option<Selection>,
    resources: Option<Selection>,
    prompts: Option<Selection>,
    descriptions: Option<Description>,
    schemas: Option<SchemaStyle>,
    dialect: Option<Option<Dialect>>,
    result: Option<ResultFields>,
    features: Option<Features>,
    tool_overrides: BTreeMap<String, ToolOverride>,
    prompt_overrides: BTreeMap<String, PromptOverride>,
    resource_overrides: BTreeMap<String, ResourceOverride>,
}

impl Draft {
    fn id(&self) -> Option<&str> {
        self.id.as_ref().map(VariantId::as_str)
    }

    /// What the variant is when it starts from `start`.
    fn on(&self, start: VariantConfig) -> VariantConfig {
        let mut face = start;
        let Some(id) = &self.id else { return face };
        let is_start = face.variant.id == *id;
        let mut variant = if is_start {
            face.variant.clone()
        } else {
            // A start is deprecated or experimental for itself.
            let mut variant = ServerVariant::new(id.clone(), face.variant.description.clone());
            variant.hints = face.variant.hints.clone();
            variant
        };
        if let Some(description) = &self.description {
            variant.description.clone_from(description);
        }
        variant.hints = self.hints.clone().unwrap_or(variant.hints);
        variant.status = self.status.unwrap_or(variant.status);
        if let Some(info) = &self.deprecation {
            variant.status = self.status.unwrap_or(Status::Deprecated);
            variant.deprecation_info = Some(info.clone());
        }
        variant.priority = self.priority.unwrap_or(variant.priority);
        face.variant = variant;
        face.tools = self.tools.clone().unwrap_or(face.tools);
        face.resources = self.resources.clone().unwrap_or(face.resources);
        face.prompts = self.prompts.clone().unwrap_or(face.prompts);
        face.style.description = self.descriptions.unwrap_or(face.style.description);
        face.style.schema = self.schemas.unwrap_or(face.style.schema);
        face.style.dialect = self.dialect.unwrap_or(face.style.dialect);
        face.style.result = self.result.unwrap_or(face.style.result);
        if let Some(features) = &self.features {
            face.features = Some(Arc::new(features.clone()));
        }
        face.tool_overrides.extend(self.tool_overrides.clone());
        face.prompt_overrides.extend(self.prompt_overrides.clone());
        face.resource_overrides
            .extend(self.resource_overrides.clone());
        face
    }
}

const SETTINGS: &[Setting<Draft>] = &[
    Setting {
        key: "from",
        read: |reader, field, draft| draft.from = reader.word(field),
    },
    Setting {
        key: "description",
        read: |reader, field, draft| draft.description = reader.word(field),
    },
    Setting {
        key: "hints",
        read: |reader, field, draft| draft.hints = Some(reader.named_words(field)),
    },
    Setting {
        key: "status",
        read: |reader, field, draft| draft.status = choice(reader, field, STATUSES),
    },
    Setting {
        key: "deprecation",
        read: |reader, field, draft| {
            let mut info = Deprecation::default();
            reader.settings(
                field,
                &[DEPRECATION],
                &mut info,
                "{message: ..., replacement: ...}",
            );
            draft.deprecation = info.finish(reader, field);
        },
    },
    Setting {
        key: "priority",
        read: |reader, field, draft| {
            let mut priority = 0;
            reader.count(field, 0..=1000, &mut priority);
            draft.priority = u32::try_from(priority).ok();
        },
    },
    Setting {
        key: "tools",
        read: |reader, field, draft| draft.tools = Some(selection(reader, field)),
    },
    Setting {
        key: "resources",
        read: |reader, field, draft| draft.resources = Some(selection(reader, field)),
    },
    Setting {
        key: "prompts",
        read: |reader, field, draft| draft.prompts = Some(selection(reader, field)),
    },
    Setting {
        key: "descriptions",
        read: |reader, field, draft| draft.descriptions = choice(reader, field, DESCRIPTIONS),
    },
    Setting {
        key: "schemas",
        read: |reader, field, draft| draft.schemas = choice(reader, field, SCHEMAS),
    },
    Setting {
        key: "dialect",
        read: |reader, field, draft| draft.dialect = choice(reader, field, DIALECTS),
    },
    Setting {
        key: "result",
        read: |reader, field, draft| draft.result = choice(reader, field, RESULTS),
    },
    Setting {
        key: "features",
        read: |reader, field, draft| {
            let tags = reader.words(field);
            let (features, ignored) = Features::from_tags(tags.iter().map(String::as_str));
            for entry in ignored.entries() {
                let what = format!(
                    "has the tag {}, which says nothing: {}",
                    entry.what, entry.reason
                );
                reader.wrong(
                    field,
                    what,
                    "write tags such as `human` or `format=markdown`",
                );
            }
            draft.features = Some(features);
        },
    },
    Setting {
        key: "overrides",
        read: |reader, field, draft| {
            let example = "{tools: {NAME: {description: ...}}}";
            reader.settings(field, &[OVERRIDES], draft, example);
        },
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
];

const DIALECTS: &[(&str, Option<Dialect>)] = &[
    ("none", None),
    ("gemini", Some(Dialect::Gemini)),
    ("openai-strict", Some(Dialect::OpenaiStrict)),
];

const RESULTS: &[(&str, ResultFields)] = &[
    ("both", ResultFields::Both),
    ("content", ResultFields::Content),
    ("structured", ResultFields::Structured),
];

/// One of several words; nothing when it is none of them, which is said.
fn choice<T: Copy>(reader: &mut Reader<'_>, field: &Field<'_>, choices: &[(&str, T)]) -> Option<T> {
    let mut chosen = choices.first()?.1;
    let before = reader.mistakes.len();
    reader.choice(field, choices, &mut chosen);
    (reader.mistakes.len() == before).then_some(chosen)
}

/// `deprecation` while it is read.
#[derive(Default)]
struct Deprecation {
    message: Option<String>,
    replacement: Option<VariantId>,
    removal_date: Option<String>,
}

impl Deprecation {
    fn finish(self, reader: &mut Reader<'_>, field: &Field<'_>) -> Option<DeprecationInfo> {
        if self.message.is_none() && matches!(field.node.value, Value::Table(_)) {
            reader.wrong(field, "says nothing to clients", "add `message: ...`");
        }
        let mut info = DeprecationInfo::new(self.message?);
        info.replacement = self.replacement;
        info.removal_date = self.removal_date;
        Some(info)
    }
}

const DEPRECATION: &[Setting<Deprecation>] = &[
    Setting {
        key: "message",
        read: |reader, field, info| info.message = reader.word(field),
    },
    Setting {
        key: "replacement",
        read: |reader, field, info| {
            let word = reader.word(field).unwrap_or_default();
            match word.parse() {
                Ok(id) => info.replacement = Some(id),
                Err(_) => reader.wrong(field, "is no id of a variant", "name another variant"),
            }
        },
    },
    Setting {
        key: "removal-date",
        read: |reader, field, info| info.removal_date = reader.word(field),
    },
];

/// Which items are shown: a list of patterns and conditions, or `include` and `exclude`.
fn selection(reader: &mut Reader<'_>, field: &Field<'_>) -> Selection {
    let mut selection = Selection::default();
    if let Value::List(_) = field.node.value {
        selection.include = rules(reader, field);
    } else {
        let example = "[\"git_*\"], or {include: [...], exclude: [...]}";
        reader.settings(field, &[SELECTION], &mut selection, example);
    }
    selection
}

const SELECTION: &[Setting<Selection>] = &[
    Setting {
        key: "include",
        read: |reader, field, selection| selection.include = rules(reader, field),
    },
    Setting {
        key: "exclude",
        read: |reader, field, selection| selection.exclude = rules(reader, field),
    },
];

fn rules(reader: &mut Reader<'_>, field: &Field<'_>) -> Vec<Rule> {
    let Value::List(items) = &field.node.value else {
        reader.wrong(
            field,
            "is no list",
            "write [\"git_*\", {readOnlyHint: true}]",
        );
        return Vec::new();
    };
    let mut rules = Vec::new();
    for (index, node) in items.iter().enumerate() {
        let path = format!("{}[{index}]", field.path);
        let item = Field { path, node };
        if let Value::Table(_) = node.value {
            let mut rule = Rule::default();
            reader.settings(
                &item,
                &[RULE],
                &mut rule,
                "{server: git, readOnlyHint: true}",
            );
            rules.push(rule);
        } else {
            rules.extend(pattern(reader, &item).map(Rule::named));
        }
    }
    rules
}

const RULE: &[Setting<Rule>] = &[
    Setting {
        key: "name",
        read: |reader, field, rule| rule.name = pattern(reader, field),
    },
    Setting {
        key: "server",
        read: |reader, field, rule| rule.server = pattern(reader, field),
    },
    Setting {
        key: "readOnlyHint",
        read: |reader, field, rule| hint(reader, field, Hint::ReadOnlyHint, rule),
    },
    Setting {
        key: "destructiveHint",
        read: |reader, field, rule| hint(reader, field, Hint::DestructiveHint, rule),
    },
    Setting {
        key: "idempotentHint",
        read: |reader, field, rule| hint(reader, field, Hint::IdempotentHint, rule),
    },
    Setting {
        key: "openWorldHint",
        read: |reader, field, rule| hint(reader, field, Hint::OpenWorldHint, rule),
    },
];

fn hint(reader: &mut Reader<'_>, field: &Field<'_>, hint: Hint, rule: &mut Rule) {
    const WANTED: &[(&str, Wanted)] = &[
        ("true", Wanted::True),
        ("false", Wanted::False),
        ("absent", Wanted::Absent),
    ];
    if let Some(wanted) = choice(reader, field, WANTED) {
        rule.hints.insert(hint, wanted);
    }
}

fn pattern(reader: &mut Reader<'_>, field: &Field<'_>) -> Option<Pattern> {
    let word = reader.word(field)?;
    match word.parse() {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let what = format!("is no pattern: {error}");
            reader.wrong(
                field,
                what,
                "write `*` for anything, `{a,b}` for one of several",
            );
            None
        }
    }
}

const OVERRIDES: &[Setting<Draft>] = &[
    Setting {
        key: "tools",
        read: |reader, field, draft| items(reader, field, TOOL, &mut draft.tool_overrides),
    },
    Setting {
        key: "prompts",
        read: |reader, field, draft| items(reader, field, PROMPT, &mut draft.prompt_overrides),
    },
    Setting {
        key: "resources",
        read: |reader, field, draft| items(reader, field, RESOURCE, &mut draft.resource_overrides),
    },
];

/// Overrides by the names of items.
fn items<T: Default>(
    reader: &mut Reader<'_>,
    field: &Field<'_>,
    settings: &[Setting<T>],
    into: &mut BTreeMap<String, T>,
) {
    for entry in reader.table(field, "{NAME: {...}}").unwrap_or_default() {
        let mut change = T::default();
        let member = field.member(entry);
        reader.settings(&member, &[settings], &mut change, "{description: ...}");
        into.insert(entry.key.clone(), change);
    }
}

const TOOL: &[Setting<ToolOverride>] = &[
    Setting {
        key: "name",
        read: |reader, field, tool| tool.name = reader.word(field),
    },
    Setting {
        key: "title",
        read: |reader, field, tool| tool.title = reader.word(field),
    },
    Setting {
        key: "description",
        read: |reader, field, tool| tool.description = reader.word(field),
    },
    Setting {
        key: "annotations",
        read: |reader, field, tool| tool.annotations = values(reader, field),
    },
    Setting {
        key: "arguments",
        read: |reader, field, tool| items(reader, field, ARGUMENT, &mut tool.arguments),
    },
];

const PROMPT: &[Setting<PromptOverride>] = &[
    Setting {
        key: "name",
        read: |reader, field, prompt| prompt.name = reader.word(field),
    },
    Setting {
        key: "title",
        read: |reader, field, prompt| prompt.title = reader.word(field),
    },
    Setting {
        key: "description",
        read: |reader, field, prompt| prompt.description = reader.word(field),
    },
    Setting {
        key: "arguments",
        read: |reader, field, prompt| items(reader, field, ARGUMENT, &mut prompt.arguments),
    },
];

const RESOURCE: &[Setting<ResourceOverride>] = &[
    Setting {
        key: "name",
        read: |reader, field, resource| resource.name = reader.word(field),
    },
    Setting {
        key: "title",
        read: |reader, field, resource| resource.title = reader.word(field),
    },
    Setting {
        key: "description",
        read: |reader, field, resource| resource.description = reader.word(field),
    },
    Setting {
        key: "annotations",
        read: |reader, field, resource| resource.annotations = values(reader, field),
    },
];

const ARGUMENT: &[Setting<ArgumentOverride>] = &[
    Setting {
        key: "name",
        read: |reader, field, argument| argument.name = reader.word(field),
    },
    Setting {
        key: "description",
        read: |reader, field, argument| argument.description = reader.word(field),
    },
    Setting {
        key: "hidden",
        read: |reader, field, argument| reader.switch(field, &mut argument.hidden),
    },
    Setting {
        key: "fixed",
        read: |reader, field, argument| argument.fixed = value(reader, field),
    },
    Setting {
        key: "default",
        read: |reader, field, argument| argument.default = value(reader, field),
    },
    Setting {
        key: "required",
        read: |reader, field, argument| reader.switch(field, &mut argument.required),
    },
];

fn values(reader: &mut Reader<'_>, field: &Field<'_>) -> BTreeMap<String, Json<'static>> {
    let entries = reader.table(field, "{NAME: value}").unwrap_or_default();
    let values = entries.iter().filter_map(|entry| {
        let value = value(reader, &field.member(entry))?;
        Some((entry.key.clone(), value))
    });
    values.collect()
}

/// Any JSON value; its variables replaced.
fn value(reader: &mut Reader<'_>, field: &Field<'_>) -> Option<Json<'static>> {
    let part = |path: String, node| Field { path, node };
    Some(match &field.node.value {
        Value::Null => Json::Null,
        Value::Word(word) => match Json::parse(word) {
            Ok(json) => json.into_owned(),
            // What YAML takes for a number and JSON does not.
            Err(_) => Json::String(word.clone().into()),
        },
        Value::Text(_) => Json::String(reader.word(field)?.into()),
        Value::List(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(index, node): (usize, &Node)| {
                value(reader, &part(format!("{}[{index}]", field.path), node))
            });
            Json::Array(items.collect::<Option<_>>()?)
        }
        Value::Table(entries) => {
            let members = entries.iter().map(|entry| {
                Some((
                    entry.key.clone().into(),
                    value(reader, &field.member(entry))?,
                ))
            });
            Json::Object(members.collect::<Option<_>>()?)
        }
    })
}
