//! Where things are, and what has been installed for them.

use std::fs;
use std::path::{Path, PathBuf};

/// The workspace that this xtask was built from.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The workspace of this very crate.
    pub(crate) fn here() -> Self {
        let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = crate_root.parent().unwrap_or(crate_root);
        Self { root: root.into() }
    }

    /// A path in the workspace.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// A path for what the phases write and nobody commits; the directory above it exists.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made.
    pub(crate) fn scratch(&self, relative: &str) -> Result<PathBuf, String> {
        let path = self.root.join("target/xtask").join(relative);
        let parent = path.parent().unwrap_or(&path);
        fs::create_dir_all(parent)
            .map_err(|error| format!("cannot make {}: {error}", parent.display()))?;
        Ok(path)
    }

    /// The whole text of a file of the workspace.
    ///
    /// # Errors
    ///
    /// When it cannot be read as text.
    pub(crate) fn read(&self, relative: &str) -> Result<String, String> {
        fs::read_to_string(self.path(relative))
            .map_err(|error| format!("cannot read {relative}: {error}"))
    }
}
