//! Checks operations against all limits.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock, Reference as _};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;

use crate::caller::{Bucket, Caller, Operation};
use crate::limit::Limit;
use crate::refusal::LimitExceeded;
use crate::table::{SharedTable, Table};

/// The maximum number of limits.
pub const MAX_LIMITS: usize = 64;

/// How many buckets each limit remembers by default.
pub const DEFAULT_CAPACITY: usize = 16_384;

/// The largest number of buckets that a limit can remember.
pub const MAX_CAPACITY: usize = 1_048_576;

/// How long an operation is known to have been counted at least.
const LATELY: Duration = Duration::from_secs(60);

/// All limits of a gateway, with what was counted. `P` identifies a principal.
///
/// # Properties
///
/// An operation is counted by each limit that applies to it, or by none. An operation without a limit is always
/// allowed.
///
/// A memory bound holds for any number of clients: each limit remembers at most its capacity, rounded up to shards of
/// 1,024. What it forgets is the bucket that has used the least.
#[derive(Debug)]
pub struct RateLimiter<P: Clone + Eq + Hash, C: Clock> {
    limits: Vec<ActiveLimit<P, C>>,
    clock: C,
    start: C::Instant,
}

/// A bucket of a limit, as a counter needs it that several processes share.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SharedBucket<'a> {
    limit: &'a str,
    /// The limit, its rate, and for whom it counts: the same in each process.
    pub name: String,
    /// The time in which one operation becomes available again.
    pub interval: Duration,
    /// How far in the future the bucket may be full again so that one more operation is allowed.
    pub tolerance: Duration,
}

impl<'a> SharedBucket<'a> {
    /// The refusal of an operation that this bucket allows after `wait`.
    pub const fn exceeded(&self, wait: Duration) -> LimitExceeded<'a> {
        LimitExceeded {
            limit: self.limit,
            wait,
        }
    }
}

#[derive(Debug)]
struct ActiveLimit<P: Clone + Eq + Hash, C: Clock> {
    limit: Limit,
    interval: Nanos,
    /// How far in the future a bucket may be full again so that one more operation is allowed.
    tolerance: Nanos,
    table: Arc<Table<Bucket<P>>>,
    limiter: Governor<P, C>,
}

type Governor<P, C> = governor::RateLimiter<
    Bucket<P>,
    SharedTable<Bucket<P>>,
    C,
    NoOpMiddleware<<C as Clock>::Instant>,
>;

/// Values do not make a [`RateLimiter`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RateLimiterError {
    /// There are too many limits.
    #[error("there are {0} limits; at most {MAX_LIMITS} are allowed")]
    TooManyLimits(usize),
    /// Two limits have the same name, so that a refused client could not tell them apart.
    #[error("two limits have the name `{0}`; rename one")]
    SameName(String),
    /// The number of buckets is out of range.
    #[error("a limit must remember 1 to {MAX_CAPACITY} clients, not {0}")]
    Capacity(usize),
    /// The interval of a rate is shorter than a nanosecond.
    #[error("the rate of the limit `{0}` is too high")]
    Rate(String),
}

impl<P: Clone + Eq + Hash, C: Clock + Clone> RateLimiter<P, C> {
    /// A limiter that has counted nothing yet. Each limit remembers `capacity` buckets.
    ///
    /// # Errors
    ///
    /// If the number of limits or the capacity is out of range, or two limits have one name.
    pub fn new(limits: Vec<Limit>, capacity: usize, clock: C) -> Result<Self, RateLimiterError> {
        if limits.len() > MAX_LIMITS {
            return Err(RateLimiterError::TooManyLimits(limits.len()));
        }
        if capacity == 0 || capacity > MAX_CAPACITY {
            return Err(RateLimiterError::Capacity(capacity));
        }
        let start = clock.now();
        let mut active: Vec<ActiveLimit<P, C>> = Vec::with_capacity(limits.len());
        for limit in limits {
            if active
                .iter()
                .any(|other| other.limit.name() == limit.name())
            {
                return Err(RateLimiterError::SameName(limit.name().to_owned()));
            }
            active.push(ActiveLimit::new(limit, capacity, clock.clone())?);
        }
        Ok(Self {
            limits: active,
            clock,
            start,
        })
    }

