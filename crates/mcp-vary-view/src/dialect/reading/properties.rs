//! The properties that schemas declare.

use std::collections::BTreeMap;

use mcp_vary::json::Json;

use super::keywords::{all, choices};
use super::{MAX_CONJUNCTION, Members, ResolvedChoices};

/// The declared properties, in order of declaration.
pub(super) struct NamedProperties<'j> {
    pub(super) properties: Vec<(&'j str, Vec<&'j Json<'j>>)>,
    pub(super) required: BTreeMap<&'j str, ()>,
}

impl<'j> NamedProperties<'j> {
    pub(super) fn new(schemas: &[Members<'j>], used: ResolvedChoices<'_, 'j>) -> Self {
        let mut named = Self {
            properties: Vec::new(),
            required: BTreeMap::new(),
        };
        let mut positions = BTreeMap::new();
        for properties in all(schemas, "properties") {
            named.add(properties, &mut positions, true);
        }
        // A property under a condition may be present.
        for part in conditional(schemas, used) {
            if let Some(properties) = part.get("properties") {
                named.add(properties, &mut positions, false);
            }
        }
        let required = all(schemas, "required")
            .filter_map(Json::as_array)
            .flatten();
        for name in required.filter_map(Json::as_str) {
            named.required.insert(name, ());
            positions.entry(name).or_insert_with(|| {
                named.properties.push((name, Vec::new()));
                named.properties.len() - 1
            });
        }
        named
    }

    pub(super) fn add(
        &mut self,
        properties: &'j Json<'j>,
        positions: &mut BTreeMap<&'j str, usize>,
        again: bool,
    ) {
        for (name, schema) in properties.as_object().unwrap_or_default() {
            match positions.get(name.as_ref()) {
                Some(place) if again => self.properties[*place].1.push(schema),
                Some(_) => {}
                None => {
                    positions.insert(name, self.properties.len());
                    self.properties.push((name, vec![schema]));
                }
            }
        }
    }
}

/// The schemas that apply to some values only, without the choices that are already resolved.
pub(super) fn conditional<'j>(
    schemas: &[Members<'j>],
    used: ResolvedChoices<'_, 'j>,
) -> Vec<&'j Json<'j>> {
    let mut parts: Vec<&Json<'j>> = ["if", "then", "else"]
        .iter()
        .flat_map(|keyword| all(schemas, keyword))
        .collect();
    let dependent = ["dependentSchemas", "dependencies"].iter();
    let schemas_of = dependent.flat_map(|keyword| all(schemas, keyword));
    parts.extend(
        schemas_of
            .filter_map(Json::as_object)
            .flatten()
            .map(|(_, schema)| schema),
    );
    let left = choices(schemas).filter(|choice| !used.contains(&std::ptr::from_ref(*choice)));
    parts.extend(left.filter_map(Json::as_array).flatten());
    parts.truncate(MAX_CONJUNCTION);
    parts
}
