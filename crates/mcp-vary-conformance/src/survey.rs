//! What a server has that checks can use. It is looked at once in each era, before the checks.

use http::header::HeaderValue;
use serde_json::{Map, Value, json};

use crate::check::{Objection, Scope, not_applicable};
use crate::client::{Answer, Client, Kind, NEGOTIATION, PROMPTS, RESOURCES, TOOLS, VARIANTS};
use crate::json::{array_at, at, text_at};
use crate::probe::Probe;

/// The most tools that are called to find one that suits the checks.
const TRIED: usize = 8;

/// What one era of a server shows to a client without hints and tags.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) capabilities: Value,
    /// Tools that change nothing by their own word, with what they answered.
    tools: Vec<CalledTool>,
    resource: Option<String>,
    prompt: Option<String>,
}

/// A call that a check may repeat, and its result without any extension.
#[derive(Clone, Debug)]
pub(crate) struct CalledTool {
    pub(crate) name: String,
    arguments: Value,
    pub(crate) output_schema: Option<Value>,
    pub(crate) result: Value,
}

impl CalledTool {
    pub(crate) fn params(&self) -> Value {
        json!({"name": self.name, "arguments": self.arguments})
    }

    pub(crate) fn has_structure(&self) -> bool {
        self.result
            .get("structuredContent")
            .is_some_and(|value| !value.is_null())
    }
}

impl Survey {
    /// Connects and looks.
    ///
    /// # Errors
    ///
    /// If the server does not speak the era of `probe`.
    pub(crate) async fn take(probe: &Probe<'_>) -> Result<Self, Objection> {
        let both = json!({NEGOTIATION: {"version": "1.0", "features": []}, VARIANTS: {}});
        let declaring = probe.connect(both).await?;
        let mut survey = Self {
            capabilities: declaring.capabilities,
            ..Self::default()
        };
        // What follows may fail: then the checks that need it do not apply, and others object.
        if let Ok(client) = probe.connect(json!({})).await {
            survey.resource = first_key(&client, &RESOURCES).await;
            survey.prompt = first_prompt(&client).await;
            survey.tools = call_tools(&client).await;
        }
        Ok(survey)
    }

    /// The settings that the server declares for an extension.
    pub(crate) fn settings(&self, extension: &str) -> Option<&Value> {
        at(&self.capabilities, &["extensions", extension])
    }

    /// The variants that the server offers to a client without hints.
    pub(crate) fn offered(&self) -> &[Value] {
        array_at(
            &self.capabilities,
            &["extensions", VARIANTS, "availableVariants"],
        )
    }

    /// The ids of the offered variants.
    pub(crate) fn variants(&self) -> Vec<&str> {
        self.offered()
            .iter()
            .filter_map(|variant| text_at(variant, &["id"]))
            .collect()
    }

    /// The ids of two different variants.
    pub(crate) fn two_variants(&self) -> Result<[&str; 2], Objection> {
        let variants = self.variants();
        let first = variants.first().copied();
        let other = variants.iter().copied().find(|id| Some(*id) != first);
        match (first, other) {
            (Some(first), Some(other)) => Ok([first, other]),
            _ => not_applicable("the server offers fewer than two variants"),
        }
    }

    pub(crate) fn is_in(&self, scope: Scope) -> bool {
        match scope {
            Scope::Any => true,
            Scope::Negotiation => self.settings(NEGOTIATION).is_some(),
            Scope::DeclaredVariants => self.settings(VARIANTS).is_some(),
            Scope::Variants => !self.offered().is_empty(),
            Scope::NoVariants => self.settings(VARIANTS).is_none(),
            Scope::NegotiatingClient | Scope::VariantsClient => false,
        }
    }

    /// A tool that can be called, and whatever it answers.
    pub(crate) fn tool(&self) -> Result<&CalledTool, Objection> {
        self.find_tool(|_| true)
    }

    /// A tool whose results have a structure. One without an output schema is preferred: its structure may be left out.
    pub(crate) fn structured_tool(&self) -> Result<&CalledTool, Objection> {
        self.find_tool(|tool| tool.has_structure() && tool.output_schema.is_none())
            .or_else(|_| self.find_tool(CalledTool::has_structure))
    }

    /// A tool that declares an output schema.
    pub(crate) fn tool_with_schema(&self) -> Result<&CalledTool, Objection> {
        self.find_tool(|tool| tool.output_schema.is_some())
    }

    fn find_tool(&self, suits: impl Fn(&CalledTool) -> bool) -> Result<&CalledTool, Objection> {
        match self.tools.iter().find(|tool| suits(tool)) {
            Some(tool) => Ok(tool),
            None => not_applicable(
                "no tool with `readOnlyHint: true` that can be called suits this check",
            ),
        }
    }

    /// The URI of a resource.
    pub(crate) fn resource(&self) -> Result<&str, Objection> {
        match &self.resource {
            Some(uri) => Ok(uri),
            None => not_applicable("the server lists no resource"),
        }
    }

    /// The name of a prompt without required arguments.
    pub(crate) fn prompt(&self) -> Result<&str, Objection> {
        match &self.prompt {
            Some(name) => Ok(name),
            None => not_applicable("the server lists no prompt without required arguments"),
        }
    }
}

