//! The way from one replica to another: a request that only another process can answer, and its response.
//!
//! Each replica has a mailbox, which is a channel of the store. A request is cut into frames, which are sealed for one
//! reader. Its response comes back in the same way; an owner that needs longer acknowledges the request.
//!
//! # Properties
//!
//! - A request is delivered at most once: each message has a number, and a mailbox opens only messages with a number
//!   larger than the last one of their sender.
//! - No end has more than `WINDOW` bytes on their way: who reads slowly stops the sender.
//! - Replicas with a common exchange send each other signs of life. If there is none for `SILENCE`, their exchanges fail.
//!   They do so after one or two `BEAT`s if a message reached nobody: a replica that stops reads no more before it sends
//!   its last messages.

mod exchange;
mod frame;
mod message;
mod response;
mod shares;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use mcp_vary_base::lock::Lock;
use redis::RedisResult;
use redis::aio::MultiplexedConnection;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use self::exchange::{Exchange, ExchangeKey};
use self::frame::{Frame, Opened};
use crate::namespace::Namespace;

pub(crate) use self::exchange::Sending;
pub(crate) use self::frame::Kind;
pub(crate) use self::message::{MAX_HEAD, decode_response};
use self::shares::Share;

pub use self::exchange::{ReplicaBody, ReplicaCall, Responder};
pub use self::message::RequestHead;
pub use self::response::{ForwardError, ReplicaResponse};
pub use self::shares::MAX_OF_ONE;

/// A message that was opened, as its frame is written; `None` if it is not a frame. For the fuzz target, not part of the API.
#[doc(hidden)]
pub fn written_frame(message: &[u8]) -> Option<Vec<u8>> {
    let frame = Frame::decode(Bytes::copy_from_slice(message))?;
    Some(frame.encode())
}

/// The most exchanges of a replica, those that it asks for and those that it answers.
pub const MAX_EXCHANGES: usize = 1024;
/// How long a replica may give no sign of life.
pub const SILENCE: Duration = Duration::from_millis(2500);
/// Bytes of one frame.
const CHUNK: usize = 16 << 10;
/// Bytes of one exchange that were sent in one direction and not read.
const WINDOW: usize = 64 << 10;
/// The time between two signs of life.
const BEAT: Duration = Duration::from_millis(500);
/// How long a replica that was silent is not asked.
const AVOIDED: Duration = Duration::from_secs(10);
/// Frames that wait to be sent.
const MAX_QUEUED: usize = 4096;
/// Frames that are sent in one round trip.
const BATCH: usize = 64;
/// Replicas that are remembered: those that have ever sent a message to this process.
const MAX_PEERS: usize = 65_536;

/// What a replica sends to others, and awaits from them.
#[derive(Debug)]
pub(crate) struct Mailbox {
    /// This replica.
    id: u64,
    /// The messages of this process so far.
    count: AtomicU64,
    exchanges: Lock<Exchanges>,
    peers: Lock<BTreeMap<u32, Peer>>,
    queue: mpsc::Sender<Queued>,
    queued: tokio::sync::Mutex<mpsc::Receiver<Queued>>,
}

#[derive(Debug, Default)]
struct Exchanges {
    /// The number of the next one.
    next: u64,
    open: BTreeMap<ExchangeKey, Arc<Exchange>>,
    /// Replicas that did not answer, and since when.
    silent: BTreeMap<u32, Instant>,
    /// Replicas that did not get a message, and since when. What they have sent before may still arrive.
    gone: BTreeMap<u32, Instant>,
}

/// A replica that has sent messages.
#[derive(Debug)]
struct Peer {
    id: u64,
    /// The number of its last message.
    count: u64,
    last_seen: Instant,
}

/// A frame that waits to be sent.
#[derive(Debug)]
struct Queued {
    to: u32,
    frame: Frame,
}

/// The tag of a replica: the part of its number that is in ids, and by which others reach it.
pub const fn tag(replica: u64) -> u32 {
    (replica & 0xffff_ffff) as u32
}

impl Mailbox {
    pub(crate) fn new(id: u64) -> Arc<Self> {
        let (queue, queued) = mpsc::channel(MAX_QUEUED);
        Arc::new(Self {
            id,
            count: AtomicU64::new(0),
            exchanges: Lock::default(),
            peers: Lock::default(),
            queue,
            queued: tokio::sync::Mutex::new(queued),
        })
    }

