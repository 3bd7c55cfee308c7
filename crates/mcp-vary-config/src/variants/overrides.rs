//! Overrides of a variant for single items.

use std::collections::BTreeMap;

use mcp_vary::json::Json;
use mcp_vary::shape::MediaType;
use mcp_vary_catalog::variant_config::VariantConfig;
use mcp_vary_results::result_store::ResultStore;
use mcp_vary_view::{ArgumentOverride, UriMap};

use crate::json_value;
use crate::key_spec::ValueKind::{Other, Scalar};
use crate::key_spec::{KeySpec, keys, set, value};
use crate::reader::{Located, Reader};
use crate::schema_builder::SchemaBuilder;

/// Overrides for single items, by name or URI.
#[derive(Default)]
pub(super) struct Overrides {
    tools: BTreeMap<String, Change>,
    prompts: BTreeMap<String, Change>,
    resources: BTreeMap<String, Change>,
}

/// The override for one item.
#[derive(Default)]
struct Change {
    name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    uri: Option<String>,
    mime_type: Option<MediaType>,
    annotations: BTreeMap<String, Json<'static>>,
    arguments: BTreeMap<String, Argument>,
}

/// The override for one argument.
#[derive(Default)]
struct Argument {
    name: Option<String>,
    description: Option<String>,
    hidden: Option<bool>,
    fixed: Option<Json<'static>>,
    default: Option<Json<'static>>,
    required: Option<bool>,
}

impl Overrides {
    /// Merges these overrides into those of `config`. What they do not set stays as it is.
    pub(super) fn add_to(&self, config: &mut VariantConfig) {
        for (name, change) in &self.tools {
            let tool = config.tool_overrides.entry(name.clone()).or_default();
            replace(&mut tool.name, &change.name);
            replace(&mut tool.title, &change.title);
            replace(&mut tool.description, &change.description);
            tool.annotations.extend(change.annotations.clone());
            change.add_arguments_to(&mut tool.arguments);
        }
        for (name, change) in &self.prompts {
            let prompt = config.prompt_overrides.entry(name.clone()).or_default();
            replace(&mut prompt.name, &change.name);
            replace(&mut prompt.title, &change.title);
            replace(&mut prompt.description, &change.description);
            change.add_arguments_to(&mut prompt.arguments);
        }
        for (uri, change) in &self.resources {
            let resource = config.resource_overrides.entry(uri.clone()).or_default();
            replace(&mut resource.name, &change.name);
            replace(&mut resource.title, &change.title);
            replace(&mut resource.description, &change.description);
            replace(&mut resource.uri, &change.uri);
            let mime_type = change.mime_type.as_ref().map(MediaType::to_string);
            replace(&mut resource.mime_type, &mime_type);
            resource.annotations.extend(change.annotations.clone());
        }
    }
}

impl Change {
    fn add_arguments_to(&self, arguments: &mut BTreeMap<String, ArgumentOverride>) {
        for (name, reported) in &self.arguments {
            reported.add_to(arguments.entry(name.clone()).or_default());
        }
    }
}

impl Argument {
    /// Sets what this override sets, and clears inherited settings that contradict it. A `default` does not clear a
    /// `fixed` value.
    fn add_to(&self, argument: &mut ArgumentOverride) {
        if self.fixed.is_some() || self.hidden == Some(true) {
            argument.name = None;
            argument.required = false;
        }
        if self.fixed.is_some() || self.required == Some(true) {
            argument.default = None;
        }
        if self.default.is_some() {
            argument.required = false;
        }
        replace(&mut argument.name, &self.name);
        replace(&mut argument.description, &self.description);
        replace(&mut argument.fixed, &self.fixed);
        replace(&mut argument.default, &self.default);
        argument.hidden = self.hidden.unwrap_or(argument.hidden);
        argument.required = self.required.unwrap_or(argument.required);
    }
}

fn replace<T: Clone>(what: &mut Option<T>, reported: &Option<T>) {
    if reported.is_some() {
        what.clone_from(reported);
    }
}

/// The settings under `overrides`.
pub(super) const SETTINGS: &[KeySpec<Overrides>] = keys![
    /// tools by the names that `standard` has
    "tools" => Other(
        |schema| schema.items("an override of a tool", TOOL),
        |reader, field, all| items(reader, field, TOOL, &mut all.tools),
    ),
    /// prompts by the names that `standard` has
    "prompts" => Other(
        |schema| schema.items("an override of a prompt", PROMPT),
        |reader, field, all| items(reader, field, PROMPT, &mut all.prompts),
    ),
    /// resources and templates by URI
    "resources" => Other(|schema| schema.items("an override of a resource", RESOURCE), resources),
];

