//! The log as requests use it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::config::{ArgumentsDetail, AuditConfig, OnFull};
use crate::encode::{Encoder, TimedRecord};
use crate::queue::Queue;
use crate::record::Record;
use crate::sink::Sink;
use crate::writer::{Message, Writer};

/// An audit log. Clones write to the same log.
///
/// # Examples
///
/// ```
/// use mcp_vary_audit::{AuditConfig, AuditKey, AuditLog, Event, Outcome, Record, StreamSink};
/// use std::time::Duration;
///
/// let config = AuditConfig::new(|| 1_763_705_520_123_456, AuditKey::new([7; 32]), "5d0f");
/// let sink = StreamSink::new("nowhere", Box::new(std::io::sink()));
/// let log = AuditLog::start(&config, Box::new(sink))?;
/// log.submit(Record::new(Event::Request, Outcome::Allowed))?;
/// assert!(log.close(Duration::from_secs(5)));
/// // The log itself wrote two more: that it started and stopped.
/// assert_eq!(log.stats().written, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct AuditLog {
    queue: Arc<Queue>,
    sender: SyncSender<Message>,
    writer: Arc<WriterHandle>,
    now: fn() -> u64,
    on_full: OnFull,
    has_digests: bool,
}

/// The writer, which ends when nobody can record any more.
#[derive(Debug)]
struct WriterHandle {
    thread: JoinHandle<()>,
    queue: Arc<Queue>,
}

impl Drop for WriterHandle {
    fn drop(&mut self) {
        self.queue.is_closing.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
    }
}

/// There was no room for a record, and the configuration says that the request must be refused then.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the request cannot be recorded in the audit log at the moment")]
#[expect(
    clippy::exhaustive_structs,
    reason = "a client learns no more than that"
)]
pub struct QueueFull;

/// Room for one record. Dropped without a record, it gives the room back.
#[derive(Debug)]
pub struct Permit<'a> {
    log: &'a AuditLog,
    has_slot: bool,
}

/// What an audit log did since its start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct AuditStats {
    /// Records that were written, those of the log itself included.
    pub written: u64,
    /// Records that were lost.
    pub lost: u64,
    /// Requests that had to be refused.
    pub refused: u64,
    /// Failures of the sink.
    pub failures: u64,
    /// Records that wait, and reserved room.
    pub queued: usize,
}

impl AuditLog {
    /// Starts the thread that writes to `sink`.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(config: &AuditConfig, sink: Box<dyn Sink>) -> io::Result<Self> {
        let capacity = config.capacity.max(1);
        let queue = Arc::new(Queue::new(capacity, config.arguments_capacity));
        // One more than there are slots, for a message that only wakes the writer.
        let (sender, receiver) = sync_channel(capacity.saturating_add(1));
        let encoder = Encoder::new(config, sink.max_line());
        let (now, on_full) = (config.now, config.on_full);
        let writer = Writer::new(Arc::clone(&queue), receiver, encoder, sink, now, on_full);
        let thread = thread::Builder::new().name("audit".into());
        let thread = thread.spawn(move || writer.run())?;
        let writer = WriterHandle {
            thread,
            queue: Arc::clone(&queue),
        };
        Ok(Self {
            queue,
            sender,
            writer: Arc::new(writer),
            now,
            on_full,
            has_digests: config.arguments != ArgumentsDetail::Off,
        })
    }

    /// Reserves room for a record, before a request does what must be recorded.
    ///
    /// With [`OnFull::Wait`], it blocks the thread until there is room; asynchronous code calls it where it may block.
    ///
    /// # Errors
    ///
    /// [`QueueFull`] if the queue is full; the caller must refuse the request. Never with [`OnFull::Drop`].
    pub fn reserve(&self) -> Result<Permit<'_>, QueueFull> {
        let has_slot = match self.on_full {
            OnFull::Drop | OnFull::Refuse => self.queue.try_acquire(),
            OnFull::Wait(limit) => {
                self.queue.try_acquire() || {
                    self.writer.thread.thread().unpark();
                    self.queue.acquire_within(limit)
                }
            }
        };
        if !has_slot && self.on_full != OnFull::Drop {
            self.queue.add_refused();
            return Err(QueueFull);
        }
        Ok(Permit {
            log: self,
            has_slot,
        })
    }

    /// Records something that needs no room in advance: a refusal, a selection, a reload.
    ///
    /// With [`OnFull::Wait`], it may block the thread, as [`AuditLog::reserve`] does.
    ///
    /// # Errors
    ///
    /// [`QueueFull`] if the queue is full; the record is not written, and the caller must refuse the request. Never with
    /// [`OnFull::Drop`]: the record is lost and counted.
    pub fn submit(&self, record: Record) -> Result<(), QueueFull> {
        self.reserve()?.submit(record);
        Ok(())
    }

    /// Opens the sink again, after its file was rotated. It happens soon, on the log's own thread.
    pub fn reopen(&self) {
        self.queue.needs_reopen.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Writes what waits, and ends the log. Returns whether that was done within `limit`.
    ///
    /// What is recorded from now on is lost. Without a call of `close`, records that still wait are lost when the process
    /// ends.
    pub fn close(&self, limit: Duration) -> bool {
        self.queue.is_closing.store(true, Ordering::SeqCst);
        self.wake();
        let deadline = Instant::now() + limit;
        while !self.writer.thread.is_finished() {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// What the log did so far.
    #[must_use]
    pub fn stats(&self) -> AuditStats {
        let totals = &self.queue.totals;
        AuditStats {
            written: totals.written.load(Ordering::Relaxed),
            lost: totals.lost.load(Ordering::Relaxed),
            refused: totals.refused.load(Ordering::Relaxed),
            failures: totals.failures.load(Ordering::Relaxed),
            queued: self.queue.used(),
        }
    }

    fn wake(&self) {
        // A full queue wakes the writer as well.
        let _ = self.sender.try_send(Message::Wake);
        self.writer.thread.thread().unpark();
    }

    /// Sends a record for which there is a slot.
    fn send(&self, mut record: Record) {
        if let Some(arguments) = &mut record.arguments {
            let fits = self.has_digests && self.queue.try_acquire_arguments(arguments.length);
            if !fits {
                arguments.json = None;
            }
        }
        let time = (self.now)();
        let message = Message::Record(Box::new(TimedRecord { time, record }));
        if self.sender.try_send(message).is_err() {
            // The writer has ended.
            self.queue.release();
            self.queue.add_lost(1);
        }
    }
}

impl Permit<'_> {
    /// Records what happened. Never blocks.
    pub fn submit(mut self, record: Record) {
        // Room may have become free in the meantime.
        if !self.has_slot && !self.log.queue.try_acquire() {
            self.log.queue.add_lost(1);
            return;
        }
        // The writer frees the slot.
        self.has_slot = false;
        self.log.send(record);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.has_slot {
            self.log.queue.release();
        }
    }
}
