//! The open HTTP connections, and which of them is closed when the limit is reached and a new one arrives.
//!
//! On a loopback address all peers have one address, so peers are distinguished by their sessions. Any peer can open
//! sessions and connections without end, so a fixed share for each would not help. A new connection is therefore always
//! admitted, and the session with the most connections loses one.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Response;
use http::request::Parts;
use http_body::Frame;
use mcp_vary_base::lock::Lock;
use mcp_vary_wire::counters::{Counter, Counters};
use mcp_vary_wire::headers::SESSION_ID;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use tracing::warn;

/// The open connections of one listener.
///
/// # Properties
///
/// There are at most `limit`. A new one waits for at most `header_timeout`: a connection that is idle or only listens is
/// closed for it at once, one with a request in flight only after that time.
#[derive(Debug)]
pub struct Connections {
    limit: usize,
    header_timeout: Duration,
    counters: Arc<Counters>,
    /// How many activities have begun: they are only compared, so that no clock has to be read twice for each request.
    begun: AtomicU64,
    open: Lock<Open>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    all: BTreeMap<u64, Arc<Connection>>,
}

/// One open connection.
#[derive(Debug)]
struct Connection {
    /// One of [`Activity`].
    activity: AtomicU8,
    /// How many activities had begun before this one.
    since: AtomicU64,
    /// The session of its last request; 0 without one.
    session: AtomicU64,
    is_evicted: AtomicBool,
    /// Serves it. Aborted from outside: a token would have to be polled with every request.
    task: OnceLock<AbortHandle>,
}

/// The activity of a connection, in the order of eviction.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
enum Activity {
    /// Between two requests.
    Idle,
    /// The stream of a `GET` or of `subscriptions/listen`, which its client can open again.
    Listening,
    /// It has not sent the head of a request yet.
    New,
    /// A request is in flight.
    Calling,
}

impl Activity {
    const ALL: [Self; 4] = [Self::Idle, Self::Listening, Self::New, Self::Calling];
}

/// One admitted connection. Dropping it makes room for another.
#[derive(Debug)]
pub struct ConnectionGuard {
    connections: Arc<Connections>,
    number: u64,
    connection: Arc<Connection>,
}

impl Connections {
    /// No connections yet, of at most `limit`.
    pub fn new(limit: usize, header_timeout: Duration, counters: &Arc<Counters>) -> Arc<Self> {
        Arc::new(Self {
            limit: limit.max(1),
            header_timeout,
            counters: Arc::clone(counters),
            begun: AtomicU64::new(0),
            open: Lock::default(),
            freed: Notify::new(),
        })
    }

    /// Admits a new connection. At the limit, another one is closed first.
    pub async fn admit(self: &Arc<Self>) -> ConnectionGuard {
        let deadline = Instant::now() + self.header_timeout;
        loop {
            let freed = self.freed.notified();
            if let Some(guard) = self.insert() {
                return guard;
            }
            self.evict_one(Instant::now() >= deadline);
            // A connection that is idle now may be in use a moment later, and the reverse.
            let _ = timeout(EVICTION_RETRY, freed).await;
        }
    }

    fn insert(self: &Arc<Self>) -> Option<ConnectionGuard> {
        let mut open = self.open.lock();
        if open.all.len() >= self.limit {
            return None;
        }
        let number = open.next;
        open.next += 1;
        let connection = Arc::new(Connection {
            activity: AtomicU8::new(Activity::New as u8),
            since: AtomicU64::new(self.begin_activity()),
            session: AtomicU64::new(0),
            is_evicted: AtomicBool::new(false),
            task: OnceLock::new(),
        });
        open.all.insert(number, Arc::clone(&connection));
        Some(ConnectionGuard {
            connections: Arc::clone(self),
            number,
            connection,
        })
    }

