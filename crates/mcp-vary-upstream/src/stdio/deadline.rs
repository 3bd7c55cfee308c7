//! When a program that is not ready has had its time: one that starts slowly still computes, and one that hangs does not.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Connection, Shared};
use crate::config::Target;
use crate::connect_error::{ConnectError, RAISE_START_TIMEOUT};
use crate::error::UpstreamError;

/// Ends `handshaking` at the deadline, or later while the program still computes.
pub(super) async fn with_deadline<T>(
    deadline: Instant,
    connection: &Connection,
    stop: &CancellationToken,
    handshaking: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, ConnectError> {
    let mut handshaking = pin!(stop.run_until_cancelled(handshaking));
    let shared = &connection.shared;
    let limit = shared.limits.handshake;
    let over = pin!(async {
        tokio::time::sleep_until(deadline.checked_sub(limit / 4).unwrap_or(deadline)).await;
        for _ in 0..MOST_EXTENSIONS {
            if !still_computes(shared, limit / 4).await {
                return;
            }
            tokio::time::sleep(limit * 3 / 4).await;
        }
    });
    tokio::select! {
        biased;
        result = &mut handshaking => match result {
            Some(result) => result,
            None => Err(UpstreamError::closed_by_gateway(&shared.server).into()),
        },
        () = over => Err(ConnectError::Timeout {
            server: Arc::clone(&shared.server),
            limit,
            observed: shared.how_far() + &start_advice(shared),
        }),
    }
}

/// Whether the program computes during the next `time`, however small its part of a busy machine is.
async fn still_computes(shared: &Shared, time: Duration) -> bool {
    let computed = async || computed_by(shared.group?).await;
    let before = computed().await;
    tokio::time::sleep(time).await;
    let least = (time / LEAST_SHARE).max(2 * TICK);
    matches!((before, computed().await), (Some(before), Some(after)) if after >= before + least)
}

/// How often a program that computes gets its time to be ready once more.
const MOST_EXTENSIONS: u32 = 9;
/// Of this part of the time a program computes at least, unless it hangs.
const LEAST_SHARE: u32 = 200;

/// What to do about a server that is not ready in time.
fn start_advice(shared: &Shared) -> String {
    match shared.target.package_runner() {
        // It downloads the server, and has written nothing.
        Some(runner) if !shared.has_output() => format!(
            "; `{runner}` has to download what is not on this machine yet: can its registry be reached? If it only needs \
             longer, {RAISE_START_TIMEOUT}"
        ),
        _ if matches!(shared.target, Target::InProcess(_)) => String::new(),
        _ => format!("; if it downloads or builds first, {RAISE_START_TIMEOUT}"),
    }
}

/// The time for which the living processes of a group have computed. `None` where the system does not tell it.
async fn computed_by(group: u32) -> Option<Duration> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    // There may be thousands of processes.
    let reading = tokio::task::spawn_blocking(move || {
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let stats = processes
            .filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
        stats.filter_map(|stat| ticks(&stat, group)).sum::<u64>()
    });
    Some(TICK * u32::try_from(reading.await.ok()?).ok()?)
}

/// The unit of the kernel for these times.
const TICK: Duration = Duration::from_millis(10);

/// The ticks of a process that is in this group, by its `/proc/<pid>/stat`.
fn ticks(stat: &str, group: u32) -> Option<u64> {
    // The name of the program stands in parentheses, and may have others.
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    if fields.get(2)?.parse() != Ok(group) {
        return None;
    }
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(ticks(11)? + ticks(12)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_counts_in_its_group_whatever_its_name_is() {
        let stat = "7 (a) b (c) R 1 42 42 0 -1 4194304 90 0 0 0 12 3 5 6 20 0 1 0 99 1000 10";
        assert_eq!(ticks(stat, 42), Some(15));
        assert_eq!(ticks(stat, 1), None);
        assert_eq!(ticks("7 (a) R 1 42", 42), None);
        assert_eq!(ticks("", 42), None);
    }
}