    pub(crate) const fn tag(&self) -> u32 {
        tag(self.id)
    }

    /// How many exchanges are open.
    pub(crate) fn exchanges(&self) -> usize {
        self.exchanges.lock().open.len()
    }

    /// Begins an exchange with the replica `to`, unless there are too many or it was silent a moment ago.
    pub(crate) fn begin_exchange(
        self: &Arc<Self>,
        to: u32,
        share: Share,
    ) -> Result<(Sending, ReplicaBody), ForwardError> {
        let mut exchanges = self.exchanges.lock();
        let is_avoided = |since: &Instant| since.elapsed() < AVOIDED;
        if exchanges.silent.get(&to).is_some_and(is_avoided) {
            return Err(ForwardError::NotSent);
        }
        if !exchanges.have_room(share) {
            return Err(ForwardError::Full);
        }
        let key = ExchangeKey {
            peer: to,
            is_owner: false,
            number: exchanges.next,
        };
        exchanges.next += 1;
        let begun = self.insert(&mut exchanges, key).ok_or(ForwardError::Full)?;
        begun.0.exchange.take_share(share);
        Ok(begun)
    }

    /// Has an exchange, which another replica has begun, take its share, if there is room.
    fn admit_share(&self, exchange: &Exchange, share: Share) -> bool {
        let has_room = self.exchanges.lock().have_room(share);
        if has_room {
            exchange.take_share(share);
        }
        has_room
    }

    fn insert(
        self: &Arc<Self>,
        exchanges: &mut Exchanges,
        key: ExchangeKey,
    ) -> Option<(Sending, ReplicaBody)> {
        if exchanges.open.len() >= MAX_EXCHANGES || exchanges.open.contains_key(&key) {
            return None;
        }
        let (exchange, frames) = Exchange::new(key);
        exchanges.open.insert(key, Arc::clone(&exchange));
        let body = ReplicaBody::new(Arc::clone(self), Arc::clone(&exchange), frames);
        let sending = Sending {
            mailbox: Arc::clone(self),
            exchange,
            is_complete: false,
        };
        Some((sending, body))
    }

    /// Forgets an exchange. Unless it is complete, the other replica does, too.
    fn close(&self, exchange: &Arc<Exchange>, is_complete: bool) {
        let was_open = self.exchanges.lock().open.remove(&exchange.key).is_some();
        if was_open && !is_complete {
            self.acknowledge(exchange);
            self.try_enqueue(exchange, Kind::Cancel, Bytes::new());
        }
    }

    /// Sends `Ack` for a request that this replica handles, unless it has sent another frame for it.
    fn acknowledge(&self, exchange: &Exchange) {
        if exchange.owes_ack() {
            self.try_enqueue(exchange, Kind::Ack, Bytes::new());
        }
    }

    /// Sends a frame when there is room.
    async fn enqueue(
        &self,
        exchange: &Exchange,
        kind: Kind,
        payload: Bytes,
        is_last: bool,
    ) -> Result<(), ForwardError> {
        let reserved = self.queue.reserve().await;
        let permit = reserved.map_err(|_| ForwardError::Unanswered)?;
        if exchange.has_failed() {
            return Err(exchange.failure());
        }
        exchange.send(permit, kind, payload, is_last);
        Ok(())
    }

    /// Sends a frame that is not the last one. If the queue is full, the exchange fails.
    fn try_enqueue(&self, exchange: &Exchange, kind: Kind, payload: Bytes) {
        match self.queue.try_reserve() {
            Ok(permit) => exchange.send(permit, kind, payload, false),
            Err(_) => exchange.fail(ForwardError::Unanswered),
        }
    }

    fn try_enqueue_to_peer(&self, to: u32, kind: Kind) {
        // Without room there are other signs of life.
        let _ = self.queue.try_send(Queued {
            to,
            frame: Frame::to_peer(kind),
        });
    }

