//! The pages of one list, as bytes.

use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Bytes;
use mcp_vary::json::Members;
use mcp_vary_wire::era;
use mcp_vary_wire::revision::Era;

use super::layout::Layout;
use super::listing::ListKind;
use super::shown::{ViewItem, VisibleItem};

/// The contents of a list.
#[derive(Clone, Debug)]
pub struct Contents {
    /// Which list it is.
    pub kind: ListKind,
    /// The members of a result, with an empty array of items.
    pub frame: Arc<str>,
    /// The result of the only page as the server wrote it, if it can be forwarded unchanged.
    pub passthrough: Option<Arc<str>>,
    /// The items as the variant shows them.
    pub items: Vec<Arc<ViewItem>>,
}

/// The pages of one list, for both eras.
#[derive(Debug, Eq, PartialEq)]
pub struct Pages {
    legacy: Vec<Page>,
    modern: Vec<Page>,
}

/// One page of a list: its result without the closing brace, and where the next one starts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Page {
    open: Bytes,
    first: usize,
    next: Option<usize>,
}

impl Contents {
    fn passthrough_for(&self, era: Era) -> Option<&Arc<str>> {
        let same = |listed: &VisibleItem| Arc::ptr_eq(listed.text(era), listed.text(Era::Modern));
        let is_whole = self.visible_items().all(same);
        is_whole.then_some(self.passthrough.as_ref()).flatten()
    }

    fn visible_items(&self) -> impl Iterator<Item = &VisibleItem> {
        self.items.iter().filter_map(|item| item.visible.as_ref())
    }

    /// The page that starts at the item `first`.
    pub fn page(&self, era: Era, first: usize, layout: &Layout) -> Page {
        let last = self.last(first, layout);
        let items = self.items[first..last].iter();
        let texts: Vec<&str> = items
            .filter_map(|item| Some(&**item.visible.as_ref()?.text(era)))
            .collect();
        let mut members = Members::parse(&self.frame).unwrap_or_default();
        members.set(self.kind.items_key(), format!("[{}]", texts.join(",")));
        let next = (last < self.items.len()).then_some(last);
        Page::new(&members.to_json(), era, first, next, layout)
    }

    /// The end of the page that starts at the item `first`.
    fn last(&self, first: usize, layout: &Layout) -> usize {
        let size = layout.page_size.map_or(usize::MAX, NonZeroUsize::get);
        first.saturating_add(size).min(self.items.len())
    }

    /// Whether the page from `first` is the same in `other`: identical items and the same other members.
    fn shares_page(&self, other: &Self, first: usize, layout: &Layout) -> bool {
        let last = self.last(first, layout);
        let is_last = last == self.items.len();
        let items = self.items.get(first..last);
        let Some((ours, theirs)) = items.zip(other.items.get(first..last)) else {
            return false;
        };
        self.frame == other.frame
            && is_last == (last == other.items.len())
            && last == other.last(first, layout)
            && std::iter::zip(ours, theirs).all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

impl Pages {
    /// Builds all pages. Pages that are equal to one of `before` or of `others` share their bytes, so that a page that
    /// many variants show is in memory, and in the processor's cache, only once.
    pub fn new(
        contents: &Contents,
        layout: &Layout,
        before: Option<(&Self, &Contents)>,
        others: &[&Self],
    ) -> Self {
        let of_era = |era| {
            let mut pages = match contents.passthrough_for(era) {
                Some(whole) => {
                    let page = Page::new(whole, era, 0, None, layout);
                    let previous = before.and_then(|(pages, _)| pages.starting_at(era, 0));
                    vec![page.or_reuse(previous)]
                }
                None => split_into_pages(contents, era, layout, before),
            };
            for page in &mut pages {
                let at = page.first;
                let known = before.and_then(|(pages, _)| pages.starting_at(era, at));
                if known.is_none_or(|known| known.open.as_ptr() != page.open.as_ptr()) {
                    page.reuse_bytes(others.iter().filter_map(|pages| pages.starting_at(era, at)));
                }
            }
            pages
        };
        Self {
            legacy: of_era(Era::Legacy),
            modern: of_era(Era::Modern),
        }
    }

    fn for_era(&self, era: Era) -> &[Page] {
        match era {
            Era::Legacy => &self.legacy,
            Era::Modern => &self.modern,
        }
    }

    /// The page that starts at the item `first`, if one was prepared.
    pub fn starting_at(&self, era: Era, first: usize) -> Option<&Page> {
        let pages = self.for_era(era);
        let at = pages.binary_search_by_key(&first, |page| page.first).ok()?;
        Some(&pages[at])
    }
}

fn split_into_pages(
    contents: &Contents,
    era: Era,
    layout: &Layout,
    before: Option<(&Pages, &Contents)>,
) -> Vec<Page> {
    let all = contents.items.len().max(1);
    let size = layout.page_size.map_or(all, NonZeroUsize::get);
    let pages = (0..all).step_by(size).map(|first| {
        let known = before.and_then(|(pages, _)| pages.starting_at(era, first));
        let is_known = before.is_some_and(|(_, then)| {
            then.passthrough_for(era).is_none() && contents.shares_page(then, first, layout)
        });
        match known {
            Some(page) if is_known => page.clone(),
            _ => contents.page(era, first, layout).or_reuse(known),
        }
    });
    pages.collect()
}

impl Page {
    fn new(result: &str, era: Era, first: usize, next: Option<usize>, layout: &Layout) -> Self {
        let result = match era {
            Era::Legacy => era::to_legacy_page(result),
            Era::Modern => era::to_client_result(result, era, layout.caching),
        };
        let object = result.trim_end();
        let open = object.strip_suffix('}').unwrap_or(object);
        Self {
            open: Bytes::copy_from_slice(open.as_bytes()),
            first,
            next,
        }
    }

    /// Returns `other` if it is equal, to share its bytes.
    fn or_reuse(self, other: Option<&Self>) -> Self {
        match other {
            Some(other) if *other == self => other.clone(),
            _ => self,
        }
    }

    /// Shares the bytes of one of `others` if it is equal.
    fn reuse_bytes<'a>(&mut self, mut others: impl Iterator<Item = &'a Self>) {
        if let Some(other) = others.find(|other| other.open == self.open) {
            self.open = other.open.clone();
        }
    }

    /// The result in two parts, the second with `cursor` as `nextCursor`.
    pub fn result(&self, cursor: Option<&str>) -> (&[u8], String) {
        let end = match cursor {
            Some(cursor) => format!(r#","nextCursor":{}}}"#, mcp_vary::json::string(cursor)),
            None => "}".to_owned(),
        };
        (&self.open, end)
    }

    /// The index of the first item on the next page.
    pub fn next(&self) -> Option<usize> {
        self.next
    }
}
