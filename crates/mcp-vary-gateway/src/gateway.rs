//! The gateway as a whole: one server behind, its catalogue, its clients' sessions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hmac::Mac as _;
use mcp_vary::cursor::CursorKeys;
use mcp_vary::feature::Features;
use mcp_vary::json::Members;
use mcp_vary::rank::{Ranking, rank};
use mcp_vary::variant::{VariantId, Variants};
use serde_json::{Map, Value};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::bridge::Caching;
use crate::catalog::LiveCatalog;
use crate::catalog::face;
use crate::catalog::listing::ListKind;
use crate::catalog::view::Layout;
use crate::client::{Declared, Memo};
use crate::config::Config;
use crate::log_level::UpstreamLevel;
use crate::revision::Revision;
use crate::session::{self, Session, Sessions};
use crate::upstream::{ConnectError, Event, Hello, Upstream};

/// A running gateway. It serves clients through [`serve_http`](Self::serve_http) and
/// [`serve_stdio`](Self::serve_stdio), any number of them at once.
#[derive(Debug)]
pub struct Gateway {
    pub(crate) config: Config,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) catalog: Arc<LiveCatalog>,
    pub(crate) sessions: Sessions,
    pub(crate) variants: Variants,
    pub(crate) cursor_keys: CursorKeys,
    pub(crate) known: Memo<Known>,
    pub(crate) upstream_level: UpstreamLevel,
    /// The names of the server's capabilities.
    pub(crate) offered: BTreeSet<String>,
    tokens: AtomicU64,
    /// How the connection to the server ended.
    ended: watch::Sender<Option<String>>,
    stopped: CancellationToken,
    /// Whoever drops the gateway without closing it ends what runs in the background, too.
    _stop_when_dropped: DropGuard,
    /// Places for requests that run on although their client is gone.
    pub(crate) unheard: Arc<Semaphore>,
    pub(crate) tasks: TaskTracker,
}

/// What follows from the capabilities of a client.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) declared: Declared,
    pub(crate) features: Option<Arc<Features>>,
    pub(crate) order: Arc<[usize]>,
    pub(crate) more: bool,
    /// The names of the capabilities.
    pub(crate) capabilities: Arc<BTreeSet<String>>,
}

/// Modern clients of different capabilities that are remembered.
const REMEMBERED_CLIENTS: usize = 1024;

impl Gateway {
    /// Connects to the server and reads what it offers.
    ///
    /// # Errors
    ///
    /// When the server cannot be started or reached, or does not speak MCP; the error says which
    /// and why.
    pub async fn start(config: Config) -> Result<Arc<Self>, ConnectError> {
        let upstream = Upstream::connect(config.upstream.clone()).await?;
        // Subscribed before the lists are read, so that no change is missed in between.
        let (changes, ending) = (upstream.events(), upstream.events());
        let layout = Layout {
            page_size: config.page_size,
            caching: if config.variants {
                Caching::Never
            } else {
                Caching::AsTold
            },
            upstream: upstream.hello().era(),
        };
        let limit = config.upstream.limits.handshake;
        let catalog = LiveCatalog::read(&upstream, layout, limit).await;
        let [session_key, cursor_key] =
            ["session", "cursor"].map(|label| derived_key(&config, label));
        let stopped = CancellationToken::new();
        let gateway = Arc::new(Self {
            sessions: Sessions::new(&config, vec![session_key]),
            variants: face::built_in(),
            cursor_keys: CursorKeys::new(cursor_key),
            known: Memo::new(REMEMBERED_CLIENTS),
            upstream_level: UpstreamLevel::default(),
            offered: capability_names(&upstream),
            // Some servers take 0 for no token.
            tokens: AtomicU64::new(1),
            unheard: Arc::new(Semaphore::new(config.limits.unheard)),
            ended: watch::Sender::new(None),
            _stop_when_dropped: stopped.clone().drop_guard(),
            stopped,
            tasks: TaskTracker::new(),
            config,
            upstream,
            catalog,
        });
        gateway.watch(changes, ending);
        Ok(gateway)
    }

    /// Follows the server in the background: what it lists, and whether it is there.
    fn watch(&self, changes: broadcast::Receiver<Event>, ending: broadcast::Receiver<Event>) {
        let follow = Arc::clone(&self.catalog).follow(
            Arc::downgrade(&self.upstream),
            changes,
            self.stopped.clone(),
        );
        self.tasks.spawn(follow);
        let note = note_end(ending, self.ended.clone());
        self.tasks
            .spawn(self.stopped.clone().run_until_cancelled_owned(note));
    }

