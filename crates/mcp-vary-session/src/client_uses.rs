//! Records the clients that used the gateway recently: the variant of each, what selected it, and how many requests it made.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use foldhash::quality::RandomState;
use mcp_vary::variant::VariantId;
use mcp_vary_audit::{ClientInfo, Text};
use mcp_vary_base::memo::Memo;
use mcp_vary_catalog::selection::variant_selection::VariantReason;
use mcp_vary_observation::savings::CostCounters;
use mcp_vary_wire::client_name::ClientName;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, UnitWeighter};
use serde::{Deserialize, Serialize};

/// The requests of clients with one name and version in one variant.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientUse {
    /// The client; both its name and its version are empty if it sends none.
    pub client: ClientName,
    /// The variant; absent if variants are off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<VariantId>,
    /// What selected the variant: `selector`, `rule` or `ranking` for example; absent if variants are off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'static, str>>,
    /// The rule that selected it: `clients[0]`, `variant`, the name of an experiment, or that of an access rule; absent if
    /// `reason` has no rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// How many requests it made: lists, calls, reads and subscriptions.
    pub requests: u64,
    /// How many of them called a tool.
    pub calls: u64,
    /// Its last request, in seconds since 1970-01-01 UTC.
    #[serde(default)]
    pub last: u64,
}

/// One request, as [`ClientUses`] counts it.
#[derive(Debug)]
pub struct ClientRequest<'a> {
    /// Its name and version.
    pub client: &'a ClientName,
    /// The variant, and what selected it.
    pub variant: Option<(&'a VariantId, &'a VariantReason)>,
    /// Whether it calls a tool.
    pub is_call: bool,
    /// In seconds since 1970.
    pub now: u64,
    /// That of the client's last request.
    pub latest: &'a LatestUse,
}

/// What the last request of a session, or with one `clientInfo`, was counted under, so that most requests need no search.
#[derive(Debug, Default)]
pub struct LatestUse {
    counted: ArcSwapOption<CountedUse>,
    /// Where the cost of its requests without a person counts.
    pub cost: OnceLock<Arc<CostCounters>>,
}

/// The client that a `clientInfo` names.
#[derive(Debug)]
pub struct DeclaredClient {
    /// The name and version.
    pub name: ClientName,
    /// The same for its records; `None` if both are empty.
    pub info: Option<Arc<ClientInfo>>,
    /// What its last request was counted under.
    pub latest: LatestUse,
}

/// The recent uses.
///
/// # Properties
///
/// At most [`MAX_USES`] are known. Those that made one request only are forgotten first, so that no client can fill the
/// memory, or push out others, by changing its name.
#[derive(Debug)]
pub struct ClientUses {
    // The hash has a random key, so that no client can choose names that collide.
    all: Cache<UseKey, Arc<CountedUse>, UnitWeighter, RandomState>,
    /// By the `clientInfo` of modern requests, since a client sends the same one each time.
    names: Memo<DeclaredClient>,
    /// The number of requests; it orders the uses.
    requests: AtomicU64,
}

/// What is counted together.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct UseKey {
    client: ClientName,
    variant: Option<(VariantId, VariantReason)>,
}

/// The same, borrowed from a request.
#[derive(Hash)]
struct UseKeyRef<'a> {
    client: &'a ClientName,
    variant: Option<(&'a VariantId, &'a VariantReason)>,
}

impl Equivalent<UseKey> for UseKeyRef<'_> {
    fn equivalent(&self, key: &UseKey) -> bool {
        let variant = key.variant.as_ref();
        variant.map(|(id, reason)| (id, reason)) == self.variant && key.client == *self.client
    }
}

#[derive(Debug, Default)]
struct CountedUse {
    variant: Option<(VariantId, VariantReason)>,
    requests: AtomicU64,
    calls: AtomicU64,
    last: AtomicU64,
    /// The number of its last request among all.
    order: AtomicU64,
}

impl Default for ClientUses {
    fn default() -> Self {
        let all = Cache::with(
            MAX_USES,
            MAX_USES as u64,
            UnitWeighter,
            RandomState::default(),
            DefaultLifecycle::default(),
        );
        Self {
            all,
            names: Memo::new(NAMES_MEMORY),
            requests: AtomicU64::new(0),
        }
    }
}

impl ClientUses {
    /// The client in a `clientInfo`, JSON text.
    pub fn client_in(&self, info: &str) -> Arc<DeclaredClient> {
        self.names.get_or_read(info, |info| {
            let name = ClientName::read(info);
            DeclaredClient {
                info: info_of(&name),
                name,
                latest: LatestUse::default(),
            }
        })
    }

    /// Counts a request.
    pub fn note(&self, request: &ClientRequest<'_>) {
        let order = self.requests.fetch_add(1, Ordering::Relaxed);
        let latest = request.latest.counted.load();
        match latest.as_ref().filter(|used| used.is_of(request)) {
            // The search says to the cache that the use goes on, and returns to it what it forgot.
            Some(used) if used.requests.load(Ordering::Relaxed) % SEARCH_EVERY != 0 => {
                used.count(request, order);
            }
            known => {
                let used = self.search(request, known.cloned());
                used.count(request, order);
                request.latest.counted.store(Some(used));
            }
        }
    }

    fn search(
        &self,
        request: &ClientRequest<'_>,
        known: Option<Arc<CountedUse>>,
    ) -> Arc<CountedUse> {
        let key = UseKeyRef {
            client: request.client,
            variant: request.variant,
        };
        self.all.get(&key).unwrap_or_else(|| {
            let active = request.variant;
            let variant = active.map(|(id, reason)| (id.clone(), reason.clone()));
            let key = UseKey {
                client: request.client.clone(),
                variant: variant.clone(),
            };
            let new = || CountedUse {
                variant,
                ..CountedUse::default()
            };
            let new = || Ok::<_, Infallible>(known.unwrap_or_else(|| Arc::new(new())));
            let Ok(used) = self.all.get_or_insert_with(&key, new);
            used
        })
    }

