//! Calls as they end, for watchers and for the history.

use mcp_vary_audit::{LongText, Record};
use mcp_vary_base::lock::ScopedLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use crate::call_history::CallHistory;
use crate::failed_calls::FailedCalls;
use crate::finished_call::{FinishedCall, is_uri};
use crate::recorded_call::EndedCall;
use crate::request_line::without_secrets;

/// Sends calls that have ended to watchers, and records the last ones. Lists and other requests are not calls.
///
/// # Properties
///
/// A call costs nothing here unless calls are watched or recorded; recording is a push into a ring. Watchers get the first
/// [`SHOWN_PER_SECOND`] calls of each second, the others are counted. The last [`MAX_WAITING`] are kept. A watcher that is
/// further behind gets the number of those that it missed; the other watchers miss none.
#[derive(Debug)]
pub struct RequestFeed {
    watchers: Arc<AtomicUsize>,
    /// Who they are; `None` is the operator.
    viewers: Arc<ScopedLock<Vec<Viewer>>>,
    created: Instant,
    /// The latest second since then in which a call began, and the calls that began in it.
    second: AtomicU64,
    begun: AtomicU64,
    /// Whether the last calls are recorded.
    is_recording: AtomicBool,
    history: CallHistory,
    /// The calls that were not sent.
    skipped: Arc<AtomicU64>,
    ended: broadcast::Sender<Arc<FinishedCall>>,
}

/// A call that the feed gets when it has ended.
#[derive(Clone, Debug)]
pub struct ReportedCall {
    feed: Arc<RequestFeed>,
    /// Whether watchers get it.
    is_shown: bool,
}

/// The calls of a gateway as they end, until this is dropped.
#[derive(Debug)]
pub struct RequestWatch {
    watchers: Arc<AtomicUsize>,
    viewers: Arc<ScopedLock<Vec<Viewer>>>,
    viewer: Viewer,
    ended: broadcast::Receiver<Arc<FinishedCall>>,
    skipped: Arc<AtomicU64>,
    /// What of `skipped` the watcher knows of.
    known: u64,
}

/// What a watch sees next.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WatchEvent {
    /// A call has ended.
    Finished(Arc<FinishedCall>),
    /// Further calls have ended, so many that they were dropped.
    Dropped(u64),
}

impl Default for RequestFeed {
    fn default() -> Self {
        Self {
            watchers: Arc::default(),
            viewers: Arc::default(),
            created: Instant::now(),
            second: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            is_recording: AtomicBool::new(false),
            history: CallHistory::default(),
            skipped: Arc::default(),
            ended: broadcast::Sender::new(MAX_WAITING),
        }
    }
}

impl RequestFeed {
    /// Begins to record the last calls.
    pub fn record(&self) {
        self.is_recording.store(true, Ordering::Relaxed);
    }

    /// The last calls that were recorded, the latest first.
    pub fn last_calls(&self) -> Vec<FinishedCall> {
        self.history.latest()
    }

    /// The calls that failed or were refused since they are recorded, by whose they are and what came of them.
    pub fn failed_calls(&self) -> Vec<FailedCalls> {
        self.history.failures.all()
    }

    /// What gets a request that begins now, if it is a call that is watched or recorded.
    pub fn begin(self: &Arc<Self>, method: &str) -> Option<ReportedCall> {
        if !is_call(method) {
            return None;
        }
        let is_shown = self.shows_another();
        let is_seen = is_shown || self.is_recording.load(Ordering::Relaxed);
        is_seen.then(|| ReportedCall {
            feed: Arc::clone(self),
            is_shown,
        })
    }

    /// Whether watchers get another call of this second.
    fn shows_another(&self) -> bool {
        if self.watchers.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let second = self.created.elapsed().as_secs();
        if self.second.swap(second, Ordering::Relaxed) != second {
            self.begun.store(0, Ordering::Relaxed);
        }
        let is_shown = self.begun.fetch_add(1, Ordering::Relaxed) < SHOWN_PER_SECOND;
        if !is_shown {
            self.skipped.fetch_add(1, Ordering::Relaxed);
        }
        is_shown
    }

    /// A watch; `None` if there are as many as there can be, or as many of this reader as one may have. Some are left to the
    /// operator.
    pub fn watch(&self, viewer: Viewer) -> Option<RequestWatch> {
        let mut viewers = self.viewers.lock();
        let of_viewer = viewers.iter().filter(|one| **one == viewer).count();
        let has_room = match viewer {
            None => viewers.len() < MAX_WATCHES,
            Some(_) => viewers.len() < MAX_WATCHES_OF_READERS && of_viewer < MAX_WATCHES_OF_ONE,
        };
        if !has_room {
            return None;
        }
        viewers.push(viewer);
        self.watchers.store(viewers.len(), Ordering::Relaxed);
        drop(viewers);
        Some(RequestWatch {
            watchers: Arc::clone(&self.watchers),
            viewers: Arc::clone(&self.viewers),
            viewer,
            ended: self.ended.subscribe(),
            skipped: Arc::clone(&self.skipped),
            known: self.skipped.load(Ordering::Relaxed),
        })
    }
}

