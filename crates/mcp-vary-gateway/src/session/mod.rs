//! Legacy sessions: an id that seals the negotiation, and the little state beside it.
//!
//! The [`id`] carries revision, features, ranked variants, capability class and expiry under an HMAC, so that a session
//! needs no stored state. A bounded [`store`] finds recently used sessions without opening their ids, and remembers
//! deletions; [`Sessions`] combines both. This file is one session: its log level, and what exists only while a request
//! or a stream is open.

use mcp_vary_base::lock::ScopedLock;
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_catalog::selection::variant_selection::VariantReason;
use mcp_vary_wire::client_id::ClientId;

mod access_key;
pub(crate) mod caller;
mod claim_headers;
pub(crate) mod client;
pub(crate) mod client_uses;
pub(crate) mod deprecation;
pub(crate) mod directory_uses;
mod id;
pub(crate) mod memory_cost;
mod outbox;
pub(crate) mod pending_server_requests;
mod pool_key;
pub(crate) mod replay;
mod sessions;
mod store;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use mcp_vary::feature::Features;
use mcp_vary::variant::VariantId;
use mcp_vary_access::{Principal, PrincipalId};
use tokio_util::sync::CancellationToken;

pub(crate) use self::access_key::AccessKey;
pub(crate) use self::claim_headers::{ClaimHeaders, ClaimValues};
pub(crate) use self::id::keyed;
use self::id::{SessionTail, SharedNegotiation, VariantOrder};
use self::outbox::Outbox;
pub(crate) use self::outbox::OutboxStream;
pub(crate) use self::pool_key::PoolKey;
pub(crate) use self::sessions::Sessions;
use mcp_vary_wire::client_name::ClientName;
use mcp_vary_wire::revision::Revision;

/// What `initialize` negotiated for the lifetime of a session.
#[derive(Clone, Debug)]
pub(crate) struct Negotiated {
    pub(crate) revision: Revision,
    /// Present when the client declared content negotiation.
    pub(crate) features: Option<Arc<Features>>,
    /// The ids of the variants offered, best first; empty when variants are off.
    pub(crate) order: Vec<String>,
    /// Whether the client declared server variants.
    pub(crate) declares_variants: bool,
    /// The capability class: the canonical JSON text of the forwardable capabilities, at most 512 bytes;
    /// [`BASE_CLASS`] if there are none.
    pub(crate) class: Arc<str>,
    /// The client's name and version.
    pub(crate) client: ClientName,
    /// Who opened the session; only they can use it. `None` where clients are not authenticated.
    pub(crate) principal: Option<PrincipalId>,
    /// Why its default variant is the default, without the names of access rules, which clients do not learn.
    pub(crate) reason: VariantReason,
}

/// Decides which servers and tools the clients of sessions may know.
///
/// Sessions know neither rules nor catalogs; this is implemented where both are known.
pub(crate) trait ServerVisibility: fmt::Debug + Send + Sync {
    /// Whether `client`, which has a session, may know that `server` exists: where there are access rules, if they show
    /// something of it.
    fn may_know(&self, client: ClientId, server: &str) -> bool;

    /// The same for a tool of `server`, by its name there: where there are access rules, if they show it.
    fn may_know_tool(&self, client: ClientId, server: &str, tool: &str) -> bool;
}

/// The class of a client without forwardable capabilities.
pub(crate) const BASE_CLASS: &str = "{}";

/// A session: what its id seals, and the state of this replica.
///
/// # Properties
///
/// While nothing is in flight and no stream is open, it owns the last part of its id and, after the first request, room
/// for a few more; sessions with the same negotiation share that.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) negotiated: Arc<Negotiated>,
    pub(crate) client: ClientId,
    shared: Arc<SharedNegotiation>,
    tail: SessionTail,
    /// The lowest level that the client wants logged; 0 is `debug`, [`NO_LEVEL`] not set.
    log_level: AtomicU8,
    /// Set, under the lock of `active`, when the session is deleted.
    ended: AtomicBool,
    /// Who sent its last request: the same principal, perhaps with other claims than before.
    latest: ArcSwapOption<Principal>,
    /// Set when its client has closed its input, though it may still read.
    input_closed: AtomicBool,
    /// Whether it was used since the store last looked for a session to evict.
    last_used: AtomicBool,
    active: ScopedLock<ActiveState>,
    /// The ids of the variants that it has selected although they were not offered.
    selected: OnceLock<Box<ScopedLock<BTreeSet<VariantId>>>>,
}

/// What exists only while a request or a stream is open.
#[derive(Debug, Default)]
struct ActiveState {
    requests: Vec<OpenRequest>,
    /// Messages outside of responses, and the streams for them.
    outbox: Option<Box<Outbox>>,
}

#[derive(Debug)]
struct OpenRequest {
    id: Arc<str>,
    cancelled: CancellationToken,
}

impl ActiveState {
    /// Frees what is not needed at the moment.
    fn shrink(&mut self) {
        if self.outbox.as_ref().is_some_and(|outbox| outbox.is_idle()) {
            self.outbox = None;
        }
    }
}

