//! One variant's view of what the server lists: its items, and the bytes of its lists.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Bytes;
use mcp_vary::json::Members;
use mcp_vary::shape::ToolFacts;
use tracing::warn;

use super::Listings;
use super::face::Face;
use super::listing::{Item, ListKind, Listing};
use crate::bridge::{self, Caching};
use crate::mcp_header::{ParamHeader, param_headers};
use crate::reply::Failure;
use crate::revision::Era;
use crate::splice;

/// What one variant shows.
#[derive(Debug)]
pub(crate) struct View {
    lists: BTreeMap<ListKind, List>,
    tools: BTreeMap<String, Arc<Tool>>,
}

/// What a call needs to know of a tool, as this view lists it.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub(crate) facts: ToolFacts,
    pub(crate) headers: Vec<ParamHeader>,
}

/// The pages of one list for either era, or why there are none.
#[derive(Debug)]
struct List {
    ids: BTreeSet<String>,
    pages: Result<ByEra, Failure>,
}

#[derive(Debug)]
struct ByEra {
    legacy: Vec<Page>,
    modern: Vec<Page>,
}

/// One page of a list: its result without the closing brace, and where the next one starts.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    open: Bytes,
    first: usize,
    next: Option<usize>,
}

impl Page {
    /// The result in two parts, the second with `cursor` as `nextCursor`.
    pub(crate) fn result(&self, cursor: Option<&str>) -> (&[u8], String) {
        let end = match cursor {
            Some(cursor) => format!(r#","nextCursor":{}}}"#, mcp_vary::json::string(cursor)),
            None => "}".to_owned(),
        };
        (&self.open, end)
    }

    /// The index of the first item on the next page.
    pub(crate) fn next(&self) -> Option<usize> {
        self.next
    }
}

/// How lists are cut and cached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) page_size: Option<NonZeroUsize>,
    pub(crate) caching: Caching,
    /// The era of the server: what it lists may be unknown to the other.
    pub(crate) upstream: Era,
}

impl View {
    pub(crate) fn new(face: Face, listings: &Listings, layout: Layout) -> Self {
        let mut lists = BTreeMap::new();
        let mut tools = BTreeMap::new();
        for (kind, listing) in listings {
            let items = match listing {
                Ok(listing) => seen(face, *kind, &listing.items),
                Err(_) => Vec::new(),
            };
            if let (ListKind::Tools, Ok(listing)) = (kind, listing) {
                tools = Tool::all(&listing.items);
                let shown: BTreeSet<_> = items.iter().map(|(id, _)| id.as_str()).collect();
                tools.retain(|name, _| shown.contains(name.as_str()));
            }
            lists.insert(*kind, List::new(face, *kind, listing, &items, layout));
        }
        Self { lists, tools }
    }

    /// The tool that the view lists as `name`.
    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    /// Whether the view lists `id`.
    pub(crate) fn lists(&self, kind: ListKind, id: &str) -> bool {
        self.lists
            .get(&kind)
            .is_some_and(|list| list.ids.contains(id))
    }

    /// The page that starts at item `first`.
    pub(crate) fn page(
        &self,
        kind: ListKind,
        era: Era,
        first: usize,
    ) -> Result<&Page, Option<Failure>> {
        let list = self.lists.get(&kind).ok_or(None)?;
        let pages = match (&list.pages, era) {
            (Err(failure), _) => return Err(Some(failure.clone())),
            (Ok(pages), Era::Legacy) => &pages.legacy,
            (Ok(pages), Era::Modern) => &pages.modern,
        };
        pages.iter().find(|page| page.first == first).ok_or(None)
    }
}

/// The items that `face` shows, as it shows them. Of items with one name all must be for it to show.
fn seen(face: Face, kind: ListKind, items: &[Item]) -> Vec<(String, Cow<'_, str>)> {
    let hides = |item: &&Item| face.show(kind, &item.json).is_none();
    let hidden: BTreeSet<_> = items.iter().filter(hides).map(|item| &item.id).collect();
    items
        .iter()
        .filter(|item| !hidden.contains(&item.id))
        .filter_map(|item| Some((item.id.clone(), face.show(kind, &item.json)?)))
        .collect()
}

impl Tool {
    /// Nobody knows which of two tools with one name a client or the server means: what either promises
    /// is kept.
    fn all(items: &[Item]) -> BTreeMap<String, Arc<Self>> {
        let mut tools: BTreeMap<String, Self> = BTreeMap::new();
        for item in items {
            let tool = Self::read(&item.id, &item.json);
            match tools.get_mut(&item.id) {
                Some(first) => {
                    first.facts.output_schema |= tool.facts.output_schema;
                    first.facts.ui |= tool.facts.ui;
                }
                None => drop(tools.insert(item.id.clone(), tool)),
            }
        }
        let shared = tools.into_iter().map(|(name, tool)| (name, Arc::new(tool)));
        shared.collect()
    }

