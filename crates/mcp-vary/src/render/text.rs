//! JSON as plain text, without any markup.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr as _;

use super::compact::compact;
use super::left_out::LeftOut;
use super::limits::Limits;
use super::line::{Line, are_lines, fits_line, is_multiline, is_short_list, lines, on_one_line};
use super::original::{element_at, member, unwrapped};
use super::table::{Column, Keyed, Table, Uniform};
use crate::json::Json;

/// Levels of indentation; deeper values are written on one line.
const MAX_INDENT: usize = 8;

/// The width of a table; wider ones wrap in a terminal.
const MAX_TABLE_WIDTH: usize = 160;

/// The maximum size of a table relative to the content of its cells.
const MAX_PADDING: usize = 4;

/// The maximum size of a column relative to the content of its cells: short cells under a long label read better
/// unpadded. A run of spaces costs a model no more than one space.
const MAX_COLUMN_PADDING: usize = 16;

const GAP: &str = "  ";

const LINE: Line = Line {
    string: plain,
    key: plain,
    open_array: "[",
};

/// `value` as plain text.
///
/// # Properties
///
/// Has the same information as [`markdown`](super::markdown), in the order of the value: `key: value` lines, nested
/// values indented, arrays of objects in columns aligned by display width. Strings stay as they are; on one line,
/// `↵` replaces a line break.
///
/// # Examples
///
/// ```
/// use mcp_vary::{json::Json, render};
///
/// let value = Json::parse(r#"{"in": {"name": "Bern"}, "note": "a\nb", "temperature_c": 8.0}"#)?;
/// assert_eq!(
///     render::text(&value),
///     "in:\n  name: Bern\nnote:\n  a\n  b\ntemperature_c: 8.0",
/// );
///
/// // Wide characters take two columns.
/// let value = Json::parse(r#"[{"city": "東京", "c": 8}, {"city": "Bern", "c": 12}]"#)?;
/// assert_eq!(render::text(&value), "city   c\n東京   8\nBern  12");
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[must_use]
pub fn text(value: &Json<'_>) -> String {
    Writer::default().run(value, None)
}

