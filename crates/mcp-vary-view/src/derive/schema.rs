//! Input schemas with less prose, or none, that accept the same arguments.
//!
//! Supports JSON Schema drafts 4 to 2020-12. The meaning of a key depends on its position: under `properties` it
//! names a property, in a schema it is a keyword, in `enum`, `const` and `default` it is data. The walk therefore
//! follows only the keywords that hold schemas, and leaves everything else as written.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use mcp_vary::json::{Json, JsonError};

use crate::word_list::word_list;

use super::essential::{self, ArgumentContext, SchemaFacts, Vocabulary};

mod simplify;

/// How much of the prose in a schema is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Prose<'w> {
    /// Nothing.
    None,
    /// What callers need who have these words in view, such as those of the tool's name.
    Essential(&'w Vocabulary),
}

/// The schema with less prose, or unchanged if removing the prose could change what it accepts.
pub(crate) fn compact(schema: &str, prose: Prose<'_>) -> Result<String, JsonError> {
    compact_described(schema, prose, &BTreeMap::new())
}

/// Like [`compact`], with descriptions for those arguments that have none in the schema.
pub(super) fn compact_described(
    schema: &str,
    prose: Prose<'_>,
    descriptions: &BTreeMap<String, String>,
) -> Result<String, JsonError> {
    let mut schema = Json::parse(schema)?;
    // Also a schema that stays as it is gets them: the tool's own description has them no longer.
    describe(&mut schema, descriptions);
    let mut compacted = schema.clone();
    let safe = compact_in_place(&mut compacted, prose).is_some();
    Ok(if safe { compacted } else { schema }.to_json())
}

fn describe(schema: &mut Json<'_>, descriptions: &BTreeMap<String, String>) {
    let Json::Object(members) = schema else {
        return;
    };
    let properties = members.iter_mut().find(|(key, _)| key == "properties");
    let Some((_, Json::Object(properties))) = properties else {
        return;
    };
    for (name, property) in properties {
        if let Some(text) = descriptions.get(&**name)
            && let Json::Object(keywords) = property
            && !keywords.iter().any(|(key, _)| key == "description")
        {
            let text = Json::String(Cow::Owned(text.clone()));
            keywords.push((Cow::Borrowed("description"), text));
        }
    }
}

/// `None` if the schema is in an unknown dialect, or if the target of a reference could have changed.
fn compact_in_place(schema: &mut Json<'_>, prose: Prose<'_>) -> Option<()> {
    let declared = dialect(schema)?;
    let mut closes = false;
    visit(schema, &mut |key, _| {
        closes |= key == "unevaluatedProperties"
    });
    let mut walk = Walk {
        closes,
        described: BTreeSet::new(),
    };
    walk.strip(schema, "", prose);

    let targets = references(schema)?;
    let bases = targets.is_empty() || !has_inner_base(schema, declared);
    let found = |reference: &Reference| match reference {
        Reference::Anchor => true,
        Reference::Pointer(tokens) => find(schema, tokens).is_some(),
    };
    if !(bases && targets.iter().all(found)) {
        return None;
    }
    simplify::remove_repetitions(schema, &targets, declared == DRAFT_4);
    if !targets.contains(&Reference::Anchor) {
        let used = used_definitions(schema);
        let is_used = |name: &(String, String)| used.contains(name);
        DEFINITIONS
            .iter()
            .for_each(|keyword| retain_definitions(schema, keyword, is_used));
        simplify::inline_definitions(schema);
        // What was moved may be a branch of a choice now.
        let targets = references(schema)?;
        simplify::remove_repetitions(schema, &targets, declared == DRAFT_4);
    }
    if PORTABLE_DIALECTS.contains(&declared) && is_portable(schema, true) {
        retain(schema, |keyword, _| keyword != "$schema");
    }
    Some(())
}

type Member<'a> = (Cow<'a, str>, Json<'a>);

