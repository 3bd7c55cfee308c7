//! Output to the terminal.

pub(crate) mod deprecation;
pub(crate) mod indent;
pub(crate) mod json_line;
pub(crate) mod ranking;
pub(crate) mod servers;
pub(crate) mod side_by_side;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod word_diff;
pub(crate) mod wrap;

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_vary::text::is_invisible;
pub(crate) use mcp_vary::text::sanitize_line;
use mcp_vary_base::io_error;
use serde_json::Value;
use unicode_width::UnicodeWidthChar as _;

use crate::failure::Failure;

/// Writes data to standard output. A closed pipe is not an error.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::command(format!(
            "standard output cannot be written: {}",
            io_error::describe(&error)
        ))),
        _ => Ok(()),
    }
}

/// Sets whether only data and errors are printed.
pub(crate) fn set_quiet(is_quiet: bool) {
    QUIET.store(is_quiet, Ordering::Relaxed);
}

/// Writes a line about the progress of a command to standard error, unless it is to be quiet.
pub(crate) fn progress(line: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        notice(line);
    }
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// Makes each line on standard error a JSON object.
pub(crate) fn set_json() {
    JSON.store(true, Ordering::Relaxed);
}

/// Whether each line on standard error is a JSON object.
pub(crate) fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

static JSON: AtomicBool = AtomicBool::new(false);

/// Writes a line to standard error. A closed pipe is not an error.
pub(crate) fn notice(line: &str) {
    let _ = if is_json() {
        write_lines(format!("{}\n", json_line::json_notice(line)).as_bytes())
    } else {
        write_lines(format!("{line}\n").as_bytes())
    };
}

/// Standard error for the log, whose lines go above the progress line.
#[derive(Debug)]
pub(crate) struct LogWriter;

impl io::Write for LogWriter {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        write_lines(lines)?;
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Writes whole lines to standard error, above the progress line if one is shown.
fn write_lines(lines: &[u8]) -> io::Result<()> {
    let mut err = io::stderr().lock();
    match &*shown_progress() {
        None => err.write_all(lines),
        Some(line) => {
            err.write_all(ERASE.as_bytes())?;
            err.write_all(lines)?;
            write!(err, "{line}")?;
            err.flush()
        }
    }
}

/// Writes a question to standard error, without a line end.
pub(crate) fn prompt(question: &str) {
    let mut err = io::stderr().lock();
    let _ = write!(err, "{question}").and_then(|()| err.flush());
}

/// The progress line that a terminal shows.
static PROGRESS: Mutex<Option<String>> = Mutex::new(None);

/// Locked after standard error.
fn shown_progress() -> MutexGuard<'static, Option<String>> {
    PROGRESS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns to the start of the line, and erases it.
const ERASE: &str = "\r\x1b[K";

/// A line on standard error that is erased when the work is done; only shown on a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: bool,
}

impl Progress {
    pub(crate) fn show(line: &str) -> Self {
        let line = &fitting(line);
        let mut err = io::stderr().lock();
        let shown = !QUIET.load(Ordering::Relaxed)
            && terminal::has_cursor(&err)
            && write!(err, "{ERASE}{line}")
                .and_then(|()| err.flush())
                .is_ok();
        if shown {
            *shown_progress() = Some(line.to_owned());
        }
        Self { shown }
    }

    /// Whether a terminal shows it.
    pub(crate) fn is_shown(&self) -> bool {
        self.shown
    }

    /// Shows another line instead.
    pub(crate) fn replace(&self, line: &str) {
        if self.shown {
            let mut err = io::stderr().lock();
            let line = fitting(&sanitize(line));
            let _ = write!(err, "{ERASE}{line}").and_then(|()| err.flush());
            *shown_progress() = Some(line);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let mut err = io::stderr().lock();
            let _ = write!(err, "{ERASE}").and_then(|()| err.flush());
            *shown_progress() = None;
        }
    }
}

/// The width of the terminal in columns, or 100 without a terminal.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size_of(io::stdout()).map_or(100, |(width, _)| usize::from(width.0))
}

/// The height of the terminal in lines; no bound without a terminal.
pub(crate) fn height() -> usize {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or(usize::MAX, |(_, height)| usize::from(height.0))
}

/// The beginning of `line` that a terminal shows in one row, since only one row is erased.
fn fitting(line: &str) -> String {
    let size = terminal_size::terminal_size_of(io::stderr());
    let width = size.map_or(usize::MAX, |(width, _)| usize::from(width.0));
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < width
    };
    line.chars().take_while(fits).collect()
}

/// A server in one line: name, version and protocol revision.
pub(crate) fn server_line(info: Option<&Value>, revision: &str) -> String {
    let member = |key: &str| info?.get(key)?.as_str();
    let name = member("name").unwrap_or("a server without a name");
    let version = member("version")
        .map(|version| format!(" {version}"))
        .unwrap_or_default();
    sanitize(&format!("{name}{version}, revision {revision}"))
}

/// Makes the text of a peer safe for a terminal: escapes invisible characters except line breaks and tabs.
pub(crate) fn sanitize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push_str("    "),
            '\r' => {}
            c if is_invisible(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// [`sanitize`], with the tabs as they are in a file.
pub(crate) fn sanitize_file(text: &str) -> String {
    let parts: Vec<String> = text.split('\t').map(sanitize).collect();
    parts.join("\t")
}

/// Makes JSON text safe for a terminal: escapes invisible characters in its strings, so that the JSON stays the same.
pub(crate) fn sanitize_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' | '\r' => out.push(c),
            c if is_invisible(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{sanitize, sanitize_file, sanitize_json};

    #[test]
    fn the_diff_of_a_file_has_its_tabs() {
        assert_eq!(sanitize_file("-\ta\x1b\tb\n"), "-\ta\\u{1b}\tb\n");
    }

    #[test]
    fn a_peer_cannot_drive_the_terminal() {
        assert_eq!(
            sanitize("a\x1b[2J\r\n\tb\u{202e}"),
            "a\\u{1b}[2J\n    b\\u{202e}"
        );
        assert_eq!(sanitize("größer 世界"), "größer 世界");
    }

    #[track_caller]
    fn is_escaped(c: char) {
        let text = format!("[\"a{c}b\",\n\t\"ü世\"]");
        let shown = sanitize_json(&text);
        let units = c.encode_utf16(&mut [0; 2]).to_vec().into_iter();
        let units: String = units.map(|unit| format!("\\u{unit:04x}")).collect();
        assert_eq!(shown, format!("[\"a{units}b\",\n\t\"ü世\"]"));
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&shown), read(&text));
        let shown = sanitize(&format!("a{c}b"));
        assert_eq!(shown, format!("a\\u{{{:x}}}b", u32::from(c)));
    }

    #[test]
    fn a_peer_cannot_deceive_a_reader_of_text_or_json() {
        for c in "\u{7f}\u{80}\u{9b}\u{9f}\u{61c}\u{200b}\u{200d}\u{200f}\u{2028}\u{2029}\u{202e}\u{2060}\u{2069}\u{feff}\u{ad}\u{34f}\u{115f}\u{180e}\u{3164}\u{fe0f}\u{fff9}\u{e0041}\u{e01ef}".chars() {
            is_escaped(c);
        }
    }
}
