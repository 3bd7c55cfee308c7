//! One stream: the events that its client may not have received, and the connection that reads them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes};
use mcp_vary_base::copies::Copies;
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::sse::{EventId, EventPosition, event_with_id, priming_event};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The events of one stream, in order, and its reader.
///
/// # Properties
///
/// At most one connection reads. A new one takes over, and the one before ends. Sent events are stored, too, since it
/// is unknown which of them arrived; beyond `MAX_UNSENT` bytes the oldest are evicted. The newest is never evicted, so
/// that a response is not lost.
pub struct ReplayBuffer {
    pub(super) number: u64,
    pub(super) client: ClientId,
    /// Whether it is the stream of a request, which is pumped until the response; otherwise it is that of a `GET`.
    pub(super) is_of_request: bool,
    ending: String,
    /// Bytes of all buffers of the gateway.
    total: Arc<AtomicUsize>,
    /// Where it is copied to when it ends without its client, and how long a copy is of use.
    copies: Copies,
    lifetime: Duration,
    state: ScopedLock<BufferState>,
    /// Notified whenever a connection is added, is removed or reads.
    changed: Notify,
}

struct BufferState {
    events: VecDeque<StoredEvent>,
    /// The number of the next event.
    next: u64,
    /// The first event that was not sent.
    unsent: u64,
    bytes: usize,
    unsent_bytes: usize,
    /// Whether the pump may add more.
    is_pumped: bool,
    /// Whether it cannot be resumed, so that nothing more is stored.
    is_abandoned: bool,
    /// Whether it was copied, after its end.
    is_copied: bool,
    /// The number of connections so far; the last one reads.
    connections: u64,
    connected: bool,
    /// When it was last read or written.
    since: Instant,
    reader: Option<Waker>,
}

struct StoredEvent {
    number: u64,
    bytes: Bytes,
}

/// Bytes of one stream that are stored. If more is unsent, the pump waits.
pub(super) const MAX_UNSENT: usize = 256 << 10;
/// The approximate overhead of a buffer.
const OVERHEAD: usize = 512;

// Leaves out the events.
mcp_vary_base::debug_by_name!(ReplayBuffer);

impl ReplayBuffer {
    /// An empty buffer, for the response to `request` if there is one.
    pub(super) fn new(
        number: u64,
        client: ClientId,
        request: Option<&str>,
        total: Arc<AtomicUsize>,
        copies: Copies,
        lifetime: Duration,
    ) -> Self {
        total.fetch_add(OVERHEAD, Ordering::Relaxed);
        Self {
            number,
            client,
            is_of_request: request.is_some(),
            ending: EventId::suffix(request),
            total,
            copies,
            lifetime,
            state: ScopedLock::new(BufferState {
                events: VecDeque::new(),
                next: 0,
                unsent: 0,
                bytes: 0,
                unsent_bytes: 0,
                is_pumped: request.is_some(),
                is_abandoned: false,
                is_copied: false,
                connections: 0,
                connected: false,
                since: Instant::now(),
                reader: None,
            }),
            changed: Notify::new(),
        }
    }

    /// The stream that these bytes are a copy of, which has ended. `None` if they are not one.
    pub(super) fn of_copy(
        number: u64,
        request: &str,
        total: Arc<AtomicUsize>,
        mut copy: &[u8],
    ) -> Option<Self> {
        let client = copy.try_get_u64().ok()?;
        let none = Copies::default();
        let log = Self::new(number, client, Some(request), total, none, Duration::ZERO);
        {
            let mut state = log.state.lock();
            state.is_pumped = false;
            while copy.has_remaining() {
                // Another follows it.
                state.next = copy.try_get_u64().ok().filter(|next| *next < u64::MAX)?;
                let length = usize::try_from(copy.try_get_u32().ok()?).ok()?;
                let (event, others) = copy.split_at_checked(length)?;
                copy = others;
                // All of them: their client may have got none.
                log.append(&mut state, Bytes::copy_from_slice(event));
            }
        }
        Some(log)
    }

