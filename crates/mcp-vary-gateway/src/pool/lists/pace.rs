//! The pace at which the lists of one connection are read again.

use std::time::Duration;

use tokio::time::Instant;

/// When the lists of a connection may be read again: once a second, however often the server announces changes. A
/// server announces several at its start, and so the first readings after a quiet time do not wait.
#[derive(Debug)]
pub(crate) struct ReadingPace {
    next: Instant,
    /// The readings left that do not wait.
    burst: u32,
}

impl ReadingPace {
    pub(crate) fn new() -> Self {
        Self {
            next: Instant::now(),
            burst: BURST,
        }
    }

    /// Waits until lists may be read.
    pub(crate) async fn wait(&mut self) {
        let now = Instant::now();
        if now >= self.next + QUIET {
            self.burst = BURST;
        }
        if now < self.next {
            match self.burst.checked_sub(1) {
                Some(left) => self.burst = left,
                None => tokio::time::sleep_until(self.next).await,
            }
        }
    }

    /// Lists were read.
    pub(crate) fn note_reading(&mut self) {
        self.next = Instant::now() + READ_PAUSE;
    }
}

/// The shortest time between two readings of a list.
pub(crate) const READ_PAUSE: Duration = Duration::from_secs(1);
/// One for the connection in the era of the first client, and one for each kind of list.
const BURST: u32 = 4;
/// After this time without a reading, the next ones do not wait.
const QUIET: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_announces_without_end_is_read_once_a_second() {
        let began = Instant::now();
        let mut pace = ReadingPace::new();
        let mut waits = Vec::new();
        for _ in 0..8 {
            pace.wait().await;
            pace.note_reading();
            waits.push(began.elapsed().as_secs());
        }
        assert_eq!(waits, [0, 0, 0, 0, 0, 1, 2, 3]);
        tokio::time::sleep(READ_PAUSE + QUIET).await;
        let began = Instant::now();
        for _ in 0..BURST {
            pace.wait().await;
            pace.note_reading();
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
