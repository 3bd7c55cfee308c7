//! A limit for every wait.

use std::time::Duration;

/// Waits for what happens at once unless something is broken.
///
/// # Panics
///
/// When it has not happened after a minute, which is longer than the slowest machine needs.
pub async fn soon<T>(expected: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, expected)
        .await
        .expect("it happens within a minute")
}

const LIMIT: Duration = Duration::from_secs(60);

/// Waits until something holds, which it looks at again and again.
pub async fn until(mut holds: impl AsyncFnMut() -> bool) {
    soon(async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
