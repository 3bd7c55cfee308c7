//! A client's file on disk, its backup, and the record of what was written to it.

use std::ffi::OsString;
use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use mcp_vary_base::io_error;

use crate::failure::Failure;
use crate::file::{unreadable, unwritable};

/// A client's file as it is on disk.
pub(crate) struct ClientFile {
    /// The path as the client names it; the backup and the record are beside it.
    pub(crate) path: PathBuf,
    /// The file that links lead to.
    real: PathBuf,
    /// `None` if the file does not exist.
    pub(crate) text: Option<String>,
    permissions: Option<Permissions>,
}

// Omits the text, which may contain secrets.
mcp_vary_base::debug_by_name!(ClientFile);

impl ClientFile {
    /// A file that does not exist.
    pub(crate) fn missing(path: PathBuf) -> Self {
        Self {
            real: path.clone(),
            path,
            text: None,
            permissions: None,
        }
    }

    /// Reads the file at `path`, which need not exist.
    ///
    /// # Errors
    ///
    /// If it is not a file with text that can be replaced.
    pub(crate) fn read(path: PathBuf) -> Result<Self, Failure> {
        let shown = path.display();
        let real = match fs::canonicalize(&path) {
            Ok(real) => real,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if fs::symlink_metadata(&path).is_ok() {
                    let why = format!(
                        "{shown} is a link to a file that does not exist; create that file, or remove the link"
                    );
                    return Err(Failure::command(why));
                }
                return Ok(Self::missing(path));
            }
            Err(error) => return Err(unreadable(&path, &error)),
        };
        let metadata = fs::metadata(&real).map_err(|error| unreadable(&path, &error))?;
        check_kind(&path, &metadata)?;
        let bytes = fs::read(&real).map_err(|error| unreadable(&path, &error))?;
        let text = String::from_utf8(bytes).map_err(|_| {
            let why = format!("{shown} is not UTF-8, but UTF-16 perhaps; save it as UTF-8");
            Failure::command(why)
        })?;
        let permissions = Some(metadata.permissions());
        Ok(Self {
            path,
            real,
            text: Some(text),
            permissions,
        })
    }

    /// Replaces the file in one step, with the mode that it had. Creates its directory.
    ///
    /// # Errors
    ///
    /// If the file changed since it was read, or cannot be written.
    pub(crate) fn replace(&self, text: &str) -> Result<(), Failure> {
        self.check_writable()?;
        if Self::read(self.path.clone())?.text != self.text {
            let why = format!(
                "{} was changed by another program meanwhile; try again",
                self.path.display()
            );
            return Err(Failure::command(why));
        }
        self.store(&self.real, text)
    }

    /// The mode that the file gets if it does not exist.
    pub(crate) fn with_mode(mut self, mode: u32) -> Self {
        #[cfg(unix)]
        if self.permissions.is_none() {
            use std::os::unix::fs::PermissionsExt as _;
            self.permissions = Some(Permissions::from_mode(mode));
        }
        #[cfg(not(unix))]
        let _ = mode;
        self
    }

    /// Writes the file in one step, whatever others wrote since it was read. Creates its directory.
    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        self.store(&self.real, text)
    }

    /// Removes what a process that was killed left of a file that it was writing.
    pub(crate) fn remove_draft(&self, process: u32) {
        // It is of no use, and may not be there.
        let _ = fs::remove_file(draft(&self.real, process));
    }

    /// Refuses a file that its owner protected: replacing it would only need a writable directory.
    pub(crate) fn check_writable(&self) -> Result<(), Failure> {
        match &self.permissions {
            Some(permissions) if permissions.readonly() => Err(Failure::command(format!(
                "{} is read-only; make it writable, or edit it by hand",
                self.path.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Removes the file.
    pub(crate) fn delete(&self) -> Result<(), Failure> {
        delete(&self.real)
    }

    /// Where the file as it was is stored.
    pub(crate) fn backup(&self) -> PathBuf {
        self.beside(".vary-backup")
    }

    /// The file that records what was written.
    pub(crate) fn record(&self) -> PathBuf {
        self.beside(".vary-record.json")
    }

    /// The path with an `ending`.
    pub(crate) fn beside(&self, ending: &str) -> PathBuf {
        with_ending(&self.path, ending)
    }

    /// Writes another file with the mode of this one, since it may have the same secrets.
    pub(crate) fn store(&self, path: &Path, text: &str) -> Result<(), Failure> {
        // The backup and the record are written first: the file that the user knows is as it was.
        let failed =
            |error: std::io::Error| unwritable(&self.path, &error).with_end("; it is as it was");
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        if let Some(directory) = directory {
            fs::create_dir_all(directory).map_err(failed)?;
        }
        let temporary = draft(path, std::process::id());
        let written = self
            .write_new(&temporary, text)
            .and_then(|()| fs::rename(&temporary, path));
        written.map_err(|error| {
            // What remains is of no use to anybody, and the first error says more.
            let _ = fs::remove_file(&temporary);
            failed(error)
        })
    }

    fn write_new(&self, path: &Path, text: &str) -> std::io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if self.permissions.is_some() {
            // Nobody else may read it before it has its mode.
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let mut file = options.open(path)?;
        file.write_all(text.as_bytes())?;
        if let Some(permissions) = &self.permissions {
            file.set_permissions(permissions.clone())?;
        }
        file.sync_all()
    }
}

/// Where `process` writes the file at `path` before it replaces it.
fn draft(path: &Path, process: u32) -> PathBuf {
    with_ending(path, &format!(".vary-{process}"))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(ending);
    PathBuf::from(name)
}

/// Removes a file that may be gone already.
pub(crate) fn delete(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::command(format!(
            "{} cannot be removed: {}",
            path.display(),
            io_error::describe(&error)
        ))),
        _ => Ok(()),
    }
}

fn check_kind(path: &Path, metadata: &Metadata) -> Result<(), Failure> {
    let why = if !metadata.is_file() {
        "is not a file"
    } else if metadata.len() > LONGEST {
        "has more than 64 MiB; edit it by hand"
    } else {
        return Ok(());
    };
    Err(Failure::command(format!("{} {why}", path.display())))
}

/// The maximum size of a client's file in bytes. Claude Code stores its history in it.
const LONGEST: u64 = 64 << 20;
