//! Changes one variant, and which clients get it, in the text of a file.

use std::iter;

use mcp_vary_catalog::selection::client_rule::ClientPattern;
use serde_json::{Map, Value as Json, json};

use crate::document::edit::line_end;
use crate::document::edit::yaml::YamlText;
use crate::document::{self, has_ending};
use crate::file_rules::client_of;
use crate::file_variants::{FileVariants, to_json};

/// A file in which one variant is changed, and which clients get it.
///
/// # Properties
///
/// Comments and all bytes but those of the variant's entry and of its rules under `clients` stay. Everything else reads as before.
///
/// # Examples
///
/// ```
/// use mcp_vary_config::VariantEdit;
/// use serde_json::json;
///
/// let text = "servers: {a: {command: x}} # mine\nvariants:\n  all: {}\n  few:\n    from: compact # short\n";
/// let value = json!({"from": "compact", "tools": ["get_*"]});
/// let edit = VariantEdit::new("vary.yaml", text, "few", &value, None)?;
/// assert_eq!(edit.text, format!("{text}    tools: [\"get_*\"]\n"));
/// assert_eq!(edit.shown_before, "…\nvariants:\n  all: {}\n  few:\n    from: compact # short\n");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
#[non_exhaustive]
pub struct VariantEdit {
    /// The changed file.
    pub text: String,
    /// The lines of `variants`, and if rules change those of `clients` without rules with headers, before the change; others,
    /// which can have secrets, are `…`.
    pub shown_before: String,
    /// These lines after it.
    pub shown_after: String,
}

// Omits the texts, which may contain secrets.
mcp_vary_base::debug_by_name!(VariantEdit);

impl VariantEdit {
    /// Gives the variant `id` of the file `name` this value, or adds the variant. Whether the value is valid is not checked.
    ///
    /// With `clients`, rules that say nothing else give it to the clients with these names alone. New rules are written before
    /// all others, so that they decide. One that would never decide after that, since it gives another variant to the same name,
    /// is replaced.
    ///
    /// # Errors
    ///
    /// Why the file cannot be changed so.
    pub fn new(
        name: &str,
        text: &str,
        id: &str,
        value: &Json,
        clients: Option<&[String]>,
    ) -> Result<Self, String> {
        let others = [".json", ".jsonc", ".toml"];
        if others.iter().any(|ending| has_ending(name, ending)) {
            return Err(NOT_YAML.to_owned());
        }
        let variants = FileVariants::read(name, text).map_err(|all| all.to_string())?;
        let read = |text: &str| document::read_file(name, text).map_err(|all| all.to_string());
        let Json::Object(before) = to_json(&read(text)?) else {
            return Err(NOT_A_TABLE.to_owned());
        };
        let mut after = before.clone();
        set_variant(&mut after, &variants, id, value)?;
        if let Some(clients) = clients {
            set_clients(&mut after, id, clients)?;
        }
        if after == before {
            return Err("nothing is changed".to_owned());
        }
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (mark, _) = text.split_at(text.len() - body.len());
        let changed = change(body, &before, &after)?;
        let after_text = format!("{mark}{changed}");
        let has_new_rules = before.get("clients") != after.get("clients");
        let edit = Self {
            shown_before: shown(body, &before, has_new_rules),
            shown_after: shown(&changed, &after, has_new_rules),
            text: after_text,
        };
        if read(&edit.text).ok().map(|root| to_json(&root)) != Some(Json::Object(after)) {
            return Err(ELSEWHERE.to_owned());
        }
        Ok(edit)
    }
}

/// Gives a variant this value in `variants` of a file.
fn set_variant(
    root: &mut Map<String, Json>,
    variants: &FileVariants,
    id: &str,
    value: &Json,
) -> Result<(), String> {
    let written = variants.value(id);
    if written.as_ref() == Some(value) {
        return Ok(());
    }
    check_variables(written.as_ref(), value)?;
    let declared = root.get("variants").cloned().unwrap_or_default();
    let empty = |id: &str| (id.to_owned(), Json::Object(Map::new()));
    let mut table = match declared {
        Json::Object(table) => table,
        // A file that declares variants has only these.
        Json::Null => variants.ids().map(empty).collect(),
        _ => return Err(NOT_A_TABLE.to_owned()),
    };
    table.insert(id.to_owned(), value.clone());
    root.insert("variants".to_owned(), Json::Object(table));
    Ok(())
}

