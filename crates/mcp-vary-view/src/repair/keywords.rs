//! The keywords of JSON Schema, and which values each can have.

use mcp_vary::json::Json;

/// What a keyword has as its value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Keyword {
    Schema,
    /// A schema; before 2020-12, or a list of them.
    Items,
    Schemas,
    SchemaMap,
    Type,
    Names,
    Pattern,
    Reference,
    /// A number; in draft 4, a boolean.
    Exclusive,
    Number,
    Positive,
    Count,
    Flag,
    Text,
    List,
    Values,
}

impl Keyword {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "additionalProperties"
            | "additionalItems"
            | "contains"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contentSchema" => Self::Schema,
            "items" => Self::Items,
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => Self::Schemas,
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
            | "dependencies" | "dependentRequired" => Self::SchemaMap,
            "type" => Self::Type,
            "required" => Self::Names,
            "pattern" => Self::Pattern,
            "$ref" | "$dynamicRef" | "$id" | "$anchor" | "$dynamicAnchor" => Self::Reference,
            "exclusiveMinimum" | "exclusiveMaximum" => Self::Exclusive,
            "minimum" | "maximum" => Self::Number,
            "multipleOf" => Self::Positive,
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties" | "minContains" | "maxContains" => Self::Count,
            "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" | "nullable" => Self::Flag,
            "$schema" | "$comment" | "title" | "description" | "format" | "contentEncoding"
            | "contentMediaType" => Self::Text,
            "examples" => Self::List,
            "enum" => Self::Values,
            _ => return None,
        })
    }

    /// Whether `value` is right for a keyword that has no schemas in it.
    pub(super) fn accepts(self, value: &Json<'_>) -> bool {
        let number = match value {
            Json::Number(text) => text.parse::<f64>().ok(),
            _ => None,
        };
        match self {
            Self::Exclusive | Self::Number => number.is_some(),
            Self::Positive => number.is_some_and(|number| number > 0.0),
            Self::Count => number.is_some_and(|number| number >= 0.0 && number.fract() == 0.0),
            Self::Flag => matches!(value, Json::Bool(_)),
            Self::Text => value.as_str().is_some(),
            Self::List => value.as_array().is_some(),
            Self::Values => value.as_array().is_some_and(|all| !all.is_empty()),
            _ => true,
        }
    }
}

/// The type that servers mean by `name`.
pub(super) fn type_name(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "string" | "str" | "text" => "string",
        "integer" | "int" | "int32" | "int64" | "long" => "integer",
        "number" | "float" | "double" | "decimal" => "number",
        "boolean" | "bool" => "boolean",
        "object" | "dict" | "map" => "object",
        "array" | "list" => "array",
        "null" | "none" => "null",
        _ => return None,
    })
}

/// Whether each group and class of a pattern ends, as every dialect of regular expressions demands.
///
/// With `is_strict`, also whether it has nothing that other engines know and JavaScript refuses with the flag `u`: escapes
/// without meaning, braces that begin nothing, and the groups of Python.
pub(super) fn is_balanced(pattern: &str, is_strict: bool) -> bool {
    let mut groups = 0_usize;
    let mut braces = 0_usize;
    let mut is_in_class = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let is_right = match c {
            '\\' => chars.next().is_some_and(|escaped| {
                !is_strict || ESCAPES.contains(escaped) || is_in_class && escaped == '-'
            }),
            '[' => {
                is_in_class = true;
                true
            }
            ']' => std::mem::take(&mut is_in_class) || !is_strict,
            _ if is_in_class => true,
            '(' => {
                groups += 1;
                let group = chars.as_str().strip_prefix('?');
                !is_strict || group.is_none_or(|kind| kind.starts_with([':', '=', '!', '<']))
            }
            ')' => groups
                .checked_sub(1)
                .inspect(|outer| groups = *outer)
                .is_some(),
            '{' => {
                braces += 1;
                true
            }
            '}' => {
                braces
                    .checked_sub(1)
                    .inspect(|outer| braces = *outer)
                    .is_some()
                    || !is_strict
            }
            _ => true,
        };
        if !is_right {
            return false;
        }
    }
    groups == 0 && !is_in_class && !pattern.starts_with(['*', '+', '?'])
}

/// What can follow a backslash.
const ESCAPES: &str = "dDsSwWbBnrtvfcxupPk0123456789^$\\.*+?()[]{}|/";
