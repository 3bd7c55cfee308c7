//! The cost of the recorded tool lists in each built-in variant.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use mcp_vary::json::{Json, JsonError, Members, elements};
use mcp_vary_view::derive::{compact_tool, is_read_only};
use mcp_vary_view::{DIRECTORY, ListedArguments, Style, directory};

use super::{count_list, count_model_list, names, percent};
use crate::workspace::Workspace;

/// A row for each list, the sums of those that the rules were written with, of those that are held out, and of all, and a
/// row for one gateway in front of all of their servers.
pub(super) fn table(workspace: &Workspace) -> Result<String, String> {
    let mut table = String::from(HEAD);
    let costs = costs(workspace)?;
    for cost in costs.iter().filter(|cost| !cost.is_held_out()) {
        let _ = writeln!(table, "{}", cost.cost.row(&cost.name, &cost.server));
    }
    let _ = writeln!(table, "{}", sum_of(&costs, false).row("**sum**", ""));
    for cost in costs.iter().filter(|cost| cost.is_held_out()) {
        let _ = writeln!(table, "{}", cost.cost.row(&cost.name, &cost.server));
    }
    let _ = writeln!(table, "{}", sum_of(&costs, true).row("**held out**", ""));
    let _ = writeln!(table, "{}", sum(&costs).row("**all**", ""));
    let together = together(workspace)?.row("all, in one list", "");
    let _ = writeln!(table, "{together}");
    Ok(table)
}

/// The tokens alone: a row for each list, and one for all of their servers behind one gateway.
pub(super) fn figures(workspace: &Workspace) -> Result<String, String> {
    let mut table = String::from(
        "| list | tools | whole list | `standard` | `compact` | `directory` | `arguments: required` | `read-only` |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for cost in &costs(workspace)? {
        let _ = writeln!(table, "{}", cost.cost.figures(&cost.name));
    }
    let _ = writeln!(table, "{}", together(workspace)?.figures("all"));
    Ok(table)
}

/// The table for the tools of a data set of `cargo xtask recall`.
pub(super) fn table_of(data: &Path) -> Result<String, String> {
    let path = data.display();
    let text = fs::read_to_string(data).map_err(|error| format!("{path}: {error}"))?;
    let list = List::of_data(&text).map_err(|error| format!("{path}: {error}"))?;
    let cost = Cost::of(&list.tools).map_err(|error| format!("{path}: {error}"))?;
    Ok(format!("{HEAD}{}", cost.row(&list.name, "")))
}

/// The cost of the tools of all lists in one list, which has `describe_tools` once.
fn together(workspace: &Workspace) -> Result<Cost, String> {
    let lists = read_all(workspace)?.into_iter();
    let all: Vec<String> = lists.flat_map(|list| list.tools).collect();
    Cost::of(&all).map_err(|error| error.to_string())
}

