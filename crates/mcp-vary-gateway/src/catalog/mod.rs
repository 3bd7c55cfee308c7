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
    following: watch::Sender<Following>,
    /// The lists that the server's capabilities promise. Each is locked while it is read, and says when
    /// that was last done.
    offered: BTreeMap<ListKind, Mutex<Option<Instant>>>,
    /// Held while one list takes the place of another.
    replacing: Mutex<()>,
    layout: Layout,
    /// How long the server may take to answer with a whole list.
    limit: Duration,
}

/// How far the server's announcements are followed.
#[derive(Clone, Copy, Debug, Default)]
struct Following {
    /// Whether a change was announced that has not been read yet.
    pending: bool,
    /// How often announced changes were read.
    readings: u64,
}

/// How long a request waits for a change that was announced.
const PATIENCE: Duration = Duration::from_secs(5);
/// A list is not asked for again sooner, whoever wants it and however often it changes.
const PAUSE: Duration = Duration::from_secs(1);

impl LiveCatalog {
    /// Reads the lists that the server offers.
    pub(crate) async fn read(upstream: &Upstream, layout: Layout, limit: Duration) -> Arc<Self> {
        let empty = Catalog::new(BTreeMap::new(), BTreeMap::new(), layout);
        let offered = offered(upstream).into_iter();
        let catalog = Arc::new(Self {
            current: ArcSwap::from_pointee(empty),
            following: watch::Sender::default(),
            offered: offered.map(|kind| (kind, Mutex::default())).collect(),
            replacing: Mutex::default(),
            layout,
            limit,
        });
        catalog
            .read_again(upstream, &BTreeSet::from(ListKind::ALL))
            .await;
        catalog
    }

    pub(crate) fn current(&self) -> Arc<Catalog> {
        self.current.load_full()
    }

    pub(crate) fn offers(&self, kind: ListKind) -> bool {
        self.offered.contains_key(&kind)
    }

    /// The catalogue to list `kind` from, after the changes that were announced; read again first when
    /// the last reading failed, or when the server does not tell of changes and its `ttlMs` is over.
    ///
    /// > In this case, the client relies entirely on TTL-based freshness.
    /// > (MCP 2026-07-28, server/utilities/caching, "Interaction with Notifications")
    pub(crate) async fn fresh(&self, upstream: &Upstream, kind: ListKind) -> Arc<Catalog> {
        if self.following.borrow().pending {
            self.settle().await;
        }
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
        // What arrived before this request is seen by whoever follows the server before it is missed.
        tokio::task::yield_now().await;
        self.settle().await;
        if let Some(found) = find(&self.current()) {
            return Ok(found);
        }
        self.read_unless_recent(upstream, kind).await;
        let current = self.current();
        find(&current).ok_or_else(|| current.failure(kind))
    }

    /// Waits until the changes that were announced by now are read, unless that takes too long.
    ///
    /// Behind a server that announces without end that is so after two readings: the second one began
    /// after this was called.
    async fn settle(&self) {
        let mut following = self.following.subscribe();
        let before = following.borrow().readings;
        let settled = following.wait_for(|now| !now.pending || now.readings >= before + 2);
        if tokio::time::timeout(PATIENCE, settled).await.is_err() {
            warn!("lists are still being read again; answering from the last ones");
        }
    }

    /// Follows the server's `list_changed` until `stopped` or the connection ends.
    ///
    /// A change is read at once, the next one after a pause together with all that came in the meantime,
    /// so that a server that announces without end costs little.
    pub(crate) async fn follow(
        self: Arc<Self>,
        upstream: Weak<Upstream>,
        mut events: broadcast::Receiver<Event>,
        stopped: CancellationToken,
    ) {
        let following = async {
            let mut pause = Instant::now();
            while let Some(mut kinds) = changed(&mut events).await {
                self.following.send_modify(|now| now.pending = true);
                tokio::time::sleep_until(pause).await;
                let last = also_changed(&mut events, &mut kinds);
                let Some(upstream) = upstream.upgrade() else {
                    return;
                };
                self.read_again(&upstream, &kinds).await;
                drop(upstream);
                pause = Instant::now() + PAUSE;
                self.following.send_modify(|now| {
                    now.pending = !events.is_empty();
                    now.readings += 1;
                });
                if last {
                    return;
                }
            }
        };
        tokio::select! {
            () = stopped.cancelled() => {}
            () = following => {}
        }
        // Nobody will read what is still announced.
        self.following.send_modify(|now| now.pending = false);
    }

