//! One legacy session, and its requests and streams.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use mcp_vary::variant::VariantId;
use mcp_vary_access::Principal;
use mcp_vary_audit::ClientInfo;
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_store::SessionHome;
use mcp_vary_wire::client_id::ClientId;

use crate::client_uses::LatestUse;
use crate::id::{SessionTail, SharedNegotiation, VariantOrder};
use crate::negotiated::Negotiated;
use crate::outbox::Outbox;

/// A session: what its id seals, and the state of this replica.
///
/// # Properties
///
/// While nothing is in flight and no stream is open, it owns the last part of its id and, after the first request, room
/// for a few more; sessions with the same negotiation share that.
#[derive(Debug)]
pub struct Session {
    /// What its id seals.
    pub negotiated: Arc<Negotiated>,
    /// The client that it belongs to.
    pub client: ClientId,
    pub(super) shared: Arc<SharedNegotiation>,
    pub(super) tail: SessionTail,
    /// The lowest level that the client wants logged; 0 is `debug`, [`NO_LEVEL`] not set.
    log_level: AtomicU8,
    /// Set, under the lock of `active`, when the session is deleted.
    ended: AtomicBool,
    /// Who sent its last request: the same principal, perhaps with other claims than before.
    latest: ArcSwapOption<Principal>,
    /// Set when its client has closed its input, though it may still read.
    input_closed: AtomicBool,
    /// Whether it was used since the store last looked for a session to evict.
    pub(super) last_used: AtomicBool,
    /// What its last request was counted under.
    pub latest_use: LatestUse,
    pub(super) active: ScopedLock<ActiveState>,
    /// The ids of the variants that it has selected although they were not offered.
    selected: OnceLock<Box<ScopedLock<BTreeSet<VariantId>>>>,
}

/// What exists only while a request or a stream is open.
#[derive(Debug, Default)]
pub(super) struct ActiveState {
    requests: Vec<OpenRequest>,
    /// Messages outside of responses, and the streams for them.
    pub(super) outbox: Option<Box<Outbox>>,
}

#[derive(Debug)]
struct OpenRequest {
    id: Arc<str>,
    is_cancelled: bool,
    /// Woken when it is cancelled.
    waker: Option<Waker>,
}

impl OpenRequest {
    fn cancel(&mut self) {
        self.is_cancelled = true;
        self.waker.take().into_iter().for_each(Waker::wake);
    }
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
    /// What decides which replica serves it; `None` for a session without an id, which has no other one.
    pub fn home(&self) -> Option<SessionHome> {
        let has_id = self.tail.expires < u64::MAX;
        has_id.then(|| SessionHome {
            opened_by: self.tail.replica(),
            client: self.client,
        })
    }

