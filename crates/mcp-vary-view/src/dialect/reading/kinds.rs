//! The kinds of values that a schema accepts.

use mcp_vary::json::Json;

use super::Members;
use super::keywords::all;

/// The kinds of values that a schema accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Kinds {
    pub(super) string: bool,
    /// Any number.
    pub(super) float: bool,
    /// Whole numbers only.
    pub(super) integer: bool,
    pub(super) boolean: bool,
    pub(super) array: bool,
    pub(super) object: bool,
    pub(super) null: bool,
}

impl Kinds {
    pub(super) const ALL: Self = Self {
        string: true,
        float: true,
        integer: false,
        boolean: true,
        array: true,
        object: true,
        null: true,
    };

    pub(super) fn new(schemas: &[Members<'_>], values: Option<&[&Json<'_>]>) -> Self {
        let named = all(schemas, "type").filter_map(Self::from_type_keyword);
        if let Some(kinds) = named.reduce(Self::intersection) {
            return kinds;
        }
        if let Some(values) = values {
            let mut kinds = Self::default();
            values.iter().for_each(|value| kinds.add(value));
            return kinds;
        }
        let mut kinds = Self::default();
        for (keyword, _) in schemas.iter().flat_map(|members| members.iter()) {
            kinds.infer(keyword);
        }
        if kinds == Self::default() {
            Self::ALL
        } else {
            kinds
        }
    }

    pub(super) fn from_type_keyword(written: &Json<'_>) -> Option<Self> {
        let mut kinds = Self::default();
        match written {
            Json::String(name) => kinds.add_named(name),
            Json::Array(names) => names
                .iter()
                .filter_map(Json::as_str)
                .for_each(|name| kinds.add_named(name)),
            _ => {}
        }
        (kinds != Self::default()).then_some(kinds)
    }

    pub(super) fn add_named(&mut self, name: &str) {
        match name {
            "string" => self.string = true,
            "number" => self.float = true,
            "integer" => self.integer = true,
            "boolean" => self.boolean = true,
            "array" => self.array = true,
            "object" => self.object = true,
            "null" => self.null = true,
            _ => {}
        }
    }

    pub(super) fn add(&mut self, value: &Json<'_>) {
        match value {
            Json::String(_) => self.string = true,
            Json::Number(spelling) if spelling.contains(['.', 'e', 'E']) => self.float = true,
            Json::Number(_) => self.integer = true,
            Json::Bool(_) => self.boolean = true,
            Json::Array(_) => self.array = true,
            Json::Object(_) => self.object = true,
            Json::Null => self.null = true,
        }
    }

    pub(super) fn infer(&mut self, keyword: &str) {
        match keyword {
            "properties"
            | "required"
            | "additionalProperties"
            | "patternProperties"
            | "propertyNames"
            | "minProperties"
            | "maxProperties"
            | "dependentSchemas"
            | "dependentRequired"
            | "dependencies"
            | "unevaluatedProperties" => self.object = true,
            "items" | "prefixItems" | "additionalItems" | "contains" | "minItems" | "maxItems"
            | "uniqueItems" | "unevaluatedItems" => self.array = true,
            "pattern" | "minLength" | "maxLength" | "format" | "contentEncoding"
            | "contentMediaType" => self.string = true,
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
                self.float = true;
            }
            _ => {}
        }
    }

    pub(super) fn intersection(self, other: Self) -> Self {
        let float = self.float && other.float;
        Self {
            string: self.string && other.string,
            float,
            integer: !float && self.allows_numbers() && other.allows_numbers(),
            boolean: self.boolean && other.boolean,
            array: self.array && other.array,
            object: self.object && other.object,
            null: self.null && other.null,
        }
    }

    pub(super) fn allows_numbers(self) -> bool {
        self.float || self.integer
    }

    pub(super) fn allows_all(self) -> bool {
        self.allows_numbers()
            && Self {
                integer: false,
                float: true,
                ..self
            } == Self::ALL
    }
}
