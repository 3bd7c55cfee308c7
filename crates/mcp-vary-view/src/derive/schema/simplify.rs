//! Shorter forms of a schema that accept the same values: definitions where they are used, and nothing twice.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use mcp_vary::json::Json;

use super::{DEFINITIONS, Member, REFERENCES, Reference, retain_definitions, subschemas, visit};

/// Moves each definition to the place of the only reference to it, if that reference stands alone in a schema.
///
/// All references in `schema` must be pointers that are found in it. References to parts of a definition, and those in
/// data, count as well. Nothing is moved if the schema would nest too deep.
pub(super) fn inline_definitions(schema: &mut Json<'_>) {
    let mut uses: BTreeMap<Name, usize> = BTreeMap::new();
    visit(schema, &mut |key, value| {
        let reference = value.as_str().and_then(Reference::parse);
        if REFERENCES.contains(&key)
            && let Some(name) = reference.and_then(Reference::definition)
        {
            *uses.entry(name).or_default() += 1;
        }
    });
    let mut lone = BTreeSet::new();
    collect_lone_references(schema, &mut lone);
    lone.retain(|name| uses.get(name) == Some(&1));
    let definition = |(keyword, name): &Name| schema.get(keyword)?.get(name).cloned();
    let pending = lone.iter();
    let named = pending.filter_map(|name| Some((name.clone(), definition(name)?)));
    let mut inliner = Inliner {
        pending: named.collect(),
        moved: &lone,
    };
    let mut inlined = schema.clone();
    if inliner.inline(&mut inlined, true, 0) && inliner.pending.is_empty() {
        for keyword in DEFINITIONS {
            retain_definitions(&mut inlined, keyword, |name| !lone.contains(name));
        }
        *schema = inlined;
    }
}

/// A definition of a schema: its keyword and its name.
type Name = (String, String);

/// Replaces references by definitions.
struct Inliner<'n, 'a> {
    /// The definitions whose references were not found so far.
    pending: BTreeMap<Name, Json<'a>>,
    moved: &'n BTreeSet<Name>,
}

impl<'a> Inliner<'_, 'a> {
    /// False if the schema nests too deep then.
    fn inline(&mut self, schema: &mut Json<'a>, is_root: bool, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        let definition = lone_reference(schema).and_then(|name| self.pending.remove(&name));
        if let Some(definition) = definition {
            *schema = definition;
            return self.inline(schema, false, depth + 1);
        }
        let Json::Object(members) = schema else {
            return true;
        };
        members.iter_mut().all(|(keyword, value)| {
            let is_definition = is_root && DEFINITIONS.contains(&&**keyword);
            let owner = keyword.to_string();
            subschemas(&owner, value).all(|(name, inner)| {
                // What is moved is read in its new place.
                let definition = |name: &str| (owner.clone(), name.to_owned());
                is_definition && name.is_some_and(|name| self.moved.contains(&definition(name)))
                    || self.inline(inner, false, depth + 1)
            })
        })
    }
}

/// The definitions to which a schema refers by references that stand alone.
fn collect_lone_references(schema: &mut Json<'_>, into: &mut BTreeSet<Name>) {
    into.extend(lone_reference(schema));
    let Json::Object(members) = schema else {
        return;
    };
    for (keyword, value) in members {
        subschemas(keyword, value).for_each(|(_, inner)| collect_lone_references(inner, into));
    }
}

/// The definition that a schema consists of, if it is a reference and nothing else.
fn lone_reference(schema: &Json<'_>) -> Option<Name> {
    let [(keyword, target)] = schema.as_object()? else {
        return None;
    };
    if keyword != "$ref" {
        return None;
    }
    match Reference::parse(target.as_str()?)? {
        Reference::Pointer(tokens) if tokens.len() == 2 => Reference::Pointer(tokens).definition(),
        _ => None,
    }
}

/// Removes what has no effect: empty `required` and `properties`. Unless a reference counts the branches of an `anyOf`,
/// equal ones become one, and so do those that only name types, or only list values. The branches of an `anyOf` in an
/// `anyOf` move out. A choice between types is a list of types.
///
/// The root keeps its `properties`: clients expect them there. Draft 4 has no empty `required`.
pub(super) fn remove_repetitions(
    schema: &mut Json<'_>,
    references: &BTreeSet<Reference>,
    is_draft_4: bool,
) {
    let counts = |reference: &Reference| match reference {
        Reference::Pointer(tokens) => tokens.iter().any(|token| token == "anyOf"),
        Reference::Anchor => false,
    };
    let removal = Removal {
        is_draft_4,
        branches: !references.iter().any(counts),
    };
    removal.remove(schema, true);
}

