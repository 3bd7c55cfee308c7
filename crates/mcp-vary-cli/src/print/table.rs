//! A table: the first column to the left, the others to the right.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

/// The rows as lines, columns as wide as their widest cell, two spaces between them.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
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
            let _ = match at {
                0 => write!(line, "{cell}{fill}"),
                _ => write!(line, "  {fill}{cell}"),
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
        assert_eq!(table(&rows), "tools   standard\nstädte         7\n");
    }
}
