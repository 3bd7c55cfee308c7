//! Tables with words aligned to the left and numbers to the right.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

/// The rows as lines. Columns are as wide as their widest cell, with two spaces between them. The first `text_columns`
/// are aligned to the left.
pub(crate) fn table(rows: &[Vec<String>], text_columns: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.width())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let fill = " ".repeat(width.saturating_sub(cell.width()));
            let gap = if at == 0 { "" } else { "  " };
            let _ = if at < text_columns {
                write!(line, "{gap}{cell}{fill}")
            } else {
                write!(line, "{gap}{fill}{cell}")
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn numbers_stand_under_each_other() {
        let rows =
            [["tools", "standard"], ["städte", "7"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows, 1), "tools   standard\nstädte         7\n");
        assert_eq!(table(&rows, 2), "tools   standard\nstädte  7\n");
    }
}
