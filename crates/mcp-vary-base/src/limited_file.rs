//! Files of which only the beginning is read, however long they are.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::io_error;

/// The first bytes of a file, at most `most`.
///
/// # Errors
///
/// If the file cannot be read.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The first bytes of the file that the setting `key` names, at most `most`.
///
/// # Errors
///
/// If the file cannot be read. The error contains nothing of its content.
pub fn read_setting(key: &str, path: &Path, most: u64) -> Result<Vec<u8>, String> {
    read(path, most).map_err(|error| {
        let (path, why) = (path.display(), io_error::describe(&error));
        format!("`{key}`: {path} cannot be read: {why}")
    })
}
