//! How often clients may call, read, change their variant, or present a wrong credential.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_vary::variant::VariantId;
use mcp_vary_access::PrincipalId;
use mcp_vary_rates::{
    AddressGroup, Caller, Counted, DEFAULT_CAPACITY, Limit, LimitExceeded, Operation, RateLimiter,
    RateLimiterError, SharedBucket, SharedClock,
};
use mcp_vary_store::{Count, RefusedChange, Store, StoreAway, VariantUse, Verdict};
use mcp_vary_wire::client_id::ClientId;
use quick_cache::sync::Cache;

use crate::store::StoreFailure;

/// The rate limits of a configuration, with what they have counted; none by default.
///
/// # Properties
///
/// Clones count together. When a configuration is replaced by one with equal limits, what was counted stays; new limits
/// begin at zero, all of them. Without limits nothing is counted and nothing is looked up.
///
/// # Examples
///
/// ```
/// use mcp_vary_settings::rates::RateLimits;
/// use mcp_vary_rates::{Counted, Limit, MonotonicClock, Per, SharedClock};
///
/// let clock = SharedClock::of(MonotonicClock::start());
/// let limit = Limit::new("calls", Per::Principal, Counted::Calls, "600/min".parse()?)?;
/// assert!(!RateLimits::new(vec![limit.clone()], clock.clone())?.is_empty());
///
/// // Clients see the name of the limit that refused them, so it must be the only one with it.
/// let twice = RateLimits::new(vec![limit.clone(), limit], clock);
/// assert_eq!(twice.unwrap_err().to_string(), "two limits have the name `calls`; rename one");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct RateLimits(Option<Arc<ActiveLimits>>);

impl RateLimits {
    /// Limits that have counted nothing yet.
    ///
    /// # Errors
    ///
    /// If there are too many, or two have one name.
    pub fn new(limits: Vec<Limit>, clock: SharedClock) -> Result<Self, RateLimiterError> {
        if limits.is_empty() {
            return Ok(Self::default());
        }
        let limiter = RateLimiter::new(limits, DEFAULT_CAPACITY, clock)?;
        Ok(Self(Some(Arc::new(ActiveLimits::new(limiter)))))
    }

    /// Whether there are no limits.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The limits, if one of them counts this.
    pub fn counting(&self, counted: Counted) -> Option<&ActiveLimits> {
        let limits = self.0.as_deref()?;
        limits.counts(counted).then_some(limits)
    }

    /// `before` with what it has counted, if its limits are the same; else these.
    pub fn or_unchanged(self, before: &Self) -> Self {
        let is_same = match (&self.0, &before.0) {
            (Some(new), Some(old)) => new.limiter.limits().eq(old.limiter.limits()),
            _ => false,
        };
        if is_same { before.clone() } else { self }
    }

    /// How many requests each limit has refused, by its name.
    pub fn refused(&self) -> BTreeMap<String, u64> {
        let limits = self.0.iter().flat_map(|limits| limits.refused.iter());
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        limits
            .map(|(name, refused)| (name.clone(), count(refused)))
            .collect()
    }
}

/// Shows the names of the limits only: what was counted belongs to principals and addresses.
impl fmt::Debug for RateLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = self.0.iter().flat_map(|limits| limits.refused.keys());
        f.debug_tuple("RateLimits")
            .field(&limits.collect::<Vec<_>>())
            .finish()
    }
}

/// Limits, at least one.
pub struct ActiveLimits {
    limiter: RateLimiter<PrincipalId, SharedClock>,
    /// By the names of the limits.
    refused: BTreeMap<String, AtomicU64>,
    /// The variant that each client used last.
    latest_variants: Cache<VariantUser, Arc<VariantId>>,
    /// Whether a limit depends on the names of tools.
    pub uses_tool_names: bool,
}

/// Shows the names of the limits only, as [`RateLimits`] does.
impl fmt::Debug for ActiveLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.refused.keys()).finish()
    }
}

/// Whose variant is remembered.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the gateway names each")]
pub enum VariantUser {
    /// A session, or the client on stdio.
    Connection(ClientId),
    /// A principal whose requests belong to no session.
    Principal(PrincipalId),
    /// Clients without either.
    Address(AddressGroup),
}

