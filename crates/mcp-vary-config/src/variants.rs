//! `variants`: which items each variant shows, and how.

mod deprecation;
mod description;
mod draft;
mod on_demand;
mod overrides;
pub(super) mod selection;
mod settings;
mod spans;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_vary::variant::{self, Date, VariantId, Variants};
use serde_json::json;

use super::reader::{Located, Placed, Reader, meant_or_known, not_a_variant};
use super::schema_builder::{ANYTHING, SchemaBuilder};
use crate::document::Value;
pub use crate::variants::spans::VariantSpans;
use draft::PartialVariant;
use mcp_vary_catalog::variant_config::VariantConfig;
use mcp_vary_catalog::variant_set::VariantSet;
use settings::SETTINGS;
pub(super) use settings::{DIALECTS, RESULTS, features};

const EXAMPLE: &str = "{reviewer: {description: \"For code review\", tools: [\"git_*\"]}}, or off";

/// The variants of a file: whether variants are on, and which ones are declared.
#[derive(Debug, Default)]
pub(super) struct Declared {
    /// The switch, if the file has it.
    pub(super) on: Option<bool>,
    /// The declared variants. `None` means the built-in ones.
    pub(super) variant_set: Option<Arc<VariantSet>>,
    /// The valid ids that the file declares, even if the variants have errors.
    named: Vec<VariantId>,
    /// The servers that the variants name.
    servers: Vec<Placed<String>>,
    pub(super) places: VariantSpans,
}

impl Declared {
    /// The ids of the variants.
    pub(super) fn ids(&self) -> Vec<VariantId> {
        if self.named.is_empty() {
            return VariantSet::built_in().ids().collect();
        }
        self.named.clone()
    }

    /// Reports the servers of variants that are not among those of the file.
    pub(super) fn check_servers(&self, reader: &mut Reader<'_>, root: &Located<'_>) {
        let known = root.deepest(&["servers"]).keys();
        for server in &self.servers {
            let name = server.value.as_str();
            if !known.contains(&name) {
                let what = format!("is not a server: `{name}`");
                reader.report_at(server.at, &server.path, what, &meant_or_known(name, &known));
            }
        }
    }

    /// The keys of the variants' hints, each with the first variant that declares it.
    pub(super) fn hints(&self) -> BTreeMap<String, VariantId> {
        let keys = |variant_set: &VariantSet| {
            let mut keys = BTreeMap::new();
            for variant in variant_set.variants.iter() {
                for key in variant.hints.keys() {
                    keys.entry(key.clone())
                        .or_insert_with(|| variant.id.clone());
                }
            }
            keys
        };
        match &self.variant_set {
            Some(variant_set) => keys(variant_set),
            None => keys(&VariantSet::built_in()),
        }
    }
}

/// Reads a switch or a table of variants.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>, into: &mut Declared) {
    if !matches!(field.node.value, Value::Table(_)) {
        return reader.switch(field, &mut into.on);
    }
    let before = reader.diagnostics.len();
    let entries = reader.table(field, EXAMPLE).unwrap_or_default();
    let mut all: Vec<(Located<'_>, PartialVariant)> = Vec::new();
    for entry in entries {
        let member = field.member(entry);
        let mut draft = PartialVariant::default();
        into.places.add(&entry.key, &member, entry.at);
        let is_setting = SETTINGS.iter().any(|setting| setting.key == entry.key);
        if is_setting && !matches!(entry.node.value, Value::Table(_)) {
            let fix = "indent it under the id of the variant";
            reader.report(&member, "belongs in a variant", fix);
        } else {
            let example = "{description: ..., tools: [...]}";
            reader.settings(&member, &[SETTINGS], &mut draft, example);
        }
        match entry.key.parse::<VariantId>() {
            Ok(id) => {
                if is_version(id.as_str()) {
                    let what = "says nothing: clients, and models, choose variants by their names";
                    let fix = "name it for its use, `reviewer` for example";
                    reader.note_at(entry.at, &member.path, what, fix);
                }
                draft.id = Some(id);
            }
            Err(error) => {
                let what = format!("is not a variant id: {error}");
                let fix = "rename it, `reviewer` for example";
                reader.report_at(entry.at, &member.path, what, fix);
            }
        }
        all.push((member, draft));
    }
    if entries.is_empty() {
        return reader.report(field, "is empty", &format!("write {EXAMPLE}"));
    }
    into.named = all
        .iter()
        .filter_map(|(_, draft)| draft.id.clone())
        .collect();
    let servers = all.iter().filter_map(|(_, draft)| draft.servers.as_ref());
    into.servers = servers.flatten().cloned().collect();
    let variants = resolved(reader, &all);
    on_demand::check(reader, &all, &variants);
    check(reader, field, &all, &variants);
    if reader.diagnostics.len() == before {
        into.variant_set = VariantSet::new(variants).ok().map(Arc::new);
    }
}

/// Whether an id has nothing but a number or a version: `2`, `v2`, `2.0.1`.
fn is_version(id: &str) -> bool {
    let number = id.trim_start_matches(['v', 'V']);
    number.starts_with(|c: char| c.is_ascii_digit())
        && number
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '_'))
}

