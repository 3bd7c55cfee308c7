//! Cases of a test, written as a table.

/// The rows of a table: one a line, with ` | ` between the cells.
pub fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| {
        let cells: Vec<_> = line.split(" | ").map(str::trim).collect();
        let row = <[&str; N]>::try_from(cells);
        row.unwrap_or_else(|cells| panic!("{} cells instead of {N}: {line}", cells.len()))
    })
}
