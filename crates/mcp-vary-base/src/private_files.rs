//! Files and directories that only their owner can read, also where something else is there already.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Creates a directory, and those above it, that only its owner can use. One that is there is changed to that.
///
/// # Errors
///
/// If it cannot be created, or belongs to somebody else.
pub fn create_directory(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
        builder.mode(0o700);
        builder.create(path)?;
        let permissions = fs::metadata(path)?.permissions();
        if permissions.mode() & 0o077 == 0 {
            return Ok(());
        }
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))
    }
    #[cfg(not(unix))]
    builder.create(path)
}

/// Creates a file. What was there, also a link or a pipe, is removed and not followed.
///
/// # Errors
///
/// If that is not possible.
pub fn replace(path: &Path) -> Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => create_new(path),
    }
}

/// Opens a regular file for writing, or creates it.
///
/// # Errors
///
/// If it cannot be opened, or is a link, a pipe or another thing.
pub fn open(path: &Path) -> Result<File> {
    match create_new(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            check_regular(path)?;
            OpenOptions::new().write(true).open(path)
        }
        created => created,
    }
}

/// Refuses what is there and is not a regular file, before it is opened: a pipe would hang, and a link leads elsewhere.
///
/// # Errors
///
/// If nothing is there, or it is another thing.
pub fn check_regular(path: &Path) -> Result<()> {
    if fs::symlink_metadata(path)?.is_file() {
        return Ok(());
    }
    let text = "it is not a regular file; remove it";
    Err(Error::new(ErrorKind::InvalidInput, text))
}

fn create_new(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}
