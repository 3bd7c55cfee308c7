//! The gateways in front of a connection and behind it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::VIA;
use http::{HeaderMap, HeaderValue};
use mcp_vary_base::lock::Lock;
use sha2::{Digest as _, Sha256};

/// The gateways in front of a connection, which it sends, and those behind it, which it records.
#[derive(Clone, Debug, Default)]
pub struct OutgoingChain {
    pub(crate) path: Arc<str>,
    pub(crate) upstream_gateways: Arc<UpstreamGateways>,
}

impl OutgoingChain {
    /// The value of [`ENV_VAR`](crate::chain::ENV_VAR) for a process; `None` if no gateway is in front of it.
    pub fn variable(&self) -> Option<&str> {
        (!self.path.is_empty()).then_some(&*self.path)
    }

    /// The value of `Via` for requests.
    pub fn via(&self) -> Option<HeaderValue> {
        let links: Vec<_> = self
            .variable()?
            .split(',')
            .map(|link| format!("1.1 {link}"))
            .collect();
        HeaderValue::try_from(links.join(", ")).ok()
    }

    /// Where a connection records the gateways behind it.
    pub fn track_connection(&self) -> ConnectionGateways {
        ConnectionGateways {
            gateways: Arc::clone(&self.upstream_gateways),
            connection_id: self
                .upstream_gateways
                .next_id
                .fetch_add(1, Ordering::Relaxed),
        }
    }
}

/// The gateways behind this one, by connection.
#[derive(Debug, Default)]
pub struct UpstreamGateways {
    next_id: AtomicU64,
    links: Lock<BTreeMap<u64, Vec<GatewayLink>>>,
}

impl UpstreamGateways {
    pub(crate) fn contains(&self, link: &GatewayLink) -> bool {
        self.links
            .lock()
            .values()
            .flatten()
            .any(|known| known.id == link.id)
    }

    pub(crate) fn links(&self) -> Vec<GatewayLink> {
        let mut links: Vec<_> = self.links.lock().values().flatten().cloned().collect();
        links.sort();
        links.dedup();
        links.truncate(MAX_LINKS);
        links
    }
}

/// The gateways behind one connection, until it is dropped.
#[derive(Debug)]
pub struct ConnectionGateways {
    gateways: Arc<UpstreamGateways>,
    connection_id: u64,
}

impl ConnectionGateways {
    /// Records those that a response names.
    pub fn record(&self, headers: &HeaderMap) {
        if !headers.contains_key(VIA) {
            return;
        }
        let received = links(headers);
        if !received.is_empty() {
            self.gateways
                .links
                .lock()
                .insert(self.connection_id, received);
        }
    }
}

impl Drop for ConnectionGateways {
    fn drop(&mut self) {
        self.gateways.links.lock().remove(&self.connection_id);
    }
}

/// The gateways that `Via` names; other intermediaries are left out.
pub(crate) fn links(headers: &HeaderMap) -> Vec<GatewayLink> {
    let values = headers.get_all(VIA).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let entries = texts.flat_map(|value| value.split(','));
    // `received-protocol RWS received-by`
    let names = entries.filter_map(|entry| entry.split_whitespace().nth(1));
    names
        .filter_map(GatewayLink::read)
        .take(MAX_LINKS)
        .collect()
}

/// The identity of a gateway: a random id, and a digest of its servers. Only gateways with the same servers can compare
/// digests.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct GatewayLink {
    pub(crate) id: String,
    fingerprint: String,
}

impl GatewayLink {
    pub(crate) fn new(id: [u8; 8], digest: &[u8; 32]) -> Self {
        let id = hex(&id);
        let fingerprint = fingerprint(&id, digest);
        Self { id, fingerprint }
    }

    /// Reads `vary-ID-MARK`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (id, mark) = text.trim().strip_prefix("vary-")?.split_once('-')?;
        let is_hex =
            |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_hex(id) && is_hex(mark)).then(|| Self {
            id: id.to_owned(),
            fingerprint: mark.to_owned(),
        })
    }

    pub(crate) fn serves(&self, digest: &[u8; 32]) -> bool {
        self.fingerprint == fingerprint(&self.id, digest)
    }
}

impl fmt::Display for GatewayLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vary-{}-{}", self.id, self.fingerprint)
    }
}

fn fingerprint(id: &str, digest: &[u8; 32]) -> String {
    let mut mark = Sha256::new();
    mark.update(id.as_bytes());
    mark.update(digest);
    hex(&mark.finalize()[..8])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The maximum number of gateways that are read from one header or variable.
pub(crate) const MAX_LINKS: usize = 64;
