//! The files that `${file:PATH}` and `${credential:NAME}` name: where they are, what they contain, and which were read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use mcp_vary_base::{io_error, limited_file};
use sha2::{Digest as _, Sha256};

/// The maximum length of a secret file, in bytes. Keys and tokens have some hundred.
pub const MAX_SECRET_FILE: usize = 64 << 10;

/// The maximum number of secret files that one configuration names.
pub const MAX_SECRET_FILES: usize = 256;

/// The maximum length of all values that secret files give to one configuration, in bytes: a file that is named a
/// thousand times counts a thousand times.
const MAX_TOTAL: usize = 8 << 20;

/// The directory of the credentials that systemd passes to a service (systemd.exec(5), "CREDENTIALS").
const CREDENTIALS_DIRECTORY: &str = "CREDENTIALS_DIRECTORY";

/// Reads the files that `${file:PATH}` and `${credential:NAME}` in a configuration name, and remembers which they were.
///
/// # Properties
///
/// - A relative path starts at the directory of the configuration file. A credential is `$CREDENTIALS_DIRECTORY/NAME`,
///   as systemd passes it with `LoadCredential=`; a name with `/` is refused.
/// - The value is the content of a regular file, UTF-8 of at most [`MAX_SECRET_FILE`] bytes, without one line break at
///   its end. A configuration names at most [`MAX_SECRET_FILES`] files, and each is read once.
/// - A file that cannot be used is an error at the place where it is named. Neither errors nor `Debug` contain values.
///
/// # Examples
///
/// ```
/// use mcp_vary_config::{SecretFiles, Source};
/// # let directory = std::env::temp_dir().join(format!("vary-secret-files-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
///
/// std::fs::write(directory.join("token"), "s3cret\n")?;
/// let text = "servers: {a: {url: 'http://localhost/mcp', headers: {Authorization: 'Bearer ${file:token}'}}}";
/// let secrets = SecretFiles::new(&directory);
/// Source::new("vary.yaml", text).with_secret_files(&secrets).read(&|_| None)?;
/// assert_eq!(secrets.versions().paths().count(), 1);
///
/// // Without `with_secret_files`, reading a configuration opens no file.
/// let error = Source::new("vary.yaml", text).read(&|_| None).unwrap_err();
/// assert!(error.to_string().contains("no files are read here"));
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SecretFiles {
    /// Where relative paths start.
    directory: PathBuf,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    read: BTreeMap<PathBuf, (Result<String, Fault>, Version)>,
    /// The bytes of all values so far.
    total: usize,
}

/// What is wrong with a file, and the fix.
type Fault = (String, String);

/// The state of a secret file: the digest of its content, or why it cannot be read.
type Version = Result<[u8; 32], io::ErrorKind>;

/// The secret files that a configuration names, and the content of each when it was read, as a digest.
///
/// [`Watch::follow_secrets`](crate::Watch::follow_secrets) takes it to notice the next change.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct SecretVersions(BTreeMap<PathBuf, Version>);