    /// Reads the server's own definition, whatever the view shows of it: SDK clients hold a result against
    /// the schema that they saw first, in whichever variant that was.
    fn read(name: &str, json: &str) -> Self {
        let members = Members::parse(json).unwrap_or_default();
        let schema = members.get("inputSchema").unwrap_or("{}");
        let headers = param_headers(schema).unwrap_or_else(|why| {
            warn!(tool = name, why, "annotations of the tool ignored");
            Vec::new()
        });
        let ui = members
            .get("_meta")
            .and_then(|meta| Members::parse(meta).ok())
            .is_some_and(|meta| meta.contains("ui") || meta.contains("ui/resourceUri"));
        let facts = ToolFacts {
            output_schema: members.contains("outputSchema"),
            ui,
        };
        Self { facts, headers }
    }
}

impl List {
    fn new(
        face: Face,
        kind: ListKind,
        listing: &Result<Listing, Failure>,
        items: &[(String, Cow<'_, str>)],
        layout: Layout,
    ) -> Self {
        let ids = items.iter().map(|(id, _)| id.clone()).collect();
        let listing = match listing {
            Ok(listing) => listing,
            Err(failure) => {
                return Self {
                    ids,
                    pages: Err(failure.clone()),
                };
            }
        };
        let texts: Vec<_> = items.iter().map(|(_, json)| json.as_ref()).collect();
        let complete = face == Face::Standard && layout.page_size.is_none();
        let whole = listing.whole.as_deref().filter(|_| complete);
        let legacy_texts = legacy_items(kind, &texts, layout.upstream);
        let untouched = legacy_texts
            .iter()
            .all(|text| matches!(text, Cow::Borrowed(_)));
        let legacy_refs: Vec<_> = legacy_texts.iter().map(AsRef::as_ref).collect();
        let legacy_whole = whole.filter(|_| untouched);
        let for_era =
            |era, texts: &[&str], whole| pages(kind, era, texts, &listing.frame, whole, layout);
        Self {
            ids,
            pages: Ok(ByEra {
                legacy: for_era(Era::Legacy, &legacy_refs, legacy_whole),
                modern: for_era(Era::Modern, &texts, whole),
            }),
        }
    }
}

/// Legacy clients know output schemas of objects only; a modern server may list others.
fn legacy_items<'a>(kind: ListKind, texts: &[&'a str], upstream: Era) -> Vec<Cow<'a, str>> {
    texts
        .iter()
        .map(|text| match (kind, upstream) {
            (ListKind::Tools, Era::Modern) => without_foreign_schema(text),
            _ => Cow::Borrowed(*text),
        })
        .collect()
}

fn without_foreign_schema(tool: &str) -> Cow<'_, str> {
    let is_object =
        |schema: &str| splice::get(schema, "type").is_some_and(|kind| kind == "\"object\"");
    match splice::get(tool, "outputSchema") {
        Some(schema) if !is_object(schema) => splice::cut(tool, "outputSchema"),
        _ => Cow::Borrowed(tool),
    }
}

fn pages(
    kind: ListKind,
    era: Era,
    items: &[&str],
    frame: &str,
    whole: Option<&str>,
    layout: Layout,
) -> Vec<Page> {
    if let Some(whole) = whole {
        let result = downward(whole, era, layout.caching);
        return vec![Page::from_result(&result, 0, None)];
    }
    let size = layout
        .page_size
        .map_or(items.len().max(1), NonZeroUsize::get);
    let starts = (0..items.len().max(1)).step_by(size);
    starts
        .map(|first| {
            let last = (first + size).min(items.len());
            let mut members = Members::parse(frame).unwrap_or_default();
            members.set(
                kind.items_key(),
                format!("[{}]", items[first..last].join(",")),
            );
            let result = downward(&members.to_json(), era, layout.caching);
            Page::from_result(&result, first, (last < items.len()).then_some(last))
        })
        .collect()
}

fn downward(result: &str, era: Era, caching: Caching) -> String {
    bridge::result_downward(result, era, caching).into_owned()
}

impl Page {
    fn from_result(result: &str, first: usize, next: Option<usize>) -> Self {
        let open = result.trim_end().strip_suffix('}').unwrap_or(result);
        Self {
            open: Bytes::copy_from_slice(open.as_bytes()),
            first,
            next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(texts: &[&str]) -> Vec<Item> {
        let item = |text: &&str| Item {
            id: "x".to_owned(),
            json: (*text).to_owned(),
        };
        texts.iter().map(item).collect()
    }

    const READS: &str = r#"{"name":"x","annotations":{"readOnlyHint":true}}"#;
    const WRITES: &str = r#"{"name":"x","outputSchema":{"type":"object"}}"#;

    #[test]
    fn a_name_that_writes_too_is_not_read_only() {
        let shown = |texts: &[&str]| seen(Face::ReadOnly, ListKind::Tools, &items(texts)).len();
        assert_eq!(shown(&[READS, READS]), 2);
        assert_eq!(shown(&[READS, WRITES]), 0);
        assert_eq!(shown(&[WRITES, READS]), 0);
    }

    #[test]
    fn what_one_of_two_tools_promises_is_kept() {
        for order in [[READS, WRITES], [WRITES, READS]] {
            assert!(Tool::all(&items(&order))["x"].facts.output_schema);
        }
    }
}
