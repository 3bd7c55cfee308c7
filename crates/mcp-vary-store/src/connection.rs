//! Keeps the connection, reads what other replicas wrote, and gives an empty store back what this replica knows.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, PushInfo, PushKind, RedisResult, Value};
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tracing::{debug, info, warn};

use crate::ended::{MAX_ENDED, SessionKey};
use crate::mailbox::ReplicaCall;
use crate::namespace::Namespace;
use crate::operations::{Operation, Outcome};
use crate::store::{Store, StoreEvent, StoreState};

/// How long one command in the background takes at most, and the connect.
pub(crate) const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(1);
/// How long all sessions are read at most.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// The time between two checks, and between two attempts to connect.
const PAUSE: Duration = Duration::from_secs(1);
/// Messages of other replicas that wait. If there are more, all sessions are read again.
const MAX_MESSAGES: usize = 4096;
/// Sessions that are read or written at once.
const PAGE: usize = 1000;
/// Pages after which reading ends, whatever the store answers.
const MAX_PAGES: usize = 10 * MAX_ENDED / PAGE;

/// A connection, and the messages of other replicas that came over it.
struct Connected {
    connection: MultiplexedConnection,
    messages: mpsc::Receiver<PushInfo>,
    /// Whether a message was lost.
    has_overflowed: Arc<AtomicBool>,
}

