//! How costs grow when there is twice as much of something, from the rows of each series.

use std::fmt::Write as _;

use super::{Cell, Report, Row, median};
use crate::load::Method;

/// The factor by which a constant cost may grow when a size doubles, and a proportional one.
const FLAT: f64 = 1.15;
const LINEAR: f64 = 2.3;

/// One cost in all rows of a series.
#[derive(Debug)]
struct Figure {
    name: &'static str,
    values: Vec<f64>,
    /// From each row to the next one.
    ratios: Vec<f64>,
    /// The highest allowed ratio.
    most: f64,
}

impl Report {
    /// The growth in the series that was added last; empty if it has one row, or nothing was measured.
    pub(crate) fn growth_of_last(&self) -> String {
        let series = self.rows.chunk_by(is_in_series).last().unwrap_or_default();
        match title(series) {
            Some(title) if self.timed && series.len() > 1 => table(&title, series),
            _ => String::new(),
        }
    }
}

/// The costs that grow by more than they may.
pub(super) fn missed(rows: &[(Row, Vec<Cell>)]) -> Vec<String> {
    let series = rows.chunk_by(is_in_series);
    let missed = series.flat_map(|series| {
        let all = figures(series).into_iter();
        all.filter(|figure| figure.highest() > figure.most)
            .filter_map(|figure| {
                let (title, name) = (title(series)?, figure.name);
                let (highest, most) = (figure.highest(), figure.most);
                Some(format!(
                    "{title}: {name} × {highest:.2} when it doubles; at most {most}"
                ))
            })
    });
    missed.collect()
}

fn is_in_series(one: &(Row, Vec<Cell>), other: &(Row, Vec<Cell>)) -> bool {
    one.0.is_in_series_of(&other.0)
}

/// The name of its rows without their sizes.
fn title(series: &[(Row, Vec<Cell>)]) -> Option<String> {
    let (row, _) = series.first().filter(|(row, _)| row.many.is_some())?;
    let (title, _) = row.name.rsplit_once(", ")?;
    Some(title.to_owned())
}

fn table(title: &str, series: &[(Row, Vec<Cell>)]) -> String {
    let mut text = format!("growth with {title}\n  {:<18}", "");
    for (_, size) in series.iter().filter_map(|(row, _)| row.many) {
        let _ = write!(text, "{size:>10}");
    }
    text.push_str("   when it doubles\n");
    for figure in figures(series) {
        let _ = write!(text, "  {:<18}", figure.name);
        for value in &figure.values {
            let _ = write!(text, "{value:>10.1}");
        }
        let ratios = figure.ratios.iter().map(|ratio| format!("{ratio:.2}"));
        let ratios: Vec<_> = ratios.collect();
        let (ratios, shape, most) = (ratios.join(" · "), figure.shape(), figure.most);
        let _ = writeln!(text, "   × {ratios}: {shape} (at most {most})");
    }
    text.push('\n');
    text
}

impl Figure {
    fn highest(&self) -> f64 {
        self.ratios.iter().copied().fold(0.0, f64::max)
    }

    fn shape(&self) -> &'static str {
        match self.highest() {
            ..=FLAT => "flat",
            ..=LINEAR => "linear",
            _ => "more than linear",
        }
    }
}

/// Nothing if a row has wrong answers: that is reported elsewhere.
fn figures(series: &[(Row, Vec<Cell>)]) -> Vec<Figure> {
    let cells = series.iter().map(|(row, cells)| {
        let cell = cells.first().filter(|cell| cell.fault().is_none());
        Some((row.many?, cell?, row.method))
    });
    let Some(cells) = cells.collect::<Option<Vec<_>>>() else {
        return Vec::new();
    };
    let Some(((dimension, _), _, method)) = cells.first() else {
        return Vec::new();
    };
    let request = match method {
        Method::List if dimension.is_listed() => LINEAR,
        _ => FLAT,
    };
    let figure = |name, most, of: fn(&Cell) -> f64, ratio: fn(&Cell, &Cell) -> f64| Figure {
        name,
        values: cells.iter().map(|(_, cell, _)| of(cell)).collect(),
        ratios: cells
            .windows(2)
            .map(|two| ratio(two[1].1, two[0].1))
            .collect(),
        most,
    };
    let cpu = figure("CPU µs", request, Cell::cpu, |two, one| {
        two.ratio(one, |round| round.cpu)
    });
    let memory = figure("RSS MiB", LINEAR, Cell::resident, |two, one| {
        two.resident() / one.resident()
    });
    let start = figure("start, ms of CPU", LINEAR, Cell::start, |two, one| {
        two.start() / one.start()
    });
    vec![cpu, memory, start]
}

#[expect(clippy::cast_precision_loss, reason = "mebibytes and milliseconds")]
impl Cell {
    pub(super) fn resident(&self) -> f64 {
        self.median(|round| round.resident as f64 / f64::from(1 << 20))
    }

    fn start(&self) -> f64 {
        median(self.starts.iter().map(|cpu| *cpu as f64 / 1e6).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::cell;
    use crate::rows;
    use crate::subject::Subject;

    #[test]
    fn a_call_may_not_grow_and_a_list_may_double() {
        let missed = |title: &str, costs: [f64; 3]| {
            let rows = rows::all().into_iter();
            let rows = rows.filter(|row| row.name.starts_with(title));
            let series = rows.zip(costs).map(|(row, cost)| {
                let mut cell = cell(Subject::Vary, [cost; 4]);
                cell.starts = vec![1_000_000];
                (row, vec![cell])
            });
            missed(&series.collect::<Vec<_>>())
        };
        let call = "many tools: call, legacy client";
        assert_eq!(missed(call, [20.0, 21.0, 23.0]), [""; 0]);
        assert_eq!(
            missed(call, [20.0, 21.0, 30.0]),
            [format!(
                "{call}: CPU µs × 1.43 when it doubles; at most 1.15"
            )]
        );
        assert_eq!(missed("many tools: list", [20.0, 40.0, 80.0]), [""; 0]);
        let list = "many variants: list, legacy client";
        assert_eq!(missed(list, [20.0, 20.0, 30.0]).len(), 1);
    }
}
