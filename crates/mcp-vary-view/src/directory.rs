//! The built-in variant `directory`: every tool with its first sentence, and the names and types of its arguments.
//!
//! It costs a model even fewer tokens than `compact` (see [`derive`](mod@derive)). Clients get the rest from the tool
//! [`describe_tools`].

use mcp_vary::json::{JsonError, string};

use super::derive;
use super::diagnostic::ViewDiagnostic;
use super::model::model_tokens;
use super::style::{ArgumentCheck, Description, ListedArguments, ResultFields, SchemaStyle, Style};
use super::tool::{PreparedTool, ToolOverride};

/// The style of the built-in variant `directory`.
pub const DIRECTORY: Style = Style {
    description: Description::FirstSentence,
    schema: SchemaStyle::OnDemand,
    dialect: None,
    result: ResultFields::Both,
    arguments: ListedArguments::All,
    check: ArgumentCheck::On,
};

/// The tools as a variant in this `style`, with schemas on demand, lists them, and `describe_tools` if it is
/// [worth its cost](is_worth_describing).
///
/// # Errors
///
/// As [`PreparedTool::new`].
///
/// # Examples
///
/// ```
/// use mcp_vary_view::{DIRECTORY, directory};
///
/// // The compact form of one simple tool costs less than `describe_tools`.
/// let tool = r#"{"name": "add", "title": "Add", "description": "Adds two numbers. Use it for sums.",
///     "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}}"#;
/// assert_eq!(
///     directory(&[tool.to_owned()], DIRECTORY)?,
///     [r#"{"name":"add","description":"Adds two numbers.","inputSchema":{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]}}"#],
/// );
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
pub fn directory(tools: &[String], style: Style) -> Result<Vec<String>, JsonError> {
    let list = |prepare: Prepare| -> Result<Vec<(String, usize)>, JsonError> {
        let listed = tools.iter().map(|tool| {
            let untitled = derive::untitled_tool(tool)?;
            let (prepared, _) = prepare(&untitled, &ToolOverride::default(), style)?;
            let saved = prepared.saved_tokens();
            Ok((prepared.json().map_or(untitled, str::to_owned), saved))
        });
        listed.collect()
    };
    let mut listed = list(PreparedTool::new)?;
    if is_worth_describing(listed.iter().map(|(_, saved)| *saved).sum()) {
        listed.push((describe_tools("describe_tools"), 0));
    } else {
        listed = list(PreparedTool::compact)?;
    }
    Ok(listed.into_iter().map(|(tool, _)| tool).collect())
}

/// A constructor of [`PreparedTool`].
type Prepare =
    fn(&str, &ToolOverride, Style) -> Result<(PreparedTool, Vec<ViewDiagnostic>), JsonError>;

/// Whether open schemas that save so many tokens ([`PreparedTool::saved_tokens`]) are worth `describe_tools`: they save
/// twice its tokens. Where they are not, a variant lists every tool as [`PreparedTool::compact`] and has no
/// `describe_tools`.
///
/// Twice, because the estimate of JSON is up to a half too high, and because a task that describes one tool reads its
/// compact form, too.
pub fn is_worth_describing(saved_tokens: usize) -> bool {
    saved_tokens > 2 * model_tokens(&describe_tools("describe_tools"))
}

/// The definition of the tool, called `name`, that describes those of a view whose schemas are on demand: its argument
/// `names` has the names of at most 20 tools. What it answers with is [`PreparedTool::describe`] for each.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::describe_tools;
///
/// assert!(describe_tools("describe_tools").starts_with(r#"{"name":"describe_tools","description":"Describes "#));
/// ```
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
pub fn search_tools(name: &str) -> String {
    format!(r#"{{"name":{},{SEARCH_TOOLS}"#, string(name))
}

/// The number of tools above which a view has a search, unless it sets another: about 15,000 tokens of a list without
/// schemas.
pub const DEFAULT_SEARCH_ABOVE: usize = 300;

const SEARCH_TOOLS: &str = r#""description":"Finds listed tools by words, best first.","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What one tool should do, in a few words"},"limit":{"type":"integer","minimum":1,"maximum":20,"default":5}},"required":["query"],"additionalProperties":false},"annotations":{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}}"#;

const DESCRIBE_TOOLS: &str = r#""description":"Describes tools in full. Call it before a tool whose arguments you do not know.","inputSchema":{"type":"object","properties":{"names":{"type":"array","items":{"type":"string"},"maxItems":20}},"required":["names"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#;
