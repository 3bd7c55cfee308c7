//! Streams of legacy clients, which can be resumed after the connection was lost.
//!
//! > If the client wishes to resume after a disconnection, it SHOULD issue an HTTP GET to the MCP endpoint,
//! > and include the `Last-Event-ID` header. (MCP 2025-11-25, basic/transports, "Resumability and Redelivery")
//!
//! The buffer of a stream holds its last events. [`ReplayStreams`] are all streams of a gateway, with a common
//! bound. The messages of a call are pumped into its buffer, whether they are read or not.

mod buffer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use mcp_vary_wire::sse::{EventId, EventPosition, event_with_id};

pub use self::buffer::{ReplayBuffer, ReplayReader};
use mcp_vary_base::copies::Copies;
use mcp_vary_base::lock::Lock;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::response::RpcError;

/// The streams of a gateway.
///
/// # Properties
///
/// Their events take about `room` bytes together. If there are more, the oldest streams without a reader are dropped
/// first. A stream that has ended, or has neither reader nor pump, is dropped after a while.
#[derive(Debug)]
pub struct ReplayStreams {
    capacity: usize,
    ttl: Duration,
    next: AtomicU64,
    bytes: Arc<AtomicUsize>,
    copies: Copies,
    /// By their numbers, oldest first.
    buffers: Lock<BTreeMap<u64, Arc<ReplayBuffer>>>,
}

/// The numbers of one replica are smaller: they do not end before its process does.
const REPLICA_SHIFT: u32 = 31;

/// The outcome of a client's attempt to resume a stream.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a server handles each outcome")]
pub enum ResumedStream {
    /// The stream of its request continues.
    Request(ReplayReader),
    /// The stream of messages outside of requests continues; its reader pumps it.
    Standalone(ReplayReader),
    /// The stream of a `GET` is not known; a new one replaces it.
    New,
    /// The client has everything; nothing follows.
    Ended,
    /// The response is no longer stored: the event that says so.
    Expired(bytes::Bytes),
}

impl ReplayStreams {
    /// No streams yet, with `capacity` bytes for their events. One that is over is dropped after `ttl`. The numbers of
    /// streams name the `replica`.
    pub fn new(capacity: usize, ttl: Duration, replica: u32) -> Self {
        Self {
            capacity,
            ttl,
            next: AtomicU64::new(u64::from(replica) << REPLICA_SHIFT),
            bytes: Arc::default(),
            copies: Copies::default(),
            buffers: Lock::default(),
        }
    }

    /// The same streams. Each that ends before its client has got the response is copied, so that another replica can
    /// [`insert`](Self::insert_copy) it.
    #[must_use]
    pub fn with_copies(self, copies: Copies) -> Self {
        Self { copies, ..self }
    }

    /// The id that the copy of a stream has.
    pub fn id_of_copy(stream: u64) -> String {
        format!("{stream:x}")
    }

    /// Whether the stream of an event is known.
    pub fn has(&self, id: &EventId) -> bool {
        self.buffers.lock().contains_key(&id.stream)
    }

    /// Adds a stream that another replica opened for the response to `request`, from its copy. Bytes that are not a copy are
    /// ignored.
    pub fn insert_copy(&self, stream: u64, request: &str, copy: &[u8]) {
        let total = Arc::clone(&self.bytes);
        if let Some(log) = ReplayBuffer::of_copy(stream, request, total, copy) {
            self.buffers
                .lock()
                .entry(stream)
                .or_insert_with(|| Arc::new(log));
            self.evict_until_fits();
        }
    }

    /// The replica that has opened the stream of an event.
    pub fn replica_of(id: &EventId) -> u32 {
        // An id that no replica wrote may name none.
        u32::try_from(id.stream >> REPLICA_SHIFT).unwrap_or(0)
    }

