//! Legacy sessions: an id that seals what `initialize` fixed, and the little that is kept beside it.
//!
//! The id carries revision, features, ranked variants and expiry under an HMAC, so that nothing has
//! to be remembered to serve a session. Log level and requests in flight live in a bounded table that
//! is rebuilt on first use. An id that was deleted is remembered until it would have expired.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use indexmap::IndexMap;
use mcp_vary::feature::{FeatureTag, Features, Format, Verbosity};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Outside};
use crate::revision::Revision;

/// What `initialize` fixed for the lifetime of a session.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    pub(crate) revision: Revision,
    /// Present when the client declared content negotiation.
    pub(crate) features: Option<Arc<Features>>,
    /// The ids of the variants offered, best first; empty when variants are off.
    pub(crate) order: Vec<String>,
}

/// A session that exists: what its id seals, and what this replica keeps of it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) fixed: Fixed,
    pub(crate) client: ClientId,
    /// The least severe level that the client wants logged; 0 is `debug`, [`NO_LEVEL`] not said.
    log_level: AtomicU8,
    in_flight: Mutex<IndexMap<String, CancellationToken>>,
    streams: AtomicUsize,
    /// What `order` means in the catalogue's views; found out once.
    pub(crate) views: OnceLock<Option<Arc<[usize]>>>,
    /// Cancelled when the session is deleted.
    pub(crate) ended: CancellationToken,
    /// Cancelled when streams that only listen must end: the session was deleted, or the gateway stops.
    pub(crate) listening: CancellationToken,
    expires: u64,
    nonce: [u8; 16],
}

/// Tells the clients of a gateway apart, so that what belongs to one reaches no other.
pub(crate) type ClientId = u64;

const NO_LEVEL: u8 = u8::MAX;
const MAC_LENGTH: usize = 32;
/// The header that carries an id must stay far below common header limits.
const MAX_ID: usize = 2048;
const LABEL: &[u8] = b"vary session v1\0";
const REMEMBERED_DELETIONS: usize = 100_000;

impl Session {
    pub(crate) fn log_level(&self) -> Option<u8> {
        Some(self.log_level.load(Ordering::Relaxed)).filter(|level| *level != NO_LEVEL)
    }

    pub(crate) fn set_log_level(&self, level: u8) {
        self.log_level.store(level, Ordering::Relaxed);
    }

    /// Notes a request in flight; refused when its id is in use or `limit` is reached.
    pub(crate) fn begin(self: &Arc<Self>, id: &str, limit: usize) -> Result<Place, Refused> {
        let id = spelled_one_way(id);
        let mut requests = lock(&self.in_flight);
        if requests.contains_key(id.as_ref()) {
            return Err(Refused::IdInUse);
        }
        if requests.len() >= limit {
            return Err(Refused::TooMany);
        }
        let cancelled = CancellationToken::new();
        let id = id.into_owned();
        requests.insert(id.clone(), cancelled.clone());
        Ok(Place {
            session: Arc::clone(self),
            id,
            cancelled,
        })
    }

    /// Cancels the request `id`, as `notifications/cancelled` asks; unknown ids are ignored.
    pub(crate) fn cancel(&self, id: &str) {
        if let Some(token) = lock(&self.in_flight).get(spelled_one_way(id).as_ref()) {
            token.cancel();
        }
    }

    /// A place for one more `GET` stream, given back when dropped.
    pub(crate) fn open_stream(self: &Arc<Self>, limit: usize) -> Option<OpenStream> {
        let place = OpenStream(Arc::clone(self));
        let before = self.streams.fetch_add(1, Ordering::AcqRel);
        (before < limit).then_some(place)
    }
}

/// The id in one spelling of many: `"a"` and `"\u0061"` are the same string.
fn spelled_one_way(id: &str) -> Cow<'_, str> {
    if !id.contains('\\') {
        return Cow::Borrowed(id);
    }
    // A lone surrogate is no string that could be spelled otherwise.
    let text: Result<String, _> = serde_json::from_str(id);
    text.map_or(Cow::Borrowed(id), |text| {
        Cow::Owned(mcp_vary::json::string(&text))
    })
}

