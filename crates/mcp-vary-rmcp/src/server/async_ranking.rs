//! Ranking that takes time, such as by a model: in the background, once for each question.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::hints::VariantHints;
use mcp_vary::rank::Ranking;
use mcp_vary::rank::model::{INSTRUCTIONS, MAX_VARIANTS, Reordering, parse_answer, question};
use mcp_vary::variant::{ServerVariant, VariantId};
use mcp_vary_base::lock::Lock;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::ranking_cache::RankingKey;
use crate::client::Model;

/// The time in which an order must arrive.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The largest number of questions at a time.
const MAX_IN_FLIGHT: usize = 4;

/// The largest number of questions whose outcome is stored.
const MAX_STORED: usize = 256;

/// Orders variants for a client, and may take its time: [`Builder::with_async_ranking`].
///
/// [`Builder::with_async_ranking`]: super::Builder::with_async_ranking
///
/// # Examples
///
/// ```
/// use mcp_vary::variant::VariantId;
/// use mcp_vary_rmcp::server::{RankingRequest, VariantRanker};
///
/// struct ByName;
///
/// impl VariantRanker for ByName {
///     type Error = std::convert::Infallible;
///
///     async fn rank(&self, request: &RankingRequest) -> Result<Vec<VariantId>, Self::Error> {
///         let mut ids: Vec<_> = request.variants().iter().map(|it| it.id.clone()).collect();
///         ids.sort();
///         Ok(ids)
///     }
/// }
/// ```
pub trait VariantRanker: Send + Sync + 'static {
    /// The error of a ranking that failed.
    type Error: fmt::Display + Send;

    /// The ids of all variants of `request`, best first.
    fn rank(
        &self,
        request: &RankingRequest,
    ) -> impl Future<Output = Result<Vec<VariantId>, Self::Error>> + Send;
}

/// What is ranked, and for which client. It contains nothing about who the client is.
#[derive(Clone, Debug)]
pub struct RankingRequest {
    hints: VariantHints,
    variants: Vec<ServerVariant>,
}

impl RankingRequest {
    /// The client's description and hints. The client wrote them: they are untrusted.
    #[must_use]
    pub fn hints(&self) -> &VariantHints {
        &self.hints
    }

    /// The variants that the client can see, in the order of declaration.
    #[must_use]
    pub fn variants(&self) -> &[ServerVariant] {
        &self.variants
    }
}

/// Ranks variants with a [`Model`].
///
/// The model receives the client's description and hints, and the id, description, hints and status of the variants that
/// the client can see. Its answer must be `{"ranking": [...]}` with each id once.
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::client::Model;
/// use mcp_vary_rmcp::server::{ModelRanker, VaryServer};
///
/// fn ranked_by(model: impl Model + Send + 'static) {
///     let builder = VaryServer::builder().with_async_ranking(ModelRanker::new(model));
/// # let _ = builder;
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ModelRanker<M>(M);

impl<M: Model + Send + 'static> ModelRanker<M> {
    /// Ranks with `model`.
    pub fn new(model: M) -> Self {
        Self(model)
    }
}

impl<M: Model + Send + 'static> VariantRanker for ModelRanker<M> {
    type Error = String;

    async fn rank(&self, request: &RankingRequest) -> Result<Vec<VariantId>, Self::Error> {
        let prompt = format!(
            "{INSTRUCTIONS}\n\n{}",
            question(&request.hints, &request.variants)
        );
        let answer = self.0.complete(&prompt).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let offered: Vec<_> = request.variants.iter().map(|it| it.id.clone()).collect();
        parse_answer(&answer, &offered).map_err(|error| error.to_string())
    }
}

type RankFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<VariantId>, String>> + Send + 'a>>;

/// A [`VariantRanker`] of any type.
pub(super) type DynRanker = Arc<dyn Fn(&RankingRequest) -> RankFuture<'_> + Send + Sync>;

/// The orders of a ranker, by what was asked.
pub(super) struct AsyncRanking {
    ranker: DynRanker,
    orders: Arc<Lock<BTreeMap<RankingKey, Outcome>>>,
    in_flight: Arc<Semaphore>,
}

