//! Detects changes of a configuration file, and of the secret files that it names.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcp_vary_base::limited_file;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::warn;

use super::secret_files::SecretVersions;

/// Watches a file for changes of its contents.
///
/// # Properties
///
/// Only the text counts, not how it was written. A file may be written in several steps, or replaced by renaming
/// another file. The file, or a directory on the path to it, may be a symbolic link that is redirected, as Kubernetes
/// does with the files of a `ConfigMap`. Writing the same text again is not a change.
///
/// Directories are watched instead of the file, since a watch on a file is lost when the file is replaced. If the
/// directories cannot be watched, the file is read every two seconds.
///
/// The secret files that the configuration [names](Self::follow_secrets) are watched in the same way.
#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    /// The text that was read last, or the error if the file could not be read.
    known: Result<String, io::ErrorKind>,
    /// The secret files that the text names, and what they contained.
    secrets: SecretVersions,
    watcher: Option<RecommendedWatcher>,
    /// The watched directories with their identities: a directory may be replaced by another with the same name.
    directories: BTreeMap<PathBuf, Identity>,
    /// Notified when something changes in a watched directory.
    changes: Arc<Notify>,
}

/// Distinguishes a directory from an earlier one with the same name.
type Identity = Option<(u64, u64)>;

/// A file that is written in several steps counts as complete after this long without changes.
const QUIET: Duration = Duration::from_millis(200);
/// If changes do not stop, the file is read after this long.
const MOST: Duration = Duration::from_secs(2);
/// How long a file may be missing while it is replaced.
const MISSING: Duration = Duration::from_secs(1);
/// How often a file is read if its directories cannot be watched.
const PAUSE: Duration = Duration::from_secs(2);
/// The maximum number of symbolic links to follow. No system that we know allows more.
const LINKS: usize = 40;
/// The number of bytes to read. Longer files are rejected when they are parsed.
const MORE_THAN_ENOUGH: u64 = 2 << 20;

