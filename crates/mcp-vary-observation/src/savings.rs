//! What models read of lists and of the results of tools, and what they would have read without Vary.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::quality::RandomState;
use mcp_vary::variant::Date;
use mcp_vary_access::Principal;
use mcp_vary_base::lock::Lock;
use mcp_vary_metrics::BYTES_PER_TOKEN;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, UnitWeighter};
use serde::{Deserialize, Serialize};

/// What models read, in bytes, or in tokens as the metrics estimate them: four bytes each.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Cost {
    /// What it would have been without Vary.
    pub without: u64,
    /// What it was.
    pub with: u64,
}

/// What was saved, in tokens.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SavingsStatus {
    /// Since the start of the gateway.
    pub total: Cost,
    /// Since then by client and person, those with the highest savings first.
    pub clients: Vec<ClientSaving>,
    /// By day in UTC, the last 30 on which there was something.
    pub days: BTreeMap<String, Cost>,
}

/// What was saved for a client.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ClientSaving {
    /// The name that it sends; empty if it sends none.
    pub client: String,
    /// The name that the operator gave to the person, or else an id that reveals no name; absent for anonymous clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// The tokens.
    #[serde(flatten)]
    pub cost: Cost,
}

/// What was saved for all clients.
///
/// # Properties
///
/// Requests of a known client allocate nothing and share their locks; counting takes none. The last [`MAX_CLIENTS`] clients
/// and [`MAX_DAYS`] days are known.
#[derive(Debug)]
pub struct Savings {
    // The hash has a random key, so that no client can choose names that collide.
    clients: Cache<ClientKey, Arc<CostCounters>, UnitWeighter, RandomState>,
    total: Arc<CostCounters>,
    days: Lock<Days>,
}

/// What is counted together: the requests of a client and a person with these names.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct ClientKey {
    client: String,
    person: Option<String>,
}

/// A [`ClientKey`] that is borrowed from a request.
#[derive(Hash)]
struct ClientKeyRef<'a> {
    client: &'a str,
    person: Option<&'a str>,
}

impl Equivalent<ClientKey> for ClientKeyRef<'_> {
    fn equivalent(&self, key: &ClientKey) -> bool {
        self.client == key.client && self.person == key.person.as_deref()
    }
}

/// What one client of one person cost, or all clients, in bytes.
#[derive(Debug, Default)]
pub struct CostCounters {
    without: AtomicU64,
    with: AtomicU64,
    /// The counters of all clients, of which it is a part.
    total: Option<Arc<Self>>,
}

/// By the days since 1970-01-01 UTC, in bytes.
#[derive(Debug, Default)]
struct Days {
    days: BTreeMap<u64, Cost>,
    /// What of the total is in them.
    counted: Cost,
}

impl Default for Savings {
    fn default() -> Self {
        Self {
            clients: Cache::with(
                MAX_CLIENTS,
                MAX_CLIENTS as u64,
                UnitWeighter,
                RandomState::default(),
                DefaultLifecycle::default(),
            ),
            total: Arc::default(),
            days: Lock::default(),
        }
    }
}

impl Savings {
    /// Where the cost of a client counts.
    pub fn of(&self, client: &str, principal: Option<&Principal>) -> Arc<CostCounters> {
        let known = principal.filter(|person| !person.is_anonymous());
        let person = known.map(|person| person.name().unwrap_or(person.id_text()));
        let key = ClientKeyRef { client, person };
        self.clients.get(&key).unwrap_or_else(|| self.add(&key))
    }

    fn add(&self, key: &ClientKeyRef<'_>) -> Arc<CostCounters> {
        let key = ClientKey {
            client: key.client.to_owned(),
            person: key.person.map(str::to_owned),
        };
        let new = || {
            let total = Some(Arc::clone(&self.total));
            let counters = CostCounters {
                total,
                ..CostCounters::default()
            };
            Ok::<_, Infallible>(Arc::new(counters))
        };
        let Ok(counters) = self.clients.get_or_insert_with(&key, new);
        counters
    }

    /// The last days at `now`, in seconds since 1970-01-01 UTC: the bytes by the days since then. What was counted since the
    /// last time is of today.
    pub fn days(&self, now: u64) -> BTreeMap<u64, Cost> {
        let mut days = self.days.lock();
        let (total, counted) = (self.total.load(), days.counted);
        days.counted = total;
        let new = Cost {
            without: total.without - counted.without,
            with: total.with - counted.with,
        };
        days.add(now / SECONDS_PER_DAY, new);
        days.days.clone()
    }

    /// Adds days of an earlier process.
    pub fn restore(&self, earlier: BTreeMap<u64, Cost>) {
        let mut days = self.days.lock();
        for (day, cost) in earlier {
            days.add(day, cost);
        }
    }

