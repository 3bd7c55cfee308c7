//! Gives a tool another structured value, and the `outputSchema` that is listed for it.

use std::borrow::Cow;

use mcp_vary::json::{Members, elements, string};
use mcp_vary::shape::OutputSchema as _;
use mcp_vary_view::OutputCheck;
use mcp_vary_wire::era::{STRUCTURED_CONTENT, is_text};

use crate::call_context::CallContext;
use crate::failures::RuleFailures;
use crate::projection::Projection;

/// The value that a tool returns in some variants, and its schema.
///
/// # Properties
///
/// The value of a result that is not an error matches the schema:
///
/// > Servers **MUST** provide structured results that conform to this schema. (MCP 2025-11-25, server/tools,
/// > "Output Schema")
///
/// If the filter fails, or makes a value that the schema does not accept, the result becomes an error that says so and
/// has the server's content.
#[derive(Debug)]
pub struct DeclaredOutput {
    projection: Projection,
    schema: String,
    check: OutputCheck,
    failures: RuleFailures,
}

impl DeclaredOutput {
    /// The output that `projection` makes, with this schema for it.
    ///
    /// # Errors
    ///
    /// Why values cannot be validated against `schema`, or why clients would not accept it.
    pub fn new(projection: Projection, schema: &str) -> Result<Self, String> {
        let members = Members::parse(schema).map_err(|error| error.to_string())?;
        // The revisions before 2026-07-28 have schemas of objects only.
        if members.get_str("type").as_deref() != Some("object") {
            return Err("is not the schema of an object".to_owned());
        }
        Ok(Self {
            projection,
            check: OutputCheck::new(schema)?,
            schema: schema.to_owned(),
            failures: RuleFailures::default(),
        })
    }

    /// The schema, as JSON.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// How often the value could not be made.
    pub const fn failures(&self) -> &RuleFailures {
        &self.failures
    }

    /// The result of the call with this value. Errors, requests for input and tasks stay as they are.
    pub fn apply<'a>(&self, result: &'a str, called: &CallContext) -> Cow<'a, str> {
        let Ok(mut members) = Members::parse(result) else {
            return Cow::Borrowed(result);
        };
        let kind = members.get_str("resultType");
        let is_complete = kind.is_none_or(|kind| kind == "complete");
        let is_error = members.get("isError") == Some("true");
        if !is_complete || is_error || members.contains("task") {
            return Cow::Borrowed(result);
        }
        let content = members.get("content").unwrap_or("[]");
        let blocks: Vec<_> = elements(content).unwrap_or_default();
        let texts: Vec<String> = blocks.into_iter().map(str::to_owned).collect();
        match self.project(members.get(STRUCTURED_CONTENT), &texts) {
            Ok(value) => {
                members.set("content", with_text(&texts, &value));
                members.set(STRUCTURED_CONTENT, value);
            }
            Err(why) => {
                let CallContext { name, server, .. } = called;
                self.failures.record(server, name, "output-schema", &why);
                members.set("content", with_notice(&texts));
                members.remove(STRUCTURED_CONTENT);
                members.set("isError", "true");
            }
        }
        Cow::Owned(members.to_json())
    }

    /// The value for clients, from the structured value of the result or its only text.
    fn project(&self, structured: Option<&str>, blocks: &[String]) -> Result<String, String> {
        let present = structured.filter(|value| *value != "null");
        let original = match present {
            Some(value) => Cow::Borrowed(value),
            None => Cow::Owned(only_text(blocks).ok_or("the result has no value")?),
        };
        let value = self.projection.apply(&original)?;
        if self.check.accepts(&value) {
            Ok(value)
        } else {
            Err("`output-schema` does not accept the value".to_owned())
        }
    }
}

/// The text of a result that has a single one.
fn only_text(blocks: &[String]) -> Option<String> {
    let mut texts = blocks.iter().filter(|block| is_text(block));
    match (texts.next(), texts.next()) {
        (Some(text), None) => Members::parse(text).ok()?.get_str("text"),
        _ => None,
    }
}

