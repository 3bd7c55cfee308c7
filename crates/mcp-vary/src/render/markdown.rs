//! JSON as CommonMark with tables.

use std::borrow::Cow;

use super::compact::compact;
use super::left_out::LeftOut;
use super::limits::Limits;
use super::line::{Line, are_lines, fits_line, is_multiline, lines, on_one_line};
use super::original::{element_at, member, unwrapped};
use super::table::{Keyed, Table, Uniform};
use crate::json::Json;

/// The first heading level; level 1 is left to the surrounding document.
const FIRST_LEVEL: usize = 2;

/// The deepest heading of CommonMark.
const LAST_LEVEL: usize = 6;

/// A string of at most this many characters that needs escapes reads better as code.
const MAX_CODE: usize = 80;

const LINE: Line = Line {
    string: |out, text| string(out, text, TextPosition::Line),
    key: |out, key| escaped(out, key, TextPosition::Line),
    open_array: "\\[",
};

const CELL: Line = Line {
    string: |out, text| string(out, text, TextPosition::Cell),
    key: |out, key| escaped(out, key, TextPosition::Cell),
    open_array: "\\[",
};

/// `value` as markdown.
///
/// # Properties
///
/// The text contains the value and nothing else: no character of a key or string acts as markup, raw HTML or a table
/// border. Only `http` and `https` URLs become links, with the visible target. Multi-line strings are put in a fence,
/// with `
/// ` as line break.
///
/// # Examples
///
/// ```
/// use mcp_vary::{json::Json, render};
///
/// let value = Json::parse(r#"{"location": "Bern", "temperature_c": 8.0}"#)?;
/// assert_eq!(render::markdown(&value), "- **location**: Bern\n- **temperature_c**: 8.0");
///
/// // A table; markup in the value is escaped.
/// let value = Json::parse(r#"[{"name": "R|D", "share": 10}, {"name": "<b>", "share": 9.50}]"#)?;
/// assert_eq!(
///     render::markdown(&value),
///     "| name | share |\n| --- | ---: |\n| R\\|D | 10 |\n| \\<b> | 9.50 |",
/// );
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[must_use]
pub fn markdown(value: &Json<'_>) -> String {
    Writer::default().run(value, None)
}

/// `value` as compact markdown: [`compact`](super::compact), with uniform rows as one table.
///
/// # Properties
///
/// Like [`markdown`], except for tables: a table has a column for everything in which its rows differ, however wide.
/// Above it are the values that all rows share, under `each`, and the templates of derived texts, under `from`; below
/// it are the keys of key-only rows, under `others`.
///
/// # Examples
///
/// ```
/// use mcp_vary::json::Json;
/// use mcp_vary::render::{Limits, compact_markdown};
///
/// let value = Json::parse(concat!(
///     r#"[{"id": 1, "from": {"station": "Bern"}, "cancelled": false, "note": null},"#,
///     r#" {"id": 2, "from": {"station": "Thun"}, "cancelled": false, "note": "late"},"#,
///     r#" {"id": 3, "from": {"station": "Visp"}, "cancelled": false, "note": null}]"#,
/// ))?;
/// let (markdown, left_out) = compact_markdown(&value, &Limits::default().with_detailed(2));
/// assert_eq!(markdown, "\
/// - **each**: cancelled: false
///
/// | id | from.station | note |
/// | ---: | --- | --- |
/// | 1 | Bern |  |
/// | 2 | Thun | late |
///
/// - **others**: id: 3");
/// assert_eq!(left_out[1].to_string(), "/*: 2 of 3 in full, the others by their key");
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[must_use]
pub fn compact_markdown(value: &Json<'_>, limits: &Limits) -> (String, Vec<LeftOut>) {
    let short = compact(value, limits);
    let markdown = Writer::default().run(&short.value, Some(value));
    (markdown, short.left_out)
}

#[derive(Default)]
struct Writer {
    out: String,
}

impl Writer {
    /// Writes `value`; with the `whole` that it was derived from, uniform rows as one table below their shared
    /// values.
    fn run(mut self, value: &Json<'_>, whole: Option<&Json<'_>>) -> String {
        let (value, whole) = unwrapped(value, whole);
        self.block(value, whole, FIRST_LEVEL);
        self.out.truncate(self.out.trim_end_matches('\n').len());
        self.out
    }

