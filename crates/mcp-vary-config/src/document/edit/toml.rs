//! Edits TOML by the spans of its tables: sections are added at the end, and taken out whole.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::Lines;
use super::{Removed, edited, line_end, not_a_table, place_above};
use crate::diagnostic::Diagnostic;

type Table<'a> = Spanned<DeTable<'a>>;

pub(super) fn entries(text: &str, path: &[&str]) -> Result<Vec<(String, Value)>, Diagnostic> {
    let root = parsed(text)?;
    let Some(table) = find(text, &root, path)? else {
        return Ok(Vec::new());
    };
    let entries = table.get_ref().iter();
    Ok(entries
        .map(|(key, value)| (key.get_ref().to_string(), to_json(value.get_ref())))
        .collect())
}

pub(super) fn insert(
    text: &str,
    path: &[&str],
    name: &str,
    entry: &Value,
) -> Result<String, Diagnostic> {
    let mut lines = format!("[{}]\n", header(path, name));
    for (member, value) in entry.as_object().into_iter().flatten() {
        lines.push_str(&format!("{} = {}\n", key(member), inline(value)));
    }
    let added = Removed {
        entry: lines,
        ..Removed::default()
    };
    restore(text, path, name, &added, None)
}

pub(super) fn restore(
    text: &str,
    path: &[&str],
    name: &str,
    removed: &Removed,
    next: Option<&str>,
) -> Result<String, Diagnostic> {
    let root = parsed(text)?;
    let mut headers = BTreeSet::new();
    if let Some(table) = find(text, &root, path)? {
        if is_inline(text, table.span()) {
            let wrong = not_a_table(text, table.span().start, &path.join("."), "written inline");
            return Err(wrong.with_fix(format!("write it as `[{}.NAME]`", path.join("."))));
        }
        let mut names = table.get_ref().keys();
        if let Some(key) = names.find(|key| key.get_ref() == name) {
            let at = Lines::of(text).position(key.span().start);
            let key = [path, &[name]].concat().join(".");
            let duplicate = Diagnostic::new(at, key, "exists already");
            return Err(duplicate.with_fix("choose another name, or take it out"));
        }
        let mut entries = table.get_ref().iter();
        if let Some((_, value)) = entries.find(|(key, _)| Some(key.get_ref().as_ref()) == next) {
            headers_in(text, value, &mut headers);
        }
    }
    let end = line_end(text);
    let written = match end {
        "\n" => removed.entry.clone(),
        _ => removed.entry.replace("\r\n", "\n").replace('\n', end),
    };
    if let Some(next) = headers.first() {
        let mut all = BTreeSet::new();
        headers_in_table(text, root.get_ref(), &mut all);
        let previous = all.range(..next).next_back();
        let from = previous.map_or(0, |start| section(text, *start, &all).end);
        let at = place_above(text, from, *next, &removed.below);
        let new = format!("{}{end}{end}", written.trim_end_matches(['\r', '\n']));
        return Ok(edited(text, vec![(at..at, new)]));
    }
    let gap = match text {
        "" => "",
        _ if text.ends_with('\n') => end,
        _ => return Ok(format!("{text}{end}{end}{written}")),
    };
    Ok(format!("{text}{gap}{written}"))
}

pub(super) fn remove(text: &str, path: &[&str], name: &str) -> Result<Option<Removed>, Diagnostic> {
    let root = parsed(text)?;
    let Some(table) = find(text, &root, path)? else {
        return Ok(None);
    };
    let named = table
        .get_ref()
        .iter()
        .find(|(key, _)| key.get_ref() == name);
    let Some((key, value)) = named else {
        return Ok(None);
    };
    let mut headers = BTreeSet::new();
    headers_in_table(text, root.get_ref(), &mut headers);
    let mut starts = BTreeSet::new();
    headers_in(text, value, &mut starts);
    if starts.is_empty() || is_inline(text, value.span()) {
        let shown = header(path, name);
        let wrong = not_a_table(text, key.span().start, &shown, "written inline");
        return Err(wrong.with_fix(format!("write it as `[{shown}]`, or take it out by hand")));
    }
    let all = starts.iter().map(|start| section(text, *start, &headers));
    let sections: Vec<Range<usize>> = all.collect();
    let written = sections.iter().filter_map(|range| text.get(range.clone()));
    let entry = written.collect::<Vec<_>>().join("\n");
    let edits = sections
        .iter()
        .map(|range| (with_gap(text, range), String::new()));
    let end = sections.last().map_or(text.len(), |last| last.end);
    let until = headers.range(end..).next().copied();
    let below = text.get(end..until.unwrap_or(text.len()));
    Ok(Some(Removed {
        text: edited(text, edits.collect()),
        entry,
        below: below.unwrap_or_default().trim().to_owned(),
        ..Removed::default()
    }))
}

