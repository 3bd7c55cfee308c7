//! The end of what a process writes to standard error.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::BufReader;
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;

use crate::json::cut;
use crate::lines::next_line;

/// The most bytes of a line that are read.
const LINE: usize = 4 << 20;

/// The last lines that are stored, and the most characters of one.
const LINES: usize = 40;
const CHARACTERS: usize = 400;

/// The lines of them that a message repeats.
const SHOWN_LINES: usize = 5;

/// The last lines that a process wrote to standard error.
#[derive(Clone, Debug, Default)]
pub(crate) struct StderrTail {
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl StderrTail {
    /// Reads `stderr` to its end, in a task of its own.
    pub(crate) fn read(stderr: ChildStderr) -> (Self, JoinHandle<()>) {
        let tail = Self::default();
        let task = tokio::spawn(tail.clone().read_lines(stderr));
        (tail, task)
    }

    async fn read_lines(self, stderr: ChildStderr) {
        let mut reader = BufReader::new(stderr);
        loop {
            let line = match next_line(&mut reader, LINE).await {
                Ok(Some(line)) => line,
                // What is not read would stop the process.
                Err(error) if error.kind() == ErrorKind::InvalidData => continue,
                Ok(None) | Err(_) => return,
            };
            let line = cut(String::from_utf8_lossy(&line).trim(), CHARACTERS);
            if line.is_empty() {
                continue;
            }
            let mut lines = self.lock();
            if lines.len() == LINES {
                lines.pop_front();
            }
            lines.push_back(line);
        }
    }

    /// The last lines, and the first one before them that names an error: stack traces follow it.
    pub(crate) fn summary(&self) -> String {
        let lines = self.lock();
        let older = lines.len().saturating_sub(SHOWN_LINES);
        let is_error = |line: &&String| line.to_ascii_lowercase().contains("error");
        let error = lines.iter().take(older).find(is_error);
        let excerpt = error.into_iter().flat_map(|line| [line.as_str(), "..."]);
        let shown = excerpt.chain(lines.iter().skip(older).map(String::as_str));
        shown.collect::<Vec<_>>().join(" | ")
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
