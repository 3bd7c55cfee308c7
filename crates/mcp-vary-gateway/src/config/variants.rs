//! `variants`: what each shows, and as what.

mod description;
mod overrides;
mod places;
pub(super) mod selection;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_vary::feature::Features;
use mcp_vary::variant::{self, Date, DeprecationInfo, ServerVariant, Status, VariantId, Variants};
use mcp_vary::view::{Description, Dialect, ResultFields, SchemaStyle, Selection};
use serde_json::json;

use super::mistake::Mistake;
use super::reader::{Field, Reader, meant_or_known};
use super::schema::{ANYTHING, Schema};
use super::setting::{Setting, Takes};
use super::tree::Value;
use crate::catalog::face::{Base, Faces, VariantConfig};
use overrides::Overrides;
pub use places::Places;

const EXAMPLE: &str = "{reviewer: {description: \"For code review\", tools: [\"git_*\"]}}, or off";

/// The variants of a file: whether there are any, and which.
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) on: bool,
    /// `None` leaves those that exist without any configuration.
    pub(super) faces: Option<Arc<Faces>>,
    /// What the file calls its variants, whatever is wrong with them.
    named: Vec<VariantId>,
    pub(super) places: Places,
}

impl Default for Declared {
    fn default() -> Self {
        Self {
            on: true,
            faces: None,
            named: Vec::new(),
            places: Places::default(),
        }
    }
}

impl Declared {
    /// The ids of the variants.
    pub(super) fn ids(&self) -> Vec<VariantId> {
        if self.named.is_empty() {
            return Faces::built_in().ids().collect();
        }
        self.named.clone()
    }

