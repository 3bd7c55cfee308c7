//! What the recorded tool lists cost in each built-in variant: the table in `docs/tokens.md`.

use std::fmt::Write as _;
use std::fs;

use mcp_vary::json::{Json, Members, elements};
use mcp_vary::view::derive::{compact_tool, is_read_only};

use crate::workspace::Workspace;

/// Prints the table and writes it into the page; with `check`, only says whether the page has it.
pub(crate) fn tokens(workspace: &Workspace, check: bool) -> Result<(), String> {
    let page = workspace.read(PAGE)?;
    let table = table(workspace)?;
    let current = with_table(&page, &table)?;
    if !check {
        println!("{table}");
        return fs::write(workspace.path(PAGE), current)
            .map_err(|error| format!("{PAGE} could not be written: {error}"));
    }
    if page == current {
        Ok(())
    } else {
        Err(format!("{PAGE} is not current; run `cargo xtask tokens`"))
    }
}

/// The page with `table` between its marks.
fn with_table(page: &str, table: &str) -> Result<String, String> {
    let parts = page
        .split_once(BEGIN)
        .and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or_else(|| format!("{PAGE} lacks `{BEGIN}` or `{END}`"))?;
    Ok(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
}

fn table(workspace: &Workspace) -> Result<String, String> {
    let mut table = String::from(
        "| list | server | tools | `standard` | `compact` | | `read-only` tools | tokens | |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for name in names(workspace)? {
        let text = workspace.read(&format!("{LISTS}/{name}.json"))?;
        let row = row(&name, &text).map_err(|error| format!("{LISTS}/{name}.json: {error}"))?;
        let _ = writeln!(table, "{row}");
    }
    Ok(table)
}

/// The names of the lists, sorted.
fn names(workspace: &Workspace) -> Result<Vec<String>, String> {
    let entries =
        fs::read_dir(workspace.path(LISTS)).map_err(|error| format!("{LISTS}: {error}"))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".json")?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

fn row(name: &str, text: &str) -> Result<String, String> {
    let list = Json::parse(text)
        .map_err(|error| error.to_string())?
        .to_json();
    let list = Members::parse(&list).map_err(|error| error.to_string())?;
    let standard =
        elements(list.get("tools").unwrap_or_default()).map_err(|error| error.to_string())?;
    let compact: Result<Vec<String>, _> = standard.iter().map(|tool| compact_tool(tool)).collect();
    let compact = compact.map_err(|error| error.to_string())?;
    let mut read_only = standard.clone();
    read_only.retain(|tool| is_read_only(tool));

    let all = count(&standard);
    let (fewer, safe) = (count(&compact), count(&read_only));
    Ok(format!(
        "| {name} | {} | {} | {all} | {fewer} | {} | {} | {safe} | {} |",
        server(&list),
        standard.len(),
        percent(fewer, all),
        read_only.len(),
        percent(safe, all),
    ))
}

/// The name and version that the server gave when the list was recorded.
fn server(list: &Members<'_>) -> String {
    let initialized = list.get("init").unwrap_or("{}");
    let Ok(initialized) = Json::parse(initialized) else {
        return String::new();
    };
    let info = |key| initialized.get("serverInfo")?.get(key)?.as_str();
    let [name, version] = ["name", "version"].map(|key| info(key).unwrap_or_default());
    format!("{name} {version}")
}

/// The tokens of the tools as one array.
fn count<T: AsRef<str>>(tools: &[T]) -> usize {
    let tools: Vec<&str> = tools.iter().map(AsRef::as_ref).collect();
    tiktoken_rs::o200k_base_singleton().count_ordinary(&format!("[{}]", tools.join(",")))
}

fn percent(part: usize, whole: usize) -> String {
    format!("{} %", (part * 200 + whole) / (whole * 2).max(1))
}

const LISTS: &str = "crates/mcp-vary/tests/fixtures/tool-lists";
const PAGE: &str = "docs/tokens.md";
const BEGIN: &str = "<!-- what `cargo xtask tokens` writes begins here -->";
const END: &str = "<!-- and ends here -->";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_current() {
        assert_eq!(tokens(&Workspace::here(), true), Ok(()));
    }

    #[test]
    fn percentages_are_rounded() {
        assert_eq!(percent(1, 3), "33 %");
        assert_eq!(percent(2, 3), "67 %");
        assert_eq!(percent(0, 0), "0 %");
    }

    #[test]
    fn a_page_without_marks_is_an_error() {
        assert!(with_table("# Tokens", "").is_err());
        assert_eq!(
            with_table(&format!("a\n{BEGIN}old{END}\nb"), "| new |\n"),
            Ok(format!("a\n{BEGIN}\n\n| new |\n\n{END}\nb"))
        );
    }
}
