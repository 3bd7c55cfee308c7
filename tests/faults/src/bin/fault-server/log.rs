//! What the server notes in its directory.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

/// Adds a line to a file and says how many lines it has then.
///
/// # Errors
///
/// When the file cannot be written.
pub(crate) fn append(directory: &Path, file: &str, line: &str) -> Result<usize, String> {
    let path = directory.join(file);
    let reported = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut opened = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(reported)?;
    // One write, so that lines of several processes do not mix.
    opened
        .write_all(format!("{line}\n").as_bytes())
        .map_err(reported)?;
    let text = fs::read_to_string(&path).map_err(reported)?;
    Ok(text.lines().count())
}