    pub(super) fn new(shared: Arc<SharedNegotiation>, tail: SessionTail, client: ClientId) -> Self {
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
            latest_use: LatestUse::default(),
            active: ScopedLock::default(),
            selected: OnceLock::new(),
        }
    }

    /// Its client for records; `None` if that gave neither a name nor a version.
    pub fn client_info(&self) -> Option<&Arc<ClientInfo>> {
        self.shared.client_info.as_ref()
    }

    /// Records that its client selected a variant that was not offered. Returns whether that is new.
    pub fn note_selected(&self, variant: &VariantId) -> bool {
        let mut selected = self.selected.get_or_init(Box::default).lock();
        !selected.contains(variant) && selected.insert(variant.clone())
    }

    /// The variants that its client has selected although they were not offered.
    pub fn selected(&self) -> Vec<VariantId> {
        let selected = self.selected.get();
        selected.map_or_else(Vec::new, |all| all.lock().iter().cloned().collect())
    }

    /// The same client's next session, without an id, with a new negotiation.
    pub fn renegotiated(&self, fixed: Negotiated) -> Arc<Self> {
        let visibility = Arc::clone(&self.shared.visibility);
        let shared = Arc::new(SharedNegotiation::of(fixed, visibility));
        let session = Self::new(shared, SessionTail::unnamed(), self.client);
        session
            .log_level
            .store(self.log_level.load(Ordering::Relaxed), Ordering::Relaxed);
        Arc::new(session)
    }

    /// Whether its client may know that `server` exists.
    pub fn may_know(&self, server: &str) -> bool {
        self.shared.visibility.may_know(self.client, server)
    }

    /// Whether its client may know that the tool of `server` exists.
    pub fn may_know_tool(&self, server: &str, tool: &str) -> bool {
        let visibility = &self.shared.visibility;
        visibility.may_know_tool(self.client, server, tool)
    }

    /// The session with an id.
    pub(super) fn with_id(shared: Arc<SharedNegotiation>, tail: SessionTail) -> Arc<Self> {
        let client = tail.client();
        Arc::new(Self::new(shared, tail, client))
    }

    /// The views of `order` in the configuration `number`; computed once for all sessions with that order.
    pub fn views(
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

    /// The lowest level that the client wants logged; 0 is `debug`. `None` if it did not say.
    pub fn log_level(&self) -> Option<u8> {
        Some(self.log_level.load(Ordering::Relaxed)).filter(|level| *level != NO_LEVEL)
    }

    /// Sets the lowest level that the client wants logged.
    pub fn set_log_level(&self, level: u8) {
        self.log_level.store(level, Ordering::Relaxed);
    }

    /// Adds a request in flight. Refused if its id is in use or `limit` is reached.
    ///
    /// If the session has ended, the request is cancelled from the start.
    pub fn begin(
        self: &Arc<Self>,
        id: &str,
        limit: usize,
    ) -> Result<InFlightGuard, AdmissionError> {
        let canonical = canonical_id(id);
        let mut active = self.active.lock();
        if active.requests.iter().any(|other| *other.id == *canonical) {
            return Err(AdmissionError::IdInUse);
        }
        if active.requests.len() >= limit {
            return Err(AdmissionError::TooMany);
        }
        let id: Arc<str> = canonical.into();
        active.requests.push(OpenRequest {
            id: Arc::clone(&id),
            is_cancelled: self.has_ended(),
            waker: None,
        });
        Ok(InFlightGuard {
            session: Arc::clone(self),
            id,
        })
    }

    /// Whether the request of a guard is cancelled; if not, its task is woken when it is. One task waits for it.
    fn poll_cancelled(&self, id: &Arc<str>, context: &Context<'_>) -> Poll<()> {
        let mut active = self.active.lock();
        let mut requests = active.requests.iter_mut();
        let Some(request) = requests.find(|request| Arc::ptr_eq(&request.id, id)) else {
            return Poll::Pending;
        };
        if request.is_cancelled {
            return Poll::Ready(());
        }
        let waker = context.waker();
        match &mut request.waker {
            Some(known) => known.clone_from(waker),
            None => request.waker = Some(waker.clone()),
        }
        Poll::Pending
    }

    /// Whether the request `id` runs at this replica.
    pub(super) fn is_in_flight(&self, id: &str) -> bool {
        let id = canonical_id(id);
        let active = self.active.lock();
        active.requests.iter().any(|request| *request.id == *id)
    }

    /// Cancels the request `id`, as `notifications/cancelled` asks; unknown ids are ignored.
    pub fn cancel(&self, id: &str) {
        let id = canonical_id(id);
        let mut active = self.active.lock();
        let mut requests = active.requests.iter_mut();
        if let Some(request) = requests.find(|request| *request.id == *id) {
            request.cancel();
        }
    }

    /// Cancels all requests and closes all streams.
    pub fn end(&self) {
        let mut active = self.active.lock();
        self.ended.store(true, Ordering::Release);
        for request in &mut active.requests {
            request.cancel();
        }
        if let Some(outbox) = &mut active.outbox {
            outbox.close_all();
        }
    }

    /// Closes all streams, so that its client notices that it has to begin anew. Requests in flight go on.
    pub fn close_streams(&self) {
        if let Some(outbox) = &mut self.active.lock().outbox {
            outbox.close_all();
        }
    }

    /// Remembers who sent a request. Returns whether the claims may be others than before.
    pub fn remember_principal(&self, principal: Option<&Arc<Principal>>) -> bool {
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
    pub fn latest_principal(&self) -> Option<Arc<Principal>> {
        self.latest.load_full()
    }

    /// The time when it expires, in seconds since 1970-01-01 UTC.
    pub fn expires(&self) -> u64 {
        self.tail.expires
    }

    /// The remaining lifetime at `now`, seconds since 1970-01-01 UTC.
    pub fn remaining(&self, now: u64) -> Duration {
        Duration::from_secs(self.tail.expires.saturating_sub(now))
    }

    /// Records that its client has closed its input: it will not respond to requests.
    pub fn close_input(&self) {
        self.input_closed.store(true, Ordering::Release);
    }

    /// Whether its client has closed its input.
    pub(crate) fn is_input_closed(&self) -> bool {
        self.input_closed.load(Ordering::Acquire) || self.has_ended()
    }

    /// Whether the session was deleted.
    pub fn has_ended(&self) -> bool {
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

impl Session {
    /// Sends the client a message outside of responses: a notification or a request. Returns whether it can arrive.
    ///
    /// It is sent on an open `GET` stream or standard output, or waits for a stream for some time. The queue is
    /// bounded: if the client does not read, its stream is closed and this returns `false`.
    pub fn enqueue(&self, message: Bytes) -> bool {
        let mut active = self.active.lock();
        if self.has_ended() {
            return false;
        }
        let is_queued = active.outbox.get_or_insert_default().push(message);
        active.shrink();
        is_queued
    }

    /// Whether the client has an open stream, so that messages reach it at once.
    pub fn has_stream(&self) -> bool {
        let mut active = self.active.lock();
        let outbox = active.outbox.as_mut();
        !self.has_ended() && outbox.is_some_and(|outbox| outbox.newest().is_some())
    }

    /// Opens one more stream. Dropping it frees its place.
    pub fn open_stream(self: &Arc<Self>, limit: usize) -> Option<OutboxStream> {
        let mut active = self.active.lock();
        let outbox = active.outbox.get_or_insert_default();
        if outbox.open() >= limit {
            return None;
        }
        outbox.forget_old();
        Some(OutboxStream {
            number: outbox.add_reader(),
            session: Arc::clone(self),
        })
    }
}

/// An open stream for messages outside of responses. Dropping it frees its place.
#[derive(Debug)]
pub struct OutboxStream {
    session: Arc<Session>,
    number: u64,
}

impl OutboxStream {
    /// The next message; none when the session has ended, or the client read too slowly.
    pub fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        let mut active = self.session.active.lock();
        match &mut active.outbox {
            Some(outbox) if !self.session.has_ended() => outbox.poll(self.number, cx),
            _ => Poll::Ready(None),
        }
    }

    /// The same as a future, for a single reader.
    pub async fn next(&self) -> Option<Bytes> {
        poll_fn(|cx| self.poll_next(cx)).await
    }
}

impl Drop for OutboxStream {
    fn drop(&mut self) {
        let mut active = self.session.active.lock();
        if let Some(outbox) = &mut active.outbox {
            outbox.remove_reader(self.number);
        }
        active.shrink();
    }
}

/// Why a request is not admitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AdmissionError {
    /// A request with the same id is in flight.
    IdInUse,
    /// As many requests are in flight as may be.
    TooMany,
}

/// A request in flight. Dropping this frees its place.
#[derive(Debug)]
pub struct InFlightGuard {
    session: Arc<Session>,
    id: Arc<str>,
}

impl InFlightGuard {
    /// The session of the request.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Waits until the client cancels the request or ends its session.
    pub async fn cancelled(&self) {
        poll_fn(|context| self.session.poll_cancelled(&self.id, context)).await;
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
    use std::task::Wake;

    use super::*;

    pub(crate) fn unnamed() -> Arc<Session> {
        let negotiated = crate::id::tests::fixed(&[]);
        crate::sessions::tests::sessions(9).open_stdio(negotiated)
    }

    fn is_cancelled(guard: &InFlightGuard) -> bool {
        let context = Context::from_waker(Waker::noop());
        guard.session.poll_cancelled(&guard.id, &context).is_ready()
    }

    #[test]
    fn an_id_is_the_same_however_it_is_spelled() {
        let session = unnamed();
        let place = session.begin(r#""a""#, 9);
        assert!(place.is_ok());
        let expected = Some(AdmissionError::IdInUse);
        assert_eq!(session.begin(r#""\u0061""#, 9).err(), expected);
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
        assert!(is_cancelled(&three) && !is_cancelled(&two));
    }

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_task_that_waited_last_is_woken_when_its_request_is_cancelled() {
        let session = unnamed();
        let [one, two] = ["1", "2"].map(|id| session.begin(id, 9).unwrap());
        let tasks = [(); 3].map(|()| Arc::<Woken>::default());
        // A request moves from one task to another.
        for (task, guard) in tasks.iter().zip([&one, &one, &two]) {
            let waker = Waker::from(Arc::clone(task));
            let polled = session.poll_cancelled(&guard.id, &Context::from_waker(&waker));
            assert!(polled.is_pending());
        }
        session.cancel("1");
        let woken = tasks.map(|task| task.0.load(Ordering::Relaxed));
        assert_eq!(woken, [false, true, false]);
    }

    #[test]
    fn an_ended_session_withdraws_what_began_before_and_after() {
        let session = unnamed();
        let before = session.begin("1", 9).unwrap();
        let stream = session.open_stream(9).unwrap();
        session.end();
        let after = session.begin("2", 9).unwrap();
        let late = session.open_stream(9).unwrap();
        assert!(is_cancelled(&before) && is_cancelled(&after));
        let over = |stream: &OutboxStream| stream.poll_next(&Context::from_waker(Waker::noop()));
        let expected = [Poll::Ready(None), Poll::Ready(None)];
        assert_eq!([over(&stream), over(&late)], expected);
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
