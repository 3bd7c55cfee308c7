//! Lines on a stream of bytes.

use std::io::{self, Write};

use crate::line::Line;

use super::{Sink, Written};

/// Writes lines to a stream: standard output, or anything else that takes bytes.
///
/// # Properties
///
/// Lines stay whole: if a write ends inside a line, the next one begins with a line break. So a reader finds at most one
/// damaged line for each failure.
pub struct StreamSink {
    name: &'static str,
    stream: LineStream<Box<dyn Write + Send>>,
}

impl StreamSink {
    /// Lines on standard output.
    ///
    /// A gateway that serves a client on stdio must not use it: there, standard output has the protocol's messages.
    pub fn stdout() -> Self {
        Self::new("standard output", Box::new(io::stdout()))
    }

    /// Lines on `stream`.
    pub fn new(name: &'static str, stream: Box<dyn Write + Send>) -> Self {
        let stream = LineStream::new(stream, false);
        Self { name, stream }
    }
}

impl Sink for StreamSink {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn write(&mut self, lines: &[Line]) -> Written {
        self.stream.write(lines)
    }
}

mcp_vary_base::debug_by_name!(StreamSink);

/// A stream on which lines stay whole.
#[derive(Debug)]
pub(super) struct LineStream<W> {
    stream: W,
    /// Whether the stream ends inside a line.
    is_torn: bool,
}

impl<W: Write> LineStream<W> {
    pub(super) const fn new(stream: W, is_torn: bool) -> Self {
        Self { stream, is_torn }
    }

    /// Writes all lines at once.
    pub(super) fn write(&mut self, lines: &[Line]) -> Written {
        let repair = usize::from(self.is_torn);
        let mut bytes = vec![b'\n'; repair];
        for line in lines {
            bytes.extend_from_slice(&line.text);
            bytes.push(b'\n');
        }
        let (count, error) = self.write_bytes(&bytes);
        let written = bytes.get(..count).unwrap_or_default();
        if let Some(last) = written.last() {
            self.is_torn = *last != b'\n';
        }
        let whole = if count == bytes.len() {
            lines.len()
        } else {
            let breaks = written.iter().filter(|byte| **byte == b'\n').count();
            breaks.saturating_sub(repair)
        };
        Written {
            lines: whole,
            error,
        }
    }

    /// Writes and flushes; returns how many bytes were written.
    fn write_bytes(&mut self, bytes: &[u8]) -> (usize, Option<io::Error>) {
        let mut count = 0;
        while let Some(remaining) = bytes.get(count..).filter(|remaining| !remaining.is_empty()) {
            match self.stream.write(remaining) {
                Ok(0) => return (count, Some(io::ErrorKind::WriteZero.into())),
                Ok(written) => count += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (count, Some(error)),
            }
        }
        (count, self.stream.flush().err())
    }
}
