//! Reads lines of limited length from a stream of bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

use super::oversize::LineEnds;

/// One step of reading.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum OutputLine {
    /// A line, without its end.
    Text(Bytes),
    /// A line over the limit; perhaps so long that the gateway does not wait for its end.
    TooLong(LineEnds),
    /// The stream has ended.
    End,
}

/// The lines of `reader`.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: R,
    limit: usize,
    buffer: BytesMut,
    /// The length of the buffer's start that is known to have no line feed.
    scanned: usize,
    skipping: Skipping,
}

#[derive(Debug)]
enum Skipping {
    No,
    /// An oversized line: the stored ends, and the number of bytes read.
    Oversized(LineEnds, usize),
    /// The rest of a line that was already returned.
    Rest,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self {
            reader,
            limit,
            buffer: BytesMut::new(),
            scanned: 0,
            skipping: Skipping::No,
        }
    }

    /// The next line. The text after the last line feed is a line too, unless it is empty.
    ///
    /// # Errors
    ///
    /// When reading fails.
    pub(super) async fn next(&mut self) -> io::Result<OutputLine> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(line);
            }
            self.buffer.reserve(CHUNK);
            let read = self.reader.read_buf(&mut self.buffer);
            let read = match self.skipping {
                Skipping::Oversized(..) => match tokio::time::timeout(SILENCE, read).await {
                    Ok(read) => read?,
                    Err(_elapsed) => return Ok(self.abandon()),
                },
                Skipping::No | Skipping::Rest => read.await?,
            };
            if read == 0 {
                return Ok(self.take_rest());
            }
        }
    }

    fn take_line(&mut self) -> Option<OutputLine> {
        let unread = &self.buffer[self.scanned..];
        let Some(at) = unread.iter().position(|byte| *byte == b'\n') else {
            return self.take_nothing();
        };
        let line = self.buffer.split_to(self.scanned + at + 1).freeze();
        self.scanned = 0;
        let text = line.slice(..line.len() - 1);
        match std::mem::replace(&mut self.skipping, Skipping::No) {
            Skipping::No if text.len() <= self.limit => Some(OutputLine::Text(text)),
            Skipping::No => Some(OutputLine::TooLong(ends(LineEnds::default(), &text))),
            Skipping::Oversized(tail, _) => Some(OutputLine::TooLong(ends(tail, &text))),
            Skipping::Rest => self.take_line(),
        }
    }

    /// Handles a buffer without a line feed: it stays, or only the ends of an oversized line are stored.
    fn take_nothing(&mut self) -> Option<OutputLine> {
        let is_skipped = !matches!(self.skipping, Skipping::No);
        if !is_skipped && self.buffer.len() <= self.limit {
            self.scanned = self.buffer.len();
            return None;
        }
        // The next piece must not enlarge the allocation of this one.
        let piece = std::mem::take(&mut self.buffer);
        self.scanned = 0;
        let (tail, read) = match std::mem::replace(&mut self.skipping, Skipping::Rest) {
            Skipping::No => (LineEnds::default(), 0),
            Skipping::Oversized(tail, read) => (tail, read),
            Skipping::Rest => return None,
        };
        let length = read + piece.len();
        let is_endless = length > self.limit.saturating_mul(MAX_GROWTH);
        self.skipping = Skipping::Oversized(ends(tail, &piece), length);
        is_endless.then(|| self.abandon())
    }

    /// Returns an oversized line before its end.
    fn abandon(&mut self) -> OutputLine {
        let head = match std::mem::replace(&mut self.skipping, Skipping::Rest) {
            Skipping::Oversized(tail, _) => tail.head,
            Skipping::No | Skipping::Rest => Vec::new(),
        };
        let tail = Vec::new();
        OutputLine::TooLong(LineEnds { head, tail })
    }

    fn take_rest(&mut self) -> OutputLine {
        self.scanned = 0;
        let remaining = self.buffer.split().freeze();
        match std::mem::replace(&mut self.skipping, Skipping::Rest) {
            Skipping::Oversized(tail, _) => OutputLine::TooLong(ends(tail, &remaining)),
            Skipping::No if !remaining.is_empty() => OutputLine::Text(remaining),
            Skipping::No | Skipping::Rest => OutputLine::End,
        }
    }
}

