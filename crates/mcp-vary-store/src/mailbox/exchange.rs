//! A request and its response, at the replica that asks or at the owner.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use mcp_vary_base::lock::ScopedLock;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;

use super::frame::{Frame, Kind};
use super::message::{RequestHead, cut_head, encode_response};
use super::shares::Share;
use super::{CHUNK, ForwardError, Mailbox, Queued, WINDOW};

/// What identifies an exchange at one of its ends.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct ExchangeKey {
    /// The other replica.
    pub(super) peer: u32,
    /// Whether this replica is the owner.
    pub(super) is_owner: bool,
    /// The number that the replica that asks has given to it.
    pub(super) number: u64,
}

/// One end of an exchange.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) key: ExchangeKey,
    pub(super) began: Instant,
    /// Known once its request is.
    share: OnceLock<Share>,
    /// Where its frames go; `None` when it has failed.
    frames: ScopedLock<Option<mpsc::Sender<Frame>>>,
    /// The place of the next frame that arrives.
    expected: ScopedLock<u32>,
    /// The place of the next frame that is sent.
    sent: ScopedLock<u32>,
    /// How much may be sent.
    window: Semaphore,
    failure: watch::Sender<Option<ForwardError>>,
    /// Whether the owner may have the request.
    is_sent: AtomicBool,
    /// Whether this end, the owner, handles the request.
    is_accepted: AtomicBool,
}

impl Exchange {
    pub(super) fn new(key: ExchangeKey) -> (Arc<Self>, mpsc::Receiver<Frame>) {
        let (frames, receiver) = mpsc::channel(MAX_FRAMES);
        let exchange = Self {
            key,
            began: Instant::now(),
            share: OnceLock::new(),
            frames: ScopedLock::new(Some(frames)),
            expected: ScopedLock::new(0),
            sent: ScopedLock::new(0),
            window: Semaphore::new(WINDOW),
            failure: watch::Sender::new(None),
            is_sent: AtomicBool::new(key.is_owner),
            is_accepted: AtomicBool::new(false),
        };
        (Arc::new(exchange), receiver)
    }

    pub(super) fn share(&self) -> Option<Share> {
        self.share.get().copied()
    }

    pub(super) fn take_share(&self, share: Share) {
        self.share.get_or_init(|| share);
    }

    /// Ends it, unless it has ended.
    pub(super) fn fail(&self, why: ForwardError) {
        self.failure.send_if_modified(|failure| {
            let is_first = failure.is_none();
            failure.get_or_insert(why);
            is_first
        });
        self.window.close();
        *self.frames.lock() = None;
    }

    /// The owner gets the request.
    pub(super) fn note_sent(&self) {
        self.is_sent.store(true, Ordering::Release);
    }

    /// Whether the owner may have the request.
    pub(super) fn is_sent(&self) -> bool {
        self.is_sent.load(Ordering::Acquire)
    }

