//! What the process is, and the memory that it uses.

use std::fs;

use crate::exposition::{Exposition, Value};
use crate::families;

impl Exposition {
    /// Adds the version of the program, the digest of its configuration, when it started in seconds since 1970-01-01 UTC,
    /// and its memory.
    pub fn add_process(&mut self, version: &str, config: Option<&str>, started_at: u64) {
        let configs = config.map(|digest| ([digest], Value::count(1)));
        self.add_by_labels(&families::CONFIG, configs);
        self.add_by_labels(&families::BUILD, [([version], Value::count(1))]);
        let started_at = usize::try_from(started_at).unwrap_or(usize::MAX);
        self.add_single(&families::START_TIME, Value::count(started_at));
        if let Some(bytes) = resident_memory() {
            self.add_single(&families::RESIDENT_MEMORY, Value::count(bytes));
        }
    }
}

/// The memory of the process that is in RAM, in bytes; `None` on systems that have no such file.
fn resident_memory() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}
