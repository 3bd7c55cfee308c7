//! One variant's view of what the server lists: its items, and the bytes of its lists.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Bytes;
use mcp_vary::json::Members;
use mcp_vary::shape::ToolFacts;
use mcp_vary::view::{self, Mistake, PreparedPrompt, PreparedTool};
use tracing::warn;

use super::face::{Faces, Prepared, Shown, VariantConfig, candidate};
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
    prompts: BTreeMap<Arc<str>, Arc<Prompt>>,
    templates: Vec<(Template, Place)>,
    pages: Result<ByEra, Failure>,
    /// What is wrong with the variant's configuration, as far as this list shows.
    pub(crate) mistakes: Vec<Mistake>,
}

/// What a call needs to know of a tool, as this view lists it.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) place: Place,
    pub(crate) facts: ToolFacts,
    /// The headers that the view's clients send.
    pub(crate) headers: Vec<ParamHeader>,
    /// The headers that the server takes.
    pub(crate) own_headers: Vec<ParamHeader>,
    /// Whether calling it twice does no more than calling it once, by its own word.
    pub(crate) idempotent: bool,
    /// What becomes of the arguments; they are sent on as they are without it.
    pub(crate) prepared: Option<PreparedTool>,
}

/// What a request needs to know of a prompt, as this view lists it.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) place: Place,
    /// What becomes of the arguments; they are sent on as they are without it.
    pub(crate) prepared: Option<PreparedPrompt>,
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

/// How lists are named, shown, cut and cached.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) naming: Naming,
    pub(crate) faces: Arc<Faces>,
    pub(crate) page_size: Option<NonZeroUsize>,
    pub(crate) caching: Caching,
}

impl View {
    pub(crate) fn new(face: &VariantConfig, merged: &Merged, layout: &Layout) -> Self {
        let kind = merged.kind;
        let mut mistakes = slips(face, merged);
        let shown = seen(face, merged, &mut mistakes);
        let pages = match &merged.items {
            Ok(_) => Ok(ByEra::new(face, merged, &shown, layout)),
            Err(failure) => Err(failure.clone()),
        };
        let mut view = Self {
            places: BTreeMap::new(),
            tools: BTreeMap::new(),
            prompts: BTreeMap::new(),
            templates: Vec::new(),
            pages,
            mistakes,
        };
        for shown in shown {
            view.take(kind, shown);
        }
        view
    }

    /// Takes one item that the view shows. Of several with one name the first is the one that is asked for.
    fn take(&mut self, kind: ListKind, shown: Shown<'_>) {
        let (id, place) = (shown.id, shown.item.place.clone());
        if kind == ListKind::Templates {
            // What it stands for is the server's, whatever the view calls it.
            self.templates
                .push((Template::new(&place.own), place.clone()));
        }
        match (kind, shown.call) {
            (ListKind::Tools, call) => {
                let prepared = match call {
                    Some(Prepared::Tool(prepared)) => Some(prepared),
                    _ => None,
                };
                let tool = Tool::read(shown.item, &shown.json, prepared);
                match self.tools.get_mut(&id).and_then(Arc::get_mut) {
                    Some(first) => first.is_also(&tool),
                    None => drop(self.tools.insert(Arc::clone(&id), Arc::new(tool))),
                }
            }
            (ListKind::Prompts, call) if !self.prompts.contains_key(&id) => {
                let prepared = match call {
                    Some(Prepared::Prompt(prepared)) => Some(prepared),
                    _ => None,
                };
                let place = place.clone();
                let prompt = Arc::new(Prompt { place, prepared });
                self.prompts.insert(Arc::clone(&id), prompt);
            }
            _ => {}
        }
        self.places.entry(id).or_insert(place);
    }

    /// The tool that the view lists as `name`.
    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    /// The prompt that the view lists as `name`.
    pub(crate) fn prompt(&self, name: &str) -> Option<&Arc<Prompt>> {
        self.prompts.get(name)
    }

    /// Everything that the view lists, and where it comes from.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&Arc<str>, &Place)> {
        self.places.iter()
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

/// The items that `face` shows. Of items with one name all must be for it to show, and of two that it gives
/// one name the first is shown.
fn seen<'a>(
    face: &VariantConfig,
    merged: &'a Merged,
    mistakes: &mut Vec<Mistake>,
) -> Vec<Shown<'a>> {
    let kind = merged.kind;
    let (mut all, mut hidden) = (Vec::new(), BTreeSet::new());
    for item in merged.items() {
        match face.show(kind, item, &merged.servers[item.place.server], mistakes) {
            Some(shown) => all.push(shown),
            None => drop(hidden.insert(Arc::clone(&item.id))),
        }
    }
    all.retain(|shown| !hidden.contains(&shown.item.id));
    let mut owners: BTreeMap<Arc<str>, Arc<str>> = BTreeMap::new();
    let named: Vec<_> = all
        .iter()
        .map(|it| (Arc::clone(&it.item.id), Arc::clone(&it.id)))
        .collect();
    all.retain(|shown| {
        let owner = owners.entry(Arc::clone(&shown.id));
        *owner.or_insert_with(|| Arc::clone(&shown.item.id)) == shown.item.id
    });
    if all.len() < named.len() {
        let pairs: BTreeSet<_> = named.iter().map(|(own, name)| (&**own, &**name)).collect();
        mistakes.extend(view::collisions(kind.items_key(), pairs));
    }
    all
}