/// Why a request may not begin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refused {
    IdInUse,
    TooMany,
}

/// The place of a request in flight; free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    session: Arc<Session>,
    id: String,
    cancelled: CancellationToken,
}

impl Place {
    /// Waits until the client cancels the request or ends its session.
    pub(crate) async fn withdrawn(&self) {
        tokio::select! {
            () = self.cancelled.cancelled() => {}
            () = self.session.ended.cancelled() => {}
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.session.in_flight).swap_remove(&self.id);
    }
}

/// A standalone stream that is open.
#[derive(Debug)]
pub(crate) struct OpenStream(Arc<Session>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Opens and finds sessions.
pub(crate) struct Sessions {
    keys: Vec<[u8; 32]>,
    lifetime: u64,
    limit: usize,
    outside: Outside,
    listening: CancellationToken,
    clients: AtomicU64,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    live: IndexMap<String, Arc<Session>>,
    deleted: IndexMap<[u8; 16], u64>,
}

impl Table {
    /// The session that loses least with its place: the oldest that nobody uses, if one of the first
    /// few is. Requests and streams in flight hold theirs, and can only be cancelled through the table.
    fn oldest_idle(&self) -> usize {
        let mut oldest = self.live.values().take(LOOKED_THROUGH);
        oldest
            .position(|session| Arc::strong_count(session) == 1)
            .unwrap_or(0)
    }
}

/// How many sessions are looked at for one that is idle.
const LOOKED_THROUGH: usize = 64;

/// Without keys and ids, which open sessions.
impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions")
            .field("live", &lock(&self.table).live.len())
            .finish_non_exhaustive()
    }
}

/// The sealed part of an id; short names, since it travels with every request.
#[derive(Deserialize, Serialize)]
struct Sealed {
    r: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    f: Option<Vec<String>>,
    o: Vec<String>,
    e: u64,
    n: [u8; 16],
}

impl Sessions {
    /// `keys`: the first one seals, all of them open.
    pub(crate) fn new(config: &Config, keys: Vec<[u8; 32]>) -> Self {
        Self {
            keys,
            lifetime: config.session_lifetime.as_secs(),
            limit: config.limits.sessions,
            outside: config.outside,
            listening: CancellationToken::new(),
            clients: AtomicU64::new(0),
            table: Mutex::default(),
        }
    }

    /// Ends the streams that only listen, so that connections can close.
    pub(crate) fn stop_listening(&self) {
        self.listening.cancel();
    }

    /// A client of its own, for a connection or request without a session.
    pub(crate) fn new_client(&self) -> ClientId {
        self.clients.fetch_add(1, Ordering::Relaxed)
    }

    /// Opens a session and seals its id.
    pub(crate) fn open(&self, fixed: Fixed) -> (String, Arc<Session>) {
        let mut nonce = [0; 16];
        (self.outside.random)(&mut nonce);
        let expires = (self.outside.now)().saturating_add(self.lifetime);
        let id = self.seal(&fixed, expires, nonce);
        // The session is what its id says, here and wherever it is opened next.
        let fixed = self.unseal(&id).map_or(fixed, |(sealed, _, _)| sealed);
        let session = self.keep(&mut lock(&self.table), id.clone(), fixed, expires, nonce);
        (id, session)
    }

    /// A session that no id leads to: that of a stdio client.
    pub(crate) fn open_unnamed(&self, fixed: Fixed) -> Arc<Session> {
        let client = self.new_client();
        Arc::new(Session::new(
            fixed,
            client,
            u64::MAX,
            [0; 16],
            self.listening.child_token(),
        ))
    }

