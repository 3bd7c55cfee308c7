//! Edits JSON with comments by the spans of its values.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::Deserializer as _;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::Lines;
use super::super::json::{Members, no_json, plain, unclosed};
use super::{Removed, edited, line_end, not_a_table, place_above, start_of_line};
use crate::diagnostic::Diagnostic;

/// What is inserted.
pub(super) enum Entry<'a> {
    /// A value, printed with the indentation of the file.
    Value(&'a Value),
    /// A value as it was written, with the comment that followed it.
    Written(&'a Removed),
}

/// An object of the text.
#[derive(Debug)]
struct Object {
    /// From its brace to its brace.
    span: Range<usize>,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    name: String,
    /// From the quote of the key to the end of the value.
    span: Range<usize>,
    value: Range<usize>,
}

/// A member that is inserted.
struct NewMember<'a> {
    /// The key and the value.
    text: String,
    /// The comment behind it.
    comment: &'a str,
    /// The comments below it.
    below: &'a str,
}

/// The text, and a copy of the same length in which comments and trailing commas are white space.
struct File<'a> {
    text: &'a str,
    plain: Cow<'a, str>,
}

pub(super) fn entries(text: &str, path: &[&str]) -> Result<Vec<(String, Value)>, Diagnostic> {
    if is_blank(text) {
        return Ok(Vec::new());
    }
    let file = File::read(text)?;
    let Found::All(object) = file.find(path)? else {
        return Ok(Vec::new());
    };
    let entries = object.members.into_iter().map(|member| {
        let parsed = serde_json::from_str(file.slice(&member.value));
        let value = parsed.map_err(|_| file.unusable(member.value.start, &member.name))?;
        Ok((member.name, value))
    });
    entries.collect()
}

pub(super) fn insert(
    text: &str,
    path: &[&str],
    name: &str,
    entry: &Entry<'_>,
    next: Option<&str>,
) -> Result<String, Diagnostic> {
    if is_blank(text) {
        let root = format!("{text}{{}}\n");
        return insert(&root, path, name, entry, next);
    }
    let file = File::read(text)?;
    let (object, missing) = match file.find(path)? {
        Found::All(object) => (object, &[][..]),
        Found::Part(object, missing) => (object, missing),
    };
    if missing.is_empty()
        && let Some(member) = object.members.iter().find(|member| member.name == name)
    {
        let at = Lines::of(text).position(member.span.start);
        let key = [path, &[name]].concat().join(".");
        let duplicate = Diagnostic::new(at, key, "exists already");
        return Err(duplicate.with_fix("choose another name, or take it out"));
    }
    let indent = file.indent(&object);
    let mut keys = missing.iter().copied().chain([name]);
    let first = keys.next().unwrap_or(name);
    let value = nested(&keys.collect::<Vec<_>>(), entry, &indent, line_end(text));
    let (comment, below) = match entry {
        Entry::Written(removed) if missing.is_empty() => (&*removed.comment, &*removed.below),
        _ => ("", ""),
    };
    let member = NewMember {
        text: format!("{}: {value}", Value::from(first)),
        comment,
        below,
    };
    let mut members = object.members.iter();
    Ok(match members.position(|other| Some(&*other.name) == next) {
        Some(at) if missing.is_empty() => file.with_member_before(&object, at, &member),
        _ => file.with_last_member(&object, &member, &indent),
    })
}

pub(super) fn remove(text: &str, path: &[&str], name: &str) -> Result<Option<Removed>, Diagnostic> {
    if is_blank(text) {
        return Ok(None);
    }
    let file = File::read(text)?;
    let Found::All(object) = file.find(path)? else {
        return Ok(None);
    };
    let Some(at) = object.members.iter().position(|member| member.name == name) else {
        return Ok(None);
    };
    let Some(member) = object.members.get(at) else {
        return Ok(None);
    };
    let entry = text
        .get(member.value.clone())
        .unwrap_or_default()
        .to_owned();
    let edits = file.removal(&object, at, member);
    let end = edits.first().map_or(0, |(range, _)| range.end);
    let next = object.members.get(at + 1);
    let until = next.map_or(object.span.end - 1, |next| next.span.start);
    Ok(Some(Removed {
        text: edited(text, edits),
        entry,
        comment: file.comment(member.span.end, end),
        below: file.written(end..until).trim().to_owned(),
    }))
}