    /// Whether the other end waits for a sign that this one, the owner, handles the request.
    pub(super) fn owes_ack(&self) -> bool {
        self.is_accepted.load(Ordering::Acquire) && *self.sent.lock() == 0
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    /// Whether the other end has sent anything.
    pub(super) fn was_heard(&self) -> bool {
        *self.expected.lock() > 0
    }

    pub(super) fn failure(&self) -> ForwardError {
        self.failure.borrow().unwrap_or(ForwardError::Unanswered)
    }

    /// Takes a frame that has arrived. Returns `false` if the sender has broken a rule.
    pub(super) fn receive(&self, frame: Frame) -> bool {
        let mut expected = self.expected.lock();
        if frame.sequence != *expected {
            return false;
        }
        *expected = expected.wrapping_add(1);
        match frame.kind {
            Kind::Credit => {
                let granted = frame
                    .payload
                    .first_chunk()
                    .map(|bytes| u32::from_be_bytes(*bytes));
                let credit = granted.map_or(WINDOW + 1, |credit| credit as usize);
                if credit > WINDOW || credit + self.window.available_permits() > WINDOW {
                    return false;
                }
                self.window.add_permits(credit);
                true
            }
            Kind::Cancel => {
                // An owner that has not acknowledged the request has not handled it.
                let is_refused = !self.key.is_owner && frame.sequence == 0;
                self.fail(if is_refused {
                    ForwardError::NotSent
                } else {
                    ForwardError::Unanswered
                });
                true
            }
            // The window bounds what waits here. A sender that fills the queue has sent more than its window.
            _ => match &*self.frames.lock() {
                Some(frames) => !matches!(frames.try_send(frame), Err(TrySendError::Full(_))),
                None => true,
            },
        }
    }

    /// Sends a frame of this end, as the next one.
    pub(super) fn send(
        &self,
        permit: mpsc::Permit<'_, Queued>,
        kind: Kind,
        payload: Bytes,
        is_last: bool,
    ) {
        // Until it is queued: frames of one exchange are sent in the order of their places.
        let mut sent = self.sent.lock();
        let sequence = *sent;
        *sent = sent.wrapping_add(1);
        let frame = Frame {
            kind,
            is_of_owner: self.key.is_owner,
            is_last,
            exchange: self.key.number,
            sequence,
            payload,
        };
        permit.send(Queued {
            to: self.key.peer,
            frame,
        });
    }

    /// Waits until as much may be sent.
    async fn wait_for_window(&self, cost: usize) -> Result<(), ForwardError> {
        let cost = u32::try_from(cost).unwrap_or(u32::MAX);
        let permit = self.window.acquire_many(cost).await;
        permit.map_err(|_| self.failure())?.forget();
        Ok(())
    }
}

/// The most frames that wait at the reader: no window is larger.
const MAX_FRAMES: usize = WINDOW / 64 + 8;

/// The sending half of one end. Dropping it before its last frame cancels the exchange.
pub(crate) struct Sending {
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) exchange: Arc<Exchange>,
    pub(super) is_complete: bool,
}

impl Sending {
    /// Sends bytes in frames, the first of this kind.
    pub(crate) async fn send(
        &mut self,
        first: Kind,
        mut bytes: Bytes,
        is_last: bool,
    ) -> Result<(), ForwardError> {
        let mut kind = first;
        loop {
            let chunk = bytes.split_to(bytes.len().min(CHUNK));
            let ends = bytes.is_empty() && is_last;
            let exchange = &self.exchange;
            let cost = Frame::to_peer(kind).cost() + chunk.len();
            exchange.wait_for_window(cost).await?;
            self.mailbox.enqueue(exchange, kind, chunk, ends).await?;
            self.is_complete |= ends;
            kind = Kind::Data;
            if bytes.is_empty() {
                return Ok(());
            }
        }
    }
}

/// The bytes of a request or of a response, as they arrive. Dropping those of a response before their end cancels the
/// exchange.
pub struct ReplicaBody {
    mailbox: Arc<Mailbox>,
    exchange: Arc<Exchange>,
    frames: mpsc::Receiver<Frame>,
    /// What has arrived with the head.
    pub(super) first: Bytes,
    /// What was read and not credited yet.
    owed: usize,
    is_last: bool,
}

impl ReplicaBody {
    pub(super) const fn new(
        mailbox: Arc<Mailbox>,
        exchange: Arc<Exchange>,
        frames: mpsc::Receiver<Frame>,
    ) -> Self {
        Self {
            mailbox,
            exchange,
            frames,
            first: Bytes::new(),
            owed: 0,
            is_last: false,
        }
    }

    /// The whole body, if it has arrived.
    pub fn take_whole(&mut self) -> Option<Bytes> {
        self.is_last.then(|| std::mem::take(&mut self.first))
    }