/// The same text at each replica, and another one for each user.
impl fmt::Display for VariantUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(client) => write!(f, "client {client:x}"),
            Self::Principal(principal) => write!(f, "principal {principal}"),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// Why an operation is refused that replicas count together.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "the gateway answers each")]
pub enum SharedRefusal<'a> {
    /// A limit is reached.
    Limit(LimitExceeded<'a>),
    /// Nobody can count it.
    StoreAway,
}

/// A client wants to change its variant, which a limit refuses.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "the gateway answers with both")]
pub struct ChangeRefused<'a> {
    /// The variant that stays active.
    pub active: Arc<VariantId>,
    /// The limit that is reached.
    pub limit: LimitExceeded<'a>,
}

/// What the store counts.
fn counts(buckets: &[SharedBucket<'_>]) -> Vec<Count> {
    let counts = buckets.iter().map(|bucket| Count {
        name: bucket.name.clone(),
        interval: bucket.interval,
        tolerance: bucket.tolerance,
    });
    counts.collect()
}

impl ActiveLimits {
    fn new(limiter: RateLimiter<PrincipalId, SharedClock>) -> Self {
        let names = limiter.limits().map(|limit| limit.name().to_owned());
        let refused = names.map(|name| (name, AtomicU64::new(0))).collect();
        let uses_tool_names = limiter.limits().any(Limit::uses_tool_names);
        Self {
            limiter,
            refused,
            latest_variants: Cache::new(DEFAULT_CAPACITY),
            uses_tool_names,
        }
    }

    fn counts(&self, counted: Counted) -> bool {
        let mut limits = self.limiter.limits();
        limits.any(|limit| limit.counted() == counted)
    }

    /// Decides whether an operation may go on, and counts it if so. The other refusals come from
    /// [`change_variant`](Self::change_variant) and from what replicas count together.
    ///
    /// # Errors
    ///
    /// The limit that refuses. Then no limit has counted the operation.
    pub fn check(
        &self,
        caller: &Caller<'_, PrincipalId>,
        operation: &Operation<'_>,
    ) -> Result<(), LimitExceeded<'_>> {
        let checked = self.limiter.check(caller, operation);
        checked.inspect_err(|limit| self.note_refused(limit))
    }

    /// Decides as [`check`](Self::check) does, with what all replicas have counted. Only an operation to which a limit applies
    /// asks the store.
    ///
    /// # Errors
    ///
    /// The limit that refuses; or that the store is away, if it then refuses what it cannot count.
    pub async fn check_shared(
        &self,
        store: &Store,
        on_failure: StoreFailure,
        caller: &Caller<'_, PrincipalId>,
        operation: &Operation<'_>,
    ) -> Result<(), SharedRefusal<'_>> {
        match (
            self.shared_refusal(store, caller, operation).await,
            on_failure,
        ) {
            (Ok(None), _) => Ok(()),
            (Ok(Some(limit)), _) => Err(SharedRefusal::Limit(limit)),
            (Err(_), StoreFailure::Open) => {
                self.check(caller, operation).map_err(SharedRefusal::Limit)
            }
            (Err(_), StoreFailure::Closed) => Err(SharedRefusal::StoreAway),
        }
    }

    /// Has the store count an operation; the limit that refuses it, if one does.
    async fn shared_refusal(
        &self,
        store: &Store,
        caller: &Caller<'_, PrincipalId>,
        operation: &Operation<'_>,
    ) -> Result<Option<LimitExceeded<'_>>, StoreAway> {
        let buckets = self.limiter.shared_buckets(caller, operation);
        let verdict = store.count(counts(&buckets)).await?;
        Ok(self.refusal(&buckets, verdict))
    }

    /// The limit that refuses, if one does.
    fn refusal<'a>(
        &self,
        buckets: &[SharedBucket<'a>],
        verdict: Verdict,
    ) -> Option<LimitExceeded<'a>> {
        let Verdict::Refused { index, wait } = verdict else {
            return None;
        };
        let limit = buckets.get(index)?.exceeded(wait);
        self.note_refused(&limit);
        Some(limit)
    }

    /// The limit by which the credential of a `sender` is not verified. Only who has sent a wrong one here lately asks the
    /// store, which has counted those at all replicas.
    pub async fn blocked_sender(
        &self,
        store: Option<&Store>,
        sender: &Caller<'_, PrincipalId>,
    ) -> Option<LimitExceeded<'_>> {
        let failure = Operation::AuthFailure;
        if let Some(limit) = self.blocked(sender, &failure) {
            return Some(limit);
        }
        if !self.limiter.has_counted(sender, &failure) {
            return None;
        }
        let buckets = self.limiter.shared_buckets(sender, &failure);
        let verdict = Box::pin(store?.would_refuse(counts(&buckets))).await;
        let limit = self.refusal(&buckets, verdict.ok()?)?;
        self.limiter.block(sender, &failure, &limit);
        Some(limit)
    }

    /// Counts a wrong credential, here and in the store. If the replicas together have counted enough, this one refuses
    /// credentials of the same sender for as long as the store says.
    ///
    /// # Errors
    ///
    /// The limit that refuses.
    pub async fn count_failure(
        &self,
        store: Option<&Store>,
        sender: &Caller<'_, PrincipalId>,
    ) -> Result<(), LimitExceeded<'_>> {
        let failure = Operation::AuthFailure;
        self.check(sender, &failure)?;
        let Some(store) = store else {
            return Ok(());
        };
        match self.shared_refusal(store, sender, &failure).await {
            Ok(Some(limit)) => {
                self.limiter.block(sender, &failure, &limit);
                Err(limit)
            }
            // While the store is away, each replica counts by itself.
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// The limit that refuses an operation, without counting it if none does.
    pub(crate) fn blocked(
        &self,
        caller: &Caller<'_, PrincipalId>,
        operation: &Operation<'_>,
    ) -> Option<LimitExceeded<'_>> {
        let blocked = self.limiter.blocked(caller, operation);
        blocked.inspect(|limit| self.note_refused(limit))
    }

    /// Records that `user` uses `variant`, and counts that if it used another one before. A variant that is not
    /// `available` any more was not left by choice.
    ///
    /// # Errors
    ///
    /// If a limit refuses the change. Then the other variant stays active.
    pub fn change_variant(
        &self,
        caller: &Caller<'_, PrincipalId>,
        user: VariantUser,
        variant: &VariantId,
        available: impl FnOnce(&VariantId) -> bool,
    ) -> Result<(), ChangeRefused<'_>> {
        let latest = self.latest_variants.get(&user);
        if latest.as_deref() == Some(variant) {
            return Ok(());
        }
        if let Some(active) = latest.filter(|latest| available(latest)) {
            self.check(caller, &Operation::SwitchVariant)
                .map_err(|limit| ChangeRefused { active, limit })?;
        }
        self.latest_variants.insert(user, Arc::new(variant.clone()));
        Ok(())
    }

    /// The same with the variant that `user` used last at any replica, and with the changes that all have counted. While the
    /// store is away, each replica counts by itself.
    ///
    /// # Errors
    ///
    /// As those of [`change_variant`](Self::change_variant).
    pub async fn change_shared_variant(
        &self,
        store: &Store,
        caller: &Caller<'_, PrincipalId>,
        user: VariantUser,
        variant: &VariantId,
        available: &[&VariantId],
    ) -> Result<(), ChangeRefused<'_>> {
        let buckets = self
            .limiter
            .shared_buckets(caller, &Operation::SwitchVariant);
        let names: Vec<_> = available.iter().map(|variant| variant.as_str()).collect();
        let client = user.to_string();
        let counts = counts(&buckets);
        let used = VariantUse {
            client: &client,
            variant: variant.as_str(),
            available: &names,
            counts: &counts,
        };
        let Ok(refused) = store.use_variant(&used).await else {
            let is_available = |latest: &VariantId| available.contains(&latest);
            return self.change_variant(caller, user, variant, is_available);
        };
        if let Some(RefusedChange {
            active,
            index,
            wait,
        }) = refused
            && let Some(active) = available.get(active)
            && let Some(limit) = self.refusal(&buckets, Verdict::Refused { index, wait })
        {
            let active = Arc::new((*active).clone());
            return Err(ChangeRefused { active, limit });
        }
        self.latest_variants.insert(user, Arc::new(variant.clone()));
        Ok(())
    }

    fn note_refused(&self, limit: &LimitExceeded<'_>) {
        if let Some(refused) = self.refused.get(limit.limit()) {
            refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}
