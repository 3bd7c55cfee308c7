//! The JSON Schema of a configuration file, for editors.

use serde_json::{Map, Value, json};

use crate::schema_builder::SchemaBuilder;

/// The [JSON Schema](https://json-schema.org/draft/2020-12) of a configuration file, as text.
///
/// # Properties
///
/// It accepts every valid file, and rejects every error that can be detected without looking at the file as a whole.
///
/// # Examples
///
/// ```
/// let schema: serde_json::Value = serde_json::from_str(&mcp_vary_config::schema()).unwrap();
/// assert_eq!(schema["required"], serde_json::json!(["servers"]));
/// assert_eq!(schema["properties"]["naming"]["default"], "as-needed");
/// // No key but those of the reader, those that begin with `x-`, and YAML's `<<`.
/// assert_eq!(schema["additionalProperties"], false);
/// ```
pub fn schema() -> String {
    let mut schema = SchemaBuilder::default();
    let mut root = Map::new();
    root.insert("$schema".to_owned(), json!(DIALECT));
    root.insert("title".to_owned(), json!("Configuration of Vary"));
    if let Value::Object(shape) = super::shape(&mut schema) {
        root.extend(shape);
    }
    root.insert("$defs".to_owned(), Value::Object(schema.definitions));
    let text = serde_json::to_string_pretty(&root);
    text.expect("JSON values can be written") + "\n"
}

/// A page of the reference with the rows of its tables as the program has them. The head of a table says what it has the
/// keys of: `| key of a server | default | |`.
///
/// # Examples
///
/// ```
/// let page = "# The log\n\n| key of `log` | default | |\n|---|---|---|\n| `old` | | |\n\nMore.\n";
/// let page = mcp_vary_config::reference(page);
/// assert!(page.contains("|---|---|---|\n| `level` | `warn` | what is written: "));
/// assert!(!page.contains("old") && page.ends_with(" |\n\nMore.\n"));
/// ```
pub fn reference(page: &str) -> String {
    let mut schema = SchemaBuilder::default();
    super::shape(&mut schema);
    let mut out = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        out.extend([line, "\n"]);
        let head = line.strip_prefix("| key of ");
        let table = head.and_then(|head| head.strip_suffix(" | default | |"));
        if let Some(rows) = table.and_then(|table| schema.reference.get(table)) {
            while lines.next_if(|line| line.starts_with('|')).is_some() {}
            out.extend(["|---|---|---|\n", rows]);
        }
    }
    out
}

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

#[cfg(test)]
mod tests;