impl SecretFiles {
    /// The secret files of a configuration file in `directory`.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            state: RefCell::default(),
        }
    }

    /// Those of the configuration file at `path`.
    #[must_use]
    pub fn beside(path: &Path) -> Self {
        Self::new(path.parent().unwrap_or(Path::new("")))
    }

    /// The files that were named since the start, also those that could not be read.
    pub fn versions(&self) -> SecretVersions {
        let state = self.state.borrow();
        let versions = state
            .read
            .iter()
            .map(|(path, (_, version))| (path.clone(), *version));
        SecretVersions(versions.collect())
    }

    /// The value of `${file:PATH}`.
    pub(crate) fn file(&self, path: &str) -> Result<String, Fault> {
        if path.is_empty() {
            let what = "has `${file:}`, which names no file".to_owned();
            return Err((what, "write `${file:PATH}`".to_owned()));
        }
        self.value(self.directory.join(path), &format!("`{path}`"))
    }

    /// The value of `${credential:NAME}`.
    pub(crate) fn credential(
        &self,
        name: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<String, Fault> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_name) {
            let what = "has `${credential:...}` with a name that no credential can have".to_owned();
            let fix = "write the name of `LoadCredential=`, without a path; for a path write `${file:PATH}`";
            return Err((what, fix.to_owned()));
        }
        let Some(directory) = variable(CREDENTIALS_DIRECTORY).filter(|it| !it.is_empty()) else {
            let what =
                format!("needs the credential `{name}`, but `{CREDENTIALS_DIRECTORY}` is not set");
            let fix = format!(
                "add `LoadCredential={name}:PATH` to the systemd unit, or write `${{file:PATH}}`"
            );
            return Err((what, fix));
        };
        self.value(
            Path::new(&directory).join(name),
            &format!("the credential `{name}`"),
        )
    }

    fn value(&self, path: PathBuf, shown: &str) -> Result<String, Fault> {
        let mut state = self.state.borrow_mut();
        if !state.read.contains_key(&path) && state.read.len() >= MAX_SECRET_FILES {
            let what = format!(
                "names one more file than the {MAX_SECRET_FILES} that a configuration may name"
            );
            return Err((
                what,
                "put several secrets of one server into its environment".to_owned(),
            ));
        }
        let (value, _) = state
            .read
            .entry(path)
            .or_insert_with_key(|path| read(path, shown));
        let text = value.clone()?;
        state.total = state.total.saturating_add(text.len());
        if state.total > MAX_TOTAL {
            let what = format!(
                "brings the values of all files to more than {} MiB",
                MAX_TOTAL >> 20
            );
            return Err((what, "name large files less often".to_owned()));
        }
        Ok(text)
    }
}

/// The number of files only.
impl fmt::Debug for SecretFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretFiles({})", self.state.borrow().read.len())
    }
}

impl SecretVersions {
    /// The paths of the files, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// The same files as they are now.
    #[must_use]
    pub(crate) fn now(&self) -> Self {
        let now = |path: &PathBuf| (path.clone(), version(&content(path)));
        Self(self.0.keys().map(now).collect())
    }

    /// Whether a file is gone that was there `before`.
    pub(crate) fn lacks_one_of(&self, before: &Self) -> bool {
        let is_gone = |(path, version): (&PathBuf, &Version)| {
            version.is_err() && before.0.get(path).is_some_and(Result::is_ok)
        };
        self.0.iter().any(is_gone)
    }
}

/// The paths, without the digests: those of short secrets could be guessed.
impl fmt::Debug for SecretVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Reads a file, one byte more than it may have.
fn content(path: &Path) -> io::Result<Vec<u8>> {
    // A named pipe would block, and a device never end.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    limited_file::read(path, MAX_SECRET_FILE as u64 + 1)
}

fn version(content: &io::Result<Vec<u8>>) -> Version {
    match content {
        Ok(bytes) => Ok(Sha256::digest(bytes).into()),
        Err(error) => Err(error.kind()),
    }
}

/// The value of the file at `path`, which errors call `shown`.
fn read(path: &Path, shown: &str) -> (Result<String, Fault>, Version) {
    let bytes = content(path);
    let read_version = version(&bytes);
    (value(path, shown, bytes), read_version)
}

fn value(path: &Path, shown: &str, content: io::Result<Vec<u8>>) -> Result<String, Fault> {
    let bytes = content.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let fix = format!("write the secret to {}", path.display());
            (format!("needs {shown}, which does not exist"), fix)
        }
        io::ErrorKind::InvalidInput => {
            let fix = "name a file with the secret".to_owned();
            (format!("needs {shown}, which is not a regular file"), fix)
        }
        _ => {
            let fix = format!("let the user that runs Vary read {}", path.display());
            let why = io_error::describe(&error);
            (format!("needs {shown}, which cannot be read: {why}"), fix)
        }
    })?;
    if bytes.len() > MAX_SECRET_FILE {
        let what = format!(
            "needs {shown}, which has more than {} KiB",
            MAX_SECRET_FILE >> 10
        );
        return Err((what, "write only the secret into the file".to_owned()));
    }
    let decoded = String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'));
    let mut text = decoded.ok_or_else(|| {
        let fix = "write it as text, base64 for example".to_owned();
        (format!("needs {shown}, which is not UTF-8 text"), fix)
    })?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