    /// Copies the stream if it has ended, and its client may not have got all of it.
    fn copy_if_left(&self, state: &mut BufferState) {
        let is_left = !state.connected && state.unsent < state.next;
        let is_at_end = self.is_of_request && !state.is_pumped && !state.is_abandoned;
        if !is_left || !is_at_end || state.is_copied {
            return;
        }
        let id = super::ReplayStreams::id_of_copy(self.number);
        let is_copied = self.copies.add(&id, self.lifetime, state.bytes, || {
            let mut copy = Vec::with_capacity(state.bytes + 16 * (state.events.len() + 1));
            copy.put_u64(self.client);
            for event in &state.events {
                copy.put_u64(event.number);
                // Memory holds no longer one.
                copy.put_u32(u32::try_from(event.bytes.len()).unwrap_or(u32::MAX));
                copy.put_slice(&event.bytes);
            }
            copy
        });
        state.is_copied = is_copied;
    }

    /// Lets the client resume before the first event.
    pub(super) fn prime(&self) {
        let mut state = self.state.lock();
        let id = self.id(EventPosition::Number(state.next));
        self.add(&mut state, priming_event(&id));
    }

    /// Adds a message.
    pub(super) fn push(&self, message: &[u8]) {
        let mut state = self.state.lock();
        let id = self.id(EventPosition::Number(state.next));
        self.add(&mut state, event_with_id(&id, message));
    }

    /// Adds the response, or what is sent in its place. Nothing follows.
    pub fn finish_response(&self, message: &[u8]) {
        let id = self.id(EventPosition::End);
        let mut state = self.state.lock();
        state.is_pumped = false;
        self.add(&mut state, event_with_id(&id, message));
        self.copy_if_left(&mut state);
    }

    fn id(&self, at: EventPosition) -> String {
        let stream = self.number;
        let ending = &self.ending;
        match at {
            EventPosition::Number(number) => format!("{stream:x}-{number}{ending}"),
            EventPosition::End => format!("{stream:x}-end{ending}"),
        }
    }

    fn add(&self, state: &mut BufferState, bytes: Bytes) {
        if state.is_abandoned {
            return;
        }
        self.append(state, bytes);
        while state.bytes > MAX_UNSENT && state.events.len() > 1 && state.may_evict_first() {
            self.evict_first(state);
        }
        state.wake();
    }

    fn append(&self, state: &mut BufferState, bytes: Bytes) {
        let number = state.next;
        state.next += 1;
        state.since = Instant::now();
        state.bytes += bytes.len();
        state.unsent_bytes += bytes.len();
        self.total.fetch_add(bytes.len(), Ordering::Relaxed);
        state.events.push_back(StoredEvent { number, bytes });
    }

    fn evict_first(&self, state: &mut BufferState) {
        let Some(event) = state.events.pop_front() else {
            return;
        };
        let bytes = event.bytes.len();
        state.bytes -= bytes;
        self.total.fetch_sub(bytes, Ordering::Relaxed);
        if event.number >= state.unsent {
            state.unsent = event.number + 1;
            state.unsent_bytes -= bytes;
        }
    }

    /// Ends the stream without a response, unless it has ended.
    pub fn finish(&self) {
        let mut state = self.state.lock();
        state.is_pumped = false;
        state.since = Instant::now();
        state.wake();
    }

    /// Whether a connection reads.
    pub fn is_connected(&self) -> bool {
        self.state.lock().connected
    }

    /// Whether more may be added: the client has read enough, or there is none.
    pub fn has_room(&self) -> bool {
        let state = self.state.lock();
        !state.connected || state.unsent_bytes < MAX_UNSENT
    }

    /// Waits until a connection is added, is removed or reads.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Whether an event after `last` is stored or may come.
    pub(super) fn continues_after(&self, last: u64) -> bool {
        let state = self.state.lock();
        let more = state.events.back().is_some_and(|event| event.number > last);
        more || state.is_pumped
    }

