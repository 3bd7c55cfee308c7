//! The search over the tools that clients see in a view.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_vary_base::lock::Lock;
use mcp_vary_search::{Query, Tool as SearchedTool, ToolIndex, argument_names};
use mcp_vary_view::derive::first_sentence;
use rmcp::model::Tool;
use serde_json::{Value, json};

/// The indexes of a view: one for each list of tools that clients saw recently. Clients see different lists if
/// permissions, or the handler itself, hide tools from some of them.
#[derive(Clone, Default)]
pub(super) struct ToolSearch {
    /// The most recently used index is the last. Clones share them.
    recent: Arc<Lock<Vec<IndexedList>>>,
}

impl ToolSearch {
    /// The best of `tools` for `query`: names and first sentences. Only tools that no index has are read.
    pub(super) fn find(
        &self,
        tools: &[&Tool],
        server: &str,
        query: &Query,
        limit: usize,
    ) -> Vec<Value> {
        let mut names = BTreeSet::new();
        let mut tools = tools.to_vec();
        tools.retain(|tool| names.insert(&*tool.name));
        let mut recent = self.recent.lock();
        let mut list = take(&mut recent, &names);
        list.follow(&tools, server);
        let found = list.find(query, limit);
        recent.push(list);
        found
    }
}

/// Takes the index for tools of these names: the one that has them, else a copy of the latest one, or the oldest one if
/// there are many.
fn take(recent: &mut Vec<IndexedList>, names: &BTreeSet<&str>) -> IndexedList {
    let known = recent
        .iter()
        .position(|list| list.names().eq(names.iter().copied()));
    match known {
        Some(at) => recent.remove(at),
        None if recent.len() >= MAX_INDEXES => recent.remove(0),
        None => recent.last().cloned().unwrap_or_default(),
    }
}

/// An index over a list of tools. Positions keep their tools when the list changes.
#[derive(Clone, Default)]
struct IndexedList {
    index: ToolIndex,
    /// The tool at each position of the index; `None` for a gap.
    tools: Vec<Option<Arc<Tool>>>,
    /// The position of each tool.
    positions: BTreeMap<String, usize>,
}

impl IndexedList {
    /// The names of its tools, in order.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.positions.keys().map(String::as_str)
    }

    /// Indexes what changed since the last search, and returns the number of tools that were read. No two of `tools`
    /// have the same name.
    fn follow(&mut self, tools: &[&Tool], server: &str) -> usize {
        let listed: BTreeSet<&str> = tools.iter().map(|tool| &*tool.name).collect();
        let gone = self
            .positions
            .iter()
            .filter(|(name, _)| !listed.contains(name.as_str()));
        let gone: Vec<usize> = gone.map(|(_, position)| *position).collect();
        gone.into_iter().for_each(|position| self.remove(position));

        let gaps = self.tools.iter().enumerate().rev();
        let gaps = gaps.filter_map(|(position, tool)| tool.is_none().then_some(position));
        let mut gaps: Vec<usize> = gaps.collect();
        let mut read = 0;
        for tool in tools {
            let known = self.positions.get(&*tool.name).copied();
            if known.is_some_and(|position| self.tool(position) == Some(*tool)) {
                continue;
            }
            self.insert(tool, server, known.or_else(|| gaps.pop()));
            read += 1;
        }
        read
    }

    fn tool(&self, position: usize) -> Option<&Tool> {
        self.tools.get(position)?.as_deref()
    }

    fn remove(&mut self, position: usize) {
        // Every tool is at a position of the index.
        let _ = self.index.remove(position);
        let removed = self.tools.get_mut(position).and_then(Option::take);
        if let Some(tool) = removed {
            self.positions.remove(&*tool.name);
        }
    }

    /// Indexes `tool` at the position, or at the end. Nothing is indexed beyond the limit of the index.
    fn insert(&mut self, tool: &Tool, server: &str, position: Option<usize>) {
        let description = tool.description.as_deref().unwrap_or_default();
        let summary = first_sentence(description);
        let schema = Value::Object((*tool.input_schema).clone());
        let searched = SearchedTool::new(&tool.name, server)
            .title(tool.title.as_deref().unwrap_or_default())
            .summary(&summary)
            .description(description)
            .arguments(argument_names(&schema));
        let position = match position {
            Some(position) => self
                .index
                .replace(position, &searched)
                .ok()
                .map(|()| position),
            None => self.index.push(&searched),
        };
        let Some(position) = position else {
            return;
        };
        if position >= self.tools.len() {
            self.tools.resize(position + 1, None);
        }
        self.tools[position] = Some(Arc::new(tool.clone()));
        self.positions.insert(tool.name.to_string(), position);
    }

    fn find(&self, query: &Query, limit: usize) -> Vec<Value> {
        let found = self.index.search(query, limit).into_iter();
        let found = found.filter_map(|found| self.tool(found.position));
        let found = found.map(|tool| match tool.description.as_deref() {
            Some(text) => json!({"name": tool.name, "description": first_sentence(text)}),
            None => json!({"name": tool.name}),
        });
        found.collect()
    }
}

