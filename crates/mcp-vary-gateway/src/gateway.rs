//! The gateway as a whole: the servers behind, what they offer together, its clients' sessions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use hmac::Mac as _;
use mcp_vary::cursor::CursorKeys;
use mcp_vary::feature::Features;
use mcp_vary::rank::{Ranking, rank};
use mcp_vary::variant::{VariantId, Variants};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::bridge::Caching;
use crate::catalog::face::{self, Faces, VariantConfig};
use crate::catalog::merge::Collision;
use crate::catalog::source::Source;
use crate::catalog::view::{Layout, View};
use crate::class::Classes;
use crate::client::{Declared, Memo};
use crate::config::Config;
use crate::links::Links;
use crate::session::{self, Session, Sessions};
use crate::upstream::{ConnectError, Hello, State};

/// A running gateway. It serves clients through [`serve_http`](Self::serve_http) and
/// [`serve_stdio`](Self::serve_stdio), any number of them at once.
#[derive(Debug)]
pub struct Gateway {
    pub(crate) config: Config,
    pub(crate) classes: Classes,
    pub(crate) sessions: Sessions,
    pub(crate) variants: Variants,
    pub(crate) faces: Arc<Faces>,
    pub(crate) cursor_keys: CursorKeys,
    pub(crate) known: Memo<Known>,
    pub(crate) links: Links,
    tokens: AtomicU64,
    stopped: CancellationToken,
    /// Whoever drops the gateway without closing it ends what runs in the background, too.
    _stop_when_dropped: DropGuard,
    /// Places for requests that run on although their client is gone.
    pub(crate) unheard: Arc<Semaphore>,
    pub(crate) tasks: TaskTracker,
}

/// One server as it stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerReport {
    /// The name that the operator gave it.
    pub name: String,
    /// How the connection to it stands.
    pub state: State,
    /// What it said about itself when it was last connected to.
    pub hello: Option<Arc<Hello>>,
    /// How many items each list has, by the list's method; lists that it lacks or that cannot be read are
    /// left out.
    pub counts: Vec<(&'static str, usize)>,
}

/// One thing that the gateway offers, and which server it belongs to.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Served {
    /// The list, by its method: `tools/list` for example.
    pub list: &'static str,
    /// The name or URI by which clients know it.
    pub id: String,
    /// The name of the server.
    pub server: String,
    /// The name or URI at the server.
    pub own: String,
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
    /// What servers may know of them, JSON text.
    pub(crate) mirrored: Arc<str>,
}

/// Bytes for what is remembered of modern clients' capabilities, in each of two generations; some thousand
/// different clients.
const REMEMBERED_CLIENTS: usize = 8 << 20;

impl Gateway {
    /// Connects to the servers and reads what they offer.
    ///
    /// A server that cannot be connected to does not stop the others, and is tried again. When there is none
    /// yet, the gateway starts only if the configuration says so.
    ///
    /// # Errors
    ///
    /// When no server can be started or reached, or speaks MCP; the error says which and why.
    pub async fn start(config: Config) -> Result<Arc<Self>, ConnectError> {
        let gateway = Self::open(config).await;
        gateway.connected().await?;
        Ok(gateway)
    }

    /// Begins to connect to the servers and returns at once. Until [`connected`](Self::connected) there is
    /// little to list; whoever will not wait for it closes the gateway, which ends in order what was begun.
    pub async fn open(config: Config) -> Arc<Self> {
        let faces = Arc::clone(&config.faces);
        let layout = Layout {
            faces: Arc::clone(&faces),
            naming: config.naming,
            page_size: config.page_size,
            caching: if config.variants {
                Caching::Never
            } else {
                Caching::AsTold
            },
        };
        let (stopped, tasks) = (CancellationToken::new(), TaskTracker::new());
        let stop_when_dropped = stopped.clone().drop_guard();
        let mut servers = config.servers.clone();
        for server in &mut servers {
            server.random = config.outside.random;
        }
        let classes = Classes::new(servers, layout, stopped.clone(), tasks.clone()).await;
        let [session_key, cursor_key] =
            ["session", "cursor"].map(|label| derived_key(&config, label));
        let gateway = Arc::new(Self {
            sessions: Sessions::new(&config, vec![session_key]),
            variants: faces.variants.clone(),
            faces,
            cursor_keys: CursorKeys::new(cursor_key),
            known: Memo::new(REMEMBERED_CLIENTS),
            links: Links::default(),
            // Some servers take 0 for no token.
            tokens: AtomicU64::new(1),
            unheard: Arc::new(Semaphore::new(config.limits.unheard)),
            _stop_when_dropped: stop_when_dropped,
            stopped,
            tasks,
            classes,
            config,
        });
        gateway.sweep();
        gateway
    }

