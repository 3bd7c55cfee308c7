//! The figures of some rows as a chart, for people who look before they read.

use std::fmt::Write as _;

use super::{Cell, Report};
use crate::subject::Subject;

/// The rows of the chart, and what they are called there.
const ROWS: [(&str, &str); 5] = [
    (
        "call, legacy client, HTTP upstream with sessions",
        "a call, legacy client",
    ),
    (
        "call, modern client, HTTP upstream modern",
        "a call, modern client",
    ),
    (
        "call, legacy client, stdio upstream legacy",
        "a call, legacy client, server over stdio",
    ),
    (
        "list, legacy client, HTTP upstream with sessions",
        "a list of 10 tools, legacy client",
    ),
    (
        "list, modern client, HTTP upstream modern",
        "a list of 10 tools, modern client",
    ),
];

const WIDTH: f64 = 420.0;

/// A bar that is so many times as long as Vary's longest is cut, so that the others can be seen.
const LONGEST: f64 = 12.0;

const STYLE: &str = "    text { font: 14px system-ui, sans-serif; fill: #1f2328; }
    .small { font-size: 12px; fill: #57606a; }
    .limit { fill: #8c959f; }
    .vary { fill: #0969da; }
    .peer { fill: #bc4c00; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .small { fill: #9198a1; }
      .limit { fill: #6e7681; }
      .vary { fill: #58a6ff; }
      .peer { fill: #f0883e; }
    }";

impl Report {
    /// The CPU time of a request in each program, as an SVG image; `None` without a row that has a place in it.
    pub(crate) fn to_chart(&self) -> Option<String> {
        let measured = ROWS.iter().filter_map(|(name, label)| {
            let (_, cells) = self.rows.iter().find(|(row, _)| row.name == *name)?;
            let cells = cells.iter().filter(|cell| cell.fault().is_none());
            Some((*label, cells.collect::<Vec<_>>()))
        });
        let rows: Vec<_> = measured.collect();
        let cells = || rows.iter().flat_map(|(_, cells)| cells);
        let vary = cells().filter(|cell| cell.subject == Subject::Vary);
        let longest = vary.map(|it| it.cpu() * LONGEST).reduce(f64::max);
        let most = cells().map(|it| it.cpu()).reduce(f64::max)?;
        let most = longest.map_or(most, |longest| longest.min(most));
        let (mut body, mut described, mut y) = (String::new(), Vec::new(), 34);
        for (label, cells) in &rows {
            let _ = writeln!(body, "  <text x=\"10\" y=\"{}\">{label}</text>", y + 14);
            y += 22;
            for cell in cells {
                let (name, class) = description_of(cell);
                let (cpu, width) = (cell.cpu(), (cell.cpu() / most).min(1.0) * WIDTH);
                let cut = if cpu > most { ", not to scale" } else { "" };
                let _ = writeln!(
                    body,
                    "  <text class=\"small\" x=\"170\" y=\"{}\" text-anchor=\"end\">{name}</text>\n  \
                     <rect class=\"{class}\" x=\"180\" y=\"{y}\" width=\"{width:.0}\" height=\"14\" rx=\"2\"/>\n  \
                     <text class=\"small\" x=\"{:.0}\" y=\"{}\">{cpu:.1}{cut}</text>",
                    y + 11,
                    width + 186.0,
                    y + 11,
                );
                described.push(format!("{label}, {name}: {cpu:.1}"));
                y += 18;
            }
            y += 12;
        }
        Some(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 {y}\" width=\"760\" height=\"{y}\" role=\"img\" \
             aria-labelledby=\"title desc\">\n  <title id=\"title\">What a request costs</title>\n  \
             <desc id=\"desc\">Microseconds of CPU time for each request. {}.</desc>\n  <style>\n{STYLE}\n  </style>\n  \
             <text class=\"small\" x=\"10\" y=\"18\">µs of CPU time for each request, less is better; “minimum” is the \
             least that a proxy can do</text>\n{body}</svg>\n",
            described.join("; "),
        ))
    }
}

/// The name of a program for readers, and how it is drawn.
fn description_of(cell: &Cell) -> (&'static str, &'static str) {
    match cell.subject {
        Subject::Fixed | Subject::Forward => ("minimum", "limit"),
        Subject::Vary => ("Vary", "vary"),
        other => (other.name(), "peer"),
    }
}
