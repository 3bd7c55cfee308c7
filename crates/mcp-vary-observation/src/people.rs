//! The people who use a gateway: how often each called and was refused, and what the results of tools cost them.

use std::cmp::Reverse;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_vary_access::{Principal, PrincipalId};
use mcp_vary_audit::{Outcome, Record, Text};
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
    /// How many of them a rule or a rate limit refused.
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
    pub fn person(&self, principal: Option<&Principal>, now: u64) -> Option<Arc<Person>> {
        let principal = principal.filter(|it| !it.is_anonymous())?;
        let id = principal.id();
        let name = principal.name().unwrap_or(principal.id_text());
        let new = |counts| {
            Arc::new(Person {
                name: Text::new(name),
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
    /// Counts a request that has ended.
    pub(crate) fn count(&self, record: &Record) {
        let method = record.method.as_ref().map(Text::as_str);
        let is_refused = record.outcome == Outcome::Denied;
        let counts = &self.counts;
        for (counter, is_counted) in [
            (&counts.requests, true),
            (&counts.calls, method == Some("tools/call")),
            (&counts.refused, is_refused),
        ] {
            counter.fetch_add(u64::from(is_counted), Ordering::Relaxed);
        }
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
    use mcp_vary_audit::Event;

    use super::*;

    fn count(people: &People, principal: &Principal, method: &'static str, outcome: Outcome) {
        let mut record = Record::new(Event::Request, outcome);
        record.method = Some(Text::from_static(method));
        let person = people.person(Some(principal), 7).unwrap();
        person.count(&record);
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
        count(&people, &ann, "tools/call", Outcome::Allowed);
        count(&people, &ann, "tools/call", Outcome::Denied);
        count(&people, &ann, "tools/list", Outcome::Allowed);
        count(&people, &cn, "prompts/get", Outcome::Error);
        assert_eq!(shown(&people), ["ann 2/3 refused 1", "CN=ci 0/1 refused 0"]);
        people.person(Some(&ann), 9).unwrap().add_result(403);
        let first = people.all().remove(0);
        assert_eq!((first.tokens, first.last), (100, 9));
        assert!(people.person(Some(&Principal::anonymous()), 9).is_none());
        assert!(people.person(None, 9).is_none());
    }

    #[test]
    fn a_person_of_a_token_has_a_digest_until_a_claim_names_them() {
        let people = People::default();
        let token = Principal::token("https://idp.example", "7", Claims::default()).unwrap();
        count(&people, &token, "tools/call", Outcome::Allowed);
        assert_eq!(
            shown(&people),
            [format!("{} 1/1 refused 0", token.id_text())]
        );
        let named = token.with_name("ann@example.com");
        count(&people, &named, "tools/call", Outcome::Allowed);
        assert_eq!(shown(&people), ["ann@example.com 2/2 refused 0"]);
    }
}
