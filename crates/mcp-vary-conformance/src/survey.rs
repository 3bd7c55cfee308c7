//! What a server has that checks can use. It is looked at once in each era, before the checks.

use std::sync::OnceLock;

use http::header::HeaderValue;
use serde_json::{Map, Value, json};

use crate::answer::{Answer, ErrorAnswer};
use crate::called_tool::{CalledTool, NamedTool};
use crate::client::{Client, ids};
use crate::connections::Connections;
use crate::extension::{EXPERIMENTAL, Extension, NEGOTIATION, VARIANTS, offered_in, settings_of};
use crate::json::{array_at, at, brief, text_at};
use crate::list_kind::{LIST_KINDS, ListKind, PROMPTS, RESOURCES, TOOLS};
use crate::objection::{Objection, Verdict, not_applicable, requires};
use crate::scope::Scope;

/// The most tools that are called to find one that suits the checks.
const TRIED: usize = 8;

/// The most arguments that are tried with a tool.
const ARGUMENTS: usize = 3;

/// Tags for which a tool may answer in another form.
const FORMS: [&[&str]; 5] = [
    &["agent", "format=json"],
    &["format=json"],
    &["agent"],
    &["human", "format=markdown"],
    &["format=text"],
];

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
    /// Whether the server refuses clients without hints: then nothing else is known of it.
    pub(crate) requires_hints: bool,
    /// Why a tool that the run names cannot be called.
    pub(crate) unusable_tool: Option<String>,
    /// The first refusal of a request because there were too many, also during the checks.
    pub(crate) limit: OnceLock<ErrorAnswer>,
}

impl Survey {
    /// Connects to a server, reads its lists, and calls its tools.
    ///
    /// # Errors
    ///
    /// If the server does not speak the era of `connections`: its refusal of a client, or why there is none.
    pub(crate) async fn of_server(
        connections: &Connections<'_>,
        named: &[NamedTool],
    ) -> Result<Result<Self, ErrorAnswer>, Objection> {
        let with = |variants: Value| {
            let both = json!({NEGOTIATION: {"version": "1.0", "features": []}, VARIANTS: variants});
            Client::try_connect(connections, json!({ "extensions": both }))
        };
        let mut survey = Self::default();
        match with(json!({})).await? {
            Ok(client) => survey.capabilities = client.capabilities,
            Err(refusal) => {
                let hints = json!({"variantHints": any_hints()});
                let Ok(Ok(client)) = with(hints).await else {
                    return Ok(Err(refusal));
                };
                survey.capabilities = client.capabilities;
                survey.requires_hints = true;
                return Ok(Ok(survey));
            }
        }
        // What follows may fail: then the checks that need it do not apply, and others object.
        if let Ok(client) = Client::connect(connections, json!({"extensions": {}})).await {
            survey.resource = first_key(&client, &RESOURCES).await;
            survey.prompt = first_prompt(&client).await;
            survey.call_tools(&client, named).await;
            survey.ask_for_forms(&client, connections).await;
        }
        Ok(Ok(survey))
    }

    /// Calls the tools that the run names, and some that declare that they change nothing. Of those, it notes the ones that
    /// answer without an error.
    async fn call_tools(&mut self, client: &Client<'_>, named: &[NamedTool]) {
        let tools = listed(client, &TOOLS).await;
        self.lists_tools = !tools.is_empty();
        for named in named {
            match call_named(client, &tools, named).await {
                Ok(tool) => self.tools.push(tool),
                Err(error) => self.unusable_tool = Some(error),
            }
        }
        let is_named = |name: &str| named.iter().any(|tool| tool.name == name);
        let calls = tools.iter().filter_map(|tool| {
            let (name, arguments) = harmless_call(tool)?;
            (!is_named(name)).then_some((tool, arguments))
        });
        for (tool, arguments) in calls.take(TRIED) {
            for arguments in arguments {
                if let Ok(called) = call(client, tool, arguments).await {
                    self.tools.push(called);
                    break;
                }
            }
        }
    }

    /// Looks at the forms in which tools answer clients with tags, if no tool has a structure without them.
    async fn ask_for_forms(&mut self, client: &Client<'_>, connections: &Connections<'_>) {
        let is_preferred =
            |tool: &&CalledTool| tool.is_named || self.tools.iter().all(|other| !other.is_named);
        let mut preferred = self.tools.iter().filter(is_preferred);
        let has_structure = preferred.any(|tool| tool.has_structure() && tool.has_data());
        if !self.is_in(Scope::Negotiation) || has_structure {
            return;
        }
        for tool in &mut self.tools {
            let again = client.result("tools/call", tool.params()).await;
            tool.is_steady =
                again.is_ok_and(|result| result.get("content") == tool.result.get("content"));
        }
        for features in FORMS {
            let settings = json!({NEGOTIATION: {"version": "1.0", "features": features}});
            let Ok(client) = Client::connect(connections, self.declaring(&settings)).await else {
                continue;
            };
            for tool in &mut self.tools {
                let result = client.result("tools/call", tool.params()).await;
                tool.shaped.extend(result.ok());
            }
        }
    }

