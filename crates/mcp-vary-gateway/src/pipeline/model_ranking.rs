//! Ranks variants by a language model, in the background (SV-6).
//!
//! A request never waits for the model: until an answer is there, the order of the rules is used. The model only
//! orders variants that the client sees. It does not decide access, pins, addresses, rules or experiments, nor the
//! default of clients of 2026-07-28, whose requests may go to replicas with other answers.

mod cache;
mod endpoint;
mod ranked_by_era;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::hints::VariantHints;
use mcp_vary::rank::model::{MAX_VARIANTS, question};
use mcp_vary::variant::VariantId;
use mcp_vary_access::{Principal, PrincipalId};
use mcp_vary_audit::{self as audit, LongText, Text};
use mcp_vary_base::environment::Variables;
use mcp_vary_base::lock::Lock;
use mcp_vary_base::tasks::TaskTracker;
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_catalog::selection::rankings::{HintsKey, RankedVariants, Rankings};
use mcp_vary_rates::{
    Caller, Counted, DEFAULT_CAPACITY, Limit, MonotonicClock, Operation, Per, RateLimiter,
    SharedClock,
};
use mcp_vary_wire::revision::Era;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use self::cache::{Answer, AnswerCache};
use self::endpoint::AskError;
use self::ranked_by_era::{QuestionKey, RankedByEra};
use mcp_vary_observation::AuditService;
use mcp_vary_settings::model_ranking::ModelRankingConfig;

/// Ranks variants by a model, under one configuration.
pub(crate) struct ModelRanking {
    config: ModelRankingConfig,
    rankings: Arc<Rankings>,
    limiter: RateLimiter<PrincipalId, SharedClock>,
    answers: Lock<AnswerCache>,
    in_flight: Arc<Semaphore>,
    background: BackgroundTasks,
    started: Instant,
}

/// Where requests to the model run, and what ends them.
#[derive(Clone, Debug)]
pub(crate) struct BackgroundTasks {
    pub(crate) tasks: TaskTracker,
    pub(crate) shutdown: CancellationToken,
    /// The environment variables that name proxies.
    pub(crate) variables: Variables,
    /// The audit log, if there is one.
    pub(crate) audit: Option<Arc<AuditService>>,
}

/// The client for which variants are ranked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankedClient<'a> {
    pub(crate) hints: &'a VariantHints,
    pub(crate) hints_key: &'a HintsKey,
    /// The variants that exist for the client; `None` if all do.
    pub(crate) visible: Option<&'a [VariantIndex]>,
    pub(crate) principal: Option<&'a Arc<Principal>>,
    /// The client's address, if limits need it.
    pub(crate) address: Option<IpAddr>,
    pub(crate) era: Era,
}

impl RankedClient<'_> {
    /// The key of a question for this client. The variants are the same for all questions under one configuration, and the
    /// model and its instructions for all of one [`ModelRanking`].
    fn key(&self) -> QuestionKey {
        let description = self.hints.description().unwrap_or_default();
        let mut digest = Sha256::new();
        digest.update(self.hints_key.as_str());
        digest.update((description.len() as u64).to_be_bytes());
        digest.update(description);
        match self.visible {
            None => digest.update([0]),
            Some(visible) => {
                digest.update([1]);
                for index in visible {
                    digest.update((index.position() as u64).to_be_bytes());
                }
            }
        }
        digest.finalize().into()
    }
}

/// The status of the ranking by a model.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ModelRankingStatus {
    /// How often the model was asked.
    pub requests: u64,
    /// How many answers are or were used.
    pub used: u64,
    /// How often it was not asked because of a limit, or because its endpoint failed repeatedly.
    pub postponed: u64,
    /// How many answers and failures are remembered.
    pub cached: usize,
    /// How often there was no usable answer, by the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<Cow<'static, str>, u64>,
}

/// A request to the model.
struct ModelRequest {
    key: QuestionKey,
    hints: VariantHints,
    visible: Option<Vec<VariantIndex>>,
    offered: Vec<VariantId>,
    /// The principal of the client, for the audit log. The model is not told.
    principal: Option<Arc<Principal>>,
}

impl ModelRanking {
    /// The ranking by the model of a configuration; `None` without one. If the configuration `before` ranked the same
    /// variants by the same model, its answers and counts go on.
    pub(crate) fn new(
        configured: Option<&ModelRankingConfig>,
        rankings: &Arc<Rankings>,
        background: BackgroundTasks,
        before: Option<&Arc<Self>>,
    ) -> Option<Arc<Self>> {
        let config = configured?;
        let is_same =
            |before: &&Arc<Self>| before.config == *config && before.rankings.ranks_like(rankings);
        if let Some(before) = before.filter(is_same) {
            return Some(Arc::clone(before));
        }
        let limiter = match limiter(config) {
            Ok(limiter) => limiter,
            Err(error) => {
                warn!(%error, "variants are not ranked by the model");
                return None;
            }
        };
        Some(Arc::new(Self {
            config: config.clone(),
            rankings: Arc::clone(rankings),
            limiter,
            answers: Lock::new(AnswerCache::new(config.cache)),
            in_flight: Arc::new(Semaphore::new(config.in_flight)),
            background,
            started: Instant::now(),
        }))
    }