    /// Opens a stream of `client` and its reader: for the response to `request`, or for messages outside of requests.
    /// `primed`: the client understands an event without data.
    pub fn open(&self, client: ClientId, request: Option<&str>, primed: bool) -> ReplayReader {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let log = Arc::new(ReplayBuffer::new(
            number,
            client,
            request,
            Arc::clone(&self.bytes),
            self.copies.clone(),
            self.ttl,
        ));
        if primed {
            log.prime();
        }
        let connection = log.connect(None);
        self.buffers.lock().insert(number, log);
        self.evict_until_fits();
        connection
    }

    /// Adds a message to a stream.
    pub fn push(&self, log: &ReplayBuffer, message: &[u8]) {
        log.push(message);
        self.evict_until_fits();
    }

    /// Adds the last message of a stream.
    pub fn finish_response(&self, log: &ReplayBuffer, message: &[u8]) {
        log.finish_response(message);
        self.evict_until_fits();
    }

    /// Resumes a stream of `client` after the event `last`.
    pub fn resume(&self, client: ClientId, last: &EventId) -> ResumedStream {
        let EventPosition::Number(number) = last.position else {
            return ResumedStream::Ended;
        };
        let known = self.buffers.lock().get(&last.stream).cloned();
        match known.filter(|log| log.client == client) {
            Some(log) if !log.is_of_request => ResumedStream::Standalone(log.connect(Some(number))),
            Some(log) if log.continues_after(number) => {
                ResumedStream::Request(log.connect(Some(number)))
            }
            Some(_) => ResumedStream::Ended,
            None => match &last.request {
                Some(request) => ResumedStream::Expired(expired(last.stream, request)),
                None => ResumedStream::New,
            },
        }
    }

    /// Drops a stream: a client that resumes it gets an error.
    pub fn abandon(&self, log: &ReplayBuffer) {
        self.buffers.lock().remove(&log.number);
    }

    /// Drops all streams of a client.
    pub fn remove_client(&self, client: ClientId) {
        self.buffers.lock().retain(|_, log| log.client != client);
    }

    /// Drops expired streams. Returns how many are left.
    pub fn sweep(&self) -> usize {
        let mut all = self.buffers.lock();
        all.retain(|_, log| !self.is_over(log));
        all.len()
    }

    /// The number of streams that a [sweep](Self::sweep) would leave. Changes nothing.
    pub fn count(&self) -> usize {
        let all = self.buffers.lock();
        all.values().filter(|log| !self.is_over(log)).count()
    }

    fn is_over(&self, log: &ReplayBuffer) -> bool {
        let idle_since = log.idle_since();
        idle_since.is_some_and(|since| since.elapsed() > self.ttl)
    }

    fn evict_until_fits(&self) {
        if self.bytes.load(Ordering::Relaxed) <= self.capacity {
            return;
        }
        // A bit more than needed, so that not every message has to evict.
        let enough = self.capacity - self.capacity / 8;
        let has_enough = || self.bytes.load(Ordering::Relaxed) <= enough;
        self.buffers
            .lock()
            .retain(|_, log| has_enough() || log.evict_events());
    }
}

/// The event in place of a response that is no longer stored. It is the last one, so that the client does not resume
/// again.
fn expired(stream: u64, request: &str) -> bytes::Bytes {
    let why = "the response is no longer stored, at least not by this gateway; the request may have been executed";
    let message = RpcError::internal(why).to_bytes(Some(request));
    let end = EventId {
        stream,
        position: EventPosition::End,
        request: Some(request.to_owned()),
    };
    event_with_id(&end.to_text(), &message)
}

#[cfg(test)]
mod tests {
    use mcp_vary_base::copies::CopyPlace;

    use super::*;

    fn streams(room: usize) -> ReplayStreams {
        ReplayStreams::new(room, Duration::from_secs(120), 0)
    }

    fn at(log: &ReplayBuffer, number: u64) -> EventId {
        EventId {
            stream: log.number,
            position: EventPosition::Number(number),
            request: Some("9".to_owned()),
        }
    }