/// A list of tools.
#[derive(Debug)]
struct List {
    name: String,
    /// The server's name and version.
    pub(super) server: String,
    /// As JSON without spaces.
    tools: Vec<String>,
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
    fn of_data(text: &str) -> Result<Self, JsonError> {
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
fn read_all(workspace: &Workspace) -> Result<Vec<List>, String> {
    let names = names(workspace, LISTS)?.into_iter();
    let lists = names.map(|name| {
        let file = format!("{LISTS}/{name}.json");
        List::parse(name, &workspace.read(&file)?).map_err(|error| format!("{file}: {error}"))
    });
    lists.collect()
}

/// The cost of a recorded list.
#[derive(Debug)]
struct ListCost {
    name: String,
    server: String,
    cost: Cost,
}

impl ListCost {
    /// Whether no rule was written with the list in view: see `tests/corpus/README.md` of `mcp-vary-view`.
    fn is_held_out(&self) -> bool {
        HELD_OUT.contains(&self.name.as_str())
    }
}

/// The cost of every recorded list.
fn costs(workspace: &Workspace) -> Result<Vec<ListCost>, String> {
    let costs = read_all(workspace)?.into_iter().map(|list| {
        let cost = Cost::of(&list.tools);
        let cost = cost.map_err(|error| format!("{LISTS}/{}.json: {error}", list.name))?;
        let (name, server) = (list.name, list.server);
        Ok(ListCost { name, server, cost })
    });
    costs.collect()
}

/// The cost of all lists together.
fn sum(costs: &[ListCost]) -> Cost {
    costs
        .iter()
        .fold(Cost::default(), |sum, list| sum.plus(&list.cost))
}

/// The cost of the lists that are held out, or of the others.
fn sum_of(costs: &[ListCost], is_held_out: bool) -> Cost {
    let costs = costs
        .iter()
        .filter(|list| list.is_held_out() == is_held_out);
    costs.fold(Cost::default(), |sum, list| sum.plus(&list.cost))
}

/// The tokens that a model gets of one list in each built-in variant.
#[derive(Debug, Default)]
struct Cost {
    tools: usize,
    /// The whole list, with what clients do not forward.
    whole: usize,
    standard: usize,
    compact: usize,
    /// With `describe_tools`.
    directory: usize,
    /// The same with required arguments alone.
    required: usize,
    read_only_tools: usize,
    read_only: usize,
}

impl Cost {
    /// The cost of a list of these tools.
    fn of(standard: &[String]) -> Result<Self, JsonError> {
        let compact: Result<Vec<String>, _> =
            standard.iter().map(|tool| compact_tool(tool)).collect();
        let directory_of = |arguments| {
            let style = Style {
                arguments,
                ..DIRECTORY
            };
            directory(standard, style).map(|tools| count_model_list(&tools))
        };
        let mut read_only = standard.to_vec();
        read_only.retain(|tool| is_read_only(tool));
        Ok(Self {
            tools: standard.len(),
            whole: count_list(standard),
            standard: count_model_list(standard),
            compact: count_model_list(&compact?),
            directory: directory_of(ListedArguments::All)?,
            required: directory_of(ListedArguments::Required)?,
            read_only_tools: read_only.len(),
            read_only: count_model_list(&read_only),
        })
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            tools: self.tools + other.tools,
            whole: self.whole + other.whole,
            standard: self.standard + other.standard,
            compact: self.compact + other.compact,
            directory: self.directory + other.directory,
            required: self.required + other.required,
            read_only_tools: self.read_only_tools + other.read_only_tools,
            read_only: self.read_only + other.read_only,
        }
    }

    fn figures(&self, name: &str) -> String {
        let Self {
            tools,
            whole,
            standard,
            compact,
            directory,
            required,
            read_only,
            ..
        } = self;
        format!(
            "| {name} | {tools} | {whole} | {standard} | {compact} | {directory} | {required} | {read_only} |"
        )
    }

    fn row(&self, name: &str, server: &str) -> String {
        format!(
            "| {name} | {server} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            self.tools,
            self.whole,
            self.standard,
            self.compact,
            percent(self.compact, self.standard),
            self.directory,
            percent(self.directory, self.standard),
            self.directory.div_ceil(self.tools.max(1)),
            self.required,
            percent(self.required, self.standard),
            self.read_only,
        )
    }
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

const HEAD: &str = "\
| list | server | tools | whole list | `standard` | `compact` | | `directory` | | a tool | `arguments: required` | | `read-only` |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
";
/// The lists that no rule was written with.
const HELD_OUT: [&str; 6] = [
    "alchemy",
    "duckdb",
    "excel",
    "map",
    "playwright-all",
    "word",
];
pub(super) const LISTS: &str = "crates/mcp-vary-view/tests/fixtures/tool-lists";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_that_are_held_out_are_recorded() {
        let costs = costs(&Workspace::here()).unwrap();
        let held_out = costs.iter().filter(|list| list.is_held_out());
        assert_eq!(held_out.count(), HELD_OUT.len());
        assert_eq!(costs.len(), 21);
    }

    /// What the lists that are held out cost with the rules before those of today, without `arguments: required`.
    const DIRECTORIES_BEFORE: usize = 12_267;

    /// Annotations stay in the client; `describe_tools` is counted.
    #[test]
    fn directories_cost_what_the_page_promises() {
        let costs = costs(&Workspace::here()).unwrap();
        let all = sum(&costs);
        assert!(all.directory * 100 <= all.standard * 28, "{all:?}");
        assert!(all.required * 100 <= all.standard * 23, "{all:?}");
        let held_out = sum_of(&costs, true);
        let before = DIRECTORIES_BEFORE;
        assert!(held_out.directory * 100 <= before * 85, "{held_out:?}");
        assert!(held_out.required * 100 <= before * 70, "{held_out:?}");
    }

    /// A figure with a comma between thousands, as prose has it.
    fn in_prose(figure: usize) -> String {
        match figure {
            0..1000 => figure.to_string(),
            _ => format!("{},{:03}", figure / 1000, figure % 1000),
        }
    }

    #[test]
    fn the_prose_of_pages_has_the_figures() {
        let workspace = Workspace::here();
        let costs = costs(&workspace).unwrap();
        let of = |name: &str| &costs.iter().find(|list| list.name == name).unwrap().cost;
        let all = together(&workspace).unwrap();
        let (notion, files) = (of("notion"), of("filesystem"));
        let [standard, compact, directory, read_only] =
            [all.standard, all.compact, all.directory, all.read_only].map(in_prose);
        for (page, expected) in [
            (
                "README.md",
                format!(
                    "alone costs {} tokens, {} in `compact`",
                    in_prose(notion.standard),
                    in_prose(notion.compact)
                ),
            ),
            (
                "docs/how-to/small-contexts.md",
                format!("a model gets {standard}, {compact}, {directory} and {read_only} tokens"),
            ),
            (
                "docs/how-to/small-contexts.md",
                format!(
                    "costs {} tokens in `standard`, {} in `compact` and {} in `directory`",
                    in_prose(files.standard),
                    in_prose(files.compact),
                    in_prose(files.directory)
                ),
            ),
        ] {
            let text = workspace.read(page).unwrap();
            assert!(text.contains(&expected), "{page} lacks: {expected}");
        }
    }

    #[test]
    fn no_directory_costs_more_than_compact() {
        for list in costs(&Workspace::here()).unwrap() {
            let cost = &list.cost;
            assert!(cost.directory <= cost.compact, "{list:?}");
            assert!(cost.required <= cost.directory, "{list:?}");
        }
    }
}