/// Reads the configuration file at `path`, up to a maximum length.
///
/// # Errors
///
/// If the file cannot be read, or is neither UTF-8 nor UTF-16 with a byte order mark.
pub fn text(path: &Path) -> io::Result<String> {
    let bytes = limited_file::read(path, MORE_THAN_ENOUGH)?;
    decoded(bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The text of UTF-8, or of UTF-16 as Windows PowerShell 5 writes it at `>`.
fn decoded(bytes: Vec<u8>) -> Option<String> {
    let unit: fn([u8; 2]) -> u16 = match bytes.get(..2) {
        Some([0xff, 0xfe]) => u16::from_le_bytes,
        Some([0xfe, 0xff]) => u16::from_be_bytes,
        _ => return String::from_utf8(bytes).ok(),
    };
    let (pairs, half) = bytes.as_chunks();
    let units: Vec<u16> = pairs[1..].iter().map(|pair| unit(*pair)).collect();
    let text = String::from_utf16(&units).ok()?;
    half.is_empty().then_some(text)
}

impl Watch {
    /// Watches the file at `path`, whose text was `known` when it was last read.
    #[must_use]
    pub fn new(path: &Path, known: String) -> Self {
        let changes = Arc::new(Notify::new());
        let on_event = Arc::clone(&changes);
        let created = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Access events are not changes, and reading the file here causes them.
            let is_reading = |event: &notify::Event| matches!(event.kind, EventKind::Access(_));
            if !event.as_ref().is_ok_and(is_reading) {
                on_event.notify_one();
            }
        });
        let watcher = created.inspect_err(|error| {
            warn!(%error, "changes of files cannot be watched; the configuration is read every 2 s");
        });
        Self {
            path: path.to_owned(),
            known: Ok(known),
            secrets: SecretVersions::default(),
            watcher: watcher.ok(),
            directories: BTreeMap::new(),
            changes,
        }
    }

    /// Watches these secret files from now on, in place of those before. They were read when the text was.
    pub fn follow_secrets(&mut self, secrets: SecretVersions) {
        self.secrets = secrets;
    }

    /// Waits until the text or a secret file differs from the one that was last read, and returns the text. This method
    /// is cancel safe.
    ///
    /// # Errors
    ///
    /// If the file can no longer be read. The same error is reported only once; the next call keeps waiting for the
    /// file.
    pub async fn changed(&mut self) -> io::Result<String> {
        loop {
            // Watch before reading, so that no change is missed in between.
            let all_watched = self.follow();
            match text(&self.path) {
                Ok(text) if self.known.as_ref() == Ok(&text) => {
                    let secrets = self.secrets.now();
                    if secrets != self.secrets {
                        // A file may be missing while it is replaced.
                        let is_gone = secrets.lacks_one_of(&self.secrets);
                        if is_gone && timeout(MISSING, self.changes.notified()).await.is_ok() {
                            self.settle().await;
                            continue;
                        }
                        self.secrets = secrets;
                        return Ok(text);
                    }
                }
                Ok(text) => {
                    self.known = Ok(text.clone());
                    return Ok(text);
                }
                Err(error) if self.known == Err(error.kind()) => {}
                Err(error) => {
                    if timeout(MISSING, self.changes.notified()).await.is_err() {
                        self.known = Err(error.kind());
                        return Err(error);
                    }
                    self.settle().await;
                    continue;
                }
            }
            let changes = self.changes.notified();
            if all_watched {
                changes.await;
            } else if timeout(PAUSE, changes).await.is_err() {
                continue;
            }
            self.settle().await;
        }
    }

    /// Reads the file now, whether or not it has changed.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn now(&mut self) -> io::Result<String> {
        let read = text(&self.path);
        self.known = read.as_ref().map(String::clone).map_err(io::Error::kind);
        read
    }

    /// Waits until there were no changes for a while.
    async fn settle(&self) {
        let most = Instant::now() + MOST;
        loop {
            let quiet = Instant::now() + QUIET;
            let changes = timeout_at(quiet.min(most), self.changes.notified()).await;
            if changes.is_err() || Instant::now() >= most {
                return;
            }
        }
    }

    /// Updates the set of watched directories. Returns whether all of them are watched.
    fn follow(&mut self) -> bool {
        let Some(watcher) = &mut self.watcher else {
            return false;
        };
        let mut wanted = directories(&self.path);
        wanted.extend(self.secrets.paths().flat_map(directories));
        let old = std::mem::take(&mut self.directories);
        for (directory, _) in old
            .iter()
            .filter(|(directory, it)| wanted.get(*directory) != Some(it))
        {
            // Fails for a deleted directory, which needs no unwatching.
            let _ = watcher.unwatch(directory);
        }
        let mut all = true;
        for (directory, identity) in wanted {
            let is_watched = old.get(&directory) == Some(&identity);
            if is_watched
                || watcher
                    .watch(&directory, RecursiveMode::NonRecursive)
                    .is_ok()
            {
                self.directories.insert(directory, identity);
            } else {
                all = false;
            }
        }
        all
    }
}

/// The directories in which a change can affect the file at `path`: the directory of the file, and those of all
/// symbolic links on the path to it.
fn directories(path: &Path) -> BTreeMap<PathBuf, Identity> {
    let mut directories = BTreeMap::new();
    let mut at = PathBuf::new();
    let mut left = LINKS;
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut steps = reversed(&absolute);
    while let Some(step) = steps.pop() {
        match Path::new(&step).components().next() {
            Some(Component::Normal(name)) => {
                let next = at.join(name);
                let target = (left > 0).then(|| fs::read_link(&next).ok()).flatten();
                if target.is_some() || steps.is_empty() {
                    directories.insert(at.clone(), identity(&at));
                }
                match target {
                    Some(target) => {
                        left -= 1;
                        steps.extend(reversed(&target));
                    }
                    None => at = next,
                }
            }
            Some(Component::ParentDir) => drop(at.pop()),
            Some(Component::CurDir) | None => {}
            // An absolute path starts again from the root.
            Some(Component::RootDir | Component::Prefix(_)) => at.push(&step),
        }
    }
    directories
}

fn reversed(path: &Path) -> Vec<OsString> {
    let steps = path.components().rev();
    steps.map(|step| step.as_os_str().to_owned()).collect()
}

#[cfg(unix)]
fn identity(directory: &Path) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(directory).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(directory: &Path) -> Identity {
    let created = fs::metadata(directory).ok()?.created().ok()?;
    let since = created.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some((since.as_secs(), u64::from(since.subsec_nanos())))
}
