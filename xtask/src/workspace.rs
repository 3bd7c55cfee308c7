//! The paths and files of the workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use crate::modules::Sources;
use crate::process;

/// The workspace that this xtask was built from.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    /// The commit with which changes are compared, if another one is given than that of [`Self::base`].
    pub(crate) since: Option<String>,
    /// The results of the steps that each run needs at most once.
    pub(crate) built: OnceLock<Result<(), String>>,
    pub(crate) npm: OnceLock<Result<(), String>>,
    pub(crate) python: OnceLock<Result<(), String>>,
    pub(crate) uv: OnceLock<Result<PathBuf, String>>,
}

impl Workspace {
    /// The workspace that contains this crate.
    pub(crate) fn here() -> Self {
        let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = crate_root.parent().unwrap_or(crate_root);
        Self {
            root: root.into(),
            since: None,
            built: OnceLock::new(),
            npm: OnceLock::new(),
            python: OnceLock::new(),
            uv: OnceLock::new(),
        }
    }

    /// A path in the workspace.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// A path for the uncommitted files of phases. Creates its parent directory.
    ///
    /// # Errors
    ///
    /// When the directory cannot be created.
    pub(crate) fn scratch(&self, relative: &str) -> Result<PathBuf, String> {
        let path = self.root.join("target/xtask").join(relative);
        let parent = path.parent().unwrap_or(&path);
        fs::create_dir_all(parent)
            .map_err(|error| format!("cannot make {}: {error}", parent.display()))?;
        Ok(path)
    }

    /// The files below `directory` that are committed, or untracked and not ignored.
    ///
    /// # Errors
    ///
    /// When git cannot list them.
    pub(crate) fn files(&self, directory: &str) -> Result<Vec<String>, String> {
        let list = ["ls-files", "--cached", "--others", "--exclude-standard"];
        let list = self.git(&[&list[..], &["--deduplicate", "--", directory]].concat())?;
        Ok(list
            .lines()
            .filter(|file| self.path(file).is_file())
            .map(str::to_owned)
            .collect())
    }

    /// The commit with which changes are compared: `since`, or the last one that HEAD shares with `main`, or HEAD.
    pub(crate) fn base(&self) -> String {
        let shared = |main| self.git(&["merge-base", "HEAD", main]).ok();
        let base = self.since.clone().or_else(|| shared("main"));
        let base = base.or_else(|| shared("origin/main"));
        base.map_or_else(|| "HEAD".to_owned(), |base| base.trim().to_owned())
    }

    /// What git prints.
    ///
    /// # Errors
    ///
    /// When it fails.
    pub(crate) fn git(&self, arguments: &[&str]) -> Result<String, String> {
        let mut git = process::command("git");
        git.current_dir(self.path("")).args(arguments);
        git.stderr(Stdio::null());
        process::output(&mut git, Duration::from_secs(60))
    }

    /// The texts of all Rust files, by path.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub(crate) fn rust_sources(&self) -> Result<Sources, String> {
        let files = self.files(".")?.into_iter();
        files
            .filter(|file| file.ends_with(".rs"))
            .map(|file| self.read(&file).map(|text| (file, text)))
            .collect()
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
