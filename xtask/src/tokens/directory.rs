//! What the tokens of a `directory` are for. Nothing but `describe_tools` could be left out.

use std::fmt::Write as _;
use std::path::Path;

use mcp_vary::json::{Json, JsonError};
use mcp_vary::shape::ToolFacts;
use mcp_vary_view::derive::first_sentence;
use mcp_vary_view::directory_tool;

use super::lists::{self, Cost, List};
use super::percent;
use crate::workspace::Workspace;

/// A row for each list, and one for all lists in one, with the tokens that each part adds.
pub(super) fn table(workspace: &Workspace) -> Result<String, String> {
    let lists = lists::read_all(workspace)?;
    let mut table = String::from(HEAD);
    let mut all = Vec::new();
    for list in &lists {
        let _ = writeln!(table, "{}", row(&list.name, &list.tools)?);
        all.extend(list.tools.iter().cloned());
    }
    let _ = writeln!(table, "{}", row("all, in one list", &all)?);
    Ok(table)
}

/// Both tables for the tools of a data set of `cargo xtask recall`.
pub(super) fn tables_of(path: &Path) -> Result<String, String> {
    let place = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{place} could not be read: {error}"))?;
    let list = List::of_data(&text).map_err(|error| format!("{place}: {error}"))?;
    let costs = Cost::of(&list.tools).map_err(|error| format!("{place}: {error}"))?;
    let parts = row(&list.name, &list.tools)?;
    Ok(format!(
        "{}{}\n\n{HEAD}{parts}",
        lists::HEAD,
        costs.row(&list.name, "")
    ))
}

fn row(name: &str, tools: &[String]) -> Result<String, String> {
    let parts = Parts::of(tools).map_err(|why| format!("{name}: {why}"))?;
    let standard = super::count_list(tools);
    let least = parts.sum();
    let each = |tokens: usize| tokens.div_ceil(tools.len().max(1));
    let all = parts.0.map(|tokens| tokens.to_string()).join(" | ");
    Ok(format!(
        "| {name} | {standard} | {all} | {least} | {} | {} | {} |",
        percent(least, standard),
        each(least),
        each(least - parts.annotations()),
    ))
}

/// The tokens that each of the [`PARTS`] adds to those before it.
#[derive(Debug)]
struct Parts([usize; PARTS.len()]);

impl Parts {
    /// The parts of the directory of `tools`, without `describe_tools`.
    ///
    /// # Errors
    ///
    /// When a tool has more than the rules of a directory keep, or in a longer form.
    fn of(tools: &[String]) -> Result<Self, String> {
        let listed = tools.iter().map(|tool| ListedTool::new(tool));
        let listed: Vec<ListedTool> = listed.collect::<Result<_, _>>()?;
        let with_first = |count: usize| {
            let tools = listed.iter().map(|tool| tool.with(&PARTS[..count]));
            super::count_list(&tools.collect::<Vec<String>>())
        };
        let before = |part: usize| if part == 0 { 0 } else { with_first(part) };
        Ok(Self(std::array::from_fn(|part| {
            with_first(part + 1) - before(part)
        })))
    }

    fn sum(&self) -> usize {
        self.0.iter().sum()
    }

    fn annotations(&self) -> usize {
        self.0[1]
    }
}

/// In the order of the columns.
const PARTS: [Part; 6] = [
    Part::Name,
    Part::Annotations,
    Part::Metadata,
    Part::OpenSchema,
    Part::KeptSchema,
    Part::Sentence,
];

/// Why a directory has a member of a tool.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Name,
    Annotations,
    /// `_meta`, `execution` and unknown members.
    Metadata,
    OpenSchema,
    /// The compact schema of a tool that declares `destructiveHint: true` or has a user interface.
    KeptSchema,
    Sentence,
}

/// A tool of a directory: the text of each member, and why it is there.
#[derive(Debug)]
struct ListedTool(Vec<(Part, String)>);

impl ListedTool {
    /// The tool as the directory lists it, compared with `tool`, as the server lists it.
    fn new(tool: &str) -> Result<Self, String> {
        let listed = directory_tool(tool).map_err(|error| error.to_string())?;
        let (served, listed) = parse(tool, &listed).map_err(|error| error.to_string())?;
        let name = served
            .get("name")
            .and_then(Json::as_str)
            .unwrap_or_default();
        let members = listed.as_object().unwrap_or_default().iter();
        let members = members.map(|(key, value)| {
            let part = part(key, value, &served);
            let part =
                part.ok_or_else(|| format!("the directory changes or adds `{key}` of `{name}`"))?;
            Ok((
                part,
                format!(
                    "{}:{}",
                    Json::String(key.clone()).to_json(),
                    value.to_json()
                ),
            ))
        });
        members.collect::<Result<_, String>>().map(Self)
    }

    /// The members of these parts.
    fn with(&self, parts: &[Part]) -> String {
        let selected = self.0.iter().filter(|(part, _)| parts.contains(part));
        let members: Vec<&str> = selected.map(|(_, text)| text.as_str()).collect();
        format!("{{{}}}", members.join(","))
    }
}

fn parse<'t>(served: &'t str, listed: &'t str) -> Result<(Json<'t>, Json<'t>), JsonError> {
    Ok((Json::parse(served)?, Json::parse(listed)?))
}