const NO_LEVEL: u8 = u8::MAX;
/// The capacity for requests that a session retains when none is in flight, so that sequential requests do not
/// allocate.
const RETAINED_CAPACITY: usize = 4;

impl Session {
    fn new(shared: Arc<SharedNegotiation>, tail: SessionTail, client: ClientId) -> Self {
        Self {
            negotiated: Arc::clone(&shared.negotiated),
            client,
            shared,
            tail,
            log_level: AtomicU8::new(NO_LEVEL),
            ended: AtomicBool::new(false),
            latest: ArcSwapOption::empty(),
            input_closed: AtomicBool::new(false),
            last_used: AtomicBool::new(false),
            active: ScopedLock::default(),
            selected: OnceLock::new(),
        }
    }

    /// Records that its client selected a variant that was not offered. Returns whether that is new.
    pub(crate) fn note_selected(&self, variant: &VariantId) -> bool {
        let mut selected = self.selected.get_or_init(Box::default).lock();
        !selected.contains(variant) && selected.insert(variant.clone())
    }

    /// The variants that its client has selected although they were not offered.
    pub(crate) fn selected(&self) -> Vec<VariantId> {
        let selected = self.selected.get();
        selected.map_or_else(Vec::new, |all| all.lock().iter().cloned().collect())
    }

    /// The same client's next session, without an id, with a new negotiation.
    pub(crate) fn renegotiated(&self, fixed: Negotiated) -> Arc<Self> {
        let visibility = Arc::clone(&self.shared.visibility);
        let shared = Arc::new(SharedNegotiation::of(fixed, visibility));
        let session = Self::new(shared, SessionTail::unnamed(), self.client);
        session
            .log_level
            .store(self.log_level.load(Ordering::Relaxed), Ordering::Relaxed);
        Arc::new(session)
    }

    /// Whether its client may know that `server` exists.
    pub(crate) fn may_know(&self, server: &str) -> bool {
        self.shared.visibility.may_know(self.client, server)
    }

    /// Whether its client may know that the tool of `server` exists.
    pub(crate) fn may_know_tool(&self, server: &str, tool: &str) -> bool {
        let visibility = &self.shared.visibility;
        visibility.may_know_tool(self.client, server, tool)
    }

    /// The session with an id.
    fn with_id(shared: Arc<SharedNegotiation>, tail: SessionTail) -> Arc<Self> {
        let client = tail.client();
        Arc::new(Self::new(shared, tail, client))
    }

    /// The views of `order` in the configuration `number`; computed once for all sessions with that order.
    pub(crate) fn views(
        &self,
        number: u64,
        find: impl FnOnce(&[String]) -> Option<Arc<[VariantIndex]>>,
    ) -> Option<Arc<[VariantIndex]>> {
        let known = self.shared.views.load();
        if let Some(known) = known.as_ref().filter(|known| known.number == number) {
            return known.order.clone();
        }
        let order = find(&self.negotiated.order);
        let views = VariantOrder {
            number,
            order: order.clone(),
        };
        self.shared.views.store(Some(Arc::new(views)));
        order
    }

    pub(crate) fn log_level(&self) -> Option<u8> {
        Some(self.log_level.load(Ordering::Relaxed)).filter(|level| *level != NO_LEVEL)
    }

    pub(crate) fn set_log_level(&self, level: u8) {
        self.log_level.store(level, Ordering::Relaxed);
    }

    /// Adds a request in flight. Refused if its id is in use or `limit` is reached.
    ///
    /// If the session has ended, the request is cancelled from the start.
    pub(crate) fn begin(
        self: &Arc<Self>,
        id: &str,
        limit: usize,
    ) -> Result<InFlightGuard, AdmissionError> {
        let id = canonical_id(id);
        let mut active = self.active.lock();
        if active.requests.iter().any(|other| *other.id == *id) {
            return Err(AdmissionError::IdInUse);
        }
        if active.requests.len() >= limit {
            return Err(AdmissionError::TooMany);
        }
        let cancelled = CancellationToken::new();
        if self.has_ended() {
            cancelled.cancel();
        }
        let id: Arc<str> = id.into();
        active.requests.push(OpenRequest {
            id: Arc::clone(&id),
            cancelled: cancelled.clone(),
        });
        Ok(InFlightGuard {
            session: Arc::clone(self),
            id,
            cancelled,
        })
    }

    /// Cancels the request `id`, as `notifications/cancelled` asks; unknown ids are ignored.
    pub(crate) fn cancel(&self, id: &str) {
        let id = canonical_id(id);
        let active = self.active.lock();
        let request = active.requests.iter().find(|request| *request.id == *id);
        if let Some(request) = request {
            request.cancelled.cancel();
        }
    }

    /// Cancels all requests and closes all streams.
    pub(crate) fn end(&self) {
        let mut active = self.active.lock();
        self.ended.store(true, Ordering::Release);
        for request in &active.requests {
            request.cancelled.cancel();
        }
        if let Some(outbox) = &mut active.outbox {
            outbox.wake_all();
        }
    }

