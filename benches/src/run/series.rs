//! The rows of a series, whose programs take turns.

use std::io;

use super::many::ended;
use super::{Pace, begin_row, one_round};
use crate::report::Cell;
use crate::rows::Row;
use crate::subject::Programs;

/// Measures the rows of a series, whose programs are started anew for each round, in turns: how the memory of a process happens
/// to lie makes a difference of some percent, which all rounds of one process have.
pub(super) async fn fresh_series(
    programs: &Programs,
    rows: &[Row],
    pace: Pace,
) -> io::Result<Vec<Vec<Cell>>> {
    let rounds = rows.iter().map(|row| pace.rounds_of(row)).max();
    let once = Pace { rounds: 1, ..pace };
    let mut all = one_series(programs, rows, once, 0).await?;
    for round in 1..rounds.unwrap_or_default() {
        let next = one_series(programs, rows, once, round).await?;
        for (cell, next) in all.iter_mut().flatten().zip(next.into_iter().flatten()) {
            cell.rounds.extend(next.rounds);
            cell.failure = cell.failure.take().or(next.failure);
        }
    }
    Ok(all)
}

/// Measures the rows of a series, whose programs take turns. In every other `start`, the last one is started first.
pub(super) async fn one_series(
    programs: &Programs,
    rows: &[Row],
    pace: Pace,
    start: usize,
) -> io::Result<Vec<Vec<Cell>>> {
    let mut loaded = Vec::new();
    for row in rows {
        loaded.push(begin_row(programs, row, pace, start).await?);
    }
    let rounds = rows.iter().map(|row| pace.rounds_of(row)).max();
    for round in 0..rounds.unwrap_or_default() {
        let mut subjects: Vec<_> = loaded
            .iter_mut()
            .flat_map(|row| &mut row.subjects)
            .collect();
        let count = subjects.len();
        for step in 0..count {
            // Each subject is first in turn.
            one_round(subjects[(round + step) % count], pace, round).await;
        }
    }
    let mut all = Vec::new();
    for row in loaded {
        let mut cells = row.failed;
        for subject in row.subjects {
            cells.push(ended(subject).await);
        }
        cells.sort_by_key(|cell| cell.subject);
        all.push(cells);
    }
    Ok(all)
}
