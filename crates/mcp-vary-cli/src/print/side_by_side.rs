//! Blocks of text: beside each other if the terminal is wide enough, or else below each other.

use unicode_width::UnicodeWidthStr as _;

use super::wrap::wrap;

/// One block with its title and text.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) title: String,
    pub(crate) note: String,
    pub(crate) body: String,
}

/// The blocks on lines of at most `width` columns.
pub(crate) fn side_by_side(blocks: &[Block], width: usize) -> String {
    let gaps = GAP.width() * blocks.len().saturating_sub(1);
    let column = width.saturating_sub(gaps) / blocks.len().max(1);
    if blocks.len() == 1 || column < NARROWEST {
        stacked(blocks, width)
    } else {
        beside(blocks, column)
    }
}

fn beside(blocks: &[Block], column: usize) -> String {
    let columns: Vec<Vec<String>> = blocks
        .iter()
        .map(|block| {
            let mut lines = wrap(&block.title, column);
            lines.extend(wrap(&block.note, column));
            lines.push("─".repeat(column));
            lines.extend(wrap(&block.body, column));
            lines
        })
        .collect();
    let columns = level(columns);
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
    let mut out = String::new();
    for row in 0..height {
        let cells = columns
            .iter()
            .map(|lines| pad(lines.get(row).map_or("", String::as_str), column));
        let line = cells.collect::<Vec<_>>().join(GAP);
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Pads the columns so that their rules are at the same height.
fn level(mut columns: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let is_rule = |line: &String| line.starts_with('─');
    let rule = |lines: &Vec<String>| lines.iter().position(is_rule).unwrap_or(0);
    let deepest = columns.iter().map(rule).max().unwrap_or(0);
    for lines in &mut columns {
        let at = rule(lines);
        lines.splice(at..at, std::iter::repeat_n(String::new(), deepest - at));
    }
    columns
}

fn stacked(blocks: &[Block], width: usize) -> String {
    let parts = blocks.iter().map(|block| {
        let mut lines = wrap(&block.title, width);
        lines.extend(wrap(&block.note, width));
        let head = lines.iter().map(|line| line.width()).max().unwrap_or(0);
        lines.push("─".repeat(head));
        lines.extend(wrap(&block.body, width));
        lines.push(String::new());
        lines.join("\n")
    });
    parts.collect::<Vec<_>>().join("\n")
}

fn pad(line: &str, width: usize) -> String {
    format!("{line}{}", " ".repeat(width.saturating_sub(line.width())))
}

const GAP: &str = "  ";
/// Narrower columns are hard to read.
const NARROWEST: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Vec<Block> {
        [("one", "short"), ("two", "a longer text that goes on")]
            .map(|(title, body)| Block {
                title: title.to_owned(),
                note: "2 tokens".to_owned(),
                body: body.to_owned(),
            })
            .to_vec()
    }

    #[test]
    fn blocks_stand_side_by_side_where_there_is_room() {
        let text = side_by_side(&blocks(), 50);
        assert!(text.lines().all(|line| line.width() <= 50));
        assert_eq!(
            text.lines().nth(3),
            Some("short                     a longer text that goes")
        );
    }

    #[test]
    fn blocks_are_stacked_where_it_is_narrow() {
        let text = side_by_side(&blocks(), 40);
        assert_eq!(text.lines().nth(3), Some("short"));
        assert_eq!(text.lines().nth(5), Some("two"));
    }
}
