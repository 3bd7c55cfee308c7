//! Changes values of a YAML file: all other bytes stay, and so do all comments.

use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};
use serde_json::{Map, Value as Json};

use super::{edited, line_end};
use crate::document::DEEPEST;
use crate::yaml_text;

/// The text of a YAML file that was read without a mistake, with the ranges of its nodes.
pub(crate) struct YamlText<'a> {
    text: &'a str,
    root: Spanned,
    /// The ranges of scalars, in which `#` begins no comment.
    scalars: Vec<Range<usize>>,
}

/// A node, and where it is written.
struct Spanned {
    range: Range<usize>,
    content: Content,
}

enum Content {
    /// A scalar with its text, or an alias without one.
    Scalar(String),
    /// Whether it is written in brackets, and its items.
    List(bool, Vec<Spanned>),
    /// Whether it is written in braces, and its entries.
    Table(bool, Vec<Entry>),
}

struct Entry {
    key: Spanned,
    value: Spanned,
}

impl Spanned {
    fn text(&self) -> &str {
        match &self.content {
            Content::Scalar(text) => text,
            Content::List(..) | Content::Table(..) => "",
        }
    }
}

impl<'a> YamlText<'a> {
    pub(crate) fn read(text: &'a str) -> Self {
        let options = granit_parser::options! {
            flow_nesting_limit: DEEPEST,
            block_nesting_limit: DEEPEST,
        };
        let parsed = Parser::new_from_str_with_options(text, options).map_while(Result::ok);
        let mut spans = Spans {
            text,
            events: parsed.filter_map(|(event, span)| {
                let range = span.start.byte_offset()?..span.end.byte_offset()?;
                Some((event, range))
            }),
            scalars: Vec::new(),
        };
        let root = spans.node().unwrap_or_else(|end| Spanned {
            range: end..end,
            content: Content::Scalar(String::new()),
        });
        let scalars = spans.scalars;
        Self {
            text,
            root,
            scalars,
        }
    }

    /// The lines of the top-level `key` with its value; none if there is no such key.
    pub(crate) fn lines_of(&self, key: &str) -> Range<usize> {
        let Content::Table(_, entries) = &self.root.content else {
            return 0..0;
        };
        let entry = entries.iter().find(|entry| entry.key.text() == key);
        entry.map_or(0..0, |entry| {
            let start = line_start(self.text, entry.key.range.start);
            start..next_line(self.text, entry.value.range.end)
        })
    }

    /// All comments, sorted.
    pub(crate) fn comments(&self) -> Vec<&'a str> {
        let mut comments = self.comments_in(&(0..self.text.len()));
        comments.sort_unstable();
        comments
    }

    fn comments_in(&self, range: &Range<usize>) -> Vec<&'a str> {
        let part = self.text.get(range.clone()).unwrap_or_default();
        let mut end = 0;
        let found = part.match_indices('#').filter_map(|(offset, _)| {
            let at = range.start + offset;
            let before = self.text.get(..at)?.chars().next_back();
            if at < end || before.is_some_and(|c| !c.is_whitespace()) || self.is_in_scalar(at) {
                return None;
            }
            end = next_line(self.text, at);
            Some(self.text.get(at..end)?.trim_end())
        });
        found.collect()
    }

    fn is_in_scalar(&self, at: usize) -> bool {
        let next = self.scalars.partition_point(|scalar| scalar.start <= at);
        let last = next.checked_sub(1).and_then(|last| self.scalars.get(last));
        last.is_some_and(|scalar| scalar.contains(&at))
    }

    /// The text if its root, which reads as `before`, reads as `after`.
    ///
    /// What is written in an unusual form may read otherwise, or comments be lost: that must be checked.
    pub(crate) fn changed(&self, before: &Map<String, Json>, after: &Map<String, Json>) -> String {
        let mut edits = Edits {
            file: self,
            line_end: line_end(self.text),
            step: 2,
            all: Vec::new(),
        };
        edits.table(&self.root, before, after);
        edited(self.text, edits.all)
    }
}

/// Reads nodes from the events of a parser.
struct Spans<'a, I> {
    text: &'a str,
    events: I,
    scalars: Vec<Range<usize>>,
}

