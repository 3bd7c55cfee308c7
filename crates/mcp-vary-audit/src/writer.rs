//! The thread that encodes records and writes lines.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use mcp_vary_base::io_error;
use tracing::{info, warn};

use crate::config::OnFull;
use crate::encode::{Encoder, LogEvent, Losses, TimedRecord};
use crate::line::Line;
use crate::queue::Queue;
use crate::sink::Sink;

/// What requests send to the writer.
#[derive(Debug)]
pub(crate) enum Message {
    Record(Box<TimedRecord>),
    /// Something other than a record is to be done.
    Wake,
}

/// What the writer owns.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: Arc<Queue>,
    receiver: Receiver<Message>,
    encoder: Encoder,
    sink: Box<dyn Sink>,
    now: fn() -> u64,
    on_full: OnFull,
    /// The number of the latest line that was written.
    sequence: u64,
    batch: Vec<Line>,
    /// What is lost with each line of the batch.
    stakes: Vec<Stake>,
    /// How often in succession there was nothing to write.
    idle_rounds: u32,
    /// When the last failure was logged.
    logged_at: Option<Instant>,
}

/// What is lost if a line is not written.
#[derive(Clone, Copy, Debug)]
enum Stake {
    Record,
    Report(Losses),
    Nothing,
}

/// Whether there may be more records.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Input {
    Open,
    Ended,
}

/// The largest number of lines that are written at once.
const BATCH: usize = 256;

/// Between two looks at the queue while records arrive. A thread that waits for a message would have to be woken for each
/// one, which costs the request more than everything else here.
const PAUSE: Duration = Duration::from_millis(5);

/// After so many looks in vain, the writer waits for a message.
const IDLE_ROUNDS: u32 = 20;

/// While nothing happens, losses are reported and rotations done after at most this time.
const TICK: Duration = Duration::from_secs(1);

/// Between two attempts to write what must not be lost.
const RETRY: Duration = Duration::from_millis(250);

/// Between two warnings that records cannot be written.
const QUIET: Duration = Duration::from_secs(60);

impl Writer {
    pub(crate) fn new(
        queue: Arc<Queue>,
        receiver: Receiver<Message>,
        encoder: Encoder,
        sink: Box<dyn Sink>,
        now: fn() -> u64,
        on_full: OnFull,
    ) -> Self {
        Self {
            queue,
            receiver,
            encoder,
            sink,
            now,
            on_full,
            sequence: 0,
            batch: Vec::with_capacity(BATCH),
            stakes: Vec::with_capacity(BATCH),
            idle_rounds: IDLE_ROUNDS,
            logged_at: None,
        }
    }

    /// Writes until the log is closed, or nobody can record any more.
    pub(crate) fn run(mut self) {
        self.add_event(LogEvent::Started);
        self.flush();
        loop {
            let is_closing = self.queue.is_closing.load(Ordering::SeqCst);
            let input = self.fill(is_closing);
            self.reopen();
            if let Some(losses) = self.queue.take_losses() {
                self.add_event(LogEvent::Lost(losses));
            }
            self.flush();
            if input == Input::Ended {
                break;
            }
        }
        self.queue.is_closing.store(true, Ordering::SeqCst);
        self.add_event(LogEvent::Stopped);
        self.flush();
        // What came in the meantime.
        for message in self.receiver.try_iter() {
            if let Message::Record(_) = message {
                self.queue.add_lost(1);
                self.queue.release();
            }
        }
    }

