//! Lines in a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::line::Line;

use super::stream::LineStream;
use super::{Sink, Written};

/// Appends lines to a file.
///
/// # Properties
///
/// A new file can be read and written by its owner only (on Unix). A file that exists is appended to; if it ends inside a
/// line, because the machine stopped, the next line begins with a line break.
///
/// After a rotation, [`AuditLog::reopen`](crate::AuditLog::reopen) makes it continue in a new file of the same name. If
/// that cannot be opened, it goes on with the old one.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    file: LineStream<File>,
}

impl FileSink {
    /// Opens or creates the file.
    ///
    /// # Errors
    ///
    /// If it cannot be opened for appending.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let file = open(&path)?;
        Ok(Self { path, file })
    }
}

impl Sink for FileSink {
    fn name(&self) -> String {
        format!("file {}", self.path.display())
    }

    fn write(&mut self, lines: &[Line]) -> Written {
        self.file.write(lines)
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.file = open(&self.path)?;
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<LineStream<File>> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let file = options.open(path)?;
    let is_torn = file.metadata()?.is_file() && ends_inside_a_line(path);
    Ok(LineStream::new(file, is_torn))
}

/// Whether the last byte is not a line break. A file that may be appended to but not read counts as whole.
fn ends_inside_a_line(path: &Path) -> bool {
    let last_byte = || -> io::Result<u8> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(-1))?;
        let mut byte = [0];
        file.read_exact(&mut byte)?;
        Ok(u8::from_be_bytes(byte))
    };
    last_byte().is_ok_and(|byte| byte != b'\n')
}
