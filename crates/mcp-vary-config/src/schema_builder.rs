//! The shapes of values in the JSON Schema of the configuration.
//!
//! They are generated from the same tables that the reader uses: a `KeySpec` describes the allowed values for both.
//! The reader checks what a schema cannot express: which variants exist, the range of a duration with units, whether
//! the braces of a pattern are closed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::units;

/// Builds the schema of the values of a setting.
pub(super) type Shape = fn(&mut SchemaBuilder) -> Value;

/// A schema under construction: the definitions that its shapes refer to.
#[derive(Debug, Default)]
pub(super) struct SchemaBuilder {
    pub(super) definitions: Map<String, Value>,
    /// The rows of tables in the reference, by what the tables have the keys of.
    pub(super) reference: BTreeMap<&'static str, String>,
}

impl SchemaBuilder {
    /// A reference to the definition `name`, which is added if it does not exist.
    pub(super) fn define(&mut self, name: &str, what: fn(&mut Self) -> Value) -> Value {
        if !self.definitions.contains_key(name) {
            let schema = what(self);
            self.definitions.insert(name.to_owned(), schema);
        }
        json!({"$ref": format!("#/$defs/{name}")})
    }

    /// A table with keys that the user chooses.
    pub(super) fn named(&mut self, keys: &str, value: &Value) -> Value {
        json!({
            "type": "object",
            "properties": {"<<": {}},
            "propertyNames": {"pattern": format!("^(?:{keys}|<<)$")},
            "additionalProperties": value,
        })
    }

    /// The table `shape` with keys that it must have. A key may also come from a table that is merged into it.
    pub(super) fn with_required(&mut self, mut shape: Value, keys: &[&str]) -> Value {
        let required = keys
            .iter()
            .map(|key| json!({"anyOf": [{"required": [key]}, {"required": ["<<"]}]}));
        shape["allOf"] = required.collect();
        shape
    }

    /// A list of equal items.
    pub(super) fn list(&mut self, item: &Value) -> Value {
        json!({"type": "array", "items": item})
    }

    /// A text that contains a variable.
    pub(super) fn variable(&mut self) -> Value {
        self.define("variable", |schema| {
            let pattern = format!(r"(?:^|[^$])\$\{{{VARIABLE}\}}");
            json!({"allOf": [schema.text(), {"pattern": pattern}]})
        })
    }

    /// A text, which may contain variables.
    pub(super) fn text(&mut self) -> Value {
        self.define("text", |_| {
            let broken = format!(r"(?:^|[^$])\$\{{(?!{VARIABLE}\}})");
            json!({"type": "string", "not": {"pattern": broken}})
        })
    }

    /// A text, a number or a boolean.
    pub(super) fn word(&mut self) -> Value {
        self.define(
            "word",
            |schema| json!({"anyOf": [schema.text(), {"type": ["number", "boolean"]}]}),
        )
    }

    /// A list of words.
    pub(super) fn strings(&mut self) -> Value {
        let word = self.word();
        self.list(&word)
    }

    /// A table of words.
    pub(super) fn named_strings(&mut self) -> Value {
        let word = self.word();
        self.named(ANYTHING, &word)
    }

    /// Any JSON value.
    pub(super) fn any(&mut self) -> Value {
        self.define("value", |schema| {
            let value = json!({"$ref": "#/$defs/value"});
            json!({"anyOf": [
                schema.text(),
                {"type": ["number", "boolean", "null"]},
                {"type": "array", "items": value},
                {"type": "object", "additionalProperties": value},
            ]})
        })
    }

    /// A table of any JSON values.
    pub(super) fn values(&mut self) -> Value {
        json!({"type": "object", "additionalProperties": self.any()})
    }

    /// On or off.
    pub(super) fn switch(&mut self) -> Value {
        self.define("switch", |schema| {
            let strings = ["on", "off", "true", "false", "yes", "no"].map(any_case);
            json!({"anyOf": [
                {"enum": ["on", "off", true, false]},
                {"type": "string", "pattern": format!(r"^\s*(?:{})\s*$", strings.join("|"))},
                schema.variable(),
            ]})
        })
    }

    /// One of several names. Names that YAML reads as another type are allowed in both forms.
    pub(super) fn choice<T>(&mut self, choices: &[(&str, T)]) -> Value {
        let mut names = Vec::new();
        for (name, _) in choices {
            match *name {
                "true" => names.push(json!(true)),
                "false" => names.push(json!(false)),
                _ => {}
            }
            names.push(json!(name));
        }
        json!({"anyOf": [{"enum": names}, self.variable()]})
    }

