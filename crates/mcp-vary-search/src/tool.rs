//! What is searched of a tool.

use serde_json::Value;

use crate::stem::stem;
use crate::stop_words::is_stop_word;
use crate::terms::for_each_word;

/// The terms that are indexed of one tool, at most. Names come first, descriptions last.
pub const MAX_TOOL_TERMS: usize = 512;

/// The argument names that are read of one schema, at most.
pub const MAX_ARGUMENTS: usize = 256;

/// How deep schemas are read for argument names.
pub const MAX_SCHEMA_DEPTH: usize = 4;

/// The fields of a tool, in the order in which they are indexed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Field {
    Name,
    Server,
    Title,
    Summary,
    Arguments,
    Description,
}

/// The number of fields.
pub(crate) const FIELDS: usize = 6;

/// A tool as it is searched: the texts that its view shows.
///
/// # Examples
///
/// ```
/// use mcp_vary_search::{Tool, argument_names};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
/// let tool = Tool::new("read_file", "filesystem")
///     .summary("Reads a text file.")
///     .description("Reads a text file. Fails if the file is larger than 1 MB.")
///     .arguments(argument_names(&schema));
/// # let mut index = mcp_vary_search::ToolIndex::new();
/// # index.push(&tool);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tool<'a> {
    name: &'a str,
    server: &'a str,
    title: &'a str,
    summary: &'a str,
    description: &'a str,
    arguments: Vec<&'a str>,
}

impl<'a> Tool<'a> {
    /// A tool of this name and server, without other texts.
    pub fn new(name: &'a str, server: &'a str) -> Self {
        Self {
            name,
            server,
            ..Self::default()
        }
    }

    /// Sets the title.
    #[must_use]
    pub fn title(mut self, title: &'a str) -> Self {
        self.title = title;
        self
    }

    /// Sets the first sentence of the description.
    #[must_use]
    pub fn summary(mut self, summary: &'a str) -> Self {
        self.summary = summary;
        self
    }

    /// Sets the description, whole.
    #[must_use]
    pub fn description(mut self, description: &'a str) -> Self {
        self.description = description;
        self
    }

    /// Sets the names of the arguments. [`MAX_ARGUMENTS`] of them are read.
    #[must_use]
    pub fn arguments(mut self, names: Vec<&'a str>) -> Self {
        self.arguments = names;
        self.arguments.truncate(MAX_ARGUMENTS);
        self
    }

    pub(crate) fn server_name(&self) -> &'a str {
        self.server
    }

    /// Calls `visit` with each of the tool's terms, at most [`MAX_TOOL_TERMS`].
    pub(crate) fn for_each_term(&self, mut visit: impl FnMut(Field, &str)) {
        let mut terms = 0;
        let mut read = |field: Field, text: &str| {
            if terms == MAX_TOOL_TERMS {
                return;
            }
            for_each_word(start_of(text), &mut |word| {
                let is_indexed = field == Field::Name || !is_stop_word(word);
                if terms < MAX_TOOL_TERMS && is_indexed {
                    stem(word);
                    visit(field, word);
                    terms += 1;
                }
            });
        };
        read(Field::Name, self.name);
        read(Field::Server, self.server);
        read(Field::Title, self.title);
        read(Field::Summary, self.summary);
        for name in &self.arguments {
            read(Field::Arguments, name);
        }
        read(Field::Description, self.description);
    }
}

/// As much of `text` as can have terms that are indexed. Words of this many bytes on average do not occur.
fn start_of(text: &str) -> &str {
    let end = text.floor_char_boundary(MAX_TOOL_TERMS * 16);
    text.get(..end).unwrap_or_default()
}

/// The names of the arguments that `schema` describes: its `properties`, then theirs and those of `items`.
///
/// At most [`MAX_ARGUMENTS`], to the depth of [`MAX_SCHEMA_DEPTH`]. What is not a schema has none.
///
/// # Examples
///
/// ```
/// use mcp_vary_search::argument_names;
/// use serde_json::json;
///
/// let schema = json!({"properties": {"edits": {"items": {"properties": {"old": {}, "new": {}}}}, "path": {}}});
/// assert_eq!(argument_names(&schema), ["edits", "path", "old", "new"]);
/// assert!(argument_names(&json!({"properties": 1})).is_empty());
/// ```
pub fn argument_names(schema: &Value) -> Vec<&str> {
    let mut names = Vec::new();
    collect(schema, MAX_SCHEMA_DEPTH, &mut names);
    names
}

fn collect<'a>(schema: &'a Value, depth: usize, names: &mut Vec<&'a str>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    let room = MAX_ARGUMENTS.saturating_sub(names.len());
    let properties = || properties.into_iter().flatten().take(room);
    names.extend(properties().map(|(name, _)| name.as_str()));
    if depth == 0 {
        return;
    }
    let items = schema.get("items").into_iter();
    for nested in properties().map(|(_, nested)| nested).chain(items) {
        if names.len() >= MAX_ARGUMENTS {
            return;
        }
        collect(nested, depth - 1, names);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn indexed(tool: &Tool<'_>) -> Vec<(Field, String)> {
        let mut indexed = Vec::new();
        tool.for_each_term(|field, term| indexed.push((field, term.to_owned())));
        indexed
    }

    #[test]
    fn stop_words_are_indexed_in_names_only() {
        let tool = Tool::new("what_is", "the").summary("What it is");
        let expected = [
            (Field::Name, "what".to_owned()),
            (Field::Name, "is".to_owned()),
        ];
        assert_eq!(indexed(&tool), expected);
    }

    #[test]
    fn terms_are_bounded_and_names_come_first() {
        let long = "word ".repeat(100_000);
        let tool = Tool::new("first", "s").summary(&long).description(&long);
        let indexed = indexed(&tool);
        assert_eq!(indexed.len(), MAX_TOOL_TERMS);
        assert_eq!(indexed[0], (Field::Name, "first".to_owned()));
    }

    #[test]
    fn schemas_are_read_to_a_depth_and_a_number() {
        let mut schema = json!({"properties": {"x": {}}});
        for _ in 0..100 {
            schema = json!({"properties": {"x": schema}});
        }
        assert_eq!(argument_names(&schema).len(), MAX_SCHEMA_DEPTH + 1);
        let many = (0..1000).map(|number| (number.to_string(), json!({})));
        let many = json!({"properties": Value::Object(many.collect())});
        assert_eq!(argument_names(&many).len(), MAX_ARGUMENTS);
    }
}