/// The blocks with `value` as their only text, where the first one was.
///
/// > For backwards compatibility, a tool that returns structured content **SHOULD** also return the serialized JSON in
/// > a TextContent block. (MCP 2025-11-25, server/tools, "Structured Content")
fn with_text(blocks: &[String], value: &str) -> String {
    let first = blocks.iter().position(|block| is_text(block));
    let position = first.unwrap_or(blocks.len());
    let text = text_block(value);
    let before = blocks.iter().take(position);
    let after = blocks.iter().skip(position).filter(|block| !is_text(block));
    let all = before.chain([&text]).chain(after);
    let texts: Vec<_> = all.map(String::as_str).collect();
    format!("[{}]", texts.join(","))
}

/// The blocks, after a text that says why they are the server's.
fn with_notice(blocks: &[String]) -> String {
    let notice = text_block(NOTICE);
    let all = [&notice].into_iter().chain(blocks);
    let texts: Vec<_> = all.map(String::as_str).collect();
    format!("[{}]", texts.join(","))
}

fn text_block(text: &str) -> String {
    Members::from_iter([("type", string("text")), ("text", string(text))]).to_json()
}

const NOTICE: &str = "The tool was called, but its result does not have the form that `outputSchema` promises. The \
                      server's own result follows.";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn becomes(result: &str, expected: &str) {
        let project = Projection::new("{names: map(.name)}").unwrap();
        let schema = r#"{"type":"object","required":["names"],"properties":{"names":{"items":{"type":"string"}}}}"#;
        let output = DeclaredOutput::new(project, schema).unwrap();
        assert_eq!(output.schema(), schema);
        let called = CallContext {
            name: "list".into(),
            server: "rail".into(),
            arguments: "{}".to_owned(),
        };
        assert_eq!(output.apply(result, &called), expected);
        let failed = u64::from(expected.contains("does not have the form"));
        assert_eq!(output.failures().count(), failed);
    }

    /// SV-11: the value and its text change, and nothing else.
    #[test]
    fn the_value_and_its_text_change_together() {
        becomes(
            r#"{"content":[{"type":"image"},{"type":"text","text":"[]"},{"type":"text","text":"x"}],"structuredContent":[{"name":"a"}],"x":1.0}"#,
            r#"{"content":[{"type":"image"},{"type":"text","text":"{\"names\":[\"a\"]}"}],"structuredContent":{"names":["a"]},"x":1.0}"#,
        );
        becomes(
            r#"{"content":[{"type":"text","text":"[{\"name\":\"a\"}]"}]}"#,
            r#"{"content":[{"type":"text","text":"{\"names\":[\"a\"]}"}],"structuredContent":{"names":["a"]}}"#,
        );
        for unchanged in [
            r#"{"content":[],"isError":true}"#,
            r#"{"resultType":"input_required"}"#,
            r#"{"task":{"taskId":"a"}}"#,
            "not JSON",
        ] {
            becomes(unchanged, unchanged);
        }
    }

    /// SV-11: a value that the listed schema does not accept is never sent as structured content.
    #[test]
    fn a_value_of_another_form_becomes_an_error_with_the_servers_content() {
        let notice = text_block(NOTICE);
        becomes(
            r#"{"content":[{"type":"image"}],"structuredContent":[{"name":1}]}"#,
            &format!(r#"{{"content":[{notice},{{"type":"image"}}],"isError":true}}"#),
        );
        for text in [r#""prose""#, r#""7""#] {
            becomes(
                &format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#),
                &format!(
                    r#"{{"content":[{notice},{{"type":"text","text":{text}}}],"isError":true}}"#
                ),
            );
        }
    }

    #[test]
    fn a_schema_is_one_of_objects() {
        let project = || Projection::new(".").unwrap();
        for schema in [r#"{"type":"array"}"#, "{}"] {
            let refused = DeclaredOutput::new(project(), schema).unwrap_err();
            assert_eq!(refused, "is not the schema of an object");
        }
        assert!(DeclaredOutput::new(project(), r#"{"type":"object","required":7}"#).is_err());
    }
}
