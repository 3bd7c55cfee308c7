//! The standard error of a process: how much of it is logged, and what an error repeats.

use std::collections::VecDeque;
use std::time::Duration;

use mcp_vary_base::lock::ScopedLock;
use mcp_vary_wire::sanitize::excerpt;
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

    /// The last lines that a status shows, oldest first.
    pub(super) fn shown_lines(&self) -> Vec<String> {
        let lines = self.0.lock();
        let older = lines.len().saturating_sub(STDERR_SHOWN_LINES);
        let shown = lines.iter().skip(older);
        shown
            .map(|line| excerpt(line.as_bytes(), SHOWN_CHARACTERS))
            .collect()
    }

    /// The last lines, and the first one before them that names an error: stack traces follow it.
    pub(super) fn text(&self) -> String {
        let lines = self.0.lock();
        if let Some(text) = npm_error(&lines) {
            return text;
        }
        let older = lines.len().saturating_sub(STDERR_SHOWN_LINES);
        let is_error = |line: &&String| line.to_ascii_lowercase().contains("error");
        let error = lines.iter().take(older).find(is_error);
        let first = error.into_iter().flat_map(|line| [line.as_str(), "..."]);
        let shown = first.chain(lines.iter().skip(older).map(String::as_str));
        shown.collect::<Vec<_>>().join(" | ")
    }
}

/// The first lines of an error of npm, which precedes each line with its name and the code of the error, and ends with advice
/// and the path of a log.
fn npm_error(lines: &VecDeque<String>) -> Option<String> {
    let of_npm = |line: &String| {
        let text = line
            .strip_prefix("npm error")
            .or_else(|| line.strip_prefix("npm ERR!"));
        text.map(|text| text.trim().to_owned())
    };
    // Others follow if a server was started.
    of_npm(lines.back()?)?;
    let mut errors = lines.iter().filter_map(of_npm);
    let code = errors.next()?;
    let number = code.strip_prefix("code E").unwrap_or("code");
    let details = errors.map(|text| text.trim_start_matches(number).trim().to_owned());
    let first = details.filter(|text| !text.is_empty()).take(NPM_LINES);
    let texts: Vec<_> = std::iter::once(format!("npm error {code}"))
        .chain(first)
        .collect();
    Some(texts.join(" | "))
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
            let left_out = self.left_out;
            tracing::debug!(target: STDERR, server = self.server, "{left_out} lines left out");
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
/// The lines of an error of npm that are shown after the first.
const NPM_LINES: usize = 2;
/// The lines of them that an error repeats, and a status shows.
const STDERR_SHOWN_LINES: usize = 5;
/// The characters of each line that a status shows.
const SHOWN_CHARACTERS: usize = 200;
/// Lines of a second that are logged; a traceback has fewer.
pub(super) const LOG_RATE: usize = 100;
const SECOND: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn shows(lines: &[&str], expected: &str) {
        let tail = StderrTail::default();
        lines.iter().for_each(|line| tail.push((*line).to_owned()));
        assert_eq!(tail.text(), expected);
    }

    #[test]
    fn an_error_of_npm_is_shown_without_repetition() {
        let error = [
            "npm error code E404",
            "npm error 404 Not Found - GET https://npm.example/a",
            "npm error 404",
            "npm error 404  The requested resource 'a@*' could not be found.",
            "npm error 404 Note that you can also install from a",
            "npm error A complete log of this run can be found in: /x.log",
        ];
        shows(
            &error,
            "npm error code E404 | Not Found - GET https://npm.example/a | The requested resource 'a@*' could not be found.",
        );
        // The server was started in spite of it.
        shows(
            &[&error[..1], &["started", "crashed"]].concat(),
            "npm error code E404 | started | crashed",
        );
    }
}
