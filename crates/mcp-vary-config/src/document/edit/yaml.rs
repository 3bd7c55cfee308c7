//! Changes values of a YAML file: all other bytes stay, and so do all comments.

use std::iter;
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
    /// A list or table in brackets, which is changed as a whole.
    Flow,
    /// The items of a list, on lines of their own.
    List(Vec<Spanned>),
    /// The entries of a table, on lines of their own.
    Table(Vec<Entry>),
}

struct Entry {
    key: Spanned,
    value: Spanned,
}

impl Spanned {
    fn text(&self) -> &str {
        match &self.content {
            Content::Scalar(text) => text,
            Content::Flow | Content::List(_) | Content::Table(_) => "",
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

    fn entry(&self, key: &str) -> Option<&Entry> {
        let Content::Table(entries) = &self.root.content else {
            return None;
        };
        entries.iter().find(|entry| entry.key.text() == key)
    }

    /// Whether the value of the top-level `key` is in brackets.
    pub(crate) fn is_in_brackets(&self, key: &str) -> bool {
        let entry = self.entry(key);
        entry.is_some_and(|entry| matches!(entry.value.content, Content::Flow))
    }

    /// The lines of the top-level `key` with its value; none if there is no such key.
    pub(crate) fn lines_of(&self, key: &str) -> Range<usize> {
        self.entry(key).map_or(0..0, |entry| {
            self.whole_lines(&(entry.key.range.start..entry.value.range.end))
        })
    }

    /// The line of the top-level `key`, then the lines of each item of its list; none unless the items have lines of their own.
    pub(crate) fn lines_of_items(&self, key: &str) -> Vec<Range<usize>> {
        let Some(entry) = self.entry(key) else {
            return Vec::new();
        };
        let Content::List(items) = &entry.value.content else {
            return Vec::new();
        };
        let ranges = iter::once(&entry.key).chain(items).map(|node| &node.range);
        ranges.map(|range| self.whole_lines(range)).collect()
    }

    fn whole_lines(&self, range: &Range<usize>) -> Range<usize> {
        line_start(self.text, range.start)..next_line(self.text, range.end)
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
                    let (items, end) = Self::all(|| self.node());
                    range.end = end;
                    match items.last() {
                        Some(last) if style == StructureStyle::Block => {
                            range.end = last.range.end;
                            Content::List(items)
                        }
                        _ => Content::Flow,
                    }
                }
                Event::MappingStart(style, ..) => {
                    let (entries, end) = Self::all(|| self.entry());
                    range.end = end;
                    match entries.last() {
                        Some(last) if style == StructureStyle::Block => {
                            range.end = last.value.range.end;
                            Content::Table(entries)
                        }
                        _ => Content::Flow,
                    }
                }
                Event::SequenceEnd | Event::MappingEnd => return Err(range.end),
                _ => continue,
            };
            return Ok(Spanned { range, content });
        }
        Err(self.text.len())
    }

    /// What there is until the end of a list or table, and that end.
    fn all<T>(mut next: impl FnMut() -> Result<T, usize>) -> (Vec<T>, usize) {
        let mut all = Vec::new();
        loop {
            match next() {
                Ok(one) => all.push(one),
                Err(end) => return (all, end),
            }
        }
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
        let Content::Table(entries) = &node.content else {
            return;
        };
        self.find_step(entries);
        let names = entries.iter().map(|entry| entry.key.text());
        for (entry, name) in entries.iter().zip(names.clone()) {
            if let (Some(old), Some(new)) = (before.get(name), after.get(name))
                && old != new
            {
                self.value(entry, old, new);
            }
        }
        // What `<<` merges is there without being written.
        let is_removed = |name: &str| name != "<<" && !after.contains_key(name);
        let removed: Vec<_> = names.clone().map(is_removed).collect();
        let ranges = entries
            .iter()
            .map(|entry| entry.key.range.start..entry.value.range.end);
        let members: Vec<_> = ranges.collect();
        self.remove(&members, &removed);
        let indent = members.first().map_or(0, |first| self.column(first.start));
        for (name, value) in after {
            if before.get(name) != Some(value) && names.clone().all(|written| written != name) {
                self.append(&members, self.lines(indent, name, value));
            }
        }
    }

    /// New items at the beginning are written before the first one, all others after the last. A table with the `name` of the
    /// one that it replaces is written in its place.
    fn list(&mut self, items: &[Spanned], before: &[Json], after: &[Json]) {
        let replaces = |new: &Json, old: &Json| have_one_name(old, new) && !after.contains(old);
        let replaces_first = |item: &Json| before.first().is_some_and(|old| replaces(item, old));
        let is_new = |item: &&Json| !before.contains(item) && !replaces_first(item);
        let new_first = after.iter().take_while(is_new);
        let (first_items, others) = after.split_at(new_first.count());
        let members: Vec<_> = items.iter().map(|item| item.range.clone()).collect();
        let first = members.first().map_or(0, |first| first.start);
        let start = line_start(self.file.text, first);
        let line = self.file.text.get(start..).unwrap_or_default();
        let indent = line.len() - line.trim_start_matches(' ').len();
        for item in first_items {
            self.all.push((start..start, self.item_line(indent, item)));
        }
        let mut wanted = others.iter().peekable();
        let mut removed = Vec::new();
        for (item, old) in items.iter().zip(before) {
            let next = wanted.next_if(|new| *new == old || replaces(new, old));
            removed.push(next.is_none());
            if let Some(new) = next.filter(|new| *new != old) {
                self.item(item, old, new);
            }
        }
        self.remove(&members, &removed);
        for item in wanted {
            self.append(&members, self.item_line(indent, item));
        }
    }

    /// Changes an item where it is written.
    fn item(&mut self, item: &Spanned, before: &Json, after: &Json) {
        match (&item.content, before, after) {
            (Content::Table(_), Json::Object(old), Json::Object(new)) => self.table(item, old, new),
            _ => self.all.push((item.range.clone(), yaml_text::flow(after))),
        }
    }

    fn item_line(&self, indent: usize, item: &Json) -> String {
        let text = yaml_text::flow(item);
        format!("{:indent$}- {text}{}", "", self.line_end)
    }

    /// Changes a value where it is written, or else the lines of its entry.
    fn value(&mut self, entry: &Entry, before: &Json, after: &Json) {
        let Entry { key, value } = entry;
        match (&value.content, before, after) {
            (Content::Table(_), Json::Object(old), Json::Object(new)) if !new.is_empty() => {
                return self.table(value, old, new);
            }
            (Content::List(items), Json::Array(old), Json::Array(new))
                if !new.is_empty() && items.len() == old.len() =>
            {
                return self.list(items, old, new);
            }
            _ => {}
        }
        let text = self.file.text;
        let written = text.get(value.range.clone()).unwrap_or_default();
        let stays = match value.content {
            Content::Scalar(_) if written.is_empty() || written.starts_with(['|', '>']) => false,
            // What is in brackets stays there; empty ones say nothing of the style.
            Content::Flow if written.len() > "{}".len() => true,
            Content::Scalar(_) | Content::Flow => fits_on_a_line(after),
            Content::List(_) | Content::Table(_) => false,
        };
        if stays && !written.contains('\n') {
            let new = yaml_text::flow(after);
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

    /// Removes the lines of members of a list or table.
    fn remove(&mut self, members: &[Range<usize>], removed: &[bool]) {
        let text = self.file.text;
        for (member, is_removed) in members.iter().zip(removed) {
            if *is_removed {
                let range = line_start(text, member.start)..next_line(text, member.end);
                let comments = self.comment_lines(&range, self.column(member.start));
                self.all.push((range, comments));
            }
        }
    }

    /// Adds lines after the last member.
    fn append(&mut self, members: &[Range<usize>], lines: String) {
        let last = members.last().map_or(0, |last| last.end);
        let at = next_line(self.file.text, last);
        self.all.push((at..at, lines));
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
            let Content::Table(inner) = &entry.value.content else {
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

/// Whether two tables have the same `name`.
fn have_one_name(one: &Json, other: &Json) -> bool {
    let name = one.get("name");
    name.is_some() && name == other.get("name")
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
