//! What the server offers, and the views of it; read at start and again when it changes.

pub mod derive;
pub(crate) mod face;
pub(crate) mod listing;
pub(crate) mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{Mutex, broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::reply::Failure;
use crate::revision::Era;
use crate::upstream::{Event, Kind, Upstream};
use face::Face;
use listing::{ListKind, Listing};
use view::{Layout, View};

/// The lists of a server and the views of its variants, all of one moment.
#[derive(Debug)]
pub(crate) struct Catalog {
    pub(crate) listings: Listings,
    /// One view per face, in the order of [`Face::ALL`].
    pub(crate) views: Vec<View>,
    /// When a list must be read again before it is shown; absent while the server tells of changes.
    expires: BTreeMap<ListKind, Instant>,
}

/// Each list that the server offers, or why it could not be read.
pub(crate) type Listings = BTreeMap<ListKind, Result<Listing, Failure>>;

impl Catalog {
    fn new(listings: Listings, expires: BTreeMap<ListKind, Instant>, layout: Layout) -> Self {
        let views = Face::ALL
            .into_iter()
            .map(|face| View::new(face, &listings, layout))
            .collect();
        Self {
            listings,
            views,
            expires,
        }
    }

    fn is_fresh(&self, kind: ListKind) -> bool {
        self.expires
            .get(&kind)
            .is_none_or(|expires| Instant::now() < *expires)
    }

    fn failure(&self, kind: ListKind) -> Option<Failure> {
        self.listings.get(&kind)?.as_ref().err().cloned()
    }
}

/// The current catalogue; requests swap it in without a lock.
#[derive(Debug)]
pub(crate) struct LiveCatalog {
    current: ArcSwap<Catalog>,
    /// Whether a change was announced that has not been read yet.
    pending: watch::Sender<bool>,
    /// Held while lists are read: when each was last asked for.
    asked: Mutex<BTreeMap<ListKind, Instant>>,
    layout: Layout,
    /// The lists that the server's capabilities promise.
    offered: Vec<ListKind>,
    /// How long the server may take to answer with a whole list.
    limit: Duration,
}

/// How long a request for something unknown waits for a change that was announced.
const PATIENCE: Duration = Duration::from_secs(5);
/// A list is not asked for again sooner, whoever wants it and however often it changes.
const PAUSE: Duration = Duration::from_secs(1);

impl LiveCatalog {
    /// Reads the lists that the server offers.
    pub(crate) async fn read(upstream: &Upstream, layout: Layout, limit: Duration) -> Arc<Self> {
        let (pending, _) = watch::channel(false);
        let empty = Catalog::new(BTreeMap::new(), BTreeMap::new(), layout);
        let catalog = Arc::new(Self {
            current: ArcSwap::from_pointee(empty),
            pending,
            asked: Mutex::default(),
            layout,
            offered: offered(upstream),
            limit,
        });
        catalog.read_again(upstream, &ListKind::ALL).await;
        catalog
    }

    pub(crate) fn current(&self) -> Arc<Catalog> {
        self.current.load_full()
    }

    pub(crate) fn offers(&self, kind: ListKind) -> bool {
        self.offered.contains(&kind)
    }

    /// The catalogue to list `kind` from: read again first when the last reading failed, or when the
    /// server does not tell of changes and its `ttlMs` is over.
    ///
    /// > In this case, the client relies entirely on TTL-based freshness.
    /// > (MCP 2026-07-28, server/utilities/caching, "Interaction with Notifications")
    pub(crate) async fn fresh(&self, upstream: &Upstream, kind: ListKind) -> Arc<Catalog> {
        let current = self.current();
        if current.is_fresh(kind) {
            return current;
        }
        self.read_unless_recent(upstream, kind).await;
        self.current()
    }

    /// What `find` finds in the catalogue; if nothing, after the changes that were announced, and if
    /// still nothing, after reading the list again.
    ///
    /// # Errors
    ///
    /// The failure of the list when it could not be read, `None` when it lacks what was looked for.
    pub(crate) async fn find<T>(
        &self,
        upstream: &Upstream,
        kind: ListKind,
        find: impl Fn(&Catalog) -> Option<T>,
    ) -> Result<T, Option<Failure>> {
        if let Some(found) = find(&self.current()) {
            return Ok(found);
        }
        self.settle().await;
        if let Some(found) = find(&self.current()) {
            return Ok(found);
        }
        self.read_unless_recent(upstream, kind).await;
        let current = self.current();
        find(&current).ok_or_else(|| current.failure(kind))
    }

    /// Waits until the changes that were announced are read, unless that takes too long.
    async fn settle(&self) {
        // What arrived before this request is seen by whoever follows the server before it is missed.
        tokio::task::yield_now().await;
        let mut pending = self.pending.subscribe();
        let settled = pending.wait_for(|pending| !pending);
        if tokio::time::timeout(PATIENCE, settled).await.is_err() {
            warn!("lists are still being read again; answering from the last ones");
        }
    }

    /// Follows the server's `list_changed` until `stopped` or the connection ends.
    ///
    /// Changes that come while lists are read are taken together, and there is a pause between two
    /// readings, so that a server that announces without end costs little.
    pub(crate) async fn follow(
        self: Arc<Self>,
        upstream: Weak<Upstream>,
        mut events: broadcast::Receiver<Event>,
        stopped: CancellationToken,
    ) {
        let following = async {
            while let Some(kinds) = changed(&mut events).await {
                let Some(upstream) = upstream.upgrade() else {
                    return;
                };
                self.pending.send_replace(true);
                self.read_again(&upstream, &kinds).await;
                drop(upstream);
                self.pending.send_replace(!events.is_empty());
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::select! {
            () = stopped.cancelled() => {}
            () = following => {}
        }
        // Nobody will read what is still announced.
        self.pending.send_replace(false);
    }

    async fn read_unless_recent(&self, upstream: &Upstream, kind: ListKind) {
        let mut asked = self.asked.lock().await;
        let recent = |at: &Instant| at.elapsed() < PAUSE;
        if asked.get(&kind).is_some_and(recent) {
            return;
        }
        self.read_locked(upstream, &[kind], &mut asked).await;
    }

    async fn read_again(&self, upstream: &Upstream, kinds: &[ListKind]) {
        let mut asked = self.asked.lock().await;
        self.read_locked(upstream, kinds, &mut asked).await;
    }

    async fn read_locked(
        &self,
        upstream: &Upstream,
        kinds: &[ListKind],
        asked: &mut BTreeMap<ListKind, Instant>,
    ) {
        let wanted = |kind| self.offers(kind) && kinds.contains(&kind);
        let read = |kind: ListKind| async move {
            match wanted(kind) {
                true => Some((kind, self.read_one(upstream, kind).await)),
                false => None,
            }
        };
        let [tools, resources, templates, prompts] = ListKind::ALL;
        let now = Instant::now();
        let (a, b, c, d) =
            tokio::join!(read(tools), read(resources), read(templates), read(prompts));
        let current = self.current();
        let (mut listings, mut expires) = (current.listings.clone(), current.expires.clone());
        for (kind, listing) in [a, b, c, d].into_iter().flatten() {
            asked.insert(kind, now);
            match expiry(upstream, kind, &listing) {
                Some(life) => expires.insert(kind, now + life),
                None => expires.remove(&kind),
            };
            let last_good = matches!(listings.get(&kind), Some(Ok(_)));
            if listing.is_ok() || !last_good {
                listings.insert(kind, listing);
            } else {
                warn!(list = kind.method(), "the last good list stays");
            }
        }
        self.replace(listings, expires).await;
    }

    async fn read_one(&self, upstream: &Upstream, kind: ListKind) -> Result<Listing, Failure> {
        let reading = tokio::time::timeout(self.limit, Listing::read(upstream, kind));
        let listing = reading.await.unwrap_or_else(|_| {
            Err(Failure::internal(format!(
                "the server did not answer {} within {} s",
                kind.method(),
                self.limit.as_secs()
            )))
        });
        match &listing {
            Ok(listing) => info!(
                list = kind.method(),
                items = listing.items.len(),
                "list read"
            ),
            Err(failure) => warn!(
                list = kind.method(),
                error = failure.message(),
                "list not read"
            ),
        }
        listing
    }

    /// Views are made aside: deriving thousands of items would hold up other requests.
    async fn replace(&self, listings: Listings, expires: BTreeMap<ListKind, Instant>) {
        let layout = self.layout;
        let made =
            tokio::task::spawn_blocking(move || Catalog::new(listings, expires, layout)).await;
        match made {
            Ok(catalog) => self.current.store(Arc::new(catalog)),
            Err(error) => warn!(%error, "the views were not made; the last ones stay"),
        }
    }
}

/// The kinds of list that changed, all that are known by now; `None` when nothing will follow.
async fn changed(events: &mut broadcast::Receiver<Event>) -> Option<Vec<ListKind>> {
    let mut kinds = BTreeSet::new();
    while kinds.is_empty() {
        kinds.extend(match events.recv().await {
            Ok(event) => lists_of(&event)?,
            Err(RecvError::Lagged(_)) => &ListKind::ALL,
            Err(RecvError::Closed) => return None,
        });
    }
    loop {
        kinds.extend(match events.try_recv() {
            Ok(event) => lists_of(&event)?,
            Err(TryRecvError::Lagged(_)) => &ListKind::ALL,
            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
        });
    }
    Some(kinds.into_iter().collect())
}

/// The lists that an event is about; `None` when the connection is gone.
fn lists_of(event: &Event) -> Option<&'static [ListKind]> {
    match event {
        Event::ListChanged(Kind::Tools) => Some(&[ListKind::Tools]),
        Event::ListChanged(Kind::Resources) => Some(&[ListKind::Resources, ListKind::Templates]),
        Event::ListChanged(Kind::Prompts) => Some(&[ListKind::Prompts]),
        Event::Closed { .. } => None,
    }
}

/// How long a list may be shown without being read again: for ever, while the server tells of changes.
fn expiry(
    upstream: &Upstream,
    kind: ListKind,
    listing: &Result<Listing, Failure>,
) -> Option<Duration> {
    let hello = upstream.hello();
    match listing {
        Err(_) => Some(PAUSE),
        Ok(_) if hello.offers(kind.capability(), "listChanged") => None,
        Ok(listing) if hello.era() == Era::Modern => Some(listing.ttl.max(PAUSE)),
        Ok(_) => None,
    }
}

fn offered(upstream: &Upstream) -> Vec<ListKind> {
    let capabilities = mcp_vary::json::Members::parse(&upstream.hello().capabilities);
    let capabilities = capabilities.unwrap_or_default();
    ListKind::ALL
        .into_iter()
        .filter(|kind| {
            capabilities
                .get(kind.capability())
                .is_some_and(|value| value.starts_with('{'))
        })
        .collect()
}