    /// Waits until the servers were connected to and read, or could not be.
    ///
    /// # Errors
    ///
    /// As those of [`start`](Self::start); the gateway is closed then.
    pub async fn connected(&self) -> Result<(), ConnectError> {
        let base = self.classes.base();
        base.first_readings(self.config.start_patience).await;
        let is_up = |source: &Arc<Source>| source.line.up().is_some();
        if self.config.start_without_servers || base.sources().iter().any(is_up) {
            return Ok(());
        }
        let tried = join_all(base.sources().iter().map(|source| source.line.tried()));
        let errors = tried.await.into_iter().filter_map(Result::err);
        match errors.into_iter().next() {
            Some(error) => {
                self.close().await;
                Err(error)
            }
            None => Ok(()),
        }
    }

    /// Closes connections that nobody uses any more, in the background.
    fn sweep(self: &Arc<Self>) {
        let (gateway, stopped) = (Arc::downgrade(self), self.stopped.clone());
        self.tasks.spawn(async move {
            let pause = gateway
                .upgrade()
                .map(|gateway| gateway.classes.sweep_pause());
            let Some(pause) = pause else { return };
            while let Some(()) = stopped.run_until_cancelled(tokio::time::sleep(pause)).await {
                match gateway.upgrade() {
                    Some(gateway) => gateway.classes.sweep(),
                    None => return,
                }
            }
        });
    }

    /// Ends what runs in the background and the connections to the servers.
    pub async fn close(&self) {
        self.stopped.cancel();
        self.tasks.close();
        self.classes.close().await;
        if tokio::time::timeout(self.config.limits.drain, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("tasks were still running at the end");
        }
    }

    /// How each server stands, in the order of configuration.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerReport> {
        let sources = self.classes.base().sources().iter();
        sources
            .map(|source| {
                let told = source.told();
                let lists = told.listings.iter();
                let counts = lists.filter_map(|(kind, list)| {
                    Some((kind.method(), list.as_ref().ok()?.items.len()))
                });
                ServerReport {
                    name: source.name().to_owned(),
                    state: source.line.state().borrow().clone(),
                    hello: told.hello.clone(),
                    counts: counts.collect(),
                }
            })
            .collect()
    }

    /// Everything that some variant offers by whatever name, and which server it belongs to.
    #[must_use]
    pub fn served(&self) -> Vec<Served> {
        let catalog = self.classes.base().catalog.current();
        let mut served = Vec::new();
        for lists in catalog.lists() {
            let list = lists.merged.kind.method();
            let mut known = BTreeSet::new();
            let items = lists.merged.items().iter();
            let items = items.map(|item| (&item.id, &item.place));
            let views = lists.views.iter().flat_map(View::places);
            for (id, place) in items.chain(views) {
                if known.insert((id, place.server, &place.own)) {
                    served.push(Served {
                        list,
                        id: id.to_string(),
                        server: self.config.servers[place.server].name.clone(),
                        own: place.own.to_string(),
                    });
                }
            }
        }
        served
    }

    /// What several servers offer by the same name or URI, so that only the first one is reached.
    #[must_use]
    pub fn collisions(&self) -> Vec<Collision> {
        let catalog = self.classes.base().catalog.current();
        let collisions = catalog
            .lists()
            .flat_map(|lists| lists.merged.collisions.clone());
        collisions.collect()
    }

    /// What is wrong with the variants' configuration, as far as the servers' lists show: the id of the
    /// variant, and the mistake.
    #[must_use]
    pub fn slips(&self) -> Vec<(VariantId, mcp_vary::view::Mistake)> {
        let catalog = self.classes.base().catalog.current();
        let slips = catalog.lists().flat_map(|lists| {
            let views = self.variants.iter().zip(&lists.views);
            views.flat_map(|(variant, view)| {
                let mistakes = view.mistakes.iter().cloned();
                mistakes.map(|mistake| (variant.id.clone(), mistake))
            })
        });
        slips.collect()
    }

    /// Whether what a result points to decides where, or whether, it can be read.
    pub(crate) fn follows_links(&self) -> bool {
        self.classes.servers() > 1 || self.faces.all.iter().any(VariantConfig::selects_resources)
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
            let names = names.cloned().collect();
            self.knowledge_of(Declared::read(&value), names, self.classes.mirror(&value))
        })
    }

    fn knowledge_of(
        &self,
        declared: Declared,
        capabilities: BTreeSet<String>,
        mirrored: Arc<str>,
    ) -> Known {
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
            mirrored,
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

/// A key for one purpose, drawn from the gateway's one secret.
fn derived_key(config: &Config, label: &str) -> [u8; 32] {
    let mut mac = session::keyed(&config.key);
    mac.update(b"vary key v1\0");
    mac.update(label.as_bytes());
    mac.finalize().into_bytes().into()
}