    /// The next bytes; `None` at the end.
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ForwardError>>> {
        if !self.first.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.first))));
        }
        while !self.is_last {
            match ready!(self.poll_frame(cx)) {
                Ok(frame) if frame.payload.is_empty() => {}
                Ok(frame) => return Poll::Ready(Some(Ok(frame.payload))),
                Err(failure) => return Poll::Ready(Some(Err(failure))),
            }
        }
        Poll::Ready(None)
    }

    /// The next frame, which counts as read.
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame, ForwardError>> {
        let Some(frame) = ready!(self.frames.poll_recv(cx)) else {
            return Poll::Ready(Err(self.exchange.failure()));
        };
        self.is_last = frame.is_last;
        if frame.kind != Kind::Ack {
            self.owed += frame.cost();
        }
        if self.owed >= WINDOW / 4 && !self.is_last {
            let owed = u32::try_from(self.owed).unwrap_or(u32::MAX);
            let credit = Bytes::copy_from_slice(&owed.to_be_bytes());
            self.owed = 0;
            self.mailbox
                .try_enqueue(&self.exchange, Kind::Credit, credit);
        }
        Poll::Ready(Ok(frame))
    }

    pub(crate) async fn next_frame(&mut self) -> Result<Frame, ForwardError> {
        std::future::poll_fn(|cx| self.poll_frame(cx)).await
    }

    /// The head, as it was encoded, which begins with `first`.
    pub(crate) async fn read_head(&mut self, first: Frame) -> Result<Bytes, ForwardError> {
        let mut arrived = BytesMut::from(first.payload);
        loop {
            let head = cut_head(&mut arrived).map_err(|_| ForwardError::Unanswered)?;
            if let Some(head) = head {
                self.first = arrived.freeze();
                return Ok(head);
            }
            if self.is_last {
                return Err(ForwardError::Unanswered);
            }
            arrived.extend_from_slice(&self.next_frame().await?.payload);
        }
    }
}

mcp_vary_base::debug_by_name!(ReplicaBody);

/// At the replica that asks, the exchange ends with the response.
impl Drop for ReplicaBody {
    fn drop(&mut self) {
        if !self.exchange.key.is_owner {
            self.mailbox.close(&self.exchange, self.is_last);
        }
    }
}

/// A request of another replica. It was neither read nor checked. Dropping it refuses it: then the other replica knows that
/// it was not handled.
pub struct ReplicaCall {
    pub(super) sending: Sending,
    pub(super) body: ReplicaBody,
}

impl ReplicaCall {
    /// Accepts the request, and reads its head: the request, its body, and what answers it.
    ///
    /// # Errors
    ///
    /// If it cannot be read, the other replica has given up, or its client has too many requests here.
    pub async fn open(self) -> Result<(RequestHead, ReplicaBody, Responder), ForwardError> {
        let Self { sending, mut body } = self;
        sending.exchange.is_accepted.store(true, Ordering::Release);
        let first = body.next_frame().await?;
        let text = body.read_head(first).await?;
        let head = RequestHead::decode(&text).ok_or(ForwardError::Unanswered)?;
        if !sending.mailbox.admit_share(&sending.exchange, head.share()) {
            sending.exchange.is_accepted.store(false, Ordering::Release);
            return Err(ForwardError::Full);
        }
        Ok((head, body, Responder { sending }))
    }
}

mcp_vary_base::debug_by_name!(ReplicaCall);

/// Sends the response to a request of another replica. Dropping it before its last bytes cancels the response.
pub struct Responder {
    sending: Sending,
}

impl Responder {
    /// Sends the head, and the first bytes of the body.
    ///
    /// # Errors
    ///
    /// If nobody waits for the response any more.
    pub async fn begin(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        first: &[u8],
        is_last: bool,
    ) -> Result<(), ForwardError> {
        let mut bytes = encode_response(status, headers);
        bytes.extend_from_slice(first);
        self.sending.send(Kind::Data, bytes.freeze(), is_last).await
    }

    /// Sends more bytes of the body.
    ///
    /// # Errors
    ///
    /// If nobody waits for the response any more.
    pub async fn send(&mut self, bytes: Bytes, is_last: bool) -> Result<(), ForwardError> {
        self.sending.send(Kind::Data, bytes, is_last).await
    }

    /// Waits until nobody waits for the response any more.
    pub fn abandoned(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut failure = self.sending.exchange.failure.subscribe();
        async move {
            // An error would mean that the exchange is gone.
            let _ = failure.wait_for(Option::is_some).await;
        }
    }
}

mcp_vary_base::debug_by_name!(Responder);

/// At the owner, the exchange ends with what is sent.
impl Drop for Sending {
    fn drop(&mut self) {
        if self.exchange.key.is_owner {
            self.mailbox.close(&self.exchange, self.is_complete);
        }
    }
}