    /// The most recent uses, the last one first.
    pub fn all(&self) -> Vec<ClientUse> {
        let mut all: Vec<_> = self.all.iter().collect();
        all.sort_by_cached_key(|(_, used)| Reverse(used.order.load(Ordering::Relaxed)));
        let recent = all.iter().take(MAX_REPORTED);
        recent.map(|(key, used)| used.report(key)).collect()
    }
}

impl CountedUse {
    fn is_of(&self, request: &ClientRequest<'_>) -> bool {
        let variant = self.variant.as_ref();
        variant.map(|(id, reason)| (id, reason)) == request.variant
    }

    fn count(&self, request: &ClientRequest<'_>, order: u64) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if request.is_call {
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        self.last.store(request.now, Ordering::Relaxed);
        self.order.store(order, Ordering::Relaxed);
    }

    fn report(&self, key: &UseKey) -> ClientUse {
        let (variant, reason) = key.variant.clone().unzip();
        ClientUse {
            client: key.client.clone(),
            variant,
            reason: reason.as_ref().map(|reason| reason.by.as_str().into()),
            rule: reason.and_then(|reason| Some(reason.rule?.to_string())),
            requests: self.requests.load(Ordering::Relaxed),
            calls: self.calls.load(Ordering::Relaxed),
            last: self.last.load(Ordering::Relaxed),
        }
    }
}

/// A client for records of its requests; `None` if it gave neither a name nor a version.
pub(super) fn info_of(client: &ClientName) -> Option<Arc<ClientInfo>> {
    let ClientName { name, version } = client;
    let info = || ClientInfo::new(Text::new(name), Text::new(version));
    (!client.is_empty()).then(|| Arc::new(info()))
}

/// Uses that are counted: those of a thousand clients, each in some variants.
pub const MAX_USES: usize = 4096;

/// A use is searched for again once in so many requests.
const SEARCH_EVERY: u64 = 64;

/// The uses in a status.
const MAX_REPORTED: usize = 256;

/// The bytes for names that were read from a `clientInfo`; enough for as many clients.
const NAMES_MEMORY: usize = 2 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn note(uses: &ClientUses, name: &str, reason: &'static str, is_call: bool) {
        note_after(uses, &LatestUse::default(), name, reason, is_call);
    }

    fn note_after(
        uses: &ClientUses,
        latest: &LatestUse,
        name: &str,
        reason: &'static str,
        is_call: bool,
    ) {
        let client = ClientName::read(&format!(r#"{{"name":"{name}","version":"1"}}"#));
        let id = "agent".parse().unwrap();
        let reason = VariantReason::open(reason);
        uses.note(&ClientRequest {
            client: &client,
            variant: Some((&id, &reason)),
            is_call,
            now: 7,
            latest,
        });
    }

    fn shown(uses: &ClientUses) -> Vec<String> {
        let all = uses.all().into_iter();
        all.map(|it| {
            let (name, rule) = (it.client.name, it.rule.unwrap_or_default());
            let reason = format!("{} {rule}", it.reason.unwrap());
            format!("{name} {} {}/{}", reason.trim_end(), it.calls, it.requests)
        })
        .collect()
    }

    #[test]
    fn each_reason_of_a_client_counts_alone_and_the_most_recent_is_first() {
        let uses = ClientUses::default();
        note(&uses, "a", "ranking", false);
        note(&uses, "b", "rule", true);
        note(&uses, "a", "selector", true);
        note(&uses, "b", "rule clients[1]", true);
        note(&uses, "a", "ranking", true);
        let expected = [
            "a ranking 1/2",
            "b rule clients[1] 1/1",
            "a selector 1/1",
            "b rule 1/1",
        ];
        assert_eq!(shown(&uses), expected);
        assert_eq!(uses.all()[0].last, 7);
    }

    #[test]
    fn a_client_that_changes_its_name_forgets_no_client_that_returns() {
        let uses = ClientUses::default();
        note(&uses, "kept", "rule", false);
        note(&uses, "kept", "rule", true);
        for at in 0..2 * MAX_USES {
            note(&uses, &at.to_string(), "rule", false);
        }
        note(&uses, "kept", "rule", false);
        assert!(uses.all.len() <= MAX_USES, "{}", uses.all.len());
        let shown = shown(&uses);
        assert_eq!(shown.len(), MAX_REPORTED);
        assert_eq!(shown[0], "kept rule 1/3");
        assert_eq!(shown[1], format!("{} rule 0/1", 2 * MAX_USES - 1));
    }

    #[test]
    fn a_session_counts_as_a_search_does_and_keeps_its_count_when_it_was_forgotten() {
        let (uses, latest) = (ClientUses::default(), LatestUse::default());
        for reason in ["rule", "rule", "selector", "rule"] {
            note_after(&uses, &latest, "a", reason, true);
        }
        assert_eq!(shown(&uses), ["a rule 3/3", "a selector 1/1"]);
        uses.all.clear();
        for _ in 3..=SEARCH_EVERY {
            note_after(&uses, &latest, "a", "rule", false);
        }
        assert_eq!(shown(&uses), ["a rule 3/65"]);
    }

    #[test]
    fn a_thousand_clients_are_known_at_once() {
        let uses = ClientUses::default();
        for _ in 0..2 {
            for at in 0..1000 {
                note(&uses, &at.to_string(), "rule", true);
            }
        }
        assert_eq!(uses.all.len(), 1000);
        let shown = shown(&uses);
        assert!(shown.iter().all(|it| it.ends_with(" rule 2/2")));
    }
}