    /// The keys of the variants' hints.
    pub(super) fn hints(&self) -> BTreeSet<String> {
        let keys = |faces: &Faces| {
            let hints = faces.variants.iter().flat_map(|it| it.hints.keys());
            hints.cloned().collect()
        };
        match &self.faces {
            Some(faces) => keys(faces),
            None => keys(&Faces::built_in()),
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
        into.places.add(&entry.key, &member, entry.at);
        reader.settings(
            &member,
            &[SETTINGS],
            &mut draft,
            "{description: ..., tools: [...]}",
        );
        match entry.key.parse::<VariantId>() {
            Ok(id) => draft.id = Some(id),
            Err(error) => {
                let mistake = Mistake::new(
                    entry.at,
                    member.path.as_str(),
                    format!("is no id of a variant: {error}"),
                );
                reader
                    .mistakes
                    .push(mistake.with_fix("rename it, `reviewer` for example"));
            }
        }
        all.push((member, draft));
    }
    if entries.is_empty() {
        return reader.wrong(field, "is empty", &format!("write {EXAMPLE}"));
    }
    into.named = all
        .iter()
        .filter_map(|(_, draft)| draft.id.clone())
        .collect();
    let faces = resolved(reader, &all);
    check(reader, field, &all, &faces);
    if reader.mistakes.len() == before {
        // Whether a removal date is past is said when the gateway starts.
        into.faces = Faces::new(faces, Date::from_unix(0)).ok().map(Arc::new);
    }
}

/// Says what is wrong with the variants together, whatever is wrong with single ones.
fn check(
    reader: &mut Reader<'_>,
    field: &Field<'_>,
    all: &[(Field<'_>, Draft)],
    faces: &[VariantConfig],
) {
    let standard = Faces::built_in().all.swap_remove(0);
    let mut seen = BTreeSet::new();
    let drafts = all.iter().map(|(_, draft)| draft);
    let drafts = drafts.filter(|draft| draft.id().is_some_and(|id| seen.insert(id)));
    // What a variant starts from decides nothing of what is looked at here.
    let declared = drafts.map(|draft| {
        let mut faces = faces.iter();
        let face = faces.find(|face| draft.id() == Some(face.variant.id.as_str()));
        face.map_or_else(
            || draft.on(standard.clone()).variant,
            |it| it.variant.clone(),
        )
    });
    match Variants::new(declared.collect(), Date::from_unix(0)) {
        Ok((_, warnings)) => warn(reader, field, &warnings),
        Err(mistakes) => {
            // One whose name or status is wrong may be stable.
            let is_read = |(field, draft): &(Field<'_>, Draft)| {
                let says_status = field.deepest(&["status"]).path != field.path;
                draft.id.is_some() && (draft.status.is_some() || !says_status)
            };
            let is_whole = all.iter().all(is_read);
            let is_sure = |it: &&_| is_whole || **it != variant::Mistake::NoneStable;
            for mistake in mistakes.all().iter().filter(is_sure) {
                refuse(reader, field, mistake);
            }
        }
    }
}

/// Says at its place what is likely not meant.
fn warn(reader: &mut Reader<'_>, field: &Field<'_>, warnings: &[variant::Warning]) {
    for warning in warnings {
        if let variant::Warning::NotDeprecated(id) = warning {
            let place = field.deepest(&[id.as_str(), "deprecation"]);
            let what = "tells nobody anything, since the variant is not deprecated";
            let note = Mistake::new(place.node.at, place.path, what);
            reader
                .notes
                .push(note.with_fix("take out `status`, or this"));
        }
    }
}

/// Says at its place why the variants cannot be offered.
fn refuse(reader: &mut Reader<'_>, field: &Field<'_>, mistake: &variant::Mistake) {
    use variant::Mistake::{Date, NoneStable, ReplacesItself, UnknownReplacement};
    let id = match mistake {
        Date(id, _) | ReplacesItself(id) | UnknownReplacement(id, _) => id.as_str(),
        _ => "",
    };
    let at = |key: &str| field.deepest(&[id, "deprecation", key]);
    match mistake {
        NoneStable => {
            let fix =
                "clients that choose none get the first stable one; mark one as `status: stable`";
            reader.wrong(field, "has no stable variant", fix);
        }
        ReplacesItself(_) => {
            reader.wrong(
                &at("replacement"),
                "is the variant itself",
                "name another, or leave it out",
            );
        }
        UnknownReplacement(_, other) => {
            let names = field.keys();
            let fix = meant_or_known(other.as_str(), &names);
            reader.wrong(&at("replacement"), "is no variant", &fix);
        }
        Date(..) => reader.wrong(
            &at("removal-date"),
            "is no day of the calendar",
            "write it as `2027-01-31`",
        ),
        other => reader.wrong(
            field,
            format!("cannot be offered: {other}"),
            "change the variants",
        ),
    }
}

/// What may stand under `variants`.
pub(super) fn shape(schema: &mut Schema) -> serde_json::Value {
    let variant = schema.table(&[SETTINGS]);
    let mut variants = schema.named(ANYTHING, &variant);
    variants["minProperties"] = json!(1);
    variants["propertyNames"] =
        json!({"minLength": 1, "pattern": r"^[^\u0000-\u001f\u007f-\u009f]*$"});
    // One of them is stable.
    let is_no_default = json!({"anyOf": [
        {"required": ["status"], "properties": {"status": {"enum": ["experimental", "deprecated"]}}},
        {"required": ["deprecation"], "not": {"required": ["status"]}},
    ]});
    variants["not"] = json!({"minProperties": 1, "additionalProperties": is_no_default});
    json!({"anyOf": [schema.switch(), variants]})
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
            let fix = meant_or_known(from, &names);
            reader.wrong(&field.deepest(&["from"]), "is no variant", &fix);
        } else if !done.contains_key(id) {
            reader.wrong(
                &field.deepest(&["from"]),
                "leads back to the variant itself",
                "take out one `from`",
            );
        }
    }
    let ids = all.iter().filter_map(|(_, draft)| draft.id());
    let faces = ids.filter_map(|id| done.remove(id));
    faces.map(|face| described(face, &built_in)).collect()
}

/// The same; where nobody describes it, by what it shows.
fn described(mut face: VariantConfig, built_in: &Faces) -> VariantConfig {
    if face.variant.description.is_empty() {
        face.variant.description = description::of(&face, built_in);
    }
    face
}

/// The built-in variant `id`, or one that shows everything as it is and claims to be made for nothing. Words are
/// about the variant itself alone.
fn start(id: &str, built_in: &Faces) -> VariantConfig {
    let mut all = built_in.all.iter();
    let known = all.find(|face| face.variant.id.as_str() == id);
    let mut start = known.unwrap_or(&built_in.all[0]).clone();
    if known.is_none() {
        start.variant.hints.clear();
    }
    start.variant.description.clear();
    start
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
    overrides: Overrides,
}

impl Draft {
    fn id(&self) -> Option<&str> {
        self.id.as_ref().map(VariantId::as_str)
    }

