//! What a server has that checks can use. It is looked at once in each era, before the checks.

use std::sync::OnceLock;

use http::header::HeaderValue;
use serde_json::{Map, Value, json};

use crate::called_tool::{CalledTool, NamedTool};
use crate::check::{Extension, Objection, Scope, not_applicable};
use crate::client::{
    Answer, Client, EXPERIMENTAL, ErrorAnswer, KINDS, Kind, NEGOTIATION, PROMPTS, RESOURCES, TOOLS,
    VARIANTS, offered_in, settings_of,
};
use crate::json::{array_at, at, brief, text_at};
use crate::probe::Probe;

/// The most tools that are called to find one that suits the checks.
const TRIED: usize = 8;

/// Why no result of a tool can be checked.
const NO_TOOL: &str = "no tool with `readOnlyHint: true` answers a call; name one by `--tool NAME`, with `--arguments JSON`";

/// What one era of a server shows to a client without hints and tags.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) capabilities: Value,
    /// Tools that the run names, then those that change nothing by their own word.
    tools: Vec<CalledTool>,
    lists_tools: bool,
    resource: Option<String>,
    prompt: Option<String>,
    /// Why a tool that the run names cannot be called.
    pub(crate) unusable_tool: Option<String>,
    /// The first refusal of a request because there were too many.
    limit: OnceLock<ErrorAnswer>,
}

