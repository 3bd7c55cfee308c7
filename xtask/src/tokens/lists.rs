//! The cost of the recorded tool lists in each built-in variant.

use std::fmt::Write as _;

use mcp_vary::json::{Json, JsonError, Members, elements};
use mcp_vary_view::derive::{compact_tool, is_read_only};
use mcp_vary_view::{describe_tools, directory_tool};

use super::{names, percent};
use crate::workspace::Workspace;

/// A row for each list, the sum of all of them, and a row for one gateway in front of all of their servers.
pub(super) fn table(workspace: &Workspace) -> Result<String, String> {
    let mut table = String::from(
        "| list | server | tools | `standard` | `compact` | | `directory` | | a tool | `read-only` tools | tokens | |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let costs = costs(workspace)?;
    for (name, server, cost) in &costs {
        let _ = writeln!(table, "{}", cost.row(name, server));
    }
    let _ = writeln!(table, "{}", sum(&costs).row("all", ""));
    let _ = writeln!(
        table,
        "{}",
        together(workspace)?.row("all, in one list", "")
    );
    Ok(table)
}

/// The cost of the tools of all lists in one list, which has `describe_tools` once.
fn together(workspace: &Workspace) -> Result<Cost, String> {
    let mut all = Vec::new();
    for name in names(workspace, LISTS)? {
        let text = workspace.read(&format!("{LISTS}/{name}.json"))?;
        let (_, tools) = read(&text).map_err(|error| format!("{LISTS}/{name}.json: {error}"))?;
        all.extend(tools);
    }
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    Cost::of(&all).map_err(|error| error.to_string())
}

/// The server of the recorded list `text`, and its tools.
fn read(text: &str) -> Result<(String, Vec<String>), JsonError> {
    let list = Json::parse(text)?.to_json();
    let list = Members::parse(&list)?;
    let tools = elements(list.get("tools").unwrap_or_default())?;
    Ok((
        server(&list),
        tools.into_iter().map(str::to_owned).collect(),
    ))
}

/// The cost of every recorded list: its name, its server, and its tokens.
pub(super) fn costs(workspace: &Workspace) -> Result<Vec<(String, String, Cost)>, String> {
    let names = names(workspace, LISTS)?.into_iter();
    let costs = names.map(|name| {
        let text = workspace.read(&format!("{LISTS}/{name}.json"))?;
        let cost = || {
            let (server, tools) = read(&text)?;
            let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
            Ok((server, Cost::of(&tools)?))
        };
        let (server, cost) =
            cost().map_err(|error: JsonError| format!("{LISTS}/{name}.json: {error}"))?;
        Ok((name, server, cost))
    });
    costs.collect()
}

/// The cost of all lists together.
pub(super) fn sum(costs: &[(String, String, Cost)]) -> Cost {
    let costs = costs.iter().map(|(.., cost)| cost);
    costs.fold(Cost::default(), |sum, cost| Cost {
        tools: sum.tools + cost.tools,
        standard: sum.standard + cost.standard,
        compact: sum.compact + cost.compact,
        directory: sum.directory + cost.directory,
        unannotated: sum.unannotated + cost.unannotated,
        read_only_tools: sum.read_only_tools + cost.read_only_tools,
        read_only: sum.read_only + cost.read_only,
    })
}

/// The tokens of one list in each built-in variant.
#[derive(Debug, Default)]
pub(super) struct Cost {
    pub(super) tools: usize,
    pub(super) standard: usize,
    compact: usize,
    /// With `describe_tools`.
    pub(super) directory: usize,
    /// The same without annotations.
    pub(super) unannotated: usize,
    read_only_tools: usize,
    read_only: usize,
}

impl Cost {
    /// The cost of a list of these tools.
    fn of(standard: &[&str]) -> Result<Self, JsonError> {
        let compact: Result<Vec<String>, _> =
            standard.iter().map(|tool| compact_tool(tool)).collect();
        let directory: Result<Vec<String>, _> =
            standard.iter().map(|tool| directory_tool(tool)).collect();
        let mut directory = directory?;
        directory.push(describe_tools("describe_tools"));
        let unannotated: Result<Vec<String>, _> = directory
            .iter()
            .map(|tool| without_annotations(tool))
            .collect();
        let mut read_only = standard.to_vec();
        read_only.retain(|tool| is_read_only(tool));
        Ok(Self {
            tools: standard.len(),
            standard: count(standard),
            compact: count(&compact?),
            directory: count(&directory),
            unannotated: count(&unannotated?),
            read_only_tools: read_only.len(),
            read_only: count(&read_only),
        })
    }

    fn row(&self, name: &str, server: &str) -> String {
        format!(
            "| {name} | {server} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            self.tools,
            self.standard,
            self.compact,
            percent(self.compact, self.standard),
            self.directory,
            percent(self.directory, self.standard),
            self.directory.div_ceil(self.tools.max(1)),
            self.read_only_tools,
            self.read_only,
            percent(self.read_only, self.standard),
        )
    }
}

fn without_annotations(tool: &str) -> Result<String, JsonError> {
    let mut members = Members::parse(tool)?;
    members.remove("annotations");
    Ok(members.to_json())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// All lists, also those with little prose.
    #[test]
    fn compact_costs_at_most_half_of_all_lists() {
        let sum = sum(&costs(&Workspace::here()).unwrap());
        assert!(sum.compact * 2 <= sum.standard, "{sum:?}");
    }

    /// Annotations, `describe_tools` and the compact schemas of tools that declare `destructiveHint: true` counted.
    #[test]
    fn a_directory_of_all_lists_costs_at_most_a_quarter() {
        let together = together(&Workspace::here()).unwrap();
        assert!(together.directory * 4 <= together.standard, "{together:?}");
        assert!(together.directory <= together.tools * 90, "{together:?}");
        assert!(together.unannotated <= together.tools * 71, "{together:?}");
    }

    /// Ten directories have `describe_tools` ten times.
    #[test]
    fn directories_of_single_lists_cost_little_more_than_a_quarter() {
        let costs = costs(&Workspace::here()).unwrap();
        let sum = sum(&costs);
        assert!(sum.directory * 100 <= sum.standard * 27, "{sum:?}");
        for (name, _, cost) in &costs {
            let is_long = ["mongo", "notion"].contains(&name.as_str());
            assert!(
                !is_long || cost.directory * 100 <= cost.standard * 17,
                "{name}: {cost:?}"
            );
        }
    }
}
