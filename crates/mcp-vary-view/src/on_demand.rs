//! Input schemas that a view leaves to `describe_tools`: what it lists in their place, and which arguments they name.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;

use mcp_vary::json::{Json, JsonError, Members, write_string};
use mcp_vary::shape::ToolFacts;

use super::derive::schema::{Prose, Reference, compact, find, subschemas};
use super::style::ListedArguments;

/// What a view lists in place of a schema.
#[derive(Debug)]
pub(super) struct OpenSchema {
    /// An object that names arguments and accepts all that the tool does.
    pub(super) json: String,
    /// The names of all arguments.
    pub(super) names: Vec<String>,
}

/// The open schema for the arguments of `schema`.
///
/// Every argument of `listed` has its `type`, or `{}` if its schema has none; [`typed`] writes both as clients need them.
/// Arguments that are marked with `x-mcp-header` are always listed and stay whole, since clients read the mark. `additionalProperties` says
/// that there are arguments that are not listed.
pub(super) fn open_schema(schema: &str, listed: ListedArguments) -> Result<OpenSchema, JsonError> {
    let root = Json::parse(schema)?;
    let arguments = SchemaArguments::read(&root);
    let mut properties = String::new();
    let mut is_complete = !arguments.is_open;
    for (name, property) in &arguments.properties {
        let is_marked = has_header_mark(property);
        let is_listed = match listed {
            ListedArguments::All => true,
            ListedArguments::Required => arguments.required.contains(*name),
            ListedArguments::None => false,
        };
        if !is_marked && !is_listed {
            is_complete = false;
            continue;
        }
        if !properties.is_empty() {
            properties.push(',');
        }
        write_string(&mut properties, name);
        properties.push(':');
        if is_marked {
            properties.push_str(&compact(&property.to_json(), Prose::None)?);
        } else {
            properties.push_str(&arguments.open_property(&[Some(property)], 0));
        }
    }
    let others = if is_complete {
        ""
    } else {
        r#","additionalProperties":true"#
    };
    let names = arguments.properties.iter();
    Ok(OpenSchema {
        json: format!(r#"{{"type":"object","properties":{{{properties}}}{others}}}"#),
        names: names.map(|(name, _)| (*name).to_owned()).collect(),
    })
}

/// Whether `schema`, or a schema in it, is marked with `x-mcp-header`.
fn has_header_mark(schema: &Json<'_>) -> bool {
    match schema {
        Json::Object(members) => members
            .iter()
            .any(|(key, value)| key == HEADER_MARK || has_header_mark(value)),
        Json::Array(elements) => elements.iter().any(has_header_mark),
        _ => false,
    }
}

/// Whether a tool keeps its compact schema in a view that leaves others out: it has a user interface, which fills in
/// forms.
pub(super) fn keeps_schema(tool: &Members<'_>) -> bool {
    ToolFacts::listed(&tool.to_json()).ui
}

/// The names that a schema gives to the properties of a call's arguments; `None` if a call may use others too.
///
/// Others are allowed by `additionalProperties` other than `false`, by `patternProperties`, and by a schema without
/// `properties`:
///
/// > For tools with no parameters, use one of these valid approaches: … `{ "type": "object" }` - Accepts any object
/// > (MCP 2025-11-25, server/tools, "Tool")
///
/// A schema with references that cannot be followed names nothing.
pub(super) fn argument_names(schema: &str) -> Option<BTreeSet<String>> {
    let root = Json::parse(schema).ok()?;
    let arguments = SchemaArguments::read(&root);
    let is_closed = arguments.has_properties && !arguments.is_open && arguments.steps.get() > 0;
    let properties = arguments
        .properties
        .iter()
        .map(|(name, _)| (*name).to_owned());
    let required = arguments.required.into_iter();
    is_closed.then(|| properties.chain(required).collect())
}

/// What a schema says of an object's properties, in all of its parts that apply to the object itself.
struct SchemaArguments<'j> {
    root: &'j Json<'j>,
    /// Each name once, with the first schema that it has.
    properties: Vec<(&'j str, &'j Json<'j>)>,
    known: BTreeSet<&'j str>,
    required: BTreeSet<String>,
    has_properties: bool,
    is_open: bool,
    /// The steps that are left, so that references cannot take long.
    steps: Cell<u32>,
}

impl<'j> SchemaArguments<'j> {
    fn read(root: &'j Json<'j>) -> Self {
        let mut arguments = Self {
            root,
            properties: Vec::new(),
            known: BTreeSet::new(),
            required: BTreeSet::new(),
            has_properties: false,
            is_open: false,
            steps: Cell::new(MAX_STEPS),
        };
        arguments.collect(root, 0);
        arguments
    }

    fn takes_step(&self) -> bool {
        let left = self.steps.get();
        self.steps.set(left.saturating_sub(1));
        left > 0
    }

    fn collect(&mut self, schema: &'j Json<'j>, depth: usize) {
        if depth > MAX_DEPTH || !self.takes_step() {
            self.is_open = true;
            return;
        }
        for (keyword, value) in schema.as_object().unwrap_or_default() {
            let elements = value.as_array().unwrap_or_default();
            let members = value.as_object().unwrap_or_default();
            match keyword.as_ref() {
                "properties" => {
                    self.has_properties = true;
                    members
                        .iter()
                        .for_each(|(name, schema)| self.add(name, schema));
                }
                "required" => {
                    let names = elements.iter().filter_map(Json::as_str);
                    self.required.extend(names.map(str::to_owned));
                }
                "additionalProperties" | "unevaluatedProperties" => {
                    self.is_open |= *value != Json::Bool(false);
                }
                "patternProperties" | "$dynamicRef" | "$recursiveRef" => self.is_open = true,
                "allOf" | "anyOf" | "oneOf" => {
                    elements
                        .iter()
                        .for_each(|part| self.collect(part, depth + 1));
                }
                "if" | "then" | "else" => self.collect(value, depth + 1),
                "dependentSchemas" | "dependencies" => {
                    members
                        .iter()
                        .for_each(|(_, part)| self.collect(part, depth + 1));
                }
                "$ref" => match self.target(value) {
                    Some(target) => self.collect(target, depth + 1),
                    None => self.is_open = true,
                },
                _ => {}
            }
        }
    }

    fn add(&mut self, name: &'j str, schema: &'j Json<'j>) {
        if self.takes_step() && self.known.insert(name) {
            self.properties.push((name, schema));
        }
    }

    fn target(&self, reference: &Json<'_>) -> Option<&'j Json<'j>> {
        match Reference::parse(reference.as_str()?)? {
            Reference::Pointer(tokens) => find(self.root, &tokens),
            Reference::Anchor => None,
        }
    }

    /// The schema of a value that all of `schemas` describe, with nothing but its type: `{}` if one of them does not say.
    ///
    /// A list has the type of its elements, since models' interfaces refuse a list without.
    fn open_property(&self, schemas: &[Option<&'j Json<'j>>], depth: usize) -> String {
        let mut types = Types::default();
        let says = |schema: &Option<&'j Json<'j>>| {
            schema.is_some_and(|schema| self.types(schema, 0, &mut types))
        };
        if depth > MAX_LISTS || !schemas.iter().all(says) {
            return "{}".to_owned();
        }
        let items = if types.items.is_empty() {
            String::new()
        } else {
            format!(
                r#","items":{}"#,
                self.open_property(&types.items, depth + 1)
            )
        };
        match types.names.as_slice() {
            [name] => format!(r#"{{"type":"{name}"{items}}}"#),
            names => format!(r#"{{"type":["{}"]{items}}}"#, names.join(r#"",""#)),
        }
    }

    /// Adds the types that `schema` takes; false, and none added, if it does not say.
    fn types(&self, schema: &'j Json<'j>, depth: usize, into: &mut Types<'j>) -> bool {
        if depth > MAX_DEPTH || !self.takes_step() {
            return false;
        }
        let written: Vec<&str> = match schema.get("type") {
            Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
            Some(name) => name.as_str().into_iter().collect(),
            None => values(schema),
        };
        let known: Vec<_> = TYPES.iter().filter(|name| written.contains(name)).collect();
        if !known.is_empty() {
            if known.contains(&&"array") {
                // What follows `prefixItems` is not all of the elements.
                let items = schema
                    .get("items")
                    .filter(|_| schema.get("prefixItems").is_none());
                into.items.push(items);
            }
            into.names.extend(known);
            into.names
                .sort_by_key(|name| TYPES.iter().position(|known| known == name));
            into.names.dedup();
            return true;
        }
        if let Some(target) = schema
            .get("$ref")
            .and_then(|reference| self.target(reference))
        {
            return self.types(target, depth + 1, into);
        }
        let parts = |keyword| schema.get(keyword).and_then(Json::as_array);
        let before = into.clone();
        let mut says = |part| {
            let says = self.types(part, depth + 1, into);
            if !says {
                into.clone_from(&before);
            }
            says
        };
        if parts("allOf").is_some_and(|parts| parts.iter().any(&mut says)) {
            return true;
        }
        let branches = parts("anyOf")
            .or_else(|| parts("oneOf"))
            .unwrap_or_default();
        !branches.is_empty() && branches.iter().all(says)
    }
}

/// The types that a value may have, in the order of [`TYPES`], and the schemas of elements if it may be a list.
#[derive(Clone, Default)]
struct Types<'j> {
    names: Vec<&'static str>,
    items: Vec<Option<&'j Json<'j>>>,
}

/// `schema` with a type for each argument, and for each element of a list, in the form that clients read which make
/// classes or strict schemas of it: one type, or a choice of them in `anyOf`. It accepts the same values.
///
/// AutoGen refuses all tools for one argument without a type, or with a list of types; OpenAI's strict mode refuses the
/// first, and any list without `items`.
pub(super) fn typed(schema: &str) -> Result<String, JsonError> {
    let mut root = Json::parse(schema)?;
    type_arguments(&mut root)?;
    Ok(root.to_json())
}

fn type_arguments(schema: &mut Json<'_>) -> Result<(), JsonError> {
    let Json::Object(members) = schema else {
        return Ok(());
    };
    for (keyword, value) in members {
        let is_typed = matches!(keyword.as_ref(), "properties" | "items");
        let has_others = matches!(
            keyword.as_ref(),
            "anyOf" | "oneOf" | "$defs" | "definitions"
        );
        // The choice between all types stays as it is.
        if !is_typed && !has_others || *value == Json::parse(ANY_TYPE)? {
            continue;
        }
        for (_, inner) in subschemas(keyword, value) {
            type_arguments(inner)?;
            if is_typed {
                add_type(inner)?;
            }
        }
    }
    Ok(())
}

fn add_type(schema: &mut Json<'_>) -> Result<(), JsonError> {
    if *schema == Json::Bool(true) {
        *schema = Json::Object(Vec::new());
    }
    let says = |keyword: &&str| schema.get(keyword).is_some();
    let says_elsewhere = ["anyOf", "oneOf", "allOf", "enum", "$ref"].iter().any(says);
    let has_items = ["items", "prefixItems"].iter().any(says);
    let constant = values(schema);
    let Json::Object(members) = schema else {
        return Ok(());
    };
    let at = members.iter().position(|(keyword, _)| keyword == "type");
    match at.map(|at| &members[at].1) {
        Some(Json::Array(_)) if !says_elsewhere => choose_types(members),
        Some(Json::String(name)) if name == "array" && !has_items => {
            let any = vec![("anyOf".into(), Json::parse(ANY_TYPE)?)];
            members.push(("items".into(), Json::Object(any)));
        }
        None if says_elsewhere => {}
        None => match constant.first() {
            Some(name) => members.push(("type".into(), Json::String((*name).into()))),
            None => members.push(("anyOf".into(), Json::parse(ANY_TYPE)?)),
        },
        Some(_) => {}
    }
    Ok(())
}

/// Writes the list of types as a choice, in which `items` belongs to the list.
fn choose_types(members: &mut Vec<(Cow<'_, str>, Json<'_>)>) {
    let mut take = |keyword: &str| {
        let at = members.iter().position(|(key, _)| key == keyword)?;
        Some(members.remove(at).1)
    };
    let types = take("type");
    let mut items = take("items");
    let Some(Json::Array(names)) = types else {
        return;
    };
    let mut branches = Vec::with_capacity(names.len());
    for name in names {
        let shared = items.take_if(|_| name.as_str() == Some("array"));
        let mut branch = vec![("type".into(), name)];
        branch.extend(shared.map(|shared| ("items".into(), shared)));
        branches.push(Json::Object(branch));
    }
    members.push(("anyOf".into(), Json::Array(branches)));
}

/// The types of the values that `enum` or `const` allows.
fn values(schema: &Json<'_>) -> Vec<&'static str> {
    let options = schema.get("enum").and_then(Json::as_array);
    let listed = options.or_else(|| schema.get("const").map(std::slice::from_ref));
    let kind = |value: &Json<'_>| match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
        Json::Number(_) => "number",
    };
    listed.unwrap_or_default().iter().map(kind).collect()
}

/// The types of JSON Schema, in the order in which a union lists them.
const TYPES: [&str; 7] = [
    "string", "integer", "number", "boolean", "object", "array", "null",
];
/// A choice between all types.
const ANY_TYPE: &str = r#"[{"type":"string"},{"type":"integer"},{"type":"number"},{"type":"boolean"},{"type":"object"},{"type":"array","items":{}},{"type":"null"}]"#;
/// The mark of arguments that clients also send as headers.
const HEADER_MARK: &str = "x-mcp-header";
/// Schemas and properties that are read of one schema.
const MAX_STEPS: u32 = 10_000;
/// Lists in lists whose elements have types.
const MAX_LISTS: usize = 3;
/// References and choices that are followed from one schema to the next.
const MAX_DEPTH: usize = 32;

#[cfg(test)]
mod tests;
