//! The files of an audit log: plain and compressed ones, with and without the prefix of syslog.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use mcp_vary_audit::{MAX_LINE_WITH_ARGUMENTS, SCHEMA_VERSION};
use serde_json::Value;

use crate::failure::Failure;
use crate::file;
use crate::print::servers::plural;
use crate::print::{notice, sanitize_line};

/// A file that is read from its first record on.
pub(crate) struct LogFile {
    path: PathBuf,
    lines: Box<dyn BufRead>,
    /// The lines that were read.
    count: u64,
    first: Option<Value>,
    /// Lines of another version.
    newer: SkippedLines,
    /// Lines that are not records.
    others: SkippedLines,
}

impl LogFile {
    /// Reads a file up to its first record.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        if path.is_dir() {
            let (directory, log) = (path.display(), path.join("audit.jsonl"));
            let fix = format!("name the log in it, such as `{}`", log.display());
            return Err(Failure::command(format!(
                "{directory} is a directory; {fix}"
            )));
        }
        let unreadable = |error: io::Error| file::unreadable(path, &error);
        let mut plain = BufReader::new(File::open(path).map_err(unreadable)?);
        let is_compressed = plain.fill_buf().map_err(unreadable)?.starts_with(GZIP);
        let lines: Box<dyn BufRead> = if is_compressed {
            Box::new(BufReader::new(MultiGzDecoder::new(plain)))
        } else {
            Box::new(plain)
        };
        let mut log = Self {
            path: path.to_owned(),
            lines,
            count: 0,
            first: None,
            newer: SkippedLines::default(),
            others: SkippedLines::default(),
        };
        log.first = log.next_record()?;
        Ok(log)
    }

    /// The time of the first record; empty without one.
    pub(crate) fn start_time(&self) -> &str {
        let first = self.first.as_ref();
        let time = first.and_then(|record| record["time"].as_str());
        time.unwrap_or_default()
    }

    /// Passes each record on, and reports the lines that cannot be read.
    pub(crate) fn read(
        mut self,
        mut each: impl FnMut(&Value) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let name = self.path.display().to_string();
        let mut next = self.first.take();
        if next.is_none() && self.others.count > 0 {
            let fix = "name the file of `audit.to`";
            let why = format!("{name} has no record of an audit log; {fix}");
            return Err(Failure::command(why));
        }
        while let Some(record) = next {
            each(&record)?;
            next = self.next_record()?;
        }
        self.others.report(&name, "that are not records");
        let newer = "of another version, which this Vary does not know";
        self.newer.report(&name, newer);
        Ok(())
    }

    fn next_record(&mut self) -> Result<Option<Value>, Failure> {
        let mut line = Vec::new();
        loop {
            let read = read_line(&mut self.lines, &mut line);
            if !read.map_err(|error| file::unreadable(&self.path, &error))? {
                return Ok(None);
            }
            self.count += 1;
            match mcp_vary_audit::read_line(&line) {
                None if line.trim_ascii().is_empty() => {}
                None => self.others.add(self.count),
                Some(record) if record["v"] != SCHEMA_VERSION => self.newer.add(self.count),
                found => return Ok(found),
            }
        }
    }
}

/// Lines that are not shown.
#[derive(Default)]
struct SkippedLines {
    count: usize,
    /// The number of the first one.
    first: u64,
}

impl SkippedLines {
    const fn add(&mut self, number: u64) {
        if self.count == 0 {
            self.first = number;
        }
        self.count += 1;
    }

    fn report(&self, file: &str, what: &str) {
        if self.count > 0 {
            let (lines, first) = (plural(self.count, "line"), self.first);
            let note = format!("note: {file}: skipped {lines} {what}; the first is line {first}");
            notice(&sanitize_line(&note));
        }
    }
}

/// Reads the next line, without what is beyond [`MAX_LINE_WITH_ARGUMENTS`]. Returns whether there is one.
fn read_line(lines: &mut Box<dyn BufRead>, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut start = lines.by_ref().take(MAX_LINE_WITH_ARGUMENTS);
    if start.read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if start.limit() == 0 && !line.ends_with(b"\n") {
        lines.skip_until(b'\n')?;
    }
    Ok(true)
}

/// How a compressed file begins.
const GZIP: &[u8] = &[0x1f, 0x8b];
