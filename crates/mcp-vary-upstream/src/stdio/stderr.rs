//! The standard error of a process: how much of it is logged, and what an error repeats.

use std::collections::VecDeque;
use std::time::Duration;

use mcp_vary_base::lock::ScopedLock;
use tokio::time::Instant;

/// The last lines that a process wrote to its standard error.
#[derive(Debug, Default)]
pub(super) struct StderrTail(ScopedLock<VecDeque<String>>);

impl StderrTail {
    pub(super) fn push(&self, line: String) {
        let mut lines = self.0.lock();
        if lines.len() == STDERR_TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The last lines, oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }

    /// The last lines, and the first one before them that names an error: stack traces follow it.
    pub(super) fn text(&self) -> String {
        let lines = self.0.lock();
        let older = lines.len().saturating_sub(STDERR_SHOWN_LINES);
        let is_error = |line: &&String| line.to_ascii_lowercase().contains("error");
        let error = lines.iter().take(older).find(is_error);
        let error = error.into_iter().flat_map(|line| [line.as_str(), "..."]);
        let shown = error.chain(lines.iter().skip(older).map(String::as_str));
        shown.collect::<Vec<_>>().join(" | ")
    }
}

/// How much of a process's standard error is logged.
pub(super) struct LogRate<'a> {
    server: &'a str,
    /// When the second began.
    began: Instant,
    logged: usize,
    left_out: usize,
}

impl<'a> LogRate<'a> {
    pub(super) fn new(server: &'a str) -> Self {
        Self {
            server,
            began: Instant::now(),
            logged: 0,
            left_out: 0,
        }
    }

    /// When to log how many lines were omitted; `None` while none were.
    pub(super) fn ends(&self) -> Option<Instant> {
        (self.left_out > 0).then(|| self.began + SECOND)
    }

    /// Begins another second, and logs how many lines the previous one omitted.
    pub(super) fn begin(&mut self) {
        if self.left_out > 0 {
            let (server, left_out) = (self.server, self.left_out);
            tracing::debug!(target: STDERR, server, "{left_out} lines left out");
        }
        (self.began, self.logged, self.left_out) = (Instant::now(), 0, 0);
    }

    pub(super) fn log(&mut self, line: &str) {
        if self.began.elapsed() >= SECOND {
            self.begin();
        }
        if self.logged == LOG_RATE {
            self.left_out += 1;
            return;
        }
        self.logged += 1;
        let server = self.server;
        tracing::debug!(target: STDERR, server, "{line}");
    }
}

/// The target of log events that repeat what a server wrote to its standard error.
const STDERR: &str = "mcp_vary_upstream::stderr";
const STDERR_TAIL_LINES: usize = 40;
/// The lines of them that an error repeats.
const STDERR_SHOWN_LINES: usize = 5;
/// Lines of a second that are logged; a traceback has fewer.
pub(super) const LOG_RATE: usize = 100;
const SECOND: Duration = Duration::from_secs(1);
