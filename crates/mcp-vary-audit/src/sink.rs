//! Where lines go.

mod file;
mod stream;
mod syslog;

use std::io;

use crate::line::Line;

pub use file::FileSink;
pub use stream::StreamSink;
pub use syslog::{MAX_SYSLOG_MESSAGE, SyslogAddress, SyslogHeader, SyslogHeaderError, SyslogSink};

/// Where an audit log writes its lines. Only the log's own thread calls it, so it may block.
pub trait Sink: Send + 'static {
    /// Names it in logs: `file audit.jsonl`.
    fn name(&self) -> String;

    /// The longest line that it takes, in bytes; at least [`MAX_LINE`](crate::MAX_LINE).
    fn max_line(&self) -> usize {
        usize::MAX
    }

    /// Writes lines in their order, as many as it can.
    fn write(&mut self, lines: &[Line]) -> Written;

    /// Opens again what it writes to, after a rotation.
    ///
    /// # Errors
    ///
    /// If it cannot be opened. The sink then goes on with what it had.
    fn reopen(&mut self) -> io::Result<()> {
        Ok(())
    }
}

mcp_vary_base::debug_by_name!(dyn Sink);

/// How many lines were written.
#[derive(Debug)]
pub struct Written {
    /// The number of lines that were written whole.
    pub lines: usize,
    /// Why the others were not; `None` only if all were.
    pub error: Option<io::Error>,
}

impl Written {
    /// All of them.
    pub fn all(lines: &[Line]) -> Self {
        Self {
            lines: lines.len(),
            error: None,
        }
    }

    /// The first `lines` of them.
    pub fn failed(lines: usize, error: io::Error) -> Self {
        Self {
            lines,
            error: Some(error),
        }
    }
}
