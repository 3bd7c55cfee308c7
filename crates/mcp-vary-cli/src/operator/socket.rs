//! The sockets at which the running gateways of a user answer their operator, without a configuration.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::net::UnixListener;

use crate::operator::token::{self, directory};

/// The socket of this process, until this is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl SocketFile {
    /// Opens the socket of this process, and removes those of processes that were killed, and their tokens.
    pub(crate) fn open() -> io::Result<(UnixListener, Self)> {
        let directory = token::created_directory()?;
        for stale in sockets(&directory).filter(|path| is_abandoned(path)) {
            if let Some(admin) = admin_of(&about(&stale)) {
                token::remove(admin);
            }
            remove(&stale)?;
            remove(&stale.with_extension(ABOUT))?;
        }
        let path = directory.join(format!("{}.{SOCKET}", std::process::id()));
        // One that is there still is of a process in another namespace, which had the same id.
        Ok((UnixListener::bind(&path)?, Self(path)))
    }

    /// Writes the description of the gateway beside its socket.
    pub(crate) fn describe(&self, about: &Value) -> io::Result<()> {
        fs::write(self.0.with_extension(ABOUT), about.to_string())
    }
}

/// The description of the gateway at a socket: `url` for its clients, the configuration `file` and its `listen`, its
/// `admin` address and the `manager` of its service, as far as it has them; and its `program`, as it was on disk at the start.
pub(crate) fn about(socket: &Path) -> Value {
    let text = fs::read(socket.with_extension(ABOUT)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// The `admin` address in the description of a gateway.
fn admin_of(about: &Value) -> Option<SocketAddr> {
    about["admin"].as_str()?.parse().ok()
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // What stays is removed when the next gateway starts.
        let _ = fs::remove_file(&self.0);
        let _ = fs::remove_file(self.0.with_extension(ABOUT));
    }
}

/// Whether it is known where the sockets of this user are.
pub(crate) fn has_directory() -> bool {
    directory().is_some()
}

/// The sockets of the running gateways of this user.
pub(crate) fn running() -> Vec<PathBuf> {
    let directories = directory().into_iter();
    let all = directories.flat_map(|directory| sockets(&directory).collect::<Vec<_>>());
    let mut served: Vec<_> = all.filter(|path| is_served(path)).collect();
    served.sort();
    served
}

/// The sockets in a directory; none if it does not exist.
fn sockets(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|end| end == SOCKET))
}

/// Whether a process answers at a socket.
fn is_served(path: &Path) -> bool {
    UnixStream::connect(path).is_ok()
}

/// Whether the process is gone that answered at a socket.
fn is_abandoned(path: &Path) -> bool {
    let connected = UnixStream::connect(path);
    connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Removes a file that another process may remove at the same time.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The end of the names of sockets.
const SOCKET: &str = "sock";
/// The end of the names of the files that say what is known of their gateways.
const ABOUT: &str = "json";
