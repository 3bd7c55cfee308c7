//! Messages on a pair of streams, one on each line.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A line of a client.
pub(super) enum Line {
    Complete(Vec<u8>),
    /// Longer than this many bytes, and skipped.
    TooLong(usize),
}

/// The next line without its line break; `None` at the end of the input.
pub(super) async fn read_line(
    input: &mut (impl AsyncBufRead + Unpin),
    line_limit: impl Fn() -> usize,
) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut too_long = None;
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            let nothing = line.is_empty() && too_long.is_none();
            return Ok((!nothing).then(|| complete_line(line, too_long)));
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        let limit = line_limit();
        if too_long.is_none() && line.len() + part.len() > limit {
            too_long = Some(limit);
        }
        if too_long.is_some() {
            line.clear();
        } else {
            line.extend_from_slice(part);
        }
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return Ok(Some(complete_line(line, too_long)));
        }
    }
}

fn complete_line(line: Vec<u8>, too_long: Option<usize>) -> Line {
    too_long.map_or(Line::Complete(line), Line::TooLong)
}

/// Gives the client some time to read what was written.
pub(super) async fn written(
    mut writer: JoinHandle<io::Result<()>>,
    drain: Duration,
) -> io::Result<()> {
    match tokio::time::timeout(drain, &mut writer).await {
        Ok(written) => written.unwrap_or(Ok(())),
        Err(_) => {
            writer.abort();
            let why = "the client does not read; what was still to be written is lost";
            Err(io::Error::new(io::ErrorKind::TimedOut, why))
        }
    }
}

/// Writes lines until the senders are gone. Lines that are ready together are flushed together.
pub(super) async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<Bytes>,
) -> io::Result<()> {
    while let Some(line) = lines.recv().await {
        output.write_all(&on_one_line(&line)).await?;
        while let Ok(line) = lines.try_recv() {
            output.write_all(&on_one_line(&line)).await?;
        }
        output.flush().await?;
    }
    Ok(())
}

/// > Messages are delimited by newlines, and MUST NOT contain embedded newlines. (MCP, transports/stdio)
///
/// Between the tokens of JSON a line break is white space. Inside a string there is none.
fn on_one_line(message: &[u8]) -> Vec<u8> {
    let mut line = message.to_vec();
    for byte in &mut line {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_does_not_hurt_the_next() {
        let mut input = BufReader::with_capacity(3, &b"abcdefgh\nab\n\nlast"[..]);
        let mut seen = Vec::new();
        while let Some(line) = read_line(&mut input, || 4).await.unwrap() {
            seen.push(match line {
                Line::Complete(line) => String::from_utf8(line).unwrap(),
                Line::TooLong(_) => "too long".to_owned(),
            });
        }
        assert_eq!(seen, ["too long", "ab", "", "last"]);
    }

    #[test]
    fn a_message_is_written_on_one_line() {
        assert_eq!(on_one_line(b"{\n\"a\":1\r\n}"), b"{ \"a\":1  }\n");
    }
}