    /// Reads from the event after `last`, or from the first one. The connection that read before stops.
    pub(super) fn connect(self: &Arc<Self>, last: Option<u64>) -> ReplayReader {
        let mut state = self.state.lock();
        state.connections += 1;
        state.connected = true;
        state.wake();
        state.replay_from(last.map_or(0, |last| last.saturating_add(1)));
        self.changed.notify_one();
        ReplayReader {
            log: Arc::clone(self),
            number: state.connections,
        }
    }

    /// Evicts what is needed least: sent events, if a connection reads; otherwise everything. Returns whether the
    /// stream can still be resumed.
    pub(super) fn evict_events(&self) -> bool {
        let mut state = self.state.lock();
        let connected = state.connected;
        while !connected || state.may_evict_first() {
            if state.events.is_empty() {
                break;
            }
            self.evict_first(&mut state);
        }
        state.is_abandoned = !connected;
        connected
    }

    /// The time since which there is no reader and no pump; `None` while there is one.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.state.lock();
        (!state.connected && !state.is_pumped).then_some(state.since)
    }
}

impl BufferState {
    /// Whether the first event was sent, or there is no client to wait for it.
    fn may_evict_first(&self) -> bool {
        let first = self.events.front();
        first.is_some_and(|event| !self.connected || event.number < self.unsent)
    }

    fn replay_from(&mut self, number: u64) {
        self.unsent = number.min(self.next);
        let newest = self.events.iter().rev();
        let unsent = newest.take_while(|event| event.number >= self.unsent);
        self.unsent_bytes = unsent.map(|event| event.bytes.len()).sum();
    }

    /// The next unsent event.
    fn next_unsent(&mut self) -> Option<Bytes> {
        let first = self.events.front()?.number;
        let at = usize::try_from(self.unsent.saturating_sub(first)).ok()?;
        let event = self.events.get(at)?;
        self.unsent = event.number + 1;
        self.unsent_bytes -= event.bytes.len();
        Some(event.bytes.clone())
    }

    fn wake(&mut self) {
        if let Some(waker) = self.reader.take() {
            waker.wake();
        }
    }
}

impl Drop for ReplayBuffer {
    fn drop(&mut self) {
        let bytes = self.state.lock().bytes;
        self.total.fetch_sub(bytes + OVERHEAD, Ordering::Relaxed);
    }
}

/// The reading end of a stream, until another connection takes over.
#[derive(Debug)]
pub struct ReplayReader {
    log: Arc<ReplayBuffer>,
    number: u64,
}

impl ReplayReader {
    /// The stream that it reads.
    pub fn log(&self) -> &Arc<ReplayBuffer> {
        &self.log
    }

