//! The search over the tools that a view lists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_vary::json::{Members, string, to_value};
use mcp_vary_search::{Tool, ToolIndex, argument_names};
use mcp_vary_view::derive::first_sentence;
use mcp_vary_view::escape_invisible;
use mcp_vary_wire::revision::Era;
use serde_json::Value;

pub use mcp_vary_search::Query;

use super::merge::server_name;
use super::shown::ViewItem;

/// An index over the tools of a view. Positions keep their tools when the view changes.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolSearch {
    index: ToolIndex,
    /// The tool at each position of the index; `None` for a gap.
    tools: Vec<Option<Arc<ViewItem>>>,
}

impl ToolSearch {
    /// The index over the listed `items` of `servers`. Only the tools that are not in `before` are read.
    pub(super) fn new(
        items: &[Arc<ViewItem>],
        servers: &[Arc<str>],
        before: Option<&Self>,
    ) -> Self {
        let mut search = before.cloned().unwrap_or_default();
        let listed: BTreeSet<*const ViewItem> = items.iter().map(Arc::as_ptr).collect();
        let mut known = BTreeMap::new();
        let mut gaps = Vec::new();
        for (position, slot) in search.tools.iter_mut().enumerate() {
            let address = slot.as_ref().map(Arc::as_ptr);
            match address.filter(|address| listed.contains(address)) {
                Some(address) => drop(known.insert(address, position)),
                None => {
                    *slot = None;
                    gaps.push(position);
                }
            }
        }
        for position in &gaps {
            // Every gap is a position of the index.
            let _ = search.index.remove(*position);
        }
        for item in items {
            if !known.contains_key(&Arc::as_ptr(item)) {
                let server = server_name(servers, &item.item.item_ref);
                search.insert(item, server, gaps.pop());
            }
        }
        search
    }

    /// Indexes `item` at `gap`, or at the end. Nothing is indexed beyond the limit of the index.
    fn insert(&mut self, item: &Arc<ViewItem>, server: &str, gap: Option<usize>) {
        let described = describe(item);
        let text = |value: &Value, key: &str| {
            let found = value.get(key).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let name = text(&described, "name");
        let description = text(&described, "description");
        let listed = Members::parse(&item.item.json).ok();
        let title = listed
            .and_then(|tool| tool.get_str("title"))
            .unwrap_or_default();
        let summary = first_sentence(&description);
        let no_schema = Value::Null;
        let schema = described.get("inputSchema").unwrap_or(&no_schema);
        let tool = Tool::new(&name, server)
            .title(&title)
            .summary(&summary)
            .description(&description)
            .arguments(argument_names(schema));
        match gap {
            Some(position) => {
                let is_replaced = self.index.replace(position, &tool).is_ok();
                if is_replaced && let Some(slot) = self.tools.get_mut(position) {
                    *slot = Some(Arc::clone(item));
                }
            }
            None if self.index.push(&tool).is_some() => self.tools.push(Some(Arc::clone(item))),
            None => {}
        }
    }

    /// The best tools for `query`, as JSON with the name and the first sentence.
    pub(super) fn find(&self, query: &Query, limit: usize) -> Vec<String> {
        let found = self.index.search(query, limit).into_iter();
        let items = found.filter_map(|found| self.tools.get(found.position)?.as_ref());
        let shown = items.filter_map(|item| {
            let listed = item.visible.as_ref()?;
            let mut shown = Members::default();
            shown.set("name", string(&listed.id));
            let text = listed.text(Era::Legacy);
            let tool = Members::parse(text).ok()?;
            if let Some(description) = tool.get_str("description") {
                shown.set("description", string(&first_sentence(&description)));
            }
            Some(escape_invisible(&shown.to_json()))
        });
        shown.collect()
    }
}

/// The tool as the view describes it: with the view's name and without what it hides.
fn describe(item: &ViewItem) -> Value {
    let prepared = item
        .visible
        .as_ref()
        .and_then(|visible| visible.prepared_tool());
    let described = prepared.and_then(|prepared| prepared.describe(&item.item.json).ok());
    let text = described.as_deref().unwrap_or(&item.item.json);
    to_value(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use mcp_vary_wire::era::Caching;

    use super::*;
    use crate::index::ServerIndex;
    use crate::item::Item;
    use crate::layout::Layout;
    use crate::listing::{ListKind, ListedItem};
    use crate::merge::{MergedList, Naming};
    use crate::variant_set::VariantSet;
    use crate::view::View;

    fn item(name: &str, description: &str) -> Arc<Item> {
        let json =
            format!(r#"{{"name":"{name}","description":"{description}","inputSchema":{{}}}}"#);
        let listed = ListedItem {
            id: name.into(),
            json: json.into(),
        };
        let id = Arc::clone(&listed.id);
        let era = Era::Legacy;
        Arc::new(Item::new(
            ListKind::Tools,
            ServerIndex::FIRST,
            era,
            &listed,
            id,
        ))
    }

    /// The view `directory` of these tools.
    fn view(items: &[Arc<Item>], before: Option<&Arc<View>>) -> Arc<View> {
        let layout = Layout {
            naming: Naming::Never,
            variants: Arc::new(VariantSet::built_in()),
            results: Arc::default(),
            page_size: None,
            caching: Caching::Never,
            read_result: false,
        };
        let merged = MergedList {
            kind: ListKind::Tools,
            passthrough: None,
            frame: r#"{"tools":[]}"#.into(),
            items: Ok(items.to_vec()),
            servers: vec!["files".into()],
            is_complete: true,
            owners: crate::merge::SharedOwners::new(),
            collisions: Vec::new(),
        };
        let directory = &layout.variants.configs()[2];
        assert_eq!(directory.variant.id.as_str(), "directory");
        View::new(directory, &merged, &layout, before, &[])
    }

    fn found(view: &View, query: &str) -> Vec<String> {
        view.search_tools(&Query::new(query).unwrap(), 10)
    }

    #[test]
    fn a_search_follows_the_list() {
        let (read, write) = (item("read", "Reads text."), item("write", "Writes text."));
        let first = view(&[Arc::clone(&read), Arc::clone(&write)], None);
        assert_eq!(found(&first, "text").len(), 2);
        let renamed = [
            Arc::clone(&write),
            item("move", "Moves pictures."),
            item("copy", "Copies text."),
        ];
        let second = view(&renamed, Some(&first));
        assert_eq!(
            found(&second, "pictures"),
            [r#"{"name":"move","description":"Moves pictures."}"#]
        );
        assert_eq!(found(&second, "read"), Vec::<String>::new());
        for query in ["text", "write", "copy text", "files"] {
            let fresh = view(&renamed, None);
            let sorted = |mut found: Vec<String>| {
                found.sort();
                found
            };
            assert_eq!(
                sorted(found(&second, query)),
                sorted(found(&fresh, query)),
                "{query}"
            );
        }
        // A change that nobody searched in is caught up with.
        let third = view(&[read], Some(&view(&[], Some(&second))));
        assert_eq!(
            found(&third, "text"),
            [r#"{"name":"read","description":"Reads text."}"#]
        );
    }
}