impl ReportedCall {
    /// Records the call, which has ended, and sends it to watchers.
    pub(super) fn end(&self, call: EndedCall<'_>) {
        let shown = self.feed.history.push(call, self.is_shown);
        if let Some(call) = shown {
            // The watchers may be gone.
            let _ = self.feed.ended.send(Arc::new(call));
        }
    }
}

/// The beginning of the `text` of an error, without what may be a secret of the URI that the request names: servers repeat
/// it.
pub(super) fn shown_error(text: String, record: &Record) -> String {
    let target = record.target.as_ref();
    let uris = target.filter(|target| is_uri(target.kind)).into_iter();
    let names = uris.flat_map(|target| std::iter::once(&target.name).chain(&target.upstream_name));
    // It is cut last: a part of a URI would not be found.
    let shown = names.fold(text, |shown, uri| without_secrets_of(uri.as_str(), &shown));
    LongText::new(shown).as_str().to_owned()
}

/// The `text` without what may be a secret of `uri`. If that was cut when it was recorded, what follows its beginning in the
/// text, up to a space or a quote, goes with it.
fn without_secrets_of(uri: &str, text: &str) -> String {
    let cut = uri.strip_suffix(']').and_then(|cut| cut.rsplit_once("…[+"));
    let Some((beginning, _)) = cut else {
        return text.replace(uri, &without_secrets(uri));
    };
    let mut pieces = text.split(beginning);
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|next: char| next.is_whitespace() || matches!(next, '"' | '\''));
        let after = end.and_then(|end| piece.get(end..)).unwrap_or_default();
        shown.extend([&without_secrets(beginning), "…", after]);
    }
    shown
}

impl RequestWatch {
    /// What happens next; `None` when the gateway is gone. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        let skipped = self.skipped.load(Ordering::Relaxed);
        let unknown = skipped - std::mem::replace(&mut self.known, skipped);
        if unknown > 0 {
            return Some(WatchEvent::Dropped(unknown));
        }
        match self.ended.recv().await {
            Ok(finished) => Some(WatchEvent::Finished(finished)),
            Err(RecvError::Lagged(count)) => Some(WatchEvent::Dropped(count)),
            Err(RecvError::Closed) => None,
        }
    }
}

impl Drop for RequestWatch {
    fn drop(&mut self) {
        let mut viewers = self.viewers.lock();
        if let Some(at) = viewers.iter().position(|watching| *watching == self.viewer) {
            viewers.swap_remove(at);
        }
        self.watchers.store(viewers.len(), Ordering::Relaxed);
    }
}

/// Whether the feed and the list of the last calls have requests of this method.
pub(crate) fn is_call(method: &str) -> bool {
    CALLS.contains(&method)
}

/// The methods that call something; lists, and streams of changes, do not.
const CALLS: &[&str] = &["tools/call", "prompts/get", "resources/read"];
/// The most calls that wait for a watcher.
pub const MAX_WAITING: usize = 256;
/// The calls of one second that are sent; nobody reads more.
pub const SHOWN_PER_SECOND: u64 = 100;
/// The most that can watch at once.
const MAX_WATCHES: usize = 8;
/// While there are so many, readers get no more: the others are the operator's.
const MAX_WATCHES_OF_READERS: usize = 6;
/// The most that one reader has.
const MAX_WATCHES_OF_ONE: usize = 2;