/// The ends of a line after `piece` was appended to `tail`.
fn ends(mut tail: LineEnds, piece: &[u8]) -> LineEnds {
    let room = EDGE_BYTES.saturating_sub(tail.head.len()).min(piece.len());
    tail.head.extend_from_slice(&piece[..room]);
    tail.tail
        .extend_from_slice(&piece[piece.len().saturating_sub(EDGE_BYTES)..]);
    let surplus = tail.tail.len().saturating_sub(EDGE_BYTES);
    tail.tail.drain(..surplus);
    tail
}

const CHUNK: usize = 16 * 1024;
/// The bytes of each end of an oversized line that are stored.
const EDGE_BYTES: usize = 200;
/// The gateway stops waiting for the end of a line after this many times the limit.
const MAX_GROWTH: usize = 8;
/// The gateway stops waiting for the end of a line after this long without a byte.
const SILENCE: Duration = Duration::from_secs(1);

/// Bytes that are read in pieces.
struct Pieces<'a> {
    data: &'a [u8],
    piece: usize,
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let length = self
            .piece
            .max(1)
            .min(self.data.len())
            .min(buffer.remaining());
        let (now, later) = self.data.split_at(length);
        buffer.put_slice(now);
        self.data = later;
        Poll::Ready(Ok(()))
    }
}

/// The lines of `data`, read in pieces of `piece` bytes; `None` for a line over `limit`.
pub async fn read_lines(data: &[u8], limit: usize, piece: usize) -> Vec<Option<Bytes>> {
    let mut lines = Lines::new(Pieces { data, piece }, limit);
    let mut read = Vec::new();
    loop {
        match lines.next().await {
            Ok(OutputLine::Text(line)) => read.push(Some(line)),
            Ok(OutputLine::TooLong(_)) => read.push(None),
            Ok(OutputLine::End) | Err(_) => return read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &[u8], limit: usize) -> Vec<String> {
        let mut lines = Lines::new(text, limit);
        let mut read = Vec::new();
        loop {
            read.push(match lines.next().await.unwrap() {
                OutputLine::Text(line) => String::from_utf8_lossy(&line).into_owned(),
                OutputLine::TooLong(ends) => {
                    let [head, tail] =
                        [&ends.head, &ends.tail].map(|end| String::from_utf8_lossy(end));
                    format!(
                        "<{}…{}>",
                        head.get(..2).unwrap_or(""),
                        tail.get(tail.len().saturating_sub(2)..).unwrap_or("")
                    )
                }
                OutputLine::End => return read,
            });
        }
    }

    #[tokio::test]
    async fn lines_are_cut_at_line_feeds_and_the_ends_of_long_ones_kept() {
        let long = format!("ab{}yz", "-".repeat(40_000));
        let text = format!("one\n\n{long}\r\ntwo\n{long}\n123456789\nthree");
        let read = read(text.as_bytes(), 8000).await;
        assert_eq!(
            read,
            [
                "one",
                "",
                "<ab…z\r>",
                "two",
                "<ab…yz>",
                "123456789",
                "three"
            ]
        );
        assert_eq!(
            self::read(b"123456789\nx\n123456789", 8).await,
            ["<12…89>", "x", "<12…89>"]
        );
    }

    #[tokio::test]
    async fn a_line_without_end_is_told_before_its_end() {
        let text = format!("ab{}\nnext\n", "-".repeat(900_000));
        assert_eq!(read(text.as_bytes(), 100).await, ["<ab…>", "next"]);
    }
}