    /// Client capabilities with `extensions`, also where the server declares its own.
    pub(crate) fn declaring(&self, extensions: &Value) -> Value {
        let mut capabilities = json!({ "extensions": extensions });
        if self.is_experimental() {
            capabilities[EXPERIMENTAL] = extensions.clone();
        }
        capabilities
    }

    /// Whether the server declares an extension of these documents in `experimental` only.
    pub(crate) fn is_experimental(&self) -> bool {
        let declared = |member| {
            let names = [NEGOTIATION, VARIANTS].into_iter();
            names.filter(move |name| at(&self.capabilities, &[member, name]).is_some())
        };
        declared(EXPERIMENTAL).any(|name| !declared("extensions").any(|other| other == name))
    }

    /// Why no result of the server shows whether it does what an extension asks, if so.
    pub(crate) fn uncheckable(&self, extension: Extension) -> Option<String> {
        match extension {
            _ if self.limit.get().is_some() => None,
            Extension::Variants => {
                let mut names = LIST_KINDS.iter().map(|kind| kind.name);
                let has_list = names.any(|name| self.capabilities.get(name).is_some());
                (!has_list).then(|| "the server declares no tools, resources or prompts".to_owned())
            }
            Extension::Negotiation => {
                let are_short = self.tools.iter().all(CalledTool::answers_few_words);
                let needs_no_tool = if self.lists_tools {
                    !self.tools.is_empty() && are_short
                } else {
                    self.resource.is_some() || self.prompt.is_some()
                };
                let reason = self.shaped_tool().err().filter(|_| !needs_no_tool);
                reason.map(Objection::into_text)
            }
        }
    }

    /// What the server declares: its settings of an extension, or its capabilities.
    pub(crate) fn declared(&self, extension: Option<&str>) -> Option<&Value> {
        match extension {
            Some(extension) => self.settings(extension),
            None => Some(&self.capabilities),
        }
    }

    /// The settings that the server declares for an extension.
    pub(crate) fn settings(&self, extension: &str) -> Option<&Value> {
        settings_of(&self.capabilities, extension)
    }

    /// Whether the server has more variants than it offers.
    pub(crate) fn has_more_variants(&self) -> bool {
        let settings = self.settings(VARIANTS);
        settings.and_then(|settings| settings.get("moreVariantsAvailable")) == Some(&true.into())
    }

    /// The variants that the server offers to a client without hints.
    pub(crate) fn offered(&self) -> &[Value] {
        offered_in(&self.capabilities)
    }

    /// The ids of the offered variants.
    pub(crate) fn variants(&self) -> Vec<&str> {
        ids(self.offered())
    }

