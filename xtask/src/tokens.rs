//! The cost in tokens of the recorded tool lists, results and rows: the tables in `docs/reference/tokens.md` and `docs/internals/tokens.md`.

mod lists;
mod results;

use std::fs;
use std::path::Path;

use mcp_vary_tokens::count;
use mcp_vary_view::model_tool;

use crate::page::with_table;
use crate::workspace::Workspace;

/// Prints the tables and updates the pages. With `check`, only checks that the pages have the tables.
pub(crate) fn tokens(workspace: &Workspace, check: bool) -> Result<(), String> {
    let rows = results::rows(workspace)?;
    let recorded = results::recorded(workspace)?;
    let figures = [("figures", lists::figures(workspace)?)];
    let details = [
        ("lists", lists::table(workspace)?),
        ("rows", results::table(&rows)),
        ("results", results::table(&recorded)),
        (
            "cuts",
            results::cut_table(&rows)
                + results::cut_table(&recorded)
                    .splitn(3, '\n')
                    .nth(2)
                    .unwrap_or_default(),
        ),
    ];
    update(workspace, PAGE, &figures, check)?;
    update(workspace, DETAILS, &details, check)?;
    results::saves_enough(&rows)
}

/// Prints the tables of one page and updates it, or only checks that it has them.
fn update(
    workspace: &Workspace,
    path: &str,
    tables: &[(&str, String)],
    check: bool,
) -> Result<(), String> {
    let page = workspace.read(path)?;
    let mut current = page.clone();
    for (name, table) in tables {
        let begin = format!("<!-- what `cargo xtask tokens` writes of {name} begins here -->");
        let written = with_table(&current, &begin, &format!("{table}\n"));
        current = written.map_err(|error| format!("{path} {error}"))?;
    }
    if !check {
        for (_, table) in tables {
            println!("{table}");
        }
        fs::write(workspace.path(path), &current)
            .map_err(|error| format!("{path} could not be written: {error}"))?;
    } else if page != current {
        return Err(format!("{path} is not current; run `cargo xtask tokens`"));
    }
    Ok(())
}

/// Prints what the tools of a data set of `cargo xtask recall` cost.
pub(crate) fn tokens_of(data: &Path) -> Result<(), String> {
    println!("{}", lists::table_of(data)?);
    Ok(())
}

/// The names of the JSON files in `folder`, sorted.
fn names(workspace: &Workspace, folder: &str) -> Result<Vec<String>, String> {
    let entries =
        fs::read_dir(workspace.path(folder)).map_err(|error| format!("{folder}: {error}"))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".json")?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// The tokens of the tools as one array.
fn count_list<T: AsRef<str>>(tools: &[T]) -> usize {
    let tools: Vec<&str> = tools.iter().map(AsRef::as_ref).collect();
    count(&format!("[{}]", tools.join(",")))
}

/// The tokens that a model gets of the tools.
fn count_model_list<T: AsRef<str>>(tools: &[T]) -> usize {
    let tools: Vec<String> = tools.iter().map(|tool| model_tool(tool.as_ref())).collect();
    count_list(&tools)
}

fn percent(part: usize, whole: usize) -> String {
    format!("{} %", (part * 200 + whole) / (whole * 2).max(1))
}

/// The page for users, with the sums.
const PAGE: &str = "docs/reference/tokens.md";

/// The page with the other tables.
const DETAILS: &str = "docs/internals/tokens.md";

#[cfg(test)]
mod tests {
    use super::*;

    /// CN-13: of every set of rows, few words save three fifths of the tokens, in every form.
    #[test]
    fn the_page_is_current_and_rows_save_enough() {
        assert_eq!(tokens(&Workspace::here(), true), Ok(()));
    }

    #[test]
    fn percentages_are_rounded() {
        assert_eq!(percent(1, 3), "33 %");
        assert_eq!(percent(2, 3), "67 %");
        assert_eq!(percent(0, 0), "0 %");
    }
}
