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
    until_some(async || holds().await.then_some(())).await;
}

/// Waits for the first value that an attempt has, which it makes again and again.
pub async fn until_some<T>(mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    soon(async {
        loop {
            if let Some(value) = attempt().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}