/// Reports errors that concern the variants as a whole, even if single variants have errors.
fn check(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    all: &[(Located<'_>, PartialVariant)],
    variants: &[VariantConfig],
) {
    let standard = VariantSet::built_in().configs()[0].clone();
    let mut seen = BTreeSet::new();
    let read = all.iter().map(|(_, draft)| draft);
    let drafts = read.filter(|draft| draft.id().is_some_and(|id| seen.insert(id)));
    // These checks do not depend on what a variant starts from, so `standard` can stand in for it.
    let declared = drafts.map(|draft| {
        let mut configs = variants.iter();
        let config = configs.find(|config| draft.id() == Some(config.variant.id.as_str()));
        config.map_or_else(
            || draft.on(standard.clone()).variant,
            |config| config.variant.clone(),
        )
    });
    let today = reader.today.unwrap_or(Date::from_unix(0));
    match Variants::new(declared.collect(), today) {
        Ok((_, warnings)) => warn(reader, field, &warnings),
        Err(diagnostics) => {
            // A variant with an invalid id or status may be meant to be stable.
            let is_read = |(field, draft): &(Located<'_>, PartialVariant)| {
                let says_status = field.deepest(&["status"]).path != field.path;
                draft.id.is_some() && (draft.status.is_some() || !says_status)
            };
            let is_whole = all.iter().all(is_read);
            let is_sure = |it: &&_| is_whole || **it != variant::VariantDiagnostic::NoneStable;
            for diagnostic in diagnostics.as_slice().iter().filter(is_sure) {
                refuse(reader, field, diagnostic);
            }
        }
    }
}

/// Adds a note, with its position in the file, for what is allowed but probably a mistake.
fn warn(reader: &mut Reader<'_>, field: &Located<'_>, warnings: &[variant::Warning]) {
    use variant::Warning::{NotDeprecated, PastDate};
    for warning in warnings {
        let (keys, what, fix) = match warning {
            NotDeprecated(id) => (
                vec![id.as_str(), "deprecation"],
                "has no effect, since the variant is not deprecated".to_owned(),
                "remove `status`, or this",
            ),
            PastDate(id, date) => (
                vec![id.as_str(), "deprecation", "removal-date"],
                format!("is past: `{id}` was to be removed on {date} and is still served"),
                "remove the variant, or move the date",
            ),
            _ => continue,
        };
        reader.note(&field.deepest(&keys), what, fix);
    }
}

/// Reports, with its position in the file, why the variants cannot be offered.
fn refuse(reader: &mut Reader<'_>, field: &Located<'_>, diagnostic: &variant::VariantDiagnostic) {
    use variant::VariantDiagnostic::{Date, NoneStable, ReplacesItself, UnknownReplacement};
    let id = match diagnostic {
        Date(id, _) | ReplacesItself(id) | UnknownReplacement(id, _) => id.as_str(),
        _ => "",
    };
    let at = |key: &str| field.deepest(&[id, "deprecation", key]);
    match diagnostic {
        NoneStable => {
            let fix =
                "clients that choose none get the first stable one; mark one as `status: stable`";
            reader.report(field, "has no stable variant", fix);
        }
        ReplacesItself(_) => {
            reader.report(
                &at("replacement"),
                "is the variant itself",
                "name another, or leave it out",
            );
        }
        UnknownReplacement(_, other) => {
            let names = field.keys();
            let fix = meant_or_known(other.as_str(), &names);
            let what = not_a_variant(at("replacement").written());
            reader.report(&at("replacement"), what, &fix);
        }
        Date(..) => reader.report(
            &at("removal-date"),
            "is not a day of the calendar",
            "write it as `2027-01-31`",
        ),
        other => reader.report(
            field,
            format!("cannot be offered: {other}"),
            "change the variants",
        ),
    }
}

/// The schema of `variants`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let variant = schema.table("a variant", &[SETTINGS]);
    let mut variants = schema.named(ANYTHING, &variant);
    variants["minProperties"] = json!(1);
    variants["propertyNames"] =
        json!({"minLength": 1, "pattern": r"^[^\u0000-\u001f\u007f-\u009f]*$"});
    // At least one variant must be stable.
    let is_no_default = json!({"anyOf": [
        {"required": ["status"], "properties": {"status": {"enum": ["experimental", "deprecated"]}}},
        {"required": ["deprecation"], "not": {"required": ["status"]}},
    ]});
    variants["not"] = json!({"minProperties": 1, "additionalProperties": is_no_default});
    json!({"anyOf": [schema.switch(), variants]})
}

/// Resolves each variant on top of what it starts from.
fn resolved(reader: &mut Reader<'_>, all: &[(Located<'_>, PartialVariant)]) -> Vec<VariantConfig> {
    let built_in = VariantSet::built_in();
    let mut done: BTreeMap<&str, VariantConfig> = BTreeMap::new();
    let mut names: Vec<&str> = all.iter().filter_map(|(_, draft)| draft.id()).collect();
    names.extend(
        built_in
            .configs()
            .iter()
            .map(|config| config.variant.id.as_str()),
    );
    // Each round resolves the variants whose start is resolved. Those that remain refer to each other in a cycle.
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
            let reference = field.deepest(&["from"]);
            reader.report(&reference, not_a_variant(reference.written()), &fix);
        } else if !done.contains_key(id) {
            reader.report(
                &field.deepest(&["from"]),
                "leads back to the variant itself",
                "take out one `from`",
            );
        }
    }
    let ids = all.iter().filter_map(|(_, draft)| draft.id());
    let variants = ids.filter_map(|id| done.remove(id));
    variants
        .map(|config| described(config, &built_in))
        .collect()
}

/// Adds a generated description if the variant has none.
fn described(mut config: VariantConfig, built_in: &VariantSet) -> VariantConfig {
    if config.variant.description.is_empty() {
        config.variant.description = description::of(&config, built_in);
    }
    config
}

/// The built-in variant `id`, or else one that shows everything and has no hints. The description is cleared because it
/// only applies to the built-in variant.
fn start(id: &str, built_in: &VariantSet) -> VariantConfig {
    let mut all = built_in.configs().iter();
    let known = all.find(|config| config.variant.id.as_str() == id);
    let mut start = known.unwrap_or(&built_in.configs()[0]).clone();
    if known.is_none() {
        start.variant.hints.clear();
    }
    start.variant.description.clear();
    start
}
