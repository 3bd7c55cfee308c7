//! A timer for what happens with every request of one connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use mcp_vary_base::lock::ScopedLock;

/// A timer that stays registered with the runtime from one request to the next.
///
/// A `Sleep` of tokio that is made for each request costs it two turns at the lock of the runtime's timers. If it is due
/// before all others, it also wakes the runtime: two system calls. The deadlines of a connection only move forward, so
/// this one is registered once, for the first deadline; when that has passed, it is registered again for the last one.
///
/// # Properties
///
/// Use one for each connection and purpose, with one sleep at a time: the task that polled last is woken.
#[derive(Clone, Debug, Default)]
pub struct ConnectionTimer(Arc<ScopedLock<Registered>>);

/// The registration; `None` until a sleep is polled.
type Registered = Option<Pin<Box<tokio::time::Sleep>>>;

impl ConnectionTimer {
    /// Completes after `duration`.
    pub fn wait(&self, duration: Duration) -> ConnectionSleep {
        self.wait_until(tokio::time::Instant::now() + duration)
    }

    fn wait_until(&self, completes_at: tokio::time::Instant) -> ConnectionSleep {
        ConnectionSleep {
            completes_at,
            timer: self.clone(),
        }
    }
}

impl Timer for ConnectionTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(self.wait(duration))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(self.wait_until(deadline.into()))
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

/// Completes at the deadline.
#[derive(Debug)]
pub struct ConnectionSleep {
    completes_at: tokio::time::Instant,
    timer: ConnectionTimer,
}

impl Sleep for ConnectionSleep {}

impl Future for ConnectionSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.completes_at;
        let mut registered = self.timer.0.lock();
        let sleep = registered.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }
        while sleep.as_mut().poll(cx).is_ready() {
            if sleep.deadline() >= deadline {
                return Poll::Ready(());
            }
            // That was the deadline of an earlier request.
            sleep.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_sleep_ends_at_its_deadline_whatever_was_registered_before() {
        let timer = ConnectionTimer::default();
        for seconds in [3, 1, 2, 5, 0, 1] {
            let started = tokio::time::Instant::now();
            timer.wait(seconds * SECOND).await;
            assert_eq!(started.elapsed().as_secs(), u64::from(seconds));
        }
    }

    /// As with the head of a request: the deadline of the one before must not end it.
    #[tokio::test(start_paused = true)]
    async fn a_dropped_sleep_ends_no_later_one() {
        let timer = ConnectionTimer::default();
        let started = tokio::time::Instant::now();
        for _ in 0..10 {
            let mut head = pin!(timer.wait(3 * SECOND));
            let mut cx = Context::from_waker(std::task::Waker::noop());
            assert!(head.as_mut().poll(&mut cx).is_pending());
            tokio::time::sleep(SECOND).await;
        }
        timer.wait(3 * SECOND).await;
        assert_eq!(started.elapsed().as_secs(), 13);
    }

    /// Otherwise each request would register it again.
    #[tokio::test(start_paused = true)]
    async fn a_later_deadline_leaves_the_registration_as_it_is() {
        let timer = ConnectionTimer::default();
        let registered = || timer.0.lock().as_ref().map(|sleep| sleep.deadline());
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(pin!(timer.wait(3 * SECOND)).poll(&mut cx).is_pending());
        let first = registered();
        assert!(pin!(timer.wait(9 * SECOND)).poll(&mut cx).is_pending());
        assert_eq!(registered(), first);
        assert!(pin!(timer.wait(SECOND)).poll(&mut cx).is_pending());
        assert!(registered() < first);
    }
}
