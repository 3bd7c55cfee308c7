//! Records the clients that used the gateway recently: the variant of each, what selected it, and how many requests it made.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use mcp_vary::variant::VariantId;
use mcp_vary_base::memo::Memo;
use mcp_vary_wire::client_name::ClientName;
use serde::Serialize;

/// The requests of clients with one name and version in one variant.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClientUse {
    /// The client; both its name and its version are empty if it sends none.
    pub client: ClientName,
    /// The variant; absent if variants are off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<VariantId>,
    /// What selected the variant: `selector`, `rule` or `ranking` for example; absent if variants are off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// How many requests it made: lists, calls, reads and subscriptions.
    pub requests: u64,
    /// How many of them called a tool.
    pub calls: u64,
    /// Its last request, in seconds since 1970-01-01 UTC.
    pub last: u64,
}

/// One request, as [`ClientUses`] counts it.
#[derive(Debug)]
pub(crate) struct ClientRequest<'a> {
    pub(crate) client: &'a ClientName,
    /// The variant, and what selected it.
    pub(crate) variant: Option<(&'a VariantId, &'static str)>,
    pub(crate) is_call: bool,
    pub(crate) now: u64,
}

/// The recent uses.
///
/// # Properties
///
/// At most [`MAX_USES`] are known: the least recent one is forgotten first, so that no client can fill the memory by
/// changing its name. A request of a known client takes no lock.
#[derive(Debug)]
pub(crate) struct ClientUses {
    all: ArcSwap<Vec<Arc<CountedUse>>>,
    /// By the `clientInfo` of modern requests, since a client sends the same one each time.
    names: Memo<ClientName>,
    /// The number of requests; it orders the uses.
    requests: AtomicU64,
}

#[derive(Debug)]
struct CountedUse {
    client: ClientName,
    variant: Option<(VariantId, &'static str)>,
    requests: AtomicU64,
    calls: AtomicU64,
    last: AtomicU64,
    /// The number of its last request among all.
    order: AtomicU64,
}

impl Default for ClientUses {
    fn default() -> Self {
        Self {
            all: ArcSwap::default(),
            names: Memo::new(NAMES_MEMORY),
            requests: AtomicU64::new(0),
        }
    }
}

impl ClientUses {
    /// The name in a `clientInfo`, JSON text.
    pub(crate) fn name_in(&self, info: &str) -> Arc<ClientName> {
        self.names.get_or_read(info, ClientName::read)
    }

    /// Counts a request.
    pub(crate) fn note(&self, request: &ClientRequest<'_>) {
        let order = self.requests.fetch_add(1, Ordering::Relaxed);
        let find = |all: &[Arc<CountedUse>]| all.iter().find(|it| it.is_of(request)).cloned();
        let known = find(&self.all.load());
        let used = known.unwrap_or_else(|| {
            let new = Arc::new(CountedUse::new(request));
            self.all.rcu(|all| {
                let mut all = Vec::clone(all);
                if find(&all).is_none() {
                    remove_least_recent(&mut all);
                    all.push(Arc::clone(&new));
                }
                all
            });
            find(&self.all.load()).unwrap_or(new)
        });
        used.requests.fetch_add(1, Ordering::Relaxed);
        used.calls
            .fetch_add(u64::from(request.is_call), Ordering::Relaxed);
        used.last.store(request.now, Ordering::Relaxed);
        used.order.store(order, Ordering::Relaxed);
    }

    /// All uses, the most recent first.
    pub(crate) fn all(&self) -> Vec<ClientUse> {
        let mut all = Vec::clone(&self.all.load());
        all.sort_by_cached_key(|it| Reverse(it.order.load(Ordering::Relaxed)));
        all.iter().map(|it| it.report()).collect()
    }
}

impl CountedUse {
    fn new(request: &ClientRequest<'_>) -> Self {
        let variant = request.variant.map(|(id, reason)| (id.clone(), reason));
        Self {
            client: request.client.clone(),
            variant,
            requests: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            last: AtomicU64::new(0),
            order: AtomicU64::new(u64::MAX),
        }
    }

    fn is_of(&self, request: &ClientRequest<'_>) -> bool {
        let variant = self.variant.as_ref();
        variant.map(|(id, reason)| (id, *reason)) == request.variant
            && self.client == *request.client
    }

    fn report(&self) -> ClientUse {
        let (variant, reason) = self.variant.clone().unzip();
        ClientUse {
            client: self.client.clone(),
            variant,
            reason,
            requests: self.requests.load(Ordering::Relaxed),
            calls: self.calls.load(Ordering::Relaxed),
            last: self.last.load(Ordering::Relaxed),
        }
    }
}

/// Makes room for one more use.
fn remove_least_recent(all: &mut Vec<Arc<CountedUse>>) {
    if all.len() < MAX_USES {
        return;
    }
    let order = |at: &usize| all.get(*at).map(|it| it.order.load(Ordering::Relaxed));
    if let Some(oldest) = (0..all.len()).min_by_key(order) {
        all.remove(oldest);
    }
}

/// Uses that are counted: enough for a team, and few enough to be searched with each request.
const MAX_USES: usize = 256;

/// The bytes for names that were read from a `clientInfo`; enough for as many clients.
const NAMES_MEMORY: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn note(uses: &ClientUses, name: &str, reason: &'static str, is_call: bool) {
        let client = ClientName::read(&format!(r#"{{"name":"{name}","version":"1"}}"#));
        let id = "agent".parse().unwrap();
        uses.note(&ClientRequest {
            client: &client,
            variant: Some((&id, reason)),
            is_call,
            now: 7,
        });
    }

    fn shown(uses: &ClientUses) -> Vec<String> {
        let all = uses.all().into_iter();
        all.map(|it| {
            let (name, reason) = (it.client.name, it.reason.unwrap());
            format!("{name} {reason} {}/{}", it.calls, it.requests)
        })
        .collect()
    }

    #[test]
    fn each_reason_of_a_client_counts_alone_and_the_most_recent_is_first() {
        let uses = ClientUses::default();
        note(&uses, "a", "ranking", false);
        note(&uses, "b", "rule", true);
        note(&uses, "a", "selector", true);
        note(&uses, "a", "ranking", true);
        let expected = ["a ranking 1/2", "a selector 1/1", "b rule 1/1"];
        assert_eq!(shown(&uses), expected);
        assert_eq!(uses.all()[0].last, 7);
    }

    #[test]
    fn a_client_that_changes_its_name_forgets_the_least_recent_one() {
        let uses = ClientUses::default();
        note(&uses, "kept", "rule", false);
        for at in 0..MAX_USES {
            note(&uses, &at.to_string(), "rule", false);
            note(&uses, "kept", "rule", false);
        }
        let shown = shown(&uses);
        assert_eq!(shown.len(), MAX_USES);
        assert_eq!(shown[0], format!("kept rule 0/{}", MAX_USES + 1));
        assert!(!shown.iter().any(|it| it.starts_with("0 ")), "{shown:?}");
    }
}
