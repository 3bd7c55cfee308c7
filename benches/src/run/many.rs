//! What only rows of a series need: their connections that are idle, and the cost of a start.

use std::io;
use std::rc::Rc;

use super::{LoadedSubject, Pace};
use crate::load::{Connection, Load, Sample, Until};
use crate::machine::Usage;
use crate::report::Cell;
use crate::rows::Row;
use crate::subject::{Programs, Subject, Upstream};

/// Starts a program, and returns the nanoseconds of CPU time until its first answer.
pub(super) async fn start(
    programs: &Programs,
    row: &Row,
    subject: Subject,
    upstream: &Upstream,
    pace: Pace,
) -> io::Result<u64> {
    let running = programs.proxy(subject, upstream)?;
    let load = Rc::new(row.load(subject, &running, row.goal(), pace.clients));
    let mut one = load.connect(1).await?;
    let sample = load.run(&mut one, Until::Count(1)).await;
    match sample.complaint {
        None => Ok(Usage::of(running.process())?.cpu),
        Some(why) => Err(io::Error::other(why)),
    }
}

/// The figures of a program, after a last request on each connection that was idle.
pub(super) async fn ended(mut subject: LoadedSubject<'_>) -> Cell {
    let sample = ask_idle(&subject.load, &mut subject.idle).await;
    if let Some(why) = sample.complaint {
        let failure = format!("{} idle connections: {why}", sample.wrong);
        subject.cell.failure.get_or_insert(failure);
    }
    subject.cell
}

/// Sends one request on each of these connections, a few at a time.
pub(super) async fn ask_idle(load: &Rc<Load>, idle: &mut Vec<Connection>) -> Sample {
    let mut sum = Sample::default();
    let mut still_open = Vec::new();
    while !idle.is_empty() {
        let mut few = idle.split_off(idle.len().saturating_sub(FEW));
        sum.add(load.run(&mut few, Until::Count(1)).await);
        still_open.append(&mut few);
    }
    *idle = still_open;
    sum
}

/// How many of the idle connections have a request at the same time.
const FEW: usize = 16;