    /// The variant that is offered first.
    pub(crate) fn first_variant(&self) -> Result<&str, Objection> {
        let first = self.variants().first().copied();
        first.map_or_else(|| not_applicable("no offered variant has an id"), Ok)
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

    /// Objects unless all offered variants are right.
    pub(crate) fn each_variant(&self, is_right: fn(&Value) -> bool) -> Verdict {
        let wrong = self.offered().iter().find(|variant| !is_right(variant));
        requires(wrong.is_none(), "the variant", &json!(wrong))
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

    /// A tool whose results have several forms: one whose results have data if possible.
    pub(crate) fn shaped_tool(&self) -> Result<&CalledTool, Objection> {
        let other = || self.find_tool(CalledTool::depends_on_tags);
        self.data_tool()
            .or_else(|reason| other().map_err(|_| reason))
    }

    /// A request whose result tags may shape: a call if possible.
    pub(crate) fn shaped_request(&self) -> Result<(&'static str, Value), Objection> {
        let tool = self.shaped_tool().or_else(|_| self.tool());
        match (tool, &self.resource, &self.prompt) {
            (Ok(tool), ..) => Ok((TOOLS.item_method, tool.params())),
            (_, Some(uri), _) => Ok((RESOURCES.item_method, json!({ "uri": uri }))),
            (_, _, Some(name)) => Ok((PROMPTS.item_method, json!({ "name": name }))),
            (Err(objection), ..) => Err(objection),
        }
    }

    /// The parameters of a call of `tool`, if it was called or may be called unasked.
    pub(crate) fn params_of(&self, tool: &Value) -> Option<Value> {
        let name = text_at(tool, &["name"]);
        let mut called = self.tools.iter();
        if let Some(called) = called.find(|called| Some(&*called.name) == name) {
            return Some(called.params());
        }
        let (name, arguments) = harmless_call(tool)?;
        Some(json!({"name": name, "arguments": arguments.first()}))
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

    /// The parameters of a request for an item of a list: a tool that can be called, a resource, or a prompt without required
    /// arguments.
    pub(crate) fn item_params(&self, kind: &ListKind) -> Result<Value, Objection> {
        let item = match kind.name {
            "tools" => return Ok(self.tool()?.params()),
            "resources" => self.resource.as_ref().ok_or("the server lists no resource"),
            _ => {
                let reason = "the server lists no prompt without required arguments";
                self.prompt.as_ref().ok_or(reason)
            }
        };
        item.map_or_else(not_applicable, |item| Ok(json!({ kind.key: item })))
    }

    /// The parameters of a subscription to a resource.
    pub(crate) fn subscription_params(&self) -> Result<Value, Objection> {
        match at(&self.capabilities, &["resources", "subscribe"]) {
            Some(Value::Bool(true)) => self.item_params(&RESOURCES),
            _ => not_applicable("the server does not declare `resources.subscribe`"),
        }
    }
}

/// Hints for a server that requires some.
fn any_hints() -> Value {
    let hints = json!({"contextSize": ["standard", "compact"], "useCase": "autonomous-agent", "modelFamily": "any"});
    json!({"description": "Checks a server.", "hints": hints})
}

async fn first_key(client: &Client<'_>, kind: &ListKind) -> Option<String> {
    let items = listed(client, kind).await;
    let mut keys = items.iter().filter_map(|item| text_at(item, &[kind.key]));
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
    let usable = prompts.iter().filter(needs_nothing);
    let mut names = usable.filter_map(|prompt| text_at(prompt, &["name"]));
    names.find(|name| fits_header(name)).map(str::to_owned)
}

async fn listed(client: &Client<'_>, kind: &ListKind) -> Vec<Value> {
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
    let generated = || arguments(tool.get("inputSchema")?).into_iter().next();
    let Some(arguments) = named.arguments.clone().or_else(generated) else {
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
    let response = client.ask("tools/call", params).await;
    let answer = response.map_err(Objection::into_text)?;
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
                has_interface: meta.is_some_and(|meta| {
                    meta.get("ui").is_some() || meta.get("ui/resourceUri").is_some()
                }),
                is_steady: false,
                shaped: Vec::new(),
            })
        }
        answer => Err(answer.describe()),
    }
}

/// The name of a tool that may be called unasked, and arguments to try.
fn harmless_call(tool: &Value) -> Option<(&str, Vec<Value>)> {
    let annotation = |name| at(tool, &["annotations", name]);
    let changes_nothing = annotation("readOnlyHint") == Some(&true.into());
    let schema = tool.get("inputSchema")?;
    // Values of such parameters travel as headers, too.
    let has_headers = schema.to_string().contains("x-mcp-header");
    let name = text_at(tool, &["name"]).filter(|name| fits_header(name))?;
    let candidates = arguments(schema);
    let is_callable = changes_nothing && !has_headers && !candidates.is_empty();
    is_callable.then_some((name, candidates))
}

/// Arguments to try: the examples and the default of the schema, and those that are made of its properties.
fn arguments(schema: &Value) -> Vec<Value> {
    let examples = array_at(schema, &["examples"]).iter();
    let given = examples.chain(schema.get("default"));
    let whole = given.filter(|value| value.is_object()).cloned();
    let all = whole.chain(required_arguments(schema));
    all.take(ARGUMENTS).collect()
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
    let first = |key| array_at(property, &[key]).first();
    let given = property.get("default").or_else(|| property.get("const"));
    if let Some(value) = given
        .or_else(|| first("examples"))
        .or_else(|| first("enum"))
    {
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
        let expected = Some(json!({"a": "test", "b": "x", "c": 3}));
        assert_eq!(required_arguments(&schema), expected);
        let unknown = json!({"required": ["a"], "properties": {"a": {"type": "object"}}});
        assert_eq!(required_arguments(&unknown), None);
    }

    #[test]
    fn examples_and_defaults_of_a_schema_are_tried_as_arguments() {
        let city = json!({"type": "object", "examples": ["Bern"]});
        let schema = json!({"required": ["city", "days"], "examples": [{"city": "Thun", "days": 2}], "default": {"days": 3},
            "properties": {"city": city, "days": {"type": "integer", "default": 5}}});
        let expected = [
            json!({"city": "Thun", "days": 2}),
            json!({"days": 3}),
            json!({"city": "Bern", "days": 5}),
        ];
        assert_eq!(arguments(&schema), expected);
    }
}