    /// Closes one connection, unless one is closing already.
    fn evict_one(&self, may_end_calls: bool) {
        let open = self.open.lock();
        let is_closing = |it: &Arc<Connection>| it.is_evicted.load(Ordering::Relaxed);
        if open.all.values().any(is_closing) {
            return;
        }
        let all: Vec<_> = open.all.values().map(|it| it.seen()).collect();
        let Some(at) = victim(&all, self.limit, may_end_calls) else {
            return;
        };
        if let Some(evicted) = open.all.values().nth(at) {
            evicted.close();
            let count = self.counters.increment(Counter::EvictedConnections);
            if count.is_power_of_two() {
                let limit = self.limit;
                let activity = all[at].activity;
                warn!(
                    limit,
                    ?activity,
                    count,
                    "all connections are in use; one was closed for a new one"
                );
            }
        }
    }

    /// Closes all connections, even with requests in flight.
    pub fn close_all(&self) {
        for connection in self.open.lock().all.values() {
            connection.close();
        }
    }

    fn begin_activity(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::Relaxed)
    }
}

impl Connection {
    fn close(&self) {
        self.is_evicted.store(true, Ordering::Relaxed);
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }

    fn seen(&self) -> VictimView {
        let activity = usize::from(self.activity.load(Ordering::Relaxed));
        VictimView {
            activity: Activity::ALL[activity.min(Activity::ALL.len() - 1)],
            since: self.since.load(Ordering::Relaxed),
            session: self.session.load(Ordering::Relaxed),
        }
    }
}

/// A connection as the choice of the victim sees it.
#[derive(Clone, Copy, Debug)]
struct VictimView {
    activity: Activity,
    since: u64,
    session: u64,
}

/// The connection that is closed for a new one.
///
/// First the oldest of those that have sent nothing, if they are more than an eighth: they are the cheapest to open. Then
/// one of the session with the most connections, calls not counted; of several the least active, then the oldest.
/// Connections without a session count one each.
fn victim(all: &[VictimView], limit: usize, may_end_calls: bool) -> Option<usize> {
    let new = || {
        let indexed = all.iter().enumerate();
        indexed.filter(|(_, it)| it.activity == Activity::New)
    };
    if new().count() > (limit / NEW_SHARE).max(1) {
        return new().min_by_key(|(_, it)| it.since).map(|(at, _)| at);
    }
    let mut counts = BTreeMap::<u64, usize>::new();
    for it in all.iter().filter(|it| it.activity != Activity::Calling) {
        *counts.entry(it.session).or_default() += 1;
    }
    let share = |it: &VictimView| match it.session {
        0 => 1,
        session => counts.get(&session).copied().unwrap_or_default(),
    };
    let indexed = all.iter().enumerate();
    let may_be_closed = indexed.filter(|(_, it)| may_end_calls || it.activity != Activity::Calling);
    let first = may_be_closed.min_by_key(|(_, it)| (Reverse(share(it)), it.activity, it.since));
    first.map(|(at, _)| at)
}

impl ConnectionGuard {
    /// Sets the task that serves the connection. It is aborted when the connection has to end.
    pub fn set_task(&self, task: AbortHandle) {
        // A second task would be a mistake of the caller; the first one stays.
        let _ = self.connection.task.set(task);
    }

    /// Marks the start of a request.
    pub fn start_request(self: &Arc<Self>, head: &Parts) -> InFlight {
        let id = head.headers.get(SESSION_ID);
        let session = id.map_or(0, |id| start_of(id.as_bytes()));
        self.connection.session.store(session, Ordering::Relaxed);
        self.set_activity(Activity::Calling);
        InFlight(Arc::clone(self))
    }

    fn set_activity(&self, activity: Activity) {
        let connection = &self.connection;
        let begun = self.connections.begin_activity();
        connection.since.store(begun, Ordering::Relaxed);
        connection.activity.store(activity as u8, Ordering::Relaxed);
    }
}