/// Whether there is nothing yet. Clients take such a file for an empty object.
fn is_blank(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim().is_empty()
}

/// What of a path exists.
enum Found<'p> {
    /// The object at its end.
    All(Object),
    /// The last object on the way, and the keys that are missing in it.
    Part(Object, &'p [&'p str]),
}

impl<'a> File<'a> {
    fn read(text: &'a str) -> Result<Self, Diagnostic> {
        let start = text.len() - text.trim_start_matches('\u{feff}').len();
        let body = text.get(start..).unwrap_or_default();
        let blanked = plain(body).map_err(|at| unclosed(&Lines::of(body), at))?;
        let parsed: Result<&RawValue, _> = serde_json::from_str(&blanked);
        parsed.map_err(|error| no_json(body, &error))?;
        // A byte order mark is as long as three spaces.
        let plain = match start {
            0 => blanked,
            _ => Cow::Owned(format!("{}{blanked}", " ".repeat(start))),
        };
        Ok(Self { text, plain })
    }

    /// The plain text of a range.
    fn slice(&self, range: &Range<usize>) -> &str {
        self.plain.get(range.clone()).unwrap_or_default()
    }

    /// The text of a range as written.
    fn written(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    fn find<'p>(&self, path: &'p [&'p str]) -> Result<Found<'p>, Diagnostic> {
        let start = self.plain.len() - self.plain.trim_start().len();
        let mut object = self.object(start..self.plain.trim_end().len(), "")?;
        for (depth, key) in path.iter().enumerate() {
            let found = object.members.iter().find(|member| member.name == *key);
            let Some(value) = found.map(|member| member.value.clone()) else {
                return Ok(Found::Part(object, path.get(depth..).unwrap_or_default()));
            };
            let found_path = path.get(..=depth).unwrap_or_default().join(".");
            object = self.object(value, &found_path)?;
        }
        Ok(Found::All(object))
    }

    /// The object that is the value at `span`.
    fn object(&self, span: Range<usize>, path: &str) -> Result<Object, Diagnostic> {
        let plain = self.slice(&span);
        if !plain.starts_with('{') {
            let kind = match plain.bytes().next() {
                Some(b'[') => "a list",
                Some(b'"') => "text",
                _ => "a single value",
            };
            let wrong = not_a_table(self.text, span.start, path, kind);
            return Err(wrong.with_fix("servers are in an object: write `{}`"));
        }
        let read = serde_json::Deserializer::from_str(plain).deserialize_map(Members);
        let members = read.map_err(|_| self.unusable(span.start, path))?;
        let whole = self.plain.as_ptr().addr();
        let range = |raw: &RawValue| {
            let start = raw.get().as_ptr().addr().saturating_sub(whole);
            start..start + raw.get().len()
        };
        let mut object = Object {
            span,
            members: Vec::with_capacity(members.len()),
        };
        for (key, value) in members {
            let key_span = range(key);
            let value_span = range(value);
            let name: String =
                serde_json::from_str(key.get()).map_err(|_| self.unusable(key_span.start, path))?;
            if object.members.iter().any(|member| member.name == name) {
                let at = Lines::of(self.text).position(key_span.start);
                let twice = Diagnostic::new(at, name, "is given twice");
                return Err(twice.with_fix("keep one of them"));
            }
            object.members.push(Member {
                name,
                span: key_span.start..value_span.end,
                value: value_span,
            });
        }
        Ok(object)
    }

    fn unusable(&self, at: usize, path: &str) -> Diagnostic {
        Diagnostic::new(
            Lines::of(self.text).position(at),
            path,
            "cannot be read as JSON",
        )
    }

    /// The white space before each member of `object`; empty if the object is in one line.
    fn indent(&self, object: &Object) -> Indent {
        let closing = self.line_indent(object.span.start);
        let has_lines = self.written(object.span.clone()).contains('\n');
        let first = object.members.first();
        let on_own_line = if has_lines { first } else { None };
        let child = on_own_line.map(|member| self.line_indent(member.span.start));
        let unit = match &child {
            Some(child) if child.len() > closing.len() && child.starts_with(&closing) => {
                child.get(closing.len()..).unwrap_or_default().to_owned()
            }
            _ => self.unit(),
        };
        let is_inline = !has_lines && first.is_some();
        Indent {
            child: child.unwrap_or_else(|| format!("{closing}{unit}")),
            closing,
            unit,
            is_inline,
        }
    }

    /// The indentation of the file: that of its first indented line.
    fn unit(&self) -> String {
        let lines = self.plain.lines().skip(1).map(|line| {
            let text = line.trim_start_matches([' ', '\t']);
            (
                line.get(..line.len() - text.len()).unwrap_or_default(),
                text,
            )
        });
        let mut indents = lines.filter(|(indent, text)| !indent.is_empty() && !text.is_empty());
        indents.next().map_or("  ", |(indent, _)| indent).to_owned()
    }

    /// The white space at the start of the line of `at`.
    fn line_indent(&self, at: usize) -> String {
        let last = self.written(0..at).rsplit('\n').next().unwrap_or_default();
        let line = last.trim_start_matches('\u{feff}');
        let text = line.trim_start_matches([' ', '\t']);
        line.get(..line.len() - text.len())
            .unwrap_or_default()
            .to_owned()
    }

    /// The text with one more member in front of the one with `index`.
    fn with_member_before(&self, object: &Object, index: usize, new: &NewMember<'_>) -> String {
        let NewMember {
            text,
            comment,
            below,
        } = new;
        let members = object.members.get(..=index).unwrap_or_default();
        let next = members.last().map_or(0, |next| next.span.start);
        let previous = members.iter().rev().nth(1);
        let from = previous.map_or(object.span.start, |previous| previous.span.end);
        let at = place_above(self.text, from, next, below);
        let before = self.written(0..at).trim_end_matches([' ', '\t']);
        let gap = if before.ends_with('\n') || !comment.is_empty() {
            format!("{}{}", line_end(self.text), self.line_indent(at))
        } else {
            " ".to_owned()
        };
        edited(self.text, vec![(at..at, format!("{text},{comment}{gap}"))])
    }

    /// The text with one more member at the end of `object`.
    fn with_last_member(&self, object: &Object, new: &NewMember<'_>, indent: &Indent) -> String {
        let close = object.span.end - 1;
        let end = line_end(self.text);
        let inside = self.written(object.span.start + 1..close);
        // The end of everything that is in the object, comments included.
        let tail = object.span.start + 1 + inside.trim_end().len();
        let NewMember { text, comment, .. } = new;
        let Some(last) = object.members.last() else {
            let new = format!(
                "{end}{}{text}{comment}{end}{}",
                indent.child, indent.closing
            );
            return edited(self.text, vec![(tail..close, new)]);
        };
        let comma = self.comma(last.span.end, close);
        let trailing = if comma.is_some() { "," } else { "" };
        let mut new = if indent.is_inline && comment.is_empty() {
            format!(" {text}{trailing}")
        } else {
            format!("{end}{}{text}{trailing}{comment}", indent.child)
        };
        if !comment.is_empty() && !self.written(tail..close).contains('\n') {
            new.push_str(&format!("{end}{}", indent.closing));
        }
        let mut edits = vec![(tail..tail, new)];
        match comma {
            Some(_) => {}
            None if last.span.end == tail => {
                edits = vec![(tail..tail, format!(",{}", edits_text(edits)))]
            }
            None => edits.push((last.span.end..last.span.end, ",".to_owned())),
        }
        edited(self.text, edits)
    }

    /// The edits that take out the member number `at`.
    fn removal(&self, object: &Object, at: usize, member: &Member) -> Vec<(Range<usize>, String)> {
        let close = object.span.end - 1;
        let next = object.members.get(at + 1);
        let until = next.map_or(close, |next| next.span.start);
        let comma = self.comma(member.span.end, until);
        let end = comma.map_or(member.span.end, |comma| comma + 1);
        let (start, end) = self.lines(member.span.start, end, until);
        let mut edits = vec![(start..end, String::new())];
        let previous = at
            .checked_sub(1)
            .and_then(|before| object.members.get(before));
        if let (Some(previous), None, None) = (previous, next, comma)
            && let Some(comma) = self.comma(previous.span.end, member.span.start)
        {
            let between = self.written(comma + 1..start);
            if between.trim().is_empty() && !between.contains('\n') {
                edits = vec![(comma..end, String::new())];
            } else {
                edits.push((comma..comma + 1, String::new()));
            }
        }
        edits
    }

    /// The range `start..end`, extended to whole lines if nothing else is in them. What follows in the last line is at
    /// most a comment.
    fn lines(&self, start: usize, end: usize, until: usize) -> (usize, usize) {
        let line_start = start_of_line(self.text, start);
        let following = self.written(end..until);
        let Some(length) = following.find('\n') else {
            // The next member, or the brace, is in the same line.
            let blank = following.len() - following.trim_start_matches([' ', '\t']).len();
            return (start, end + blank);
        };
        let line = following.get(..length).unwrap_or_default().trim();
        let is_over = line.is_empty() || line.starts_with("//");
        let begins_line = line_start < start || start == 0 || self.text[..start].ends_with('\n');
        if is_over && begins_line {
            (line_start, end + length + 1)
        } else {
            (start, end)
        }
    }

    /// The comments between `from` and `end`, with the space before them and without a comma.
    fn comment(&self, from: usize, end: usize) -> String {
        let all = match self.comma(from, end) {
            Some(comma) => {
                let after = self.written(comma + 1..end);
                format!("{}{after}", self.written(from..comma))
            }
            None => self.written(from..end).to_owned(),
        };
        all.trim_end().to_owned()
    }

    /// The position of the comma between `from` and `until`, where otherwise only white space and comments are.
    fn comma(&self, from: usize, until: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = from;
        while at < until {
            let next = bytes.get(at + 1);
            match (bytes.get(at)?, next) {
                (b',', _) => return Some(at),
                (b'/', Some(b'/')) => at += self.written(at..until).find('\n')?,
                (b'/', Some(b'*')) => at += self.written(at..until).find("*/")? + 2,
                _ => at += 1,
            }
        }
        None
    }
}

/// The text of the only edit.
fn edits_text(edits: Vec<(Range<usize>, String)>) -> String {
    edits.into_iter().map(|(_, text)| text).collect()
}

/// How an object is indented.
struct Indent {
    /// Before its closing brace.
    closing: String,
    /// Before its members.
    child: String,
    /// One level.
    unit: String,
    /// Whether it has members, all in one line.
    is_inline: bool,
}

/// `entry` in an object for each of `keys`.
fn nested(keys: &[&str], entry: &Entry<'_>, indent: &Indent, end: &str) -> String {
    let Some((first, following)) = keys.split_first() else {
        return match entry {
            Entry::Written(removed) => removed.entry.clone(),
            Entry::Value(value) if indent.is_inline => value.to_string(),
            Entry::Value(value) => printed(value, &indent.child, &indent.unit, end),
        };
    };
    let deeper = Indent {
        closing: indent.child.clone(),
        child: format!("{}{}", indent.child, indent.unit),
        unit: indent.unit.clone(),
        is_inline: indent.is_inline,
    };
    let value = nested(following, entry, &deeper, end);
    let key = Value::from(*first);
    if indent.is_inline {
        return format!("{{{key}: {value}}}");
    }
    format!(
        "{{{end}{}{key}: {value}{end}{}}}",
        deeper.child, deeper.closing
    )
}

/// `value` over several lines. Lists stay in one line, as clients' documentation has them.
fn printed(value: &Value, indent: &str, unit: &str, end: &str) -> String {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let deeper = format!("{indent}{unit}");
            let lines = members.iter().map(|(key, value)| {
                let value = printed(value, &deeper, unit, end);
                format!("{deeper}{}: {value}", Value::from(key.as_str()))
            });
            let joined = lines.collect::<Vec<_>>().join(&format!(",{end}"));
            format!("{{{end}{joined}{end}{indent}}}")
        }
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
            format!("[{}]", texts.join(", "))
        }
        other => other.to_string(),
    }
}
