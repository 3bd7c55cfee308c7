//! What the server offers, and the views of it; read at start and again when it changes.

pub mod derive;
pub(crate) mod face;
pub(crate) mod listing;
pub(crate) mod view;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::reply::Failure;
use crate::upstream::{Event, Kind, Upstream};
use face::Face;
use listing::{ListKind, Listing};
use view::{Paper, View};

/// The lists of a server and the views of its variants, all of one moment.
#[derive(Debug)]
pub(crate) struct Catalog {
    pub(crate) listings: BTreeMap<ListKind, Result<Listing, Failure>>,
    /// One view per face, in the order of [`Face::ALL`].
    pub(crate) views: Vec<View>,
}

impl Catalog {
    fn new(listings: BTreeMap<ListKind, Result<Listing, Failure>>, paper: Paper) -> Self {
        let views = Face::ALL
            .into_iter()
            .map(|face| View::new(face, &listings, paper))
            .collect();
        Self { listings, views }
    }
}

/// The current catalogue; requests swap it in without a lock.
#[derive(Debug)]
pub(crate) struct Shelf {
    current: ArcSwap<Catalog>,
    /// Whether a change was announced that has not been read yet.
    pending: watch::Sender<bool>,
    paper: Paper,
    /// The lists that the server's capabilities promise.
    offered: Vec<ListKind>,
}

/// How long a request for something unknown waits for a change that was announced.
const PATIENCE: Duration = Duration::from_secs(5);

impl Shelf {
    /// Reads the lists that the server offers.
    pub(crate) async fn read(upstream: &Upstream, paper: Paper) -> Arc<Self> {
        let offered = offered(upstream);
        let mut listings = BTreeMap::new();
        for kind in &offered {
            listings.insert(*kind, read_logged(upstream, *kind).await);
        }
        let (pending, _) = watch::channel(false);
        Arc::new(Self {
            current: ArcSwap::from_pointee(Catalog::new(listings, paper)),
            pending,
            paper,
            offered,
        })
    }

    pub(crate) fn current(&self) -> Arc<Catalog> {
        self.current.load_full()
    }

    pub(crate) fn offers(&self, kind: ListKind) -> bool {
        self.offered.contains(&kind)
    }

    /// The catalogue after the changes that were announced so far, unless they take too long.
    pub(crate) async fn settled(&self) -> Arc<Catalog> {
        let mut pending = self.pending.subscribe();
        let settled = pending.wait_for(|pending| !pending);
        if tokio::time::timeout(PATIENCE, settled).await.is_err() {
            warn!("lists are still being read again; answering from the last ones");
        }
        self.current()
    }

    /// Follows the server's `list_changed` until `stopped` or the connection ends.
    pub(crate) async fn follow(
        self: Arc<Self>,
        upstream: Arc<Upstream>,
        mut events: broadcast::Receiver<Event>,
        stopped: CancellationToken,
    ) {
        loop {
            let event = tokio::select! {
                () = stopped.cancelled() => return,
                event = events.recv() => event,
            };
            match event {
                Ok(Event::ListChanged(kind)) => self.read_again(&upstream, lists_of(kind)).await,
                Ok(Event::Closed { .. }) | Err(RecvError::Closed) => return,
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.read_again(&upstream, &ListKind::ALL).await,
            }
        }
    }

    async fn read_again(&self, upstream: &Upstream, kinds: &[ListKind]) {
        self.pending.send_replace(true);
        let mut listings = self.current().listings.clone();
        for kind in kinds.iter().filter(|kind| self.offers(**kind)) {
            match read_logged(upstream, *kind).await {
                Err(_) if matches!(listings.get(kind), Some(Ok(_))) => {
                    warn!(list = kind.method(), "the last good list stays");
                }
                listing => {
                    listings.insert(*kind, listing);
                }
            }
            info!(list = kind.method(), "list read again after a change");
        }
        self.current
            .store(Arc::new(Catalog::new(listings, self.paper)));
        self.pending.send_replace(false);
    }
}

async fn read_logged(upstream: &Upstream, kind: ListKind) -> Result<Listing, Failure> {
    let listing = Listing::read(upstream, kind).await;
    if let Err(failure) = &listing {
        warn!(
            list = kind.method(),
            error = failure.message(),
            "list not read"
        );
    }
    listing
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

fn lists_of(kind: Kind) -> &'static [ListKind] {
    match kind {
        Kind::Tools => &[ListKind::Tools],
        Kind::Resources => &[ListKind::Resources, ListKind::Templates],
        Kind::Prompts => &[ListKind::Prompts],
    }
}
