//! The table of servers: as wide as the terminal, with the states in colour.

use unicode_width::UnicodeWidthStr;

use crate::print::table::table;

/// The table of servers in at most `width` columns: some columns are left out, then names are shortened.
pub(super) fn server_table(mut rows: Vec<Vec<String>>, width: usize) -> String {
    for name in CONNECTIONS {
        let heading = rows.first();
        let at = heading.and_then(|heading| heading.iter().position(|column| column == name));
        let mut cells = rows.iter().skip(1).filter_map(|row| row.get(at?));
        if cells.all(|cell| {
            USUAL
                .iter()
                .any(|usual| cell == usual || cell.starts_with(&format!("{usual}/")))
        }) {
            remove_column(&mut rows, name);
        }
    }
    for name in OPTIONAL {
        if excess(&rows, width) == 0 {
            break;
        }
        remove_column(&mut rows, name);
    }
    let surplus = excess(&rows, width);
    let names = rows.iter().filter_map(|row| row.first());
    let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
    let most = longest.saturating_sub(surplus).max(SHORTEST_NAME);
    for name in rows.iter_mut().filter_map(|row| row.first_mut()) {
        if name.chars().count() > most {
            *name = name.chars().take(most - 1).chain(['…']).collect();
        }
    }
    laid_out(&rows)
}

/// Takes the column `name` out of the table.
fn remove_column(rows: &mut [Vec<String>], name: &str) {
    let heading = rows.first();
    let at = heading.and_then(|heading| heading.iter().position(|column| column == name));
    for row in rows {
        if let Some(at) = at.filter(|at| *at < row.len()) {
            row.remove(at);
        }
    }
}

/// By how much the table is wider than `width`.
fn excess(rows: &[Vec<String>], width: usize) -> usize {
    let table = laid_out(rows);
    let widest = table.lines().map(UnicodeWidthStr::width).max();
    widest.unwrap_or(0).saturating_sub(width)
}

fn laid_out(rows: &[Vec<String>]) -> String {
    let text_columns =
        |heading: &Vec<String>| heading.iter().filter(|it| WORDS.contains(&&***it)).count();
    table(rows, rows.first().map_or(0, text_columns))
}

/// The columns that are shown only if a server has, or had, more than one connection.
const CONNECTIONS: [&str; 3] = ["connections", "dedicated", "evicted"];
/// The numbers of connections that need no look.
const USUAL: [&str; 3] = ["-", "0", "1"];
/// The columns with words.
const WORDS: [&str; 4] = ["server", "state", "for", "revisions"];
/// The columns that a narrow terminal does not show, the first one first.
const OPTIONAL: [&str; 6] = [
    "revisions",
    "p50",
    "for",
    "evicted",
    "dedicated",
    "connections",
];

/// A status as text, with the states of servers in colour.
pub(super) fn colored(status: &str) -> String {
    let mut is_table = false;
    let lines = status.split_inclusive('\n').map(|line| {
        is_table = line.starts_with("server ") || is_table && line != "\n";
        let colors = [
            ("up", GREEN),
            ("down", RED),
            ("invalid", RED),
            ("starting", YELLOW),
            ("waiting", YELLOW),
        ];
        let state = line.split_whitespace().nth(1);
        let found = colors.into_iter().find(|(known, _)| state == Some(*known));
        match found {
            Some((state, color)) if is_table && !line.starts_with(' ') => {
                line.replacen(&format!(" {state}"), &format!(" {color}{state}{PLAIN}"), 1)
            }
            _ => line.to_owned(),
        }
    });
    lines.collect()
}

const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "\x1b[0m";
/// The characters that names of servers keep in a narrow terminal.
const SHORTEST_NAME: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_shown_where_there_are_several() {
        let row = |cells: &str| cells.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let heading = "server state connections dedicated evicted calls";
        for (cells, expected) in [
            ("a up 1/256 0/256 0 7", "server state calls a up 7"),
            ("a up 0/256 - - 7", "server state calls a up 7"),
            (
                "a up 12/256 0/256 0 7",
                "server state connections calls a up 12/256 7",
            ),
            (
                "a up 1/256 2/256 3 7",
                "server state dedicated evicted calls a up 2/256 3 7",
            ),
        ] {
            let shown = server_table(vec![row(heading), row(cells)], usize::MAX);
            let shown: Vec<_> = shown.split_whitespace().collect();
            assert_eq!(shown.join(" "), expected);
        }
    }

    #[test]
    fn states_of_servers_have_a_color() {
        let text =
            "up\n\nserver  state  for\nup      down   1s\n  up down\nb       up     2s\n\nb  up\n";
        let expected = text.replace("  down   1s", "  \x1b[31mdown\x1b[0m   1s");
        let expected = expected.replace("  up     2s", "  \x1b[32mup\x1b[0m     2s");
        assert_eq!(colored(text), expected);
    }
}
