//! What the input schema of a tool says of one argument, as far as it decides how typed text becomes JSON.

use std::collections::BTreeSet;

use mcp_vary::json;
use serde_json::{Map, Value};

use crate::similar::nearest;

/// One argument of a tool.
#[derive(Debug)]
pub(super) struct Property<'a> {
    name: &'a str,
    types: Vec<&'a str>,
}

impl<'a> Property<'a> {
    /// The argument `name` in the input schema of a tool.
    pub(super) fn new(schema: &'a Value, name: &'a str) -> Self {
        let mut types = Vec::new();
        if let Some(property) = schema.get("properties").and_then(|all| all.get(name)) {
            collect_types(schema, property, MAX_DEPTH, &mut types);
            let mut seen = BTreeSet::new();
            types.retain(|known| seen.insert(*known));
        }
        Self { name, types }
    }

    /// `text` as JSON: a value of a type that the schema allows, or text.
    ///
    /// # Errors
    ///
    /// When the schema allows no text, and `text` has none of its types.
    pub(super) fn value_of(&self, text: &str) -> Result<String, String> {
        let value = serde_json::from_str::<Value>(text).ok();
        let of = value.as_ref().map(type_of);
        let is_allowed =
            |known: &&str| of == Some(*known) || (of == Some("integer") && *known == "number");
        if of != Some("string") && self.types.iter().any(is_allowed) {
            return Ok(text.trim().to_owned());
        }
        if self.types.is_empty() || self.types.contains(&"string") {
            return Ok(json::string(text));
        }
        let name = self.name;
        let types: Vec<_> = self.types.iter().map(|known| with_article(known)).collect();
        let wanted = types.join(" or ");
        let fix = if self
            .types
            .iter()
            .any(|known| ["array", "object"].contains(known))
        {
            format!(
                "; write it as JSON, like `{name}:={}`",
                example(&self.types)
            )
        } else {
            String::new()
        };
        Err(format!(
            "`{name}` is {wanted}, and `{text}` is not one{fix}"
        ))
    }
}

/// What is wrong with `arguments`, JSON text, by the input schema of the tool: arguments that it does not have, that are missing,
/// or of another type. `None` if nothing is. The server decides.
pub(super) fn hint(schema: &Value, arguments: &str) -> Option<String> {
    let arguments: Map<String, Value> = serde_json::from_str(arguments).ok()?;
    let none = Map::new();
    let known = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let is_open = |key: &str| schema.get(key).is_some_and(|it| *it != Value::Bool(false));
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let is_open = known.is_empty() && !is_closed
        || is_open("additionalProperties")
        || is_open("patternProperties");
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let names = required.filter_map(Value::as_str);
    let missing: Vec<_> = names
        .filter(|name| !arguments.contains_key(*name))
        .collect();
    let mut parts = Vec::new();
    let mut are_shown = false;
    for (name, value) in &arguments {
        let wanted = Property::new(schema, name).types;
        let given = type_of(value);
        let is_allowed = |it: &&str| *it == given || (*it == "number" && given == "integer");
        if !known.contains_key(name) && !is_open {
            // The one that is missing was meant, if that is possible.
            let among = missing.iter().copied();
            let meant =
                nearest(name, among).or_else(|| nearest(name, known.keys().map(String::as_str)));
            are_shown |= meant.is_none();
            let meant =
                meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
            parts.push(format!("no argument `{name}`{meant}"));
        } else if !wanted.is_empty() && !wanted.iter().any(is_allowed) {
            let types: Vec<_> = wanted.iter().map(|known| with_article(known)).collect();
            let wanted = types.join(" or ");
            let given = with_article(given);
            parts.push(format!("`{name}` is {given}, and has to be {wanted}"));
        } else if let Some(choices) = choices(known.get(name)).filter(|it| !it.contains(&value)) {
            let shown = choices
                .iter()
                .take(MOST_HINTS)
                .map(|choice| format!("`{}`", text_of(choice)));
            let quoted: Vec<_> = shown.collect();
            parts.push(format!("`{name}` has to be one of {}", quoted.join(", ")));
        }
    }
    parts.extend(missing.iter().map(|name| format!("`{name}` is missing")));
    let more = parts.len().saturating_sub(MOST_HINTS);
    parts.truncate(MOST_HINTS);
    parts.extend((more > 0).then(|| format!("and {more} more")));
    if are_shown && (1..=MOST_HINTS).contains(&known.len()) {
        let names: Vec<_> = known.keys().map(|name| format!("`{name}`")).collect();
        parts.push(format!("it takes {}", names.join(", ")));
    }
    (!parts.is_empty()).then(|| parts.join("; ").replace("?;", "?"))
}

/// The values that a property may have, if it names them.
fn choices(property: Option<&Value>) -> Option<Vec<&Value>> {
    let values = property?.get("enum")?.as_array()?;
    (!values.is_empty()).then(|| values.iter().collect())
}

/// A value as it is typed.
fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The most parts of a hint.
const MOST_HINTS: usize = 6;

