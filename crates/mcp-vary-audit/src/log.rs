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
use crate::record::{Arguments, Record};
use crate::sink::Sink;
use crate::text::{MAX_LONG_TEXT, cut};
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
pub struct AuditLog(Arc<SharedLog>);

/// What all clones of a log share. The writer ends when it is dropped, since nobody can record any more.
#[derive(Debug)]
struct SharedLog {
    queue: Arc<Queue>,
    sender: SyncSender<Message>,
    thread: JoinHandle<()>,
    now: fn() -> u64,
    on_full: OnFull,
    arguments: ArgumentsDetail,
}

impl Drop for SharedLog {
    fn drop(&mut self) {
        self.queue.is_closing.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
    }
}

/// There was no room for a record, and the configuration says that the request must be refused then.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the request cannot be recorded in the audit log at the moment")]
pub struct QueueFull;

/// Room for one record. Dropped without a record, it gives the room back.
#[derive(Debug)]
pub struct Permit {
    log: AuditLog,
    has_slot: bool,
}

/// What an audit log did since its start.
#[derive(Clone, Debug, Eq, PartialEq)]
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
    /// Why the sink does not work at the moment; `None` if it does.
    pub error: Option<String>,
}

impl AuditLog {
    /// Starts the thread that writes to `sink`.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(config: &AuditConfig, sink: Box<dyn Sink>) -> io::Result<Self> {
        let capacity = config.capacity.max(1);
        let queue = Arc::new(Queue::new(
            capacity,
            config.arguments_capacity,
            config.write_timeout,
        ));
        // One more than there are slots, for a message that only wakes the writer.
        let (sender, receiver) = sync_channel(capacity.saturating_add(1));
        let encoder = Encoder::new(config, sink.max_line());
        let now = config.now;
        let on_full = config.on_full;
        let writer = Writer::new(Arc::clone(&queue), receiver, encoder, sink, now, on_full);
        let builder = thread::Builder::new().name("audit".into());
        let thread = builder.spawn(move || writer.run())?;
        Ok(Self(Arc::new(SharedLog {
            queue,
            sender,
            thread,
            now,
            on_full,
            arguments: config.arguments,
        })))
    }

    /// Reserves room for a record, before a request does what must be recorded.
    ///
    /// With [`OnFull::Wait`], it blocks the thread until there is room; asynchronous code calls it where it may block.
    ///
    /// # Errors
    ///
    /// [`QueueFull`] if the queue is full or the sink does not work; the caller must refuse the request. Never with
    /// [`OnFull::Drop`].
    pub fn reserve(&self) -> Result<Permit, QueueFull> {
        let log = &*self.0;
        if let Some(permit) = self.try_reserve() {
            return Ok(permit);
        }
        let has_slot = match log.on_full {
            OnFull::Wait(limit) => {
                log.thread.thread().unpark();
                log.queue.acquire_within(limit)
            }
            OnFull::Drop | OnFull::Refuse => false,
        };
        if has_slot {
            Ok(self.permit(true))
        } else {
            Err(self.refuse())
        }
    }

    /// Reserves room for a record if there is some now and the sink works. It never blocks, and counts nothing: for asynchronous code, which
    /// waits itself and reports with [`refuse`](Self::refuse) that it refuses a request.
    ///
    /// With [`OnFull::Drop`] there is always a permit; its record may be lost.
    #[must_use]
    pub fn try_reserve(&self) -> Option<Permit> {
        let log = &*self.0;
        match log.on_full {
            OnFull::Drop => Some(self.permit(log.queue.try_acquire())),
            OnFull::Wait(_) | OnFull::Refuse => {
                let is_writable = log.queue.try_acquire_writable();
                is_writable.then(|| self.permit(true))
            }
        }
    }

    /// Counts a request that is refused because it cannot be recorded.
    #[must_use = "it is the error of the request"]
    pub fn refuse(&self) -> QueueFull {
        self.0.queue.add_refused();
        QueueFull
    }

    /// What happens when the queue is full.
    pub fn on_full(&self) -> OnFull {
        self.0.on_full
    }

    /// The beginning of the arguments of a call, of at most [`MAX_LONG_TEXT`] bytes; `None` unless the log shows their text.
    pub fn excerpt(&self, arguments: &Arguments) -> Option<String> {
        let ArgumentsDetail::Full { limit } = self.0.arguments else {
            return None;
        };
        let text = String::from_utf8_lossy(arguments.json.as_ref()?);
        Some(cut(&text, limit.min(MAX_LONG_TEXT)).into_owned())
    }

    fn permit(&self, has_slot: bool) -> Permit {
        Permit {
            log: self.clone(),
            has_slot,
        }
    }

    /// Records something that happened in any case, such as a refused credential. It never blocks; without room the
    /// record is lost and counted, whatever [`OnFull`] says.
    pub fn submit_or_lose(&self, record: Record) {
        self.permit(self.0.queue.try_acquire()).submit(record);
    }

    /// Records something that needs no room in advance: a refusal, a selection, a reload.
    ///
    /// With [`OnFull::Wait`], it may block the thread, as [`AuditLog::reserve`] does.
    ///
    /// # Errors
    ///
    /// [`QueueFull`] if the queue is full or the sink does not work; the record is not written, and the caller must refuse
    /// the request. Never with [`OnFull::Drop`]: the record is lost and counted.
    pub fn submit(&self, record: Record) -> Result<(), QueueFull> {
        self.reserve()?.submit(record);
        Ok(())
    }

    /// Opens the sink again, after its file was rotated. It happens soon, on the log's own thread.
    pub fn reopen(&self) {
        self.0.queue.needs_reopen.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Writes what waits, and ends the log. Returns whether that was done within `limit`.
    ///
    /// What is recorded from now on is lost. Without a call of `close`, records that still wait are lost when the process
    /// ends.
    pub fn close(&self, limit: Duration) -> bool {
        self.0.queue.is_closing.store(true, Ordering::SeqCst);
        self.wake();
        let deadline = Instant::now() + limit;
        while !self.0.thread.is_finished() {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// What the log did so far.
    pub fn stats(&self) -> AuditStats {
        let totals = &self.0.queue.totals;
        AuditStats {
            written: totals.written.load(Ordering::Relaxed),
            lost: totals.lost.load(Ordering::Relaxed),
            refused: totals.refused.load(Ordering::Relaxed),
            failures: totals.failures.load(Ordering::Relaxed),
            queued: self.0.queue.used(),
            error: self.0.queue.sink.error(),
        }
    }

    fn wake(&self) {
        // A full queue wakes the writer as well.
        let _ = self.0.sender.try_send(Message::Wake);
        self.0.thread.thread().unpark();
    }

    /// Sends a record for which there is a slot.
    fn send(&self, mut record: Record) {
        if let Some(arguments) = &mut record.arguments {
            let is_read = self.0.arguments != ArgumentsDetail::Off;
            let fits = is_read && self.0.queue.arguments.try_acquire(arguments.length);
            if !fits {
                arguments.json = None;
            }
        }
        let time = (self.0.now)();
        let message = Message::Record(Box::new(TimedRecord { time, record }));
        if self.0.sender.try_send(message).is_err() {
            // The writer has ended.
            self.0.queue.release();
            self.0.queue.add_lost(1);
        }
    }
}

impl Permit {
    /// Records what happened. Never blocks.
    pub fn submit(mut self, record: Record) {
        // Room may have become free in the meantime.
        if !self.has_slot && !self.log.0.queue.try_acquire() {
            self.log.0.queue.add_lost(1);
            return;
        }
        // The writer frees the slot.
        self.has_slot = false;
        self.log.send(record);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.has_slot {
            self.log.0.queue.release();
        }
    }
}
