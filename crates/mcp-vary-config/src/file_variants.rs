//! The variants of a file as they are written, to try a change of one without the file.

use mcp_vary_catalog::variant_config::VariantConfig;
use mcp_vary_catalog::variant_set::VariantSet;
use serde_json::{Map, Value as Json};

use crate::diagnostic::{Diagnostic, Diagnostics, Position};
use crate::document::{self, Entry, Node, Value};
use crate::reader::{Located, Reader};
use crate::variables::Variables;
use crate::variants::{self, Declared};
use crate::yaml_text;

/// The variants of a file as they are written; those that are built in, with nothing written, if it declares none.
///
/// # Examples
///
/// ```
/// use mcp_vary_config::FileVariants;
/// use serde_json::json;
///
/// let text = "servers: {a: {command: x}}\nvariants:\n  standard: {}\n  reader: {tools: ['get_*']}\n";
/// let variants = FileVariants::read("vary.yaml", text)?;
/// assert_eq!(variants.value("reader"), Some(json!({"tools": ["get_*"]})));
///
/// let draft = variants.draft("reader", json!({"from": "compact"})).unwrap();
/// assert_eq!(draft.yaml, "reader:\n  from: compact\n");
///
/// let error = variants.draft("reader", json!({"tols": []})).unwrap_err();
/// assert_eq!(error, "`variants.reader.tols` is not a known key; did you mean `tools`?");
/// # Ok::<(), mcp_vary_config::Diagnostics>(())
/// ```
#[derive(Clone)]
pub struct FileVariants(Vec<Entry>);

/// A variant that is not in a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DraftVariant {
    /// What it shows, with what it starts from.
    pub config: VariantConfig,
    /// Its entry, to be pasted under `variants`.
    pub yaml: String,
}

impl FileVariants {
    /// The variants of the file `name` with its text.
    ///
    /// # Errors
    ///
    /// When the text cannot be parsed. The variants may have errors.
    pub fn read(name: &str, text: &str) -> Result<Self, Diagnostics> {
        let root = document::read_file(name, text)?;
        let Value::Table(entries) = root.value else {
            return Ok(Self::built_in());
        };
        let variants = entries.into_iter().find(|entry| entry.key == "variants");
        Ok(match variants.map(|entry| entry.node.value) {
            Some(Value::Table(entries)) => Self(entries),
            _ => Self::built_in(),
        })
    }

    /// The variants that are built in.
    #[must_use]
    pub fn built_in() -> Self {
        let variants = VariantSet::built_in();
        let entries = variants
            .ids()
            .map(|id| entry(id.to_string(), Json::Object(Map::new())));
        Self(entries.collect())
    }

    /// Their ids, in the order of the file.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| &*entry.key)
    }

    /// The entry of the variant `id`. Its variables are not replaced.
    pub fn value(&self, id: &str) -> Option<Json> {
        let entry = self.0.iter().find(|entry| entry.key == id)?;
        Some(match to_json(&entry.node) {
            // A key without a value is an empty table.
            Json::Null => Json::Object(Map::new()),
            value => value,
        })
    }

    /// The entry of the variant `id`, to be pasted under `variants`. It has no comments.
    pub fn yaml(&self, id: &str) -> Option<String> {
        Some(yaml_text::entry(id, &self.value(id)?))
    }

    /// The variant `id` if its entry had this value.
    ///
    /// Variables such as `${NAME}` are not replaced, so that nobody can read the environment through a draft.
    ///
    /// # Errors
    ///
    /// What is wrong with the variants then, a line for each.
    pub fn draft(&self, id: &str, value: Json) -> Result<DraftVariant, String> {
        let yaml = yaml_text::entry(id, &value);
        if yaml.len() > LONGEST {
            return Err(format!("`variants.{id}` has more than {LONGEST} bytes"));
        }
        let mut entries = self.0.clone();
        let draft = entry(id.to_owned(), value);
        match entries.iter_mut().find(|entry| entry.key == id) {
            Some(known) => *known = draft,
            None => entries.push(draft),
        }
        let variables = Variables {
            environment: &|name| Some(format!("${{{name}}}")),
            files: None,
            file: "FILE",
        };
        let table = node(Value::Table(entries));
        let field = Located {
            path: "variants".to_owned(),
            node: &table,
        };
        let mut reader = Reader::new(variables, &[]);
        let mut declared = Declared::default();
        variants::read(&mut reader, &field, &mut declared);
        let faults = reader.diagnostics.iter().map(Diagnostic::without_position);
        let lines: Vec<_> = faults.collect();
        let variants = declared.variant_set.ok_or_else(|| lines.join("\n"))?;
        let mut configs = variants.configs().iter();
        let found = configs.find(|config| config.variant.id.as_str() == id);
        let config = found.ok_or_else(|| format!("`variants.{id}` is not a variant"))?;
        Ok(DraftVariant {
            config: config.clone(),
            yaml,
        })
    }
}

// Omits the values.
mcp_vary_base::debug_by_name!(FileVariants);

/// The value of a node, whose variables are not replaced.
pub(crate) fn to_json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        // YAML accepts more spellings of numbers than JSON.
        Value::Scalar(word) => {
            serde_json::from_str(word).unwrap_or_else(|_| Json::String(word.clone()))
        }
        Value::Text(text) => Json::String(text.clone()),
        Value::List(items) => items.iter().map(to_json).collect(),
        Value::Table(entries) => {
            let all = entries.iter();
            let members = all.map(|entry| (entry.key.clone(), to_json(&entry.node)));
            Json::Object(members.collect())
        }
    }
}

const fn node(value: Value) -> Node {
    Node {
        at: Position::START,
        value,
    }
}

fn entry(key: String, value: Json) -> Entry {
    Entry {
        key,
        at: Position::START,
        node: of_json(value),
    }
}

fn of_json(value: Json) -> Node {
    node(match value {
        Json::Null => Value::Null,
        Json::Bool(_) | Json::Number(_) => Value::Scalar(value.to_string()),
        Json::String(text) => Value::Text(text),
        Json::Array(items) => Value::List(items.into_iter().map(of_json).collect()),
        Json::Object(members) => {
            let entries = members.into_iter().map(|(key, value)| entry(key, value));
            Value::Table(entries.collect())
        }
    })
}

/// The most bytes of a draft. A variant is a page of text.
const LONGEST: usize = 1 << 18;