/// What the configuration of `face` says of items that are not there.
fn slips(face: &VariantConfig, merged: &Merged) -> Vec<Mistake> {
    let Ok(items) = &merged.items else {
        return Vec::new();
    };
    let kind = merged.kind;
    // What is not there now may be a server's that is down.
    if !merged.is_complete {
        return Vec::new();
    }
    // Resources and templates share their part of the configuration; which one is meant is not known.
    if matches!(kind, ListKind::Resources | ListKind::Templates) || items.is_empty() {
        return Vec::new();
    }
    let names: Vec<_> = items.iter().map(|item| &*item.id).collect();
    let mut mistakes = view::unknown_items(kind.items_key(), face.overridden(kind), &names);
    let candidates = items
        .iter()
        .map(|item| candidate(kind, item, &merged.servers[item.place.server]));
    let candidates: Vec<_> = candidates.collect();
    let selection = face.selection(kind);
    mistakes.extend(selection.mistakes(kind.items_key(), &candidates));
    mistakes
}

impl Tool {
    /// Reads the server's own definition beside what the view shows of it: SDK clients hold a result against
    /// the schema that they saw first, in whichever variant that was.
    fn read(item: &Item, shown: &str, prepared: Option<PreparedTool>) -> Self {
        let members = Members::parse(&item.json).unwrap_or_default();
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
            headers: headers_of(&item.id, shown),
            own_headers: headers_of(&item.id, &item.json),
            idempotent: is_idempotent(&members),
            prepared,
        }
    }

    /// Nobody knows which of two tools with one name a client or the server means: what either promises
    /// is kept.
    fn is_also(&mut self, other: &Self) {
        self.facts.output_schema |= other.facts.output_schema;
        self.facts.ui |= other.facts.ui;
        self.idempotent &= other.idempotent;
    }
}

fn headers_of(name: &str, tool: &str) -> Vec<ParamHeader> {
    let schema = splice::get(tool, "inputSchema").unwrap_or("{}");
    param_headers(schema).unwrap_or_else(|why| {
        warn!(tool = name, why, "annotations of the tool ignored");
        Vec::new()
    })
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
    fn new(face: &VariantConfig, merged: &Merged, shown: &[Shown<'_>], layout: &Layout) -> Self {
        let texts: Vec<_> = shown.iter().map(|shown| shown.json.as_ref()).collect();
        let complete = face.is_plain() && layout.page_size.is_none();
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
fn legacy_items<'a>(kind: ListKind, shown: &'a [Shown<'_>]) -> Vec<Cow<'a, str>> {
    let shown = shown.iter();
    shown
        .map(|shown| match (kind, shown.item.era) {
            (ListKind::Tools, Era::Modern) => without_foreign_schema(&shown.json),
            _ => Cow::Borrowed(shown.json.as_ref()),
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
    layout: &Layout,
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

    fn merged(texts: &[&str]) -> Merged {
        let item = |text: &&str| Item {
            id: "x".into(),
            json: (*text).into(),
            place: Place {
                server: 0,
                own: "x".into(),
            },
            era: Era::Legacy,
        };
        Merged {
            kind: ListKind::Tools,
            whole: None,
            frame: r#"{"tools":[]}"#.into(),
            items: Ok(texts.iter().map(item).collect()),
            servers: vec!["a".into()],
            is_complete: true,
            collisions: Vec::new(),
        }
    }

    fn layout() -> Layout {
        let faces = Faces::built_in();
        Layout {
            naming: Naming::Never,
            faces: Arc::new(faces),
            page_size: None,
            caching: Caching::Never,
        }
    }

    const READS: &str = r#"{"name":"x","annotations":{"readOnlyHint":true}}"#;
    const WRITES: &str = r#"{"name":"x","outputSchema":{"type":"object"}}"#;

    #[test]
    fn a_name_that_writes_too_is_not_read_only() {
        let layout = layout();
        let shown = |texts: &[&str]| {
            let merged = merged(texts);
            seen(&layout.faces.all[2], &merged, &mut Vec::new()).len()
        };
        assert_eq!(shown(&[READS, READS]), 2);
        assert_eq!(shown(&[READS, WRITES]), 0);
        assert_eq!(shown(&[WRITES, READS]), 0);
    }

    #[test]
    fn what_one_of_two_tools_promises_is_kept() {
        let layout = layout();
        for order in [[READS, WRITES], [WRITES, READS]] {
            let view = View::new(&layout.faces.all[0], &merged(&order), &layout);
            assert!(view.tool("x").unwrap().facts.output_schema);
        }
    }
}