/// Why the listed tool has this member; `None` if no rule keeps it as it is.
fn part(key: &str, value: &Json<'_>, served: &Json<'_>) -> Option<Part> {
    let written = served.get(key)?;
    let part = match key {
        "name" if value == written => Part::Name,
        "annotations" if *value == without_title(written) => Part::Annotations,
        "description" if value.as_str()? == first_sentence(written.as_str()?) => Part::Sentence,
        "inputSchema" if is_open(value) => Part::OpenSchema,
        "inputSchema" if keeps_schema(served) => Part::KeptSchema,
        "name" | "annotations" | "description" | "inputSchema" => return None,
        "title" | "icons" | "outputSchema" => return None,
        _ if value == written => Part::Metadata,
        _ => return None,
    };
    Some(part)
}

fn without_title<'a>(annotations: &Json<'a>) -> Json<'a> {
    let members = annotations.as_object().unwrap_or_default().iter();
    let members = members.filter(|(key, _)| key != "title");
    Json::Object(members.cloned().collect())
}

/// Whether the schema is `{"type":"object","properties":{...},"additionalProperties":true}` with at most a type for each
/// property.
fn is_open(schema: &Json<'_>) -> bool {
    let Some([kind, properties, others]) = schema.as_object() else {
        return false;
    };
    let is_typed = |property: &Json<'_>| match property.as_object() {
        Some([]) => true,
        Some([(key, _)]) => key == "type",
        _ => false,
    };
    let named = properties.1.as_object();
    *kind == ("type".into(), Json::String("object".into()))
        && properties.0 == "properties"
        && named.is_some_and(|named| named.iter().all(|(_, property)| is_typed(property)))
        && *others == ("additionalProperties".into(), Json::Bool(true))
}

/// Whether the tool declares that it is destructive, or has a user interface, which fills in forms.
fn keeps_schema(tool: &Json<'_>) -> bool {
    let annotations = tool.get("annotations");
    let hint = annotations.and_then(|annotations| annotations.get("destructiveHint"));
    hint == Some(&Json::Bool(true)) || ToolFacts::listed(&tool.to_json()).ui
}

const HEAD: &str = "\
| list | `standard` | names | annotations | `_meta`, `execution` | open schemas | kept schemas | first sentences | sum | | a tool | without annotations |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
";

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of all recorded lists in one, and what `standard` costs.
    fn all() -> (Parts, usize) {
        let lists = lists::read_all(&Workspace::here()).unwrap().into_iter();
        let tools: Vec<String> = lists.flat_map(|list| list.tools).collect();
        (Parts::of(&tools).unwrap(), tools.len())
    }

    /// The parts are all of the list: only `describe_tools` comes on top.
    #[test]
    fn a_directory_has_nothing_that_it_need_not_keep() {
        for list in lists::read_all(&Workspace::here()).unwrap() {
            let parts = Parts::of(&list.tools).unwrap();
            let cost = Cost::of(&list.tools).unwrap();
            let added = cost.directory - parts.sum();
            assert!(
                (60..=80).contains(&added),
                "{}: {added} {parts:?}",
                list.name
            );
        }
    }

    /// Goals that are out of reach without giving up what a directory keeps: decision 0041 says which. If this fails, the
    /// page has to be corrected.
    #[test]
    fn what_a_directory_keeps_costs_more_than_some_goals() {
        for list in lists::read_all(&Workspace::here()).unwrap() {
            let least = Parts::of(&list.tools).unwrap().sum();
            let standard = super::super::count_list(&list.tools);
            let is_long = ["mongo", "notion"].contains(&list.name.as_str());
            assert!(
                !is_long || least * 100 > standard * 13,
                "{}: {least}",
                list.name
            );
        }
        let (parts, tools) = all();
        assert!(parts.sum() > tools * 75, "{parts:?}");
        assert!(parts.sum() - parts.annotations() > tools * 55, "{parts:?}");
    }

    #[track_caller]
    fn is_counted_as(key: &str, value: &str, served: &str, expected: Option<Part>) {
        let (served, value) = parse(served, value).unwrap();
        assert_eq!(part(key, &value, &served), expected);
    }

    #[test]
    fn each_member_has_a_reason_or_is_an_error() {
        let served = r#"{"name": "a", "title": "A", "description": "Does a. Well.", "x": [1], "annotations": {"title": "A", "readOnlyHint": true}}"#;
        is_counted_as("name", r#""a""#, served, Some(Part::Name));
        is_counted_as("name", r#""b""#, served, None);
        is_counted_as("title", r#""A""#, served, None);
        is_counted_as("description", r#""Does a.""#, served, Some(Part::Sentence));
        is_counted_as("description", r#""Does a. Well.""#, served, None);
        is_counted_as("x", "[1]", served, Some(Part::Metadata));
        is_counted_as("y", "1", served, None);
        let hints = r#"{"readOnlyHint": true}"#;
        is_counted_as("annotations", hints, served, Some(Part::Annotations));
        is_counted_as(
            "annotations",
            r#"{"title": "A", "readOnlyHint": true}"#,
            served,
            None,
        );
    }

    #[test]
    fn only_tools_that_keep_their_schemas_have_more_than_names_and_types() {
        let open = r#"{"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "additionalProperties": true}"#;
        let whole = r#"{"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}, "additionalProperties": true}"#;
        let harmless = r#"{"inputSchema": {}}"#;
        let destructive = r#"{"inputSchema": {}, "annotations": {"destructiveHint": true}}"#;
        is_counted_as("inputSchema", open, harmless, Some(Part::OpenSchema));
        is_counted_as("inputSchema", whole, harmless, None);
        is_counted_as("inputSchema", whole, destructive, Some(Part::KeptSchema));
        let with_ui = r#"{"inputSchema": {}, "_meta": {"ui": {"resourceUri": "ui://a"}}}"#;
        is_counted_as("inputSchema", whole, with_ui, Some(Part::KeptSchema));
    }
}
