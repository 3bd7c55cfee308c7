//! The lists of the built-in variants `compact` and `read-only`, derived from a server's lists.
//!
//! `compact` costs a model fewer tokens and accepts the same arguments. Descriptions are shortened to their first
//! sentence. Titles, icons and `outputSchema` are removed. Input schemas lose their prose; every keyword that
//! decides which arguments are accepted stays, and so does every unknown keyword.

use mcp_vary::json::{Json, JsonError, Members, elements, string};

pub(super) mod schema;
mod sentence;

pub use sentence::first_sentence;

/// The tool as the variant `compact` lists it.
///
/// # Properties
///
/// - The arguments that the tool accepts are the same.
/// - `name`, `annotations` (without their `title`), `execution`, `_meta` and unknown members stay.
/// - The result is compact JSON; numbers keep their spelling and members their order.
///
/// `description`, `title`, `examples` and `$comment` are removed from the input schema. `default` stays: it tells a
/// model what an omitted argument means, in fewer tokens than prose. Keywords without effect are removed as well:
/// `additionalProperties` that allow everything, unused definitions, and a `$schema` that does not change the
/// meaning of the schema. A schema in an unknown dialect or with references that cannot be followed stays as it is.
///
/// # Errors
///
/// When `tool` is not a JSON object, repeats a key, or nests too deep. List such a tool unchanged.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::derive::compact_tool;
///
/// let tool = r#"{
///     "name": "add",
///     "title": "Add",
///     "description": "Adds two numbers. Use it for sums.",
///     "inputSchema": {"type": "object", "properties": {
///         "title": {"type": "string", "title": "Title", "description": "A heading."}
///     }}
/// }"#;
/// // The property that happens to be called `title` stays.
/// assert_eq!(
///     compact_tool(tool)?,
///     r#"{"name":"add","description":"Adds two numbers.","inputSchema":{"type":"object","properties":{"title":{"type":"string"}}}}"#,
/// );
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
pub fn compact_tool(tool: &str) -> Result<String, JsonError> {
    compact(
        tool,
        &["title", "icons", "outputSchema"],
        &[
            ("description", shorten),
            ("annotations", without_title),
            ("inputSchema", schema::compact),
        ],
    )
}

/// The tool without what a view with [on-demand](crate::SchemaStyle::OnDemand) schemas leaves out of its list besides
/// the schema: its title, icons, `outputSchema`, and the title among its annotations.
///
/// # Errors
///
/// As [`compact_tool`].
///
/// # Examples
///
/// ```
/// use mcp_vary_view::derive::untitled_tool;
///
/// let tool = r#"{"name": "add", "title": "Add", "annotations": {"title": "Add", "readOnlyHint": true}}"#;
/// assert_eq!(untitled_tool(tool)?, r#"{"name":"add","annotations":{"readOnlyHint":true}}"#);
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
pub fn untitled_tool(tool: &str) -> Result<String, JsonError> {
    compact(
        tool,
        &["title", "icons", "outputSchema"],
        &[("annotations", without_title)],
    )
}

/// The prompt as the variant `compact` lists it: first sentences for itself and its arguments, no titles, no icons.
///
/// # Errors
///
/// As [`compact_tool`].
pub fn compact_prompt(prompt: &str) -> Result<String, JsonError> {
    compact(
        prompt,
        &["title", "icons"],
        &[("description", shorten), ("arguments", compact_arguments)],
    )
}

/// The resource, or resource template, as the variant `compact` lists it: the first sentence of
/// its description, no title, no icons.
///
/// # Errors
///
/// As [`compact_tool`].
pub fn compact_resource(resource: &str) -> Result<String, JsonError> {
    compact(resource, &["title", "icons"], &[("description", shorten)])
}

/// Whether the tool declares `readOnlyHint: true`, which is what the variant `read-only` lists.
///
/// Only a literal `true` is a declaration. A tool that cannot be read declares nothing.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::derive::is_read_only;
///
/// assert!(is_read_only(r#"{"name": "list", "annotations": {"readOnlyHint": true}}"#));
/// assert!(!is_read_only(r#"{"name": "list", "annotations": {"readOnlyHint": "true"}}"#));
/// ```
#[must_use]
pub fn is_read_only(tool: &str) -> bool {
    let hint = |tool: &str| {
        let tool = Members::parse(tool).ok()?;
        let annotations = Members::parse(tool.get("annotations")?).ok()?;
        Some(annotations.get("readOnlyHint")? == "true")
    };
    hint(tool).unwrap_or(false)
}

/// Rewrites the value of a member.
type Rewrite = fn(&str) -> Result<String, JsonError>;

/// Removes the members `gone` and rewrites the others in `rewrites`.
fn compact(
    object: &str,
    gone: &[&str],
    rewrites: &[(&'static str, Rewrite)],
) -> Result<String, JsonError> {
    let mut members = Members::parse(object)?;
    for key in gone {
        members.remove(key);
    }
    for (key, rewrite) in rewrites {
        if let Some(rewritten) = members.get(key).map(rewrite) {
            members.set(*key, rewritten?);
        }
    }
    Ok(Json::parse(&members.to_json())?.to_json())
}

/// Shortens a string to its first sentence; any other value stays.
pub(super) fn shorten(text: &str) -> Result<String, JsonError> {
    Ok(match Json::parse(text)?.as_str() {
        Some(description) => string(&first_sentence(description)),
        None => text.to_owned(),
    })
}

fn without_title(annotations: &str) -> Result<String, JsonError> {
    let Ok(mut members) = Members::parse(annotations) else {
        return Ok(annotations.to_owned());
    };
    members.remove("title");
    Ok(members.to_json())
}

fn compact_arguments(arguments: &str) -> Result<String, JsonError> {
    let Ok(arguments) = elements(arguments) else {
        return Ok(arguments.to_owned());
    };
    let shortened = |argument: &&str| {
        compact(argument, &["title"], &[("description", shorten)])
            .unwrap_or_else(|_| (*argument).to_owned())
    };
    let arguments: Vec<String> = arguments.iter().map(shortened).collect();
    Ok(format!("[{}]", arguments.join(",")))
}
