//! The built-in variant `directory`: every tool with its first sentence, and the names and types of its arguments.
//!
//! It costs a model even fewer tokens than `compact` (see [`derive`](mod@derive)). Clients get the rest from the tool
//! [`describe_tools`].

use mcp_vary::json::{JsonError, string};

use super::derive;
use super::style::{ArgumentCheck, Description, ResultFields, SchemaStyle, Style};
use super::tool::{PreparedTool, ToolOverride};

/// The style of the built-in variant `directory`.
pub const DIRECTORY: Style = Style {
    description: Description::FirstSentence,
    schema: SchemaStyle::OnDemand,
    dialect: None,
    result: ResultFields::Both,
    check: ArgumentCheck::On,
};

/// The tool as the variant `directory` lists it: see [`SchemaStyle::OnDemand`] and
/// [`untitled_tool`](derive::untitled_tool).
///
/// # Errors
///
/// As [`PreparedTool::new`].
///
/// # Examples
///
/// ```
/// use mcp_vary_view::directory_tool;
///
/// let tool = r#"{"name": "add", "title": "Add", "description": "Adds two numbers. Use it for sums.",
///     "inputSchema": {"type": "object", "properties": {"a": {"type": "number", "minimum": 0}}, "required": ["a"]}}"#;
/// assert_eq!(
///     directory_tool(tool)?,
///     r#"{"name":"add","description":"Adds two numbers.","inputSchema":{"type":"object","properties":{"a":{"type":"number"}},"additionalProperties":true}}"#,
/// );
/// // A tool that may destroy something keeps its schema.
/// let tool = r#"{"name": "drop", "annotations": {"destructiveHint": true}, "inputSchema": {"required": ["a"]}}"#;
/// assert!(directory_tool(tool)?.contains(r#""inputSchema":{"required":["a"]}"#));
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
pub fn directory_tool(tool: &str) -> Result<String, JsonError> {
    let untitled = derive::untitled_tool(tool)?;
    let (prepared, _) = PreparedTool::new(&untitled, &ToolOverride::default(), DIRECTORY)?;
    Ok(prepared.json().map_or(untitled, str::to_owned))
}

/// The definition of the tool, called `name`, that describes those of a view whose schemas are on demand: its argument
/// `names` has the names of at most 20 tools. What it answers with is [`PreparedTool::describe`] for each.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::describe_tools;
///
/// assert!(describe_tools("describe_tools").starts_with(r#"{"name":"describe_tools","description":"Returns "#));
/// ```
#[must_use]
pub fn describe_tools(name: &str) -> String {
    format!(r#"{{"name":{},{DESCRIBE_TOOLS}"#, string(name))
}

/// The definition of the tool, called `name`, that finds tools of a view: its argument `query` says in a few words what
/// one tool should do, and `limit` how many are found. [`search_arguments`](crate::search_arguments) reads them.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::search_tools;
///
/// assert!(search_tools("search_tools").starts_with(r#"{"name":"search_tools","description":"Finds listed tools"#));
/// ```
#[must_use]
pub fn search_tools(name: &str) -> String {
    format!(r#"{{"name":{},{SEARCH_TOOLS}"#, string(name))
}

/// The number of tools above which a view has a search, unless it sets another: about 15,000 tokens of a list without
/// schemas.
pub const DEFAULT_SEARCH_ABOVE: usize = 300;

const SEARCH_TOOLS: &str = r#""description":"Finds listed tools by words, best first.","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What one tool should do, in a few words"},"limit":{"type":"integer","minimum":1,"maximum":20,"default":5}},"required":["query"],"additionalProperties":false},"annotations":{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}}"#;

const DESCRIBE_TOOLS: &str = r#""description":"Returns full descriptions and schemas of tools. Call it before a tool whose arguments you do not know.","inputSchema":{"type":"object","properties":{"names":{"type":"array","items":{"type":"string"},"maxItems":20}},"required":["names"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#;
