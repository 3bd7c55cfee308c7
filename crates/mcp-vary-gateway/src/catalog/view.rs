//! One variant's view of what the server lists: its items, and the bytes of its lists.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Bytes;
use mcp_vary::json::Members;
use mcp_vary::shape::ToolFacts;
use tracing::warn;

use super::face::Face;
use super::listing::ListKind;
use super::merge::{Item, Merged, Naming, Place};
use super::template::Template;
use crate::bridge::{self, Caching};
use crate::mcp_header::{ParamHeader, param_headers};
use crate::reply::Failure;
use crate::revision::Era;
use crate::splice;

/// What one variant shows of one list.
#[derive(Debug)]
pub(crate) struct View {
    places: BTreeMap<Arc<str>, Place>,
    tools: BTreeMap<Arc<str>, Arc<Tool>>,
    templates: Vec<(Template, Place)>,
    pages: Result<ByEra, Failure>,
}

/// What a call needs to know of a tool, as this view lists it.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub(crate) place: Place,
    pub(crate) facts: ToolFacts,
    pub(crate) headers: Vec<ParamHeader>,
    /// Whether calling it twice does no more than calling it once, by its own word.
    pub(crate) idempotent: bool,
}

/// The pages of one list for either era.
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

/// How lists are named, cut and cached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) naming: Naming,
    pub(crate) page_size: Option<NonZeroUsize>,
    pub(crate) caching: Caching,
}

impl View {
    pub(crate) fn new(face: Face, merged: &Merged, layout: Layout) -> Self {
        let kind = merged.kind;
        let shown = seen(face, kind, merged.items());
        let mut places = BTreeMap::new();
        for (item, _) in &shown {
            let place = places.entry(Arc::clone(&item.id));
            place.or_insert_with(|| item.place.clone());
        }
        let mut tools = BTreeMap::new();
        if kind == ListKind::Tools {
            tools = Tool::all(merged.items());
            tools.retain(|name, _| places.contains_key(name));
        }
        let templates = shown.iter().filter(|_| kind == ListKind::Templates);
        let templates = templates.map(|(item, _)| (Template::new(&item.id), item.place.clone()));
        Self {
            templates: templates.collect(),
            pages: match &merged.items {
                Ok(_) => Ok(ByEra::new(face, merged, &shown, layout)),
                Err(failure) => Err(failure.clone()),
            },
            places,
            tools,
        }
    }

    /// The tool that the view lists as `name`.
    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    /// Where what the view lists as `id` comes from.
    pub(crate) fn place(&self, id: &str) -> Option<&Place> {
        self.places.get(id)
    }

    /// The first template that may stand for `uri`.
    pub(crate) fn stands_for(&self, uri: &str) -> Option<&Place> {
        let found = self
            .templates
            .iter()
            .find(|(template, _)| template.matches(uri));
        found.map(|(_, place)| place)
    }

    /// The page that starts at item `first`.
    pub(crate) fn page(&self, era: Era, first: usize) -> Result<&Page, Option<Failure>> {
        let pages = match (&self.pages, era) {
            (Err(failure), _) => return Err(Some(failure.clone())),
            (Ok(pages), Era::Legacy) => &pages.legacy,
            (Ok(pages), Era::Modern) => &pages.modern,
        };
        pages.iter().find(|page| page.first == first).ok_or(None)
    }
}

/// The items that `face` shows, and as what. Of items with one name all must be for it to show.
fn seen(face: Face, kind: ListKind, items: &[Item]) -> Vec<(&Item, Cow<'_, str>)> {
    let hides = |item: &&Item| face.show(kind, &item.json).is_none();
    let hidden: BTreeSet<_> = items.iter().filter(hides).map(|item| &item.id).collect();
    items
        .iter()
        .filter(|item| !hidden.contains(&item.id))
        .filter_map(|item| Some((item, face.show(kind, &item.json)?)))
        .collect()
}

impl Tool {
    /// Nobody knows which of two tools with one name a client or the server means: what either promises
    /// is kept.
    fn all(items: &[Item]) -> BTreeMap<Arc<str>, Arc<Self>> {
        let mut tools: BTreeMap<Arc<str>, Self> = BTreeMap::new();
        for item in items {
            let tool = Self::read(item);
            match tools.get_mut(&item.id) {
                Some(first) => {
                    first.facts.output_schema |= tool.facts.output_schema;
                    first.facts.ui |= tool.facts.ui;
                    first.idempotent &= tool.idempotent;
                }
                None => drop(tools.insert(Arc::clone(&item.id), tool)),
            }
        }
        let shared = tools.into_iter().map(|(name, tool)| (name, Arc::new(tool)));
        shared.collect()
    }

    /// Reads the server's own definition, whatever the view shows of it: SDK clients hold a result against
    /// the schema that they saw first, in whichever variant that was.
    fn read(item: &Item) -> Self {
        let members = Members::parse(&item.json).unwrap_or_default();
        let schema = members.get("inputSchema").unwrap_or("{}");
        let headers = param_headers(schema).unwrap_or_else(|why| {
            warn!(tool = &*item.id, why, "annotations of the tool ignored");
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
        Self {
            place: item.place.clone(),
            facts,
            headers,
            idempotent: is_idempotent(&members),
        }
    }
}

/// > If true, calling the tool repeatedly with the same arguments will have no additional effect on its
/// > environment. (This property is meaningful only when `readOnlyHint == false`)
/// > (MCP 2025-11-25, schema, `ToolAnnotations.idempotentHint`)
fn is_idempotent(tool: &Members<'_>) -> bool {
    let annotations = tool
        .get("annotations")
        .and_then(|it| Members::parse(it).ok());
    annotations.is_some_and(|annotations| {
        ["idempotentHint", "readOnlyHint"]
            .iter()
            .any(|hint| annotations.get(hint) == Some("true"))
    })
}

impl ByEra {
    fn new(face: Face, merged: &Merged, shown: &[(&Item, Cow<'_, str>)], layout: Layout) -> Self {
        let texts: Vec<_> = shown.iter().map(|(_, json)| json.as_ref()).collect();
        let complete = face == Face::Standard && layout.page_size.is_none();
        let whole = merged.whole.as_deref().filter(|_| complete);
        let legacy_texts = legacy_items(merged.kind, shown);
        let untouched = legacy_texts
            .iter()
            .all(|text| matches!(text, Cow::Borrowed(_)));
        let legacy_refs: Vec<_> = legacy_texts.iter().map(AsRef::as_ref).collect();
        let legacy_whole = whole.filter(|_| untouched);
        let for_era = |era, texts: &[&str], whole| {
            pages(merged.kind, era, texts, &merged.frame, whole, layout)
        };
        Self {
            legacy: for_era(Era::Legacy, &legacy_refs, legacy_whole),
            modern: for_era(Era::Modern, &texts, whole),
        }
    }
}

/// Legacy clients know output schemas of objects only; a modern server may list others.
fn legacy_items<'a>(kind: ListKind, shown: &'a [(&Item, Cow<'_, str>)]) -> Vec<Cow<'a, str>> {
    let shown = shown.iter();
    shown
        .map(|(item, json)| match (kind, item.era) {
            (ListKind::Tools, Era::Modern) => without_foreign_schema(json),
            _ => Cow::Borrowed(json.as_ref()),
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
            id: "x".into(),
            json: (*text).into(),
            place: Place {
                server: 0,
                own: "x".into(),
            },
            era: Era::Legacy,
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
