//! The load: clients that run the scenarios, some at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::client_run::ClientRun;
use super::deployment::{Deployment, SERVERS};
use super::memory::{EACH, MemorySeries};
use super::scenarios::Scenarios;
use crate::process;

/// The clients since the gateway was started.
pub(super) struct ClientLoad {
    deployment: Deployment,
    scenarios: Scenarios,
    next: AtomicUsize,
    ended: AtomicUsize,
    memory_series: Mutex<MemorySeries>,
}

/// When the load ends.
#[derive(Clone, Copy)]
pub(super) enum Until {
    /// After so many clients, earlier ones included.
    All(usize),
    /// When memory is level, but not before the warm-up has passed since this instant.
    Level(Instant),
}

/// Clients at once.
pub(super) const AT_ONCE: usize = 16;
/// If memory is not level after so many clients, it never will be.
const MOST: usize = 10_000;

impl ClientLoad {
    pub(super) fn new(deployment: Deployment, scenarios: Scenarios) -> Self {
        Self {
            deployment,
            scenarios,
            next: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            memory_series: Mutex::default(),
        }
    }

    /// Runs every scenario in turn, [`AT_ONCE`] clients at a time, and returns the first failures.
    pub(super) async fn run(self: &Arc<Self>, until: Until) -> Vec<String> {
        let mut workers = JoinSet::new();
        for _ in 0..AT_ONCE {
            let load = Arc::clone(self);
            workers.spawn(async move {
                let mut failed = Vec::new();
                while let Some(number) = load.next(until) {
                    failed.extend(load.run_client(number).await.err());
                    failed.extend(load.read_memory().err());
                }
                failed
            });
        }
        let mut failed: Vec<String> = workers.join_all().await.into_iter().flatten().collect();
        failed.sort();
        failed.truncate(20);
        failed
    }

    /// The number of clients that have ended.
    pub(super) fn ended(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }

    pub(super) fn memory_series(&self) -> MutexGuard<'_, MemorySeries> {
        self.memory_series
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Each scenario, and how many clients after `first` ran it.
    pub(super) fn scenarios(&self, first: usize) -> impl Iterator<Item = (&'static str, usize)> {
        self.scenarios.all().map(move |scenario| {
            let numbers = first..self.ended();
            let scenarios = numbers.map(|number| self.scenarios.of_client(number).0.name);
            (
                scenario.name,
                scenarios.filter(|name| *name == scenario.name).count(),
            )
        })
    }

    /// The number of the next client, unless the load ends.
    fn next(&self, until: Until) -> Option<usize> {
        let more = |number| match until {
            Until::All(all) => number < all,
            Until::Level(since) => {
                number < MOST && (since.elapsed() < WARM || !self.memory_series().is_level())
            }
        };
        let next = |number| more(number).then_some(number + 1);
        let number = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        number.ok()
    }

    /// Runs the client `number` to its end.
    async fn run_client(&self, number: usize) -> Result<(), String> {
        let (scenario, repetition) = self.scenarios.of_client(number);
        let server = &SERVERS[repetition % SERVERS.len()];
        let run = ClientRun {
            deployment: &self.deployment,
            server,
            number,
        };
        let reason = match tokio::time::timeout(CLIENT_LIMIT, (scenario.run)(run)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(reason)) => reason,
            Err(_) => "it does not end".to_owned(),
        };
        let reason: String = reason.chars().take(MOST_CHARACTERS).collect();
        Err(format!("{}, {}: {reason}", scenario.name, server.name))
    }

    /// Counts a client that has ended, and measures memory after every [`EACH`].
    fn read_memory(&self) -> Result<(), String> {
        let ended = self.ended.fetch_add(1, Ordering::Relaxed) + 1;
        if ended.is_multiple_of(EACH) {
            let resident = process::memory(self.deployment.process)?;
            self.memory_series().push(resident);
        }
        Ok(())
    }
}

/// Longer than the gateway retains anything of a client.
const WARM: Duration = Duration::from_secs(40);
/// The most characters of a failure.
const MOST_CHARACTERS: usize = 600;
/// Longer than any client takes on a busy machine.
const CLIENT_LIMIT: Duration = Duration::from_secs(60);
