//! The lists of the built-in variants `compact` and `read-only`, derived from a server's lists.
//!
//! `compact` costs a model fewer tokens and accepts the same arguments. Of descriptions, the first sentence and what
//! callers need stay ([`compact_tool`]). Titles, icons and `outputSchema` are removed. Input schemas lose the rest of
//! their prose; every keyword that decides which arguments are accepted stays, and so does every unknown keyword.

use mcp_vary::json::{Json, JsonError, Members, elements, string};

mod essential;
pub(super) mod schema;
mod sentence;

pub(super) use essential::Vocabulary;
pub(super) use schema::Prose;
pub use sentence::first_sentence;

use essential::{ArgumentSections, Described, SchemaFacts};

/// The tool as the variant `compact` lists it.
///
/// # Properties
///
/// - The arguments that the tool accepts are the same.
/// - `name`, `annotations` (without their `title`), `execution`, `_meta` and unknown members stay.
/// - The result is compact JSON; numbers keep their spelling and members their order.
/// - Of the tool's description, the first sentence stays, and each later one that callers need. Of the descriptions in
///   the input schema, those sentences that callers need. `Args:` in the tool's description becomes descriptions of
///   arguments.
///
/// Callers need conditions ("only if", "exactly one of", "call X first"), warnings, units, formats, names of other tools
/// and arguments, values and numbers that the schema lacks, and what an argument is if its name and schema are vague. A
/// sentence that is not English is not understood, and stays. Others lose their articles, and links their targets. Of a
/// text, 64 KiB are read.
///
/// `title`, `examples` and `$comment` are removed from the input schema. `default` stays, unless it is `null`: it tells a
/// model what an omitted argument means, in fewer tokens than prose. A choice between types is a list of types, and one between values a list of values. Keywords without effect are removed as well:
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
///         "title": {"type": "string", "title": "Title", "description": "The title. At most 80 characters."}
///     }}
/// }"#;
/// // The property that happens to be called `title` stays, with what only its description says.
/// assert_eq!(
///     compact_tool(tool)?,
///     r#"{"name":"add","description":"Adds two numbers.","inputSchema":{"type":"object","properties":{"title":{"type":"string","description":"At most 80 characters."}}}}"#,
/// );
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
pub fn compact_tool(tool: &str) -> Result<String, JsonError> {
    let mut members = Members::parse(tool)?;
    ["title", "icons", "outputSchema"]
        .iter()
        .for_each(|key| drop(members.remove(key)));
    if let Some(annotations) = members.get("annotations").map(without_title) {
        members.set("annotations", annotations?);
    }
    let written = members.get("inputSchema").map(str::to_owned);
    let description = members.get_str("description");
    let names = argument_names(written.as_deref().unwrap_or("{}"))?;
    let arguments: Vec<&str> = names.iter().map(String::as_str).collect();
    let sections = ArgumentSections::read(description.as_deref().unwrap_or_default(), &arguments);
    if let Some(description) = &description {
        let text = if sections.arguments.is_empty() {
            description
        } else {
            &sections.rest
        };
        let schema = Json::parse(written.as_deref().unwrap_or("{}"))?;
        let described = Described {
            values: argument_values(&schema),
            arguments,
        };
        let essential = essential::of_description(text, &described);
        members.set("description", string(&essential));
    }
    if let Some(schema) = written {
        let known = known_words(&members);
        let prose = Prose::Essential(&known);
        let compact = schema::compact_described(&schema, prose, &sections.arguments)?;
        members.set("inputSchema", compact);
    }
    Ok(Json::parse(&members.to_json())?.to_json())
}

/// The names of the arguments that a schema lists itself, and that can have a description there.
fn argument_names(schema: &str) -> Result<Vec<String>, JsonError> {
    let schema = Json::parse(schema)?;
    let properties = schema.get("properties").and_then(Json::as_object);
    let listed = properties.unwrap_or_default().iter();
    let described = listed.filter(|(_, schema)| schema.as_object().is_some());
    Ok(described.map(|(name, _)| name.to_string()).collect())
}

/// The values that a schema lists for its arguments.
fn argument_values<'s>(schema: &'s Json<'_>) -> Vec<&'s str> {
    let properties = schema.get("properties").and_then(Json::as_object);
    let listed = properties.unwrap_or_default().iter();
    let schemas = listed.filter_map(|(_, schema)| schema.as_object());
    schemas
        .flat_map(|schema| SchemaFacts::of(schema).values)
        .collect()
}

/// The words that a caller of a tool reads beside its schema: those of its name and of its first sentence.
pub(super) fn known_words(tool: &Members<'_>) -> Vocabulary {
    let mut known = Vocabulary::of(&tool.get_str("name").unwrap_or_default());
    let description = tool.get_str("description").unwrap_or_default();
    known.add(&Vocabulary::of(&first_sentence(&description)));
    known
}

/// The tool without what a view with [on-demand](crate::SchemaStyle::OnDemand) schemas leaves out of its list besides
/// the schema: its title, icons, `outputSchema`, and of its annotations the title and hints that are `false` by default.
///
/// Hints that are `true` by default stay where they are declared: a client may take one that is not there for `false`.
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
/// let tool = r#"{"name": "add", "title": "Add", "annotations": {"title": "Add", "readOnlyHint": false, "openWorldHint": true}}"#;
/// assert_eq!(untitled_tool(tool)?, r#"{"name":"add","annotations":{"openWorldHint":true}}"#);
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
pub fn untitled_tool(tool: &str) -> Result<String, JsonError> {
    compact(
        tool,
        &["title", "icons", "outputSchema"],
        &[("annotations", without_defaults)],
    )
}

/// The prompt as the variant `compact` lists it: shortened descriptions for itself and its arguments, no titles, no icons.
///
/// # Errors
///
/// As [`compact_tool`].
pub fn compact_prompt(prompt: &str) -> Result<String, JsonError> {
    compact(
        prompt,
        &["title", "icons"],
        &[
            ("description", essentials),
            ("arguments", compact_arguments),
        ],
    )
}

/// The resource, or resource template, as the variant `compact` lists it: a shortened description, no title, no icons.
///
/// # Errors
///
/// As [`compact_tool`].
pub fn compact_resource(resource: &str) -> Result<String, JsonError> {
    compact(
        resource,
        &["title", "icons"],
        &[("description", essentials)],
    )
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

/// Shortens a string to its first sentence and what callers need besides; any other value stays.
fn essentials(text: &str) -> Result<String, JsonError> {
    Ok(match Json::parse(text)?.as_str() {
        Some(description) => string(&essential::of_description(
            description,
            &Described::default(),
        )),
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

/// The annotations without their title, and without the hints that are absent or `false` to every reader.
fn without_defaults(annotations: &str) -> Result<String, JsonError> {
    let Ok(mut members) = Members::parse(annotations) else {
        return Ok(annotations.to_owned());
    };
    members.remove("title");
    for hint in ["readOnlyHint", "idempotentHint"] {
        if members.get(hint) == Some("false") {
            members.remove(hint);
        }
    }
    Ok(members.to_json())
}

fn compact_arguments(arguments: &str) -> Result<String, JsonError> {
    let Ok(arguments) = elements(arguments) else {
        return Ok(arguments.to_owned());
    };
    let shortened = |argument: &&str| {
        compact(argument, &["title"], &[("description", essentials)])
            .unwrap_or_else(|_| (*argument).to_owned())
    };
    let shortened_arguments: Vec<String> = arguments.iter().map(shortened).collect();
    Ok(format!("[{}]", shortened_arguments.join(",")))
}