    /// Finds the session that `id` seals; `None` when forged, expired or deleted.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Session>> {
        let now = (self.outside.now)();
        let mut table = lock(&self.table);
        if let Some(session) = table.live.get(id) {
            return (session.expires > now).then(|| Arc::clone(session));
        }
        let (fixed, expires, nonce) = self.unseal(id)?;
        if expires <= now || table.deleted.contains_key(&nonce) {
            return None;
        }
        Some(self.keep(&mut table, id.to_owned(), fixed, expires, nonce))
    }

    /// Keeps a session in the table, in place of an old one when the table is full.
    fn keep(
        &self,
        table: &mut Table,
        id: String,
        fixed: Fixed,
        expires: u64,
        nonce: [u8; 16],
    ) -> Arc<Session> {
        if table.live.len() >= self.limit {
            table.live.shift_remove_index(table.oldest_idle());
        }
        let listening = self.listening.child_token();
        let session = Arc::new(Session::new(
            fixed,
            self.new_client(),
            expires,
            nonce,
            listening,
        ));
        table.live.insert(id, Arc::clone(&session));
        session
    }

    /// Ends the session that `id` seals; whether there was one.
    pub(crate) fn delete(&self, id: &str) -> bool {
        let Some(session) = self.find(id) else {
            return false;
        };
        session.ended.cancel();
        session.listening.cancel();
        let now = (self.outside.now)();
        let mut table = lock(&self.table);
        table.live.swap_remove(id);
        if table.deleted.len() >= REMEMBERED_DELETIONS {
            table.deleted.retain(|_, expires| *expires > now);
        }
        if table.deleted.len() >= REMEMBERED_DELETIONS {
            table.deleted.shift_remove_index(0);
        }
        table.deleted.insert(session.nonce, session.expires);
        true
    }

    fn seal(&self, fixed: &Fixed, expires: u64, nonce: [u8; 16]) -> String {
        let mut sealed = Sealed {
            r: fixed.revision.as_str().to_owned(),
            f: fixed.features.as_deref().map(tags_by_weight),
            o: fixed.order.clone(),
            e: expires,
            n: nonce,
        };
        loop {
            let payload = serde_json::to_vec(&sealed).unwrap_or_default();
            let mut bytes = self
                .mac(&self.keys[0], &payload)
                .finalize()
                .into_bytes()
                .to_vec();
            bytes.extend_from_slice(&payload);
            let id = URL_SAFE_NO_PAD.encode(bytes);
            // Tags without an effect of their own are last and the first to go.
            if id.len() <= MAX_ID || sealed.f.as_mut().and_then(Vec::pop).is_none() {
                return id;
            }
        }
    }

    fn unseal(&self, id: &str) -> Option<(Fixed, u64, [u8; 16])> {
        if id.len() > MAX_ID {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(id).ok()?;
        let (mac, payload) = bytes.split_at_checked(MAC_LENGTH)?;
        let genuine = |key| self.mac(key, payload).verify_slice(mac).is_ok();
        if !self.keys.iter().any(genuine) {
            return None;
        }
        let sealed: Sealed = serde_json::from_slice(payload).ok()?;
        let fixed = Fixed {
            revision: Revision::parse(&sealed.r)?,
            features: sealed
                .f
                .map(|tags| Arc::new(Features::from_tags(tags.iter().map(String::as_str)).0)),
            order: sealed.o,
        };
        Some((fixed, sealed.e, sealed.n))
    }

    fn mac(&self, key: &[u8; 32], payload: &[u8]) -> Hmac<Sha256> {
        let mut mac = keyed(key);
        mac.update(LABEL);
        mac.update(payload);
        mac
    }
}

impl Session {
    fn new(
        fixed: Fixed,
        client: ClientId,
        expires: u64,
        nonce: [u8; 16],
        listening: CancellationToken,
    ) -> Self {
        Self {
            fixed,
            client,
            log_level: AtomicU8::new(NO_LEVEL),
            in_flight: Mutex::default(),
            streams: AtomicUsize::new(0),
            views: OnceLock::new(),
            ended: CancellationToken::new(),
            listening,
            expires,
            nonce,
        }
    }
}