/// What became of a question.
enum Outcome {
    Pending,
    /// A permutation of the variants that the client can see.
    Order(Arc<[VariantId]>),
    Failed,
}

impl AsyncRanking {
    pub(super) fn new(ranker: impl VariantRanker) -> Self {
        let ranker = Arc::new(ranker);
        Self {
            ranker: Arc::new(move |request| {
                let ranker = Arc::clone(&ranker);
                Box::pin(async move {
                    let order = ranker.rank(request).await;
                    order.map_err(|error| error.to_string())
                })
            }),
            orders: Arc::default(),
            in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
        }
    }

    /// Orders `ranking` as the ranker did for `key`, except for its first variant. The ranker is asked in the background
    /// if it was not asked before.
    pub(super) fn apply(
        &self,
        key: &RankingKey,
        visible: &[&ServerVariant],
        ranking: &mut Arc<Ranking>,
    ) {
        if key.hints.is_empty() || !(2..=MAX_VARIANTS).contains(&visible.len()) {
            return;
        }
        let mut orders = self.orders.lock();
        match orders.get(key) {
            Some(Outcome::Order(order)) => {
                Arc::make_mut(ranking).reorder(order, Reordering::AfterDefault);
            }
            Some(Outcome::Pending | Outcome::Failed) => {}
            None => self.begin(key, visible, &mut orders),
        }
    }

    fn begin(
        &self,
        key: &RankingKey,
        visible: &[&ServerVariant],
        orders: &mut BTreeMap<RankingKey, Outcome>,
    ) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let Ok(permit) = Arc::clone(&self.in_flight).try_acquire_owned() else {
            return;
        };
        if orders.len() >= MAX_STORED {
            orders.retain(|_, outcome| matches!(outcome, Outcome::Pending));
        }
        orders.insert(key.clone(), Outcome::Pending);
        let request = RankingRequest {
            hints: key.hints.clone(),
            variants: visible.iter().copied().cloned().collect(),
        };
        let (ranker, orders) = (Arc::clone(&self.ranker), Arc::clone(&self.orders));
        let key = key.clone();
        runtime.spawn(async move {
            let pending = PendingQuestion { orders, key };
            let order = tokio::time::timeout(TIMEOUT, ranker(&request)).await;
            let order = order.unwrap_or_else(|_| Err(format!("no order within {TIMEOUT:?}")));
            match order.and_then(|order| checked(order, &request)) {
                Ok(order) => pending.finish(Outcome::Order(order)),
                Err(error) => {
                    let error: String = error.chars().take(MAX_SHOWN).collect();
                    tracing::warn!(error = %error.escape_debug(), "no ranking by the ranker; the rules rank");
                    pending.finish(Outcome::Failed);
                }
            }
            drop(permit);
        });
    }
}

/// A question that is under way. If its task panics, it counts as failed.
struct PendingQuestion {
    orders: Arc<Lock<BTreeMap<RankingKey, Outcome>>>,
    key: RankingKey,
}

impl PendingQuestion {
    fn finish(&self, outcome: Outcome) {
        self.orders.lock().insert(self.key.clone(), outcome);
    }
}

impl Drop for PendingQuestion {
    fn drop(&mut self) {
        if let Some(outcome @ Outcome::Pending) = self.orders.lock().get_mut(&self.key) {
            *outcome = Outcome::Failed;
        }
    }
}

/// The order, if it is a permutation of the variants of `request`.
fn checked(order: Vec<VariantId>, request: &RankingRequest) -> Result<Arc<[VariantId]>, String> {
    let is_known = |id: &VariantId| order.contains(id);
    let are_all = request.variants.iter().all(|variant| is_known(&variant.id));
    if are_all && order.len() == request.variants.len() {
        Ok(order.into())
    } else {
        Err("the order does not name each variant once".to_owned())
    }
}

/// The largest part of an error that is logged, in characters.
const MAX_SHOWN: usize = 200;
