//! The order in which servers with `passthrough: {rank: on}` rank their own variants for the hints of a client
//! ([0047](../../../../docs/decisions/0047-passthrough.md)).
//!
//! A server is asked in the background, once for clients with the same hints. Only the answers to `initialize` and
//! `server/discover` wait for it, a moment. It does not decide the default of clients of 2026-07-28, whose requests may
//! go to replicas with other answers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use mcp_vary::extension::SERVER_VARIANTS;
use mcp_vary::hints::VariantHints;
use mcp_vary::variant::VariantId;
use mcp_vary_base::expiring_store::{Entry, ExpiringStore, StoreLimits};
use mcp_vary_base::lock::Lock;
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_catalog::selection::rankings::{RankedVariants, Rankings, ServerOrder};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::model_ranking::{BackgroundTasks, QuestionKey, RankedByEra, RankedClient};
use crate::pool::UpstreamPool;
use crate::pool::connections::capabilities::hints_for_server;
use crate::pool::source::ServerSource;
use crate::pool::upstream_variants::is_passed_through;

/// The orders of the servers, under one configuration.
#[derive(Debug)]
pub(crate) struct ServerRanking {
    servers: Vec<RankingServer>,
    rankings: Arc<Rankings>,
    cache: Lock<OrderCache>,
    in_flight: Arc<Semaphore>,
    background: BackgroundTasks,
    started: Instant,
}

/// A server whose order counts.
#[derive(Clone, Debug)]
struct RankingServer {
    /// Its connection for clients without special capabilities.
    source: Arc<ServerSource>,
    /// Its variants that clients can select, with their ids for clients.
    variants: Vec<VariantId>,
}

/// What the servers were asked. Times are seconds since the start.
#[derive(Debug)]
struct OrderCache {
    orders: ExpiringStore<QuestionKey, Known>,
    /// The minute in which they were asked last, and how often in it.
    minute: u64,
    count: u32,
}

/// What is known of the order for a client.
#[derive(Clone, Debug)]
enum Known {
    /// The servers are being asked, until this is cancelled.
    Pending(CancellationToken),
    Order(Arc<RankedByEra>),
    /// No server answered. They are asked again when this entry expires.
    Nothing,
}

impl ServerRanking {
    /// The ranking by the servers of `pool`; `None` if the order of none counts.
    pub(crate) fn new(
        pool: &UpstreamPool,
        rankings: &Arc<Rankings>,
        background: BackgroundTasks,
    ) -> Option<Arc<Self>> {
        let sources = pool.base().sources();
        let servers = sources.iter().filter(|source| has_own_ranking(source));
        let servers = servers.map(|source| RankingServer {
            source: Arc::clone(source),
            variants: variants_of(source, sources),
        });
        let servers: Vec<_> = servers.filter(|it| it.variants.len() > 1).collect();
        let limits = StoreLimits {
            entries: MAX_ORDERS,
            ..StoreLimits::UNBOUNDED
        };
        (!servers.is_empty()).then(|| {
            Arc::new(Self {
                servers,
                rankings: Arc::clone(rankings),
                cache: Lock::new(OrderCache {
                    orders: ExpiringStore::new(limits),
                    minute: 0,
                    count: 0,
                }),
                in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
                background,
                started: Instant::now(),
            })
        })
    }

    /// The variants in the order of the servers for `client`, if they have answered. If they were not asked, they are
    /// asked in the background, unless a limit forbids that.
    pub(crate) fn ranked(
        self: &Arc<Self>,
        client: &RankedClient<'_>,
    ) -> Option<Arc<RankedVariants>> {
        match self.known(client)? {
            Known::Order(order) => Some(order.for_era(client.era)),
            Known::Pending(_) | Known::Nothing => None,
        }
    }

    /// Waits for the answers about `client`, at most [`LONGEST_WAIT`].
    pub(crate) async fn wait(self: &Arc<Self>, client: &RankedClient<'_>) {
        if let Some(Known::Pending(done)) = self.known(client) {
            let waited = tokio::time::timeout(LONGEST_WAIT, done.cancelled()).await;
            if waited.is_err() {
                debug!("servers have not ranked their variants in time; the rules rank");
            }
        }
    }