    /// Ends what runs in the background and the connection to the server.
    pub async fn close(&self) {
        self.stopped.cancel();
        self.tasks.close();
        self.upstream.close().await;
        if tokio::time::timeout(self.config.limits.drain, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("tasks were still running at the end");
        }
    }

    /// Waits until the connection to the server is gone, and says how it ended.
    ///
    /// Requests are answered with an error from then on; lists are served from the last good ones.
    pub async fn server_ended(&self) -> String {
        let mut ended = self.ended.subscribe();
        match ended.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(reason)) => reason.clone(),
            _ => std::future::pending().await,
        }
    }

    /// What the server behind said about itself.
    #[must_use]
    pub fn hello(&self) -> &Hello {
        self.upstream.hello()
    }

    /// How many tools the server lists; `None` when it offers none or its list cannot be read.
    #[must_use]
    pub fn tool_count(&self) -> Option<usize> {
        let catalog = self.catalog.current();
        let tools = catalog.listings.get(&ListKind::Tools)?.as_ref().ok()?;
        Some(tools.items.len())
    }

    /// Cancelled when the gateway stops.
    pub(crate) fn stopped(&self) -> CancellationToken {
        self.stopped.clone()
    }

    /// A token for progress that no other request to the server uses.
    pub(crate) fn new_progress_token(&self) -> u64 {
        self.tokens.fetch_add(1, Ordering::Relaxed)
    }

    /// What follows from a client's capabilities, as JSON text.
    pub(crate) fn know(&self, capabilities: &str) -> Arc<Known> {
        self.known.get_or_read(capabilities, |text| {
            let value: Value = serde_json::from_str(text).unwrap_or_default();
            let names = value.as_object().into_iter().flat_map(Map::keys);
            self.knowledge_of(Declared::read(&value), names.cloned().collect())
        })
    }

    fn knowledge_of(&self, declared: Declared, capabilities: BTreeSet<String>) -> Known {
        let (order, more) = if self.config.variants {
            self.advertised(&self.rank(&declared))
        } else {
            (Vec::new(), false)
        };
        let features = declared
            .features
            .clone()
            .filter(|_| self.config.negotiation)
            .map(Arc::new);
        Known {
            declared,
            features,
            order: order.into(),
            more,
            capabilities: Arc::new(capabilities),
        }
    }

    pub(crate) fn rank(&self, declared: &Declared) -> Ranking {
        rank(self.variants.iter(), &declared.hints, &face::weights())
    }

    fn advertised(&self, ranking: &Ranking) -> (Vec<usize>, bool) {
        let (ids, more) = ranking.advertise(mcp_vary::rank::ADVERTISED);
        let indices = ids.iter().filter_map(|id| self.variant_index(id.as_str()));
        (indices.collect(), more)
    }

    /// The index of a variant in the catalogue's views.
    pub(crate) fn variant_index(&self, id: &str) -> Option<usize> {
        self.variants
            .iter()
            .position(|variant| variant.id.as_str() == id)
    }

    /// The id of the variant at `index`.
    pub(crate) fn variant_id(&self, index: usize) -> &VariantId {
        &self.variants.as_slice()[index].id
    }

    /// The order that a session was opened with; `None` when a variant of it is gone.
    pub(crate) fn order_of(&self, session: &Session) -> Option<Arc<[usize]>> {
        let ids = session.fixed.order.iter();
        let order = || ids.map(|id| self.variant_index(id)).collect();
        session.views().get_or_init(order).clone()
    }
}

async fn note_end(mut events: broadcast::Receiver<Event>, ended: watch::Sender<Option<String>>) {
    loop {
        match events.recv().await {
            Ok(Event::Closed { reason }) => return drop(ended.send_replace(Some(reason))),
            Err(RecvError::Closed) => return,
            Ok(_) | Err(RecvError::Lagged(_)) => {}
        }
    }
}

fn capability_names(upstream: &Upstream) -> BTreeSet<String> {
    let hello = upstream.hello();
    let told = Members::parse(&hello.capabilities).unwrap_or_default();
    let objects = told.iter().filter(|(_, value)| value.starts_with('{'));
    let mut names: BTreeSet<_> = objects.map(|(name, _)| name.to_owned()).collect();
    // The capability came with 2025-03-26; before, whoever had something to complete could complete it.
    let completes = names.contains("prompts") || names.contains("resources");
    if hello.revision == Revision::V2024_11_05 && completes {
        names.insert("completions".to_owned());
    }
    names
}

/// A key for one purpose, drawn from the gateway's one secret.
fn derived_key(config: &Config, label: &str) -> [u8; 32] {
    let mut mac = session::keyed(&config.key);
    mac.update(b"vary key v1\0");
    mac.update(label.as_bytes());
    mac.finalize().into_bytes().into()
}