/// A value that identifies a session: its id begins with a code that clients cannot choose, and what follows is alike
/// in many sessions.
fn start_of(id: &[u8]) -> u64 {
    let first = id.first_chunk::<8>().copied().unwrap_or_default();
    u64::from_le_bytes(first)
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.connections.open.lock().all.remove(&self.number);
        self.connections.freed.notify_one();
    }
}

/// A request in flight, until its response has been sent.
#[derive(Debug)]
pub struct InFlight(Arc<ConnectionGuard>);

impl InFlight {
    /// The response, whose body ends the request; `only_listens` if that is a stream that answers no call.
    pub fn respond<B>(self, response: Response<B>, only_listens: bool) -> Response<Tracked<B>> {
        if only_listens {
            self.0.set_activity(Activity::Listening);
        }
        response.map(|body| Tracked {
            body,
            _in_flight: self,
        })
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.set_activity(Activity::Idle);
    }
}

/// A body, and the request that it answers.
#[derive(Debug)]
pub struct Tracked<B> {
    body: B,
    _in_flight: InFlight,
}

impl<B: http_body::Body + Unpin> http_body::Body for Tracked<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

/// The pause before a new connection looks again for one to close.
const EVICTION_RETRY: Duration = Duration::from_millis(50);
/// At most one in so many connections may have sent nothing yet.
const NEW_SHARE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    use Activity::{Calling, Idle, Listening, New};

    /// Which of these gives way, of which each came later than the one before.
    #[track_caller]
    fn gives_way(all: &[(Activity, u64)], expected: Option<usize>) {
        assert_eq!(found(all, false), expected, "{all:?}");
    }

    fn found(all: &[(Activity, u64)], may_end_calls: bool) -> Option<usize> {
        let all = all.iter().zip(0..);
        let all = all.map(|(&(activity, session), since)| VictimView {
            activity,
            since,
            session,
        });
        let all: Vec<_> = all.collect();
        victim(&all, all.len(), may_end_calls)
    }

    #[test]
    fn the_session_that_holds_the_most_gives_way_first() {
        gives_way(&[(Listening, 1), (Listening, 2), (Listening, 2)], Some(1));
        gives_way(&[(Idle, 1), (Listening, 2), (Listening, 2)], Some(1));
        gives_way(&[(Listening, 2), (Idle, 2), (Idle, 2), (Idle, 1)], Some(1));
        // Calls do not count against a session.
        gives_way(
            &[(Listening, 1), (Calling, 1), (Calling, 1), (Idle, 2)],
            Some(3),
        );
        // Without a session each stands for itself.
        gives_way(
            &[
                (Idle, 0),
                (Idle, 0),
                (Idle, 0),
                (Listening, 1),
                (Listening, 1),
            ],
            Some(3),
        );
    }

    #[test]
    fn sessions_of_alike_clients_are_told_apart() {
        let codes = [b"q7Zt0c-vJ1", b"q7Zt0cXvJ1"];
        let [one, other] = codes.map(|code| start_of(&[code, &b"eyJ4IjpbMSwxNjhdfQ"[..]].concat()));
        assert_ne!(one, other);
    }

    #[test]
    fn of_equals_the_idlest_and_oldest_gives_way() {
        gives_way(&[(Listening, 1), (Idle, 2), (Idle, 3)], Some(1));
        gives_way(&[(Listening, 0), (Listening, 0), (New, 0)], Some(0));
    }

    #[test]
    fn who_sends_nothing_gives_way_when_there_are_many() {
        gives_way(&[(Idle, 1), (Idle, 1), (New, 0), (New, 0)], Some(2));
        gives_way(&[(Idle, 1), (Idle, 1), (Idle, 1), (New, 0)], Some(0));
    }

    #[test]
    fn calls_give_way_last_and_only_when_they_may() {
        gives_way(&[(Calling, 1), (Calling, 2)], None);
        assert_eq!(found(&[(Calling, 1), (Calling, 2)], true), Some(0));
        assert_eq!(found(&[(Calling, 1), (New, 0)], true), Some(1));
    }
}
