//! Lists: all pages of one kind, in one variant.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::variant::VariantId;
use rmcp::model::{
    ClientRequest, Cursor, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    ListToolsRequest, PaginatedRequestParams, Prompt, Resource, ResourceTemplate,
    ServerCapabilities, ServerResult, Tool,
};
use rmcp::service::ServiceError;

use super::Client;
use super::cache::{Selector, TtlCache, VariantCache};
use super::error::Error;
use super::request::{AnsweredBy, log_rejection};

/// The largest number of pages that are read of one list.
const MAX_PAGES: usize = 1_000;

/// How long a list of a legacy server is cached that announces its changes.
///
/// A legacy server cannot send a TTL for its lists, and a notification can be lost.
const LEGACY_LIST_TTL: Duration = Duration::from_secs(300);

/// A whole list and its variant. Dereferences to its items.
///
/// Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantList<T> {
    items: Arc<[T]>,
    variant: Selector,
    answered_by: AnsweredBy,
}

impl<T> VariantList<T> {
    /// The selected variant; `None` for the server's default.
    ///
    /// Call what is listed here in this variant: with [`Client::variant`], or
    /// [`Client::default_variant`] for `None`.
    pub fn variant(&self) -> Option<&VariantId> {
        self.variant.as_ref()
    }

    /// Whether the server rejected the variant, so that this is the list of its default.
    pub fn is_fallback(&self) -> bool {
        self.answered_by == AnsweredBy::DefaultVariant
    }
}

impl<T> Deref for VariantList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

/// One page of a list of any kind.
#[derive(Debug)]
pub(super) struct Page<T> {
    items: Vec<T>,
    next: Option<Cursor>,
    ttl: Option<u64>,
}

/// The kind of a list: its request, its result and its cache.
pub(super) trait ListItem: Clone + Sized {
    fn request(params: PaginatedRequestParams) -> ClientRequest;
    fn page(result: ServerResult) -> Option<Page<Self>>;
    fn cache(memory: &VariantCache) -> &TtlCache<Selector, Arc<[Self]>>;
    /// Whether the server announces changes of the list.
    fn announces_changes(capabilities: &ServerCapabilities) -> bool;
}

macro_rules! list_items {
    ($($item:ty: $request:ident, $result:ident, $items:ident, $cache:ident, $capability:ident;)+) => {$(
        impl ListItem for $item {
            fn request(params: PaginatedRequestParams) -> ClientRequest {
                ClientRequest::$request($request::with_param(params))
            }

            fn page(result: ServerResult) -> Option<Page<Self>> {
                match result {
                    ServerResult::$result(result) => Some(Page {
                        items: result.$items,
                        next: result.next_cursor,
                        ttl: result.ttl_ms,
                    }),
                    _ => None,
                }
            }

            fn cache(cache: &VariantCache) -> &TtlCache<Selector, Arc<[Self]>> {
                &cache.$cache
            }

            fn announces_changes(capabilities: &ServerCapabilities) -> bool {
                let kind = capabilities.$capability.as_ref();
                kind.is_some_and(|kind| kind.list_changed == Some(true))
            }
        }
    )+};
}

list_items! {
    Tool: ListToolsRequest, ListToolsResult, tools, tools, tools;
    Prompt: ListPromptsRequest, ListPromptsResult, prompts, prompts, prompts;
    Resource: ListResourcesRequest, ListResourcesResult, resources, resources, resources;
    ResourceTemplate: ListResourceTemplatesRequest, ListResourceTemplatesResult, resource_templates,
        templates, resources;
}

impl Client {
    /// The whole list in `variant`, or in the default if the server rejects the variant.
    pub(super) async fn list<T: ListItem>(
        &self,
        variant: Option<&VariantId>,
    ) -> Result<VariantList<T>, Error> {
        match self.list_variant(variant).await {
            Err(error) if log_rejection(&error) => {
                // Start at the first page: a cursor is valid only in its own variant.
                let listed = self.list_variant(None).await?;
                let answered = AnsweredBy::DefaultVariant;
                Ok(VariantList {
                    answered_by: answered,
                    ..listed
                })
            }
            listed => listed,
        }
    }

    async fn list_variant<T: ListItem>(
        &self,
        variant: Option<&VariantId>,
    ) -> Result<VariantList<T>, Error> {
        let shelf = T::cache(&self.state.cache);
        let key = variant.cloned();
        let listed = |items| VariantList {
            items,
            variant: variant.cloned(),
            answered_by: AnsweredBy::SelectedVariant,
        };
        let generation = match shelf.get(&key) {
            Ok(items) => return Ok(listed(items)),
            Err(generation) => generation,
        };
        let (items, time) = self.read_pages::<T>(variant).await?;
        let all: Arc<[T]> = items.into();
        shelf.insert(key, Arc::clone(&all), time, generation);
        Ok(listed(all))
    }

    /// Reads all pages. The items may be cached for the smallest TTL of the pages.
    async fn read_pages<T: ListItem>(
        &self,
        variant: Option<&VariantId>,
    ) -> Result<(Vec<T>, Duration), Error> {
        let mut items = Vec::new();
        let mut time = Duration::MAX;
        let mut cursor = None;
        let mut read = 0;
        while read < MAX_PAGES {
            read += 1;
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let result = self.send(T::request(params), variant).await?;
            let page = T::page(result).ok_or(ServiceError::UnexpectedResponse)?;
            items.extend(page.items);
            time = time.min(self.ttl_of::<T>(page.ttl));
            match page.next {
                None => return Ok((items, time)),
                // The same cursor gives the same page again.
                next if next == cursor => break,
                next => cursor = next,
            }
        }
        Err(Error::EndlessList(read))
    }

    fn ttl_of<T: ListItem>(&self, ttl: Option<u64>) -> Duration {
        let info = || self.peer().peer_info();
        match ttl {
            Some(milliseconds) => Duration::from_millis(milliseconds),
            None if self.is_legacy()
                && info().is_some_and(|info| T::announces_changes(&info.capabilities)) =>
            {
                LEGACY_LIST_TTL
            }
            None => Duration::ZERO,
        }
    }
}