    /// Counts the operation, unless a limit refuses it.
    ///
    /// # Errors
    ///
    /// The limit that blocks the operation the longest. Then no limit has counted it.
    pub fn check(
        &self,
        caller: &Caller<'_, P>,
        operation: &Operation<'_>,
    ) -> Result<(), LimitExceeded<'_>> {
        let mut refusal = None;
        for (index, limit) in self.limits.iter().enumerate() {
            let Some(bucket) = limit.limit.bucket(caller, operation) else {
                continue;
            };
            let Err(blocked) = limit.limiter.check_key(&bucket) else {
                continue;
            };
            refusal = Some(LimitExceeded {
                limit: limit.limit.name(),
                wait: blocked.wait_time_from(self.clock.now()),
            });
            for counted in self.limits.iter().take(index) {
                counted.refund(caller, operation);
            }
            break;
        }
        match refusal {
            None => Ok(()),
            Some(first) => Err(self.longest(first, caller, operation)),
        }
    }

    /// The limit that would refuse the operation, without counting it.
    ///
    /// For what is counted only afterwards: before a credential is verified, ask whether its sender has failed too
    /// often; count a failure when it has failed.
    pub fn blocked(
        &self,
        caller: &Caller<'_, P>,
        operation: &Operation<'_>,
    ) -> Option<LimitExceeded<'_>> {
        let refusals = self.limits.iter().filter_map(|limit| {
            let bucket = limit.limit.bucket(caller, operation)?;
            let free_at = limit
                .table
                .full_at(&bucket)?
                .saturating_sub(limit.tolerance);
            let elapsed = self.clock.now().duration_since(self.start);
            (elapsed < free_at).then(|| LimitExceeded {
                limit: limit.limit.name(),
                wait: free_at.saturating_sub(elapsed).into(),
            })
        });
        refusals.max_by_key(LimitExceeded::wait)
    }

    /// Whether a limit has counted such an operation of the caller lately: until its whole burst was available again for as
    /// long as it takes to become available, or for a minute.
    pub fn has_counted(&self, caller: &Caller<'_, P>, operation: &Operation<'_>) -> bool {
        let elapsed = self.clock.now().duration_since(self.start);
        self.limits.iter().any(|limit| {
            let bucket = limit.limit.bucket(caller, operation);
            let full_at = bucket.and_then(|bucket| limit.table.full_at(&bucket));
            let lately = (limit.tolerance + limit.interval).max(LATELY.into());
            full_at.is_some_and(|full_at| elapsed < full_at + lately)
        })
    }

    /// Refuses the operation for as long as `refusal` says, which comes from a counter that several processes share.
    pub fn block(
        &self,
        caller: &Caller<'_, P>,
        operation: &Operation<'_>,
        refusal: &LimitExceeded<'_>,
    ) {
        let free_at = self.clock.now().duration_since(self.start) + refusal.wait;
        let mut limits = self.limits.iter();
        if let Some(active) = limits.find(|active| active.limit.name() == refusal.limit)
            && let Some(bucket) = active.limit.bucket(caller, operation)
        {
            active.table.delay(&bucket, free_at + active.tolerance);
        }
    }

    /// The buckets that count the operation, for a counter that several processes share. It uses the same algorithm, and
    /// its refusals become a [`LimitExceeded`] by [`SharedBucket::exceeded`].
    pub fn shared_buckets(
        &self,
        caller: &Caller<'_, P>,
        operation: &Operation<'_>,
    ) -> Vec<SharedBucket<'_>>
    where
        P: fmt::Display,
    {
        let buckets = self.limits.iter().filter_map(|active| {
            let limit = &active.limit;
            let bucket = active.limit.bucket(caller, operation)?;
            Some(SharedBucket {
                limit: limit.name(),
                name: format!("{}\0{}\0{bucket}", limit.name(), limit.rate()),
                interval: active.interval.into(),
                tolerance: active.tolerance.into(),
            })
        });
        buckets.collect()
    }

    /// The limits, in the order in which they were given.
    pub fn limits(&self) -> impl Iterator<Item = &Limit> {
        self.limits.iter().map(|active| &active.limit)
    }

    /// The number of buckets that all limits remember at the moment.
    pub fn buckets(&self) -> usize {
        self.limits.iter().map(|limit| limit.table.len()).sum()
    }

    /// Of `first` and the other limits that refuse the operation, the one that does so the longest.
    fn longest<'a>(
        &'a self,
        first: LimitExceeded<'a>,
        caller: &Caller<'_, P>,
        operation: &Operation<'_>,
    ) -> LimitExceeded<'a> {
        let other = self.blocked(caller, operation);
        other
            .filter(|other| other.wait > first.wait)
            .unwrap_or(first)
    }
}

impl<P: Clone + Eq + Hash, C: Clock> ActiveLimit<P, C> {
    fn new(limit: Limit, capacity: usize, clock: C) -> Result<Self, RateLimiterError> {
        let rate = limit.rate();
        let too_high = || RateLimiterError::Rate(limit.name().to_owned());
        let quota = rate.quota().ok_or_else(too_high)?;
        let interval: Nanos = quota.replenish_interval().into();
        let table = Arc::new(Table::new(capacity));
        Ok(Self {
            interval,
            tolerance: interval * u64::from(rate.burst() - 1),
            limiter: Governor::new(quota, SharedTable(Arc::clone(&table)), clock),
            table,
            limit,
        })
    }

    /// Gives back one operation, if this limit counted it.
    fn refund(&self, caller: &Caller<'_, P>, operation: &Operation<'_>) {
        if let Some(bucket) = self.limit.bucket(caller, operation) {
            self.table.refund(&bucket, self.interval);
        }
    }
}