    /// What the variant is when it starts from `start`.
    fn on(&self, start: VariantConfig) -> VariantConfig {
        let mut face = start;
        let Some(id) = &self.id else { return face };
        self.leave_compact(&mut face);
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
        self.overrides.add_to(&mut face);
        face
    }

    /// Where `full` is said of a part, only the other part stays short.
    fn leave_compact(&self, face: &mut VariantConfig) {
        let is_full =
            self.descriptions == Some(Description::Full) || self.schemas == Some(SchemaStyle::Full);
        if is_full && face.base == Base::Compact {
            face.base = Base::Standard;
            face.style.description = Description::FirstSentence;
            face.style.schema = SchemaStyle::Compact;
            face.variant.hints.remove("contextSize");
        }
    }
}

const SETTINGS: &[Setting<Draft>] = &[
    Setting {
        key: "from",
        about: "another variant that this one starts from, or one of the three. What this one says \
replaces what that one says; overrides are added to, item by item and argument by argument. Without it: everything \
as it is, or as the one of the three that has the same name",
        default: "",
        takes: Takes::Other(Schema::variant_id, |reader, field, draft| {
            draft.from = reader.word(field)
        }),
    },
    Setting {
        key: "description",
        about: "for people and models that choose: what it is good for, and what not. Without it what the \
variant shows is said, such as `Some of the tools: git_*.`",
        default: "",
        takes: Takes::Word(|draft| &mut draft.description),
    },
    Setting {
        key: "hints",
        about: "what it is made for, for ranking: `useCase`, `contextSize`, `modelFamily` and others. Without \
it: what the variant of `from` is made for; nothing, where there is no `from`",
        default: "",
        takes: Takes::Other(Schema::named_words, |reader, field, draft| {
            draft.hints = Some(reader.named_words(field))
        }),
    },
    Setting {
        key: "status",
        about: "`stable`, `experimental` or `deprecated`; at least one variant is stable",
        default: "stable",
        takes: Takes::Other(
            |schema| schema.choice(STATUSES),
            |reader, field, draft| draft.status = choice(reader, field, STATUSES),
        ),
    },
    Setting {
        key: "deprecation",
        about: "how to move on",
        default: "",
        takes: Takes::Other(
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
    Setting {
        key: "priority",
        about: "decides between variants of equal score; the lower comes first",
        default: "0",
        takes: Takes::Other(
            |schema| schema.count(0..=1000),
            |reader, field, draft| {
                let mut priority = 0;
                reader.count(field, 0..=1000, &mut priority);
                draft.priority = u32::try_from(priority).ok();
            },
        ),
    },
    Setting {
        key: "tools",
        about: "which tools it shows: a list of patterns and conditions, one of which must hold, or \
`include` and `exclude`, each such a list. All without it",
        default: "",
        takes: Takes::Other(selection::shape, |reader, field, draft| {
            draft.tools = Some(selection::read(reader, field))
        }),
    },
    Setting {
        key: "resources",
        about: "which resources and templates, likewise, by URI",
        default: "",
        takes: Takes::Other(selection::shape, |reader, field, draft| {
            draft.resources = Some(selection::read(reader, field))
        }),
    },
    Setting {
        key: "prompts",
        about: "which prompts, likewise",
        default: "",
        takes: Takes::Other(selection::shape, |reader, field, draft| {
            draft.prompts = Some(selection::read(reader, field))
        }),
    },
    Setting {
        key: "descriptions",
        about: "`full`, or `first-sentence`",
        default: "full",
        takes: Takes::Other(
            |schema| schema.choice(DESCRIPTIONS),
            |reader, field, draft| draft.descriptions = choice(reader, field, DESCRIPTIONS),
        ),
    },
    Setting {
        key: "schemas",
        about: "`full`, or `compact`: what decides which arguments are accepted, without prose",
        default: "full",
        takes: Takes::Other(
            |schema| schema.choice(SCHEMAS),
            |reader, field, draft| draft.schemas = choice(reader, field, SCHEMAS),
        ),
    },
    Setting {
        key: "dialect",
        about: "`gemini`, `openai-strict`: keywords that those models refuse are rewritten or taken out. \
A call's arguments are held against the server's own schema before they go on",
        default: "none",
        takes: Takes::Other(
            |schema| schema.choice(DIALECTS),
            |reader, field, draft| draft.dialect = choice(reader, field, DIALECTS),
        ),
    },
    Setting {
        key: "result",
        about: "which field of a tool's result clients get: `both`, `content`, `structured`. Images, \
links and errors stay, and so do the data of a user interface; `content` lists no `outputSchema`",
        default: "both",
        takes: Takes::Other(
            |schema| schema.choice(RESULTS),
            |reader, field, draft| draft.result = choice(reader, field, RESULTS),
        ),
    },
    Setting {
        key: "features",
        about: "the feature tags that clients are taken to have declared that declare none, such as \
`[human, format=markdown]`",
        default: "",
        takes: Takes::Other(Schema::words, |reader, field, draft| {
            draft.features = Some(features(reader, field))
        }),
    },
    Setting {
        key: "overrides",
        about: "what it makes of single `tools`, `prompts` and `resources`",
        default: "",
        takes: Takes::Other(overrides::shape, |reader, field, draft| {
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
];

pub(super) const DIALECTS: &[(&str, Option<Dialect>)] = &[
    ("none", None),
    ("gemini", Some(Dialect::Gemini)),
    ("openai-strict", Some(Dialect::OpenaiStrict)),
];

pub(super) const RESULTS: &[(&str, ResultFields)] = &[
    ("both", ResultFields::Both),
    ("content", ResultFields::Content),
    ("structured", ResultFields::Structured),
];

/// A list of feature tags; those that are none are said.
pub(super) fn features(reader: &mut Reader<'_>, field: &Field<'_>) -> Features {
    let mut tags = Vec::new();
    for item in reader.list(field) {
        let Some(tag) = reader.word(&item) else {
            continue;
        };
        let (_, ignored) = Features::from_tags([tag.as_str()]);
        for entry in ignored.entries() {
            let fix = "write tags such as `human` or `format=markdown`";
            reader.wrong(&item, format!("is no tag: {}", entry.reason), fix);
        }
        tags.push(tag);
    }
    let (features, _) = Features::from_tags(tags.iter().map(String::as_str));
    features
}

/// One of several words; nothing when it is none of them, which is said.
pub(super) fn choice<T: Copy>(
    reader: &mut Reader<'_>,
    field: &Field<'_>,
    choices: &[(&str, T)],
) -> Option<T> {
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
        if !matches!(field.node.value, Value::Table(_)) {
            return None;
        }
        if self.message.is_none() {
            reader.wrong(field, "says nothing to clients", "add `message: ...`");
        }
        let mut info = DeprecationInfo::new(self.message.unwrap_or_default());
        info.replacement = self.replacement;
        info.removal_date = self.removal_date;
        Some(info)
    }
}

const DEPRECATION: &[Setting<Deprecation>] = &[
    Setting {
        key: "message",
        about: "why, and how to migrate; required",
        default: "",
        takes: Takes::Word(|info| &mut info.message),
    },
    Setting {
        key: "replacement",
        about: "the variant to use instead",
        default: "",
        takes: Takes::Other(Schema::variant_id, |reader, field, info| {
            let word = reader.word(field).unwrap_or_default();
            match word.parse() {
                Ok(id) => info.replacement = Some(id),
                Err(_) => reader.wrong(field, "is no id of a variant", "name another variant"),
            }
        }),
    },
    Setting {
        key: "removal-date",
        about: "when it goes, as `2027-01-31`; it is served until it is taken out of the file",
        default: "",
        takes: Takes::Other(Schema::date, |reader, field, info| {
            info.removal_date = reader.word(field)
        }),
    },
];
