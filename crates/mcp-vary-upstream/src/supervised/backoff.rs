//! The pauses between attempts to connect.

use std::time::Duration;

use crate::config::UpstreamConfig;

/// Exponential backoff: pauses double up to a maximum, each shortened at random by up to a half.
#[derive(Debug)]
pub(super) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
    random: fn(&mut [u8]),
}

impl Backoff {
    pub(super) fn new(config: &UpstreamConfig) -> Self {
        let limits = &config.limits;
        let first = limits
            .backoff
            .clamp(SHORTEST, limits.max_backoff.max(SHORTEST));
        Self {
            first,
            longest: limits.max_backoff.max(first),
            next: first,
            random: config.fill_random,
        }
    }

    /// Starts again from the first pause if the connection was stable, judged by how long it lasted (`held`).
    pub(super) fn reset_after(&mut self, held: Duration) {
        if held >= self.longest {
            self.next = self.first;
        }
    }

    /// Whether there was no recent failure.
    pub(super) fn is_fresh(&self) -> bool {
        self.next == self.first
    }

    /// The pause before the next attempt.
    pub(super) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.longest);
        self.spread(pause)
    }

    /// The longest pause, for failures that are not transient.
    pub(super) fn longest_pause(&mut self) -> Duration {
        self.next = self.longest;
        self.spread(self.longest)
    }

    fn spread(&self, pause: Duration) -> Duration {
        let mut byte = [0];
        (self.random)(&mut byte);
        rounded(pause - pause / 2 * u32::from(u8::MAX - byte[0]) / u32::from(u8::MAX))
    }
}

/// `span` for a log line: in whole milliseconds, at least one.
pub(super) fn rounded(span: Duration) -> Duration {
    let micros = span.as_micros().max(1);
    Duration::from_millis(u64::try_from(micros.div_ceil(1000)).unwrap_or(u64::MAX))
}

/// A lower bound on the pause: a server that exits at once must not cause a busy loop.
const SHORTEST: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Target};

    fn backoff(first: u64, longest: u64, random: fn(&mut [u8])) -> Backoff {
        let limits = Limits {
            backoff: Duration::from_millis(first),
            max_backoff: Duration::from_millis(longest),
            ..Limits::default()
        };
        let mut config = UpstreamConfig::new("x", Target::command("x", [])).with_limits(limits);
        config.fill_random = random;
        Backoff::new(&config)
    }

    #[track_caller]
    fn pauses(backoff: &mut Backoff, expected: &[u64]) {
        let pauses = expected.iter().map(|_| backoff.pause().as_millis());
        let pauses: Vec<_> = pauses.collect();
        let expected: Vec<_> = expected.iter().map(|millis| u128::from(*millis)).collect();
        assert_eq!(pauses, expected);
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut backoff = backoff(250, 1500, |bytes| bytes.fill(255));
        pauses(&mut backoff, &[250, 500, 1000, 1500, 1500]);
    }

    #[test]
    fn chance_shortens_a_pause_by_up_to_a_half() {
        pauses(
            &mut backoff(200, 1000, |bytes| bytes.fill(0)),
            &[100, 200, 400, 500],
        );
        pauses(
            &mut backoff(255 * 2, 255 * 8, |bytes| bytes.fill(1)),
            &[256, 512],
        );
    }

    #[test]
    fn only_a_connection_that_held_as_long_as_the_longest_pause_did_not_fail() {
        let mut backoff = backoff(100, 1000, |bytes| bytes.fill(255));
        pauses(&mut backoff, &[100, 200]);
        backoff.reset_after(Duration::from_millis(999));
        pauses(&mut backoff, &[400]);
        backoff.reset_after(Duration::from_millis(1000));
        assert!(backoff.is_fresh());
        pauses(&mut backoff, &[100]);
    }

    #[test]
    fn what_cannot_pass_soon_waits_longest_at_once() {
        let mut backoff = backoff(100, 1000, |bytes| bytes.fill(255));
        assert_eq!(backoff.longest_pause().as_millis(), 1000);
        pauses(&mut backoff, &[1000]);
    }

    #[test]
    fn limits_that_make_no_sense_do_not_spin() {
        pauses(&mut backoff(0, 0, |bytes| bytes.fill(255)), &[1, 1]);
        pauses(&mut backoff(500, 100, |bytes| bytes.fill(255)), &[100, 100]);
    }
}
