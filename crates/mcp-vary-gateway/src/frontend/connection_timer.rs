//! The timer for the heads of the requests of one connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use mcp_vary_base::lock::ScopedLock;

/// A timer that stays registered with the runtime from one request to the next.
///
/// hyper makes a new `Sleep` for the head of every request. One that registers itself costs each request two turns at the
/// lock of the runtime's timers. The deadlines of a connection only move forward, so this one is registered once, for
/// the first deadline; when that has passed, it is registered again for the last one.
///
/// # Properties
///
/// Use one for each connection, with one `Sleep` at a time: the task that polled last is woken.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionTimer(Arc<ScopedLock<Registered>>);

/// The registration; `None` until a `Sleep` is polled.
type Registered = Option<Pin<Box<tokio::time::Sleep>>>;

impl Timer for ConnectionTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(ConnectionSleep {
            completes_at: deadline.into(),
            timer: self.clone(),
        })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

/// Completes at the deadline.
#[derive(Debug)]
struct ConnectionSleep {
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
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_sleep_ends_at_its_deadline_whatever_was_registered_before() {
        let timer = ConnectionTimer::default();
        for seconds in [3, 1, 2, 5, 0, 1] {
            let started = tokio::time::Instant::now();
            timer.sleep(seconds * SECOND).await;
            assert_eq!(started.elapsed().as_secs(), u64::from(seconds));
        }
    }

    /// As with the head of a request: the deadline of the one before must not end it.
    #[tokio::test(start_paused = true)]
    async fn a_dropped_sleep_ends_no_later_one() {
        let timer = ConnectionTimer::default();
        let started = tokio::time::Instant::now();
        for _ in 0..10 {
            let mut head = timer.sleep(3 * SECOND);
            let mut cx = Context::from_waker(std::task::Waker::noop());
            assert!(head.as_mut().poll(&mut cx).is_pending());
            drop(head);
            tokio::time::sleep(SECOND).await;
        }
        timer.sleep(3 * SECOND).await;
        assert_eq!(started.elapsed().as_secs(), 13);
    }

    /// Otherwise each request would register it again.
    #[tokio::test(start_paused = true)]
    async fn a_later_deadline_leaves_the_registration_as_it_is() {
        let timer = ConnectionTimer::default();
        let registered = || timer.0.lock().as_ref().map(|sleep| sleep.deadline());
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(timer.sleep(3 * SECOND).as_mut().poll(&mut cx).is_pending());
        let first = registered();
        assert!(timer.sleep(9 * SECOND).as_mut().poll(&mut cx).is_pending());
        assert_eq!(registered(), first);
        assert!(timer.sleep(SECOND).as_mut().poll(&mut cx).is_pending());
        assert!(registered() < first);
    }
}