/// Adds the types that `schema` allows, in the document `root`.
fn collect_types<'a>(root: &'a Value, schema: &'a Value, depth: usize, types: &mut Vec<&'a str>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    match schema.get("type") {
        Some(Value::String(known)) => types.push(known),
        Some(Value::Array(several)) => types.extend(several.iter().filter_map(Value::as_str)),
        _ => {
            let values = schema
                .get("enum")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            for value in values.chain(schema.get("const")) {
                types.push(type_of(value));
            }
            let pointer = schema.get("$ref").and_then(Value::as_str);
            let referred = pointer.and_then(|pointer| root.pointer(pointer.strip_prefix('#')?));
            let branches = ["anyOf", "oneOf"]
                .iter()
                .filter_map(|key| schema.get(key)?.as_array());
            for branch in branches.flatten().chain(referred) {
                collect_types(root, branch, depth, types);
            }
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn with_article(known: &str) -> String {
    match known {
        "null" => known.to_owned(),
        "integer" | "array" | "object" => format!("an {known}"),
        _ => format!("a {known}"),
    }
}

fn example(types: &[&str]) -> &'static str {
    if types.contains(&"array") {
        "[\"a\"]"
    } else {
        "{\"a\":1}"
    }
}

/// How deep schemas are followed. References can lead in a circle.
const MAX_DEPTH: usize = 8;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn is(schema: &Value, text: &str, expected: Result<&str, &str>) {
        let root = json!({"properties": {"x": schema}, "$defs": {"n": {"type": "number"}, "c": {"$ref": "#/$defs/c"}}});
        let value = Property::new(&root, "x").value_of(text);
        assert_eq!(
            value.as_deref().map_err(String::as_str),
            expected,
            "{schema} {text}"
        );
    }

    #[test]
    fn text_becomes_what_the_schema_allows() {
        is(&json!({"type": "number"}), "7", Ok("7"));
        is(&json!({"type": "number"}), "1e3", Ok("1e3"));
        is(&json!({"type": ["integer", "null"]}), "null", Ok("null"));
        is(&json!({"type": ["integer", "string"]}), "7a", Ok("\"7a\""));
        is(&json!({"type": "string"}), "true", Ok("\"true\""));
        is(&json!({"type": "array"}), "[1, 2]", Ok("[1, 2]"));
        is(
            &json!({"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/n"}]}),
            "2.5",
            Ok("2.5"),
        );
        is(&json!({"enum": [1, "one"]}), "1", Ok("1"));
        is(&json!({"enum": ["1"]}), "1", Ok("\"1\""));
        is(&json!({}), "1", Ok("\"1\""));
        is(&json!({"$ref": "#/$defs/c"}), "1", Ok("\"1\""));
    }

    #[track_caller]
    fn hints(arguments: &str, expected: &str) {
        let schema = json!({"properties": {"id": {"type": "string"}, "limit": {"type": ["integer", "null"]}, "state": {"enum": ["open", "closed"]}, "x": {}}, "required": ["id"]});
        let found = hint(&schema, arguments).unwrap_or_default();
        assert_eq!(found, expected, "{arguments}");
    }

    #[test]
    fn arguments_that_the_tool_does_not_take_are_named() {
        hints(r#"{"id": "1"}"#, "");
        hints(r#"{"id": "1", "limit": null, "x": [1]}"#, "");
        hints("{}", "`id` is missing");
        hints(
            r#"{"idd": 1}"#,
            "no argument `idd`; did you mean `id`? `id` is missing",
        );
        hints(
            r#"{"id": "1", "Limit": 2}"#,
            "no argument `Limit`; did you mean `limit`?",
        );
        hints(
            r#"{"id": "1", "verbose": true}"#,
            "no argument `verbose`; it takes `id`, `limit`, `state`, `x`",
        );
        hints(
            r#"{"id": "1", "state": "opne"}"#,
            "`state` has to be one of `open`, `closed`",
        );
        hints(
            r#"{"id": 7, "limit": 2.5}"#,
            "`id` is an integer, and has to be a string; `limit` is a number, and has to be an integer or null",
        );
        hints(
            r#"{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}"#,
            "no argument `a`; no argument `b`; no argument `c`; no argument `d`; no argument `e`; no argument `f`; and 2 more; it takes `id`, `limit`, `state`, `x`",
        );
        hints("[]", "");
        for open in [
            json!({"properties": {"a": {}}, "additionalProperties": true}),
            json!({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}),
            json!({"properties": {"a": {}}, "patternProperties": {"^x": {}}}),
            json!({"type": "object"}),
            json!({}),
            json!(true),
        ] {
            assert_eq!(hint(&open, r#"{"other": "1"}"#), None, "{open}");
        }
        let closed = json!({"properties": {"a": {}}, "additionalProperties": false});
        assert_eq!(
            hint(&closed, r#"{"b": 1}"#).as_deref(),
            Some("no argument `b`; it takes `a`")
        );
    }

    #[test]
    fn text_of_another_type_is_refused_with_the_type() {
        is(
            &json!({"type": "integer"}),
            "2.5",
            Err("`x` is an integer, and `2.5` is not one"),
        );
        is(
            &json!({"type": ["boolean", "null"]}),
            "yes",
            Err("`x` is a boolean or null, and `yes` is not one"),
        );
        is(
            &json!({"type": "array"}),
            "a,b",
            Err("`x` is an array, and `a,b` is not one; write it as JSON, like `x:=[\"a\"]`"),
        );
    }
}
