//! The input schema of a tool whose arguments a view changes.

use std::borrow::Cow;
use std::collections::BTreeSet;

use mcp_vary::json::{Json, JsonError, Members, elements, string};

use super::{ArgumentOverride, Arguments, object};

impl Arguments {
    /// The input schema that the view lists.
    pub(crate) fn schema<'t>(&self, schema: &'t str) -> Result<Cow<'t, str>, JsonError> {
        if self.overrides.is_empty() {
            return Ok(Cow::Borrowed(schema));
        }
        let mut root = Members::parse(schema)?;
        let properties = root.get_written("properties").unwrap_or("{}");
        let properties = self.properties(&Members::parse(properties)?)?;
        root.set("properties", properties);
        let required = root
            .get("required")
            .map(elements)
            .transpose()?
            .unwrap_or_default();
        match self.required(&required) {
            Some(required) => root.set("required", required),
            None => drop(root.remove("required")),
        }
        let written = root.to_json();
        if !self.has_conditions(&root, &written) {
            return Ok(Cow::Owned(written));
        }
        let mut json = Json::parse(&written)?.into_owned();
        self.rewrite_conditions(&mut json, true);
        self.redirect_references(&mut json, schema);
        Ok(Cow::Owned(json.to_json()))
    }

    fn properties(&self, properties: &Members<'_>) -> Result<String, JsonError> {
        let mut shown = Vec::new();
        for (name, schema) in properties.iter() {
            let Some(changed) = self.overrides.get(name) else {
                shown.push((name, Cow::Borrowed(schema)));
                continue;
            };
            if changed.is_unavailable() {
                continue;
            }
            let mut schema = Cow::Borrowed(schema);
            if changed.description.is_some() || changed.default.is_some() {
                let written = if schema.starts_with('{') {
                    schema.as_ref()
                } else {
                    "{}"
                };
                let mut members = Members::parse(written)?;
                if let Some(description) = &changed.description {
                    members.set("description", string(description));
                }
                if let Some(default) = &changed.default {
                    members.set("default", default.to_json());
                }
                schema = Cow::Owned(members.to_json());
            }
            shown.push((self.view_name(name), schema));
        }
        Ok(object(&shown))
    }

    /// The required arguments, in their original order.
    fn required(&self, required: &[&str]) -> Option<String> {
        let named = required
            .iter()
            .filter_map(|name| serde_json::from_str::<String>(name).ok());
        let mut names: Vec<String> = named.collect();
        let added = self
            .overrides
            .iter()
            .filter(|(name, changed)| changed.required && !names.contains(name));
        let added_names: Vec<String> = added.map(|(name, _)| name.clone()).collect();
        names.extend(added_names);
        let retained = |name: &&String| {
            let changed = self.overrides.get(*name);
            changed.is_none_or(|changed| {
                !changed.is_unavailable() && (changed.default.is_none() || changed.required)
            })
        };
        let shown: Vec<String> = names
            .iter()
            .filter(retained)
            .map(|name| string(self.view_name(name)))
            .collect();
        (!shown.is_empty()).then(|| format!("[{}]", shown.join(",")))
    }

    /// Whether a changed argument may be named outside of `properties` and `required`.
    fn has_conditions(&self, root: &Members<'_>, written: &str) -> bool {
        let elsewhere = root.iter().filter(|(key, _)| CONDITIONS.contains(key));
        elsewhere.count() > 0 || written.contains("#/properties/")
    }

    /// Rewrites conditions on the same object with the view's names. A condition on an unavailable argument is
    /// removed; the server still checks it.
    fn rewrite_conditions(&self, schema: &mut Json<'_>, root: bool) {
        let Json::Object(members) = schema else {
            return;
        };
        let negative = |key: &str| ["if", "then", "else", "not"].contains(&key);
        let drops = members
            .iter()
            .any(|(key, value)| negative(key) && self.mentions_unavailable(value));
        members.retain(|(key, value)| match key.as_ref() {
            "dependentRequired" | "dependentSchemas" | "dependencies" => {
                !self.mentions_unavailable(value)
            }
            key => !(drops && negative(key)),
        });
        for (key, value) in members.iter_mut() {
            match (key.as_ref(), value) {
                ("properties", Json::Object(named)) if !root => self.rename_properties(named),
                ("required", Json::Array(names)) if !root => self.rename_required(names),
                (
                    "dependentRequired" | "dependentSchemas" | "dependencies",
                    Json::Object(named),
                ) => {
                    self.rename_dependent(named);
                }
                ("allOf" | "anyOf" | "oneOf", Json::Array(schemas)) => {
                    // Two branches may become equal, and then both match.
                    let loosened = schemas
                        .iter()
                        .any(|schema| self.mentions_unavailable(schema));
                    schemas
                        .iter_mut()
                        .for_each(|schema| self.rewrite_conditions(schema, false));
                    if loosened && key == "oneOf" {
                        *key = Cow::Borrowed("anyOf");
                    }
                }
                (key, schema) if negative(key) => self.rewrite_conditions(schema, false),
                _ => {}
            }
        }
    }

    fn mentions_unavailable(&self, json: &Json<'_>) -> bool {
        let mut gone = self
            .overrides
            .iter()
            .filter(|(_, changed)| changed.is_unavailable());
        gone.any(|(name, _)| mentions(json, name))
    }

    fn rename_properties(&self, named: &mut Vec<(Cow<'_, str>, Json<'_>)>) {
        let is_gone = |name: &str| {
            self.overrides
                .get(name)
                .is_some_and(ArgumentOverride::is_unavailable)
        };
        named.retain(|(name, _)| !is_gone(name));
        named.iter_mut().for_each(|(name, _)| self.rename(name));
    }

    fn rename_required(&self, names: &mut Vec<Json<'_>>) {
        names.retain(|name| {
            let changed = name.as_str().and_then(|name| self.overrides.get(name));
            changed.is_none_or(|changed| {
                !changed.is_unavailable() && changed.implied_value().is_none()
            })
        });
        names.iter_mut().for_each(|name| self.rename_text(name));
    }

    /// Rewrites names or schemas that depend on the presence of an argument.
    fn rename_dependent(&self, named: &mut [(Cow<'_, str>, Json<'_>)]) {
        for (name, value) in named {
            self.rename(name);
            match value {
                Json::Array(names) => names.iter_mut().for_each(|name| self.rename_text(name)),
                schema => self.rewrite_conditions(schema, false),
            }
        }
    }

    fn rename(&self, name: &mut Cow<'_, str>) {
        if let Some(new) = self
            .overrides
            .get(name.as_ref())
            .and_then(|changed| changed.name.clone())
        {
            *name = Cow::Owned(new);
        }
    }

    fn rename_text(&self, name: &mut Json<'_>) {
        if let Json::String(name) = name {
            self.rename(name);
        }
    }

    /// Redirects references to an argument: to its new name, or to a definition if it is no longer listed.
    fn redirect_references(&self, json: &mut Json<'static>, original: &str) {
        let mut moved = BTreeSet::new();
        self.redirect_in(json, &mut moved);
        let Ok(original) = Json::parse(original) else {
            return;
        };
        let mut definitions: Vec<(Cow<'static, str>, Json<'static>)> = Vec::new();
        for name in moved {
            let schema = original
                .get("properties")
                .and_then(|properties| properties.get(&name));
            let mut definition = schema.cloned().map_or(Json::Bool(true), Json::into_owned);
            self.redirect_in(&mut definition, &mut BTreeSet::new());
            definitions.push((Cow::Owned(definition_name(&name)), definition));
        }
        let has_moved = !definitions.is_empty();
        if has_moved && let Json::Object(members) = json {
            match members.iter_mut().find(|(key, _)| key == "$defs") {
                Some((_, Json::Object(there))) => there.extend(definitions),
                _ => members.push((Cow::Borrowed("$defs"), Json::Object(definitions))),
            }
        }
    }

    fn redirect_in(&self, json: &mut Json<'_>, moved: &mut BTreeSet<String>) {
        match json {
            Json::Object(members) => members.iter_mut().for_each(|(key, value)| match value {
                Json::String(reference) if key == "$ref" => {
                    if let Some(new) = self.redirected(reference, moved) {
                        *reference = Cow::Owned(new);
                    }
                }
                value => self.redirect_in(value, moved),
            }),
            Json::Array(elements) => elements
                .iter_mut()
                .for_each(|element| self.redirect_in(element, moved)),
            _ => {}
        }
    }

    fn redirected(&self, reference: &str, moved: &mut BTreeSet<String>) -> Option<String> {
        let remaining = reference.strip_prefix("#/properties/")?;
        let (token, remaining) = remaining.split_at(remaining.find('/').unwrap_or(remaining.len()));
        let name = token.replace("~1", "/").replace("~0", "~");
        let changed = self.overrides.get(&name)?;
        if changed.is_unavailable() {
            let pointer = mcp_vary::json::pointer("#/$defs", &definition_name(&name));
            moved.insert(name);
            return Some(format!("{pointer}{remaining}"));
        }
        let name = changed.name.as_ref()?;
        Some(format!(
            "{}{remaining}",
            mcp_vary::json::pointer("#/properties", name)
        ))
    }
}

/// The name of the definition that holds a hidden argument's schema.
fn definition_name(name: &str) -> String {
    format!("argument {name}")
}

/// Whether any text or key in `json` equals `name`.
fn mentions(json: &Json<'_>, name: &str) -> bool {
    match json {
        Json::String(text) => text == name,
        Json::Array(elements) => elements.iter().any(|element| mentions(element, name)),
        Json::Object(members) => members
            .iter()
            .any(|(key, value)| key == name || mentions(value, name)),
        _ => false,
    }
}

/// Keywords whose schemas apply to the same object.
const CONDITIONS: [&str; 10] = [
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "then",
    "else",
    "not",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
];
