//! All sixteen pairs of a client and a server of either era on either transport, with Vary between them, in one
//! table: what each client sees.

mod asks;
mod calls;
mod changes;
mod client;
mod contents;
mod discovery;
mod ends;
mod errors;
mod lists;
mod logs;
mod page;
mod pair;
mod table;
mod tasks;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::pair::{Era, Listed, Pair, SIDES};
use crate::table::{LOOKS, Row, TABLE};

/// CN-7, SV-14, SV-16: whatever either side speaks, results and errors are the server's own, and changes are told with
/// their variant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_client_sees_what_the_table_says() {
    let seen = seen().await;
    let wrong: Vec<String> = rows()
        .enumerate()
        .flat_map(|(at, row)| wrong(row, seen.iter().map(|cells| cells[at].as_str())))
        .collect();
    assert!(wrong.is_empty(), "seen instead:\n{}", wrong.join("\n"));
}

/// Each row has a cell for each pair, and each sign a reason, once.
#[test]
fn the_table_is_whole() {
    let mut used = String::from("=");
    for row in rows() {
        let groups: Vec<_> = row.cells.split(' ').map(str::len).collect();
        assert_eq!(groups, [SIDES.len(); SIDES.len()], "{}", row.about);
        for sign in row.sees.keys() {
            assert!(
                row.cells.contains(*sign),
                "{}: nobody sees `{sign}`",
                row.about
            );
            used.push(*sign);
        }
    }
    for (sign, _) in &TABLE.why {
        assert!(used.contains(*sign), "no cell is `{sign}`");
    }
    let known = |sign| sign == '=' || TABLE.why.iter().any(|(known, _)| *known == sign);
    assert!(used.chars().all(known), "one of {used} has no reason");
    for (path, _) in LOOKS {
        assert!(rows().any(|row| row.look == *path), "no row is `{path}`");
    }
}

fn rows() -> impl Iterator<Item = &'static Row> {
    TABLE.topics.iter().flat_map(|topic| &topic.rows)
}

/// What the client of each pair sees, row by row; the pairs are at it together.
async fn seen() -> Vec<Vec<String>> {
    let legacy = Arc::new(Listed::by(Era::Legacy).await);
    let modern = Arc::new(Listed::by(Era::Modern).await);
    let mut pairs = Vec::new();
    for client in SIDES {
        for server in SIDES {
            let listed = match server.era {
                Era::Legacy => Arc::clone(&legacy),
                Era::Modern => Arc::clone(&modern),
            };
            pairs.push(tokio::spawn(async move {
                let pair = Pair::start(client, server, listed).await;
                seen_by(&Arc::new(pair)).await
            }));
        }
    }
    let mut seen = Vec::new();
    for pair in pairs {
        seen.push(pair.await.expect("the pair starts and ends"));
    }
    seen
}

/// One row after the other, since the messages of one call may be about another.
async fn seen_by(pair: &Arc<Pair>) -> Vec<String> {
    let mut seen = Vec::new();
    for row in rows() {
        // A cell that panics is one cell.
        let cell = tokio::spawn(row.look(Arc::clone(pair))).await;
        seen.push(cell.unwrap_or_else(|panic| panic.to_string()));
    }
    pair.end().await;
    seen
}

/// What is seen of a row other than it says, and by which clients before which servers.
fn wrong<'a>(row: &Row, seen: impl Iterator<Item = &'a str>) -> Vec<String> {
    let signs = row.cells.chars().filter(|sign| *sign != ' ');
    let mut others = BTreeMap::<&str, Vec<String>>::new();
    for (at, (sign, cell)) in signs.zip(seen).enumerate() {
        if row.stands_for(sign) != cell {
            let (client, server) = (SIDES[at / SIDES.len()], SIDES[at % SIDES.len()]);
            let pair = format!("{} before {}", client.name(), server.name());
            others.entry(cell).or_default().push(pair);
        }
    }
    let others = others.into_iter();
    let lines =
        others.map(|(cell, pairs)| format!("{}: {cell}\n    {}", row.about, pairs.join(", ")));
    lines.collect()
}

impl Row {
    /// What one of its signs stands for.
    fn stands_for(&self, sign: char) -> &str {
        let found = self.sees.get(&sign);
        found.unwrap_or_else(|| panic!("{}: what is `{sign}`?", self.about))
    }
}
