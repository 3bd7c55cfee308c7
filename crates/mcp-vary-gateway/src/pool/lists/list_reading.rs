//! Reads the lists of servers, page by page.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::json::{self, Members, edit};
use mcp_vary_catalog::list_fault::ListFaults;
use mcp_vary_catalog::listing::{ListKind, ListedItem, Listing};
use mcp_vary_upstream::{Request, UpstreamConnection, UpstreamError};
use mcp_vary_wire::headers::param_headers;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;

/// Why a list could not be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The server did not answer.
    Failed(UpstreamError),
    /// The server's error, or the fault of its response.
    Refused(RpcError),
}

impl ReadError {
    /// Whether the server does not say whether it has the list, since it does not accept the credentials of the request.
    pub(crate) const fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Failed(error) if error.is_unauthorized())
    }
}

impl From<UpstreamError> for ReadError {
    fn from(error: UpstreamError) -> Self {
        Self::Failed(error)
    }
}

impl From<RpcError> for ReadError {
    fn from(error: RpcError) -> Self {
        Self::Refused(error)
    }
}

impl From<ReadError> for RpcError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Failed(error) => error.into(),
            ReadError::Refused(error) => error,
        }
    }
}

/// Reads all pages of a list. `views` is the number of views of each item.
///
/// # Errors
///
/// As [`ReadError`] says.
pub(crate) async fn read_list(
    upstream: &UpstreamConnection,
    kind: ListKind,
    views: usize,
) -> Result<Listing, ReadError> {
    let mut room = ReadBudget::new(kind, views);
    let mut ids = BTreeSet::new();
    let page = Page::request(upstream, kind, None, &mut room).await?;
    let (mut listing, cursor) = first_page(page, &mut ids);
    let Some(mut cursor) = cursor else {
        return Ok(listing);
    };
    listing.passthrough = None;
    // A repeated cursor would loop forever.
    let mut followed = BTreeSet::new();
    while followed.insert(cursor.clone()) {
        if followed.len() > MAX_PAGES {
            return Err(room
                .exceeded(&format!("has more than {MAX_PAGES} pages"))
                .into());
        }
        let page = Page::request(upstream, kind, Some(&cursor), &mut room).await?;
        listing.faults.append(&page.faults);
        add_new(&mut listing, page.items, &mut ids);
        let Some(next) = page.next else {
            break;
        };
        cursor = next;
    }
    Ok(listing)
}

/// The list of a first page, and the cursor of the next page.
fn first_page(page: Page, ids: &mut BTreeSet<Arc<str>>) -> (Listing, Option<String>) {
    let mut listing = Listing {
        passthrough: None,
        frame: page.frame.into(),
        items: Vec::with_capacity(page.items.len()),
        ttl: page.ttl,
        faults: page.faults,
    };
    add_new(&mut listing, page.items, ids);
    let is_whole = page.is_whole && listing.faults.is_empty();
    listing.passthrough = is_whole.then(|| page.text.into());
    (listing, page.next)
}

/// Adds the items whose name or URI the list does not have yet. Models refuse lists with two tools of one name.
fn add_new(listing: &mut Listing, items: Vec<ListedItem>, ids: &mut BTreeSet<Arc<str>>) {
    for item in items {
        if ids.insert(Arc::clone(&item.id)) {
            listing.items.push(item);
        } else {
            let problem = "an item before it has the same name or URI";
            listing.faults.add(&item.id, problem, true);
        }
    }
}

/// No client could use a longer list. It counts as unreadable.
const MAX_PAGES: usize = 1_000;
const MAX_ITEMS: usize = 100_000;
/// The limit for the text of a list, stored as items and as prepared pages, and for the views of the items.
const MAX_BYTES: usize = 128 << 20;
/// The number of stored copies of a list's text.
const TEXT_COPIES: usize = 2;
/// The overhead of an item, in bytes; approximate.
const ITEM: usize = 512;
/// The cost of each view of an item.
const VIEW_COST: usize = 512;

/// The remaining budget of a list.
struct ReadBudget {
    kind: ListKind,
    /// Views of each item.
    views: usize,
    items: usize,
    bytes: usize,
}

impl ReadBudget {
    fn new(kind: ListKind, views: usize) -> Self {
        Self {
            kind,
            views,
            items: MAX_ITEMS,
            bytes: MAX_BYTES,
        }
    }

    /// Takes the size of a page from the budget, before it is copied out of its message.
    fn take_text(&mut self, bytes: usize) -> Result<(), RpcError> {
        self.take_bytes(bytes.saturating_mul(TEXT_COPIES))
    }

