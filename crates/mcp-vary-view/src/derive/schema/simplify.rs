//! Shorter forms of a schema that accept the same values: definitions where they are used, and nothing twice.

use std::collections::{BTreeMap, BTreeSet};

use mcp_vary::json::Json;

use super::{DEFINITIONS, REFERENCES, Reference, retain_definitions, subschemas, visit};

/// Moves each definition to the place of the only reference to it, if that reference stands alone in a schema.
///
/// All references in `schema` must be pointers that are found in it. References to parts of a definition, and those in
/// data, count as well. Nothing is moved if the schema would nest too deep.
pub(super) fn inline_definitions(schema: &mut Json<'_>) {
    let mut uses: BTreeMap<Name, usize> = BTreeMap::new();
    visit(schema, &mut |key, value| {
        let text = value.as_str().filter(|_| REFERENCES.contains(&key));
        let reference = text.and_then(Reference::parse);
        if let Some(name) = reference.and_then(Reference::definition) {
            *uses.entry(name).or_default() += 1;
        }
    });
    let mut lone = BTreeSet::new();
    collect_lone_references(schema, &mut lone);
    lone.retain(|name| uses.get(name) == Some(&1));
    let definition = |(keyword, name): &Name| schema.get(keyword)?.get(name).cloned();
    let pending = lone.iter();
    let pending = pending.filter_map(|name| Some((name.clone(), definition(name)?)));
    let mut inliner = Inliner {
        pending: pending.collect(),
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
            let keyword = keyword.to_string();
            subschemas(&keyword, value).all(|(name, inner)| {
                // What is moved is read in its new place.
                let moved = name.filter(|_| is_definition);
                let moved = moved.map(|name| (keyword.clone(), name.to_owned()));
                moved.is_some_and(|name| self.moved.contains(&name))
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
    match Reference::parse(target.as_str().filter(|_| keyword == "$ref")?)? {
        Reference::Pointer(tokens) if tokens.len() == 2 => Reference::Pointer(tokens).definition(),
        _ => None,
    }
}

/// Removes what has no effect: empty `required` and `properties` and, unless a reference counts them, equal branches of
/// `anyOf`.
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
        empty_required: !is_draft_4,
        equal_branches: !references.iter().any(counts),
    };
    removal.remove(schema, true);
}

/// What is removed.
struct Removal {
    empty_required: bool,
    equal_branches: bool,
}

impl Removal {
    fn remove(&self, schema: &mut Json<'_>, is_root: bool) {
        let Json::Object(members) = schema else {
            return;
        };
        members.retain(|(keyword, value)| match (keyword.as_ref(), value) {
            ("required", Json::Array(names)) => !self.empty_required || !names.is_empty(),
            ("properties", Json::Object(named)) => is_root || !named.is_empty(),
            _ => true,
        });
        for (keyword, value) in members {
            if let ("anyOf", Json::Array(branches), true) =
                (keyword.as_ref(), &mut *value, self.equal_branches)
            {
                let mut known = BTreeSet::new();
                branches.retain(|branch| known.insert(branch.to_json()));
            }
            subschemas(keyword, value).for_each(|(_, inner)| self.remove(inner, false));
        }
    }
}

/// Schemas within one another, after definitions were moved.
const MAX_DEPTH: usize = 32;
