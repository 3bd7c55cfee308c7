//! The table as `docs/internals/eras.md` shows it.

use std::fmt::Write as _;

use crate::pair::SIDES;
use crate::table::{TABLE, Topic};

#[test]
fn the_page_shows_the_table() {
    let (_, rest) = PAGE
        .split_once(BEGIN)
        .expect("the page says where it begins");
    let (shown, _) = rest.split_once(END).expect("the page says where it ends");
    let table = table();
    let is_shown = shown.trim() == table.trim();
    assert!(
        is_shown,
        "docs/internals/eras.md should show this:\n\n{table}"
    );
}

fn table() -> String {
    let mut text = String::from("|");
    for side in SIDES {
        write!(text, " | {}", side.name()).expect("a text takes text");
    }
    text.push_str(" |\n|---|:-:|:-:|:-:|:-:|\n");
    for Topic { topic, rows } in &TABLE.topics {
        writeln!(text, "| **{topic}** | | | | |").expect("a text takes text");
        for row in rows {
            let cells = row.cells.replace(' ', "` | `");
            writeln!(text, "| {} | `{cells}` |", row.about).expect("a text takes text");
        }
    }
    text.push_str("\n| sign | what the client sees |\n|:-:|---|\n");
    for (sign, why) in &TABLE.why {
        writeln!(text, "| `{sign}` | {why} |").expect("a text takes text");
    }
    text
}

const PAGE: &str = include_str!("../../../../docs/internals/eras.md");
const BEGIN: &str = "<!-- what the test prints begins here -->";
const END: &str = "<!-- and ends here -->";
