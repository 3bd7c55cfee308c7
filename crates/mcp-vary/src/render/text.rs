//! JSON as plain text, without any markup.

use unicode_width::UnicodeWidthStr as _;

use super::{Line, Table, are_lines, fits_line, is_multiline, is_short_list, lines, on_one_line};
use crate::json::Json;

/// What nests deeper stands on one line.
const DEEPEST_INDENT: usize = 8;

/// Wider tables wrap in a terminal and cannot be read.
const WIDEST_TABLE: usize = 160;

/// A table may be this many times as large as what its cells say.
const MOST_PADDING: usize = 4;

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
/// The same information as [`markdown`](super::markdown), in the order of the value: `key: value`
/// lines, what nests indented, arrays of objects in columns aligned by display width. Strings
/// stand as they are; on one line, `↵` stands for a line break.
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
    let mut writer = Writer::default();
    writer.block(value, 0);
    if writer.out.ends_with('\n') {
        writer.out.pop();
    }
    writer.out
}

#[derive(Default)]
struct Writer {
    out: String,
}

impl Writer {
    fn block(&mut self, value: &Json<'_>, depth: usize) {
        match value {
            Json::Object(members) if !members.is_empty() => {
                for (key, value) in members {
                    self.indent(depth);
                    plain(&mut self.out, key);
                    self.labelled(value, depth);
                }
            }
            Json::Array(elements) if !elements.is_empty() => self.elements(elements, depth),
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

    /// What follows a label: its value on the same line, or indented below.
    fn labelled(&mut self, value: &Json<'_>, depth: usize) {
        if fits_line(value) || depth >= DEEPEST_INDENT {
            self.out.push_str(": ");
            self.line(value, 0);
        } else {
            self.out.push_str(":\n");
            self.block(value, depth + 1);
        }
    }

    fn elements(&mut self, elements: &[Json<'_>], depth: usize) {
        let table = Table::of(elements, &LINE).and_then(Aligned::new);
        if let Some(table) = table {
            self.table(&table, depth);
        } else if is_short_list(elements) {
            self.indent(depth);
            LINE.list(&mut self.out, elements, usize::MAX);
            self.out.push('\n');
        } else if are_lines(elements) {
            elements
                .iter()
                .for_each(|element| self.block(element, depth));
        } else {
            for (at, element) in elements.iter().enumerate() {
                self.indent(depth);
                self.out.push_str(&(at + 1).to_string());
                self.labelled(element, depth);
            }
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
                    Some(row) => &column.cells[row],
                    None => &column.label,
                };
                let padding = std::iter::repeat_n(' ', width - cell.width());
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

/// A table whose columns are narrow enough to be padded.
struct Aligned {
    table: Table,
    widths: Vec<usize>,
}

impl Aligned {
    fn new(table: Table) -> Option<Self> {
        let cells = |column: &super::Column| {
            let cells = std::iter::once(&column.label).chain(&column.cells);
            let widths: Vec<usize> = cells.map(|cell| cell.width()).collect();
            (
                widths.iter().copied().max().unwrap_or(0),
                widths.iter().sum::<usize>(),
            )
        };
        let (widths, said): (Vec<usize>, Vec<usize>) = table.columns.iter().map(cells).unzip();
        let width = widths.iter().sum::<usize>() + GAP.len() * widths.len();
        let most = said.iter().sum::<usize>() * MOST_PADDING + WIDEST_TABLE * 8;
        (width <= WIDEST_TABLE && width * (table.rows + 1) <= most)
            .then_some(Self { table, widths })
    }
}

fn plain(out: &mut String, text: &str) {
    let text = on_one_line(text);
    out.push_str(if text.is_empty() { "\"\"" } else { &text });
}
