//! The machine: the cores of processes, and their use of CPU and memory.

use std::fs;
use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores of the processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores {
    /// The core of the process under test.
    pub(crate) subject: usize,
    /// The core of the load and of the upstream servers.
    pub(crate) load: usize,
    /// The second core of a process under test with two threads: that of the load, unless there are more than two.
    pub(crate) second: usize,
    /// How many there are.
    pub(crate) count: usize,
}

impl Cores {
    /// The first two cores that this process may use; the same one twice if there is only one.
    pub(crate) fn find() -> io::Result<Self> {
        let allowed = sched_getaffinity(None)?;
        let cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        let cores: Vec<_> = cores.collect();
        let subject = cores.first().copied().unwrap_or(0);
        let load = cores.get(1).copied().unwrap_or(subject);
        Ok(Self {
            subject,
            load,
            second: cores.get(2).copied().unwrap_or(load),
            count: cores.len(),
        })
    }

    /// Whether the process under test has a core of its own.
    pub(crate) fn are_two(self) -> bool {
        self.subject != self.load
    }
}

/// Keeps the calling thread, and whatever it starts from now on, on `cores`.
pub(crate) fn pin(cores: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Lets this process have as many open files as it may: ten thousand connections need more than is usual.
pub(crate) fn raise_open_files() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    Ok(setrlimit(Resource::Nofile, Rlimit { current, ..limit })?)
}

/// The CPU time and memory of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Nanoseconds on a core, of all its threads.
    pub(crate) cpu: u64,
    /// Bytes of memory that are resident now.
    pub(crate) resident: u64,
}

impl Usage {
    /// Reads the usage of `process`, without its children.
    pub(crate) fn of(process: u32) -> io::Result<Self> {
        let mut cpu = 0;
        for task in fs::read_dir(format!("/proc/{process}/task"))? {
            // The thread may have ended meanwhile.
            let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else {
                continue;
            };
            let first = text.split(' ').next();
            cpu += first.and_then(|first| first.parse().ok()).unwrap_or(0);
        }
        let status = fs::read_to_string(format!("/proc/{process}/status"))?;
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|remaining| remaining.trim().strip_suffix("kB"))
            .and_then(|number| number.trim().parse::<u64>().ok())
            .unwrap_or(0);
        Ok(Self {
            cpu,
            resident: resident * 1024,
        })
    }
}