    /// Fails the exchanges that are selected. A request that was not sent yet has not been handled.
    fn fail(&self, why: ForwardError, select: impl Fn(&Exchange) -> bool) -> BTreeSet<u32> {
        let mut exchanges = self.exchanges.lock();
        let removed = exchanges.open.extract_if(.., |_, it| select(it));
        let failed: Vec<_> = removed.map(|(_, exchange)| exchange).collect();
        drop(exchanges);
        for exchange in &failed {
            let is_sent = exchange.is_sent();
            exchange.fail(if is_sent { why } else { ForwardError::NotSent });
        }
        failed.iter().map(|exchange| exchange.key.peer).collect()
    }

    /// The connection is gone: messages of others may be lost, so the next ones that they get say so.
    pub(crate) fn disconnect(&self) {
        let peers = self.fail(ForwardError::Unanswered, |_| true);
        if let Ok(mut queued) = self.queued.try_lock() {
            while queued.try_recv().is_ok() {}
        }
        for peer in peers {
            self.try_enqueue_to_peer(peer, Kind::Reset);
        }
    }

    /// Fails the exchanges with replicas that have been gone for a moment.
    fn fail_gone(&self) {
        let is_over = |_: &u32, since: &mut Instant| since.elapsed() >= BEAT;
        let gone: Vec<_> = {
            let mut exchanges = self.exchanges.lock();
            exchanges.gone.extract_if(.., is_over).collect()
        };
        for (peer, since) in gone {
            self.fail(ForwardError::Unanswered, |exchange| {
                exchange.key.peer == peer && exchange.began <= since
            });
        }
    }

    /// Sends a sign of life to those with a common exchange, and fails the exchanges of those that are gone or silent.
    fn beat(&self) {
        self.fail_gone();
        let open: Vec<_> = self.exchanges.lock().open.values().cloned().collect();
        for exchange in open.iter().filter(|it| it.began.elapsed() >= BEAT) {
            self.acknowledge(exchange);
        }
        let peers: BTreeSet<_> = open.iter().map(|exchange| exchange.key.peer).collect();
        for peer in peers {
            let last_seen = self.peers.lock().get(&peer).map(|known| known.last_seen);
            let is_silent = |exchange: &Exchange| {
                let since = last_seen.map_or(exchange.began, |seen| seen.max(exchange.began));
                exchange.key.peer == peer && since.elapsed() > SILENCE
            };
            if !self.fail(ForwardError::Unanswered, is_silent).is_empty() {
                self.avoid(peer);
            }
            self.try_enqueue_to_peer(peer, Kind::Ping);
        }
    }

    /// Avoids a replica of which nothing has come since. One that lives has lost a request with its connection to the store.
    pub(crate) fn avoid_if_silent(&self, peer: u32, since: Instant) {
        let last_seen = self.peers.lock().get(&peer).map(|known| known.last_seen);
        if last_seen.is_none_or(|seen| seen < since) {
            self.avoid(peer);
        }
    }

    fn avoid(&self, peer: u32) {
        let silent = &mut self.exchanges.lock().silent;
        if silent.len() >= MAX_EXCHANGES {
            silent.retain(|_, since| since.elapsed() < AVOIDED);
        }
        silent.insert(peer, Instant::now());
    }

    /// Whether a message is new, and of the only replica with its tag.
    fn admit(&self, opened: &Opened) -> bool {
        let mut peers = self.peers.lock();
        let peer = tag(opened.from);
        let count = opened.count;
        if let Some(known) = peers.get_mut(&peer) {
            if known.id != opened.from || count <= known.count {
                return false;
            }
            (known.count, known.last_seen) = (count, Instant::now());
            return true;
        }
        let is_admitted = peers.len() < MAX_PEERS;
        if is_admitted {
            let known = Peer {
                id: opened.from,
                count,
                last_seen: Instant::now(),
            };
            peers.insert(peer, known);
        }
        is_admitted
    }

