//! `Args:` sections: the descriptions of arguments in the description of a tool.

use std::collections::BTreeMap;

/// The description of a tool, divided.
#[derive(Debug, Default)]
pub(in crate::derive) struct ArgumentSections {
    /// What does not describe an argument.
    pub(in crate::derive) rest: String,
    /// The description of each argument that has one.
    pub(in crate::derive) arguments: BTreeMap<String, String>,
}

impl ArgumentSections {
    /// Divides `text` for a tool with arguments of these names. Lines about other names stay where they are.
    pub(in crate::derive) fn read(text: &str, names: &[&str]) -> Self {
        let mut sections = Self::default();
        let mut in_section = false;
        let mut current: Option<(&str, usize)> = None;
        for line in text.lines() {
            let trimmed = line.trim();
            let indent = line.len() - line.trim_start().len();
            if is_label(trimmed) {
                in_section = true;
                current = None;
                continue;
            }
            let described = if in_section {
                entry(trimmed, names)
            } else {
                tagged(trimmed, names)
            };
            if let Some((name, description)) = described {
                current = Some((name, indent));
                sections.describe(name, description);
                continue;
            }
            match current {
                Some((name, start)) if !trimmed.is_empty() && indent > start => {
                    sections.describe(name, trimmed);
                    continue;
                }
                Some(_) if trimmed.is_empty() => {}
                _ => in_section &= trimmed.is_empty() || current.is_none(),
            }
            if !trimmed.is_empty() {
                current = None;
            }
            sections.rest.push_str(line);
            sections.rest.push('\n');
        }
        sections
    }

    fn describe(&mut self, name: &str, description: &str) {
        let text = self.arguments.entry(name.to_owned()).or_default();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(description);
    }
}

/// `Args:`, `## Parameters`
fn is_label(line: &str) -> bool {
    let is_marked = line.starts_with('#') || line.trim_end_matches('*').ends_with(':');
    let label = line.trim_matches(|c: char| "#*:".contains(c) || c.is_whitespace());
    is_marked && LABELS.contains(&label.to_lowercase().as_str())
}

/// The name and description of `- name (type): description`.
fn entry<'l>(line: &'l str, names: &[&'l str]) -> Option<(&'l str, &'l str)> {
    let unmarked = line.trim_start_matches(|c: char| "-*+•`".contains(c) || c.is_whitespace());
    let end = unmarked.find(|c: char| !(c.is_alphanumeric() || "_-.$".contains(c)))?;
    let (name, after) = unmarked.split_at(end);
    let is_mark = |c: char| "`*".contains(c) || c.is_whitespace();
    let typed = after.trim_start_matches(is_mark);
    let described = match typed.strip_prefix('(') {
        Some(inner) => inner.split_once(')')?.1,
        None => typed,
    };
    let remaining = described.trim_start_matches(is_mark);
    let description = ENTRY_MARKS
        .iter()
        .find_map(|mark| remaining.strip_prefix(mark))?;
    let known = names.iter().find(|known| **known == name)?;
    Some((
        known,
        description.trim_matches(|c: char| c == '*' || c.is_whitespace()),
    ))
}

/// The name and description of `:param name: description` and `@param name description`.
fn tagged<'l>(line: &'l str, names: &[&'l str]) -> Option<(&'l str, &'l str)> {
    let remaining = line
        .strip_prefix(":param ")
        .or_else(|| line.strip_prefix("@param "))?;
    let (name, description) = remaining.split_once([':', ' '])?;
    let known = names.iter().find(|known| **known == name)?;
    Some((known, description.trim()))
}

const LABELS: [&str; 7] = [
    "arguments",
    "args",
    "input parameters",
    "inputs",
    "parameters",
    "params",
    "keyword args",
];
const ENTRY_MARKS: [&str; 4] = [":", "- ", "– ", "— "];
