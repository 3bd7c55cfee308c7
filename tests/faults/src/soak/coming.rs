//! Clients that come and go, some at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::ground::{Ground, SERVERS};
use super::memory::{Course, EACH};
use super::visit::Visit;
use super::ways::Ways;
use crate::process;

/// All that have come since the gateway was started.
pub(super) struct Coming {
    ground: Ground,
    ways: Ways,
    next: AtomicUsize,
    gone: AtomicUsize,
    course: Mutex<Course>,
}

/// How long they come.
#[derive(Clone, Copy)]
pub(super) enum Until {
    /// So many have come, those before among them.
    All(usize),
    /// Memory is level, after at least so long.
    Level(Instant),
}

/// Clients at once.
pub(super) const AT_ONCE: usize = 16;
/// When memory is not level after so many, it never will be.
const MOST: usize = 10_000;

impl Coming {
    pub(super) fn new(ground: Ground, ways: Ways) -> Self {
        Self {
            ground,
            ways,
            next: AtomicUsize::new(0),
            gone: AtomicUsize::new(0),
            course: Mutex::default(),
        }
    }

    /// Lets clients come in every way in turn, [`AT_ONCE`] at a time; what went otherwise than it should.
    pub(super) async fn come(self: &Arc<Self>, until: Until) -> Vec<String> {
        let mut workers = JoinSet::new();
        for _ in 0..AT_ONCE {
            let coming = Arc::clone(self);
            workers.spawn(async move {
                let mut failed = Vec::new();
                while let Some(number) = coming.next(until) {
                    failed.extend(coming.one(number).await.err());
                    failed.extend(coming.read_memory().err());
                }
                failed
            });
        }
        let mut failed: Vec<String> = workers.join_all().await.into_iter().flatten().collect();
        failed.sort();
        failed.truncate(20);
        failed
    }

    /// How many have gone.
    pub(super) fn gone(&self) -> usize {
        self.gone.load(Ordering::Relaxed)
    }

    pub(super) fn course(&self) -> MutexGuard<'_, Course> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Each way, and how many went it of those that came after `first`.
    pub(super) fn ways(&self, first: usize) -> impl Iterator<Item = (&'static str, usize)> {
        self.ways.all().map(move |way| {
            let numbers = first..self.gone();
            let ways = numbers.map(|number| self.ways.of_client(number).0.name);
            (way.name, ways.filter(|name| *name == way.name).count())
        })
    }

    /// The number of the next client, if one is to come.
    fn next(&self, until: Until) -> Option<usize> {
        let more = |number| match until {
            Until::All(all) => number < all,
            Until::Level(since) => {
                number < MOST && (since.elapsed() < WARM || !self.course().is_level())
            }
        };
        let next = |number| more(number).then_some(number + 1);
        let number = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        number.ok()
    }

    /// The client `number`, to its end.
    async fn one(&self, number: usize) -> Result<(), String> {
        let (way, turn) = self.ways.of_client(number);
        let server = &SERVERS[turn % SERVERS.len()];
        let visit = Visit {
            ground: &self.ground,
            server,
            number,
        };
        let why = match tokio::time::timeout(PATIENCE, (way.go)(visit)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(why)) => why,
            Err(_) => "it does not end".to_owned(),
        };
        let why: String = why.chars().take(LONGEST).collect();
        Err(format!("{}, {}: {why}", way.name, server.name))
    }

    /// A client has gone.
    fn read_memory(&self) -> Result<(), String> {
        let gone = self.gone.fetch_add(1, Ordering::Relaxed) + 1;
        if gone.is_multiple_of(EACH) {
            let resident = process::memory(self.ground.process)?;
            self.course().push(resident);
        }
        Ok(())
    }
}

/// Longer than anything of a client is kept.
const WARM: Duration = Duration::from_secs(40);
/// What is said of a client that meets what it should not.
const LONGEST: usize = 600;
/// More than any client takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