/// The walk through a schema that leaves out prose.
struct Walk {
    /// The schema has an `unevaluatedProperties`. Then `additionalProperties: true` has an effect: it leaves no property
    /// unevaluated.
    closes: bool,
    /// Names, and the sentences that were kept about them. A choice often describes the same argument in each branch.
    described: BTreeSet<(String, String)>,
}

impl Walk {
    /// Removes prose and keywords without effect from the schema, which is called `name`, and its subschemas.
    fn strip(&mut self, schema: &mut Json<'_>, name: &str, prose: Prose<'_>) {
        let Json::Object(members) = schema else {
            return;
        };
        let mut description = self.essential_description(members, name, prose);
        members.retain_mut(|(keyword, value)| {
            let retained = (keyword == "description").then(|| description.take());
            match (is_prose(keyword, value), retained.flatten()) {
                (true, Some(text)) => *value = Json::String(Cow::Owned(text)),
                (true, None) => return false,
                (false, _) => {}
            }
            true
        });
        for (keyword, value) in members.iter_mut() {
            for (inner, schema) in subschemas(keyword, value) {
                match (prose, inner) {
                    (Prose::Essential(known), Some(inner)) => {
                        let mut nearer = known.clone();
                        nearer.add(&Vocabulary::of(inner));
                        self.strip(schema, inner, Prose::Essential(&nearer));
                    }
                    _ => self.strip(schema, name, prose),
                }
            }
        }
        members.retain(|(keyword, value)| match keyword.as_ref() {
            "additionalProperties" => self.closes || !allows_everything(value),
            "propertyNames" => !allows_every_name(value),
            // The argument can be left out, as `required` says, too.
            "default" => *value != Json::Null,
            _ => true,
        });
    }