/// The largest number of lists that have an index at the same time.
const MAX_INDEXES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> Tool {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let schema = schema.as_object().cloned().unwrap_or_default();
        Tool::new(name.to_owned(), description.to_owned(), Arc::new(schema))
    }

    /// The number of tools that are read for a search over `tools`, and the names that it finds.
    fn searched(list: &mut IndexedList, tools: &[Tool], query: &str) -> (usize, Vec<String>) {
        let tools: Vec<&Tool> = tools.iter().collect();
        let read = list.follow(&tools, "files");
        let found = list.find(&Query::new(query).unwrap(), 10);
        let names = found
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned());
        (read, names.collect())
    }

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn only_the_first_search_reads_all_tools() {
        let mut list = IndexedList::default();
        let tools = [tool("read", "Reads text."), tool("draw", "Draws pictures.")];
        assert_eq!(searched(&mut list, &tools, "text"), (2, strings(&["read"])));
        let expected = (0, strings(&["draw"]));
        assert_eq!(searched(&mut list, &tools, "pictures"), expected);
    }

    #[test]
    fn an_index_follows_changed_added_and_removed_tools() {
        let mut list = IndexedList::default();
        let (read, draw) = (tool("read", "Reads text."), tool("draw", "Draws pictures."));
        searched(&mut list, &[read, draw.clone()], "text");
        let changed = [tool("read", "Reads pictures."), draw.clone()];
        assert_eq!(searched(&mut list, &changed, "text"), (1, Vec::new()));
        assert_eq!(searched(&mut list, &changed, "pictures").1.len(), 2);
        let copy = tool("copy", "Copies text.");
        let added = [draw.clone(), copy, tool("print", "Prints text.")];
        let (count, mut found) = searched(&mut list, &added, "text");
        found.sort();
        assert_eq!((count, found), (2, strings(&["copy", "print"])));
        assert_eq!(searched(&mut list, &added, "read"), (0, Vec::new()));
        assert_eq!(searched(&mut list, &[draw], "text"), (0, Vec::new()));
        assert_eq!(list.positions.len(), 1);
    }

    /// Positions of removed tools are used again.
    #[test]
    fn an_index_does_not_grow_with_its_changes() {
        let mut list = IndexedList::default();
        for number in 0..50 {
            let tools = [
                tool(&format!("one_{number}"), "One."),
                tool(&format!("two_{number}"), "Two."),
            ];
            let expected = [format!("one_{number}")];
            assert_eq!(searched(&mut list, &tools, "one").1, expected);
        }
        assert_eq!((list.tools.len(), list.index.len()), (2, 2));
    }

    #[test]
    fn clients_with_different_lists_have_an_index_each() {
        let search = ToolSearch::default();
        let [read, draw] = [tool("read", "Reads text."), tool("draw", "Draws text.")];
        let lists: [&[&Tool]; 3] = [&[&read, &draw], &[&draw], &[&draw, &draw]];
        let query = Query::new("text").unwrap();
        for (tools, count, indexes) in [
            (lists[0], 2, 1),
            (lists[1], 1, 2),
            (lists[0], 2, 2),
            // A name that is listed twice is indexed once.
            (lists[2], 1, 2),
        ] {
            assert_eq!(search.find(tools, "files", &query, 5).len(), count);
            assert_eq!(search.recent.lock().len(), indexes);
        }
    }

    #[test]
    fn the_number_of_indexes_is_bounded() {
        let search = ToolSearch::default();
        let query = Query::new("text").unwrap();
        for number in 0..20 {
            let tool = tool(&format!("tool_{number}"), "Reads text.");
            assert_eq!(search.find(&[&tool], "files", &query, 5).len(), 1);
        }
        assert_eq!(search.recent.lock().len(), MAX_INDEXES);
    }
}