    /// A duration with its unit, or a number of seconds.
    pub(super) fn duration(&mut self) -> Value {
        self.define("duration", |schema| {
            let names: Vec<_> = units::DURATIONS.iter().map(|(unit, _)| *unit).collect();
            let units = names.join("|");
            let pattern = format!(
                r"^\s*(?:0*[0-9]{{1,3}}(?:\.[0-9]*)?|(?:[0-9]+(?:\.[0-9]*)?\s*(?:{units})\s*)+)\s*$"
            );
            json!({"anyOf": [
                {"type": "string", "pattern": pattern},
                {"type": "number", "minimum": 0.001, "exclusiveMaximum": units::UNIT_NEEDED},
                schema.variable(),
            ]})
        })
    }

    /// A duration, or off.
    pub(super) fn duration_or_off(&mut self) -> Value {
        json!({"anyOf": [{"enum": ["off", "no", "false", false]}, self.duration()]})
    }

    /// A number of bytes, with or without unit.
    pub(super) fn size(&mut self) -> Value {
        self.define("size", |schema| {
            let units: Vec<_> = units::SIZES
                .iter()
                .map(|(unit, _)| any_case(unit))
                .collect();
            let pattern = format!(r"^\s*[0-9]+(?:\.[0-9]*)?\s*(?:{})\s*$", units.join("|"));
            json!({"anyOf": [
                {"type": "string", "pattern": pattern},
                {"type": "number", "minimum": units::SMALLEST, "maximum": units::LARGEST},
                schema.variable(),
            ]})
        })
    }

    /// A count.
    pub(super) fn count<N: Serialize>(&mut self, range: RangeInclusive<N>) -> Value {
        json!({"anyOf": [
            {"type": "integer", "minimum": range.start(), "maximum": range.end()},
            {"type": "string", "pattern": r"^\s*\+?[0-9]+\s*$"},
            self.variable(),
        ]})
    }

    /// A whole number, which may be negative.
    pub(super) fn number(&mut self, range: RangeInclusive<i32>) -> Value {
        json!({"anyOf": [
            {"type": "integer", "minimum": range.start(), "maximum": range.end()},
            {"type": "string", "pattern": r"^\s*[+-]?[0-9]+\s*$"},
            self.variable(),
        ]})
    }

    /// A port, or an address that ends with one.
    pub(super) fn address(&mut self) -> Value {
        json!({"anyOf": [
            {"type": "integer", "minimum": 0, "maximum": u16::MAX},
            {"type": "string", "pattern": r"(?:^|:)\+?[0-9]{1,5}$"},
            self.variable(),
        ]})
    }

    /// A program to start.
    pub(super) fn program(&mut self) -> Value {
        json!({"allOf": [self.text(), {"minLength": 1}]})
    }

    /// The address of an endpoint.
    pub(super) fn url(&mut self) -> Value {
        let address = format!(
            r"^(?:{}|{})://[^/?#:\s]\S*$",
            any_case("http"),
            any_case("https")
        );
        json!({"anyOf": [{"type": "string", "pattern": address}, self.variable()]})
    }

    /// Headers, or patterns for headers.
    pub(super) fn headers(&mut self) -> Value {
        let word = self.word();
        self.named(HEADER_NAME, &word)
    }

    /// The id of a variant.
    pub(super) fn variant_id(&mut self) -> Value {
        json!({"allOf": [self.word(), {"minLength": 1}]})
    }

    /// A date. A time of day after it is ignored.
    pub(super) fn date(&mut self) -> Value {
        self.pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}")
    }

    /// A text that matches `pattern`, or one that contains a variable.
    pub(super) fn pattern(&mut self, pattern: &str) -> Value {
        json!({"anyOf": [{"type": "string", "pattern": pattern}, self.variable()]})
    }
}

/// The default from the reference, as a YAML value.
pub(super) fn as_written(default: &str) -> Value {
    if let Some(items) = default
        .strip_prefix('[')
        .and_then(|remaining| remaining.strip_suffix(']'))
    {
        let texts = items.split(", ").filter(|item| !item.is_empty());
        return texts.map(Value::from).collect();
    }
    default
        .parse::<i64>()
        .map_or_else(|_| json!(default), Value::from)
}

/// A case-insensitive pattern for `word`.
pub(super) fn any_case(word: &str) -> String {
    let letter = |c: char| format!("[{c}{}]", c.to_ascii_uppercase());
    word.chars().map(letter).collect()
}

/// The content of `${}`: see `variables`. A default ends at the first closing brace and cannot contain variables.
const VARIABLE: &str = r"(?:env:)?[A-Za-z0-9_]+(?::-(?:[^}$]|\$(?!\{))*)?";

/// Keys that the reader ignores, and YAML's merge key, which is resolved earlier.
pub(super) const BESIDE: &str = "^(?:x-|<<$)";

/// The pattern for names of headers.
pub(super) const HEADER_NAME: &str = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";

/// Any key.
pub(super) const ANYTHING: &str = r"[\s\S]*";