/// What is removed.
struct Removal {
    is_draft_4: bool,
    branches: bool,
}

impl Removal {
    fn remove(&self, schema: &mut Json<'_>, is_root: bool) {
        let Json::Object(members) = schema else {
            return;
        };
        members.retain(|(keyword, value)| match (keyword.as_ref(), value) {
            ("required", Json::Array(names)) => self.is_draft_4 || !names.is_empty(),
            ("properties", Json::Object(named)) => is_root || !named.is_empty(),
            _ => true,
        });
        // From the inside: a branch may name only a type after something was removed from it.
        for (keyword, value) in members.iter_mut() {
            subschemas(keyword, value).for_each(|(_, inner)| self.remove(inner, false));
        }
        if self.branches {
            merge_branches(members);
            merge_values(members, self.is_draft_4);
            merge_types(members);
        }
    }
}

/// Leaves equal branches of `anyOf` out, and makes one of those that only name types. A choice of types alone becomes the
/// `type` of the schema.
fn merge_branches(members: &mut Vec<Member<'_>>) {
    let has_type = members.iter().any(|(keyword, _)| keyword == "type");
    let any_of = members.iter_mut().find(|(keyword, _)| keyword == "anyOf");
    let Some(member) = any_of else {
        return;
    };
    let Json::Array(branches) = &mut member.1 else {
        return;
    };
    let nested = std::mem::take(branches).into_iter();
    branches.extend(nested.flat_map(inner_branches));
    let mut known = BTreeSet::new();
    branches.retain(|branch| known.insert(branch.to_json()));
    let named: Vec<&[Json<'_>]> = branches.iter().filter_map(lone_type).collect();
    if named.len() < 2 {
        return;
    }
    let mut types: Vec<Json<'_>> = Vec::new();
    for name in named.into_iter().flatten() {
        if !types.contains(name) {
            types.push(name.clone());
        }
    }
    let types = Json::Array(types);
    let mut is_first = true;
    branches.retain(|branch| lone_type(branch).is_none() || std::mem::take(&mut is_first));
    if branches.len() == 1 && !has_type {
        *member = (Cow::Borrowed("type"), types);
        return;
    }
    let mut remaining = branches.iter_mut();
    if let Some(merged) = remaining.find(|branch| lone_type(branch).is_some()) {
        *merged = Json::Object(vec![(Cow::Borrowed("type"), types)]);
    }
}

/// The branches of a schema that is an `anyOf` and nothing else, or the schema itself.
fn inner_branches(branch: Json<'_>) -> Vec<Json<'_>> {
    match branch {
        Json::Object(members) => match <[Member<'_>; 1]>::try_from(members) {
            Ok([(keyword, Json::Array(inner))]) if keyword == "anyOf" && !inner.is_empty() => inner,
            Ok(member) => vec![Json::Object(member.into())],
            Err(members) => vec![Json::Object(members)],
        },
        other => vec![other],
    }
}

/// Makes the branches of a choice that only list values of a type, or `null`, one `enum`: `1 | -1 | "asc" | null`.
fn merge_values(members: &mut Vec<Member<'_>>, is_draft_4: bool) {
    let repeats = |(keyword, _): &Member<'_>| keyword == "type" || keyword == "enum";
    let is_repeated = members.iter().any(repeats);
    let Some(at) = members.iter().position(|(keyword, _)| keyword == "anyOf") else {
        return;
    };
    let Some(Json::Array(branches)) = members.get_mut(at).map(|(_, value)| value) else {
        return;
    };
    let listed = |branch: &Json<'_>| values_of(branch, is_draft_4).is_some();
    let mut types = Vec::new();
    let mut values = Vec::new();
    for (kind, listed) in branches.iter().filter_map(|it| values_of(it, is_draft_4)) {
        types.extend((!types.contains(&kind)).then_some(kind));
        let new: Vec<Json<'_>> = listed
            .into_iter()
            .filter(|value| !values.contains(value))
            .collect();
        values.extend(new);
    }
    let count = branches.iter().filter(|branch| listed(branch)).count();
    let are_values = count > 1 && types.iter().any(|kind| *kind != NULL_TYPE);
    if !are_values || (is_repeated && count == branches.len()) {
        return;
    }
    let kind = if types.len() > 1 {
        Json::Array(types)
    } else {
        types.swap_remove(0)
    };
    let merged = [
        (Cow::Borrowed("type"), kind),
        (Cow::Borrowed("enum"), Json::Array(values)),
    ];
    if count == branches.len() {
        members.splice(at..=at, merged);
        return;
    }
    let first = branches.iter().position(listed).unwrap_or_default();
    branches.insert(first, Json::Object(merged.into()));
    let mut position = 0;
    branches.retain(|branch| {
        position += 1;
        position == first + 1 || !listed(branch)
    });
}

/// The type and the values of a schema that lists values of one type, or is `null`. A `null` among values of a type never
/// fits.
fn values_of<'a>(schema: &Json<'a>, is_draft_4: bool) -> Option<(Json<'a>, Vec<Json<'a>>)> {
    if lone_type(schema).is_some_and(|names| names == [NULL_TYPE]) {
        return Some((NULL_TYPE, vec![Json::Null]));
    }
    let name = schema.get("type")?;
    let constant = schema.get("const").filter(|_| !is_draft_4);
    let values = match constant {
        Some(value) => std::slice::from_ref(value),
        None => schema.get("enum")?.as_array()?,
    };
    let fits = |value: &Json<'_>| match name.as_str() {
        Some("string") => value.as_str().is_some(),
        Some("integer") => value.to_json().parse::<i64>().is_ok(),
        Some("number") => matches!(value, Json::Number(_)),
        Some("boolean") => matches!(value, Json::Bool(_)),
        _ => false,
    };
    let allowed = values.iter().filter(|value| **value != Json::Null);
    let values: Vec<Json<'a>> = allowed.cloned().collect();
    let is_simple = schema.as_object()?.len() == 2 && !values.is_empty();
    (is_simple && values.iter().all(fits)).then(|| (name.clone(), values))
}

