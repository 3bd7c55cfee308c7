//! The time for which a program has computed, which tells one that starts slowly from one that hangs.

use std::time::Duration;

/// The time for which the living processes of a group have computed. `None` where the system does not tell it.
pub(super) async fn of_group(group: u32) -> Option<Duration> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    // There may be thousands of processes.
    let reading = tokio::task::spawn_blocking(move || {
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let stats = processes.filter_map(|it| std::fs::read_to_string(it.path().join("stat")).ok());
        stats.filter_map(|stat| ticks(&stat, group)).sum::<u64>()
    });
    Some(TICK * u32::try_from(reading.await.ok()?).ok()?)
}

/// The unit of the kernel for these times.
pub(super) const TICK: Duration = Duration::from_millis(10);

/// The ticks of a process that is in this group, by its `/proc/<pid>/stat`.
fn ticks(stat: &str, group: u32) -> Option<u64> {
    // The name of the program stands in parentheses, and may have others.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
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