/// Reads overrides by URI, and checks the URIs that they assign.
fn resources(reader: &mut Reader<'_>, field: &Located<'_>, all: &mut Overrides) {
    let mut overrides = BTreeMap::new();
    items(reader, field, RESOURCE, &mut overrides);
    for (upstream_uri, change) in &overrides {
        let Some(uri) = &change.uri else { continue };
        let at = field.deepest(&[upstream_uri, "uri"]);
        if let Err(why) = UriMap::check(upstream_uri, uri) {
            reader.report(&at, why.problem(), &why.fix());
        } else if ResultStore::is_uri(uri) {
            let what = "is a URI of the gateway's own";
            reader.report(&at, what, "begin with another scheme");
        }
    }
    all.resources.extend(overrides);
}

/// Reads overrides by the names of items.
fn items<T: Default>(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    settings: &[KeySpec<T>],
    into: &mut BTreeMap<String, T>,
) {
    for entry in reader.table(field, "{NAME: {...}}").unwrap_or_default() {
        let mut change = T::default();
        let member = field.member(entry);
        reader.settings(&member, &[settings], &mut change, "{description: ...}");
        into.insert(entry.key.clone(), change);
    }
}

const TOOL: &[KeySpec<Change>] = keys![
    /// what the variant calls it
    "name" => Scalar(|tool| &mut tool.name),
    /// its title for people
    "title" => Scalar(|tool| &mut tool.title),
    /// what it says of itself
    "description" => Scalar(|tool| &mut tool.description),
    /// MCP's hints; those given here replace the server's
    "annotations" => value!(SchemaBuilder::values, values, |tool| tool.annotations),
    /// its arguments by the names that the server gives them
    "arguments" => Other(
        |schema| schema.items("an argument", ARGUMENT),
        |reader, field, tool| items(reader, field, ARGUMENT, &mut tool.arguments),
    ),
];

const PROMPT: &[KeySpec<Change>] = keys![
    /// what the variant calls it
    "name" => Scalar(|prompt| &mut prompt.name),
    /// its title for people
    "title" => Scalar(|prompt| &mut prompt.title),
    /// what it says of itself
    "description" => Scalar(|prompt| &mut prompt.description),
    /// its arguments by the names that the server gives them
    "arguments" => Other(
        |schema| schema.items("an argument", ARGUMENT),
        |reader, field, prompt| items(reader, field, ARGUMENT, &mut prompt.arguments),
    ),
];

const RESOURCE: &[KeySpec<Change>] = keys![
    /// what the variant calls it
    "name" => Scalar(|resource| &mut resource.name),
    /// its title for people
    "title" => Scalar(|resource| &mut resource.title),
    /// what it says of itself
    "description" => Scalar(|resource| &mut resource.description),
    /// its URI in the variant; of a template the template, with the same in braces
    "uri" => value!(|schema| schema.pattern(r"^[A-Za-z][A-Za-z0-9+.-]*:\S*$"), Reader::word, |resource| resource.uri),
    /// the MIME type in the list; the contents carry their own
    "mimeType" => value!(|schema| schema.pattern(r"^[^/\s]+/[^/\s]+"), Reader::media_type, |resource| resource.mime_type),
    /// MCP's hints; those given here replace the server's
    "annotations" => value!(SchemaBuilder::values, values, |resource| resource.annotations),
];

const ARGUMENT: &[KeySpec<Argument>] = keys![
    /// what the variant calls it
    "name" => Scalar(|argument| &mut argument.name),
    /// its description
    "description" => Scalar(|argument| &mut argument.description),
    /// whether it is left out of the list and cannot be given
    "hidden" = "off" => set!(SchemaBuilder::switch, Reader::switch, |argument| &mut argument.hidden),
    /// its value in every call; it is not listed and cannot be given
    "fixed" => value!(SchemaBuilder::any, json_value::read, |argument| argument.fixed),
    /// its value in calls that do not give it
    "default" => value!(SchemaBuilder::any, json_value::read, |argument| argument.default),
    /// whether every call must give it
    "required" = "off" => set!(SchemaBuilder::switch, Reader::switch, |argument| &mut argument.required),
];

fn values(reader: &mut Reader<'_>, field: &Located<'_>) -> BTreeMap<String, Json<'static>> {
    let entries = reader.table(field, "{NAME: value}").unwrap_or_default();
    let values = entries.iter().filter_map(|entry| {
        let value = json_value::read(reader, &field.member(entry))?;
        Some((entry.key.clone(), value))
    });
    values.collect()
}
