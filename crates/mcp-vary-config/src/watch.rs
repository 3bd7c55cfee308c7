//! Tells when a configuration file says something else than before.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::warn;

/// Watches a file for other contents.
///
/// # Properties
///
/// What counts is the text, not how it came there: a file may be written to, in pieces, too, or be replaced by
/// renaming another; it, or a directory on the way to it, may be a symbolic link that is set to another place, as
/// Kubernetes does with the files of a `ConfigMap`. Who writes the same text once more has changed nothing.
///
/// Watched are directories, since a file that is replaced takes what watches it along. Where that cannot be done,
/// the file is read every two seconds.
#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    /// What it said last; or, as the outer, that it could not be read.
    known: Result<String, io::ErrorKind>,
    watcher: Option<RecommendedWatcher>,
    /// The directories that are watched, and which they are: one of the same name may have taken its place.
    places: BTreeMap<PathBuf, Identity>,
    /// Told when something happened in one of them.
    stirred: Arc<Notify>,
}

/// What tells a directory from another that had its name before.
type Identity = Option<(u64, u64)>;

/// What is written in pieces is complete when nothing happened for so long.
const QUIET: Duration = Duration::from_millis(200);
/// Where there is no quiet, what there is by then counts.
const MOST: Duration = Duration::from_secs(2);
/// How long a file may be missing while another takes its place.
const MISSING: Duration = Duration::from_secs(1);
/// How often a file is read whose directories cannot be watched.
const PAUSE: Duration = Duration::from_secs(2);
/// Symbolic links on the way to a file; there are no more on systems that we know.
const LINKS: usize = 40;
/// Bytes; what is longer is refused when it is parsed.
const MORE_THAN_ENOUGH: u64 = 2 << 20;

/// The text of the configuration file at `path`, as far as a configuration may be long.
///
/// # Errors
///
/// When it cannot be read, or is no UTF-8.
pub fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = fs::File::open(path)?;
    file.take(MORE_THAN_ENOUGH).read_to_string(&mut text)?;
    Ok(text)
}

impl Watch {
    /// Watches the file at `path`, which said `known` when it was last read.
    #[must_use]
    pub fn new(path: &Path, known: String) -> Self {
        let stirred = Arc::new(Notify::new());
        let told = Arc::clone(&stirred);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading is no change, and we do it ourselves.
            let is_reading = |event: &notify::Event| matches!(event.kind, EventKind::Access(_));
            if !event.as_ref().is_ok_and(is_reading) {
                told.notify_one();
            }
        });
        let watcher = watcher.inspect_err(|error| {
            warn!(%error, "changes of files cannot be watched; the configuration is read every 2 s");
        });
        Self {
            path: path.to_owned(),
            known: Ok(known),
            watcher: watcher.ok(),
            places: BTreeMap::new(),
            stirred,
        }
    }

    /// Waits until the file says something else than when it was last read, and returns that. Safe to drop while
    /// it waits.
    ///
    /// # Errors
    ///
    /// When the file can no longer be read, once; it is waited for all the same.
    pub async fn changed(&mut self) -> io::Result<String> {
        loop {
            // Watched before it is read, so that nothing happens in between.
            let all_watched = self.follow();
            match text(&self.path) {
                Ok(text) if self.known.as_ref() == Ok(&text) => {}
                Ok(text) => {
                    self.known = Ok(text.clone());
                    return Ok(text);
                }
                Err(error) if self.known == Err(error.kind()) => {}
                Err(error) => {
                    if timeout(MISSING, self.stirred.notified()).await.is_err() {
                        self.known = Err(error.kind());
                        return Err(error);
                    }
                    self.settle().await;
                    continue;
                }
            }
            let stirred = self.stirred.notified();
            if all_watched {
                stirred.await;
            } else if timeout(PAUSE, stirred).await.is_err() {
                continue;
            }
            self.settle().await;
        }
    }

    /// What the file says now, changed or not.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn now(&mut self) -> io::Result<String> {
        let text = text(&self.path);
        self.known = text.as_ref().map(String::clone).map_err(io::Error::kind);
        text
    }

    /// Waits until nothing has happened for a while.
    async fn settle(&self) {
        let most = Instant::now() + MOST;
        loop {
            let quiet = Instant::now() + QUIET;
            let stirred = timeout_at(quiet.min(most), self.stirred.notified()).await;
            if stirred.is_err() || Instant::now() >= most {
                return;
            }
        }
    }

    /// Watches the directories that the file is in by now; whether all of them can be.
    fn follow(&mut self) -> bool {
        let Some(watcher) = &mut self.watcher else {
            return false;
        };
        let wanted = places(&self.path);
        let old = std::mem::take(&mut self.places);
        for (place, _) in old
            .iter()
            .filter(|(place, it)| wanted.get(*place) != Some(it))
        {
            // One that is gone is watched no more.
            let _ = watcher.unwatch(place);
        }
        let mut all = true;
        for (place, identity) in wanted {
            let is_watched = old.get(&place) == Some(&identity);
            if is_watched || watcher.watch(&place, RecursiveMode::NonRecursive).is_ok() {
                self.places.insert(place, identity);
            } else {
                all = false;
            }
        }
        all
    }
}

/// The directories in which something can happen that changes what `path` leads to: that of the file, and those
/// of all symbolic links on the way to it.
fn places(path: &Path) -> BTreeMap<PathBuf, Identity> {
    let mut places = BTreeMap::new();
    let mut at = PathBuf::new();
    let mut left = LINKS;
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut steps = reversed(&absolute);
    while let Some(step) = steps.pop() {
        match Path::new(&step).components().next() {
            Some(Component::Normal(name)) => {
                let next = at.join(name);
                let target = fs::read_link(&next).ok().filter(|_| left > 0);
                if target.is_some() || steps.is_empty() {
                    places.insert(at.clone(), identity(&at));
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
            // An absolute path begins anew.
            Some(Component::RootDir | Component::Prefix(_)) => at.push(&step),
        }
    }
    places
}

fn reversed(path: &Path) -> Vec<OsString> {
    let steps = path.components().rev();
    steps.map(|step| step.as_os_str().to_owned()).collect()
}

#[cfg(unix)]
fn identity(place: &Path) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    let told = fs::metadata(place).ok()?;
    Some((told.dev(), told.ino()))
}

#[cfg(not(unix))]
fn identity(place: &Path) -> Identity {
    let made = fs::metadata(place).ok()?.created().ok()?;
    let since = made.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some((since.as_secs(), u64::from(since.subsec_nanos())))
}