/// Who watches: the operator, or a principal by a number of its own.
pub type Viewer = Option<u128>;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mcp_vary_audit::{Event, LongText, Outcome, Target, TargetKind};

    use super::*;

    fn end(call: &ReportedCall) {
        let mut record = Record::new(Event::Request, Outcome::Allowed);
        call.end(EndedCall::new(&mut record, Instant::now()));
    }

    /// OP-9
    #[tokio::test]
    async fn a_slow_watcher_is_told_what_it_missed() {
        let feed = Arc::<RequestFeed>::default();
        assert!(feed.begin("tools/call").is_none());
        let mut watch = feed.watch(None).unwrap();
        assert!(feed.begin("tools/list").is_none());
        let reported = feed.begin("tools/call").unwrap();
        for _ in 0..MAX_WAITING + 3 {
            end(&reported);
        }
        let next = watch.next().await;
        assert!(matches!(next, Some(WatchEvent::Dropped(3))), "{next:?}");
        for _ in 0..MAX_WAITING {
            let next = watch.next().await;
            assert!(matches!(next, Some(WatchEvent::Finished(_))), "{next:?}");
        }
        drop(watch);
        assert!(feed.begin("tools/call").is_none());
    }

    /// OP-9
    #[tokio::test(start_paused = true)]
    async fn all_calls_are_recorded_whether_or_not_somebody_watches() {
        let feed = Arc::<RequestFeed>::default();
        feed.record();
        end(&feed.begin("tools/call").unwrap());
        let _watch = feed.watch(None).unwrap();
        for _ in 0..2 * SHOWN_PER_SECOND {
            end(&feed.begin("resources/read").unwrap());
        }
        assert!(feed.begin("subscriptions/listen").is_none());
        let ids = feed.last_calls().into_iter().map(|call| call.id);
        let expected = (1..=2 * SHOWN_PER_SECOND + 1).rev();
        assert!(ids.eq(expected));
    }

    /// OP-9
    #[tokio::test(start_paused = true)]
    async fn of_many_requests_in_a_second_some_are_shown_and_the_others_counted() {
        let feed = Arc::<RequestFeed>::default();
        let mut watch = feed.watch(None).unwrap();
        let shown = || (0..SHOWN_PER_SECOND + 7).filter(|_| feed.begin("tools/call").is_some());
        assert_eq!(shown().count() as u64, SHOWN_PER_SECOND);
        let of_this_second = ReportedCall {
            feed: Arc::clone(&feed),
            is_shown: true,
        };
        end(&of_this_second);
        let next = watch.next().await;
        assert!(matches!(next, Some(WatchEvent::Dropped(7))), "{next:?}");
        let next = watch.next().await;
        assert!(matches!(next, Some(WatchEvent::Finished(_))), "{next:?}");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(shown().count() as u64, SHOWN_PER_SECOND);
    }

    /// OP-9
    #[test]
    fn the_text_of_an_error_shows_no_secret_of_a_uri() {
        let shows = |kind, expected: &str| {
            let mut record = Record::new(Event::Request, Outcome::Error);
            let mut target = Target::new(kind, LongText::new("db://u:p@h/t?key=s3"));
            target.upstream_name = Some(LongText::new("file:///t?key=s3"));
            record.target = Some(target);
            let text = "neither db://u:p@h/t?key=s3 nor file:///t?key=s3";
            assert_eq!(shown_error(text.to_owned(), &record), expected);
            let cut = shown_error(format!("{text} {}", "é".repeat(3000)), &record);
            assert!(cut.starts_with(expected) && cut.contains('…'), "{cut}");
            assert!(cut.len() <= 1024, "{cut}");
        };
        shows(TargetKind::Resource, "neither db://h/t nor file:///t");
        let as_written = "neither db://u:p@h/t?key=s3 nor file:///t?key=s3";
        shows(TargetKind::Tool, as_written);
        let mut record = Record::new(Event::Request, Outcome::Error);
        let uri = LongText::new("db://u:p@h/t?key=s3");
        record.target = Some(Target::new(TargetKind::Resource, uri));
        let across = format!("{} db://u:p@h/t?key=s3", "x".repeat(1010));
        let shown = shown_error(across, &record);
        assert!(!shown.contains("u:p"), "{shown}");
        let long = format!("db://u:p@h/t?key={}s3", "k".repeat(1100));
        record.target = Some(Target::new(TargetKind::Resource, LongText::new(&long)));
        let shown = shown_error(format!("no \"{long}\" here"), &record);
        assert_eq!(shown, "no \"db://h/t…\" here");
    }

    #[test]
    fn only_so_many_watch_at_once() {
        let feed = RequestFeed::default();
        let mut watches: Vec<_> = (0..MAX_WATCHES)
            .map(|_| feed.watch(None).unwrap())
            .collect();
        assert!(feed.watch(None).is_none());
        watches.pop();
        assert!(feed.watch(None).is_some());
    }

    /// OP-9
    #[test]
    fn one_reader_leaves_room_for_others() {
        let feed = RequestFeed::default();
        let watches = [
            feed.watch(Some(1)),
            feed.watch(Some(1)),
            feed.watch(Some(2)),
        ];
        assert!(watches.iter().all(Option::is_some));
        assert!(feed.watch(Some(1)).is_none());
        assert!(feed.watch(None).is_some());
        drop(watches);
        let readers = (0..).map_while(|reader| feed.watch(Some(reader)));
        let readers: Vec<_> = readers.collect();
        assert_eq!(readers.len(), MAX_WATCHES_OF_READERS);
        let operators = [feed.watch(None), feed.watch(None)];
        assert!(operators.iter().all(Option::is_some));
    }
}