/// An HMAC under `key`; keys of any length are valid, so that this cannot fail.
pub(crate) fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"))
}

/// The tags, those that the registry gives an effect first.
fn tags_by_weight(features: &Features) -> Vec<String> {
    let mut tags: Vec<_> = features.tags().collect();
    tags.sort_by_key(|tag| !is_registered(tag));
    tags.into_iter().map(ToString::to_string).collect()
}

fn is_registered(tag: &FeatureTag) -> bool {
    match (tag.key(), tag.value()) {
        ("format", Some(value)) => Format::from_value(value).is_some(),
        ("verbosity", Some(value)) => Verbosity::from_value(value).is_some(),
        (key, value) => REGISTERED.contains(&key) && value.is_none(),
    }
}

/// The tags of the registry that are present or absent; `format` and `verbosity` have values.
const REGISTERED: [&str; 8] = [
    "agent",
    "human",
    "mcp-capable",
    "interactive",
    "sampling",
    "elicitation",
    "roots",
    "tasks",
];

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // The tables hold no half-done change that a panic could leave behind.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::upstream::{Target, UpstreamConfig};

    fn sessions() -> Sessions {
        let target = Target::command("none", []);
        let outside = Outside::new(|| 1_000, |bytes| bytes.fill(7));
        let config = Config::new(UpstreamConfig::new("none", target), outside);
        Sessions::new(&config, vec![[1; 32], [2; 32]])
    }

    #[test]
    fn an_id_is_the_same_however_it_is_spelled() {
        let session = sessions().open_unnamed(fixed(&[]));
        let place = session.begin(r#""a""#, 9);
        assert!(place.is_ok());
        assert_eq!(
            session.begin(r#""\u0061""#, 9).err(),
            Some(Refused::IdInUse)
        );
        assert!(session.begin(r#""\ud800""#, 9).is_ok());
    }

    fn fixed(tags: &[String]) -> Fixed {
        let tags = tags.iter().map(String::as_str);
        Fixed {
            revision: Revision::V2025_06_18,
            features: Some(Arc::new(Features::from_tags(tags).0)),
            order: vec!["compact".to_owned(), "standard".to_owned()],
        }
    }

    proptest! {
        /// CN-18: an id opens to what it sealed, and is short whatever was declared.
        #[test]
        fn an_id_opens_to_what_it_sealed(tags in proptest::collection::vec("[a-z]{1,6}(=[ -~]{0,120})?", 0..80)) {
            let sessions = sessions();
            let (id, session) = sessions.open(fixed(&tags));
            prop_assert!(id.len() <= MAX_ID);
            let (opened, expires, nonce) = sessions.unseal(&id).unwrap();
            prop_assert_eq!(&opened.features, &session.fixed.features);
            prop_assert_eq!(opened.order, fixed(&tags).order);
            prop_assert_eq!((opened.revision, expires, nonce), (Revision::V2025_06_18, session.expires, [7; 16]));
        }

        /// Nothing opens but what was sealed: no bytes, and no id with a byte exchanged.
        #[test]
        fn nothing_else_opens(text in ".{0,300}", at in any::<prop::sample::Index>(), by in 1u8..64) {
            let sessions = sessions();
            prop_assert!(sessions.unseal(&text).is_none());
            let (id, _) = sessions.open(fixed(&[]));
            let mut bytes = URL_SAFE_NO_PAD.decode(id).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= by;
            prop_assert!(sessions.unseal(&URL_SAFE_NO_PAD.encode(bytes)).is_none());
        }
    }

    #[test]
    fn an_earlier_key_still_opens() {
        let mut earlier = sessions();
        earlier.keys = vec![[2; 32]];
        let (id, _) = earlier.open(fixed(&[]));
        assert!(sessions().find(&id).is_some());
        earlier.keys = vec![[3; 32]];
        let (id, _) = earlier.open(fixed(&[]));
        assert!(sessions().find(&id).is_none());
    }
}
