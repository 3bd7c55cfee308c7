//! Repairs the schemas of tools, so that every client and model can read them.

mod keywords;
mod references;
mod required;

use std::borrow::Cow;
use std::collections::BTreeSet;

use mcp_vary::ignored::for_display;
use mcp_vary::json::Json;

use self::keywords::{Keyword, is_balanced, type_name};
use self::references::References;
use self::required::{add_required, keep_first_names};
use super::check::SchemaCheck;
use super::fault::truncated;

/// What a schema describes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a tool has an input and an output")]
pub enum SchemaUse {
    /// The arguments: always an object.
    Input,
    /// Results of a server with sessions: always an object.
    ObjectOutput,
    /// Results of a server without sessions: any value.
    AnyOutput,
}

type Members<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

/// Repairs `schema`, which is the member `name` of a tool, and adds the first problems to `problems`. Returns whether
/// anything was wrong.
///
/// # Properties
///
/// - What is valid stays, and so does everything that is not a keyword of JSON Schema.
/// - A keyword whose value has one meaning gets a valid value: `{"type": "int"}` means `integer`. Another one is removed,
///   so that the schema accepts more than its author wanted, but never less.
/// - Every `$ref` leads somewhere, and `type` at the root is `object`, unless it is [`SchemaUse::AnyOutput`].
/// - An output schema can be compiled by clients that compile all of a list, and refuse the list if one fails.
/// - Idempotent.
///
/// # Errors
///
/// Why the schema cannot be used: it describes no object, or nothing.
///
/// # Examples
///
/// ```
/// use mcp_vary::json::Json;
/// use mcp_vary_view::{SchemaUse, repair_schema};
///
/// let mut schema = Json::parse(r#"{"properties": {"a": {"type": "int", "required": true}}}"#)?;
/// let mut problems = Vec::new();
/// repair_schema(&mut schema, "inputSchema", SchemaUse::Input, &mut problems).unwrap();
/// assert_eq!(schema.to_json(), r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}"#);
/// assert_eq!(problems[0], "`inputSchema/properties/a/required` cannot be true");
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
pub fn repair_schema(
    schema: &mut Json<'_>,
    name: &str,
    used_as: SchemaUse,
    problems: &mut Vec<String>,
) -> Result<bool, String> {
    let is_empty = match schema {
        Json::Null | Json::Bool(true) => true,
        Json::Array(elements) => elements.is_empty(),
        Json::Object(members) => members.is_empty(),
        _ => false,
    };
    let mut repair = Repair {
        dialect: Dialect::default(),
        is_output: used_as != SchemaUse::Input,
        path: name.to_owned(),
        depth: 0,
        references: References::default(),
        problems,
        is_changed: false,
    };
    if is_empty && used_as == SchemaUse::ObjectOutput {
        return Err(format!("`{name}` cannot be {}", shown(schema)));
    }
    if is_empty && used_as == SchemaUse::Input && !matches!(schema, Json::Object(_)) {
        repair.note("", &format!("cannot be {}", shown(schema)));
        *schema = Json::Object(Vec::new());
    }
    let Json::Object(members) = schema else {
        return match (used_as, &*schema) {
            (SchemaUse::AnyOutput, Json::Bool(_)) => Ok(false),
            _ => Err(format!("`{name}` cannot be {}", shown(schema))),
        };
    };
    repair.dialect = Dialect::of(members);
    repair.schema(members);
    if used_as != SchemaUse::AnyOutput {
        repair.root(members)?;
    }
    repair.properties_of_root(members);
    let dangling = std::mem::take(&mut repair.references).dangling(schema);
    if !dangling.is_empty() {
        references::remove(schema, &dangling);
    }
    for reference in &dangling {
        repair.note(
            "",
            &format!("has a `$ref` to nothing, `{}`", excerpt(reference)),
        );
    }
    Ok(repair.is_changed)
}

/// The rules that changed between the drafts of JSON Schema.
#[derive(Clone, Copy, Debug, Default)]
struct Dialect {
    /// `items` can be a list.
    has_tuples: bool,
    /// `exclusiveMinimum` can be a boolean.
    has_exclusive_flags: bool,
}

