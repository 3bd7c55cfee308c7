//! How long a request waits for a connection.

use std::pin::pin;

use mcp_vary_base::lock::ScopedLock;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use crate::config::Limits;

/// Waits up to `limits.ready_timeout` for what `is_over` says, from the turn of its program to start on; see
/// [`Shared::turn_began`]. The turn is waited for up to `limits.handshake`.
///
/// [`Shared::turn_began`]: super::shared::Shared::turn_began
pub(super) async fn wait<T>(
    is_over: impl Future<Output = T>,
    limits: &Limits,
    turn_began: &ScopedLock<Option<Instant>>,
) -> Result<T, Elapsed> {
    let mut is_over = pin!(is_over);
    let began = Instant::now();
    let last_turn = began + limits.handshake;
    let until = || {
        let from = turn_began.lock().unwrap_or_else(Instant::now);
        from.max(began).min(last_turn) + limits.ready_timeout
    };
    let mut deadline = until();
    loop {
        let over = timeout_at(deadline, &mut is_over).await;
        let later = until();
        if over.is_ok() || later <= deadline {
            return over;
        }
        deadline = later;
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use mcp_vary_base::lock::Lock;
    use tokio::time::sleep;

    use super::*;

    fn limits() -> Limits {
        Limits {
            ready_timeout: Duration::from_secs(1),
            handshake: Duration::from_secs(60),
            ..Limits::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_whose_turn_comes_late_has_the_whole_time_from_then_on() {
        let turn_began = Lock::new(None);
        let is_over = async {
            sleep(Duration::from_secs(30)).await;
            *turn_began.lock() = Some(Instant::now());
            sleep(Duration::from_millis(900)).await;
        };
        wait(is_over, &limits(), &turn_began).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_is_waited_for_as_long_as_a_start_may_take() {
        let began = Instant::now();
        let turn_began = Lock::new(None);
        wait(pending::<()>(), &limits(), &turn_began)
            .await
            .unwrap_err();
        assert_eq!(began.elapsed(), Duration::from_secs(61));
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_had_its_turn_has_the_time_from_the_request_on() {
        let turn_began = Lock::new(Some(Instant::now()));
        sleep(Duration::from_secs(5)).await;
        let began = Instant::now();
        wait(pending::<()>(), &limits(), &turn_began)
            .await
            .unwrap_err();
        assert_eq!(began.elapsed(), Duration::from_secs(1));
    }
}
