//! Validates structured values against a tool's `outputSchema`.

use mcp_vary::json::to_value;
use serde_json::Value;

use super::check::SchemaCheck;

/// A tool's `outputSchema`, compiled to validate values in bounded time.
///
/// # Examples
///
/// ```
/// use mcp_vary::shape::OutputSchema as _;
/// use mcp_vary_view::OutputCheck;
///
/// let schema = r#"{"type": "object", "required": ["c"]}"#;
/// let check = OutputCheck::new(schema)?;
/// assert!(check.accepts(r#"{"c": 8}"#));
///
/// // What cannot be decided is not accepted.
/// assert!(!check.accepts("{"));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug)]
pub struct OutputCheck {
    schema: Value,
    check: SchemaCheck,
}

impl OutputCheck {
    /// Compiles the schema.
    ///
    /// # Errors
    ///
    /// Why values cannot be validated: the text is not a schema, is too large, or takes too long.
    pub fn new(schema: &str) -> Result<Self, String> {
        let check = SchemaCheck::new(schema)?;
        let schema = to_value(schema).map_err(|error| error.to_string())?;
        Ok(Self { schema, check })
    }

    /// Like [`accepts`](mcp_vary::shape::OutputSchema::accepts), for a parsed value.
    pub fn accepts_value(&self, value: &Value) -> bool {
        self.check.accepts_value(value)
    }
}

impl mcp_vary::shape::OutputSchema for OutputCheck {
    fn schema(&self) -> &Value {
        &self.schema
    }

    fn accepts(&self, value: &str) -> bool {
        self.check.accepts(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_vary::shape::OutputSchema as _;

    /// A client reads the value as it is written, whatever keys it has.
    #[test]
    fn an_object_is_not_accepted_as_the_value_in_its_text() {
        let schema = r#"{"properties": {"c": {"type": "integer"}}}"#;
        let check = OutputCheck::new(schema).unwrap();
        assert!(check.accepts(r#"{"c": 8}"#));
        assert!(!check.accepts(r#"{"c": {"$serde_json::private::RawValue": "8"}}"#));
        assert!(!check.accepts(r#"{"c": {"\u0024serde_json::private::Number": "8"}}"#));
        let named = r#"{"const": {"$serde_json::private::RawValue": "8"}}"#;
        let check = OutputCheck::new(named).unwrap();
        assert_eq!(check.schema().to_string(), named.replace(' ', ""));
        assert!(!check.accepts("8"));
    }

    /// TR-4: a value is accepted when it is valid, and as deep as can be decided.
    #[test]
    fn what_is_valid_is_accepted() {
        let twice =
            r##"{"type": "array", "allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}"##;
        let check = OutputCheck::new(twice).unwrap();
        assert_eq!(check.schema()["type"], "array");
        assert!(check.accepts("[[], []]") && !check.accepts("[1]") && !check.accepts("{}"));
        let read = |text: &str| serde_json::from_str(text).unwrap();
        assert!(check.accepts_value(&read("[[]]")) && !check.accepts_value(&read("[1]")));
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let deepest = (1..128)
            .take_while(|depth| check.accepts(&nested(*depth)))
            .count();
        assert!((5..40).contains(&deepest), "{deepest}");
    }
}
