//! A set of tools, and of queries with the tools that they should find.

use std::collections::BTreeSet;

use mcp_vary_search::{Tool, argument_names};
use mcp_vary_view::derive::first_sentence;
use serde::Deserialize;
use serde_json::Value;

/// The names that each query of a data set found, best first.
pub(super) type Found<'a> = Vec<Vec<&'a str>>;

/// What a file contains.
#[derive(Debug)]
pub(super) struct DataSet {
    pub(super) tools: Vec<ListedTool>,
    pub(super) queries: Vec<LabelledQuery>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    tools: Vec<ListedTool>,
    queries: Vec<LabelledQuery>,
}

/// A tool as servers list it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedTool {
    #[serde(default)]
    server: String,
    pub(super) name: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    input_schema: Value,
    #[serde(skip)]
    summary: String,
}

/// What was searched for, and what was needed.
#[derive(Debug, Deserialize)]
pub(super) struct LabelledQuery {
    pub(super) query: String,
    pub(super) relevant: BTreeSet<String>,
    /// What the query is a part of; queries without one are each their own.
    pub(super) task: Option<Value>,
    returned: Option<Vec<String>>,
}

impl DataSet {
    /// The data set that `text` writes.
    ///
    /// # Errors
    ///
    /// If it has another shape, has no tools or queries, or a query needs a tool that is not there.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let File { mut tools, queries } =
            serde_json::from_str(text).map_err(|error| format!("{error}; {SHAPE}"))?;
        if tools.is_empty() || queries.is_empty() {
            return Err(format!("`tools` or `queries` is empty; {SHAPE}"));
        }
        for tool in &mut tools {
            tool.summary = first_sentence(&tool.description);
        }
        let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        for (number, query) in queries.iter().enumerate() {
            let place = format!("queries[{number}].relevant");
            if query.relevant.is_empty() {
                return Err(format!("`{place}` is empty; name at least one tool"));
            }
            let unknown = query
                .relevant
                .iter()
                .find(|name| !names.contains(name.as_str()));
            if let Some(unknown) = unknown {
                return Err(format!(
                    "`{place}` names `{unknown}`, which is not in `tools`"
                ));
            }
        }
        Ok(Self { tools, queries })
    }

    /// What it contains, in a line.
    pub(super) fn summary(&self) -> String {
        let servers: BTreeSet<&str> = self.tools.iter().map(|tool| tool.server.as_str()).collect();
        format!(
            "{} tools of {} servers, {} queries of {} tasks",
            self.tools.len(),
            servers.len(),
            self.queries.len(),
            self.by_task().len()
        )
    }

    /// The numbers of the queries of each task.
    pub(super) fn by_task(&self) -> Vec<Vec<usize>> {
        let mut tasks: Vec<(Option<&Value>, Vec<usize>)> = Vec::new();
        for (number, query) in self.queries.iter().enumerate() {
            let task = query.task.as_ref();
            let same = tasks
                .iter_mut()
                .find(|(other, _)| task.is_some() && *other == task);
            match same {
                Some((_, numbers)) => numbers.push(number),
                None => tasks.push((task, vec![number])),
            }
        }
        tasks.into_iter().map(|(_, numbers)| numbers).collect()
    }

    /// What another router returned, if the file has it for any query.
    pub(super) fn returned(&self) -> Option<Found<'_>> {
        let returned = self.queries.iter().map(|query| {
            let names = query.returned.iter().flatten();
            names.map(String::as_str).collect()
        });
        let is_known = self.queries.iter().any(|query| query.returned.is_some());
        is_known.then(|| returned.collect())
    }
}

impl ListedTool {
    /// The tool as the index reads it.
    pub(super) fn as_searched(&self) -> Tool<'_> {
        Tool::new(&self.name, &self.server)
            .title(&self.title)
            .summary(&self.summary)
            .description(&self.description)
            .arguments(argument_names(&self.input_schema))
    }
}

const SHAPE: &str = "a data set is an object with `tools` ([{server, name, title, description, inputSchema}]) and `queries` \
     ([{query, relevant, task, returned}]); only `name`, `query` and `relevant` are required";