    /// Takes a message that has arrived. Returns whether it was one of another replica, and new.
    pub(crate) fn receive(
        self: &Arc<Self>,
        namespace: &Namespace,
        sealed: &[u8],
        serve: &impl Fn(ReplicaCall),
    ) -> bool {
        let Some(opened) = namespace.open_frame(self.tag(), sealed) else {
            return false;
        };
        if !self.admit(&opened) {
            return false;
        }
        let peer = tag(opened.from);
        let frame = opened.frame;
        self.exchanges.lock().silent.remove(&peer);
        let key = ExchangeKey {
            peer,
            is_owner: !frame.is_of_owner,
            number: frame.exchange,
        };
        match frame.kind {
            Kind::Ping => {}
            Kind::Reset => {
                // It is the peer's first message on its new connection: what it has not acknowledged may have come later.
                let is_older = |it: &Exchange| it.key.is_owner || it.was_heard();
                self.fail(ForwardError::Unanswered, |exchange| {
                    exchange.key.peer == peer && is_older(exchange)
                });
            }
            Kind::Open => self.answer(key, frame, serve),
            _ => {
                // Frames of exchanges that this end has forgotten are ignored.
                let exchange = self.exchanges.lock().open.get(&key).cloned();
                if let Some(exchange) = exchange
                    && !exchange.receive(frame)
                {
                    exchange.fail(ForwardError::Unanswered);
                    self.close(&exchange, false);
                    return false;
                }
            }
        }
        true
    }

    /// Answers a request.
    fn answer(self: &Arc<Self>, key: ExchangeKey, frame: Frame, serve: &impl Fn(ReplicaCall)) {
        let opened = key
            .is_owner
            .then(|| self.insert(&mut self.exchanges.lock(), key));
        let Some((sending, body)) = opened.flatten() else {
            // There are too many exchanges. The replica that asks learns that its request was not handled.
            let cancel = Frame {
                is_of_owner: true,
                exchange: key.number,
                ..Frame::to_peer(Kind::Cancel)
            };
            let _ = self.queue.try_send(Queued {
                to: key.peer,
                frame: cancel,
            });
            return;
        };
        if sending.exchange.receive(frame) {
            serve(ReplicaCall { sending, body });
        }
    }

    /// Sends what waits, in its order, until the connection is of no use, or all was sent after `end`.
    pub(crate) async fn deliver(
        &self,
        namespace: &Namespace,
        mut connection: MultiplexedConnection,
        end: impl Future<Output = ()>,
    ) -> RedisResult<()> {
        let mut end = pin!(end);
        let mut has_ended = false;
        let mut queued = self.queued.lock().await;
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                _ = beat.tick() => self.beat(),
                _ = queued.recv_many(&mut batch, BATCH) => {
                    batch.retain(|queued| self.begin_sending(queued));
                    self.publish(namespace, &mut connection, &batch).await?;
                    batch.clear();
                }
                () = &mut end, if !has_ended => has_ended = true,
            }
            if has_ended && queued.is_empty() {
                return Ok(());
            }
        }
    }

    /// Whether a frame is to be sent. A request is not if its exchange has ended: it may have been handled here.
    fn begin_sending(&self, Queued { to, frame }: &Queued) -> bool {
        if frame.kind != Kind::Open {
            return true;
        }
        let key = ExchangeKey {
            peer: *to,
            is_owner: false,
            number: frame.exchange,
        };
        let exchanges = self.exchanges.lock();
        let exchange = exchanges.open.get(&key);
        exchange.inspect(|exchange| exchange.note_sent()).is_some()
    }

    async fn publish(
        &self,
        namespace: &Namespace,
        connection: &mut MultiplexedConnection,
        batch: &[Queued],
    ) -> RedisResult<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut pipe = redis::pipe();
        for Queued { to, frame } in batch {
            let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
            let sealed = namespace.seal_frame(self.id, *to, count, frame);
            pipe.cmd("PUBLISH").arg(namespace.mailbox(*to)).arg(sealed);
        }
        let receivers: Vec<u64> = pipe.query_async(connection).await?;
        let without_reader = batch.iter().zip(receivers).filter(|(_, it)| *it == 0);
        let unread: Vec<_> = without_reader.map(|(queued, _)| queued).collect();
        let is_open = |queued: &Queued| queued.frame.kind == Kind::Open;
        for Queued { to, frame } in unread.iter().filter(|queued| is_open(queued)) {
            let is_it = |it: &Exchange| {
                it.key.peer == *to && it.key.number == frame.exchange && !it.key.is_owner
            };
            self.fail(ForwardError::Ended, is_it);
        }
        let mut exchanges = self.exchanges.lock();
        for Queued { to, .. } in unread.iter().filter(|queued| !is_open(queued)) {
            exchanges.gone.entry(*to).or_insert_with(Instant::now);
        }
        Ok(())
    }
}
