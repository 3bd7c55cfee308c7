//! What clients receive when a server of the real gateway fails.

use std::fs;

use faults::{Programs, Report};

use crate::cargo;
use crate::outcome::Outcome;
use crate::workspace::Workspace;

/// Every scenario with every kind of server.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    match run_scenarios(workspace, "", AT_ONCE) {
        Ok(report) => Outcome {
            passed: report.passed,
            failures: report.failed,
        },
        Err(error) => Outcome::failure(error),
    }
}

/// Prints the outcome of the scenarios whose names contain `wanted`, one after the other, so that the times are exact.
/// With `write`, also updates the page.
pub(crate) fn faults(workspace: &Workspace, wanted: &str, write: bool) -> Result<(), String> {
    let report = run_scenarios(workspace, wanted, 1)?;
    let table = report.table();
    println!("{table}");
    if report.passed + report.failed.len() == 0 {
        return Err(format!("no scenario is called `{wanted}`"));
    }
    if !report.failed.is_empty() {
        return Err(report.failed.join("\n"));
    }
    println!("{} cases, all as they should be", report.passed);
    if write {
        write_table(workspace, PAGE, &MARKS, &table)?;
    }
    Ok(())
}

fn run_scenarios(workspace: &Workspace, wanted: &str, at_once: usize) -> Result<Report, String> {
    let programs = Programs {
        vary: cargo::binary(workspace, "vary")?,
        server: cargo::binary(workspace, "fault-server")?,
        scratch: workspace.scratch("faults/cases")?,
    };
    faults::run(&programs, wanted, at_once)
}

/// Puts `table` between the marks of a page.
pub(crate) fn write_table(
    workspace: &Workspace,
    page: &str,
    marks: &[&str; 2],
    table: &str,
) -> Result<(), String> {
    let written = with_table(&workspace.read(page)?, marks, table);
    let written = written.map_err(|error| format!("{page} {error}"))?;
    fs::write(workspace.path(page), written)
        .map_err(|error| format!("{page} could not be written: {error}"))
}

/// The page with `table` between its marks.
fn with_table(page: &str, [begin, end]: &[&str; 2], table: &str) -> Result<String, String> {
    let parts = page
        .split_once(begin)
        .and_then(|(before, after)| Some((before, after.split_once(end)?.1)));
    let (before, after) = parts.ok_or_else(|| format!("lacks `{begin}` or `{end}`"))?;
    Ok(format!("{before}{begin}\n\n{table}{end}{after}"))
}

/// The phase checks verdicts, not times.
const AT_ONCE: usize = 12;

const PAGE: &str = "docs/internals/faults.md";
const MARKS: [&str; 2] = [
    "<!-- what `cargo xtask faults --write` prints begins here -->",
    "<!-- and ends here -->",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_stands_between_its_marks() {
        let [begin, end] = MARKS;
        let page = format!("a\n{begin}old{end}\nb");
        let written = with_table(&page, &MARKS, "new\n");
        assert_eq!(written, Ok(format!("a\n{begin}\n\nnew\n{end}\nb")));
        assert!(with_table("no marks", &MARKS, "new\n").is_err());
    }

    #[test]
    fn the_page_has_every_scenario() {
        let page = Workspace::here().read(PAGE).unwrap();
        for title in faults::titles() {
            assert!(
                page.contains(&format!("### {title}\n")),
                "{title}; run `cargo xtask faults --write`"
            );
        }
    }
}