    /// Remembers who sent a request. Returns whether the claims may be others than before.
    pub(crate) fn remember_principal(&self, principal: Option<&Arc<Principal>>) -> bool {
        let latest = self.latest.load();
        let is_same = match (latest.as_ref(), principal) {
            (Some(known), Some(principal)) => Arc::ptr_eq(known, principal),
            (known, principal) => known.is_none() && principal.is_none(),
        };
        if !is_same {
            self.latest.store(principal.cloned());
        }
        !is_same
    }

    /// Who sent its last request.
    pub(crate) fn latest_principal(&self) -> Option<Arc<Principal>> {
        self.latest.load_full()
    }

    /// The time when it expires, in seconds since 1970-01-01 UTC.
    pub(crate) fn expires(&self) -> u64 {
        self.tail.expires
    }

    /// The remaining lifetime at `now`, seconds since 1970-01-01 UTC.
    pub(crate) fn remaining(&self, now: u64) -> Duration {
        Duration::from_secs(self.tail.expires.saturating_sub(now))
    }

    /// Records that its client has closed its input: it will not respond to requests.
    pub(crate) fn close_input(&self) {
        self.input_closed.store(true, Ordering::Release);
    }

    /// Whether its client has closed its input.
    pub(crate) fn is_input_closed(&self) -> bool {
        self.input_closed.load(Ordering::Acquire) || self.has_ended()
    }

    /// Whether the session was deleted.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// The canonical spelling of an id: `"a"` and `"\u0061"` are the same string.
fn canonical_id(id: &str) -> Cow<'_, str> {
    if !id.contains('\\') {
        return Cow::Borrowed(id);
    }
    // A lone surrogate has no other spelling.
    let text: Result<String, _> = serde_json::from_str(id);
    text.map_or(Cow::Borrowed(id), |text| {
        Cow::Owned(mcp_vary::json::string(&text))
    })
}

/// Why a request is not admitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AdmissionError {
    IdInUse,
    TooMany,
}

/// A request in flight. Dropping this frees its place.
#[derive(Debug)]
pub(crate) struct InFlightGuard {
    session: Arc<Session>,
    id: Arc<str>,
    cancelled: CancellationToken,
}

impl InFlightGuard {
    /// The session of the request.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Waits until the client cancels the request or ends its session.
    pub(crate) async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut active = self.session.active.lock();
        let requests = &mut active.requests;
        let at = requests
            .iter()
            .position(|request| Arc::ptr_eq(&request.id, &self.id));
        if let Some(at) = at {
            requests.swap_remove(at);
        }
        if requests.is_empty() {
            requests.shrink_to(RETAINED_CAPACITY);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    pub(super) fn unnamed() -> Arc<Session> {
        sessions::tests::sessions(9).open_stdio(id::tests::fixed(&[]))
    }

    #[test]
    fn an_id_is_the_same_however_it_is_spelled() {
        let session = unnamed();
        let place = session.begin(r#""a""#, 9);
        assert!(place.is_ok());
        assert_eq!(
            session.begin(r#""\u0061""#, 9).err(),
            Some(AdmissionError::IdInUse)
        );
        assert!(session.begin(r#""\ud800""#, 9).is_ok());
    }

    #[test]
    fn a_place_is_free_again_when_its_request_has_ended() {
        let session = unnamed();
        let [one, two] = ["1", "2"].map(|id| session.begin(id, 2).unwrap());
        assert_eq!(session.begin("3", 2).err(), Some(AdmissionError::TooMany));
        drop(one);
        let three = session.begin("3", 2).unwrap();
        session.cancel("1");
        session.cancel("3");
        assert!(three.cancelled.is_cancelled() && !two.cancelled.is_cancelled());
    }

    #[test]
    fn an_ended_session_withdraws_what_began_before_and_after() {
        let session = unnamed();
        let before = session.begin("1", 9).unwrap();
        let stream = session.open_stream(9).unwrap();
        session.end();
        let after = session.begin("2", 9).unwrap();
        let late = session.open_stream(9).unwrap();
        assert!(before.cancelled.is_cancelled() && after.cancelled.is_cancelled());
        let over = |stream: &OutboxStream| stream.poll_next(&Context::from_waker(Waker::noop()));
        assert_eq!(
            [over(&stream), over(&late)],
            [Poll::Ready(None), Poll::Ready(None)]
        );
    }

    /// There are ten thousand sessions: each byte counts ten thousand times.
    #[test]
    fn an_idle_session_is_small() {
        assert!(size_of::<Session>() <= 160, "{}", size_of::<Session>());
        let session = unnamed();
        for _ in 0..3 {
            let places = ["1", "2", "3", "4", "5"].map(|id| session.begin(id, 9).unwrap());
            let stream = session.open_stream(9);
            drop((places, stream));
        }
        let active = session.active.lock();
        assert!(active.outbox.is_none() && active.requests.capacity() <= RETAINED_CAPACITY);
    }
}