impl Store {
    /// Keeps the store connected, and calls `learn` with what other replicas wrote, and `serve` with requests that they
    /// forward, until `stop`. Then it receives no more, and ends when others have been sent what waits for them: they can
    /// tell from then on that this replica has ended.
    pub async fn run(
        &self,
        learn: impl Fn(StoreEvent),
        serve: impl Fn(ReplicaCall),
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = pin!(stop);
        loop {
            let connected = tokio::select! {
                connected = self.connect(&learn) => connected,
                () = &mut stop => return,
            };
            let cause = match connected {
                Ok(connected) => {
                    self.note_up();
                    self.connection
                        .store(Some(Arc::new(connected.connection.clone())));
                    self.set_state(StoreState::Up);
                    match self.serve(connected, &learn, &serve, &mut stop).await {
                        Some(cause) => cause,
                        None => return,
                    }
                }
                Err(cause) => cause,
            };
            self.connection.store(None);
            self.mailbox.disconnect();
            self.counting.disconnect();
            self.note_away(&cause);
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = &mut stop => return,
            }
        }
    }

    /// Uses a connection until it is of no use, and returns why; `None` after `stop`.
    async fn serve(
        &self,
        mut connected: Connected,
        learn: &impl Fn(StoreEvent),
        serve: &impl Fn(ReplicaCall),
        stop: impl Future<Output = ()>,
    ) -> Option<String> {
        let is_last = Notify::new();
        let mut deliver = pin!(self.deliver(connected.connection.clone(), is_last.notified()));
        let connection = connected.connection.clone();
        tokio::select! {
            cause = self.follow(&mut connected, learn, serve) => return Some(cause),
            never = self.follow_tallies(connection.clone()) => match never {},
            delivered = &mut deliver => return delivered.err(),
            () = stop => {}
        }
        let leave = async {
            if let Err(error) = self.leave(&mut connected, learn, serve).await {
                debug!(cause = cause(&error), "mailbox not closed");
            }
            is_last.notify_one();
        };
        let sent = timeout(BACKGROUND_TIMEOUT, async { tokio::join!(leave, deliver).1 });
        let (sent, ()) = tokio::join!(sent, self.finish_tallies(connection));
        if let Err(cause) = sent.unwrap_or_else(|_| Err(SLOW.to_owned())) {
            debug!(cause, "messages for other replicas not sent");
        }
        self.connection.store(None);
        None
    }

    /// Receives no further messages, and handles those that have arrived.
    async fn leave(
        &self,
        connected: &mut Connected,
        learn: &impl Fn(StoreEvent),
        serve: &impl Fn(ReplicaCall),
    ) -> RedisResult<()> {
        for namespace in &self.namespaces {
            let mailbox = namespace.mailbox(self.mailbox.tag());
            connected.connection.unsubscribe(mailbox).await?;
        }
        while let Ok(message) = connected.messages.try_recv() {
            if message.kind == PushKind::Message {
                self.receive(&message, learn, serve);
            }
        }
        Ok(())
    }

    fn note_up(&self) {
        if self.state() != StoreState::Up && self.changes.next().is_some() {
            info!(store = %self.url, "store connected");
        }
    }

    /// Logs the change, not each attempt.
    fn note_away(&self, cause: &str) {
        let is_change = self.state() != StoreState::Away;
        self.set_state(StoreState::Away);
        if is_change && self.changes.next().is_some() {
            warn!(store = %self.url, cause, "store away; trying again every second");
        }
    }

    /// Connects, and reads and writes ended sessions.
    async fn connect(&self, learn: &impl Fn(StoreEvent)) -> Result<Connected, String> {
        let (sender, messages) = mpsc::channel(MAX_MESSAGES);
        let has_overflowed = Arc::<AtomicBool>::default();
        let overflow = Arc::clone(&has_overflowed);
        let push = move |message| {
            let sent = sender.try_send(message);
            sent.inspect_err(|_| overflow.store(true, Ordering::Release))
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(BACKGROUND_TIMEOUT))
            .set_response_timeout(Some(BACKGROUND_TIMEOUT))
            .set_push_sender(push);
        let opened = async {
            let client = Client::open(self.url.locate().await?)?;
            let connected = client.get_multiplexed_async_connection_with_config(&config);
            let mut connection = connected.await?;
            // It also shows that the store takes writes: one that was demoted or is full answers, but is of no use.
            self.beat(connection.clone()).await?;
            // Before they are read, so that none is missed in between.
            for namespace in &self.namespaces {
                connection.subscribe(&namespace.ended).await?;
                connection.subscribe(&namespace.cancelled).await?;
                connection.subscribe(&namespace.tallies).await?;
                let mailbox = namespace.mailbox(self.mailbox.tag());
                connection.subscribe(mailbox).await?;
            }
            Ok(connection)
        };
        let limit = self.url.patience() + 2 * BACKGROUND_TIMEOUT;
        let opened = timeout(limit, opened).await;
        let connection = opened.map_err(|_| SLOW)?.map_err(|error| cause(&error))?;
        if self.state() != StoreState::Connecting {
            self.set_state(StoreState::Reading);
        }
        let in_time = timeout(READ_TIMEOUT, self.exchange(connection.clone(), learn)).await;
        let exchanged = match in_time {
            Ok(exchanged) => exchanged.map_err(|error| cause(&error)),
            Err(_) => Err(SLOW.to_owned()),
        };
        let outcome = exchanged.as_ref().map_or(Outcome::Failed, |()| Outcome::Ok);
        self.operations.add(Operation::Read, outcome);
        exchanged.map(|()| Connected {
            connection,
            messages,
            has_overflowed,
        })
    }

    /// Reads the ended sessions, and writes those that the store does not have.
    async fn exchange(
        &self,
        connection: MultiplexedConnection,
        learn: &impl Fn(StoreEvent),
    ) -> RedisResult<()> {
        let mut stored = BTreeSet::new();
        for namespace in &self.namespaces {
            let read = self.read_ended(connection.clone(), namespace).await?;
            // A set that is full may have lost those that expire before all that it has. What others made up does not count.
            if read.len() >= MAX_ENDED
                && let Some(first) = read.first()
            {
                learn(StoreEvent::ForgottenUntil(first.expires));
            }
            stored.extend(read);
        }
        let unwritten = self.ended.lock().without(&stored);
        for session in stored {
            self.learn_ended(session, learn);
        }
        for sessions in unwritten.chunks(PAGE) {
            self.write_ended(connection.clone(), sessions).await?;
        }
        self.restore_heirs(connection).await
    }

    async fn read_ended(
        &self,
        mut connection: MultiplexedConnection,
        namespace: &Namespace,
    ) -> RedisResult<BTreeSet<SessionKey>> {
        let mut read = BTreeSet::new();
        let mut cursor = 0_u64;
        for _ in 0..MAX_PAGES {
            let mut scan = redis::cmd("ZSCAN");
            scan.arg(&namespace.ended).arg(cursor);
            scan.arg("COUNT").arg(PAGE);
            let (next, page): (u64, Vec<Vec<u8>>) = scan.query_async(&mut connection).await?;
            // Members and their scores take turns; the score of a member is also in it.
            read.extend(page.iter().step_by(2).filter_map(|it| namespace.open(it)));
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        Ok(read)
    }

    fn learn_ended(&self, session: SessionKey, learn: &impl Fn(StoreEvent)) {
        if self.ended.lock().insert(session, (self.now)()) {
            learn(StoreEvent::Ended(session));
        }
    }

    /// Sends what goes to other replicas, counts requests and saves values, until the connection is of no use, or all was sent after `end`.
    async fn deliver(
        &self,
        connection: MultiplexedConnection,
        end: impl Future<Output = ()>,
    ) -> Result<(), String> {
        match self.namespaces.first() {
            Some(namespace) => {
                let saving = &self.saving;
                let operations = &self.operations;
                let delivered = self.mailbox.deliver(namespace, connection.clone(), end);
                tokio::select! {
                    () = self.counting.run(namespace, connection.clone()) => return Ok(()),
                    () = saving.run(namespace, connection.clone(), operations) => return Ok(()),
                    delivered = delivered => delivered.map_err(|error| cause(&error))?,
                }
                saving.flush(namespace, connection, operations).await;
                Ok(())
            }
            None => std::future::pending().await,
        }
    }

    /// Receives messages until the connection is of no use. Returns why.
    async fn follow(
        &self,
        connected: &mut Connected,
        learn: &impl Fn(StoreEvent),
        serve: &impl Fn(ReplicaCall),
    ) -> String {
        // However many messages come.
        let mut checks = interval(PAUSE);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if connected.has_overflowed.load(Ordering::Acquire) {
                return "too many messages of other replicas at once".to_owned();
            }
            tokio::select! {
                message = connected.messages.recv() => match message {
                    Some(message) if message.kind == PushKind::Message => {
                        self.receive(&message, learn, serve);
                        continue;
                    }
                    Some(message) if message.kind != PushKind::Disconnection => continue,
                    _ => return "the connection was closed".to_owned(),
                },
                () = self.suspected.notified() => {}
                _ = checks.tick() => {}
            }
            let checked = timeout(BACKGROUND_TIMEOUT, self.maintain(&mut connected.connection));
            match checked.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return cause(&error),
                Err(_) => return SLOW.to_owned(),
            }
        }
    }

    /// Checks the store, and writes what it did not get in time.
    async fn maintain(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        self.beat(connection.clone()).await?;
        let unwritten = self.ended.lock().unwritten();
        for sessions in unwritten.chunks(PAGE) {
            self.write_ended(connection.clone(), sessions).await?;
        }
        Ok(())
    }

    fn receive(
        &self,
        message: &PushInfo,
        learn: &impl Fn(StoreEvent),
        serve: &impl Fn(ReplicaCall),
    ) {
        let [Value::BulkString(channel), Value::BulkString(sealed)] = message.data.as_slice()
        else {
            return;
        };
        let is_its = |it: &&Namespace| channel.starts_with(it.prefix.as_bytes());
        let Some(namespace) = self.namespaces.iter().find(is_its) else {
            return;
        };
        if namespace.cancelled.as_bytes() == channel {
            if let Some((session, request)) = namespace.open_cancelled(sealed) {
                learn(StoreEvent::Cancelled { session, request });
            }
        } else if namespace.tallies.as_bytes() == channel {
            self.receive_tally(namespace, sealed);
        } else if namespace.ended.as_bytes() != channel {
            let is_received = self.mailbox.receive(namespace, sealed, serve);
            let outcome = if is_received {
                Outcome::Ok
            } else {
                Outcome::Failed
            };
            self.operations.add(Operation::Receive, outcome);
        } else if let Some(session) = namespace.open(sealed) {
            self.learn_ended(session, learn);
        }
    }
}

const SLOW: &str = "it did not answer in time";

/// Why a store is away: the first line of the client's error, which has no address or password.
pub(crate) fn cause(error: &redis::RedisError) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(200).collect()
}