/// Gives a variant to the clients with these names alone by rules in `clients` of a file, and leaves all other rules.
fn set_clients(root: &mut Map<String, Json>, id: &str, clients: &[String]) -> Result<(), String> {
    let rules: &[Json] = match root.get("clients") {
        None | Some(Json::Null) => &[],
        Some(Json::Array(rules)) => rules,
        Some(_) => return Err(NOT_A_LIST.to_owned()),
    };
    let is_wanted = |name: &str| clients.iter().any(|client| client == name);
    let stays = |rule: &&Json| client_of(rule, id).is_none_or(is_wanted);
    let mut all: Vec<Json> = rules.iter().filter(stays).cloned().collect();
    let mut added = 0;
    for name in clients {
        let rule = json!({"name": name, "variant": id});
        if all.contains(&rule) {
            continue;
        }
        check_variables(None, &rule)?;
        let replaced = all.iter().position(|known| is_of_name(known, name));
        let mut before = all.iter().take(replaced.unwrap_or(0));
        let decides = !before.any(|earlier| may_match(earlier, name));
        let place = replaced.filter(|_| decides).unwrap_or(added);
        if let Some(at) = replaced {
            all.remove(at);
        }
        added += usize::from(place == added);
        all.insert(place, rule);
    }
    if all == rules {
        return Ok(());
    }
    if all.is_empty() {
        root.remove("clients");
    } else {
        root.insert("clients".to_owned(), Json::Array(all));
    }
    Ok(())
}

/// Whether a rule gives a variant to the clients of this name, and says nothing else.
fn is_of_name(rule: &Json, name: &str) -> bool {
    let variant = rule.get("variant").and_then(Json::as_str);
    variant.and_then(|id| client_of(rule, id)) == Some(name)
}

/// Whether a rule can give a variant to a client that a rule for this name, or pattern of names, matches.
fn may_match(rule: &Json, name: &str) -> bool {
    let pattern = rule.get("name").and_then(Json::as_str);
    let is_pattern = name.contains(['*', '?', '[', '{', '\\']);
    let parsed = pattern.filter(|_| !is_pattern).map(ClientPattern::new);
    let matches = match parsed {
        Some(Ok(parsed)) => parsed.matches(name),
        _ => true,
    };
    rule.get("variant").is_some() && matches
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
    let is_changed = |key: &&str| before.get(*key) != after.get(*key);
    let mut sections = ["variants", "clients"].into_iter().filter(is_changed);
    if let Some(key) = sections.find(|key| file.is_in_brackets(key)) {
        return Err(format!(
            "`{key}` is in brackets; write each entry on its own lines first"
        ));
    }
    let changed = file.changed(before, after);
    if file.comments() != YamlText::read(&changed).comments() {
        return Err(ELSEWHERE.to_owned());
    }
    let without_end = changed.strip_suffix(end).ok_or(ELSEWHERE)?;
    Ok(without_end.to_owned())
}

/// The text, which reads as `root`, of which only the lines of `variants` are shown, and `with_rules` those of `clients` without
/// rules with headers: their values can be secrets.
fn shown(text: &str, root: &Map<String, Json>, with_rules: bool) -> String {
    let file = YamlText::read(text);
    let rules = root.get("clients").and_then(Json::as_array);
    let all_rules = rules.into_iter().flatten();
    let is_open = all_rules.map(|rule| rule.get("headers").is_none());
    // The line of the key comes first.
    let lines_of_rules = file.lines_of_items("clients").into_iter();
    let of_clients = lines_of_rules.zip(iter::once(true).chain(is_open));
    let open = of_clients.filter_map(|(range, is_open)| (with_rules && is_open).then_some(range));
    let ranges: Vec<_> = open.chain([file.lines_of("variants")]).collect();
    let mut at = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        let is_shown = ranges.iter().any(|range| range.contains(&at));
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

const NOT_YAML: &str = "only files in YAML are changed here; copy the entry into the file";
const NOT_A_TABLE: &str = "`variants` is not a table in the file; edit it by hand";
const NOT_A_LIST: &str = "`clients` is not a list in the file; edit it by hand";
const ELSEWHERE: &str = "the file would not read as before in other places, or not as the draft does: something in the entry has \
     an anchor or is written in an unusual form; edit it by hand";
const VARIABLE: &str =
    "a variable such as `${NAME}` can only be written by hand, since the page could show its value";