/// Makes the branches of a choice between types one schema, if each of their keywords applies to one of the types alone.
fn merge_types(members: &mut Vec<Member<'_>>) {
    let Some(at) = members.iter().position(|(keyword, _)| keyword == "anyOf") else {
        return;
    };
    let Some(merged) = members.get(at).and_then(|(_, it)| typed_branches(it)) else {
        return;
    };
    let conflicts = |(keyword, _): &Member<'_>| {
        keyword.starts_with("unevaluated") || merged.iter().any(|(other, _)| other == keyword)
    };
    if !members.iter().any(conflicts) {
        members.splice(at..=at, merged);
    }
}

/// The `type` and the other keywords of these branches in one schema.
fn typed_branches<'a>(branches: &Json<'a>) -> Option<Vec<Member<'a>>> {
    let is_number = |name: &Json<'_>| matches!(name.as_str(), Some("integer" | "number"));
    let mut types: Vec<Json<'a>> = Vec::new();
    let mut merged: Vec<Member<'a>> = Vec::new();
    for branch in branches.as_array()? {
        let named = branch.get("type")?;
        let names = named.as_array().unwrap_or(std::slice::from_ref(named));
        for (keyword, value) in branch.as_object()?.iter().filter(|(key, _)| key != "type") {
            let applies = |name: &Json<'_>| {
                let kind = name.as_str().unwrap_or_default();
                let mut of_kind = TYPE_KEYWORDS.iter().filter(|(known, _)| *known == kind);
                of_kind.any(|(_, keywords)| keywords.split(' ').any(|known| known == &**keyword))
            };
            if !names.iter().any(applies) || merged.iter().any(|(other, _)| other == keyword) {
                return None;
            }
            merged.push((keyword.clone(), value.clone()));
        }
        for name in names {
            if types.contains(name) || (is_number(name) && types.iter().any(is_number)) {
                return None;
            }
            types.push(name.clone());
        }
    }
    let types = (types.len() > 1).then_some(Json::Array(types))?;
    merged.insert(0, (Cow::Borrowed("type"), types));
    Some(merged)
}

/// The names of types in a schema that has nothing else. Others are left as they are.
fn lone_type<'s, 'a>(schema: &'s Json<'a>) -> Option<&'s [Json<'a>]> {
    let [(keyword, value)] = schema.as_object()? else {
        return None;
    };
    let names = value.as_array().unwrap_or(std::slice::from_ref(value));
    let is_type = keyword == "type" && !names.is_empty();
    (is_type && names.iter().all(|name| name.as_str().is_some())).then_some(names)
}

const NULL_TYPE: Json<'_> = Json::String(Cow::Borrowed("null"));
/// Types, and keywords that say something of values of this type alone.
const TYPE_KEYWORDS: [(&str, &str); 5] = [
    ("array", "items maxItems minItems uniqueItems"),
    ("integer", LIMITS),
    ("number", LIMITS),
    (
        "object",
        "additionalProperties maxProperties minProperties properties propertyNames required",
    ),
    ("string", "maxLength minLength pattern"),
];
/// The keywords of numbers.
const LIMITS: &str = "exclusiveMaximum exclusiveMinimum maximum minimum";
/// Schemas within one another, after definitions were moved.
const MAX_DEPTH: usize = 32;