    fn block(&mut self, value: &Json<'_>, whole: Option<&Json<'_>>, level: usize) {
        self.gap();
        match value {
            Json::Object(members) if !members.is_empty() => match Keyed::of(members, &CELL) {
                Some(keyed) => self.keyed(&keyed),
                None => self.members(members, whole, level),
            },
            Json::Array(elements) if !elements.is_empty() => self.elements(elements, whole, level),
            Json::String(text) if is_multiline(text) => self.fence(text, ""),
            line => self.line(line),
        }
    }

    /// Writes objects of one shape as rows, and the keys of the omitted ones.
    fn keyed(&mut self, keyed: &Keyed<'_, '_>) {
        self.table(&keyed.table);
        if !keyed.others.is_empty() {
            self.gap();
            self.out.push_str("- **others**: ");
            LINE.keys(&mut self.out, &keyed.others);
            self.out.push('\n');
        }
    }

    /// Writes single-line members first: below a heading they would seem to belong to its section.
    fn members(
        &mut self,
        members: &[(Cow<'_, str>, Json<'_>)],
        whole: Option<&Json<'_>>,
        level: usize,
    ) {
        let is_item = |value: &Json<'_>| {
            level > LAST_LEVEL || fits_line(value) || matches!(value, Json::String(_))
        };
        for (key, value) in members.iter().filter(|(_, value)| is_item(value)) {
            self.out.push_str("- **");
            escaped(&mut self.out, key, TextPosition::Line);
            match value {
                Json::String(text) if is_multiline(text) => {
                    self.out.push_str("**:\n\n  ");
                    self.fence(text, "  ");
                }
                value => {
                    self.out.push_str("**: ");
                    LINE.write(&mut self.out, value, usize::MAX);
                    self.out.push('\n');
                }
            }
        }
        for (key, value) in members.iter().filter(|(_, value)| !is_item(value)) {
            self.heading(level, |out| escaped(out, key, TextPosition::Line));
            self.block(value, member(whole, key), level + 1);
        }
    }

    fn elements(&mut self, elements: &[Json<'_>], whole: Option<&Json<'_>>, level: usize) {
        let uniform = whole.and_then(|whole| Uniform::of(elements, whole, &CELL));
        if let Some(uniform) = uniform {
            self.uniform(&uniform);
        } else if let Some(table) = Table::of(elements, &CELL) {
            self.table(&table);
        } else if level > LAST_LEVEL || are_lines(elements) {
            self.items(elements);
        } else {
            for (at, element) in elements.iter().enumerate() {
                self.heading(level, |out| out.push_str(&(at + 1).to_string()));
                self.block(element, element_at(whole, at), level + 1);
            }
        }
    }

    fn uniform(&mut self, uniform: &Uniform<'_>) {
        for (name, members) in &uniform.shared {
            self.out.extend(["- **", name, "**: "]);
            LINE.write(&mut self.out, members, usize::MAX);
            self.out.push('\n');
        }
        self.gap();
        self.table(&uniform.table);
        if let Some(others) = &uniform.others {
            self.gap();
            self.out.push_str("- **others**: ");
            LINE.key_only_rows(&mut self.out, others);
            self.out.push('\n');
        }
    }

    /// Writes numbers side by side, and everything else as a list.
    fn items(&mut self, elements: &[Json<'_>]) {
        if elements
            .iter()
            .all(|e| !matches!(e, Json::String(_) | Json::Array(_) | Json::Object(_)))
        {
            LINE.list(&mut self.out, elements, usize::MAX);
            self.out.push('\n');
            return;
        }
        for element in elements {
            self.out.push_str("- ");
            match element {
                Json::String(text) if is_multiline(text) => self.fence(text, "  "),
                element => self.line(element),
            }
        }
    }

    /// Writes the first line of a block; text that would open another kind of block is escaped.
    fn line(&mut self, value: &Json<'_>) {
        let line = LINE.whole(value);
        let at = block_opener(&line);
        let (before, after) = line.split_at(at.unwrap_or(0));
        self.out.push_str(before);
        self.out.push_str(if at.is_some() { "\\" } else { "" });
        self.out.push_str(after);
        self.out.push('\n');
    }

    fn heading(&mut self, level: usize, write: impl FnOnce(&mut String)) {
        self.gap();
        self.out.extend(std::iter::repeat_n('#', level));
        self.out.push(' ');
        write(&mut self.out);
        self.out.push('\n');
    }

    fn table(&mut self, table: &Table) {
        self.out.reserve(table.size());
        for column in &table.columns {
            self.out.push_str("| ");
            self.out.push_str(&column.label);
            self.out.push(' ');
        }
        self.out.push_str("|\n");
        for column in &table.columns {
            self.out
                .push_str(if column.numeric { "| ---: " } else { "| --- " });
        }
        self.out.push_str("|\n");
        for row in 0..table.rows {
            for column in &table.columns {
                self.out.push_str("| ");
                self.out.push_str(column.cells.get(row));
                self.out.push(' ');
            }
            self.out.push_str("|\n");
        }
    }

    /// Writes `text` between fences that are longer than any run of backticks in it.
    ///
    /// A lone `\r` ends a line in CommonMark too, and would end an indented fence early.
    fn fence(&mut self, text: &str, indent: &str) {
        let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
        self.out.push_str(&fence);
        self.out.push('\n');
        for line in lines(text) {
            self.out.push_str(if line.is_empty() { "" } else { indent });
            self.out.push_str(line);
            self.out.push('\n');
        }
        self.out.push_str(indent);
        self.out.push_str(&fence);
        self.out.push('\n');
    }

    /// Writes an empty line before the next block.
    fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }
}

