//! A stream of bytes → its lines, none longer than allowed.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// One step of reading.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Line {
    /// A line, without its end.
    Text(Bytes),
    /// A line is longer than the limit; the rest of it is skipped.
    TooLong,
    /// The stream has ended.
    End,
}

/// The lines of `reader`.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: R,
    limit: usize,
    buffer: BytesMut,
    /// How much of the buffer holds no line feed.
    scanned: usize,
    skipping: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self {
            reader,
            limit,
            buffer: BytesMut::new(),
            scanned: 0,
            skipping: false,
        }
    }

    /// The next line. The text after the last line feed is a line too, unless it is empty.
    ///
    /// # Errors
    ///
    /// When reading fails.
    pub(super) async fn next(&mut self) -> io::Result<Line> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(line);
            }
            self.buffer.reserve(CHUNK);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                self.scanned = 0;
                let rest = self.buffer.split().freeze();
                let ends = rest.is_empty() || self.skipping;
                return Ok(if ends { Line::End } else { Line::Text(rest) });
            }
        }
    }

    fn take_line(&mut self) -> Option<Line> {
        let unread = &self.buffer[self.scanned..];
        match unread.iter().position(|byte| *byte == b'\n') {
            Some(at) => {
                let line = self.buffer.split_to(self.scanned + at + 1).freeze();
                self.scanned = 0;
                let text = line.slice(..line.len() - 1);
                if std::mem::take(&mut self.skipping) {
                    return self.take_line();
                }
                Some(if text.len() > self.limit {
                    Line::TooLong
                } else {
                    Line::Text(text)
                })
            }
            None if self.skipping => {
                self.buffer.clear();
                self.scanned = 0;
                None
            }
            None if self.buffer.len() > self.limit => {
                self.skipping = true;
                self.buffer = BytesMut::new();
                self.scanned = 0;
                Some(Line::TooLong)
            }
            None => {
                self.scanned = self.buffer.len();
                None
            }
        }
    }
}

const CHUNK: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_cut_at_line_feeds_and_long_ones_skipped() {
        let text = format!(
            "one\n\n{}\r\ntwo\n{}\nthree",
            "x".repeat(40_000),
            "y".repeat(9)
        );
        let mut lines = Lines::new(text.as_bytes(), 8);
        let text = |text: &'static str| Line::Text(Bytes::from_static(text.as_bytes()));
        for expected in [text("one"), text(""), Line::TooLong, text("two")] {
            assert_eq!(lines.next().await.unwrap(), expected);
        }
        for expected in [Line::TooLong, text("three"), Line::End, Line::End] {
            assert_eq!(lines.next().await.unwrap(), expected);
        }
    }
}
