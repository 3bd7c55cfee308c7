//! Which parts of a value an `outputSchema` allows to omit, for simple schemas.
//!
//! Conservative: an unknown keyword may forbid any change.

use serde_json::Value;

/// Keywords that only annotate.
const ANNOTATIONS: &[&str] = &[
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// The maximum number of references that are followed.
const MAX_REFERENCES: usize = 8;

/// The constraints on a value.
#[derive(Clone, Copy)]
pub(super) enum Bound<'s> {
    /// No constraints.
    Free,
    /// This schema in this document.
    Schema { schema: &'s Value, root: &'s Value },
    /// Constraints that cannot be followed.
    Closed,
}

impl<'s> Bound<'s> {
    pub(super) fn new(root: &'s Value) -> Self {
        Self::resolve(root, root)
    }

    /// The constraints of `schema`, with references resolved.
    fn resolve(schema: &'s Value, root: &'s Value) -> Self {
        let mut schema = schema;
        for _ in 0..MAX_REFERENCES {
            let Some(members) = schema.as_object() else {
                // `true` accepts everything; `false` would accept nothing.
                return if schema == &Value::Bool(true) {
                    Self::Free
                } else {
                    Self::Closed
                };
            };
            let Some(reference) = members.get("$ref") else {
                let is_plain = members.keys().all(|key| is_known(key));
                return if is_plain {
                    Self::Schema { schema, root }
                } else {
                    Self::Closed
                };
            };
            let is_alone = members
                .keys()
                .all(|key| key == "$ref" || ANNOTATIONS.contains(&key.as_str()));
            let target = reference.as_str().and_then(|r| r.strip_prefix('#'));
            match target.and_then(|pointer| root.pointer(pointer)) {
                Some(target) if is_alone => schema = target,
                _ => return Self::Closed,
            }
        }
        Self::Closed
    }

    pub(super) fn is_closed(self) -> bool {
        matches!(self, Self::Closed)
    }

    fn keyword(self, name: &str) -> Option<&'s Value> {
        match self {
            Self::Schema { schema, .. } => schema.get(name),
            Self::Free | Self::Closed => None,
        }
    }

    fn sub(self, schema: Option<&'s Value>) -> Self {
        match (self, schema) {
            (Self::Schema { root, .. }, Some(schema)) => Self::resolve(schema, root),
            (Self::Closed, _) => Self::Closed,
            _ => Self::Free,
        }
    }

    /// The constraints on the member `key`.
    pub(super) fn member(self, key: &str) -> Self {
        let declared = self.keyword("properties").and_then(|all| all.get(key));
        self.sub(declared.or_else(|| self.keyword("additionalProperties")))
    }

    /// The constraints on the element number `at`.
    pub(super) fn item(self, at: usize) -> Self {
        let first = self.keyword("prefixItems").and_then(|all| all.get(at));
        self.sub(first.or_else(|| self.keyword("items")))
    }

    /// Whether the object may omit `key`.
    pub(super) fn admits_without(self, key: &str) -> bool {
        let required = self.keyword("required").and_then(Value::as_array);
        let is_required = required.is_some_and(|all| all.iter().any(|one| one == key));
        !self.is_closed() && !is_required && self.keyword("minProperties").is_none()
    }

    /// The number of elements that stay if `limit` would: at least `minItems`.
    pub(super) fn items(self, limit: usize) -> usize {
        let bound = self
            .keyword("minItems")
            .map(|least| least.as_u64().unwrap_or(u64::MAX));
        let least = bound.map_or(0, |least| usize::try_from(least).unwrap_or(usize::MAX));
        limit.max(least)
    }

    /// Whether a text may be changed.
    pub(super) fn admits_text(self) -> bool {
        let keywords = ["pattern", "format", "minLength"];
        !self.is_closed() && keywords.iter().all(|name| self.keyword(name).is_none())
    }
}

/// Whether `schema` allows an undeclared member `marker`.
pub(super) fn admits_marker(schema: &Value, marker: &str) -> bool {
    let bound = Bound::new(schema);
    let is_open = match bound.keyword("additionalProperties") {
        None => true,
        Some(additional) => additional == &Value::Bool(true),
    };
    let is_declared = bound
        .keyword("properties")
        .is_some_and(|all| all.get(marker).is_some());
    let is_counted = bound.keyword("maxProperties").is_some();
    !bound.is_closed() && is_open && !is_declared && !is_counted
}

/// Whether this module understands `keyword`.
fn is_known(keyword: &str) -> bool {
    let known = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "minProperties",
        "maxProperties",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "pattern",
        "format",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
    ];
    ANNOTATIONS.contains(&keyword) || known.contains(&keyword)
}
