//! The server on its standard streams.

use std::io::{self, BufRead, Read as _, Write};

use crate::answer::Replay;

/// Bytes of a message; a longer one ends the connection.
pub(crate) const LONGEST: u64 = 16 << 20;

/// Answers each line of `input` until it closes.
///
/// # Errors
///
/// When a line is longer than 16 MiB, or a stream fails.
pub fn serve_stdio(
    replay: &Replay,
    mut input: impl BufRead,
    mut output: impl Write,
) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        if line.len() as u64 == LONGEST {
            return Err(io::Error::other("a line is longer than 16 MiB"));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if let Some(answer) = replay.answer(&line) {
            writeln!(output, "{answer}")?;
            output.flush()?;
        }
    }
}
