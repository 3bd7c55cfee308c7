//! The cost of the recorded tool lists in each built-in variant.

use std::fmt::Write as _;

use mcp_vary::json::{Json, Members, elements};
use mcp_vary_view::derive::{compact_tool, is_read_only};

use super::{names, percent};
use crate::workspace::Workspace;

/// A row for each list.
pub(super) fn table(workspace: &Workspace) -> Result<String, String> {
    let mut table = String::from(
        "| list | server | tools | `standard` | `compact` | | `read-only` tools | tokens | |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for name in names(workspace, LISTS)? {
        let text = workspace.read(&format!("{LISTS}/{name}.json"))?;
        let row = row(&name, &text).map_err(|error| format!("{LISTS}/{name}.json: {error}"))?;
        let _ = writeln!(table, "{row}");
    }
    Ok(table)
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
    super::count(&format!("[{}]", tools.join(",")))
}

pub(super) const LISTS: &str = "crates/mcp-vary-view/tests/fixtures/tool-lists";
