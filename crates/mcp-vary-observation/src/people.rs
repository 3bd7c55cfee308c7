//! The people who use a gateway: how often each called, how many calls were refused, and what the results of tools cost them.

use std::cmp::Reverse;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_vary_access::{Principal, PrincipalId};
use mcp_vary_audit::{Actor, Text};
use mcp_vary_metrics::BYTES_PER_TOKEN;
use quick_cache::sync::Cache;
use serde::{Deserialize, Serialize};

/// The requests of a person since the gateway started.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PersonUse {
    /// The name that the operator gave, or else a digest.
    pub person: String,
    /// How many requests the person made.
    pub requests: u64,
    /// How many of them called a tool.
    pub calls: u64,
    /// How many calls of tools and prompts, and reads of resources, a rule or a rate limit refused.
    pub refused: u64,
    /// The tokens of the results of servers' tools, estimated as four bytes each.
    pub tokens: u64,
    /// The last request, in seconds since 1970-01-01 UTC.
    #[serde(default)]
    pub last: u64,
}

/// The people who used the gateway recently.
///
/// # Properties
///
/// At most [`MAX_PEOPLE`] are known; those that made one request only are forgotten first. Anonymous clients do
/// not count.
#[derive(Debug)]
pub struct People(Cache<PrincipalId, Arc<Person>>);

/// A person, for whom requests count.
pub struct Person {
    name: Text,
    /// The person in records of requests.
    actor: Option<Arc<Actor>>,
    counts: Arc<Counts>,
}

// Omits the name.
mcp_vary_base::debug_by_name!(Person);

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    calls: AtomicU64,
    refused: AtomicU64,
    result_bytes: AtomicU64,
    last: AtomicU64,
}

impl Default for People {
    fn default() -> Self {
        Self(Cache::new(MAX_PEOPLE))
    }
}

impl People {
    /// The person who sends a request at `now`, in seconds since 1970-01-01 UTC; `None` for an anonymous client.
    pub fn person(&self, principal: &Principal, now: u64) -> Option<Arc<Person>> {
        if principal.is_anonymous() {
            return None;
        }
        let id = principal.id();
        let name = principal.name().unwrap_or(principal.id_text());
        let new = |counts| {
            Arc::new(Person {
                name: Text::new(name),
                actor: Actor::of(principal).map(Arc::new),
                counts,
            })
        };
        let first = || Ok::<_, Infallible>(new(Arc::default()));
        let Ok(mut person) = self.0.get_or_insert_with(&id, first);
        // The operator has chosen another claim, or the claim says something else.
        if person.name.as_str() != name && person.name != Text::new(name) {
            person = new(Arc::clone(&person.counts));
            self.0.insert(id, Arc::clone(&person));
        }
        person.counts.last.fetch_max(now, Ordering::Relaxed);
        Some(person)
    }

    /// The most recent people, the last one first.
    pub fn all(&self) -> Vec<PersonUse> {
        let mut all: Vec<_> = self.0.iter().map(|(_, person)| person.report()).collect();
        all.sort_by_key(|used| Reverse((used.last, used.requests)));
        all.truncate(MAX_REPORTED);
        all
    }
}

impl Person {
    /// The person as records have it, without the OAuth client of a token.
    pub(crate) fn actor(&self) -> Option<Arc<Actor>> {
        self.actor.clone()
    }

    /// Counts a request that begins.
    pub(crate) fn begin(&self, method: &str) {
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        if method == "tools/call" {
            self.counts.calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a call that a rule or a rate limit refuses.
    pub(crate) fn refuse(&self) {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the result of a server's tool, in bytes.
    pub(crate) fn add_result(&self, bytes: usize) {
        let counter = &self.counts.result_bytes;
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn report(&self) -> PersonUse {
        let counts = &self.counts;
        PersonUse {
            person: self.name.as_str().to_owned(),
            requests: counts.requests.load(Ordering::Relaxed),
            calls: counts.calls.load(Ordering::Relaxed),
            refused: counts.refused.load(Ordering::Relaxed),
            tokens: counts.result_bytes.load(Ordering::Relaxed) / BYTES_PER_TOKEN,
            last: counts.last.load(Ordering::Relaxed),
        }
    }
}

/// People whose requests are counted.
pub const MAX_PEOPLE: usize = 4096;
/// The people in a status.
const MAX_REPORTED: usize = 256;

#[cfg(test)]
mod tests {
    use mcp_vary_access::Claims;

    use super::*;

    fn begin(people: &People, principal: &Principal, method: &str) -> Arc<Person> {
        let person = people.person(principal, 7).unwrap();
        person.begin(method);
        person
    }

    fn shown(people: &People) -> Vec<String> {
        let all = people.all().into_iter();
        all.map(|used| {
            let PersonUse {
                calls, requests, ..
            } = used;
            format!(
                "{} {calls}/{requests} refused {}",
                used.person, used.refused
            )
        })
        .collect()
    }

    #[test]
    fn requests_count_for_the_name_that_the_operator_gave() {
        let people = People::default();
        let ann = Principal::key("ann", Claims::default()).unwrap();
        let cn = Principal::certificate("CN=ci", Claims::default()).unwrap();
        begin(&people, &ann, "tools/call");
        begin(&people, &ann, "tools/call").refuse();
        begin(&people, &ann, "tools/list");
        begin(&people, &cn, "prompts/get");
        assert_eq!(shown(&people), ["ann 2/3 refused 1", "CN=ci 0/1 refused 0"]);
        people.person(&ann, 9).unwrap().add_result(403);
        let first = people.all().remove(0);
        assert_eq!((first.tokens, first.last), (100, 9));
        assert!(people.person(&Principal::anonymous(), 9).is_none());
    }

    #[test]
    fn a_person_of_a_token_has_a_digest_until_a_claim_names_them() {
        let people = People::default();
        let token = Principal::token("https://idp.example", "7", Claims::default()).unwrap();
        begin(&people, &token, "tools/call");
        assert_eq!(
            shown(&people),
            [format!("{} 1/1 refused 0", token.id_text())]
        );
        let named = token.with_name("ann@example.com");
        begin(&people, &named, "tools/call");
        assert_eq!(shown(&people), ["ann@example.com 2/2 refused 0"]);
    }
}