    async fn read_again(&self, upstream: &Upstream, kinds: &BTreeSet<ListKind>) {
        let read = |kind: ListKind| async move {
            if kinds.contains(&kind) {
                self.read_if(upstream, kind, |_| true).await;
            }
        };
        let [tools, resources, templates, prompts] = ListKind::ALL;
        tokio::join!(read(tools), read(resources), read(templates), read(prompts));
    }

    /// Reads a list, unless whoever else had it read has just done so.
    async fn read_unless_recent(&self, upstream: &Upstream, kind: ListKind) {
        let long_ago = |last: Option<Instant>| last.is_none_or(|at| at.elapsed() >= PAUSE);
        self.read_if(upstream, kind, long_ago).await;
    }

    async fn read_if(
        &self,
        upstream: &Upstream,
        kind: ListKind,
        wanted: impl FnOnce(Option<Instant>) -> bool,
    ) {
        let Some(last) = self.offered.get(&kind) else {
            return;
        };
        let mut last = last.lock().await;
        if wanted(*last) {
            let listing = self.read_one(upstream, kind).await;
            let life = expiry(upstream, kind, &listing);
            self.put(kind, listing, life).await;
            *last = Some(Instant::now());
        }
    }

    /// Puts a list in the place of the one before; a failure does not replace a list.
    async fn put(&self, kind: ListKind, listing: Result<Listing, Failure>, life: Option<Duration>) {
        let _replacing = self.replacing.lock().await;
        let current = self.current();
        let (mut listings, mut expires) = (current.listings.clone(), current.expires.clone());
        match life {
            Some(life) => expires.insert(kind, Instant::now() + life),
            None => expires.remove(&kind),
        };
        let last_good = matches!(listings.get(&kind), Some(Ok(_)));
        if listing.is_ok() || !last_good {
            listings.insert(kind, listing);
        } else {
            warn!(list = kind.method(), "the last good list stays");
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

/// The lists that the next change is about; `None` when nothing will follow.
async fn changed(events: &mut broadcast::Receiver<Event>) -> Option<BTreeSet<ListKind>> {
    loop {
        let kinds = match events.recv().await {
            Ok(event) => lists_of(&event)?,
            Err(RecvError::Lagged(_)) => &ListKind::ALL,
            Err(RecvError::Closed) => return None,
        };
        if !kinds.is_empty() {
            return Some(kinds.iter().copied().collect());
        }
    }
}

/// Adds the changes that are known by now; whether they are the last.
fn also_changed(events: &mut broadcast::Receiver<Event>, kinds: &mut BTreeSet<ListKind>) -> bool {
    loop {
        match events.try_recv() {
            Ok(event) => match lists_of(&event) {
                Some(more) => kinds.extend(more),
                None => return true,
            },
            Err(TryRecvError::Lagged(_)) => kinds.extend(ListKind::ALL),
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Closed) => return true,
        }
    }
}

/// The lists that an event is about; `None` when the connection is gone.
fn lists_of(event: &Event) -> Option<&'static [ListKind]> {
    match event {
        Event::ListChanged(Kind::Tools) => Some(&[ListKind::Tools]),
        Event::ListChanged(Kind::Resources) => Some(&[ListKind::Resources, ListKind::Templates]),
        Event::ListChanged(Kind::Prompts) => Some(&[ListKind::Prompts]),
        Event::Connected => Some(&ListKind::ALL),
        Event::Lost { .. } => Some(&[]),
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