    /// Takes what waits, at most a batch. Waits for it, unless the log is closing.
    fn fill(&mut self, is_closing: bool) -> Input {
        let first = match self.receiver.try_recv() {
            Ok(message) => message,
            Err(TryRecvError::Disconnected) => return Input::Ended,
            Err(TryRecvError::Empty) if is_closing => return Input::Ended,
            Err(TryRecvError::Empty) if self.idle_rounds < IDLE_ROUNDS => {
                self.idle_rounds += 1;
                thread::park_timeout(PAUSE);
                return Input::Open;
            }
            Err(TryRecvError::Empty) => match self.receiver.recv_timeout(TICK) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => return Input::Open,
                Err(RecvTimeoutError::Disconnected) => return Input::Ended,
            },
        };
        self.idle_rounds = 0;
        self.accept(first);
        while self.batch.len() < BATCH {
            let Ok(message) = self.receiver.try_recv() else {
                break;
            };
            self.accept(message);
        }
        Input::Open
    }

    fn accept(&mut self, message: Message) {
        let Message::Record(timed) = message else {
            return;
        };
        self.sequence += 1;
        let line = self.encoder.record(self.sequence, &timed);
        self.batch.push(line);
        self.stakes.push(Stake::Record);
        let arguments = timed.record.arguments.as_ref();
        if let Some(arguments) = arguments.filter(|arguments| arguments.json.is_some()) {
            self.queue.arguments.release(arguments.length);
        }
        self.queue.release();
    }

    fn add_event(&mut self, event: LogEvent) {
        self.sequence += 1;
        let line = self.encoder.log_event(self.sequence, (self.now)(), event);
        self.batch.push(line);
        self.stakes.push(match event {
            LogEvent::Lost(losses) => Stake::Report(losses),
            LogEvent::Started | LogEvent::Stopped => Stake::Nothing,
        });
    }

    /// Writes the batch. What cannot be written is lost, or written again, as the configuration says.
    fn flush(&mut self) {
        while !self.batch.is_empty() {
            self.queue.sink.begin_write();
            let written = self.sink.write(&self.batch);
            self.queue.sink.end_write();
            let count = written.lines.min(self.batch.len());
            self.batch.drain(..count);
            self.stakes.drain(..count);
            let total = u64::try_from(count).unwrap_or(u64::MAX);
            self.queue
                .totals
                .written
                .fetch_add(total, Ordering::Relaxed);
            let is_last_attempt = self.queue.is_closing.load(Ordering::SeqCst);
            if self.on_full == OnFull::Drop || is_last_attempt {
                self.lose_batch();
            }
            match written.error {
                None => self.succeeded(),
                Some(error) => {
                    self.queue.sink.fail();
                    self.failed(&error);
                }
            }
            if self.batch.is_empty() {
                break;
            }
            thread::park_timeout(RETRY);
            self.reopen();
        }
    }

    fn succeeded(&mut self) {
        if self.queue.sink.succeed() {
            let sink = self.sink.name();
            info!(sink, "audit records can be written again");
        }
    }

    fn failed(&mut self, error: &io::Error) {
        let error = io_error::describe(error);
        self.queue.totals.failures.fetch_add(1, Ordering::Relaxed);
        if self.logged_at.is_none_or(|at| at.elapsed() >= QUIET) {
            self.logged_at = Some(Instant::now());
            let sink = self.sink.name();
            let lost = self.queue.totals.lost.load(Ordering::Relaxed);
            warn!(
                sink,
                error, lost, "audit records could not be written; Vary tries again by itself"
            );
        }
        self.queue.sink.set_error(error);
    }

    /// Counts the lines that were not written. The next lines get their numbers.
    fn lose_batch(&mut self) {
        self.batch.clear();
        for stake in self.stakes.drain(..) {
            self.sequence -= 1;
            match stake {
                Stake::Record => self.queue.add_lost(1),
                Stake::Report(losses) => self.queue.put_back(losses),
                Stake::Nothing => {}
            }
        }
    }

    /// Opens the sink again if that was requested. If it fails, it is tried again with the next batch.
    fn reopen(&mut self) {
        if !self.queue.needs_reopen.swap(false, Ordering::SeqCst) {
            return;
        }
        if let Err(error) = self.sink.reopen() {
            self.queue.needs_reopen.store(true, Ordering::SeqCst);
            self.failed(&error);
        }
    }
}