/// Where a string is written.
#[derive(Clone, Copy, PartialEq)]
enum TextPosition {
    Line,
    Cell,
}

fn string(out: &mut String, text: &str, place: TextPosition) {
    if is_plain(text) {
        out.push_str(text);
    } else if is_safe_url(text) {
        out.push('<');
        out.push_str(text);
        out.push('>');
    } else {
        escaped(out, text, place);
    }
}

/// Whether `text` is written as it is: neither empty nor with a space at an end, a line break, or what may be markup or a
/// URL. Most texts are.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_graphic)
        && bytes.last().is_some_and(u8::is_ascii_graphic)
        && !may_need_escape(text)
}

fn may_need_escape(text: &str) -> bool {
    text.bytes().any(|byte| MAY_NEED_ESCAPE[usize::from(byte)])
}

/// Writes `text` on one line literally: as it is, escaped, or as code.
fn escaped(out: &mut String, text: &str, place: TextPosition) {
    if is_plain(text) {
        return out.push_str(text);
    }
    let text = on_one_line(text);
    if text.is_empty() {
        out.push_str("\"\"");
        return;
    }
    // A border ends a cell even inside code.
    let may_be_code = place == TextPosition::Line || !text.contains('|');
    let is_blank = text.trim_end().is_empty();
    if may_be_code && (is_blank || text.starts_with(char::is_whitespace)) {
        return code(out, &text);
    }
    // A space at the end is invisible, and a code span for it would read worse.
    let text = if is_blank { &*text } else { text.trim_end() };
    let start = out.len();
    let count = escape(out, text, place);
    if may_be_code && count > 1 && text.chars().count() <= MAX_CODE {
        out.truncate(start);
        code(out, text);
    }
}

/// Writes `text` with a backslash before each character that CommonMark would read as markup.
///
/// Returns the number of escapes, which is as small as possible: `snake_case`, `R&D`, `C:\temp` stay. A URL in the
/// text that would need one becomes a link instead: readers that link bare URLs would take the backslash for part of
/// it.
fn escape(out: &mut String, text: &str, place: TextPosition) -> usize {
    if !may_need_escape(text) {
        out.push_str(text);
        return 0;
    }
    let mut count = 0;
    let mut remaining = text;
    let mut before_run = ' ';
    // The remainder after the last scanned run, so that no run is scanned twice.
    let mut unseen = text.len();
    while let Some(c) = remaining.chars().next() {
        if c == 'h' && remaining.len() <= unseen && !before_run.is_alphanumeric() {
            let run = url_run(remaining);
            let url = without_sentence_end(run);
            unseen = remaining.len() - run.len();
            if url.contains(['_', '*', '~', '&', '[']) && is_safe_url(url) {
                out.extend(["<", url, ">"]);
                remaining = &remaining[url.len()..];
                before_run = '>';
                continue;
            }
        }
        let after = &remaining[c.len_utf8()..];
        if is_markup(c, before_run, after, place) {
            out.push('\\');
            count += 1;
        }
        out.push(c);
        if c != '_' {
            before_run = c;
        }
        remaining = after;
    }
    count
}