impl Survey {
    /// Connects and looks.
    ///
    /// # Errors
    ///
    /// If the server does not speak the era of `probe`.
    pub(crate) async fn take(probe: &Probe<'_>, named: &[NamedTool]) -> Result<Self, Objection> {
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
            survey.call_tools(&client, named).await;
            survey.ask_for_json(probe).await;
        }
        if let Some(limit) = probe.survey().limit() {
            survey.note_limit(limit);
        }
        Ok(survey)
    }

    /// Calls the tools that the run names, and some that declare that they change nothing. Of those, it notes the ones that
    /// answer without an error.
    async fn call_tools(&mut self, client: &Client<'_>, named: &[NamedTool]) {
        let listed = listed(client, &TOOLS).await;
        self.lists_tools = !listed.is_empty();
        for named in named {
            match call_named(client, &listed, named).await {
                Ok(tool) => self.tools.push(tool),
                Err(error) => self.unusable_tool = Some(error),
            }
        }
        let is_named = |name: &str| named.iter().any(|tool| tool.name == name);
        let calls = listed.iter().filter_map(|tool| {
            let (name, arguments) = harmless_call(tool)?;
            (!is_named(name)).then_some((tool, arguments))
        });
        for (tool, arguments) in calls.take(TRIED) {
            self.tools.extend(call(client, tool, arguments).await.ok());
        }
    }

    /// Looks for tools whose results have a structure only for clients that ask for JSON.
    async fn ask_for_json(&mut self, probe: &Probe<'_>) {
        if !self.is_in(Scope::Negotiation) || self.data_tool().is_ok() {
            return;
        }
        for features in [json!(["agent", "format=json"]), json!(["format=json"])] {
            let settings = json!({NEGOTIATION: {"version": "1.0", "features": features}});
            let Ok(client) = Client::connect(probe, self.declaring(&settings)).await else {
                continue;
            };
            for tool in &mut self.tools {
                let result = client.result("tools/call", tool.params()).await;
                tool.as_json.extend(result.ok());
            }
        }
    }

    /// Client capabilities with `extensions`, also where the server declares its own.
    pub(crate) fn declaring(&self, extensions: &Value) -> Value {
        match self.is_experimental() {
            true => json!({"extensions": extensions, EXPERIMENTAL: extensions}),
            false => json!({ "extensions": extensions }),
        }
    }

    /// Whether the server declares an extension of these documents in `experimental` only.
    pub(crate) fn is_experimental(&self) -> bool {
        let declared = |member| {
            let names = [NEGOTIATION, VARIANTS].into_iter();
            names.filter(move |name| at(&self.capabilities, &[member, name]).is_some())
        };
        declared(EXPERIMENTAL).any(|name| !declared("extensions").any(|other| other == name))
    }

    /// Remembers that the server refused a request because there were too many.
    pub(crate) fn note_limit(&self, error: &ErrorAnswer) {
        // Only the first is looked at.
        _ = self.limit.set(error.clone());
    }

    /// The first refusal of a request because there were too many.
    pub(crate) fn limit(&self) -> Option<&ErrorAnswer> {
        self.limit.get()
    }

    /// Why no result of the server shows whether it does what an extension asks, if so.
    pub(crate) fn uncheckable(&self, extension: Extension) -> Option<String> {
        match extension {
            _ if self.limit().is_some() => None,
            Extension::Variants => {
                let has_list = KINDS
                    .iter()
                    .any(|kind| self.capabilities.get(kind.capability).is_some());
                (!has_list).then(|| "the server declares no tools, resources or prompts".to_owned())
            }
            Extension::Negotiation => {
                let are_short = self.tools.iter().all(CalledTool::answers_few_words);
                let needs_no_tool = match self.lists_tools {
                    true => !self.tools.is_empty() && are_short,
                    false => self.resource.is_some() || self.prompt.is_some(),
                };
                let reason = self.data_tool().err().filter(|_| !needs_no_tool);
                reason.map(Objection::into_text)
            }
        }
    }

    /// The settings that the server declares for an extension.
    pub(crate) fn settings(&self, extension: &str) -> Option<&Value> {
        settings_of(&self.capabilities, extension)
    }

    /// The variants that the server offers to a client without hints.
    pub(crate) fn offered(&self) -> &[Value] {
        offered_in(&self.capabilities)
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
            Scope::NoNegotiation => self.settings(NEGOTIATION).is_none(),
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

    /// A tool whose results have data: of those that the run names if possible, and without an output schema if possible.
    pub(crate) fn data_tool(&self) -> Result<&CalledTool, Objection> {
        let tools = self.tools.iter().filter(|tool| tool.has_data());
        let key = |tool: &&CalledTool| (!tool.is_named, tool.output_schema.is_some());
        let reason = match self.tools.as_slice() {
            [] => NO_TOOL,
            tools if tools.iter().all(CalledTool::answers_few_words) => {
                "the tools that can be called answer a few words, which have no other form"
            }
            _ => "no tool that was called has a structure; name one with data by `--tool NAME`",
        };
        tools
            .min_by_key(key)
            .map_or_else(|| not_applicable(reason), Ok)
    }

    /// A request whose result tags may shape: a call if possible.
    pub(crate) fn shaped_request(&self) -> Result<(&'static str, Value), Objection> {
        let tool = self.data_tool().or_else(|_| self.tool());
        match (tool, &self.resource, &self.prompt) {
            (Ok(tool), ..) => Ok((TOOLS.one, tool.params())),
            (_, Some(uri), _) => Ok((RESOURCES.one, json!({ "uri": uri }))),
            (_, _, Some(name)) => Ok((PROMPTS.one, json!({ "name": name }))),
            (Err(objection), ..) => Err(objection),
        }
    }

    /// The parameters of a call of `tool`, if the run names it or it may be called unasked.
    pub(crate) fn params_of(&self, tool: &Value) -> Option<Value> {
        let name = text_at(tool, &["name"]);
        let mut called = self.tools.iter();
        match called.find(|called| called.is_named && Some(&*called.name) == name) {
            Some(called) => Some(called.params()),
            None => harmless_call(tool)
                .map(|(name, arguments)| json!({"name": name, "arguments": arguments})),
        }
    }

    /// A tool that declares an output schema.
    pub(crate) fn tool_with_schema(&self) -> Result<&CalledTool, Objection> {
        self.find_tool(|tool| tool.output_schema.is_some())
    }

    fn find_tool(&self, suits: impl Fn(&CalledTool) -> bool) -> Result<&CalledTool, Objection> {
        match self.tools.iter().find(|tool| suits(tool)) {
            Some(tool) => Ok(tool),
            None if self.tools.is_empty() => not_applicable(NO_TOOL),
            None => not_applicable("no tool that can be called suits this check"),
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

/// Calls the tool that the run names.
async fn call_named(
    client: &Client<'_>,
    listed: &[Value],
    named: &NamedTool,
) -> Result<CalledTool, String> {
    let name = &named.name;
    let mut tools = listed.iter();
    let Some(tool) = tools.find(|tool| text_at(tool, &["name"]) == Some(name)) else {
        let names: Vec<_> = listed.iter().filter_map(|tool| tool.get("name")).collect();
        let names = brief(&json!(names));
        return Err(format!(
            "the server lists no tool `{name}`; it lists {names}"
        ));
    };
    let made = || required_arguments(tool.get("inputSchema")?);
    let Some(arguments) = named.arguments.clone().or_else(made) else {
        return Err(format!(
            "the tool `{name}` needs arguments that cannot be made from its schema; write them with `--arguments`"
        ));
    };
    let mut called = call(client, tool, arguments).await.map_err(|answer| {
        format!(
            "the tool `{name}` answered {answer}; write arguments that suit it with `--arguments`"
        )
    })?;
    called.is_named = true;
    Ok(called)
}

/// Calls `tool`.
///
/// # Errors
///
/// If it does not answer, or with an error. The text is the answer.
async fn call(client: &Client<'_>, tool: &Value, arguments: Value) -> Result<CalledTool, String> {
    let name = text_at(tool, &["name"]).unwrap_or_default().to_owned();
    let params = json!({"name": name, "arguments": arguments});
    let answer = client.ask("tools/call", params).await;
    let answer = answer.map_err(Objection::into_text)?;
    let meta = tool.get("_meta");
    match answer {
        Answer::Result(result)
            if result.get("isError") != Some(&true.into()) && result.get("content").is_some() =>
        {
            Ok(CalledTool {
                name,
                arguments,
                output_schema: tool.get("outputSchema").cloned(),
                result,
                is_named: false,
                has_interface: meta
                    .is_some_and(|it| it.get("ui").is_some() || it.get("ui/resourceUri").is_some()),
                as_json: Vec::new(),
            })
        }
        answer => Err(answer.describe()),
    }
}

/// Name and arguments of a tool that may be called unasked.
fn harmless_call(tool: &Value) -> Option<(&str, Value)> {
    let annotation = |name| at(tool, &["annotations", name]);
    let changes_nothing = annotation("readOnlyHint") == Some(&true.into());
    let schema = tool.get("inputSchema")?;
    // Values of such parameters travel as headers, too.
    let has_headers = schema.to_string().contains("x-mcp-header");
    let name = text_at(tool, &["name"]).filter(|name| fits_header(name))?;
    let arguments = required_arguments(schema)?;
    (changes_nothing && !has_headers).then_some((name, arguments))
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
