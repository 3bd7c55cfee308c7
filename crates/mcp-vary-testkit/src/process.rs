//! Processes that a server has started.

use std::fmt::Display;

use crate::wait::until;

/// Whether a process runs. A zombie does not: some containers never collect it.
pub fn is_alive(process: impl Display) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Waits until a process has ended.
pub async fn is_gone(process: impl Display) {
    until(async || !is_alive(&process)).await;
}
