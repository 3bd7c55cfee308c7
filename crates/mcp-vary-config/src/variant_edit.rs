//! Changes one variant in the text of a file.

use serde_json::{Map, Value as Json};

use crate::document::edit::line_end;
use crate::document::edit::yaml::YamlText;
use crate::document::{self, has_ending};
use crate::file_variants::{FileVariants, to_json};

/// A file in which one variant is changed.
///
/// # Properties
///
/// Comments and all bytes but those of the variant's entry stay. Everything but the variant reads as before.
///
/// # Examples
///
/// ```
/// use mcp_vary_config::VariantEdit;
/// use serde_json::json;
///
/// let text = "servers: {a: {command: x}} # mine\nvariants:\n  all: {}\n  few:\n    from: compact # short\n";
/// let value = json!({"from": "compact", "tools": ["get_*"]});
/// let edit = VariantEdit::new("vary.yaml", text, "few", &value)?;
/// assert_eq!(edit.text, format!("{text}    tools: [\"get_*\"]\n"));
/// assert_eq!(edit.shown_before, "…\nvariants:\n  all: {}\n  few:\n    from: compact # short\n");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
#[non_exhaustive]
pub struct VariantEdit {
    /// The changed file.
    pub text: String,
    /// The lines of `variants` before the change; others, which can have secrets, are `…`.
    pub shown_before: String,
    /// These lines after it.
    pub shown_after: String,
}

// Omits the texts, which may contain secrets.
mcp_vary_base::debug_by_name!(VariantEdit);

impl VariantEdit {
    /// Gives the variant `id` of the file `name` this value, or adds the variant. Whether the value is valid is not checked.
    ///
    /// # Errors
    ///
    /// Why the file cannot be changed so.
    pub fn new(name: &str, text: &str, id: &str, value: &Json) -> Result<Self, String> {
        let others = [".json", ".jsonc", ".toml"];
        if others.iter().any(|ending| has_ending(name, ending)) {
            return Err(NOT_YAML.to_owned());
        }
        let variants = FileVariants::read(name, text).map_err(|all| all.to_string())?;
        let written = variants.value(id);
        if written.as_ref() == Some(value) {
            return Err("nothing is changed".to_owned());
        }
        check_variables(written.as_ref(), value)?;
        let read = |text: &str| document::read_file(name, text).map_err(|all| all.to_string());
        let Json::Object(before) = to_json(&read(text)?) else {
            return Err(NOT_A_TABLE.to_owned());
        };
        let mut after = before.clone();
        let declared = after.get("variants").cloned().unwrap_or_default();
        let empty = |id: &str| (id.to_owned(), Json::Object(Map::new()));
        let mut table = match declared {
            Json::Object(table) => table,
            // A file that declares variants has only these.
            Json::Null => variants.ids().map(empty).collect(),
            _ => return Err(NOT_A_TABLE.to_owned()),
        };
        table.insert(id.to_owned(), value.clone());
        after.insert("variants".to_owned(), Json::Object(table));
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (mark, _) = text.split_at(text.len() - body.len());
        let changed = change(body, &before, &after)?;
        let after_text = format!("{mark}{changed}");
        if read(&after_text).ok().map(|root| to_json(&root)) != Some(Json::Object(after)) {
            return Err(ELSEWHERE.to_owned());
        }
        Ok(Self {
            shown_before: shown(body),
            shown_after: shown(&changed),
            text: after_text,
        })
    }
}

/// The text with its last line ended while it is changed.
fn change(
    text: &str,
    before: &Map<String, Json>,
    after: &Map<String, Json>,
) -> Result<String, String> {
    let end = if text.ends_with('\n') {
        ""
    } else {
        line_end(text)
    };
    let whole = format!("{text}{end}");
    let file = YamlText::read(&whole);
    if file.is_in_brackets("variants") {
        return Err(IN_BRACKETS.to_owned());
    }
    let changed = file.changed(before, after);
    if file.comments() != YamlText::read(&changed).comments() {
        return Err(ELSEWHERE.to_owned());
    }
    let without_end = changed.strip_suffix(end).ok_or(ELSEWHERE)?;
    Ok(without_end.to_owned())
}

/// The text of which only the lines of `variants` are shown.
fn shown(text: &str) -> String {
    let range = YamlText::read(text).lines_of("variants");
    let mut at = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        let is_shown = range.contains(&at);
        at += line.len();
        if is_shown { line } else { "…\n" }
    });
    lines.collect()
}

/// Refuses a text with a variable that is not at the same place already: a description that has `${TOKEN}` would show it.
fn check_variables(before: Option<&Json>, after: &Json) -> Result<(), String> {
    match after {
        Json::String(text) if text.contains("${") && before != Some(after) => {
            Err(VARIABLE.to_owned())
        }
        Json::Array(items) => {
            let known = |index: usize| before.and_then(|before| before.get(index));
            let mut all = items.iter().enumerate();
            all.try_for_each(|(index, item)| check_variables(known(index), item))
        }
        Json::Object(members) => {
            let known = |key: &String| before.and_then(|before| before.get(key));
            let mut all = members.iter();
            all.try_for_each(|(key, member)| check_variables(known(key), member))
        }
        _ => Ok(()),
    }
}

const IN_BRACKETS: &str = "`variants` is in brackets; write each variant on its own lines first";
const NOT_YAML: &str = "only files in YAML are changed here; copy the entry into the file";
const NOT_A_TABLE: &str = "`variants` is not a table in the file; edit it by hand";
const ELSEWHERE: &str = "the file would not read as before in other places, or not as the draft does: something in the entry has \
     an anchor or is written in an unusual form; edit it by hand";
const VARIABLE: &str =
    "a variable such as `${NAME}` can only be written by hand, since the page could show its value";