/// The bytes of what [`is_markup`] may find, line breaks, and the byte that every URL has. Most texts have none of them.
const MAY_NEED_ESCAPE: [bool; 256] = {
    let mut table = [false; 256];
    let mut bytes: &[u8] = b"`*[<~|_&\\#:\n\r";
    while let [first, others @ ..] = bytes {
        table[*first as usize] = true;
        bytes = others;
    }
    table
};

/// Whether `c` is markup before `after`; `before_run` is the character before it and any preceding underscores.
fn is_markup(c: char, before_run: char, after: &str, place: TextPosition) -> bool {
    match c {
        '`' | '*' | '[' | '<' | '~' => true,
        '|' => place == TextPosition::Cell,
        '_' => !before_run.is_alphanumeric() || !is_word_after_run(after),
        '&' => is_entity(after),
        '\\' => after.is_empty() || after.starts_with(|c: char| c.is_ascii_punctuation()),
        '#' => after.is_empty(),
        _ => false,
    }
}

/// The URL characters at the start of `text`.
fn url_run(text: &str) -> &str {
    if !text.starts_with("http://") && !text.starts_with("https://") {
        return "";
    }
    text.split(|c| !is_url_char(c)).next().unwrap_or_default()
}

/// `run` without punctuation that ends the sentence rather than the URL.
fn without_sentence_end(run: &str) -> &str {
    let ends = if run.contains('(') {
        ".,;:!?'"
    } else {
        ".,;:!?')"
    };
    run.trim_end_matches(|c| ends.contains(c))
}

/// Whether a letter or digit follows the underscores at the start of `remaining`.
///
/// Scans only a few characters, so that a line of underscores stays linear.
fn is_word_after_run(remaining: &str) -> bool {
    let after = remaining.chars().take(8).find(|c| *c != '_');
    after.is_some_and(char::is_alphanumeric)
}

/// Whether `remaining`, the text after `&`, forms a character reference; the longest has 32 characters.
fn is_entity(remaining: &str) -> bool {
    let name = remaining
        .bytes()
        .take(34)
        .take_while(|b| b.is_ascii_alphanumeric() || *b == b'#');
    let length = name.count();
    length > 0 && remaining.as_bytes().get(length) == Some(&b';')
}

fn code(out: &mut String, text: &str) {
    let fence = "`".repeat(longest_run(text, '`') + 1);
    let touches = text.starts_with('`') || text.ends_with('`');
    let strips = text.starts_with(' ') && text.ends_with(' ') && text.trim() != "";
    let pad = if touches || strips { " " } else { "" };
    for part in [&fence, pad, text, pad, &fence] {
        out.push_str(part);
    }
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or(0)
}

/// The position where a line needs a backslash so that it does not open a heading, a quote, a list or a break.
fn block_opener(line: &str) -> Option<usize> {
    let remaining = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = line.len() - remaining.len();
    let is_marker = |remaining: &str| remaining.chars().next().is_none_or(char::is_whitespace);
    if digits > 0 {
        let after = remaining.strip_prefix(['.', ')']);
        return (digits < 10 && after.is_some_and(is_marker)).then_some(digits);
    }
    let opens = match line.strip_prefix(['-', '+']) {
        Some(after) => is_marker(after) || line.starts_with("--"),
        None => line.starts_with(['#', '>']),
    };
    opens.then_some(0)
}

/// Whether `text` is a URL that may become a link: http(s), plain characters, and no user part, which could hide the
/// host.
fn is_safe_url(text: &str) -> bool {
    let remaining = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let Some(remaining) = remaining else {
        return false;
    };
    let authority = remaining.split(['/', '?', '#']).next().unwrap_or_default();
    !authority.is_empty() && !authority.contains('@') && remaining.chars().all(is_url_char)
}

fn is_url_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c)
}
