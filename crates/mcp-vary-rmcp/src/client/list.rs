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
use super::error::Error;
use super::memory::{Memory, Selected, Shelf};
use super::request::{Answered, warn_of_refusal};

/// How many pages of one list are read.
const PAGES: usize = 1_000;

/// How long a legacy list is kept whose server promised to say when it changes.
///
/// A server of that era cannot say how long its lists hold, and a notification can be lost.
const PROMISED: Duration = Duration::from_secs(300);

/// A whole list, and the variant that it is of. Derefs to its items.
///
/// Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed<T> {
    items: Arc<[T]>,
    variant: Selected,
    answered: Answered,
}

impl<T> Listed<T> {
    /// The variant that was selected for the answer; none for the server's default.
    ///
    /// Call what is listed here in this variant: [`Client::view`], or [`Client::default_view`] for none.
    #[must_use]
    pub fn variant(&self) -> Option<&VariantId> {
        self.variant.as_ref()
    }

    /// Whether the server refused the variant of the view, so that this list is its default's.
    #[must_use]
    pub fn fell_back(&self) -> bool {
        self.answered == Answered::ByTheDefault
    }
}

impl<T> Deref for Listed<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

/// One page of a list, of whichever kind.
#[derive(Debug)]
pub(super) struct Page<T> {
    items: Vec<T>,
    next: Option<Cursor>,
    ttl: Option<u64>,
}

/// What is listed: how to ask for it, read it and remember it.
pub(super) trait Listing: Clone + Sized {
    fn request(params: PaginatedRequestParams) -> ClientRequest;
    fn page(result: ServerResult) -> Option<Page<Self>>;
    fn shelf(memory: &Memory) -> &Shelf<Selected, Arc<[Self]>>;
    /// Whether the server says when the list changes.
    fn promised(capabilities: &ServerCapabilities) -> bool;
}

macro_rules! listing {
    ($item:ty, $request:ident, $result:ident, $items:ident, $shelf:ident, $capability:ident) => {
        impl Listing for $item {
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

            fn shelf(memory: &Memory) -> &Shelf<Selected, Arc<[Self]>> {
                &memory.$shelf
            }

            fn promised(capabilities: &ServerCapabilities) -> bool {
                let kind = capabilities.$capability.as_ref();
                kind.is_some_and(|kind| kind.list_changed == Some(true))
            }
        }
    };
}

listing!(Tool, ListToolsRequest, ListToolsResult, tools, tools, tools);
listing!(
    Prompt,
    ListPromptsRequest,
    ListPromptsResult,
    prompts,
    prompts,
    prompts
);
listing!(
    Resource,
    ListResourcesRequest,
    ListResourcesResult,
    resources,
    resources,
    resources
);
listing!(
    ResourceTemplate,
    ListResourceTemplatesRequest,
    ListResourceTemplatesResult,
    resource_templates,
    templates,
    resources
);

impl Client {
    /// The whole list in `variant`, or in the default if the server refuses that one.
    pub(super) async fn list<T: Listing>(
        &self,
        variant: Option<&VariantId>,
    ) -> Result<Listed<T>, Error> {
        match self.list_in(variant).await {
            Err(error) if warn_of_refusal(&error) => {
                // From the first page: a cursor of the refused variant is of no other.
                let listed = self.list_in(None).await?;
                let answered = Answered::ByTheDefault;
                Ok(Listed { answered, ..listed })
            }
            listed => listed,
        }
    }

    async fn list_in<T: Listing>(&self, variant: Option<&VariantId>) -> Result<Listed<T>, Error> {
        let shelf = T::shelf(&self.shared.memory);
        let key = variant.cloned();
        let listed = |items| Listed {
            items,
            variant: variant.cloned(),
            answered: Answered::AsAsked,
        };
        let generation = match shelf.find(&key) {
            Ok(items) => return Ok(listed(items)),
            Err(generation) => generation,
        };
        let (items, time) = self.read_pages::<T>(variant).await?;
        let items: Arc<[T]> = items.into();
        shelf.keep(key, Arc::clone(&items), time, generation);
        Ok(listed(items))
    }

    /// All items, and how long they may be kept: as long as the page that ends first.
    async fn read_pages<T: Listing>(
        &self,
        variant: Option<&VariantId>,
    ) -> Result<(Vec<T>, Duration), Error> {
        let (mut items, mut time) = (Vec::new(), Duration::MAX);
        let mut cursor = None;
        let mut read = 0;
        while read < PAGES {
            read += 1;
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let result = self.send(T::request(params), variant).await?;
            let page = T::page(result).ok_or(ServiceError::UnexpectedResponse)?;
            items.extend(page.items);
            time = time.min(self.time_of::<T>(page.ttl));
            match page.next {
                None => return Ok((items, time)),
                // The same cursor gives the same page.
                next if next == cursor => break,
                next => cursor = next,
            }
        }
        Err(Error::Endless(read))
    }

    fn time_of<T: Listing>(&self, ttl: Option<u64>) -> Duration {
        let info = || self.peer().peer_info();
        match ttl {
            Some(milliseconds) => Duration::from_millis(milliseconds),
            None if self.is_legacy()
                && info().is_some_and(|info| T::promised(&info.capabilities)) =>
            {
                PROMISED
            }
            None => Duration::ZERO,
        }
    }
}