    /// The order of the model for `client`, if it is there. If it is not, the model is asked in the background, unless
    /// a limit forbids that.
    pub(crate) fn ranked(
        self: &Arc<Self>,
        client: &RankedClient<'_>,
    ) -> Option<Arc<RankedVariants>> {
        let description = client.hints.description()?;
        let known = client.principal.filter(|person| !person.is_anonymous());
        if description.trim().is_empty() || known.is_none() && !self.config.anonymous {
            return None;
        }
        let key = client.key();
        let now = self.started.elapsed().as_secs();
        let mut answers = self.answers.lock();
        match answers.get(&key, now) {
            Some(Answer::Usable(order)) => Some(order.for_era(client.era)),
            Some(Answer::Pending | Answer::Unusable) => None,
            None => {
                let is_asked = !answers.is_paused(now) && self.begin(key, client)?;
                if is_asked {
                    answers.begin(key, self.config.timeout.as_secs(), now);
                } else {
                    answers.counts.postponed += 1;
                }
                None
            }
        }
    }

    /// The current status.
    pub(crate) fn status(&self) -> ModelRankingStatus {
        let answers = self.answers.lock();
        ModelRankingStatus {
            cached: answers.len(),
            ..answers.counts.clone()
        }
    }

    /// Asks the model in the background, unless a limit forbids that. `None` if there is nothing to rank, or too much.
    fn begin(self: &Arc<Self>, key: QuestionKey, client: &RankedClient<'_>) -> Option<bool> {
        let count = self.rankings.visible(client.visible).count();
        if !(2..=MAX_VARIANTS).contains(&count) {
            return None;
        }
        let Ok(permit) = Arc::clone(&self.in_flight).try_acquire_owned() else {
            return Some(false);
        };
        let principal = client.principal.filter(|person| !person.is_anonymous());
        let caller = Caller {
            principal: principal.map(|principal| principal.id()),
            key: None,
            address: client.address,
        };
        if self.limiter.check(&caller, &REQUEST).is_err() {
            return Some(false);
        }
        let request = ModelRequest::new(key, client, &self.rankings);
        let ranking = Arc::clone(self);
        let shutdown = self.background.shutdown.clone();
        self.background.tasks.spawn(async move {
            shutdown
                .run_until_cancelled(ranking.complete(request))
                .await;
            drop(permit);
        });
        Some(true)
    }

    /// Asks the model, and records its answer.
    async fn complete(&self, request: ModelRequest) {
        let asked_at = Instant::now();
        let visible = request.visible.as_deref();
        let question = question(&request.hints, self.rankings.visible(visible));
        let order = self.request_order(&request, &question).await;
        let duration = asked_at.elapsed();
        self.record(&request, question, &order, duration);
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let now = self.started.elapsed().as_secs();
        match order {
            Ok((order, _)) => {
                self.answers.lock().succeed(request.key, order, now);
                debug!(
                    duration_ms,
                    model = self.config.model(),
                    "variants ranked by the model"
                );
            }
            Err(error) => {
                let is_first = self.answers.lock().fail(request.key, &error, now);
                if is_first {
                    let reason = error.name();
                    warn!(%error, reason, duration_ms, "no ranking by the model; the rules rank");
                }
            }
        }
    }

    /// Records in the audit log what the model was asked, and its answer.
    fn record(
        &self,
        request: &ModelRequest,
        question: String,
        order: &Result<(RankedByEra, Vec<VariantId>), AskError>,
        duration: Duration,
    ) {
        let Some(audit) = &self.background.audit else {
            return;
        };
        let list = |variants: &[VariantId]| {
            let ids: Vec<_> = variants.iter().map(VariantId::as_str).collect();
            LongText::new(ids.join(" "))
        };
        let model = Text::new(self.config.model());
        let mut ranking = audit::ModelRanking::new(model, list(&request.offered));
        match order {
            Ok((_, ids)) => ranking.order = Some(list(ids)),
            Err(error) => ranking.failure = Some(Text::from_static(error.name())),
        }
        audit.variants_ranked(request.principal.as_deref(), question, ranking, duration);
    }

    /// The order of the model for clients of each era, and its answer.
    async fn request_order(
        &self,
        request: &ModelRequest,
        question: &str,
    ) -> Result<(RankedByEra, Vec<VariantId>), AskError> {
        let visible = request.visible.as_deref();
        let order = endpoint::rank(
            &self.config,
            question,
            &request.offered,
            self.background.variables,
        )
        .await?;
        let ranked = RankedByEra::new(|scope| {
            let rankings = &self.rankings;
            rankings.reordered(&request.hints, visible, &order, scope)
        });
        Ok((ranked, order))
    }
}

impl ModelRequest {
    fn new(key: QuestionKey, client: &RankedClient<'_>, rankings: &Rankings) -> Self {
        let offered = rankings.visible(client.visible);
        Self {
            key,
            hints: client.hints.clone(),
            visible: client.visible.map(<[_]>::to_vec),
            offered: offered.map(|variant| variant.id.clone()).collect(),
            principal: client.principal.cloned(),
        }
    }
}

/// A request to the model, as the limits count it: a call of one tool of one server.
const REQUEST: Operation<'static> = Operation::CallTool {
    server: "model",
    tool: "ranking",
};

/// Limits of the requests: for the clients of one principal, and for all.
fn limiter(
    config: &ModelRankingConfig,
) -> Result<RateLimiter<PrincipalId, SharedClock>, Box<dyn std::error::Error>> {
    let rates = [
        ("per-principal", Per::Principal, config.per_principal),
        ("in-all", Per::Server, config.in_all),
    ];
    let checked = rates.map(|(name, per, rate)| Limit::new(name, per, Counted::Calls, rate));
    let limits = checked.into_iter().collect::<Result<_, _>>()?;
    let clock = SharedClock::of(MonotonicClock::start());
    Ok(RateLimiter::new(limits, DEFAULT_CAPACITY, clock)?)
}

// Shows no client.
mcp_vary_base::debug_by_name!(ModelRanking);