    /// The essential part of the description among the members of a schema, if it is new.
    fn essential_description(
        &mut self,
        members: &[Member<'_>],
        name: &str,
        prose: Prose<'_>,
    ) -> Option<String> {
        let Prose::Essential(known) = prose else {
            return None;
        };
        let (_, description) = members.iter().find(|(key, _)| key == "description")?;
        let context = ArgumentContext {
            facts: SchemaFacts::of(members),
            name: Vocabulary::of(name),
        };
        let mut is_new = |sentence: &str| {
            let named = (name.to_owned(), sentence.to_owned());
            self.described.insert(named)
        };
        essential::of_argument(description.as_str()?, &context, known, &mut is_new)
    }
}

/// Whether the keyword is prose with a value of the right type. A schema that misuses such a keyword is invalid, and
/// stays invalid.
fn is_prose(keyword: &str, value: &Json<'_>) -> bool {
    match keyword {
        "$comment" | "description" | "title" => value.as_str().is_some(),
        "examples" => value.as_array().is_some(),
        _ => false,
    }
}

fn allows_everything(schema: &Json<'_>) -> bool {
    *schema == Json::Bool(true) || schema.as_object().is_some_and(<[_]>::is_empty)
}

/// Whether the schema accepts every name.
fn allows_every_name(schema: &Json<'_>) -> bool {
    let string =
        |(keyword, value): &Member<'_>| keyword == "type" && value.as_str() == Some("string");
    *schema == Json::Bool(true)
        || schema
            .as_object()
            .is_some_and(|members| members.iter().all(string))
}

/// What the value of a keyword is, in any draft.
enum KeywordValue {
    /// A schema, or an array of them.
    Schemas,
    /// Schemas by name.
    NamedSchemas,
    /// Data, or an unknown keyword.
    Other,
}

fn keyword_value(keyword: &str) -> KeywordValue {
    match keyword {
        "additionalItems"
        | "additionalProperties"
        | "allOf"
        | "anyOf"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "items"
        | "not"
        | "oneOf"
        | "prefixItems"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => KeywordValue::Schemas,
        "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties"
        | "properties" => KeywordValue::NamedSchemas,
        _ => KeywordValue::Other,
    }
}

/// The schemas under a keyword, with their names if they have names. (`dependencies` may also hold arrays of names, which are not schemas and do no
/// harm.)
pub(crate) fn subschemas<'s, 'a>(
    keyword: &str,
    value: &'s mut Json<'a>,
) -> Box<dyn Iterator<Item = (Option<&'s str>, &'s mut Json<'a>)> + 's> {
    match (keyword_value(keyword), value) {
        (KeywordValue::Schemas, Json::Array(schemas)) => {
            Box::new(schemas.iter_mut().map(|schema| (None, schema)))
        }
        (KeywordValue::Schemas, schema) => Box::new(std::iter::once((None, schema))),
        (KeywordValue::NamedSchemas, Json::Object(named)) => {
            let entries = named.iter_mut();
            Box::new(entries.map(|(name, schema)| (Some(&**name), schema)))
        }
        _ => Box::new(std::iter::empty()),
    }
}

/// The draft that `$schema` names; the newest if there is none, as MCP says. `None` if it names none that is known.
pub(crate) fn dialect(schema: &Json<'_>) -> Option<&'static str> {
    let Some(named) = schema.get("$schema") else {
        return Some(DIALECTS[0]);
    };
    let uri = named.as_str()?;
    let without_scheme = uri
        .strip_prefix("https://")
        .or_else(|| uri.strip_prefix("http://"))?;
    let identifier = without_scheme.strip_suffix('#').unwrap_or(without_scheme);
    DIALECTS.into_iter().find(|dialect| identifier == *dialect)
}

/// Whether a schema means the same in each of [`PORTABLE_DIALECTS`] and so needs no `$schema`: a peer may use any of
/// them as its default.
fn is_portable(schema: &Json<'_>, root: bool) -> bool {
    let Some(members) = schema.as_object() else {
        return true;
    };
    members
        .iter()
        .all(|(keyword, value)| match keyword.as_ref() {
            "$schema" => root,
            "description" => value.as_str().is_some(),
            "items" => value.as_array().is_none() && is_portable(value, false),
            "properties" | "patternProperties" => {
                let named = value.as_object().unwrap_or_default();
                named.iter().all(|(_, schema)| is_portable(schema, false))
            }
            "allOf" | "anyOf" | "oneOf" => {
                let schemas = value.as_array().unwrap_or_default();
                schemas.iter().all(|schema| is_portable(schema, false))
            }
            "additionalProperties" | "not" | "propertyNames" => is_portable(value, false),
            other => PORTABLE.contains(&other) || other.starts_with("x-"),
        })
}

/// The target of a `$ref` within its own schema.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Reference {
    /// `#`, `#/$defs/a`
    Pointer(Vec<String>),
    /// `#a`
    Anchor,
}

impl Reference {
    pub(crate) fn parse(reference: &str) -> Option<Self> {
        let fragment = percent_decoded(reference.strip_prefix('#')?)?;
        let Some(pointer) = fragment.strip_prefix('/') else {
            return Some(if fragment.is_empty() {
                Self::Pointer(Vec::new())
            } else {
                Self::Anchor
            });
        };
        let token = |token: &str| token.replace("~1", "/").replace("~0", "~");
        Some(Self::Pointer(pointer.split('/').map(token).collect()))
    }

    /// The definition that it points to or passes through: keyword and name.
    fn definition(self) -> Option<(String, String)> {
        let Self::Pointer(tokens) = self else {
            return None;
        };
        let mut path = tokens.into_iter();
        let keyword = path
            .next()
            .filter(|keyword| DEFINITIONS.contains(&keyword.as_str()))?;
        Some((keyword, path.next()?))
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut decoded = parts.next()?.as_bytes().to_vec();
    for part in parts {
        decoded.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        decoded.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(decoded).ok()
}

/// All references in `json`, also in data; `None` if one points out of it, or if there are too many.
fn references(json: &Json<'_>) -> Option<BTreeSet<Reference>> {
    let mut found = BTreeSet::new();
    let mut all = true;
    visit(json, &mut |key, value| {
        // If the value is not a string, `$ref` is the name of a property.
        let is_reference = REFERENCES.contains(&key);
        if is_reference && let Some(text) = value.as_str() {
            let has_room = found.len() < MAX_REFERENCES;
            let reference = has_room.then(|| Reference::parse(text)).flatten();
            all &= reference.is_some();
            found.extend(reference);
        }
    });
    all.then_some(found)
}

/// Whether an inner schema changes the base of pointers.
fn has_inner_base(schema: &Json<'_>, dialect: &str) -> bool {
    let base = if dialect == DRAFT_4 { "id" } else { "$id" };
    let mut bases = 0;
    visit(schema, &mut |key, value| {
        bases += usize::from(key == base && value.as_str().is_some())
    });
    bases > usize::from(schema.get(base).is_some())
}

/// The schema at a pointer that passes only through schemas.
pub(crate) fn find<'s, 'a>(schema: &'s Json<'a>, pointer: &[String]) -> Option<&'s Json<'a>> {
    let [keyword, remaining @ ..] = pointer else {
        return matches!(schema, Json::Object(_) | Json::Bool(_)).then_some(schema);
    };
    let value = schema.get(keyword)?;
    match (keyword_value(keyword), value, remaining) {
        (KeywordValue::Schemas, Json::Array(schemas), [index, remaining @ ..]) => {
            find(schemas.get(index.parse::<usize>().ok()?)?, remaining)
        }
        (KeywordValue::Schemas, schema, _) => find(schema, remaining),
        (KeywordValue::NamedSchemas, named, [name, remaining @ ..]) => {
            find(named.get(name)?, remaining)
        }
        _ => None,
    }
}

/// The definitions that are used directly or by a used definition: keyword and name.
fn used_definitions(schema: &Json<'_>) -> BTreeSet<(String, String)> {
    let mut remaining = schema.clone();
    retain(&mut remaining, |keyword, _| !DEFINITIONS.contains(&keyword));
    let mut pending = references(&remaining).unwrap_or_default();
    let mut used = BTreeSet::new();
    while let Some(reference) = pending.pop_first() {
        let Some((keyword, name)) = reference.definition() else {
            continue;
        };
        if used.insert((keyword.clone(), name.clone())) {
            let definition = schema.get(&keyword).and_then(|named| named.get(&name));
            pending.extend(definition.and_then(references).unwrap_or_default());
        }
    }
    used
}

fn retain_definitions(
    schema: &mut Json<'_>,
    keyword: &str,
    keep: impl Fn(&(String, String)) -> bool,
) {
    retain(schema, |key, value| {
        if key != keyword {
            return true;
        }
        let Json::Object(named) = value else {
            return true;
        };
        named.retain(|(name, _)| keep(&(keyword.to_owned(), name.to_string())));
        !named.is_empty()
    });
}

/// Calls `see` with every member of every object in `json`.
fn visit(json: &Json<'_>, see: &mut impl FnMut(&str, &Json<'_>)) {
    match json {
        Json::Object(members) => members.iter().for_each(|(key, value)| {
            see(key, value);
            visit(value, see);
        }),
        Json::Array(elements) => elements.iter().for_each(|element| visit(element, see)),
        _ => {}
    }
}

/// Retains the members for which `keep` returns true, if `json` is an object.
fn retain<'a>(json: &mut Json<'a>, mut keep: impl FnMut(&str, &mut Json<'a>) -> bool) {
    if let Json::Object(members) = json {
        members.retain_mut(|(key, value)| keep(key, value));
    }
}

const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
/// A schema with more distinct references stays unchanged: each costs a walk.
const MAX_REFERENCES: usize = 1000;

const DRAFT_4: &str = "json-schema.org/draft-04/schema";
/// Newest first.
const DIALECTS: [&str; 5] = [
    "json-schema.org/draft/2020-12/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft-06/schema",
    DRAFT_4,
];
const PORTABLE_DIALECTS: &[&str] = DIALECTS.split_at(3).0;

/// Keywords that mean the same in each of these dialects and hold no schemas.
///
/// Not included: `$ref` (its siblings are ignored in some drafts), `format` and `content*` (asserted in some),
/// `definitions`, `dependencies`, and keywords that one of the drafts lacks.
const PORTABLE: &[&str] = word_list!("schema/portable.txt");

#[cfg(test)]
mod tests;
