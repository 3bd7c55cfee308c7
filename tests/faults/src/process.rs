//! Processes: starting, stopping and inspecting them.

use std::ffi::OsStr;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;

/// More than anything takes on a busy machine; it only ends what hangs.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A program that ends with this one, however this one ends.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    // The kernel's parent-death signal; `setpriv` is part of every Debian, and becomes the program.
    let mut command = if cfg!(target_os = "linux") {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command
        .stdin(Stdio::null())
        .env_remove("VARY_LOG")
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// Sends a signal to one process.
pub(crate) fn signal(process: u32, signal: Signal) -> Result<(), String> {
    let number = i32::try_from(process).ok().and_then(Pid::from_raw);
    let number = number.ok_or("it has no process id")?;
    kill_process(number, signal).map_err(|error| format!("process {process}: {error}"))
}

/// Whether `process` runs and was started with `mark` among its arguments: numbers are used again.
pub(crate) fn is_running(process: u32, mark: &str) -> bool {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).contains(mark)
}

/// The open file descriptors of a process.
pub(crate) fn descriptors(process: u32) -> Result<usize, String> {
    let path = format!("/proc/{process}/fd");
    let entries = fs::read_dir(&path).map_err(|error| format!("{path}: {error}"))?;
    Ok(entries.count())
}

/// How many children a process has, the dead that it did not wait for among them.
pub(crate) fn children(process: u32) -> Result<usize, String> {
    let entries = fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?;
    let stats =
        entries.filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    Ok(stats.filter(|stat| parent(stat) == Some(process)).count())
}

/// The processes that were started by a path that begins with `mark`.
pub(crate) fn marked(mark: &str) -> Result<Vec<u32>, String> {
    let entries = fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?;
    let by_path = |process: &u32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        line.starts_with(mark.as_bytes())
    };
    let processes = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(processes.filter(by_path).collect())
}

/// KiB of a process that are resident.
pub(crate) fn memory(process: u32) -> Result<usize, String> {
    in_status(process, "VmRSS:")
}

/// KiB of a process that were resident at most since it was told to [forget](forget_peak) that.
pub(crate) fn peak(process: u32) -> Result<usize, String> {
    in_status(process, "VmHWM:")
}

/// Has the kernel begin anew to note how much of a process is resident at most.
pub(crate) fn forget_peak(process: u32) -> Result<(), String> {
    let path = format!("/proc/{process}/clear_refs");
    fs::write(&path, "5").map_err(|error| format!("{path}: {error}"))
}

/// Waits until a process has used no time of a processor for a second.
///
/// # Errors
///
/// When it is gone.
pub(crate) fn until_calm(process: u32) -> Result<(), String> {
    let path = format!("/proc/{process}/stat");
    let (mut last, mut calm) = (None, 0);
    while calm < 10 {
        let stat = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let used = used(&stat);
        calm = if used == last { calm + 1 } else { 0 };
        last = used;
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// The 14th and 15th field of `/proc/PID/stat`: the ticks that were spent in the process and for it in the kernel.
fn used(stat: &str) -> Option<(u64, u64)> {
    let (_, remaining) = stat.rsplit_once(')')?;
    let mut fields = remaining.split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn in_status(process: u32, field: &str) -> Result<usize, String> {
    let path = format!("/proc/{process}/status");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| format!("{path} says no {field}"))
}

/// The fourth field of `/proc/PID/stat`; the second, the name, may hold anything but ends with `)`.
fn parent(stat: &str) -> Option<u32> {
    let (_, remaining) = stat.rsplit_once(')')?;
    remaining.split_whitespace().nth(1)?.parse().ok()
}

/// Asks again and again until `what` is there.
///
/// # Errors
///
/// The last reason why it is not, when that lasts too long.
pub(crate) async fn until<T>(mut what: impl FnMut() -> Result<T, String>) -> Result<T, String> {
    let begun = tokio::time::Instant::now();
    loop {
        match what() {
            Ok(found) => return Ok(found),
            Err(why) if begun.elapsed() > LONG => return Err(why),
            Err(_) => tokio::time::sleep(POLL).await,
        }
    }
}

const POLL: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_process_is_found_behind_any_name() {
        let stat = "12 (a) b) S 7 12 12 0 -1 4194560 3 0 0 0 21 8 0 0 20";
        assert_eq!(used(stat), Some((21, 8)));
        assert_eq!(used("nonsense"), None);
    }

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent("12 (a) b) S 7 12 12 0"), Some(7));
        assert_eq!(parent("nonsense"), None);
    }
}
