//! Turns to start programs: on a busy machine a few start at a time, so that each is ready before its time is over.

use std::pin::pin;
use std::sync::LazyLock;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

/// Waits for a turn to start a program. `None` begins without one, as the machine has nothing else to do.
pub(super) async fn next() -> Option<SemaphorePermit<'static>> {
    static TURNS: LazyLock<Turns> = LazyLock::new(|| {
        let cores = available_parallelism().map_or(1, |cores| cores.get());
        Turns::new(2 * cores, |most| {
            runnable().is_none_or(|runnable| runnable > most)
        })
    });
    TURNS.next().await
}

/// Starts a program in its turn, which ends when it is ready, or after a while.
pub(super) async fn with<T>(
    permit: Option<SemaphorePermit<'static>>,
    starting: impl Future<Output = T>,
) -> T {
    let mut starting = pin!(starting);
    let ready = tokio::time::timeout(LONGEST_TURN, &mut starting).await;
    drop(permit);
    match ready {
        Ok(ready) => ready,
        Err(_elapsed) => starting.await,
    }
}

/// Turns of all servers.
struct Turns {
    /// Those who begin in their turn.
    turns: Semaphore,
    /// Held by the one who is next.
    queue: Mutex<()>,
    most: usize,
    /// Whether the machine has more to do than this.
    is_busy: fn(usize) -> bool,
}

impl Turns {
    fn new(most: usize, is_busy: fn(usize) -> bool) -> Self {
        Self {
            turns: Semaphore::new(most),
            queue: Mutex::const_new(()),
            most,
            is_busy,
        }
    }

    async fn next(&self) -> Option<SemaphorePermit<'_>> {
        let _next = self.queue.lock().await;
        loop {
            match tokio::time::timeout(PACE, self.turns.acquire()).await {
                Ok(permit) => return permit.ok(),
                // Many programs only wait while they start, as for the network, or hang.
                Err(_elapsed) if !(self.is_busy)(self.most) => return None,
                Err(_elapsed) => {}
            }
        }
    }
}

/// How many tasks of the machine run or could run, if the system says so.
fn runnable() -> Option<usize> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    let tasks = load.split_whitespace().nth(3)?;
    tasks.split_once('/')?.0.parse().ok()
}

/// How long a turn is at most. A program that hangs holds up the others no longer.
const LONGEST_TURN: Duration = Duration::from_secs(20);

/// The pause between two starts without a turn.
const PACE: Duration = Duration::from_millis(25);

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_few_start_at_a_time_on_a_busy_machine() {
        let turns = Turns::new(2, |_| true);
        let (first, _second) = (turns.next().await, turns.next().await);
        let third = turns.next();
        assert!(
            tokio::time::timeout(Duration::from_secs(60), third)
                .await
                .is_err()
        );
        drop(first);
        assert!(turns.next().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn programs_that_only_wait_hold_up_nobody() {
        let turns = Turns::new(2, |_| false);
        let began = Instant::now();
        let held = futures_util::future::join_all((0..100).map(|_| turns.next())).await;
        assert_eq!(held.iter().flatten().count(), 2);
        // Not all at once, so that what they do is seen.
        assert_eq!(began.elapsed(), 98 * PACE);
    }

    #[test]
    fn the_system_says_how_many_tasks_run() {
        assert!(!cfg!(target_os = "linux") || runnable().is_some_and(|count| count > 0));
    }
}