fn parsed(text: &str) -> Result<Table<'_>, Diagnostic> {
    super::super::toml::read(text).map_err(|diagnostics| {
        let first = diagnostics.into_iter().next();
        first.unwrap_or_else(|| not_a_table(text, 0, "", "not TOML"))
    })?;
    let (root, _) = DeTable::parse_recoverable(text);
    Ok(root)
}

/// The table at `path`, if it exists.
fn find<'t, 'a>(
    text: &str,
    root: &'t Table<'a>,
    path: &[&str],
) -> Result<Option<Spanned<&'t DeTable<'a>>>, Diagnostic> {
    let mut at = Spanned::new(root.span(), root.get_ref());
    for (depth, key) in path.iter().enumerate() {
        let found = at.get_ref().iter().find(|(name, _)| name.get_ref() == *key);
        let Some((name, value)) = found else {
            return Ok(None);
        };
        let DeValue::Table(table) = value.get_ref() else {
            let found_path = path.get(..=depth).unwrap_or_default().join(".");
            let kind = match value.get_ref() {
                DeValue::Array(_) => "a list",
                DeValue::String(_) => "text",
                _ => "a single value",
            };
            let wrong = not_a_table(text, name.span().start, &found_path, kind);
            return Err(wrong.with_fix(format!("servers are in tables: `[{found_path}.NAME]`")));
        };
        at = Spanned::new(value.span(), table);
    }
    Ok(Some(at))
}

/// Whether the table at `span` is written in braces.
fn is_inline(text: &str, span: Range<usize>) -> bool {
    text.get(span.start..)
        .is_some_and(|text| text.starts_with('{'))
}

/// The positions of all headers in a value.
fn headers_in(text: &str, value: &Spanned<DeValue<'_>>, out: &mut BTreeSet<usize>) {
    match value.get_ref() {
        DeValue::Table(table) => {
            let start = value.span().start;
            let is_header = text.get(start..).is_some_and(|text| text.starts_with('['));
            if is_header {
                out.insert(start);
            }
            headers_in_table(text, table, out);
        }
        DeValue::Array(items) => {
            for item in items.iter() {
                headers_in(text, item, out);
            }
        }
        _ => {}
    }
}

fn headers_in_table(text: &str, table: &DeTable<'_>, out: &mut BTreeSet<usize>) {
    for (_, value) in table {
        headers_in(text, value, out);
    }
}

/// The section whose header is at `start`, until the end of its last setting.
fn section(text: &str, start: usize, headers: &BTreeSet<usize>) -> Range<usize> {
    let next = headers.range(start + 1..).next().copied();
    let all = text
        .get(start..next.unwrap_or(text.len()))
        .unwrap_or_default();
    // Comments and blank lines at its end belong to what follows.
    let mut length = all.len();
    for line in all.split_inclusive('\n').rev() {
        let trimmed = line.trim();
        if !trimmed.is_empty() && !trimmed.starts_with('#') {
            break;
        }
        length -= line.len();
    }
    start..start + length
}

/// The section with one blank line: the one before it at the end of the file, otherwise the one after it.
fn with_gap(text: &str, range: &Range<usize>) -> Range<usize> {
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    let gap = ["\r\n", "\n"]
        .into_iter()
        .find(|end| after.starts_with(end));
    if let Some(end) = gap {
        return range.start..range.end + end.len();
    }
    if after.is_empty() {
        let blank = ["\r\n", "\n"]
            .into_iter()
            .find_map(|end| before.strip_suffix(end));
        let is_blank = |remaining: &&str| remaining.is_empty() || remaining.ends_with('\n');
        if let Some(remaining) = blank.filter(is_blank) {
            return remaining.len()..range.end;
        }
    }
    range.clone()
}

fn to_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(value) => Value::from(*value),
        DeValue::Integer(number) => number
            .to_string()
            .parse()
            .map_or(Value::Null, |n: i64| n.into()),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or(Value::Null, |n: f64| n.into()),
        DeValue::Array(items) => items.iter().map(|item| to_json(item.get_ref())).collect(),
        DeValue::Table(table) => {
            let members = table.iter();
            let members =
                members.map(|(key, value)| (key.get_ref().to_string(), to_json(value.get_ref())));
            Value::Object(members.collect::<Map<_, _>>())
        }
        _ => Value::Null,
    }
}

/// What is between the brackets of a table's header.
fn header(path: &[&str], name: &str) -> String {
    let keys: Vec<String> = path.iter().chain([&name]).map(|part| key(part)).collect();
    keys.join(".")
}

/// A key, in quotes if it is not a bare one.
fn key(text: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !text.is_empty() && text.chars().all(is_bare) {
        return text.to_owned();
    }
    string(text)
}

/// A value of JSON in one line of TOML.
fn inline(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", texts.join(", "))
        }
        Value::Object(members) => {
            let texts = members
                .iter()
                .map(|(key, value)| format!("{} = {}", string(key), inline(value)));
            format!("{{ {} }}", texts.collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => string(text),
        other => other.to_string(),
    }
}

/// A basic string of TOML, whose escapes are those of JSON; it also escapes DEL.
fn string(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
