//! Messages to a client outside of responses: a queue, and the streams that drain it.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

/// The queued messages of one session, and its open streams.
///
/// # Properties
///
/// Each message is sent on exactly one stream, in order.
///
/// > The server MUST send each of its JSON-RPC messages on only one of the connected streams; that is, it
/// > MUST NOT broadcast the same message across multiple streams. (MCP 2025-11-25, basic/transports,
/// > "Multiple Connections")
///
/// The newest stream is used: older ones may belong to dead connections.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Newest last.
    open: Vec<StreamSlot>,
    next: u64,
    waiting: VecDeque<QueuedMessage>,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct StreamSlot {
    number: u64,
    waker: Option<Waker>,
    /// Its client read too slowly, or its session has ended or expired.
    closed: bool,
}

impl StreamSlot {
    fn close(&mut self) {
        self.closed = true;
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

#[derive(Debug)]
struct QueuedMessage {
    since: Instant,
    message: Bytes,
}

/// Messages and bytes that may be queued while a stream is open. Beyond that, the client reads too slowly.
const OPEN_STREAM_LIMITS: (usize, usize) = (256, 1 << 20);
/// The same while no stream is open; many clients never open one.
const NO_STREAM_LIMITS: (usize, usize) = (16, 64 << 10);
/// Messages that waited longer are dropped.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(60);

impl Outbox {
    /// Whether the session does not need it.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.waiting.is_empty()
    }

    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    pub(super) fn add_reader(&mut self) -> u64 {
        self.next += 1;
        self.open.push(StreamSlot {
            number: self.next,
            waker: None,
            closed: false,
        });
        self.next
    }

    pub(super) fn remove_reader(&mut self, number: u64) {
        self.open.retain(|reader| reader.number != number);
        if !self.waiting.is_empty() {
            self.wake_newest();
        }
    }

    fn wake_newest(&mut self) {
        if let Some(waker) = self.newest().and_then(|reader| reader.waker.take()) {
            waker.wake();
        }
    }

    /// The stream for the next message.
    pub(super) fn newest(&mut self) -> Option<&mut StreamSlot> {
        self.open.iter_mut().rev().find(|reader| !reader.closed)
    }

    /// Closes all streams.
    pub(super) fn close_all(&mut self) {
        for reader in &mut self.open {
            reader.close();
        }
    }

    /// Queues a message. Returns `false` if there is no room; a stream that was not read is closed.
    pub(super) fn push(&mut self, message: Bytes) -> bool {
        self.forget_old();
        let listens = self.newest().is_some();
        let (messages, bytes) = if listens {
            OPEN_STREAM_LIMITS
        } else {
            NO_STREAM_LIMITS
        };
        if self.waiting.len() >= messages || self.bytes + message.len() > bytes {
            if let Some(slow) = self.newest() {
                slow.close();
            }
            return false;
        }
        self.bytes += message.len();
        self.waiting.push_back(QueuedMessage {
            since: Instant::now(),
            message,
        });
        self.wake_newest();
        true
    }

    fn pop(&mut self) -> Option<Bytes> {
        let message = self.waiting.pop_front()?.message;
        self.bytes -= message.len();
        Some(message)
    }

    /// Drops messages that have waited too long.
    pub(super) fn forget_old(&mut self) {
        let is_old = |waiting: &QueuedMessage| waiting.since.elapsed() > QUEUE_TIMEOUT;
        while self.waiting.front().is_some_and(is_old) {
            self.pop();
        }
    }

    pub(super) fn poll(&mut self, number: u64, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        let newest = self.newest().map(|reader| reader.number);
        if newest == Some(number)
            && let Some(message) = self.pop()
        {
            return Poll::Ready(Some(message));
        }
        let Some(reader) = self.open.iter_mut().find(|reader| reader.number == number) else {
            return Poll::Ready(None);
        };
        if reader.closed {
            return Poll::Ready(None);
        }
        reader.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::legacy_session::tests::unnamed;
    use crate::{OutboxStream, Session};

    fn received(stream: &OutboxStream) -> Option<String> {
        let polled = stream.poll_next(&Context::from_waker(Waker::noop()));
        match polled {
            Poll::Ready(Some(message)) => Some(String::from_utf8(message.to_vec()).unwrap()),
            Poll::Ready(None) => Some("closed".to_owned()),
            Poll::Pending => None,
        }
    }

    #[track_caller]
    fn receives(stream: &OutboxStream, expected: &[&str]) {
        for expected in expected {
            assert_eq!(received(stream).as_deref(), Some(*expected));
        }
        assert_eq!(received(stream), None);
    }

    fn tell_all(session: &Session, messages: &[&'static str]) -> bool {
        let mut messages = messages.iter();
        messages.all(|message| session.enqueue(Bytes::from_static(message.as_bytes())))
    }

    #[tokio::test]
    async fn what_is_told_leaves_by_the_newest_stream_alone_and_in_order() {
        let session = unnamed();
        let [older, newer] = [(); 2].map(|()| session.open_stream(9).unwrap());
        assert!(tell_all(&session, &["a", "b"]));
        receives(&older, &[]);
        receives(&newer, &["a", "b"]);
        assert!(tell_all(&session, &["c"]));
        drop(newer);
        receives(&older, &["c"]);
    }

    #[tokio::test]
    async fn who_waits_is_woken_by_what_is_told_and_by_the_end() {
        let session = unnamed();
        let stream = session.open_stream(9).unwrap();
        let telling = async { session.enqueue(Bytes::from_static(b"a")) };
        let (received, told) = tokio::join!(stream.next(), telling);
        assert_eq!((received.as_deref(), told), (Some(&b"a"[..]), true));
        let ((), received) = tokio::join!(async { session.end() }, stream.next());
        assert_eq!(received, None);
        assert!(!tell_all(&session, &["b"]) && !session.has_stream());
    }

    #[tokio::test(start_paused = true)]
    async fn what_finds_no_stream_waits_a_while_for_one() {
        let session = unnamed();
        assert!(tell_all(&session, &["a"]) && !session.has_stream());
        tokio::time::advance(QUEUE_TIMEOUT / 2).await;
        assert!(tell_all(&session, &["b"]));
        tokio::time::advance(QUEUE_TIMEOUT / 2 + Duration::from_secs(1)).await;
        receives(&session.open_stream(9).unwrap(), &["b"]);
        assert!(session.active.lock().outbox.is_none());
    }

    #[tokio::test]
    async fn where_nobody_listens_little_is_kept() {
        let session = unnamed();
        let told = (0..99).filter(|_| tell_all(&session, &["a"])).count();
        assert_eq!(told, NO_STREAM_LIMITS.0);
        let session = unnamed();
        assert!(!session.enqueue(Bytes::from(vec![b'a'; NO_STREAM_LIMITS.1 + 1])));
        assert!(session.active.lock().outbox.is_none());
    }

    #[tokio::test]
    async fn who_does_not_read_is_closed_and_may_come_back() {
        let session = unnamed();
        let stream = session.open_stream(9).unwrap();
        let told = (0..999).filter(|_| tell_all(&session, &["a"])).count();
        assert_eq!(told, OPEN_STREAM_LIMITS.0);
        assert_eq!(received(&stream).as_deref(), Some("closed"));
        assert!(!session.has_stream());
        drop(stream);
        receives(
            &session.open_stream(9).unwrap(),
            &["a"; OPEN_STREAM_LIMITS.0],
        );
    }

    #[test]
    fn as_many_streams_are_open_as_there_is_room_for() {
        let session = unnamed();
        let one = session.open_stream(2);
        let two = session.open_stream(2);
        assert!(one.is_some() && two.is_some());
        assert!(session.open_stream(2).is_none());
        drop(one);
        assert!(session.open_stream(2).is_some());
    }
}
