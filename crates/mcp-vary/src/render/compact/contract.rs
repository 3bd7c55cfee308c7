//! Constraints on a shortened structured value.

use std::fmt;

use serde_json::Value;

use super::META_LEFT_OUT;
use crate::json::{Json, to_value};
use crate::render::schema::{Bound, admits_marker};

/// Constraints on a shortened structured value.
///
/// # Examples
///
/// ```
/// use mcp_vary::render::Contract;
/// use serde_json::{Value, json};
///
/// let schema = json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
/// // The author's validator understands `anyOf`; without it, only simple schemas allow changes.
/// let accepts = |value: &Value| value.get("a").or(value.get("b")).is_some();
/// let contract = Contract::of(&schema).accepted_by(&accepts);
/// assert!(!contract.is_free() && Contract::default().is_free());
/// ```
#[derive(Clone, Copy, Default)]
pub struct Contract<'c> {
    schema: Option<&'c Value>,
    accepts: Option<&'c dyn Fn(&Value) -> bool>,
}

impl<'c> Contract<'c> {
    /// The constraints of this `outputSchema`, as far as they can be followed without a validator.
    #[must_use]
    pub fn of(schema: &'c Value) -> Self {
        Self {
            schema: Some(schema),
            accepts: None,
        }
    }

    /// Adds a validator of the schema: values that it accepts may be sent.
    #[must_use]
    pub fn accepted_by(mut self, accepts: &'c dyn Fn(&Value) -> bool) -> Self {
        self.accepts = Some(accepts);
        self
    }

    /// Whether there are no constraints.
    pub fn is_free(&self) -> bool {
        self.schema.is_none() && self.accepts.is_none()
    }

    /// The bounds for a compaction, the one that allows the most omissions first.
    pub(super) fn bounds(&self) -> Vec<Bound<'c>> {
        let guided = self.schema.map(Bound::new);
        let is_tried = self.accepts.is_some() || guided.is_none();
        is_tried
            .then_some(Bound::Free)
            .into_iter()
            .chain(guided)
            .collect()
    }

    pub(super) fn accepts(&self, value: &Json<'_>) -> bool {
        self.accepts
            .is_none_or(|accepts| to_value(&value.to_json()).is_ok_and(|value| accepts(&value)))
    }

    /// Whether the object may have an undeclared marker member.
    pub(super) fn admits_marker(&self) -> bool {
        // The validator sees the value with the member.
        let is_asked = self.accepts.is_some();
        let declares = |schema: &Value| schema["properties"].get(META_LEFT_OUT).is_some();
        self.schema.is_none_or(|schema| {
            admits_marker(schema, META_LEFT_OUT) || is_asked && !declares(schema)
        })
    }
}

impl fmt::Debug for Contract<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contract")
            .field("schema", &self.schema)
            .field("accepts", &self.accepts.is_some())
            .finish()
    }
}