    #[track_caller]
    fn is_lost(streams: &ReplayStreams, client: ClientId, last: &EventId) {
        let resumed = streams.resume(client, last);
        assert!(matches!(resumed, ResumedStream::Expired(_)), "{resumed:?}");
    }

    #[test]
    fn all_streams_together_have_room_and_no_more() {
        let streams = streams(64 << 10);
        let message = vec![b' '; 4 << 10];
        let logs: Vec<_> = (0..99)
            .map(|_| {
                let call = streams.open(7, Some("9"), false);
                streams.push(call.log(), &message);
                assert!(streams.bytes.load(Ordering::Relaxed) <= (64 << 10) + (5 << 10));
                Arc::clone(call.log())
            })
            .collect();
        is_lost(&streams, 7, &at(&logs[0], 0));
        let resumed = streams.resume(7, &at(&logs[98], 0));
        assert!(matches!(resumed, ResumedStream::Request(_)), "{resumed:?}");
        drop((resumed, logs));
        streams.remove_client(7);
        assert_eq!(streams.bytes.load(Ordering::Relaxed), 0);
    }

    /// A stream that is being read is never dropped, whatever its size.
    #[test]
    fn a_stream_with_a_reader_is_not_dropped() {
        let streams = streams(0);
        let read = streams.open(7, None, true);
        streams.push(read.log(), b"{}");
        let cx = std::task::Context::from_waker(std::task::Waker::noop());
        for _ in 0..2 {
            let event = read.poll_event(&cx);
            assert!(matches!(event, std::task::Poll::Ready(Some(_))));
        }
        let resumed = streams.resume(7, &at(read.log(), 0));
        assert!(
            matches!(resumed, ResumedStream::Standalone(_)),
            "{resumed:?}"
        );
    }

    #[test]
    fn a_stream_is_its_clients_alone() {
        let streams = streams(1 << 20);
        let call = streams.open(7, Some("9"), true);
        is_lost(&streams, 8, &at(call.log(), 0));
        let standalone = streams.open(7, None, true);
        let elsewhere = EventId {
            request: None,
            ..at(standalone.log(), 0)
        };
        assert!(matches!(streams.resume(8, &elsewhere), ResumedStream::New));
        let resumed = streams.resume(7, &elsewhere);
        assert!(matches!(resumed, ResumedStream::Standalone(_)));
    }

    type CopiedStream = (String, Vec<u8>);

    /// Takes everything.
    #[derive(Clone, Default)]
    struct CopiedStreams(Arc<Lock<Vec<CopiedStream>>>);

    impl CopyPlace for CopiedStreams {
        fn wants(&self, _bytes: usize) -> bool {
            true
        }

        fn put(&self, id: &str, value: Vec<u8>, _lifetime: Duration) {
            self.0.lock().push((id.to_owned(), value));
        }
    }

    /// Streams, and the copies of those that end without their clients.
    fn copying() -> (ReplayStreams, CopiedStreams) {
        let copied = CopiedStreams::default();
        let copies = Copies::to(copied.clone());
        (streams(1 << 20).with_copies(copies), copied)
    }

    fn read(reader: &ReplayReader) -> String {
        let cx = std::task::Context::from_waker(std::task::Waker::noop());
        let events = std::iter::from_fn(|| match reader.poll_event(&cx) {
            std::task::Poll::Ready(event) => event,
            std::task::Poll::Pending => panic!("the stream has not ended"),
        });
        let texts = events.map(|event| String::from_utf8(event.to_vec()).unwrap());
        texts.collect()
    }

