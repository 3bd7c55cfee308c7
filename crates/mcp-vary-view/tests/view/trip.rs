//! Arguments on their way: from what a server takes into a dialect's form, and back.

use std::collections::BTreeMap;

use jsonschema::Validator;
use mcp_vary_testkit::defaults::default_with;
use mcp_vary_view::{ArgumentOverride, Dialect, PreparedTool, Style, ToolOverride};
use serde_json::{Map, Value, json};

use crate::value;

/// One tool in one dialect.
pub(crate) struct Trip {
    tool: PreparedTool,
    dialect: Dialect,
    original: Validator,
    schema: Value,
    /// The dialect's schema in JSON Schema's terms.
    rewritten: Validator,
    /// What the view calls the server's arguments, where it has other names for them.
    names: BTreeMap<String, String>,
}

impl Trip {
    /// Nothing when the server's schema is none.
    pub(crate) fn new(tool: &str, dialect: Dialect) -> Option<Self> {
        Self::with_names(tool, dialect, BTreeMap::new())
    }

    /// The same in a view with other names for some arguments.
    pub(crate) fn with_names(
        tool: &str,
        dialect: Dialect,
        names: BTreeMap<String, String>,
    ) -> Option<Self> {
        let original = jsonschema::options()
            .build(&value(tool)["inputSchema"])
            .ok()?;
        let style = default_with::<Style>(|it| it.dialect = Some(dialect));
        let mut change = ToolOverride::default();
        for (native, name) in &names {
            let renamed = default_with::<ArgumentOverride>(|it| it.name = Some(name.clone()));
            change.arguments.insert(native.clone(), renamed);
        }
        let (prepared, mistakes) = PreparedTool::new(tool, &change, style).ok()?;
        assert_eq!(mistakes, [], "{tool}");
        let schema = value(prepared.json().unwrap_or(tool))["inputSchema"].clone();
        let terms = nullable(&schema);
        let rewritten = jsonschema::validator_for(&terms).expect("a schema");
        Some(Self {
            tool: prepared,
            dialect,
            original,
            schema,
            rewritten,
            names,
        })
    }

    /// Whether the trip was made: the value is valid, and the dialect can say it.
    #[track_caller]
    pub(crate) fn makes(&self, value: Value) -> bool {
        let value = without_nulls(value);
        if !self.original.is_valid(&value) {
            return false;
        }
        let named = renamed(value, self.names.iter());
        let reported = match self.dialect {
            Dialect::Gemini => Some((named.clone(), named)),
            _ => self.strict(&self.schema, &named),
        };
        let back = self.names.iter().map(|(native, name)| (name, native));
        let reported = reported.map(|(reported, meant)| (reported, renamed(meant, back)));
        let Some((reported, meant)) = reported.filter(|(_, meant)| self.original.is_valid(meant))
        else {
            return false;
        };
        let schema = &self.schema;
        if !self.rewritten.is_valid(&reported) {
            let fault = self.rewritten.iter_errors(&reported).next().expect("one");
            assert!(
                self.dialect == Dialect::Gemini && has_arrays_in_arrays(&reported),
                "{reported} passes the server's schema, and not {schema}: {fault} at {}",
                fault.instance_path()
            );
            return false;
        }
        let sent = reported.to_string();
        let arrived = self.tool.arguments(&sent);
        let arrived = arrived.unwrap_or_else(|faults| panic!("{reported} by {schema}: {faults:?}"));
        let arrived_value = without_nulls(crate::value(&arrived));
        assert_eq!(arrived_value, meant, "{reported} by {schema}");
        if self.dialect == Dialect::Gemini {
            assert_eq!(arrived, meant.to_string());
        }
        true
    }

    /// The value as a strict client says it, and what it then means: without properties that nothing names.
    fn strict(&self, schema: &Value, value: &Value) -> Option<(Value, Value)> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = self.schema.pointer(reference.strip_prefix('#')?)?;
            return self.strict(target, value);
        }
        if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
            let mut reported = branches.iter().filter_map(|branch| {
                let reported = self.strict(branch, value)?;
                self.takes(branch, &reported.0).then_some(reported)
            });
            return reported.next();
        }
        match value {
            Value::Object(members) => {
                let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
                    let sent = schema["description"].as_str().unwrap_or_default();
                    let text = sent.ends_with("A JSON object, written as text.");
                    return text.then(|| (json!(value.to_string()), value.clone()));
                };
                let (mut reported, mut meant) = (Map::new(), Map::new());
                for (name, schema) in properties {
                    match members.get(name) {
                        Some(value) => {
                            let (one, other) = self.strict(schema, value)?;
                            reported.insert(name.clone(), one);
                            meant.insert(name.clone(), other);
                        }
                        None => drop(reported.insert(name.clone(), Value::Null)),
                    }
                }
                Some((reported.into(), meant.into()))
            }
            Value::Array(elements) => {
                let items = schema.get("items")?;
                let all: Option<Vec<_>> = elements
                    .iter()
                    .map(|element| self.strict(items, element))
                    .collect();
                let (reported, meant): (Vec<_>, Vec<_>) = all?.into_iter().unzip();
                Some((reported.into(), meant.into()))
            }
            scalar => Some((scalar.clone(), scalar.clone())),
        }
    }

    fn takes(&self, branch: &Value, value: &Value) -> bool {
        let mut branch = branch.clone();
        if let Some(definitions) = self.schema.get("$defs") {
            branch["$defs"] = definitions.clone();
        }
        jsonschema::is_valid(&branch, value)
    }
}

/// The object with other names for some members, in the order in which they were.
fn renamed<'n>(value: Value, names: impl Iterator<Item = (&'n String, &'n String)>) -> Value {
    let names: BTreeMap<&String, &String> = names.collect();
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| match names.get(&name) {
                Some(new) => ((*new).clone(), value),
                None => (name, value),
            })
            .collect(),
        other => other,
    }
}

/// Gemini has no word for an array of anything: one of arrays is not listed then.
fn has_arrays_in_arrays(value: &Value) -> bool {
    match value {
        Value::Array(elements) => elements
            .iter()
            .any(|element| element.is_array() || has_arrays_in_arrays(element)),
        Value::Object(members) => members.values().any(has_arrays_in_arrays),
        _ => false,
    }
}

/// Without what a strict client would say that way of what it leaves out.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().filter(|(_, value)| !value.is_null());
            members
                .map(|(name, value)| (name, without_nulls(value)))
                .collect()
        }
        Value::Array(elements) => elements.into_iter().map(without_nulls).collect(),
        scalar => scalar,
    }
}

/// `nullable: true` as JSON Schema says it.
fn nullable(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let mut plain: Map<String, Value> = members
                .iter()
                .filter(|(key, value)| *key != "nullable" || !value.is_boolean())
                .map(|(key, value)| (key.clone(), nullable(value)))
                .collect();
            if members.get("nullable") != Some(&Value::Bool(true)) {
                return plain.into();
            }
            // Data keeps its place.
            let default = plain.shift_remove("default");
            let _ = default;
            json!({"anyOf": [plain, {"type": "null"}]})
        }
        Value::Array(elements) => elements.iter().map(nullable).collect(),
        scalar => scalar.clone(),
    }
}
