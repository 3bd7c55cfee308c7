//! How costs grow with the size of a case, from the measured rows.

use super::{Cell, Row};
use crate::load::{Era, Method};
use crate::rows::FORMS;
use crate::subject::Subject;

/// The factor by which a constant cost may differ between rows.
const FLAT: f64 = 1.25;

/// The base row: the others differ from it in one respect.
const USUAL: &str = "call, legacy client, HTTP upstream with sessions";

pub(super) fn missed(rows: &[(Row, Vec<Cell>)]) -> Vec<String> {
    let tools = flat(rows, "number of tools", |row| {
        row.name.ends_with(" tools") || row.name.ends_with(" 1 tool")
    });
    let sessions = flat(rows, "number of sessions", |row| {
        row.sessions > 0 || row.name == USUAL
    });
    let variants = flat(rows, "number of variants", |row| {
        row.name.starts_with(USUAL) && row.behind.variants > 0 || row.name == USUAL
    });
    let both_ways = linear(rows, |row| row.name.ends_with("both ways"));
    let sent = FORMS.iter().map(|sent| {
        linear(rows, |row| {
            row.era == Era::Legacy && row.form.is_some_and(|it| it.name == sent.name)
        })
    });
    let sent: Vec<_> = sent.collect();
    [tools, sessions, variants, both_ways]
        .into_iter()
        .chain(sent)
        .flatten()
        .collect()
}

/// The rows of calls that `wanted` chooses, by Vary's CPU.
fn costs(rows: &[(Row, Vec<Cell>)], wanted: impl Fn(&Row) -> bool) -> Vec<(&Row, f64)> {
    let calls = rows
        .iter()
        .filter(|(row, _)| row.method == Method::Call && wanted(row));
    calls
        .filter_map(|(row, cells)| {
            let vary = cells.iter().find(|cell| cell.subject == Subject::Vary)?;
            Some((row, vary.cpu()))
        })
        .collect()
}

fn flat(rows: &[(Row, Vec<Cell>)], what: &str, wanted: impl Fn(&Row) -> bool) -> Option<String> {
    let costs = costs(rows, wanted);
    let (_, least) = costs.first()?;
    let (row, most) = costs.last()?;
    let ratio = most / least;
    (ratio > FLAT).then(|| format!("{}: {ratio:.2} × with the {what}", row.name))
}

/// Checks that the cost per kilobyte does not grow with the size.
fn linear(rows: &[(Row, Vec<Cell>)], wanted: impl Fn(&Row) -> bool) -> Option<String> {
    let costs = costs(rows, wanted);
    let each = |two: &[(&Row, f64)]| (two[1].1 - two[0].1) / (size(two[1].0) - size(two[0].0));
    let first = each(costs.get(..2)?);
    let grown = costs.windows(2).skip(1).find_map(|two| {
        let then = each(two);
        (then > 2.0 * first.max(0.0)).then_some((two[1].0, then))
    });
    let (row, then) = grown?;
    Some(format!(
        "{}: a kilobyte costs {then:.2} µs, {first:.2} µs up to ten",
        row.name
    ))
}

/// Kilobytes of a result.
#[expect(clippy::cast_precision_loss, reason = "kilobytes")]
fn size(row: &Row) -> f64 {
    row.arguments.data.max(row.arguments.size) as f64 / 1024.0
}