    #[test]
    fn a_stream_that_ends_without_its_client_continues_at_another_replica() {
        let (streams, copied) = copying();
        let call = streams.open(7, Some("9"), true);
        let log = Arc::clone(call.log());
        streams.push(&log, br#"{"n":1}"#);
        drop(call);
        assert!(copied.0.lock().is_empty(), "it may continue here");
        streams.push(&log, br#"{"n":2}"#);
        streams.finish_response(&log, br#"{"n":3}"#);
        let (id, copy) = copied.0.lock().pop().unwrap();
        assert_eq!(id, ReplayStreams::id_of_copy(log.number));
        let other = self::streams(1 << 20);
        let last = at(&log, 1);
        for cut in 0..copy.len() {
            // What is cut between two events is a shorter stream.
            other.insert_copy(log.number, "9", &copy[..cut]);
            other.remove_client(7);
        }
        assert_eq!(other.bytes.load(Ordering::Relaxed), 0);
        other.insert_copy(log.number, "9", &copy);
        assert!(
            other.has(&last)
                && !other.has(&EventId {
                    stream: 99,
                    ..last.clone()
                })
        );
        is_lost(&other, 8, &last);
        let resumed = other.resume(7, &last);
        let ResumedStream::Request(reader) = resumed else {
            panic!("{resumed:?}");
        };
        let expected = streams.resume(7, &last);
        let ResumedStream::Request(expected) = expected else {
            panic!("{expected:?}");
        };
        let events = read(&reader);
        assert_eq!(events, read(&expected));
        assert!(
            events.contains("{\"n\":2}") && events.contains("-end-"),
            "{events}"
        );
        assert!(!events.contains("{\"n\":1}"), "the client has it: {events}");
    }

    #[test]
    fn a_stream_that_its_client_has_read_is_not_copied() {
        let (streams, copied) = copying();
        let call = streams.open(7, Some("9"), true);
        streams.finish_response(call.log(), b"{}");
        assert!(read(&call).contains("-end-"));
        drop(call);
        let listening = streams.open(7, None, true);
        streams.push(listening.log(), b"{}");
        drop(listening);
        assert!(copied.0.lock().is_empty(), "nor is the stream of a `GET`");
        let unread = streams.open(7, Some("9"), true);
        streams.finish_response(unread.log(), b"{}");
        let unread_log = Arc::clone(unread.log());
        drop(unread);
        assert_eq!(copied.0.lock().len(), 1);
        for _ in 0..3 {
            drop(streams.resume(7, &at(&unread_log, 0)));
        }
        assert_eq!(copied.0.lock().len(), 1, "it is copied once");
    }

    /// The client of the first replica was slow: it has got none of these.
    #[test]
    fn a_copy_has_all_events_however_long_they_are() {
        let (streams, copied) = copying();
        let call = streams.open(7, Some("9"), true);
        let message = vec![b' '; 80 << 10];
        for _ in 0..3 {
            streams.push(call.log(), &message);
        }
        streams.finish_response(call.log(), &vec![b' '; 300 << 10]);
        let (number, last) = (call.log().number, at(call.log(), 0));
        drop(call);
        let (_, copy) = copied.0.lock().pop().unwrap();
        let other = self::streams(1 << 20);
        other.insert_copy(number, "9", &copy);
        let ResumedStream::Request(reader) = other.resume(7, &last) else {
            panic!("it is known");
        };
        assert!(read(&reader).len() > 540 << 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_no_client_resumes_is_dropped_after_a_while() {
        let streams = streams(1 << 20);
        let (standalone, running, ended) = (
            streams.open(7, None, true),
            streams.open(7, Some("9"), true),
            streams.open(7, Some("9"), true),
        );
        let listening = streams.open(7, None, true);
        ended.log().finish_response(b"{}");
        drop((standalone, running, ended));
        assert_eq!(streams.sweep(), 4);
        tokio::time::advance(Duration::from_secs(121)).await;
        let found = (streams.count(), streams.buffers.lock().len());
        assert_eq!(found, (2, 4), "counting changes nothing");
        assert_eq!(streams.sweep(), 2, "a stream with a reader or a pump stays");
        drop(listening);
        tokio::time::advance(Duration::from_secs(121)).await;
        assert_eq!(streams.sweep(), 1);
        streams.remove_client(7);
        assert_eq!(streams.bytes.load(Ordering::Relaxed), 0);
    }
}