impl<'a, I: Iterator<Item = (Event<'a>, Range<usize>)>> Spans<'a, I> {
    /// The next node; or where the list or table ends, which has no more.
    fn node(&mut self) -> Result<Spanned, usize> {
        while let Some((event, mut range)) = self.events.next() {
            let content = match event {
                Event::Scalar(text, style, ..) => {
                    if text.is_empty() && style == ScalarStyle::Plain {
                        range.end = range.start;
                    }
                    self.add_scalar(&mut range);
                    Content::Scalar(text.into_owned())
                }
                Event::Alias(_) => Content::Scalar(String::new()),
                Event::SequenceStart(style, ..) => {
                    let mut items = Vec::new();
                    let end = loop {
                        match self.node() {
                            Ok(item) => items.push(item),
                            Err(end) => break end,
                        }
                    };
                    let is_flow = style == StructureStyle::Flow;
                    let last = items.last().map_or(end, |item: &Spanned| item.range.end);
                    range.end = if is_flow { end } else { last };
                    Content::List(is_flow, items)
                }
                Event::MappingStart(style, ..) => {
                    let mut entries = Vec::new();
                    let end = loop {
                        match self.entry() {
                            Ok(entry) => entries.push(entry),
                            Err(end) => break end,
                        }
                    };
                    let is_flow = style == StructureStyle::Flow;
                    let last = entries
                        .last()
                        .map_or(end, |entry: &Entry| entry.value.range.end);
                    range.end = if is_flow { end } else { last };
                    Content::Table(is_flow, entries)
                }
                Event::SequenceEnd | Event::MappingEnd => return Err(range.end),
                _ => continue,
            };
            return Ok(Spanned { range, content });
        }
        Err(self.text.len())
    }

    fn entry(&mut self) -> Result<Entry, usize> {
        let key = self.node()?;
        let mut value = self.node()?;
        if value.range.is_empty() {
            // The parser places a missing value anywhere before the next token.
            let after = self.text.get(key.range.end..).unwrap_or_default();
            let (before, _) = after.split_once(':').unwrap_or_default();
            let at = key.range.end + before.len() + 1;
            value.range = at..at;
        }
        Ok(Entry { key, value })
    }

    /// Notes where a scalar is. Of a block scalar, the white space below belongs to nothing, and its first line can have a comment.
    fn add_scalar(&mut self, range: &mut Range<usize>) {
        let text = self.text.get(range.clone()).unwrap_or_default();
        range.end = range.start + text.trim_end().len();
        let header = if text.starts_with(['|', '>']) {
            text.find('\n').unwrap_or(text.len())
        } else {
            0
        };
        self.scalars.push(range.start + header..range.end);
    }
}

/// The edits that change one value to another.
struct Edits<'a> {
    file: &'a YamlText<'a>,
    line_end: &'static str,
    /// The spaces by which the file indents a table.
    step: usize,
    all: Vec<(Range<usize>, String)>,
}

