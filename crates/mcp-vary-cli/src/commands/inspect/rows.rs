//! The table of `vary inspect`: the sums of each variant, then the tokens of each tool.

use super::task_cost::TOOLS_OF_A_TASK;
use super::{Inspection, VariantTools};
use crate::tokens;

impl Inspection {
    /// The sums of the variants, then the tokens of each tool.
    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let row = |title: &str, cell: &dyn Fn(&VariantTools) -> String| {
            let cells = self.variants.iter().map(cell);
            std::iter::once(title.to_owned())
                .chain(cells)
                .collect::<Vec<_>>()
        };
        let mut rows = vec![row("tokens", &|variant| {
            variant.id().unwrap_or("as listed").to_owned()
        })];
        rows.push(row("a model reads", &|variant| variant.tokens.to_string()));
        if let Some(compared) = &self.compared {
            rows.push(row(&format!("of {compared}"), &|variant| {
                format!("{} %", tokens::percent(variant.tokens, self.whole))
            }));
        }
        let is_longer = |variant: &VariantTools| variant.whole != variant.tokens;
        if self.variants.iter().any(is_longer) {
            rows.push(row("sent to the client", &|variant| {
                variant.whole.to_string()
            }));
        }
        for (list, _) in self.variants.iter().flat_map(|variant| &variant.others) {
            if rows.iter().all(|row| row[0] != *list) {
                rows.push(row(list, &|variant| variant.other(list)));
            }
        }
        for size in self.task_sizes() {
            let plural = if size == 1 { "" } else { "s" };
            rows.push(row(
                &format!("a task with {size} tool{plural}"),
                &|variant| variant.task_tokens(size).to_string(),
            ));
        }
        if self.is_summary {
            return rows;
        }
        rows.push(row("by tool", &|_| String::new()));
        for (server, names) in self.names() {
            let indent = if server.is_some() { "  " } else { "" };
            if let Some(server) = server {
                rows.push(row(server, &|variant| {
                    let listed = variant
                        .tools
                        .iter()
                        .filter(|tool| names.contains(&tool.name.as_str()));
                    listed.map(|tool| tool.tokens).sum::<usize>().to_string()
                }));
            }
            for name in names {
                rows.push(row(&format!("{indent}{name}"), &|variant| {
                    let tool = variant.tools.iter().find(|tool| tool.name == name);
                    tool.map_or_else(|| "-".to_owned(), |tool| tool.tokens.to_string())
                }));
            }
        }
        rows
    }

    /// The numbers of distinct tools for which the cost of a task is shown: none if no variant has schemas on demand,
    /// since each task then costs its list.
    pub(super) fn task_sizes(&self) -> Vec<usize> {
        let costs = self
            .variants
            .iter()
            .filter_map(|variant| variant.descriptions);
        let most = costs.map(|cost| cost.tools()).max().unwrap_or(0);
        let sizes = TOOLS_OF_A_TASK.into_iter();
        sizes.filter(|size| *size <= most).collect()
    }

    /// The tools of all variants, each once, in the order of the first variant that has it; grouped by server if there
    /// are several.
    fn names(&self) -> Vec<(Option<&str>, Vec<&str>)> {
        let mut groups: Vec<(Option<&str>, Vec<&str>)> = Vec::new();
        for tool in self.variants.iter().flat_map(|variant| &variant.tools) {
            let server = self.server_of(&tool.name);
            let known = groups.iter().position(|(of, _)| *of == server);
            let at = known.unwrap_or_else(|| {
                groups.push((server, Vec::new()));
                groups.len() - 1
            });
            if !groups[at].1.contains(&tool.name.as_str()) {
                groups[at].1.push(&tool.name);
            }
        }
        groups
    }

    /// The server of a tool, if there are several.
    pub(super) fn server_of(&self, tool: &str) -> Option<&str> {
        if self.summary.servers.len() < 2 {
            return None;
        }
        let mut served = self.summary.served.iter();
        let found = served.find(|served| served.list == "tools/list" && served.id == tool);
        found.map(|served| served.server.as_str())
    }
}

impl VariantTools {
    /// The tokens of a list besides the tools.
    fn other(&self, list: &str) -> String {
        let mut others = self.others.iter();
        let found = others.find(|(other, _)| *other == list);
        found.map_or_else(|| "-".to_owned(), |(_, tokens)| tokens.to_string())
    }
}

/// What the rows about tasks count.
pub(super) const TASK_NOTE: &str =
    "a task reads the list; in `directory`, each tool that is used adds its schema\n";
