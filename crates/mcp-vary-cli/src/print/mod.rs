//! What goes to the terminal.

mod indent;
pub(crate) mod result;
pub(crate) mod side_by_side;
pub(crate) mod table;
pub(crate) mod wrap;

use std::io::{self, IsTerminal as _, Write as _};

use serde_json::Value;

use crate::failure::Failure;

/// Writes data to standard output. A reader that has seen enough is no failure.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::command(format!(
            "standard output cannot be written: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Says a line on standard error. Nobody listening is no failure.
pub(crate) fn talk(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// A line on standard error that is gone when the work is done; nothing unless it is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: bool,
}

impl Progress {
    pub(crate) fn show(line: &str) -> Self {
        let mut err = io::stderr().lock();
        let shown = err.is_terminal()
            && write!(err, "\r\x1b[K{line}")
                .and_then(|()| err.flush())
                .is_ok();
        Self { shown }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let mut err = io::stderr().lock();
            let _ = write!(err, "\r\x1b[K").and_then(|()| err.flush());
        }
    }
}

/// How many columns the reader has: the terminal's, or 100 where there is none.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size_of(io::stdout()).map_or(100, |(width, _)| usize::from(width.0))
}

/// A server in one line: name, version and the revision it speaks.
pub(crate) fn server_line(info: Option<&Value>, revision: &str) -> String {
    let said = |key: &str| info?.get(key)?.as_str();
    let name = said("name").unwrap_or("a server without a name");
    let version = said("version")
        .map(|version| format!(" {version}"))
        .unwrap_or_default();
    harmless(&format!("{name}{version}, revision {revision}"))
}

/// Text of a peer as a terminal may show it: line breaks and tabs stay, other control characters and
/// those that turn the direction of what follows are escaped.
pub(crate) fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push_str("    "),
            '\r' => {}
            c if c.is_control()
                || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                out.extend(c.escape_default());
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn a_peer_cannot_drive_the_terminal() {
        assert_eq!(
            harmless("a\x1b[2J\r\n\tb\u{202e}"),
            "a\\u{1b}[2J\n    b\\u{202e}"
        );
        assert_eq!(harmless("größer 世界"), "größer 世界");
    }
}
