//! How well a search over tools finds those that a task needs, measured on a set of queries.

mod data;
mod figures;
mod one_field;
mod paired;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use mcp_vary_search::{Query, ToolIndex};

use crate::workspace::Workspace;

use data::{DataSet, Found};
use figures::{DEPTHS, any_hit, hits, task_recall};
use one_field::OneField;
use paired::Comparison;

/// Print how well the search over tools finds what is needed, beside BM25 over one field
///
/// The file is a JSON object with `tools` (`server`, `name`, `title`, `description`, `inputSchema`) and `queries` (`query`,
/// `relevant`: the names of the tools that are needed, `task`: what it is a part of, `returned`: what another router gave).
#[derive(Args)]
pub(crate) struct Recall {
    /// The tools and queries; a small set of the project if none is given
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
}

/// Prints the figures of the data set.
pub(crate) fn recall(workspace: &Workspace, options: &Recall) -> Result<(), String> {
    let path = options.data.clone();
    let path = path.unwrap_or_else(|| workspace.path(SMALL_SET));
    let data = read(&path)?;
    println!("{}: {}\n", path.display(), data.summary());
    let measured = measure(&data)?;
    println!("{}", report(&data, &measured.found)?);
    println!("{}", measured.costs(data.tools.len()));
    Ok(())
}

fn read(path: &Path) -> Result<DataSet, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{} could not be read: {error}", path.display()))?;
    DataSet::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// What the index found, and what that took.
struct Measured<'a> {
    found: Found<'a>,
    build: Duration,
    search: Duration,
    bytes: usize,
}

/// Searches for each query of `data`.
fn measure(data: &DataSet) -> Result<Measured<'_>, String> {
    let begin = Instant::now();
    let mut index = ToolIndex::new();
    for tool in &data.tools {
        index.push(&tool.as_searched());
    }
    let build = begin.elapsed();
    let mut queries = Vec::new();
    for query in &data.queries {
        queries
            .push(Query::new(&query.query).map_err(|error| format!("`{}`: {error}", query.query))?);
    }
    let names = |query: &Query| -> Vec<&str> {
        let results = index.search(query, DEEPEST);
        let tools = results
            .iter()
            .filter_map(|result| data.tools.get(result.position));
        tools.map(|tool| tool.name.as_str()).collect()
    };
    let found: Found<'_> = queries.iter().map(names).collect();
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        for query in &queries {
            std::hint::black_box(index.search(query, DEEPEST));
        }
    }
    let searches = u32::try_from(queries.len()).unwrap_or(u32::MAX);
    let search = begin.elapsed() / ROUNDS / searches.max(1);
    let bytes = index.memory();
    Ok(Measured {
        found,
        build,
        search,
        bytes,
    })
}

impl Measured<'_> {
    fn costs(&self, tools: usize) -> String {
        let note = if cfg!(debug_assertions) {
            " (not optimised; `cargo bench -p mcp-vary-search` measures)"
        } else {
            ""
        };
        format!(
            "{:.0} µs per search, index built in {:.1} ms{note}; {} bytes per tool",
            self.search.as_secs_f64() * 1e6,
            self.build.as_secs_f64() * 1e3,
            self.bytes / tools.max(1),
        )
    }
}

/// The table of all rankings, and the paired tests.
fn report(data: &DataSet, found: &Found<'_>) -> Result<String, String> {
    let one_field = OneField::new(&data.tools);
    let baseline: Found<'_> = data
        .queries
        .iter()
        .map(|query| one_field.search(&query.query, DEEPEST))
        .collect();
    let mut rows = vec![
        row("weighted fields", data, found, DEEPEST),
        row("BM25, one field", data, &baseline, DEEPEST),
    ];
    if let Some(router) = data.returned() {
        let deepest = router.iter().map(Vec::len).max().unwrap_or_default();
        rows.push(row("router", data, &router, deepest));
    }
    let mut lines = vec![
        "| ranking | any-hit@1 | @3 | @5 | @10 | recall of a task@1 | @3 | @5 | @10 |".to_owned(),
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|".to_owned(),
    ];
    lines.append(&mut rows);
    lines.push(String::new());
    for depth in [3, DEEPEST] {
        let comparison = Comparison::new(&hits(data, found, depth), &hits(data, &baseline, depth));
        lines.push(format!(
            "any-hit@{depth}, weighted fields against one field: {comparison}"
        ));
    }
    Ok(lines.join("\n"))
}

/// The row of one ranking, which has no figures for more results than it `deepest` returns.
fn row(name: &str, data: &DataSet, found: &Found<'_>, deepest: usize) -> String {
    let columns = |figure: fn(&DataSet, &Found<'_>, usize) -> f64| {
        let cells = DEPTHS.map(|depth| {
            if depth <= deepest {
                format!("{:.3}", figure(data, found, depth))
            } else {
                "–".to_owned()
            }
        });
        cells.join(" | ")
    };
    format!(
        "| {name} | {} | {} |",
        columns(any_hit),
        columns(task_recall)
    )
}

/// Tools and queries that were written for this.
const SMALL_SET: &str = "spec/search.json";
const DEEPEST: usize = 10;
const ROUNDS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_set_has_these_figures() {
        let data = read(&Workspace::here().path(SMALL_SET)).unwrap();
        let measured = measure(&data).unwrap();
        let report = report(&data, &measured.found).unwrap();
        let expected = "\
| ranking | any-hit@1 | @3 | @5 | @10 | recall of a task@1 | @3 | @5 | @10 |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
| weighted fields | 0.850 | 0.900 | 0.900 | 0.950 | 0.737 | 0.967 | 0.967 | 1.000 |
| BM25, one field | 0.700 | 0.900 | 0.900 | 0.950 | 0.637 | 0.933 | 0.933 | 0.967 |
| router | 0.650 | – | – | – | 0.693 | – | – | – |

any-hit@3, weighted fields against one field: 1 queries more, 1 fewer, p = 1.0000 (McNemar, exact, two-sided)
any-hit@10, weighted fields against one field: 1 queries more, 1 fewer, p = 1.0000 (McNemar, exact, two-sided)";
        assert_eq!(report, expected);
    }
}
