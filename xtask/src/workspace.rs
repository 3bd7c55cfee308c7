//! The paths and files of the workspace, its builds, and its installed packages.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use crate::modules::Sources;
use crate::{cargo, npm, process, python};

/// The workspace that this xtask was built from.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    built: OnceLock<Result<(), String>>,
    npm: OnceLock<Result<(), String>>,
    python: OnceLock<Result<(), String>>,
    uv: OnceLock<Result<PathBuf, String>>,
}

impl Workspace {
    /// The workspace that contains this crate.
    pub(crate) fn here() -> Self {
        let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = crate_root.parent().unwrap_or(crate_root);
        Self {
            root: root.into(),
            built: OnceLock::new(),
            npm: OnceLock::new(),
            python: OnceLock::new(),
            uv: OnceLock::new(),
        }
    }

    /// Builds every target, once; other callers wait until it is done.
    ///
    /// # Errors
    ///
    /// When something does not compile.
    pub(crate) fn built(&self) -> Result<(), String> {
        self.built.get_or_init(|| cargo::compile(self)).clone()
    }

    /// Whether every target has been built in this run.
    pub(crate) fn is_built(&self) -> bool {
        matches!(self.built.get(), Some(Ok(())))
    }

    /// Installs the npm packages, once; other callers wait until it is done.
    ///
    /// # Errors
    ///
    /// When they cannot be installed.
    pub(crate) fn npm(&self) -> Result<(), String> {
        self.npm.get_or_init(|| npm::install(self)).clone()
    }

    /// Installs the PyPI packages, once; other callers wait until it is done.
    ///
    /// # Errors
    ///
    /// When they cannot be installed.
    pub(crate) fn python(&self) -> Result<(), String> {
        self.python.get_or_init(|| python::install(self)).clone()
    }

    /// The program `uv`, installed once; other callers wait until it is done.
    ///
    /// # Errors
    ///
    /// When it cannot be installed.
    pub(crate) fn uv(&self) -> Result<PathBuf, String> {
        self.uv.get_or_init(|| python::install_uv(self)).clone()
    }

    /// A binary of the workspace, built.
    ///
    /// # Errors
    ///
    /// When it does not compile.
    pub(crate) fn binary(&self, name: &str) -> Result<PathBuf, String> {
        self.built()?;
        // All binaries end up beside this one, wherever the target directory is.
        let this = env::current_exe().map_err(|error| error.to_string())?;
        Ok(this.with_file_name(name))
    }

    /// The binary `name` of `package`, without the other packages.
    ///
    /// # Errors
    ///
    /// When it does not compile.
    pub(crate) fn binary_of(&self, package: &str, name: &str) -> Result<PathBuf, String> {
        cargo::compile_package(self, package)?;
        let this = env::current_exe().map_err(|error| error.to_string())?;
        Ok(this.with_file_name(name))
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
        let mut git = process::command("git");
        git.current_dir(self.path(""));
        git.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
        git.args(["--deduplicate", "--", directory]);
        let list = process::output(&mut git, Duration::from_secs(60))?;
        Ok(list
            .lines()
            .filter(|file| self.path(file).is_file())
            .map(str::to_owned)
            .collect())
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