    /// What was saved until `now`, in seconds since 1970-01-01 UTC.
    pub fn status(&self, now: u64) -> SavingsStatus {
        let clients = self.clients.iter();
        let clients = clients.map(|(key, cost)| ClientSaving {
            client: key.client,
            person: key.person,
            cost: cost.load().tokens(),
        });
        let mut clients: Vec<_> = clients.collect();
        clients.sort_by_key(|client| Reverse(client.cost.saved()));
        clients.truncate(MAX_REPORTED);
        let days = self.days(now).into_iter().map(|(day, cost)| {
            let date = Date::from_unix(day.saturating_mul(SECONDS_PER_DAY));
            (date.to_string(), cost.tokens())
        });
        SavingsStatus {
            days: days.collect(),
            total: self.total.load().tokens(),
            clients,
        }
    }
}

impl Cost {
    /// What was saved; nothing if it cost more.
    #[must_use]
    pub const fn saved(self) -> u64 {
        self.without.saturating_sub(self.with)
    }

    const fn tokens(self) -> Self {
        Self {
            without: self.without / BYTES_PER_TOKEN,
            with: self.with / BYTES_PER_TOKEN,
        }
    }
}

impl CostCounters {
    /// Counts bytes that a model would have read without Vary, and those that it reads.
    pub(crate) fn add(&self, without: usize, with: usize) {
        self.without.fetch_add(without as u64, Ordering::Relaxed);
        self.with.fetch_add(with as u64, Ordering::Relaxed);
        if let Some(total) = &self.total {
            total.add(without, with);
        }
    }

    fn load(&self) -> Cost {
        Cost {
            without: self.without.load(Ordering::Relaxed),
            with: self.with.load(Ordering::Relaxed),
        }
    }
}

impl Days {
    fn add(&mut self, day: u64, cost: Cost) {
        if cost == Cost::default() {
            return;
        }
        let of_day = self.days.entry(day).or_default();
        of_day.without = of_day.without.saturating_add(cost.without);
        of_day.with = of_day.with.saturating_add(cost.with);
        while self.days.len() > MAX_DAYS {
            self.days.pop_first();
        }
    }
}

/// The clients that are counted separately; as many as are known by name.
pub const MAX_CLIENTS: usize = 4096;
/// The clients in a status.
const MAX_REPORTED: usize = 256;
/// The days that are known.
pub const MAX_DAYS: usize = 30;
/// The seconds of a day in UTC.
pub const SECONDS_PER_DAY: u64 = 86_400;

#[cfg(test)]
mod tests {
    use mcp_vary_access::Claims;

    use super::*;

    const DAY: u64 = SECONDS_PER_DAY;

    fn add(savings: &Savings, client: &str, person: Option<&str>, without: usize, with: usize) {
        let key = |name| Principal::key(name, Claims::default()).unwrap();
        let person = person.map(key);
        let client = savings.of(client, person.as_ref());
        client.add(without, with);
    }

    fn days(savings: &Savings, now: u64) -> Vec<String> {
        let days = savings.status(now).days.into_iter();
        let shown = days.map(|(day, cost)| format!("{day} {}/{}", cost.with, cost.without));
        shown.collect()
    }

    #[test]
    fn tokens_count_for_each_client_of_each_person() {
        let savings = Savings::default();
        add(&savings, "a", None, 400, 40);
        add(&savings, "a", Some("ann"), 8000, 80);
        add(&savings, "a", Some("ann"), 8000, 8000);
        let status = savings.status(0);
        let shown = status.clients.iter();
        let shown = shown.map(|it| (&*it.client, it.person.as_deref(), it.cost.without));
        assert!(shown.eq([("a", Some("ann"), 4000), ("a", None, 100)]));
        assert_eq!((status.total.without, status.total.with), (4100, 2030));
    }

    #[test]
    fn the_last_thirty_days_stay_also_those_of_an_earlier_process() {
        let savings = Savings::default();
        assert!(days(&savings, DAY).is_empty());
        add(&savings, "a", None, 400, 40);
        assert_eq!(days(&savings, 2 * DAY - 1), ["1970-01-02 10/100"]);
        add(&savings, "b", None, 40, 4);
        let both = ["1970-01-02 10/100", "1970-01-03 1/10"];
        assert_eq!(days(&savings, 2 * DAY), both);
        let later = Savings::default();
        add(&later, "a", None, 40, 4);
        later.restore(savings.days(2 * DAY));
        let both = ["1970-01-02 10/100", "1970-01-03 2/20"];
        assert_eq!(days(&later, 2 * DAY), both);
        for day in 3..40 {
            add(&later, "a", None, 4, 4);
            assert!(later.days(day * DAY).len() <= MAX_DAYS);
        }
        assert_eq!(days(&later, 40 * DAY)[0], "1970-01-11 1/1");
    }
}