impl Dialect {
    /// Without `$schema`, it is 2020-12 (MCP 2025-11-25, basic, "JSON Schema Usage").
    fn of(root: &Members<'_>) -> Self {
        let declared = root.iter().find(|(key, _)| key == "$schema");
        let uri = declared.and_then(|(_, uri)| uri.as_str());
        let is_one_of =
            |drafts: &[&str]| uri.is_some_and(|uri| drafts.iter().any(|draft| uri.contains(draft)));
        Self {
            has_tuples: is_one_of(&["draft-03", "draft-04", "draft-06", "draft-07", "2019-09"]),
            has_exclusive_flags: is_one_of(&["draft-03", "draft-04"]),
        }
    }
}

struct Repair<'p> {
    dialect: Dialect,
    is_output: bool,
    /// The name of the member, and the way from there to the schema that is read.
    path: String,
    depth: usize,
    references: References,
    problems: &'p mut Vec<String>,
    is_changed: bool,
}

impl Repair<'_> {
    /// Notes a problem of the member `key` of this schema, or of the schema itself if that is empty.
    fn note(&mut self, key: &str, problem: &str) {
        self.is_changed = true;
        if self.problems.len() < MAX_PROBLEMS {
            let slash = if key.is_empty() { "" } else { "/" };
            let place = excerpt(&format!("{}{slash}{key}", self.path));
            self.problems.push(format!("`{place}` {problem}"));
        }
    }

    /// Notes that the member `key` of this schema cannot have this value.
    fn note_value(&mut self, key: &str, value: &Json<'_>) {
        self.note(key, &format!("cannot be {}", shown(value)));
    }

    /// Does `read` in the schema below `key`.
    fn below<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(key);
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        self.path.truncate(length);
        found
    }

    /// Repairs the keywords of one schema.
    fn schema(&mut self, members: &mut Members<'_>) {
        self.tuples(members);
        self.exclusive_bounds(members);
        let required = self.required_properties(members);
        members.retain_mut(|(key, value)| self.keyword(key, value));
        if self.is_output {
            self.what_ajv_refuses(members);
        }
        if !required.is_empty() {
            add_required(members, required);
        }
    }

    /// `type` is `object`.
    fn root(&mut self, members: &mut Members<'_>) -> Result<(), String> {
        let member = members.iter_mut().find(|(key, _)| key == "type");
        let kind = member.map(|(_, kind)| kind);
        let is_object = |kind: &Json<'_>| kind.as_str() == Some("object");
        match kind {
            None => {
                self.note("", "has no `type`");
                members.insert(0, ("type".into(), Json::String("object".into())));
            }
            Some(kind) if is_object(kind) => {}
            Some(kind) => {
                let is_among = kind.as_array().is_some_and(|all| all.iter().any(is_object));
                if !is_among {
                    return Err(format!("`{}` has the type {}", self.path, shown(kind)));
                }
                self.note_value("type", kind);
                *kind = Json::String("object".into());
            }
        }
        Ok(())
    }

    /// Each property has an object: the revisions until 2025-11-25 have no other schemas there.
    fn properties_of_root(&mut self, members: &mut Members<'_>) {
        let properties = members.iter_mut().find(|(key, _)| key == "properties");
        if let Some((_, Json::Object(properties))) = properties {
            for (name, property) in properties {
                let Json::Bool(accepts) = *property else {
                    continue;
                };
                self.note_value(&format!("properties/{name}"), property);
                let nothing = (!accepts).then(|| ("not".into(), Json::Object(Vec::new())));
                *property = Json::Object(nothing.into_iter().collect());
            }
        }
    }

    /// A list in `items` is `prefixItems` since 2020-12, and `additionalItems` is `items`.
    fn tuples(&mut self, members: &mut Members<'_>) {
        let has = |members: &Members<'_>, name: &str| members.iter().any(|(key, _)| key == name);
        let is_tuple = |(key, value): &&mut (Cow<'_, str>, Json<'_>)| {
            key == "items" && value.as_array().is_some_and(|all| !all.is_empty())
        };
        if self.dialect.has_tuples || has(members, "prefixItems") {
            return;
        }
        let Some((key, value)) = members.iter_mut().find(is_tuple) else {
            return;
        };
        self.note_value("items", value);
        *key = "prefixItems".into();
        let others = members.iter_mut();
        others
            .filter(|(key, _)| key == "additionalItems")
            .for_each(|(key, _)| *key = "items".into());
    }

    /// `exclusiveMinimum: true` says of `minimum` what `exclusiveMinimum` says alone since draft 6.
    fn exclusive_bounds(&mut self, members: &mut Members<'_>) {
        if self.dialect.has_exclusive_flags && !self.is_output {
            return;
        }
        for (bound, flag) in [
            ("minimum", "exclusiveMinimum"),
            ("maximum", "exclusiveMaximum"),
        ] {
            let find = |name: &str| members.iter().position(|(key, _)| key == name);
            let Some((at, flagged)) = find(bound).zip(find(flag)) else {
                continue;
            };
            if members[flagged].1 == Json::Bool(true) && matches!(members[at].1, Json::Number(_)) {
                self.note_value(flag, &Json::Bool(true));
                members[flagged].1 = members[at].1.clone();
                members.remove(at);
            }
        }
    }

    /// Removes `required: true` and `false` of properties, as draft 3 has them, and returns the names of the required.
    fn required_properties<'a>(&mut self, members: &mut Members<'a>) -> Vec<Cow<'a, str>> {
        let mut required = Vec::new();
        let properties = members.iter_mut().find(|(key, _)| key == "properties");
        let Some((_, Json::Object(properties))) = properties else {
            return required;
        };
        for (name, property) in properties {
            let Json::Object(property) = property else {
                continue;
            };
            let flag = |(key, value): &(Cow<'_, str>, Json<'_>)| {
                key == "required" && matches!(value, Json::Bool(_))
            };
            let Some(at) = property.iter().position(flag) else {
                continue;
            };
            let (_, value) = property.remove(at);
            self.note_value(&format!("properties/{name}/required"), &value);
            if value == Json::Bool(true) {
                required.push(name.clone());
            }
        }
        required
    }

    /// Clients that compile an output schema by Ajv without its meta-schema refuse these, and the whole list with it.
    fn what_ajv_refuses(&mut self, members: &mut Members<'_>) {
        let has_type = members.iter().any(|(key, _)| key == "type");
        members.retain(|(key, value)| {
            let is_refused = key == "id" || (key == "nullable" && !has_type);
            if is_refused {
                self.note_value(key, value);
            }
            !is_refused
        });
    }

    /// Repairs the value of a keyword. Returns whether it stays.
    fn keyword(&mut self, key: &str, value: &mut Json<'_>) -> bool {
        let Some(keyword) = Keyword::named(key) else {
            return true;
        };
        let stays = match keyword {
            Keyword::Schema => self.subschema(key, value),
            Keyword::Items if self.dialect.has_tuples && value.as_array().is_some() => {
                self.schemas(key, value)
            }
            Keyword::Items => self.subschema(key, value),
            Keyword::Schemas => self.schemas(key, value),
            Keyword::SchemaMap => self.schema_map(key, value),
            Keyword::Type => self.types(key, value),
            Keyword::Names => self.names(key, value),
            Keyword::Exclusive if self.dialect.has_exclusive_flags && !self.is_output => {
                matches!(value, Json::Number(_) | Json::Bool(_))
            }
            Keyword::Pattern => {
                let pattern = value.as_str();
                pattern.is_some_and(|pattern| self.is_pattern(pattern))
            }
            Keyword::Reference => {
                let reference = value.as_str();
                reference.inspect(|target| self.references.add(key, target, self.depth > 0));
                reference.is_some()
            }
            plain => plain.accepts(value),
        };
        if !stays {
            self.note_value(key, value);
        }
        stays
    }

    /// Repairs what should be a schema. Returns whether it is one.
    fn subschema(&mut self, key: &str, value: &mut Json<'_>) -> bool {
        if let Some(name) = value.as_str().and_then(type_name) {
            self.note_value(key, value);
            *value = Json::Object(vec![("type".into(), Json::String(name.into()))]);
        }
        match value {
            Json::Bool(_) => true,
            Json::Object(members) => {
                self.below(key, |repair| repair.schema(members));
                true
            }
            _ => false,
        }
    }

    fn schemas(&mut self, key: &str, value: &mut Json<'_>) -> bool {
        let Json::Array(elements) = value else {
            return false;
        };
        let mut places = (0..).map(|at: usize| at.to_string());
        self.below(key, |repair| {
            elements.retain_mut(|element| {
                let place = places.next().unwrap_or_default();
                let stays = repair.subschema(&place, element);
                if !stays {
                    repair.note_value(&place, element);
                }
                stays
            });
        });
        !elements.is_empty()
    }

    /// A map of schemas. What is none accepts everything, so that its name stays known.
    fn schema_map(&mut self, key: &str, value: &mut Json<'_>) -> bool {
        let Json::Object(members) = value else {
            return false;
        };
        self.below(key, |repair| {
            members.retain_mut(|(name, value)| repair.mapped(key, name, value));
        });
        true
    }

    /// Repairs the value of `name` in the map `key`. Returns whether it stays.
    fn mapped(&mut self, key: &str, name: &str, value: &mut Json<'_>) -> bool {
        let is_of_names =
            key == "dependentRequired" || (key == "dependencies" && value.as_array().is_some());
        let is_right = if is_of_names {
            self.names(name, value)
        } else {
            self.subschema(name, value)
        };
        let is_named = key != "patternProperties" || self.is_pattern(name);
        if is_right && is_named {
            return true;
        }
        self.note_value(name, value);
        *value = Json::Object(Vec::new());
        is_named && key != "dependentRequired"
    }

    fn types(&mut self, key: &str, value: &mut Json<'_>) -> bool {
        let known = |kind: &Json<'_>| kind.as_str().and_then(type_name);
        if let Json::Array(kinds) = &*value {
            let mut types: Vec<Json<'_>> = Vec::new();
            for name in kinds.iter().filter_map(known) {
                let name = Json::String(name.into());
                if !types.contains(&name) {
                    types.push(name);
                }
            }
            if types != *kinds && !types.is_empty() {
                self.note_value(key, value);
                *value = Json::Array(types);
                return true;
            }
            return !types.is_empty();
        }
        let name = known(value);
        if let Some(name) = name.filter(|name| value.as_str() != Some(name)) {
            self.note_value(key, value);
            *value = Json::String(name.into());
        }
        name.is_some()
    }

    /// A list of different names; one name alone is a list of it.
    fn names(&mut self, key: &str, value: &mut Json<'_>) -> bool {
        let is_text = |name: &Json<'_>| name.as_str().is_some();
        if is_text(value) {
            self.note_value(key, value);
            *value = Json::Array(vec![value.clone()]);
        }
        let Json::Array(names) = &*value else {
            return false;
        };
        let different: BTreeSet<_> = names.iter().filter_map(Json::as_str).collect();
        if different.len() < names.len() {
            self.note_value(key, value);
            let Json::Array(names) = value else {
                return false;
            };
            names.retain(is_text);
            keep_first_names(names);
        }
        true
    }

    /// Whether a pattern can be compiled. Clients compile those of output schemas when they read the list.
    fn is_pattern(&self, pattern: &str) -> bool {
        let schema = || Json::Object(vec![("pattern".into(), Json::String(pattern.into()))]);
        let compiles = || SchemaCheck::new(&schema().to_json());
        is_balanced(pattern, self.is_output) && (!self.is_output || compiles().is_ok())
    }
}

/// A value of a server as a problem shows it.
fn shown(value: &Json<'_>) -> String {
    match value {
        Json::Array(elements) if !elements.is_empty() => "a list".to_owned(),
        Json::Object(members) if !members.is_empty() => "an object".to_owned(),
        Json::String(text) => format!("`{}`", excerpt(text)),
        other => excerpt(&other.to_json()),
    }
}

fn excerpt(text: &str) -> String {
    truncated(&for_display(text), MAX_SHOWN)
}

/// Characters of what a server wrote.
const MAX_SHOWN: usize = 80;
/// The most problems that are noted of one item.
const MAX_PROBLEMS: usize = 4;

#[cfg(test)]
mod tests;