    /// What is known about `client`. The servers are asked if nothing is; `None` if they are not.
    fn known(self: &Arc<Self>, client: &RankedClient<'_>) -> Option<Known> {
        // Without hints the servers' order is that of their declarations, which the rules use.
        if !client.forwardable.contains(SERVER_VARIANTS) {
            return None;
        }
        let (key, now) = (client.key(), self.started.elapsed().as_secs());
        let mut cache = self.cache.lock();
        if let Some(known) = cache.orders.get(&key, now) {
            return Some(known.clone());
        }
        let permit = Arc::clone(&self.in_flight).try_acquire_owned().ok()?;
        if !cache.begin(now) {
            return None;
        }
        let pending = Known::Pending(CancellationToken::new());
        cache.insert(key, pending.clone(), ANSWER_LIMIT.as_secs() + 1, now);
        drop(cache);
        let Known::Pending(done) = pending.clone() else {
            return None;
        };
        let ranking = Arc::clone(self);
        let hints = client.hints.clone();
        let visible = client.visible.map(<[_]>::to_vec);
        let capabilities = client.forwardable.to_owned();
        let asking = async move {
            let orders = ranking.ask(&capabilities).await;
            let known = ranking.order(&hints, visible.as_deref(), &orders);
            let now = ranking.started.elapsed().as_secs();
            let seconds = match known {
                Known::Order(_) => ORDER_SECONDS,
                _ => RETRY_SECONDS,
            };
            ranking.cache.lock().insert(key, known, seconds, now);
            done.cancel();
            drop(permit);
        };
        let shutdown = self.background.shutdown.clone();
        let asking = shutdown.run_until_cancelled_owned(asking);
        self.background.tasks.spawn(asking);
        Some(pending)
    }

    /// Asks all servers that are connected for the order for a client.
    async fn ask(&self, capabilities: &str) -> Vec<ServerOrder> {
        let answers = self.servers.iter().map(async |server| {
            let answer = tokio::time::timeout(ANSWER_LIMIT, server.ask(capabilities)).await;
            answer.ok().flatten()
        });
        join_all(answers).await.into_iter().flatten().collect()
    }

    fn order(
        &self,
        hints: &VariantHints,
        visible: Option<&[VariantIndex]>,
        orders: &[ServerOrder],
    ) -> Known {
        if orders.is_empty() {
            return Known::Nothing;
        }
        let rankings = &self.rankings;
        let ranked =
            RankedByEra::new(|scope| rankings.in_server_orders(hints, visible, orders, scope));
        Known::Order(Arc::new(ranked))
    }
}

impl RankingServer {
    /// The order of the server for clients with these capabilities; `None` if it does not answer.
    async fn ask(&self, capabilities: &str) -> Option<ServerOrder> {
        let connection = self.source.connection.current()?;
        let configured = &self.source.connection.config().capabilities;
        let hints_only = hints_for_server(configured, capabilities);
        let server = &self.source.name();
        let offered = connection.variants_for(&hints_only).await;
        let offered = offered
            .inspect_err(|error| debug!(server, %error, "no ranking by a server; the rules rank"))
            .ok()?;
        let id_of = |id: VariantId| format!("{server}/{id}").parse().ok();
        Some(ServerOrder {
            variants: self.variants.iter().cloned().collect(),
            offered: offered.into_iter().filter_map(id_of).collect(),
        })
    }
}

impl OrderCache {
    /// Whether the servers may be asked now.
    fn begin(&mut self, now: u64) -> bool {
        if self.minute != now / 60 {
            (self.minute, self.count) = (now / 60, 0);
        }
        let is_allowed = self.count < MAX_PER_MINUTE;
        self.count += u32::from(is_allowed);
        is_allowed
    }

    fn insert(&mut self, key: QuestionKey, known: Known, seconds: u64, now: u64) {
        let entry = Entry {
            expires_at: now.saturating_add(seconds),
            ..Entry::new(known)
        };
        self.orders.insert(key, entry, now);
    }
}

/// Whether the order of the server counts. One whose connections depend on the claims of a client is not asked: its order
/// would be that of clients without claims.
fn has_own_ranking(source: &ServerSource) -> bool {
    let config = source.connection.config();
    let ranks = config.passthrough.is_some_and(|it| it.rank);
    ranks && is_passed_through(source) && config.refusal.is_none() && !config.is_per_client()
}

/// The variants of the server of `source` that clients can select.
fn variants_of(source: &ServerSource, sources: &[Arc<ServerSource>]) -> Vec<VariantId> {
    let variants = sources.iter().filter(|other| {
        let config = other.connection.config();
        config.variant_of.as_deref() == Some(source.name())
    });
    variants
        .filter_map(|other| other.name().parse().ok())
        .collect()
}

/// The longest wait of `initialize` and `server/discover` for the servers.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// How long a server may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// How long an order is used, in seconds: as long as the rankings by the rules are cached.
const ORDER_SECONDS: u64 = 300;

/// When servers that did not answer are asked again, in seconds.
const RETRY_SECONDS: u64 = 60;

/// Orders that are remembered: one for each set of hints and of visible variants.
const MAX_ORDERS: usize = 1000;

/// Questions at the same time. A server with sessions opens one for each, or a process is started.
const MAX_IN_FLIGHT: usize = 4;

/// Questions in a minute, whatever the number of clients.
const MAX_PER_MINUTE: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    /// EXT-9, EXT-5: ever new hints do not reach servers without end.
    #[test]
    fn servers_are_asked_sixty_times_a_minute() {
        let mut cache = OrderCache {
            orders: ExpiringStore::new(StoreLimits::UNBOUNDED),
            minute: 0,
            count: 0,
        };
        let mut count_asked = |now| (0..100).filter(|_| cache.begin(now)).count();
        assert_eq!([0, 59, 60, 200].map(&mut count_asked), [60, 0, 60, 60]);
    }
}