/// `value` as compact plain text, with the rules of [`compact_markdown`](super::compact_markdown).
///
/// # Examples
///
/// ```
/// use mcp_vary::json::Json;
/// use mcp_vary::render::{Limits, compact_text};
///
/// let value = Json::parse(r#"{"rows": [{"id": 1, "ok": true}, {"id": 12, "ok": true}, {"id": 3, "ok": true}]}"#)?;
/// let (text, left_out) = compact_text(&value, &Limits::default());
/// assert_eq!(text, "rows:\n  each: ok: true\n  id\n   1\n  12\n   3");
/// assert!(left_out.is_empty());
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[must_use]
pub fn compact_text(value: &Json<'_>, limits: &Limits) -> (String, Vec<LeftOut>) {
    let short = compact(value, limits);
    let text = Writer::default().run(&short.value, Some(value));
    (text, short.left_out)
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
        self.block(value, whole, 0);
        if self.out.ends_with('\n') {
            self.out.pop();
        }
        self.out
    }

    fn block(&mut self, value: &Json<'_>, whole: Option<&Json<'_>>, depth: usize) {
        match value {
            Json::Object(members) if !members.is_empty() => {
                if self.keyed(members, depth) {
                    return;
                }
                for (key, value) in members {
                    self.indent(depth);
                    plain(&mut self.out, key);
                    self.labelled(value, member(whole, key), depth);
                }
            }
            Json::Array(elements) if !elements.is_empty() => self.elements(elements, whole, depth),
            Json::String(text) if is_multiline(text) => {
                for line in lines(text) {
                    self.indent(if line.is_empty() { 0 } else { depth });
                    self.out.push_str(line);
                    self.out.push('\n');
                }
            }
            line => self.line(line, depth),
        }
    }

    /// Writes objects of one shape as rows, and the keys of the omitted ones; false if `members` are not such
    /// objects.
    fn keyed(&mut self, members: &[(Cow<'_, str>, Json<'_>)], depth: usize) -> bool {
        let Some(Keyed { table, others }) = Keyed::of(members, &LINE) else {
            return false;
        };
        let Some(table) = Aligned::narrow(table) else {
            return false;
        };
        self.table(&table, depth);
        if !others.is_empty() {
            self.indent(depth);
            self.out.push_str("others: ");
            LINE.keys(&mut self.out, &others);
            self.out.push('\n');
        }
        true
    }

    /// Writes the value after a label: on the same line, or indented below.
    fn labelled(&mut self, value: &Json<'_>, whole: Option<&Json<'_>>, depth: usize) {
        if fits_line(value) || depth >= MAX_INDENT {
            self.out.push_str(": ");
            self.line(value, 0);
        } else {
            self.out.push_str(":\n");
            self.block(value, whole, depth + 1);
        }
    }

    fn elements(&mut self, elements: &[Json<'_>], whole: Option<&Json<'_>>, depth: usize) {
        let uniform = whole.and_then(|whole| Uniform::of(elements, whole, &LINE));
        let table = Table::of(elements, &LINE).and_then(Aligned::narrow);
        if let Some(uniform) = uniform {
            self.uniform(uniform, depth);
        } else if let Some(table) = table {
            self.table(&table, depth);
        } else if is_short_list(elements) {
            self.indent(depth);
            LINE.list(&mut self.out, elements, usize::MAX);
            self.out.push('\n');
        } else if are_lines(elements) {
            elements
                .iter()
                .for_each(|element| self.block(element, None, depth));
        } else {
            for (at, element) in elements.iter().enumerate() {
                self.indent(depth);
                self.out.push_str(&(at + 1).to_string());
                self.labelled(element, element_at(whole, at), depth);
            }
        }
    }

    fn uniform(&mut self, uniform: Uniform<'_>, depth: usize) {
        for (name, members) in &uniform.shared {
            self.indent(depth);
            self.out.extend([name, ": "]);
            self.line(members, 0);
        }
        self.table(&Aligned::new(uniform.table), depth);
        if let Some(others) = &uniform.others {
            self.indent(depth);
            self.out.push_str("others: ");
            LINE.key_only_rows(&mut self.out, others);
            self.out.push('\n');
        }
    }

    fn line(&mut self, value: &Json<'_>, depth: usize) {
        self.indent(depth);
        LINE.write(&mut self.out, value, usize::MAX);
        self.out.push('\n');
    }

    fn table(&mut self, aligned: &Aligned, depth: usize) {
        let Aligned { table, widths } = aligned;
        for row in 0..=table.rows {
            self.indent(depth);
            for (column, width) in table.columns.iter().zip(widths) {
                let cell = match row.checked_sub(1) {
                    Some(row) => column.cells.get(row),
                    None => &column.label,
                };
                let padding = std::iter::repeat_n(' ', width.saturating_sub(cell.width()));
                if column.numeric {
                    self.out.extend(padding);
                    self.out.push_str(cell);
                } else {
                    self.out.push_str(cell);
                    self.out.extend(padding);
                }
                self.out.push_str(GAP);
            }
            self.out.truncate(self.out.trim_end_matches(' ').len());
            self.out.push('\n');
        }
    }

    fn indent(&mut self, depth: usize) {
        self.out.extend(std::iter::repeat_n("  ", depth));
    }
}

/// A table with the padded width of each column.
struct Aligned {
    table: Table,
    widths: Vec<usize>,
}

impl Aligned {
    /// Pads the columns, except those whose padding would dominate the table.
    fn new(table: Table) -> Self {
        let width = |column: &Column| {
            let (widest, filled) = measure(column);
            let is_padded =
                widest * (column.cells.len() + 1) <= filled * MAX_COLUMN_PADDING + MAX_TABLE_WIDTH;
            if is_padded { widest } else { 0 }
        };
        Self {
            widths: table.columns.iter().map(width).collect(),
            table,
        }
    }

    /// The table, if it is narrow enough for a terminal.
    fn narrow(table: Table) -> Option<Self> {
        let measured = table.columns.iter().map(measure);
        let (widths, filled): (Vec<usize>, Vec<usize>) = measured.unzip();
        let width = widths.iter().sum::<usize>() + GAP.len() * widths.len();
        let most = filled.iter().sum::<usize>() * MAX_PADDING + MAX_TABLE_WIDTH * 8;
        (width <= MAX_TABLE_WIDTH && width * (table.rows + 1) <= most)
            .then_some(Self { table, widths })
    }
}

/// The width of the widest cell of `column`, and of all cells together.
fn measure(column: &Column) -> (usize, usize) {
    let cells = std::iter::once(&*column.label).chain(column.cells.iter());
    let widths = cells.map(|cell| cell.width());
    widths.fold((0, 0), |(widest, all), width| {
        (widest.max(width), all + width)
    })
}

fn plain(out: &mut String, text: &str) {
    let text = on_one_line(text);
    out.push_str(if text.is_empty() { "\"\"" } else { &text });
}
