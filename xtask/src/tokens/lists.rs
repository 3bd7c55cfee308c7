//! The cost of the recorded tool lists in each built-in variant.

use std::fmt::Write as _;

use mcp_vary::json::{Json, JsonError, Members, elements};
use mcp_vary_view::derive::{compact_tool, is_read_only};
use mcp_vary_view::{describe_tools, directory_tool};

use super::{count_list, names, percent};
use crate::workspace::Workspace;

/// A row for each list, the sum of all of them, and a row for one gateway in front of all of their servers.
pub(super) fn table(workspace: &Workspace) -> Result<String, String> {
    let mut table = String::from(HEAD);
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

/// The tokens alone: a row for each list, and one for all of their servers behind one gateway.
pub(super) fn figures(workspace: &Workspace) -> Result<String, String> {
    let mut table = String::from(
        "| list | tools | `standard` | `compact` | `directory` | `read-only` |\n|---|--:|--:|--:|--:|--:|\n",
    );
    for (name, _, cost) in &costs(workspace)? {
        let _ = writeln!(table, "{}", cost.figures(name));
    }
    let _ = writeln!(table, "{}", together(workspace)?.figures("all"));
    Ok(table)
}

/// The cost of the tools of all lists in one list, which has `describe_tools` once.
fn together(workspace: &Workspace) -> Result<Cost, String> {
    let lists = read_all(workspace)?.into_iter();
    let all: Vec<String> = lists.flat_map(|list| list.tools).collect();
    Cost::of(&all).map_err(|error| error.to_string())
}

/// A list of tools.
#[derive(Debug)]
pub(super) struct List {
    pub(super) name: String,
    /// The server's name and version.
    pub(super) server: String,
    /// As JSON without spaces.
    pub(super) tools: Vec<String>,
}

impl List {
    /// The recorded list `text`.
    fn parse(name: String, text: &str) -> Result<Self, JsonError> {
        let list = Json::parse(text)?.to_json();
        let list = Members::parse(&list)?;
        let tools = elements(list.get("tools").unwrap_or_default())?;
        Ok(Self {
            name,
            server: server(&list),
            tools: tools.into_iter().map(str::to_owned).collect(),
        })
    }

    /// The tools of a data set of `cargo xtask recall`.
    pub(super) fn of_data(text: &str) -> Result<Self, JsonError> {
        let mut list = Self::parse("all, in one list".to_owned(), text)?;
        for tool in &mut list.tools {
            let mut members = Members::parse(tool)?;
            members.remove("server");
            *tool = members.to_json();
        }
        Ok(list)
    }
}

/// All recorded lists, by name.
pub(super) fn read_all(workspace: &Workspace) -> Result<Vec<List>, String> {
    let names = names(workspace, LISTS)?.into_iter();
    let lists = names.map(|name| {
        let file = format!("{LISTS}/{name}.json");
        List::parse(name, &workspace.read(&file)?).map_err(|error| format!("{file}: {error}"))
    });
    lists.collect()
}

/// The cost of every recorded list: its name, its server, and its tokens.
pub(super) fn costs(workspace: &Workspace) -> Result<Vec<(String, String, Cost)>, String> {
    let costs = read_all(workspace)?.into_iter().map(|list| {
        let cost = Cost::of(&list.tools);
        let cost = cost.map_err(|error| format!("{LISTS}/{}.json: {error}", list.name))?;
        Ok((list.name, list.server, cost))
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
    pub(super) fn of(standard: &[String]) -> Result<Self, JsonError> {
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
            standard: count_list(standard),
            compact: count_list(&compact?),
            directory: count_list(&directory),
            unannotated: count_list(&unannotated?),
            read_only_tools: read_only.len(),
            read_only: count_list(&read_only),
        })
    }

    fn figures(&self, name: &str) -> String {
        let Self {
            tools,
            standard,
            compact,
            directory,
            read_only,
            ..
        } = self;
        format!("| {name} | {tools} | {standard} | {compact} | {directory} | {read_only} |")
    }

    pub(super) fn row(&self, name: &str, server: &str) -> String {
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

pub(super) const HEAD: &str = "\
| list | server | tools | `standard` | `compact` | | `directory` | | a tool | `read-only` tools | tokens | |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
";
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