async fn first_key(client: &Client<'_>, kind: &Kind) -> Option<String> {
    let elements = listed(client, kind).await;
    let mut keys = elements
        .iter()
        .filter_map(|element| text_at(element, &[kind.key]));
    keys.find(|key| fits_header(key)).map(str::to_owned)
}

async fn first_prompt(client: &Client<'_>) -> Option<String> {
    let prompts = listed(client, &PROMPTS).await;
    let needs_nothing = |prompt: &&Value| {
        let arguments = array_at(prompt, &["arguments"]);
        !arguments
            .iter()
            .any(|argument| argument.get("required") == Some(&true.into()))
    };
    let names = prompts.iter().filter(needs_nothing);
    let mut names = names.filter_map(|prompt| text_at(prompt, &["name"]));
    names.find(|name| fits_header(name)).map(str::to_owned)
}

async fn listed(client: &Client<'_>, kind: &Kind) -> Vec<Value> {
    if client.has(kind) {
        client.list(kind, None).await.unwrap_or_default()
    } else {
        Vec::new()
    }
}

/// Calls tools that declare that they change nothing, and returns those that answer without an error.
async fn call_tools(client: &Client<'_>) -> Vec<CalledTool> {
    let tools = listed(client, &TOOLS).await;
    let mut called = Vec::new();
    for (name, arguments, output_schema) in tools.iter().filter_map(harmless_call).take(TRIED) {
        let params = json!({"name": name, "arguments": arguments});
        let Ok(Answer::Result(result)) = client.ask("tools/call", params).await else {
            continue;
        };
        let is_error = result.get("isError") == Some(&true.into());
        if !is_error && result.get("content").is_some() {
            called.push(CalledTool {
                name: name.to_owned(),
                arguments,
                output_schema: output_schema.cloned(),
                result,
            });
        }
    }
    called
}

/// The parameters of a call of `tool`, if it may be called unasked.
pub(crate) fn harmless_params(tool: &Value) -> Option<Value> {
    let (name, arguments, _) = harmless_call(tool)?;
    Some(json!({"name": name, "arguments": arguments}))
}

/// Name, arguments and output schema of a tool that may be called unasked.
fn harmless_call(tool: &Value) -> Option<(&str, Value, Option<&Value>)> {
    let annotation = |name| at(tool, &["annotations", name]);
    let changes_nothing = annotation("readOnlyHint") == Some(&true.into());
    let schema = tool.get("inputSchema")?;
    // Values of such parameters travel as headers, too.
    let has_headers = schema.to_string().contains("x-mcp-header");
    let name = text_at(tool, &["name"]).filter(|name| fits_header(name))?;
    let arguments = required_arguments(schema)?;
    (changes_nothing && !has_headers).then(|| (name, arguments, tool.get("outputSchema")))
}

/// A value for each required argument. None if one is neither an enumeration nor of a simple type.
fn required_arguments(schema: &Value) -> Option<Value> {
    let required = array_at(schema, &["required"])
        .iter()
        .filter_map(Value::as_str);
    let arguments = required.map(|name| {
        let value = example(at(schema, &["properties", name])?)?;
        Some((name.to_owned(), value))
    });
    arguments.collect::<Option<Map<_, _>>>().map(Value::Object)
}

fn example(property: &Value) -> Option<Value> {
    if let Some(value) = property.get("default").or_else(|| property.get("const")) {
        return Some(value.clone());
    }
    if let Some(value) = array_at(property, &["enum"]).first() {
        return Some(value.clone());
    }
    match text_at(property, &["type"])? {
        "string" => Some("test".into()),
        "integer" | "number" => Some(property.get("minimum").cloned().unwrap_or(1.into())),
        "boolean" => Some(false.into()),
        "array" => Some(json!([])),
        _ => None,
    }
}

/// Whether modern clients can send `name` as the header `Mcp-Name` as it is.
fn fits_header(name: &str) -> bool {
    HeaderValue::from_str(name).is_ok_and(|value| value.to_str().is_ok()) && name.trim() == name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tools_that_change_nothing_are_called() {
        let tool = |hint: Value| json!({"name": "a", "inputSchema": {}, "annotations": {"readOnlyHint": hint}});
        assert!(harmless_call(&tool(json!(true))).is_some());
        assert!(harmless_call(&tool(json!(false))).is_none());
        assert!(harmless_call(&tool(json!("true"))).is_none());
        assert!(harmless_call(&json!({"name": "a", "inputSchema": {}})).is_none());
    }

    #[test]
    fn required_arguments_get_values_of_their_type() {
        let schema = json!({"required": ["a", "b", "c"], "properties": {
            "a": {"type": "string"}, "b": {"enum": ["x", "y"]}, "c": {"type": "integer", "minimum": 3}, "d": {"type": "string"}}});
        assert_eq!(
            required_arguments(&schema),
            Some(json!({"a": "test", "b": "x", "c": 3}))
        );
        let unknown = json!({"required": ["a"], "properties": {"a": {"type": "object"}}});
        assert_eq!(required_arguments(&unknown), None);
    }
}