    /// The next event; none if another connection has taken over.
    ///
    /// With a pump, it is pending while the pump may add more, and none after that.
    pub fn poll_event(&self, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.log.state.lock();
        if state.connections != self.number {
            return Poll::Ready(None);
        }
        if let Some(event) = state.next_unsent() {
            if state.unsent_bytes < MAX_UNSENT {
                self.log.changed.notify_one();
            }
            return Poll::Ready(Some(event));
        }
        if !state.is_pumped && self.log.is_of_request {
            return Poll::Ready(None);
        }
        state.reader = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for ReplayReader {
    fn drop(&mut self) {
        let mut state = self.log.state.lock();
        if state.connections == self.number {
            state.connected = false;
            state.since = Instant::now();
            state.reader = None;
            self.log.copy_if_left(&mut state);
            self.log.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(request: Option<&str>) -> Arc<ReplayBuffer> {
        let none = Copies::default();
        let log = ReplayBuffer::new(1, 7, request, Arc::default(), none, Duration::ZERO);
        Arc::new(log)
    }

    fn read(connection: &ReplayReader) -> Option<String> {
        let polled = connection.poll_event(&Context::from_waker(Waker::noop()));
        match polled {
            Poll::Ready(Some(event)) => Some(String::from_utf8(event.to_vec()).unwrap()),
            Poll::Ready(None) => Some("closed".to_owned()),
            Poll::Pending => None,
        }
    }

    fn ids(connection: &ReplayReader) -> Vec<String> {
        let events = std::iter::from_fn(|| read(connection).filter(|event| event != "closed"));
        let ids = events.map(|event| {
            let id = event.lines().find_map(|line| line.strip_prefix("id: "));
            id.unwrap().to_owned()
        });
        ids.collect()
    }

    #[test]
    fn sent_events_stay_for_a_client_that_resumes() {
        let log = log(Some("9"));
        let first = log.connect(None);
        log.push(b"{}");
        log.push(b"{}");
        assert_eq!(ids(&first), ["1-0-OQ", "1-1-OQ"]);
        drop(first);
        log.finish_response(b"{}");
        assert_eq!(ids(&log.connect(Some(0))), ["1-1-OQ", "1-end-OQ"]);
        assert_eq!(ids(&log.connect(None)).len(), 3);
        assert!(log.continues_after(1) && !log.continues_after(2));
        assert!(ids(&log.connect(Some(u64::MAX))).is_empty());
    }

    #[test]
    fn a_new_reader_replaces_the_one_before() {
        let log = log(None);
        let [first, second] = [(); 2].map(|()| log.connect(None));
        log.push(b"{}");
        assert_eq!(read(&first).as_deref(), Some("closed"));
        assert_eq!(ids(&second), ["1-0"]);
        drop(first);
        assert!(log.is_connected());
        drop(second);
        assert!(!log.is_connected());
    }

    /// A stream that ends without a response is closed; that of a `GET` waits for more.
    #[test]
    fn a_stream_ends_without_a_pump() {
        let (call, standalone) = (log(Some("9")), log(None));
        let (reads, receives) = (call.connect(None), standalone.connect(None));
        assert_eq!((read(&reads), read(&receives)), (None, None));
        call.finish();
        let expected = (Some("closed"), None);
        assert_eq!((read(&reads).as_deref(), read(&receives)), expected);
        assert!(call.idle_since().is_none() && standalone.idle_since().is_none());
        drop((reads, receives));
        assert!(call.idle_since().is_some() && standalone.idle_since().is_some());
    }

    #[test]
    fn a_slow_reader_makes_its_server_wait() {
        let log = log(Some("9"));
        let reader = log.connect(None);
        let message = vec![b' '; MAX_UNSENT / 4];
        let pushed = std::iter::repeat_with(|| log.push(&message)).take_while(|()| log.has_room());
        assert_eq!(pushed.count(), 3);
        assert_eq!(ids(&reader).len(), 4);
        assert!(log.has_room());
    }

    #[test]
    fn without_a_reader_the_oldest_events_are_evicted() {
        let log = log(Some("9"));
        let message = vec![b' '; MAX_UNSENT / 4];
        for _ in 0..9 {
            log.push(&message);
            assert!(log.has_room());
        }
        log.finish_response(&vec![b' '; 2 * MAX_UNSENT]);
        assert_eq!(ids(&log.connect(Some(1))), ["1-end-OQ"]);
        log.push(b"{}");
        let expected = OVERHEAD + log.state.lock().bytes;
        assert_eq!(log.total.load(Ordering::Relaxed), expected);
        let total = Arc::clone(&log.total);
        drop(log);
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn sent_and_unread_events_are_evicted_under_pressure() {
        let read_by_one = log(None);
        let reader = read_by_one.connect(None);
        read_by_one.push(b"{}");
        assert_eq!(ids(&reader).len(), 1);
        read_by_one.push(b"{}");
        assert!(read_by_one.evict_events());
        assert_eq!(ids(&reader), ["1-1"]);

        let left = log(Some("9"));
        left.push(b"{}");
        assert!(!left.evict_events());
        left.push(b"{}");
        assert_eq!(left.state.lock().events.len(), 0);
    }
}