    fn take_items(&mut self, items: usize) -> Result<(), RpcError> {
        self.items = self
            .items
            .checked_sub(items)
            .ok_or_else(|| self.exceeded(&format!("has more than {MAX_ITEMS} items")))?;
        let each = ITEM.saturating_add(VIEW_COST.saturating_mul(self.views));
        self.take_bytes(items.saturating_mul(each))
    }

    fn take_bytes(&mut self, bytes: usize) -> Result<(), RpcError> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(|| {
            self.exceeded(&format!(
                "would take more than {} MiB: {TEXT_COPIES} times its text, and {ITEM} bytes for each item and {VIEW_COST} for \
                 each of {} views of it",
                MAX_BYTES >> 20,
                self.views
            ))
        })?;
        Ok(())
    }

    fn exceeded(&self, why: &str) -> RpcError {
        RpcError::internal(format!("{} of the server {why}", self.kind.method()))
    }
}

async fn request_page(
    upstream: &UpstreamConnection,
    kind: ListKind,
    cursor: Option<&str>,
    room: &mut ReadBudget,
) -> Result<String, ReadError> {
    let mut params = Members::default();
    if let Some(cursor) = cursor {
        params.set("cursor", json::string(cursor));
    }
    let mut meta = Members::default();
    for (key, value) in upstream.client_meta() {
        meta.set(*key, value.as_str());
    }
    if !meta.is_empty() {
        params.set("_meta", meta.to_json());
    }
    let params = (!params.is_empty()).then(|| params.to_json());
    let exchange = upstream
        .request_list(Request::new(kind.method(), params))
        .await?;
    match exchange.answer().await?.outcome() {
        Ok(result) => {
            room.take_text(result.len())?;
            Ok(result.to_owned())
        }
        Err(error) => Err(RpcError::from_upstream_or_internal(error).into()),
    }
}

struct Page {
    text: String,
    /// Whether clients can read the result as it is, apart from its items.
    is_whole: bool,
    frame: String,
    items: Vec<ListedItem>,
    faults: ListFaults,
    next: Option<String>,
    ttl: Option<Duration>,
}

impl Page {
    async fn request(
        upstream: &UpstreamConnection,
        kind: ListKind,
        cursor: Option<&str>,
        room: &mut ReadBudget,
    ) -> Result<Self, ReadError> {
        let result = request_page(upstream, kind, cursor, room).await?;
        let checks_headers = kind == ListKind::Tools && upstream.accepts_param_headers();
        let era = upstream.handshake().era();
        let page = Self::read(result, kind, era, checks_headers, room.items)
            .map_err(|why| RpcError::internal(format!("{} of the server: {why}", kind.method())))?;
        room.take_items(page.items.len())?;
        Ok(page)
    }

    fn read(
        text: String,
        kind: ListKind,
        era: Era,
        checks_headers: bool,
        most: usize,
    ) -> Result<Self, String> {
        let mut members = Members::parse(&text).map_err(|e| e.to_string())?;
        let key = kind.items_key();
        let items = match members.get(key) {
            // What some languages write for a list without items.
            Some("null" | "{}") => "[]",
            items => items.ok_or_else(|| format!("`{key}` is missing"))?,
        };
        let texts = json::elements_up_to(items, most).map_err(|e| format!("`{key}`: {e}"))?;
        let mut faults = ListFaults::default();
        let mut read = Vec::with_capacity(texts.len());
        for (position, item) in texts.iter().enumerate() {
            let item = ListedItem::read(item, kind, era, position + 1, &mut faults);
            read.extend(
                item.filter(|item| !checks_headers || has_valid_headers(item, &mut faults)),
            );
        }
        let next = members.get_str("nextCursor");
        let milliseconds = members.get("ttlMs").and_then(|ttl| ttl.parse().ok());
        let ttl = milliseconds.map(Duration::from_millis);
        let has_list = members.get(key).is_some_and(|items| items.starts_with('['));
        let mut is_whole = has_list && (next.is_some() || !members.contains("nextCursor"));
        members.remove("nextCursor");
        for optional in ["_meta", "ttlMs", "cacheScope"] {
            if members.get(optional) == Some("null") {
                members.remove(optional);
                is_whole = false;
            }
        }
        members.set(key, "[]");
        let frame = members.to_json();
        Ok(Self {
            frame,
            items: read,
            faults,
            next,
            ttl,
            text,
            is_whole,
        })
    }
}

/// > Clients using the Streamable HTTP transport MUST reject tool definitions where any `x-mcp-header`
/// > value violates these constraints. (2026-07-28, basic/transports/streamable-http)
fn has_valid_headers(tool: &ListedItem, faults: &mut ListFaults) -> bool {
    let schema = edit::get(&tool.json, "inputSchema").unwrap_or("{}");
    let headers = param_headers(schema);
    if let Err(why) = &headers {
        faults.add(&tool.id, why, true);
    }
    headers.is_ok()
}