impl Edits<'_> {
    fn table(&mut self, node: &Spanned, before: &Map<String, Json>, after: &Map<String, Json>) {
        let Content::Table(is_flow, entries) = &node.content else {
            return;
        };
        self.find_step(entries);
        let names = entries.iter().map(|entry| entry.key.text());
        for (entry, name) in entries.iter().zip(names.clone()) {
            if let (Some(old), Some(new)) = (before.get(name), after.get(name))
                && old != new
            {
                self.value(*is_flow, entry, old, new);
            }
        }
        // What `<<` merges is there without being written.
        let is_removed = |name: &str| name != "<<" && !after.contains_key(name);
        let removed: Vec<_> = names.clone().map(is_removed).collect();
        let ranges = entries
            .iter()
            .map(|entry| entry.key.range.start..entry.value.range.end);
        let members: Vec<_> = ranges.collect();
        self.remove(*is_flow, &members, &removed);
        let indent = members.first().map_or(0, |first| self.column(first.start));
        let mut texts = Vec::new();
        for (name, value) in after {
            if before.get(name) == Some(value) || names.clone().any(|written| written == name) {
                continue;
            }
            texts.push(if *is_flow {
                format!("{}: {}", yaml_text::scalar(name), yaml_text::flow(value))
            } else {
                self.lines(indent, name, value)
            });
        }
        self.append(*is_flow, &members, &texts);
    }

    fn list(&mut self, is_flow: bool, items: &[Spanned], before: &[Json], after: &[Json]) {
        let mut wanted = after.iter().peekable();
        let stays = before.iter().map(|item| wanted.next_if_eq(&item).is_some());
        let removed: Vec<_> = stays.map(|stays| !stays).collect();
        let members: Vec<_> = items.iter().map(|item| item.range.clone()).collect();
        self.remove(is_flow, &members, &removed);
        let first = members.first().map_or(0, |first| first.start);
        let start = line_start(self.file.text, first);
        let line = self.file.text.get(start..).unwrap_or_default();
        let indent = line.len() - line.trim_start_matches(' ').len();
        let added = wanted.map(|item| {
            let text = yaml_text::flow(item);
            if is_flow {
                return text;
            }
            format!("{:indent$}- {text}{}", "", self.line_end)
        });
        let texts: Vec<_> = added.collect();
        self.append(is_flow, &members, &texts);
    }

    /// Changes a value where it is written, or else the lines of its entry.
    fn value(&mut self, is_flow: bool, entry: &Entry, before: &Json, after: &Json) {
        let Entry { key, value } = entry;
        match (&value.content, before, after) {
            (Content::Table(braces, entries), Json::Object(old), Json::Object(new))
                if !new.is_empty() && !entries.is_empty() =>
            {
                let stays = |entry: &Entry| new.contains_key(entry.key.text());
                if !braces || entries.iter().any(stays) {
                    return self.table(value, old, new);
                }
            }
            (Content::List(brackets, items), Json::Array(old), Json::Array(new))
                if !new.is_empty() && items.len() == old.len() =>
            {
                if !brackets || new.first().is_some_and(|first| old.contains(first)) {
                    return self.list(*brackets, items, old, new);
                }
            }
            _ => {}
        }
        let text = self.file.text;
        let written = text.get(value.range.clone()).unwrap_or_default();
        let is_block = match value.content {
            Content::List(is_flow, _) | Content::Table(is_flow, _) => !is_flow,
            Content::Scalar(_) => written.starts_with(['|', '>']),
        };
        let is_one_line = !is_block && !written.is_empty() && !written.contains('\n');
        if is_flow || (is_one_line && fits_on_a_line(after)) {
            let space = if written.is_empty() { " " } else { "" };
            let new = format!("{space}{}", yaml_text::flow(after));
            self.all.push((value.range.clone(), new));
            return;
        }
        let indent = self.column(key.range.start);
        let lines = self.lines(indent, key.text(), after);
        let name = indent + yaml_text::scalar(key.text()).len();
        let end = next_line(text, value.range.end);
        let start = line_start(text, key.range.start);
        let comments = self.comment_lines(&(key.range.end..end), indent);
        self.all.push((start..start, comments));
        // The key stays as it is written.
        let rendered = lines.get(name..).unwrap_or_default().to_owned();
        self.all.push((key.range.end..end, rendered));
    }

    /// Removes members of a list or table.
    fn remove(&mut self, is_flow: bool, members: &[Range<usize>], removed: &[bool]) {
        let text = self.file.text;
        let all = members.iter().zip(removed).enumerate();
        for (index, (member, _)) in all.filter(|(_, (_, is_removed))| **is_removed) {
            if !is_flow {
                let range = line_start(text, member.start)..next_line(text, member.end);
                let indent = self.column(member.start);
                let comments = self.comment_lines(&range, indent);
                self.all.push((range, comments));
                continue;
            }
            // Its comma goes with it: the one before, unless it is the first that remains.
            let is_after_another = removed.iter().take(index).any(|is_removed| !is_removed);
            let previous = members.get(index.wrapping_sub(1));
            let range = match (previous, members.get(index + 1)) {
                (Some(previous), _) if is_after_another => previous.end..member.end,
                (_, Some(next)) => member.start..next.start,
                (_, None) => member.clone(),
            };
            self.all.push((range, String::new()));
        }
    }

    /// Adds texts after the last member.
    fn append(&mut self, is_flow: bool, members: &[Range<usize>], texts: &[String]) {
        let Some(last) = members.last() else { return };
        let at = if is_flow {
            last.end
        } else {
            next_line(self.file.text, last.end)
        };
        for text in texts {
            let comma = if is_flow { ", " } else { "" };
            self.all.push((at..at, format!("{comma}{text}")));
        }
    }

    /// The comments of a range, as lines of their own.
    fn comment_lines(&self, range: &Range<usize>, indent: usize) -> String {
        let comments = self.file.comments_in(range).into_iter();
        let lines = comments.map(|comment| format!("{:indent$}{comment}{}", "", self.line_end));
        lines.collect()
    }

    /// The lines of an entry, indented as the file does it.
    fn lines(&self, indent: usize, key: &str, value: &Json) -> String {
        let entry = yaml_text::entry(key, value);
        let lines = entry.lines().map(|line| {
            let text = line.trim_start_matches(' ');
            let indent = indent + (line.len() - text.len()) / 2 * self.step;
            format!("{:indent$}{text}{}", "", self.line_end)
        });
        lines.collect()
    }

    /// Finds by how many spaces the first table among the values is indented.
    fn find_step(&mut self, entries: &[Entry]) {
        let step = entries.iter().find_map(|entry| {
            let Content::Table(false, inner) = &entry.value.content else {
                return None;
            };
            let column = self.column(inner.first()?.key.range.start);
            column.checked_sub(self.column(entry.key.range.start))
        });
        self.step = step.filter(|step| *step > 0).unwrap_or(self.step);
    }

    /// How many characters are before `at` in its line.
    fn column(&self, at: usize) -> usize {
        let before = self.file.text.get(line_start(self.file.text, at)..at);
        before.map_or(0, |text| text.chars().count())
    }
}

/// Whether the value is written in the line of its key.
fn fits_on_a_line(value: &Json) -> bool {
    match value {
        Json::Object(members) => members.is_empty(),
        Json::Array(items) => !items.iter().any(Json::is_object),
        _ => true,
    }
}

fn line_start(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    before.rfind('\n').map_or(0, |end| end + 1)
}

/// Where the line after that of `at` begins.
fn next_line(text: &str, at: usize) -> usize {
    let after = text.get(at..).unwrap_or_default();
    after.find('\n').map_or(text.len(), |end| at + end + 1)
}
